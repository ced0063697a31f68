//! Two lists of mentions of a page side by side: what two extractors find, or one of them asked twice, or what people say
//! is there.

use std::collections::BTreeMap;

use crate::extract::{Mention, Schema};

/// A mention as it is compared: its place, and the texts of its attributes by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) text: String,
    pub(crate) attributes: BTreeMap<String, Vec<String>>,
}

impl Placed {
    /// `page` is the text that the mention stands in.
    #[must_use]
    pub(crate) fn new(mention: &Mention, schema: &Schema, page: &str) -> Self {
        let mut attributes = BTreeMap::new();
        for (attribute, value) in schema.attributes().iter().zip(&mention.attributes) {
            let texts: Vec<String> =
                value.pieces().iter().map(|piece| mention.piece_text(piece, page).to_owned()).collect();
            attributes.insert(attribute.name.clone(), texts);
        }
        let text = page[mention.span().range()].to_owned();
        Self { start: mention.start, end: mention.end, text, attributes }
    }

    /// Whether the attributes that both have say the same.
    fn says_the_same(&self, other: &Self) -> bool {
        let differs = |(name, texts): (&String, &Vec<String>)| other.attributes.get(name).is_some_and(|o| o != texts);
        !self.attributes.iter().any(differs)
    }
}

/// How two lists of mentions compare, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The same place, and attributes that say the same.
    pub(crate) both: u64,
    /// The same place, but an attribute that both have says something else.
    pub(crate) altered: u64,
    pub(crate) only_here: u64,
    pub(crate) only_there: u64,
}

impl Tally {
    #[must_use]
    pub(crate) fn either(&self) -> u64 {
        self.both + self.altered + self.only_here + self.only_there
    }

    pub(crate) fn add(&mut self, more: Self) {
        let Self { both, altered, only_here, only_there } = more;
        self.both += both;
        self.altered += altered;
        self.only_here += only_here;
        self.only_there += only_there;
    }
}

/// In which list a mention is and the other has none like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Only {
    Here,
    There,
    /// In both, with other attributes; shown as it is there.
    Altered,
}

/// Compares two lists of mentions of a page as multisets. `tell` gets whatever is not in both.
pub(crate) fn compare<'m>(here: &'m [Placed], there: &'m [Placed], mut tell: impl FnMut(Only, &'m Placed)) -> Tally {
    let mut places: BTreeMap<(u32, u32), [Vec<&Placed>; 2]> = BTreeMap::new();
    for (side, list) in [here, there].into_iter().enumerate() {
        for mention in list {
            places.entry((mention.start, mention.end)).or_default()[side].push(mention);
        }
    }
    let mut tally = Tally::default();
    for [mut here, mut there] in places.into_values() {
        // Those that say the same find each other first.
        here.retain(|mention| match there.iter().position(|other| mention.says_the_same(other)) {
            Some(at) => {
                there.remove(at);
                tally.both += 1;
                false
            }
            None => true,
        });
        let altered = here.len().min(there.len());
        tally.altered += altered as u64;
        there.drain(..altered).for_each(|mention| tell(Only::Altered, mention));
        tally.only_here += (here.len() - altered) as u64;
        tally.only_there += there.len() as u64;
        here.drain(altered..).for_each(|mention| tell(Only::Here, mention));
        there.drain(..).for_each(|mention| tell(Only::There, mention));
    }
    tally
}

/// What people say a page has: a text, and where it stands if they say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gold {
    pub(crate) text: String,
    pub(crate) place: Option<(u32, u32)>,
}

/// How many of the mentions are right: each is the gold one at its place, else one with its text that nobody has taken.
/// White space is as good as any other.
#[must_use]
pub(crate) fn right(found: &[Placed], gold: &[Gold]) -> u64 {
    let folded = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut left: Vec<(Option<(u32, u32)>, String)> = gold.iter().map(|g| (g.place, folded(&g.text))).collect();
    let mut right = 0;
    for mention in found {
        let text = folded(&mention.text);
        let is = |(place, wanted): &(Option<(u32, u32)>, String)| match place {
            Some(place) => *place == (mention.start, mention.end),
            None => *wanted == text,
        };
        if let Some(at) = left.iter().position(is) {
            left.swap_remove(at);
            right += 1;
        }
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(start: u32, text: &str, who: Option<&str>) -> Placed {
        let attributes = who.map(|who| ("who".to_owned(), vec![who.to_owned()])).into_iter().collect();
        Placed { start, end: start + u32::try_from(text.len()).unwrap(), text: text.into(), attributes }
    }

    #[test]
    fn places_and_shared_attributes_decide() {
        let here = [placed(0, "ab", Some("x")), placed(0, "ab", Some("y")), placed(5, "c", None), placed(9, "d", None)];
        let there =
            [placed(0, "ab", Some("y")), placed(0, "ab", Some("z")), placed(5, "c", Some("q")), placed(7, "e", None)];
        let mut told = Vec::new();
        let tally = compare(&here, &there, |only, mention| told.push((only, mention.text.clone())));
        assert_eq!(tally, Tally { both: 2, altered: 1, only_here: 1, only_there: 1 });
        assert_eq!(tally.either(), 5);
        assert_eq!(told, [(Only::Altered, "ab".into()), (Only::There, "e".into()), (Only::Here, "d".into())]);
        let mut sum = tally;
        sum.add(compare(&here, &here, |_, _| panic!("nothing differs")));
        assert_eq!(sum.both, 6);
    }

    #[test]
    fn gold_is_taken_once_by_place_or_by_text() {
        let gold = |text: &str, place| Gold { text: text.into(), place };
        let found = [placed(0, "Ada  Lane", None), placed(20, "Bob", None), placed(30, "Bob", None)];
        assert_eq!(right(&found, &[gold("Ada Lane", None), gold("Bob", None)]), 2);
        assert_eq!(right(&found, &[gold("", Some((30, 33))), gold("Bob", Some((21, 24)))]), 1);
        assert_eq!(right(&found, &[]), 0);
    }
}
