//! The site as a crawler finds it: the captures of a night, one after the other.

use crate::lab::synth::clock::{self, iso_date};
use crate::lab::synth::drugs;
use crate::lab::synth::markup::Dates;
use crate::lab::synth::out::{Format, Marked, Out};
use crate::lab::synth::params::{BadParams, Layout, Params, Part};
use crate::lab::synth::rhythm::Rhythm;
use crate::lab::synth::section::{GROUP, Life, Night, PageNo, Section};
use crate::lab::synth::words::Voice;
use crate::model::rng::{Rng, key};
use crate::model::{Span, Timestamp};

const FATE: u64 = 31;
const LEFT: u64 = 32;
const TAG: u64 = 33;

/// Nights for which a moved page's old URL redirects.
const REDIRECT_NIGHTS: u32 = 4;
/// A second capture of a night comes this much later, in microseconds.
const LATER: i64 = 8 * 3600 * Timestamp::SECOND;

/// An evolving site; all of it is a function of the parameters.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    params: Params,
    sections: Vec<Section>,
}

/// One capture: what a crawler got for a URL.
#[derive(Clone, Debug)]
pub(crate) struct SynthPage {
    pub url: String,
    pub status: u16,
    /// The bytes in the page's charset, without content or transfer encoding.
    pub body: Vec<u8>,
    pub content_type: String,
    /// Where a redirect leads.
    pub location: Option<String>,
    pub fetched_at: Timestamp,
    pub last_modified: Option<Timestamp>,
    pub etag: Option<String>,
    /// A later good capture of the same URL follows in this snapshot.
    pub superseded: bool,
    /// If the page has moved here since last night: the URL where the same text was then.
    pub moved_from: Option<String>,
    /// Stays the same for a page all its life, wherever it moves; writers draw from it.
    pub(crate) identity: u64,
    seen: String,
    mentions: Vec<Marked>,
}

/// A mention that a perfect extractor finds in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrueMention<'a> {
    pub extractor: &'static str,
    pub text: &'a str,
    /// In reading order; a name may repeat.
    pub attributes: Vec<(&'static str, &'a str)>,
}

/// Something that happened to a page between two nights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Added,
    Removed,
    /// Same text, new URL.
    Moved,
    /// Not captured this night, back later.
    Missed,
    /// Answered with an error this night, back later.
    Failed,
    /// Navigation and footer changed on every page of the part whose home this is.
    Boilerplate,
}

impl Event {
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Moved => "moved",
            Self::Missed => "missed",
            Self::Failed => "failed",
            Self::Boilerplate => "boilerplate",
        }
    }
}

/// What of a page changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditKind {
    /// What the page itself says; also that it came, went or moved.
    Content,
    /// Navigation and footer.
    Template,
}

impl EditKind {
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Template => "template",
        }
    }
}

/// How a night goes for a living page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Captured,
    Twice,
    Missed,
    Failed,
}

impl SynthPage {
    fn blank() -> Self {
        Self {
            url: String::new(),
            status: 200,
            body: Vec::new(),
            content_type: String::new(),
            location: None,
            fetched_at: Timestamp(0),
            last_modified: None,
            etag: None,
            superseded: false,
            moved_from: None,
            identity: 0,
            seen: String::new(),
            mentions: Vec::new(),
        }
    }

    /// The answer is something else than the page.
    pub(crate) fn say_instead(&mut self, body: Vec<u8>) {
        self.body = body;
        "text/html; charset=utf-8".clone_into(&mut self.content_type);
        (self.last_modified, self.etag, self.moved_from) = (None, None, None);
        self.seen.clear();
        self.mentions.clear();
    }

    /// A page of the fixed site.
    pub(crate) fn fixed(url: &str, html: &str, fetched_at: Timestamp, last_modified: Timestamp) -> Self {
        Self {
            url: url.to_owned(),
            body: html.as_bytes().to_vec(),
            content_type: "text/html; charset=utf-8".to_owned(),
            fetched_at,
            last_modified: Some(last_modified),
            identity: url.bytes().fold(0, |acc, byte| key(&[acc, u64::from(byte)])),
            ..Self::blank()
        }
    }

