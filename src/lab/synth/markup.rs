//! A whole page: head, navigation, blocks, footer, and what a server says about it.

use crate::lab::synth::charset::Charset;
use crate::lab::synth::clock::spoken;
use crate::lab::synth::out::{Format, Out};
use crate::lab::synth::prose::Pen;
use crate::lab::synth::section::{GROUP, Night, PageKind, PageNo, Section};
use crate::lab::synth::state::{Block, BlockKind, State};
use crate::lab::synth::words::{self, Voice};
use crate::model::Rng;
use crate::model::Timestamp;

const TRAITS: u64 = 21;
const COUNTER: u64 = 22;

/// How many hubs the home page lists. Each hub leads on to the one so many places later.
const HOME_LISTS: u32 = 60;

/// What a server tells about the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dates {
    ModifiedAndTag,
    Modified,
    Tag,
    Nothing,
    /// A Last-Modified that is always the moment of fetching.
    Lying,
}

/// What stays the same about a page all its life.
#[derive(Clone, Debug)]
pub(crate) struct Traits {
    pub(crate) format: Format,
    pub(crate) charset: Charset,
    /// The HTTP header names the charset.
    pub(crate) header_charset: bool,
    meta_charset: bool,
    /// Visitor counter and time of serving.
    pub(crate) counter: bool,
    pub(crate) dates: Dates,
    quote_references: bool,
    line_breaks: bool,
    script: bool,
}

impl Section {
    /// `headers` says whether the archive keeps HTTP headers; without them the document itself must name its charset.
    pub(crate) fn traits(&self, page: PageNo, headers: bool) -> Traits {
        let mut rng = Rng::keyed(&[self.seed, u64::from(page), TRAITS]);
        let format = match Self::kind(page) {
            PageKind::Plain => Format::Plain,
            PageKind::Json => Format::Json,
            _ => Format::Html,
        };
        let draw = rng.below(100);
        let charset = match draw {
            _ if format != Format::Html => Charset::Utf8,
            0..76 => Charset::Utf8,
            76..79 => Charset::Utf8Bom,
            79..91 => Charset::Latin1,
            _ => Charset::Windows1252,
        };
        let (header_charset, meta_charset) = match rng.below(3) {
            0 if headers => (true, false),
            1 if headers => (false, true),
            _ => (true, true),
        };
        let counter = self.shows_counter(page);
        let dates = match rng.below(100) {
            0..20 if counter => Dates::Lying,
            _ if counter => Dates::Nothing,
            0..45 => Dates::ModifiedAndTag,
            45..60 => Dates::Modified,
            60..70 => Dates::Tag,
            70..96 => Dates::Nothing,
            _ => Dates::Lying,
        };
        Traits {
            format,
            charset,
            header_charset,
            meta_charset,
            counter,
            dates,
            quote_references: rng.percent(30),
            line_breaks: rng.percent(30),
            script: rng.percent(25),
        }
    }

    /// Writes the page as a reader gets it at `now`.
    pub(crate) fn render(
        &self,
        page: PageNo,
        state: &State,
        traits: &Traits,
        now: Timestamp,
        night: Night,
        out: &mut Out,
    ) {
        out.restart(traits.format);
        out.quote_references = traits.quote_references;
        out.line_breaks = traits.line_breaks;
        let url = self.url(page, 0);
        let host = url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let pen = Pen { section: self, host };
        match traits.format {
            Format::Html => {
                self.head(page, traits, night, &pen, out);
                for block in &state.blocks {
                    self.block(page, block, &pen, out);
                }
                self.foot(page, traits, now, night, out);
            }
            Format::Plain => {
                out.text(&self.label(page));
                out.close("h1");
                for block in &state.blocks {
                    self.block(page, block, &pen, out);
                }
            }
            Format::Json => {
                out.markup.push_str("{\n  \"items\": [");
                for block in &state.blocks {
                    self.block(page, block, &pen, out);
                }
                out.markup.push_str("\n  ]\n}\n");
            }
        }
    }

    fn head(&self, page: PageNo, traits: &Traits, night: Night, pen: &Pen<'_>, out: &mut Out) {
        out.tag("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n");
        if let Some(label) = traits.charset.label().filter(|_| traits.meta_charset) {
            out.tag("<meta charset=\"");
            out.tag(label);
            out.tag("\">\n");
        }
        out.tag("<title>");
        out.tag(&self.label(page).replace('&', "&amp;"));
        out.tag(match self.voice {
            Voice::Campus => " | Fernhill University</title>\n",
            Voice::Stage => " | Limelight Review</title>\n",
        });
        if traits.script {
            out.tag("<script>var ready = 1 < 2 && true; /* not text */</script>\n<style>p { margin: 1em }</style>\n");
        }
        out.tag("</head>\n<body>\n<nav><ul>\n");
        let entries: [&str; 5] = match self.voice {
            Voice::Campus => ["Home", "Departments", "Research", "News & Events", "Library"],
            Voice::Stage => ["Front page", "Films", "Theatre", "Gossip & Gala", "Archive"],
        };
        for (number, entry) in (0..).zip(entries) {
            self.nav_entry(number, entry, pen, out);
        }
        // A new version of the boilerplate brings, swaps or drops an entry.
        let extra = match self.voice {
            Voice::Campus => ["", "Open Day", "Summer School", "Vacancies"],
            Voice::Stage => ["", "Podcast", "Quiz", "Subscribe"],
        };
        let (version, _) = self.boilerplate(night);
        let entry = extra[(version % 4) as usize];
        if !entry.is_empty() {
            self.nav_entry(5, entry, pen, out);
        }
        out.tag("</ul></nav>\n<main>\n");
        out.open("h1");
        let campus_person = self.voice == Voice::Campus && Self::kind(page) == PageKind::Person;
        let mut rng = Rng::keyed(&[self.seed, u64::from(page), TRAITS, 1]);
        if campus_person && rng.percent(50) {
            pen.titled(out, &mut rng, page, self.birth(page));
        } else {
            out.text(&self.label(page));
        }
        out.close("h1");
    }

