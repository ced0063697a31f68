//! A page's content at a moment: its blocks, after all updates up to then.
//!
//! A block is a kind and a seed; a sentence of it is drawn from (seed, number), unless a patch gave it a seed of its
//! own. An update replaces, patches, inserts, deletes or swaps blocks, so that old text survives around it, moved or in
//! place, as on real sites.

use crate::lab::synth::clock::moment;
use crate::lab::synth::section::{Night, PageKind, PageNo, Section};
use crate::lab::synth::words::Voice;
use crate::model::Timestamp;
use crate::model::rng::{Rng, key};

const BLOCKS: u64 = 11;
const EDIT: u64 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// What a hub or the home page lists.
    Members,
    /// Sentences, sometimes under a heading.
    Prose,
    /// A list whose items are mentions.
    Items,
    /// A list of links.
    Links,
    Table,
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) kind: BlockKind,
    pub(crate) seed: u64,
    /// Night it was written: links lead to where pages were then.
    pub(crate) night: Night,
    patches: Vec<(u32, u64)>,
}

impl Block {
    fn new(kind: BlockKind, seed: u64, night: Night) -> Self {
        Self { kind, seed, night, patches: Vec::new() }
    }

    /// Seed of a sentence, item or row.
    pub(crate) fn line_seed(&self, number: u32) -> u64 {
        let patch = self.patches.iter().rev().find(|(patched, _)| *patched == number);
        patch.map_or_else(|| key(&[self.seed, u64::from(number)]), |&(_, seed)| seed)
    }

    /// How many sentences, items or rows it has.
    pub(crate) fn lines(&self) -> u32 {
        let mut rng = Rng::keyed(&[self.seed, 1 << 40]);
        match self.kind {
            BlockKind::Members => 1,
            BlockKind::Prose => rng.between(2, 6),
            BlockKind::Items => rng.between(1, 3),
            BlockKind::Links | BlockKind::Table => rng.between(3, 6),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) blocks: Vec<Block>,
    /// Number of updates since birth.
    pub(crate) updates: u32,
    /// Last update of the text, or creation.
    pub(crate) changed_at: Timestamp,
}

/// Mean bytes of text that a block adds to a page, and of what surrounds the blocks; measured over both parts, a test
/// holds the mean page to what was asked for.
const BLOCK_BYTES: u32 = 230;
const FRAME_BYTES: u32 = 210;

impl Section {
    /// Seconds of a night's day at which the page changes. None around a move, so that a moved page keeps its text.
    pub(crate) fn update_seconds(
        &self,
        page: PageNo,
        pulse: &crate::lab::synth::rhythm::Pulse,
        night: Night,
        out: &mut Vec<i64>,
    ) {
        if self.moves_on(page, night) || self.moves_on(page, night + 1) {
            out.clear();
        } else {
            pulse.updates(self.day(night), out);
        }
    }

    pub(crate) fn state(&self, page: PageNo, now: Timestamp, night: Night) -> State {
        let birth = self.birth(page);
        let created = self.created(page);
        let mut state = State { blocks: self.first_blocks(page, birth), updates: 0, changed_at: created };
        let pulse = self.pulse(page);
        let mut seconds = Vec::new();
        for past in birth..=night {
            self.update_seconds(page, &pulse, past, &mut seconds);
            for &second in &seconds {
                let time = moment(self.day(past), second);
                if time > now {
                    return state;
                }
                self.update(page, &mut state, past, second);
                state.changed_at = time;
            }
        }
        state
    }

    fn first_blocks(&self, page: PageNo, birth: Night) -> Vec<Block> {
        let mut rng = Rng::keyed(&[self.seed, u64::from(page), BLOCKS]);
        // Sizes spread around the mean as on real sites: many small pages, a few large ones.
        let percent = [30, 45, 60, 70, 80, 95, 110, 130, 160, 220][rng.below(10) as usize];
        let wanted = self.page_bytes.saturating_sub(FRAME_BYTES) / 20 * percent / 5;
        // The fraction of a block is drawn, or small pages would all be too short.
        let count = (wanted / BLOCK_BYTES + u32::from(rng.below(BLOCK_BYTES) < wanted % BLOCK_BYTES)).max(2);
        let mut blocks = Vec::with_capacity(count as usize + 2);
        for number in 0..count {
            let kind = match (Self::kind(page), number) {
                (PageKind::Home | PageKind::Hub, 0) => BlockKind::Members,
                (PageKind::Person | PageKind::News, 0) => BlockKind::Prose,
                (PageKind::Event, 0) => BlockKind::Items,
                _ => some_kind(&mut rng),
            };
            blocks.push(Block::new(kind, rng.number(), birth));
        }
        blocks
    }

    fn update(&self, page: PageNo, state: &mut State, night: Night, second: i64) {
        let mut rng = Rng::keyed(&[self.seed, u64::from(page), EDIT, u64::from(night), second.cast_unsigned()]);
        let size = u32::try_from(state.blocks.len()).unwrap_or(u32::MAX);
        let edits = match self.voice {
            Voice::Campus => 1 + u32::from(rng.percent(30)),
            Voice::Stage => rng.between(1, 2 + size / 4),
        };
        for _ in 0..edits {
            edit(&mut state.blocks, night, &mut rng);
        }
        for block in &mut state.blocks {
            if block.kind == BlockKind::Members {
                block.night = night;
            }
        }
        state.updates += 1;
    }
}

fn some_kind(rng: &mut Rng) -> BlockKind {
    match rng.below(100) {
        0..68 => BlockKind::Prose,
        68..77 => BlockKind::Items,
        77..90 => BlockKind::Links,
        _ => BlockKind::Table,
    }
}

fn edit(blocks: &mut Vec<Block>, night: Night, rng: &mut Rng) {
    let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
    // The list of members leads a hub and stays there.
    let fixed = u32::from(blocks.first().is_some_and(|block| block.kind == BlockKind::Members));
    let free = count - fixed;
    let one = |rng: &mut Rng| (fixed + rng.below(free.max(1))).min(count.saturating_sub(1)) as usize;
    match rng.below(100) {
        0..10 if free > 2 => {
            blocks.remove(one(rng));
        }
        10..22 if free >= 2 => {
            let (a, b) = (one(rng), one(rng));
            // Equal draws swap with a neighbour, so that something moves.
            let b = if a == b { if a + 1 < count as usize { a + 1 } else { fixed as usize } } else { b };
            blocks.swap(a, b);
        }
        22..40 => {
            let kind = some_kind(rng);
            let place = if free == 0 { count as usize } else { one(rng) };
            blocks.insert(place, Block::new(kind, rng.number(), night));
        }
        40..65 if free > 0 => {
            let place = one(rng);
            // What leads a person's page remains prose, and so on.
            blocks[place] = Block::new(blocks[place].kind, rng.number(), night);
        }
        _ if free > 0 => {
            let place = one(rng);
            let line = rng.below(blocks[place].lines());
            let seed = rng.number();
            blocks[place].patches.retain(|(patched, _)| *patched != line);
            blocks[place].patches.push((line, seed));
        }
        _ => blocks.push(Block::new(BlockKind::Prose, rng.number(), night)),
    }
}
