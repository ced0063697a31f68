//! Offsets in bytes, characters or UTF-16 units of one text, and back.
//!
//! Counts are kept every 64 bytes, so a look-up reads at most 64 bytes; ASCII text needs no table at all.

use super::Offsets;

pub(crate) struct Ruler<'a> {
    text: &'a [u8],
    offsets: Offsets,
    /// Units before byte `64 * i`; empty if every byte is a unit.
    marks: Vec<u32>,
    len: u32,
}

const STEP: usize = 64;

impl<'a> Ruler<'a> {
    #[must_use]
    pub(crate) fn new(text: &'a str, offsets: Offsets) -> Self {
        let text = text.as_bytes();
        if offsets == Offsets::Byte || text.is_ascii() {
            let len = u32::try_from(text.len()).expect("texts are shorter than 4 GiB");
            return Self { text, offsets: Offsets::Byte, marks: Vec::new(), len };
        }
        let mut marks = Vec::with_capacity(text.len() / STEP + 2);
        let mut units = 0;
        for block in text.chunks(STEP) {
            marks.push(units);
            units += count(block, offsets);
        }
        marks.push(units);
        Self { text, offsets, marks, len: units }
    }

    /// The length of the text, in units.
    #[must_use]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Units before a byte offset that is a character boundary.
    #[must_use]
    pub(crate) fn units(&self, byte: u32) -> u32 {
        if self.offsets == Offsets::Byte {
            return byte;
        }
        let byte = byte as usize;
        let block = byte / STEP;
        self.marks[block] + count(&self.text[block * STEP..byte], self.offsets)
    }

    /// The byte offset of a unit; `None` if it lies beyond the end or inside a character.
    #[must_use]
    pub(crate) fn byte(&self, unit: u32) -> Option<u32> {
        let at = self.at_or_after(unit)?;
        (self.units(at) == unit).then_some(at)
    }

    /// The last character boundary at or before a unit; the end of the text beyond it.
    #[must_use]
    pub(crate) fn at_or_before(&self, unit: u32) -> u32 {
        let Some(mut at) = self.at_or_after(unit) else {
            return u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        };
        while self.units(at) > unit || is_continuation_at(self.text, at) {
            at -= 1;
        }
        at
    }

    /// The first character boundary at or after a unit; `None` beyond the end.
    #[must_use]
    pub(crate) fn at_or_after(&self, unit: u32) -> Option<u32> {
        if unit > self.len {
            return None;
        }
        let mut at = if self.offsets == Offsets::Byte {
            unit as usize
        } else {
            // The last block that starts before the unit, or with it.
            let block = self.marks.partition_point(|&mark| mark < unit).saturating_sub(1);
            let mut units = self.marks[block];
            let mut at = block * STEP;
            while units < unit && at < self.text.len() {
                units += count(&self.text[at..=at], self.offsets);
                at += 1;
            }
            at
        };
        while at < self.text.len() && is_continuation(self.text[at]) {
            at += 1;
        }
        u32::try_from(at).ok()
    }
}

/// Units of the characters that start in `bytes`.
fn count(bytes: &[u8], offsets: Offsets) -> u32 {
    let mut units = 0;
    for &byte in bytes {
        units += u32::from(!is_continuation(byte));
        // Four bytes in UTF-8 are two units in UTF-16.
        units += u32::from(offsets == Offsets::Utf16 && byte >= 0xF0);
    }
    units
}

fn is_continuation_at(text: &[u8], at: u32) -> bool {
    text.get(at as usize).is_some_and(|&byte| is_continuation(byte))
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_as_the_standard_library_does(text in "[aé€😀]{0,200}") {
            for offsets in [Offsets::Byte, Offsets::Char, Offsets::Utf16] {
                let ruler = Ruler::new(&text, offsets);
                let units = |s: &str| match offsets {
                    Offsets::Byte => s.len(),
                    Offsets::Char => s.chars().count(),
                    Offsets::Utf16 => s.encode_utf16().count(),
                };
                let mut ends: Vec<(usize, usize)> =
                    text.char_indices().map(|(at, _)| (at, units(&text[..at]))).collect();
                ends.push((text.len(), units(&text)));
                prop_assert_eq!(ruler.len() as usize, units(&text));
                for &(byte, unit) in &ends {
                    let (byte, unit) = (u32::try_from(byte).unwrap(), u32::try_from(unit).unwrap());
                    prop_assert_eq!(ruler.units(byte), unit);
                    prop_assert_eq!(ruler.byte(unit), Some(byte));
                }
                for unit in 0..=ruler.len() {
                    let expected = ends.iter().find(|end| end.1 >= unit as usize).map(|end| u32::try_from(end.0).unwrap());
                    prop_assert_eq!(ruler.at_or_after(unit), expected);
                    let expected = ends.iter().rfind(|end| end.1 <= unit as usize).unwrap().0;
                    prop_assert_eq!(ruler.at_or_before(unit) as usize, expected);
                }
                prop_assert_eq!(ruler.byte(ruler.len() + 1), None);
            }
        }
    }
}
