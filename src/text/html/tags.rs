//! Which elements matter, found from a tag name without allocation.
//!
//! A name of up to eight bytes is packed, in lower case, into one `u64` while the tokenizer looks for its end; a
//! small open-addressed table, built at compile time, maps that to a [`Tag`]. The few longer names are compared as
//! bytes. Everything not listed is an inline element of no interest.

use super::fold::Gap;

/// What a start tag does besides the gap it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Nothing,
    Anchor,
    Area,
    Base,
    /// `frame`, which shows another page.
    Frame,
    /// The same inside a page; nothing in it is markup except its own end tag.
    Iframe,
    /// `img`, which may be all that a link has to say.
    Image,
    /// `meta`, which may lead on to another page.
    Meta,
    /// `link`, which may say what the page's own address is.
    Link,
    /// Its content is shown only where something else cannot be.
    Fallback,
    /// `annotation`, which is not shown inside MathML.
    Annotation,
    /// Line breaks count from here to the end tag.
    Pre,
    Title,
    Script,
    /// Raw text that is not shown: nothing in it is markup except its own end tag.
    Hidden,
    /// Its content is shown with its lines, and has character references but no markup.
    Textarea,
    /// Its content is shown with its lines, and has neither references nor markup.
    Xmp,
    Plaintext,
    Template,
    /// `svg` and `math`, in which raw text and CDATA follow other rules.
    Foreign,
    /// `foreignObject`, which holds HTML inside SVG.
    Island,
    /// `desc`, which is not shown inside SVG.
    Desc,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub(super) act: Act,
    /// Gap made by the start tag and by the end tag.
    pub(super) gap: Gap,
    /// An HTML element that cannot be inside SVG or MathML: it ends them.
    pub(super) breakout: bool,
}

impl Tag {
    /// Whether it belongs to what a page looks like. Scripts and what is said about the page come and go unseen.
    pub(super) fn is_shown(self) -> bool {
        use Act::{Base, Hidden, Link, Meta, Script, Template, Title};
        !matches!(self.act, Script | Hidden | Template | Base | Meta | Link | Title)
    }
}

const fn tag(act: Act, gap: Gap, breakout: bool) -> Tag {
    Tag { act, gap, breakout }
}

pub(super) const INLINE: Tag = tag(Act::Nothing, Gap::None, false);
/// An inline element that ends foreign content.
const PHRASE: Tag = tag(Act::Nothing, Gap::None, true);
/// A block that may, by the letter of the standard, stand inside foreign content.
const BLOCK: Tag = tag(Act::Nothing, Gap::Line, false);
const BLOCK_OUT: Tag = tag(Act::Nothing, Gap::Line, true);
const CELL: Tag = tag(Act::Nothing, Gap::Cell, false);
const PRE: Tag = tag(Act::Pre, Gap::Line, true);
const HIDDEN: Tag = tag(Act::Hidden, Gap::None, false);
const FALLBACK: Tag = tag(Act::Fallback, Gap::None, false);

/// Every name of interest. The order is free.
const NAMES: &[(&str, Tag)] = &[
    ("a", tag(Act::Anchor, Gap::None, false)),
    ("area", tag(Act::Area, Gap::None, false)),
    ("base", tag(Act::Base, Gap::None, false)),
    ("title", tag(Act::Title, Gap::None, false)),
    ("script", tag(Act::Script, Gap::None, false)),
    ("style", HIDDEN),
    ("noscript", HIDDEN),
    ("noframes", HIDDEN),
    ("noembed", HIDDEN),
    ("iframe", tag(Act::Iframe, Gap::None, false)),
    ("frame", tag(Act::Frame, Gap::None, false)),
    ("img", tag(Act::Image, Gap::None, true)),
    ("meta", tag(Act::Meta, Gap::None, true)),
    ("link", tag(Act::Link, Gap::None, false)),
    ("rp", FALLBACK),
    ("video", FALLBACK),
    ("audio", FALLBACK),
    ("canvas", FALLBACK),
    ("object", FALLBACK),
    ("annotation", tag(Act::Annotation, Gap::None, false)),
    ("annotation-xml", tag(Act::Annotation, Gap::None, false)),
    ("textarea", tag(Act::Textarea, Gap::Line, false)),
    ("xmp", tag(Act::Xmp, Gap::Line, false)),
    ("plaintext", tag(Act::Plaintext, Gap::Line, false)),
    ("template", tag(Act::Template, Gap::None, false)),
    ("svg", tag(Act::Foreign, Gap::None, false)),
    ("math", tag(Act::Foreign, Gap::None, false)),
    ("foreignobject", tag(Act::Island, Gap::None, false)),
    ("desc", tag(Act::Desc, Gap::None, false)),
    ("pre", PRE),
    ("listing", PRE),
    ("td", CELL),
    ("th", CELL),
    // Blocks.
    ("address", BLOCK),
    ("article", BLOCK),
    ("aside", BLOCK),
    ("blockquote", BLOCK_OUT),
    ("body", BLOCK_OUT),
    ("br", BLOCK_OUT),
    ("caption", BLOCK),
    ("center", BLOCK_OUT),
    ("dd", BLOCK_OUT),
    ("details", BLOCK),
    ("dialog", BLOCK),
    ("dir", BLOCK),
    ("div", BLOCK_OUT),
    ("dl", BLOCK_OUT),
    ("dt", BLOCK_OUT),
    ("fieldset", BLOCK),
    ("figcaption", BLOCK),
    ("figure", BLOCK),
    ("footer", BLOCK),
    ("form", BLOCK),
    ("frameset", BLOCK),
    ("h1", BLOCK_OUT),
    ("h2", BLOCK_OUT),
    ("h3", BLOCK_OUT),
    ("h4", BLOCK_OUT),
    ("h5", BLOCK_OUT),
    ("h6", BLOCK_OUT),
    ("head", BLOCK_OUT),
    ("header", BLOCK),
    ("hgroup", BLOCK),
    ("hr", BLOCK_OUT),
    ("html", BLOCK),
    ("legend", BLOCK),
    ("li", BLOCK_OUT),
    ("main", BLOCK),
    ("menu", BLOCK_OUT),
    ("nav", BLOCK),
    ("ol", BLOCK_OUT),
    ("optgroup", BLOCK),
    ("option", BLOCK),
    ("p", BLOCK_OUT),
    ("search", BLOCK),
    ("section", BLOCK),
    ("select", BLOCK),
    ("summary", BLOCK),
    ("table", BLOCK_OUT),
    ("tbody", BLOCK),
    ("tfoot", BLOCK),
    ("thead", BLOCK),
    ("tr", BLOCK),
    ("ul", BLOCK_OUT),
    // Inline elements that end foreign content.
    ("b", PHRASE),
    ("big", PHRASE),
    ("code", PHRASE),
    ("em", PHRASE),
    ("embed", PHRASE),
    ("i", PHRASE),
    ("nobr", PHRASE),
    ("ruby", PHRASE),
    ("s", PHRASE),
    ("small", PHRASE),
    ("span", PHRASE),
    ("strike", PHRASE),
    ("strong", PHRASE),
    ("sub", PHRASE),
    ("sup", PHRASE),
    ("tt", PHRASE),
    ("u", PHRASE),
    ("var", PHRASE),
];