    pub(crate) fn mentions(&self) -> impl Iterator<Item = TrueMention<'_>> {
        let text = |span: Span| &self.seen[span.range()];
        self.mentions.iter().map(move |marked| TrueMention {
            extractor: marked.extractor,
            text: text(marked.span),
            attributes: marked.attributes.iter().map(|&(name, span)| (name, text(span))).collect(),
        })
    }
}

impl Site {
    pub(crate) fn new(params: Params) -> Result<Self, BadParams> {
        params.check()?;
        let section = |voice, pages| Section::new(&params, voice, pages);
        let sections = match params.part {
            Part::Campus => vec![section(Voice::Campus, params.pages)],
            Part::Entertainment => vec![section(Voice::Stage, params.pages)],
            Part::Both => {
                let half = params.pages / 2;
                vec![section(Voice::Campus, params.pages - half), section(Voice::Stage, half)]
            }
            Part::Drugs => Vec::new(),
        };
        Ok(Self { params, sections })
    }

    #[must_use]
    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    #[must_use]
    pub(crate) fn snapshots(&self) -> u32 {
        if self.params.part == Part::Drugs { drugs::DAYS.len().try_into().expect("two") } else { self.params.snapshots }
    }

    /// Name of a snapshot's folder: its date.
    #[must_use]
    pub(crate) fn snapshot_id(&self, snapshot: u32) -> String {
        match self.params.part {
            Part::Drugs => iso_date(drugs::DAYS[snapshot as usize]),
            _ => iso_date(self.params.first_day + i64::from(snapshot)),
        }
    }

    /// All captures of a snapshot at once: for small sites.
    #[cfg(test)]
    pub(crate) fn snapshot(&self, snapshot: u32) -> Vec<SynthPage> {
        let mut pages = Vec::new();
        let all: Result<(), std::convert::Infallible> = self.visit(snapshot, |page| {
            pages.push(page.clone());
            Ok(())
        });
        match all {
            Ok(()) => pages,
        }
    }

    /// Hands each capture of a snapshot to `each`, in a fixed order, one at a time; its memory is reused.
    pub(crate) fn visit<E>(&self, snapshot: u32, mut each: impl FnMut(&SynthPage) -> Result<(), E>) -> Result<(), E> {
        if self.params.part == Part::Drugs {
            return drugs::pages(snapshot).iter().try_for_each(each);
        }
        let mut out = Out::new(Format::Html);
        let mut page = SynthPage::blank();
        for section in &self.sections {
            for number in 0..section.born_by(snapshot) {
                self.visit_page(section, number, snapshot, &mut out, &mut page, &mut each)?;
            }
        }
        Ok(())
    }

    fn visit_page<E>(
        &self,
        section: &Section,
        number: PageNo,
        night: Night,
        out: &mut Out,
        page: &mut SynthPage,
        each: &mut impl FnMut(&SynthPage) -> Result<(), E>,
    ) -> Result<(), E> {
        let life = section.life(number, night);
        page.identity = key(&[section.seed, u64::from(number)]);
        page.fetched_at = section.fetched_at(number, night);
        if let Some(died) = life.died {
            let mut rng = Rng::keyed(&[section.seed, u64::from(number), LEFT, u64::from(died)]);
            if night - died < 2 && rng.percent(60) {
                let status = if rng.percent(70) { 404 } else { 410 };
                notice(page, section.url(number, life.moves), status, None);
                each(page)?;
            }
            return Ok(());
        }
        if let Some(moved) = life.last_move {
            let mut rng = Rng::keyed(&[section.seed, u64::from(number), LEFT, u64::from(moved)]);
            let old = section.url(number, life.moves - 1);
            if rng.percent(65) {
                if night - moved < REDIRECT_NIGHTS {
                    notice(page, old, 301, Some(section.url(number, life.moves)));
                    each(page)?;
                }
            } else if night == moved {
                notice(page, old, 404, None);
                each(page)?;
            }
        }
        match fate(section, number, &life, night) {
            Fate::Missed => {}
            Fate::Failed => {
                notice(page, section.url(number, life.moves), 503, None);
                each(page)?;
            }
            Fate::Captured => {
                self.capture(section, number, &life, night, out, page);
                page.superseded = false;
                each(page)?;
            }
            Fate::Twice => {
                self.capture(section, number, &life, night, out, page);
                page.superseded = true;
                each(page)?;
                page.fetched_at.0 += LATER;
                self.capture(section, number, &life, night, out, page);
                page.superseded = false;
                each(page)?;
            }
        }
        Ok(())
    }

