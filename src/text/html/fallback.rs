//! What stands in a page for programs that cannot show something: where it begins and, in pages that leave it open, ends.

/// Blocks without an end tag, or whose end tag may be left out: they tell nothing about what is open.
const LOOSE: [&[u8]; 18] = [
    b"br",
    b"hr",
    b"p",
    b"li",
    b"dt",
    b"dd",
    b"td",
    b"th",
    b"tr",
    b"thead",
    b"tbody",
    b"tfoot",
    b"option",
    b"optgroup",
    b"head",
    b"body",
    b"html",
    b"caption",
];

fn is_one_of(name: &[u8], names: &[&[u8]]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// An element whose content stands in for what it shows.
pub(super) struct Fallback<'h> {
    name: &'h [u8],
    /// Elements of its name that are open.
    depth: usize,
    /// Blocks that are open in it.
    blocks: usize,
}

impl<'h> Fallback<'h> {
    pub(super) fn new(name: &'h [u8]) -> Self {
        Self { name, depth: 1, blocks: 0 }
    }

    fn is_ruby(&self) -> bool {
        self.name.eq_ignore_ascii_case(b"rp")
    }

    /// A start tag in it; whether that ends it.
    pub(super) fn start(&mut self, name: &[u8], is_block: bool) -> bool {
        if self.is_ruby() {
            return is_block || is_one_of(name, &[b"rt", b"rb", b"rtc"]);
        }
        if self.name.eq_ignore_ascii_case(name) {
            self.depth += 1;
        } else if is_block && !is_one_of(name, &LOOSE) {
            self.blocks += 1;
        }
        false
    }

    /// The same for an end tag.
    pub(super) fn end(&mut self, name: &[u8], is_block: bool) -> bool {
        if self.name.eq_ignore_ascii_case(name) {
            self.depth -= 1;
            return self.depth == 0;
        }
        if self.is_ruby() {
            return is_block || is_one_of(name, &[b"ruby"]);
        }
        if !is_block || is_one_of(name, &LOOSE) {
            return false;
        }
        match self.blocks.checked_sub(1) {
            Some(left) => {
                self.blocks = left;
                false
            }
            // The block around it ends, and with it what was left open.
            None => true,
        }
    }
}
