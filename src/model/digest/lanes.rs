//! Digests of many short texts at once.
//!
//! BLAKE3 hashes chunks of 1 KB beside each other, as many as the processor has lanes: sixteen on current ones. A page
//! of a few KB leaves most of them empty. Here chunks of many pages fill them: first those at the same place in each,
//! then all pairs of the trees above. The digests are the same.
//!
//! The functions of the crate that do this are public for its own benchmarks only, so that its version is pinned.

use std::cmp::Reverse;

use blake3::IncrementCounter;
use blake3::platform::Platform;

use super::Digest;

const CHUNK: usize = blake3::CHUNK_LEN;
const BLOCK: usize = blake3::BLOCK_LEN;
/// Of what a node of the tree is known by.
const NODE: usize = blake3::OUT_LEN;
/// Longer ones fill the lanes alone.
const LONG: usize = 32 * CHUNK;
/// As many chunks are worth to be done together.
const FULL: usize = 4;

/// What the hash starts from.
const START: [u32; 8] =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];
const CHUNK_START: u8 = 1;
const CHUNK_END: u8 = 2;
const PARENT: u8 = 4;
const ROOT: u8 = 8;

/// The digest of each text.
pub(super) fn digests(texts: &[&[u8]]) -> Vec<Digest> {
    let mut all: Vec<Digest> = texts.iter().map(|_| Digest([0; 16])).collect();
    let mut shared = Vec::with_capacity(texts.len());
    for (i, text) in texts.iter().enumerate() {
        // One chunk is its own root, and cannot share lanes with what is none.
        if text.len() <= CHUNK || text.len() > LONG {
            all[i] = Digest::of(text);
        } else {
            shared.push(Tree { place: i, text, nodes: vec![[0; NODE]; text.len().div_ceil(CHUNK)] });
        }
    }
    shared.sort_by_key(|tree| Reverse(tree.text.len()));
    let platform = Platform::detect();
    hash_chunks(platform, &mut shared);
    hash_parents(platform, &mut shared);
    for Tree { place, nodes, .. } in shared {
        all[place] = Digest::cut(&nodes[0]);
    }
    all
}

/// A text of several chunks, and the nodes of the level that was reached.
struct Tree<'a> {
    place: usize,
    text: &'a [u8],
    nodes: Vec<[u8; NODE]>,
}

impl<'a> Tree<'a> {
    /// A chunk that is whole.
    fn chunk(&self, i: usize) -> Option<&'a [u8; CHUNK]> {
        self.text.get(i * CHUNK..)?.first_chunk()
    }
}

/// The lowest nodes of all trees, the longest of which comes first.
fn hash_chunks(platform: Platform, trees: &mut [Tree<'_>]) {
    let mut out = Vec::new();
    let mut i = 0;
    loop {
        let mut chunks: Vec<&[u8; CHUNK]> = trees.iter().map_while(|tree| tree.chunk(i)).collect();
        let there = chunks.len();
        if there < FULL {
            break;
        }
        // Lanes that would be left are filled: a few of them take as long as all.
        chunks.resize(there.next_multiple_of(platform.simd_degree()), chunks[0]);
        out.resize(chunks.len() * NODE, 0);
        platform.hash_many(&chunks, &START, i as u64, IncrementCounter::No, 0, CHUNK_START, CHUNK_END, &mut out);
        for (tree, node) in trees[..there].iter_mut().zip(out.as_chunks().0) {
            tree.nodes[i] = *node;
        }
        i += 1;
    }
    // What few texts have of chunks beyond that, and the ends of all.
    for tree in trees {
        let rest: Vec<&[u8; CHUNK]> = (i..).map_while(|i| tree.chunk(i)).collect();
        if !rest.is_empty() {
            let out = tree.nodes[i..][..rest.len()].as_flattened_mut();
            platform.hash_many(&rest, &START, i as u64, IncrementCounter::Yes, 0, CHUNK_START, CHUNK_END, out);
        }
        let (end, last) = (tree.text.len() % CHUNK, tree.nodes.len() - 1);
        if end > 0 {
            tree.nodes[last] = hash_end(platform, &tree.text[tree.text.len() - end..], last as u64);
        }
    }
}

/// The node of a chunk that is not whole.
fn hash_end(platform: Platform, end: &[u8], number: u64) -> [u8; NODE] {
    let mut words = START;
    let blocks = end.len().div_ceil(BLOCK);
    for (i, bytes) in end.chunks(BLOCK).enumerate() {
        let start = if i == 0 { CHUNK_START } else { 0 };
        let last = if i + 1 == blocks { CHUNK_END } else { 0 };
        let mut block = [0; BLOCK];
        block[..bytes.len()].copy_from_slice(bytes);
        let length = u8::try_from(bytes.len()).expect("a block has 64 bytes");
        platform.compress_in_place(&mut words, &block, length, number, start | last);
    }
    let mut node = [0; NODE];
    for (bytes, word) in node.as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    node
}

/// Replaces the nodes of each tree by its root. On each level neighbours are hashed to one; who has none goes up as it is.
fn hash_parents(platform: Platform, trees: &mut [Tree<'_>]) {
    while trees.iter().any(|tree| tree.nodes.len() > 2) {
        hash_pairs(platform, trees, |tree| if tree.nodes.len() > 2 { tree.nodes.len() / 2 } else { 0 }, 0);
    }
    hash_pairs(platform, trees, |_| 1, ROOT);
}

/// Hashes so many pairs of nodes of each tree, each pair to one node.
fn hash_pairs(platform: Platform, trees: &mut [Tree<'_>], pairs: impl Fn(&Tree<'_>) -> usize, flags: u8) {
    let all: Vec<&[u8; 2 * NODE]> =
        trees.iter().flat_map(|tree| &tree.nodes.as_flattened().as_chunks().0[..pairs(tree)]).collect();
    let mut out = vec![0; all.len() * NODE];
    platform.hash_many(&all, &START, 0, IncrementCounter::No, PARENT | flags, 0, 0, &mut out);
    let mut hashed = out.as_chunks().0.iter().copied();
    for tree in trees {
        let pairs = pairs(tree);
        tree.nodes.splice(..2 * pairs, hashed.by_ref().take(pairs));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lengths around those of blocks, chunks and levels.
    fn length() -> impl Strategy<Value = usize> {
        let near =
            |unit: usize| (0..LONG / unit + 3, 0..3usize).prop_map(move |(n, off)| (n * unit + off).saturating_sub(1));
        prop_oneof![near(BLOCK), near(CHUNK), 0..3 * CHUNK, 0..LONG + 2 * CHUNK]
    }

    proptest! {
        #[test]
        fn many_digests_are_those_of_each(lengths in prop::collection::vec(length(), 0..70), seed: u8) {
            let texts: Vec<Vec<u8>> = lengths
                .iter()
                .enumerate()
                .map(|(i, length)| (0..=250u8).cycle().skip(usize::from(seed) + i).take(*length).collect())
                .collect();
            let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
            let each: Vec<Digest> = texts.iter().map(|text| Digest::of(text)).collect();
            prop_assert_eq!(digests(&texts), each);
        }
    }
}