    /// Fills in a good capture at `page.fetched_at`.
    fn capture(
        &self,
        section: &Section,
        number: PageNo,
        life: &Life,
        night: Night,
        out: &mut Out,
        page: &mut SynthPage,
    ) {
        let now = page.fetched_at;
        let state = section.state(number, now, night);
        let traits = section.traits(number, self.params.layout != Layout::Mirror);
        section.render(number, &state, &traits, now, night, out);
        let (version, deployed) = section.boilerplate(night);
        let modified = deployed.map_or(state.changed_at, |time| time.max(state.changed_at));
        let tag = key(&[section.seed, u64::from(number), TAG, u64::from(state.updates), u64::from(version)]);

        page.url = section.url(number, life.moves);
        page.status = 200;
        page.location = None;
        page.body.clear();
        traits.charset.encode(&out.markup, &mut page.body);
        page.content_type.clear();
        page.content_type.push_str(match traits.format {
            Format::Html => "text/html",
            Format::Plain => "text/plain",
            Format::Json => "application/json",
        });
        if let Some(label) = traits.charset.label().filter(|_| traits.header_charset || traits.format == Format::Plain)
        {
            page.content_type.push_str("; charset=");
            page.content_type.push_str(label);
        }
        page.last_modified = match traits.dates {
            Dates::ModifiedAndTag | Dates::Modified => Some(modified),
            Dates::Lying => Some(now),
            Dates::Tag | Dates::Nothing => None,
        };
        page.etag = matches!(traits.dates, Dates::ModifiedAndTag | Dates::Tag).then(|| format!("\"{tag:x}\""));
        page.moved_from = (life.last_move == Some(night)).then(|| section.url(number, life.moves - 1));
        std::mem::swap(&mut page.seen, &mut out.seen);
        std::mem::swap(&mut page.mentions, &mut out.mentions);
    }

