//! Whole gzip members.
//!
//! Problem: nearly all members of archives, and all packed bodies, are small and lie in memory from end to end. A decoder
//! that can stop anywhere makes a window for each of them and takes twice the time.
//!
//! Idea: libdeflate unpacks a member as a whole or not at all. It does not say where the member ends; that is where its
//! own checksum and length stand. Whatever does not come out this way is left to the decoder that can stop anywhere: it
//! says what is wrong, and where.

use std::cell::RefCell;

use libdeflater::Decompressor;

/// Header and shortest content: what ends a member lies behind.
const LEAST: usize = 12;
/// What a checksum and a length take.
const TRAILER: usize = 8;
/// The flag of a header that has a checksum of its own, which libdeflate does not look at.
const HEADER_CHECKSUM: u8 = 2;

thread_local! {
    static DECODER: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// A member that was unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Bytes of the input that it has.
    pub(crate) used: usize,
    /// Bytes that came out.
    pub(crate) made: usize,
}

/// Unpacks the member that `input` starts with, if all of it is there, sound and not empty, and fits into `out`.
pub(crate) fn unpack_member(input: &[u8], out: &mut [u8]) -> Option<Member> {
    if input.len() < LEAST + TRAILER || input[3] & HEADER_CHECKSUM != 0 {
        return None;
    }
    let made = DECODER.with_borrow_mut(|decoder| decoder.gzip_decompress(input, out)).ok()?;
    if made == 0 {
        return None;
    }
    let length = u32::try_from(made).ok()?;
    let checksum = libdeflater::crc32(&out[..made]);
    let trailer = (u64::from(length) << 32 | u64::from(checksum)).to_le_bytes();
    // Members are short, and what ends them differs: setting up a search for all of it takes longer than looking for a byte.
    let rest = &input[LEAST..];
    let at = memchr::memchr_iter(trailer[0], rest).find(|&at| rest[at..].starts_with(&trailer))?;
    Some(Member { used: LEAST + at + TRAILER, made })
}

/// The content of a body that is one member from end to end and has at most `limit` bytes unpacked.
pub(crate) fn unpack_body(body: &[u8], limit: usize) -> Option<Vec<u8>> {
    let length = usize::try_from(u32::from_le_bytes(*body.last_chunk()?)).ok()?;
    if length > limit {
        return None;
    }
    let mut out = vec![0; length];
    let member = unpack_member(body, &mut out)?;
    (member == Member { used: body.len(), made: length }).then_some(out)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, GzBuilder};
    use proptest::prelude::*;

    use super::*;

    fn packed(data: &[u8], level: u32, name: bool) -> Vec<u8> {
        let builder = if name { GzBuilder::new().filename("page.html") } else { GzBuilder::new() };
        let mut encoder = builder.write(Vec::new(), Compression::new(level));
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    proptest! {
        #[test]
        fn a_member_comes_out_whole_and_ends_where_it_ends(
            data in prop_oneof!["[a-d \\n]{1,3000}".prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 1..3000)],
            behind in prop::collection::vec(any::<u8>(), 0..100),
            level in 0u32..10,
            name: bool,
        ) {
            let member = packed(&data, level, name);
            let mut out = vec![0; 4000];
            let all = [member.clone(), behind].concat();
            let found = unpack_member(&all, &mut out);
            prop_assert_eq!(found, Some(Member { used: member.len(), made: data.len() }));
            prop_assert_eq!(&out[..data.len()], &data[..]);
            prop_assert_eq!(unpack_body(&member, data.len()), Some(data.clone()));
            prop_assert_eq!(unpack_body(&member, data.len() - 1), None);
            // Cut, without room, or damaged: another decoder has to say what is wrong.
            for end in 0..member.len() {
                prop_assert_eq!(unpack_member(&member[..end], &mut out), None);
            }
            prop_assert_eq!(unpack_member(&member, &mut out[..data.len() - 1]), None);
            let mut harmed = member.clone();
            let last = harmed.len() - 6;
            harmed[last] ^= 1;
            prop_assert_eq!(unpack_member(&harmed, &mut out), None);
        }
    }

    #[test]
    fn of_equal_members_the_first_ends_first() {
        let one = packed(b"one and the same", 6, false);
        let mut out = [0; 100];
        let two = [one.clone(), one.clone()].concat();
        assert_eq!(unpack_member(&two, &mut out), Some(Member { used: one.len(), made: 16 }));
        assert_eq!(unpack_body(&two, 100), None, "it is not one member");
        assert_eq!(unpack_member(&packed(b"", 6, false), &mut out), None);
        assert_eq!(unpack_body(b"", 100), None);
    }
}