const SLOTS: usize = 512;

const fn slot(key: u64) -> usize {
    // The top nine bits of a multiplicative hash.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize
}

const fn pack(name: &[u8]) -> u64 {
    let mut key = 0;
    let mut i = 0;
    while i < name.len() {
        key = key << 8 | name[i] as u64;
        i += 1;
    }
    key
}

const fn build() -> [(u64, Tag); SLOTS] {
    let mut table = [(0, INLINE); SLOTS];
    let mut i = 0;
    while i < NAMES.len() {
        let (name, tag) = NAMES[i];
        if name.len() <= 8 {
            let key = pack(name.as_bytes());
            let mut at = slot(key);
            while table[at].0 != 0 {
                at = (at + 1) % SLOTS;
            }
            table[at] = (key, tag);
        }
        i += 1;
    }
    table
}

static TABLE: [(u64, Tag); SLOTS] = build();

#[inline]
fn short(key: u64) -> Tag {
    let mut at = slot(key);
    loop {
        let (found, tag) = TABLE[at];
        if found == key {
            return tag;
        }
        if found == 0 {
            return INLINE;
        }
        at = (at + 1) % SLOTS;
    }
}

#[cold]
fn long(name: &[u8]) -> Tag {
    NAMES.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name)).map_or(INLINE, |(_, tag)| *tag)
}

/// Each byte in lower case; 0 for those that end a name. NUL becomes a byte that is in no name.
static LETTERS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0u8;
    loop {
        table[byte as usize] = match byte {
            b'>' | b'/' | b' ' | b'\n' | b'\t' | b'\r' | b'\x0C' => 0,
            0 => 0xFF,
            _ => byte.to_ascii_lowercase(),
        };
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

/// Reads the tag name that starts at `start` (an ASCII letter). Returns its tag and the position of the byte that
/// ended it, or `None` if the input ends first: an unfinished tag is no tag.
#[inline]
pub(super) fn name(bytes: &[u8], start: usize) -> Option<(Tag, usize)> {
    let mut key = 0u64;
    let mut at = start;
    loop {
        let letter = LETTERS[usize::from(*bytes.get(at)?)];
        if letter == 0 {
            break;
        }
        key = key << 8 | u64::from(letter);
        at += 1;
    }
    let tag = if at - start <= 8 { short(key) } else { long(&bytes[start..at]) };
    Some((tag, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_case_and_no_other() {
        for (known, tag) in NAMES {
            for spelled in [known.to_string(), known.to_uppercase()] {
                let source = format!("{spelled} x>");
                let (found, end) = name(source.as_bytes(), 0).unwrap();
                assert_eq!((found.act, found.gap, found.breakout), (tag.act, tag.gap, tag.breakout), "{spelled}");
                assert_eq!(end, known.len());
            }
            for other in [format!("{known}x>"), format!("x{known}>"), format!("{known}\0>")] {
                if !NAMES.iter().any(|(name, _)| other.strip_suffix('>') == Some(name)) {
                    assert_eq!(name(other.as_bytes(), 0).unwrap().0.act, Act::Nothing, "{other}");
                }
            }
        }
        // A control byte must not turn into the digit it resembles under a sloppy lower-casing.
        assert_eq!(name(b"h\x11>", 0).unwrap().0.gap, Gap::None);
        assert!(name(b"div", 0).is_none());
    }
}