    /// True times of the updates between the first and the last crawl: (URL at that time, time), page by page.
    pub(crate) fn updates<E>(&self, mut each: impl FnMut(&str, Timestamp) -> Result<(), E>) -> Result<(), E> {
        let last = self.params.snapshots - 1;
        let mut seconds = Vec::new();
        for section in &self.sections {
            let (start, end) = (section.fetched_at(0, 0), clock::moment(section.day(last), 4 * 3600));
            for number in 0..section.born_by(last) {
                let pulse = section.pulse(number);
                if pulse.rhythm == Rhythm::Quiet {
                    continue;
                }
                for night in section.birth(number)..=last {
                    if section.life(number, night).died.is_some() {
                        break;
                    }
                    section.update_seconds(number, &pulse, night, &mut seconds);
                    let times = seconds.iter().map(|second| clock::moment(section.day(night), *second));
                    for time in times.filter(|time| (start..=end).contains(time)) {
                        each(&section.url_on(number, night), time)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The rhythm of every page that has one, under its first URL.
    pub(crate) fn rhythms<E>(&self, mut each: impl FnMut(&str, &'static str) -> Result<(), E>) -> Result<(), E> {
        for section in &self.sections {
            for number in 0..section.born_by(self.params.snapshots - 1) {
                let name = match section.pulse(number).rhythm {
                    Rhythm::Quiet => "quiet",
                    Rhythm::HourOfDay => "hour-of-day",
                    Rhythm::DayOfWeek => "day-of-week",
                    Rhythm::Poisson => "poisson",
                    Rhythm::Bursts => "bursts",
                };
                each(&section.url(number, 0), name)?;
            }
        }
        Ok(())
    }

    /// What happened between the last night and this one: (event, URL, URL before it moved).
    pub(crate) fn events<E>(
        &self,
        snapshot: u32,
        mut each: impl FnMut(Event, &str, Option<&str>) -> Result<(), E>,
    ) -> Result<(), E> {
        for section in &self.sections {
            if snapshot > 0 && section.boilerplate(snapshot).0 != section.boilerplate(snapshot - 1).0 {
                each(Event::Boilerplate, &section.url(0, 0), None)?;
            }
            for number in 0..section.born_by(snapshot) {
                let life = section.life(number, snapshot);
                let url = section.url(number, life.moves);
                if let Some(died) = life.died {
                    if died == snapshot {
                        each(Event::Removed, &url, None)?;
                    }
                    continue;
                }
                if life.born == snapshot && snapshot > 0 {
                    each(Event::Added, &url, None)?;
                }
                if life.last_move == Some(snapshot) {
                    each(Event::Moved, &url, Some(&section.url(number, life.moves - 1)))?;
                }
                match fate(section, number, &life, snapshot) {
                    Fate::Missed => each(Event::Missed, &url, None)?,
                    Fate::Failed => each(Event::Failed, &url, None)?,
                    Fate::Captured | Fate::Twice => {}
                }
            }
        }
        Ok(())
    }
}

impl Site {
    /// What changed on each page since it was last captured: its own content, or the template around it, or both.
    pub(crate) fn edits<E>(
        &self,
        snapshot: u32,
        mut each: impl FnMut(EditKind, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        for section in &self.sections {
            for number in 0..if snapshot > 0 { section.born_by(snapshot) } else { 0 } {
                let life = section.life(number, snapshot);
                let url = section.url(number, life.moves);
                let gone = life.died == Some(snapshot);
                let came = life.born == snapshot || life.last_move == Some(snapshot);
                if gone || (came && life.died.is_none()) {
                    each(EditKind::Content, &url)?;
                }
                if life.died.is_some() || came {
                    continue;
                }
                let Some(now) = last_capture(section, number, &life, snapshot) else { continue };
                let before = (life.born..snapshot)
                    .rev()
                    .find_map(|night| last_capture(section, number, &life, night).map(|at| (night, at)));
                let Some((night, before)) = before else { continue };
                if section.state(number, now, snapshot).updates != section.state(number, before, night).updates {
                    each(EditKind::Content, &url)?;
                }
                let is_html = section.traits(number, true).format == Format::Html;
                if is_html && section.boilerplate(snapshot).0 != section.boilerplate(night).0 {
                    each(EditKind::Template, &url)?;
                }
            }
        }
        Ok(())
    }
}

/// When a page that lives was last captured in a night; `None` if it was not.
fn last_capture(section: &Section, number: PageNo, life: &Life, night: Night) -> Option<Timestamp> {
    let at = section.fetched_at(number, night);
    match fate(section, number, life, night) {
        Fate::Captured => Some(at),
        Fate::Twice => Some(Timestamp(at.0 + LATER)),
        Fate::Missed | Fate::Failed => None,
    }
}

fn fate(section: &Section, number: PageNo, life: &Life, night: Night) -> Fate {
    let steady = number.is_multiple_of(GROUP) || life.born == night || life.last_move == Some(night);
    let mut rng = Rng::keyed(&[section.seed, u64::from(number), FATE, u64::from(night)]);
    match rng.below(1000) {
        0..8 if !steady => Fate::Missed,
        8..16 if !steady => Fate::Failed,
        16..36 => Fate::Twice,
        _ => Fate::Captured,
    }
}

/// An answer that is no page.
fn notice(page: &mut SynthPage, url: String, status: u16, location: Option<String>) {
    let reason = reason(status);
    page.url = url;
    page.status = status;
    page.body.clear();
    page.body.extend_from_slice(
        format!("<html><head><title>{status} {reason}</title></head><body><h1>{reason}</h1></body></html>\n")
            .as_bytes(),
    );
    "text/html".clone_into(&mut page.content_type);
    page.location = location;
    page.last_modified = None;
    page.etag = None;
    page.superseded = false;
    page.moved_from = None;
    page.seen.clear();
    page.mentions.clear();
}

pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        304 => "Not Modified",
        404 => "Not Found",
        410 => "Gone",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}
