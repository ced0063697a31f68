//! What a synthetic site is to be like.

use crate::lab::synth::draws::MILLION;
use crate::model::closed_set::closed_set;

closed_set! {
    /// Which pages there are.
    pub enum Part: "part" {
        /// People, departments, talks, papers, news: little change.
        Campus = "campus",
        /// Actors, films and plays, awards, news: substantial change.
        Entertainment = "entertainment",
        /// Half of the pages each.
        Both = "both",
        /// The fixed two-night site of the WHOWEDA paper's running example; sizes, rates and seed do not matter.
        Drugs = "drugs",
    }
}

closed_set! {
    /// How snapshots lie on disk.
    pub enum Layout: "layout" {
        /// One or more `crawl-NNNNN.warc.gz` per snapshot, a gzip member per record.
        Warc = "warc",
        /// The same without compression (`.warc`).
        WarcPlain = "warc-plain",
        /// `manifest.jsonl` and one file per capture.
        Manifest = "manifest",
        /// A tree `host[:port]/path` of the good captures.
        Mirror = "mirror",
    }
}

/// Parameters of a site. Shares are parts of a million, see [`share`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Pages on the first night.
    pub pages: u32,
    pub snapshots: u32,
    pub seed: u64,
    pub part: Part,
    pub layout: Layout,
    /// Share of pages whose own text changes from one night to the next; `None`: 5 % on the campus, 40 % in
    /// entertainment. Pages added, removed and moved follow from it. Boilerplate comes on top.
    pub change: Option<u32>,
    /// Mean bytes of visible text per page.
    pub page_bytes: u32,
    /// Chance per night that navigation and footer change on every page of a part.
    pub boilerplate: u32,
    /// Share of pages that show a visitor counter and the time of serving, new on every fetch.
    pub counters: u32,
    /// Days since 1970 of the first snapshot.
    pub first_day: i64,
    /// Every second night from the third on has a fault.
    pub faults: bool,
    /// Write `mentions.jsonl`: it is about a fifth of the text in every snapshot.
    pub mention_truth: bool,
}

/// Parameters that contradict each other.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadParams {
    #[error("a site needs at least {least} pages, {given} were asked for: raise --pages")]
    TooFewPages { least: u32, given: u32 },
    #[error("a site needs at least one snapshot: raise --snapshots")]
    NoSnapshots,
    #[error("{given} snapshots were asked for, {most} are possible: lower --snapshots")]
    TooManySnapshots { most: u32, given: u32 },
    #[error("{0} of a million is not a share: give a number between 0 and 1")]
    NotAShare(u32),
    #[error("pages of {given} bytes were asked for, between {least} and {most} are possible: change --page-bytes")]
    PageBytes { least: u32, most: u32, given: u32 },
}

impl Default for Params {
    fn default() -> Self {
        Self {
            pages: 200,
            snapshots: 7,
            seed: 1,
            part: Part::Both,
            layout: Layout::Warc,
            change: None,
            page_bytes: 4_000,
            boilerplate: 150_000,
            counters: 150_000,
            // 1 March 2024
            first_day: 19_783,
            faults: false,
            mention_truth: true,
        }
    }
}

impl Params {
    pub(crate) const LEAST_PAGES: u32 = 20;
    const MOST_SNAPSHOTS: u32 = 3_650;

    pub(crate) fn check(&self) -> Result<(), BadParams> {
        if self.snapshots == 0 {
            return Err(BadParams::NoSnapshots);
        }
        if self.snapshots > Self::MOST_SNAPSHOTS {
            return Err(BadParams::TooManySnapshots { most: Self::MOST_SNAPSHOTS, given: self.snapshots });
        }
        let least = if self.part == Part::Both { 2 * Self::LEAST_PAGES } else { Self::LEAST_PAGES };
        if self.pages < least {
            return Err(BadParams::TooFewPages { least, given: self.pages });
        }
        if !(300..=10_000_000).contains(&self.page_bytes) {
            return Err(BadParams::PageBytes { least: 300, most: 10_000_000, given: self.page_bytes });
        }
        for parts in [self.change.unwrap_or(0), self.boilerplate, self.counters] {
            if parts > MILLION {
                return Err(BadParams::NotAShare(parts));
            }
        }
        Ok(())
    }
}

/// Reads a share such as `0.05` or `5%` into parts of a million, exactly.
#[must_use]
pub(crate) fn share(text: &str) -> Option<u32> {
    let text = text.trim();
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), MILLION / 100),
        None => (text, MILLION),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() > 3 {
        return None;
    }
    let mut parts = if whole.is_empty() { 0 } else { whole.parse::<u32>().ok()?.checked_mul(scale)? };
    let mut unit = scale / 10;
    for digit in fraction.bytes() {
        parts += u32::from(digit - b'0') * unit;
        unit /= 10;
    }
    (parts <= MILLION).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_exactly() {
        for (text, parts) in [
            ("0", Some(0)),
            ("1", Some(MILLION)),
            ("0.05", Some(50_000)),
            (".4", Some(400_000)),
            ("5%", Some(50_000)),
            ("2.5 %", Some(25_000)),
            ("100%", Some(MILLION)),
            ("0.123456789", Some(123_456)),
            ("1.1", None),
            ("-0.1", None),
            ("", None),
            (".", None),
            ("x", None),
        ] {
            assert_eq!(share(text), parts, "{text}");
        }
    }

    #[test]
    fn contradictions_are_named() {
        let good = Params::default();
        assert_eq!(good.check(), Ok(()));
        assert_eq!(Params { snapshots: 0, ..good.clone() }.check(), Err(BadParams::NoSnapshots));
        assert!(Params { pages: 30, ..good.clone() }.check().is_err());
        assert!(Params { page_bytes: 10, ..good.clone() }.check().is_err());
        assert_eq!(Params { counters: 2_000_000, ..good }.check(), Err(BadParams::NotAShare(2_000_000)));
    }
}
