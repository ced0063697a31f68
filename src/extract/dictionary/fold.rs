//! Case folding that keeps every offset.

/// The lower case of `c`, if it is one character of as many bytes, else `c`. A sigma has two lower cases, by its place in
/// the word: they are one letter.
fn fold_char(c: char) -> char {
    if c == 'ς' {
        return 'σ';
    }
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(single), None) if single.len_utf8() == c.len_utf8() => single,
        _ => c,
    }
}

pub(super) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    fold_into(text, &mut out);
    out
}

fn fold_into(text: &str, out: &mut String) {
    let mut rest = text;
    while !rest.is_empty() {
        let ascii = rest.bytes().position(|b| !b.is_ascii()).unwrap_or(rest.len());
        let from = out.len();
        out.push_str(&rest[..ascii]);
        out[from..].make_ascii_lowercase();
        rest = &rest[ascii..];
        let other = rest.bytes().position(|b| b.is_ascii()).unwrap_or(rest.len());
        out.extend(rest[..other].chars().map(fold_char));
        rest = &rest[other..];
    }
}

/// The folded copy of a stretch of a page, kept from call to call: a scan asks for the same stretch again and again,
/// and a page of which little is scanned must not be folded as a whole.
#[derive(Default)]
pub(super) struct Folded {
    copy: String,
    base: usize,
}

impl Folded {
    /// The folded bytes of a stretch that includes `[from, end)`, and where it begins. Only for one page's text.
    pub(super) fn cover(&mut self, text: &str, from: usize, end: usize) -> (&[u8], usize) {
        if from < self.base || end > self.base + self.copy.len() {
            self.base = text.floor_char_boundary(from);
            self.copy.clear();
            fold_into(&text[self.base..text.ceil_char_boundary(end)], &mut self.copy);
        }
        (self.copy.as_bytes(), self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_offset_moves(text in "\\PC{0,20}", extra in "[aAéÉİı\u{212A}ẞßΣςДд]{0,8}") {
            let text = text + &extra;
            let folded = fold(&text);
            let ends = |s: &str| s.char_indices().map(|(i, _)| i).collect::<Vec<_>>();
            prop_assert_eq!(ends(&text), ends(&folded));
            prop_assert_eq!(fold(&folded), folded);
        }
    }

    #[test]
    fn letters_of_equal_length_fold() {
        assert_eq!(fold("ÉCOLE Дом \u{212A}İ"), "école дом \u{212A}İ", "the Kelvin sign has three bytes");
    }

    #[test]
    fn a_final_sigma_is_a_sigma() {
        assert_eq!(fold("ΟΔΥΣΣΕΥΣ"), fold("Οδυσσευς"));
        assert_eq!(fold("ς"), "σ");
    }

    #[test]
    fn a_stretch_is_folded_on_demand() {
        let text = "ÄbCdÉf";
        let mut folded = Folded::default();
        let (bytes, base) = folded.cover(text, 1, 4);
        assert_eq!((std::str::from_utf8(bytes).unwrap(), base), ("äbc", 0));
        let (bytes, base) = folded.cover(text, 4, 7);
        assert_eq!((std::str::from_utf8(bytes).unwrap(), base), ("dé", 4));
    }
}