    fn nav_entry(&self, number: u32, label: &str, pen: &Pen<'_>, out: &mut Out) {
        // Pages of the first night only: navigation must not change because a page was added.
        let hub = if number * GROUP < self.born_by(0) { number * GROUP } else { 0 };
        out.tag("<li>");
        out.link(&pen.short(&self.url(hub, 0)), label);
        out.close("li");
    }

    fn foot(&self, page: PageNo, traits: &Traits, now: Timestamp, night: Night, out: &mut Out) {
        let (version, _) = self.boilerplate(night);
        out.tag("</main>\n<footer>\n");
        out.open("p");
        out.text(match self.voice {
            Voice::Campus => "© Fernhill University – Site version 1.",
            Voice::Stage => "© Limelight Review – Site version 4.",
        });
        out.number(version);
        out.close("p");
        if traits.counter {
            let mut rng = Rng::keyed(&[self.seed, u64::from(page), COUNTER]);
            // Grows with time: a start, a daily rate and the second of the day.
            let seconds = now.micros() / Timestamp::SECOND - self.first_day * 86_400;
            let seconds = u32::try_from(seconds).unwrap_or(0);
            let count = rng.between(1_000, 60_000) + seconds / rng.between(60, 900);
            out.open("p");
            out.text(&format!("Visitors: {},{:03}. Page served on {}.", count / 1000, count % 1000, spoken(now)));
            out.close("p");
        }
        out.tag("</footer>\n</body>\n</html>\n");
    }

    fn block(&self, page: PageNo, block: &Block, pen: &Pen<'_>, out: &mut Out) {
        match block.kind {
            BlockKind::Members => self.members(page, block.night, pen, out),
            BlockKind::Prose => paragraph(block, pen, out),
            BlockKind::Items => {
                out.tag("<ul>\n");
                for number in 0..block.lines() {
                    out.open("li");
                    pen.item(out, &mut Rng::new(block.line_seed(number)), block.night, page);
                    out.close("li");
                }
                out.tag("</ul>\n");
            }
            BlockKind::Links => self.links(block, pen, out),
            BlockKind::Table => table(block, out),
        }
    }

    /// A list of links to pages of any kind.
    fn links(&self, block: &Block, pen: &Pen<'_>, out: &mut Out) {
        out.open("h3");
        let headings = ["Related", "See also", "Further reading", "Elsewhere on this site"];
        out.text(Rng::new(block.seed).pick(&headings));
        out.close("h3");
        out.tag("<ul>\n");
        for number in 0..block.lines() {
            let mut rng = Rng::new(block.line_seed(number));
            let kinds = [
                PageKind::Person,
                PageKind::Person,
                PageKind::Work,
                PageKind::Event,
                PageKind::News,
                PageKind::Hub,
                PageKind::Plain,
            ];
            let kind = kinds[rng.below(7) as usize];
            let target = self.some(kind, block.night, &mut rng);
            out.open("li");
            out.link(&pen.short(&self.url_on(target, block.night)), &self.label(target));
            out.close("li");
        }
        out.tag("</ul>\n");
    }

    /// The list that makes every page reachable: home leads to hubs, a hub to its group and to a later hub.
    fn members(&self, page: PageNo, night: Night, pen: &Pen<'_>, out: &mut Out) {
        out.tag("<ul>\n");
        let born = self.born_by(night);
        let group = page + 1..(page + GROUP).min(born);
        // Each hub that home lists starts a chain of its own, or there would be one chain of thousands.
        let hubs = if page == 0 { 1..=HOME_LISTS } else { page / GROUP + HOME_LISTS..=page / GROUP + HOME_LISTS };
        for member in group.chain(hubs.map(|number| number * GROUP)) {
            if member < born && self.life(member, night).died.is_none() {
                out.open("li");
                out.link(&pen.short(&self.url_on(member, night)), &self.label(member));
                out.close("li");
            }
        }
        out.tag("</ul>\n");
    }
}

/// Sentences, sometimes under a heading.
fn paragraph(block: &Block, pen: &Pen<'_>, out: &mut Out) {
    let mut rng = Rng::new(block.seed);
    if rng.percent(40) {
        out.open("h2");
        let heading = rng.pick(words::list(b'a').expect("a list"));
        let mut letters = heading.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase()).unwrap_or_default();
        out.text(&format!("{first}{} {}", letters.as_str(), rng.pick(words::list(b'p').expect("a list"))));
        out.close("h2");
    }
    out.open("p");
    for number in 0..block.lines() {
        if number > 0 {
            out.between_sentences();
        }
        pen.sentence(out, &mut Rng::new(block.line_seed(number)), block.night);
    }
    out.close("p");
}

/// Rows of a word, a number and another word.
fn table(block: &Block, out: &mut Out) {
    out.tag("<table>\n");
    for number in 0..block.lines() {
        let mut rng = Rng::new(block.line_seed(number));
        out.open("tr");
        out.tag("<td>");
        out.text(rng.pick(words::list(b'n').expect("a list")));
        out.tag("</td><td>");
        out.text(" ");
        out.number(rng.between(100, 99_999));
        out.tag("</td><td>");
        out.text(" ");
        out.text(rng.pick(words::list(b't').expect("a list")));
        out.tag("</td>");
        out.close("tr");
    }
    out.tag("</table>\n");
}
