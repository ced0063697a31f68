//! Black boxes with a known reach.
//!
//! A box decides about every span of up to `scope` characters by a hash of exactly what it may see: the window, page
//! edges included. It reports that hash, so two windows that differ anywhere give different mentions. Any local
//! extractor is a function of the window; this one forgets nothing about it.

use std::time::Duration;

use crate::extract::command::{Command, CommandSpec, Offsets, Ready, Ruler};
use crate::extract::mention::{Mention, Piece, Value, offset};
use crate::extract::reach::{Blocks, Declared, Reach, Unit};
use crate::extract::{Answer, Failure, Question, Runner};
use crate::model::{Digest, Rng, Span};

#[derive(Clone, Debug)]
pub(super) struct BlackBox {
    scope: u32,
    left: u32,
    right: u32,
    offsets: Offsets,
    /// On average one window in so many is a mention, and one in twice as many is reported twice.
    rarity: u64,
}

impl BlackBox {
    /// The mentions of a text seen as a page.
    fn extract(&self, text: &str) -> Vec<Mention> {
        let ruler = Ruler::new(text, self.offsets);
        let mut boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        boundaries.push(text.len());
        let mut found = Vec::new();
        for (index, &start) in boundaries.iter().enumerate() {
            for &end in &boundaries[index + 1..] {
                let (from, to) = (ruler.units(offset(start)), ruler.units(offset(end)));
                if to - from > self.scope {
                    break;
                }
                // What is seen: the window's whole characters, and by how much it goes over an edge.
                let over_left = self.left.saturating_sub(from);
                let over_right = (to + self.right).saturating_sub(ruler.len());
                let first = ruler.at_or_after(from.saturating_sub(self.left)).expect("inside");
                let last = ruler.at_or_before((to + self.right).min(ruler.len()));
                let window = &text[first as usize..last as usize];
                let seen = format!("{over_left} {over_right} {} {window}", start - first as usize);
                let hash = Digest::of(format!("{seen} {}", end - start).as_bytes()).low64();
                let times =
                    u64::from(hash.is_multiple_of(self.rarity)) + u64::from(hash.is_multiple_of(2 * self.rarity));
                for _ in 0..times {
                    let attributes = Box::new([Value::One(Piece::Text(format!("{hash:x}")))]);
                    found.push(Mention { start: offset(start), end: offset(end), label: 0, attributes });
                }
            }
        }
        found
    }
}

impl Runner for BlackBox {
    fn run(&mut self, page: &str, slices: &[Span]) -> Result<Vec<Vec<Mention>>, Failure> {
        let each = |slice: &Span| {
            let found = self.extract(&page[slice.range()]);
            found.iter().map(|mention| mention.shifted(i64::from(slice.start))).collect()
        };
        Ok(slices.iter().map(each).collect())
    }

    /// What is shown beside a unit decides too: every mention tells it.
    fn answer(&mut self, questions: &[Question<'_>]) -> Result<Vec<Answer>, Failure> {
        let each = |question: &Question<'_>| {
            let mut mentions = self.extract(question.text);
            let beside = Question { text: "", ..*question }.identity();
            for mention in &mut mentions {
                mention.attributes = Box::new([Value::One(Piece::Text(format!("{:?} {beside}", mention.attributes)))]);
            }
            mentions.sort_unstable();
            Answer::now(mentions)
        };
        Ok(questions.iter().map(each).collect())
    }
}

fn command(unit: Unit, blocks: Blocks, offsets: Offsets, reach: Reach) -> Command {
    let ready = serde_json::json!({ "name": "box", "attributes": ["seen"], "context": [reach.left, reach.right] });
    let ready: Ready = serde_json::from_value(ready).expect("a sound handshake");
    let spec = CommandSpec {
        argv: vec!["box".into()],
        declared: Declared { scope: Some(reach.scope), context: None },
        unit: Some(unit),
        blocks,
        offsets: Some(offsets),
        timeout: Duration::from_secs(1),
        in_flight: 1,
        ..CommandSpec::default()
    };
    Command::agree(spec, ready).expect("a sound command")
}

fn random_box(rng: &mut Rng) -> BlackBox {
    let mut number = |n: usize| u32::try_from(rng.index(n)).expect("small");
    let (scope, left, right) = (1 + number(5), number(4), number(4));
    let offsets = [Offsets::Byte, Offsets::Char, Offsets::Utf16][number(3) as usize];
    BlackBox { scope, left, right, offsets, rarity: 1 + u64::from(number(6)) }
}

/// A command and a box that does what the command says.
pub(super) fn local_command(rng: &mut Rng) -> (Command, BlackBox) {
    let blackbox = random_box(rng);
    let units = [Unit::Line, Unit::Block, Unit::Block, Unit::Paragraph, Unit::Page];
    let unit = if rng.index(2) == 0 { Unit::Window } else { *rng.choose(&units) };
    // Pages are short, and so are their blocks.
    let mut number = |n: usize| u32::try_from(rng.index(n)).expect("small");
    let blocks = Blocks { bytes: 1 + number(16), context: number(3) };
    // Declared numbers may be larger than they need be.
    let more = u32::try_from(rng.index(3)).expect("small");
    let reach = Reach::new(blackbox.scope + more, blackbox.left + more, blackbox.right);
    (command(unit, blocks, blackbox.offsets, reach), blackbox)
}

/// A command that declares less context than its box looks at.
#[cfg(test)]
pub(super) fn lying_command(rng: &mut Rng) -> (Command, BlackBox) {
    let mut blackbox = random_box(rng);
    blackbox.left += 1;
    let reach = Reach::new(blackbox.scope, blackbox.left - 1, blackbox.right);
    (command(Unit::Window, Blocks::default(), blackbox.offsets, reach), blackbox)
}
