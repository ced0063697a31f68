//! Sentences: filler from templates, and sentences that hold mentions.
//!
//! | extractor | where | form |
//! |---|---|---|
//! | researcher (first, mid, last) | campus | `Dr. Anna M. Keller`, `Prof. …` |
//! | affiliation (researcher, organization) | campus | researcher, then ` of the `, ` joined the ` or ` (`, then `Department of Physics` |
//! | talk (speaker, time, place, topics) | campus | `Talk: researcher, 3:30pm, Room B12. Topics: …` or `researcher will speak at … in … on …` |
//! | actor (first, mid, last) | entertainment | `actor`/`actress` and a name |
//! | play (actor, movie) | entertainment | name, `starred in`/`appeared in`/`had the lead in`, title in quotes |
//! | award (actor, award, role, movie) | entertainment | name, `won the`/`received the`, award, `for the role of`, role, `in`, quoted title |
//!
//! The attributes are those of the six extractors of the Cyclex paper (its Figure 6). Reference patterns for the tests
//! stand in `tests`.

use crate::lab::synth::out::{Format, Out};
use crate::lab::synth::section::{Night, PageKind, PageNo, Section};
use crate::lab::synth::words::{self, Voice};
use crate::model::Rng;
use crate::model::Span;

/// Writes sentences of one page.
pub(crate) struct Pen<'a> {
    pub(crate) section: &'a Section,
    pub(crate) host: &'a str,
}

impl Pen<'_> {
    /// A sentence of prose: filler, or one in nine times something to be extracted.
    pub(crate) fn sentence(&self, out: &mut Out, rng: &mut Rng, night: Night) {
        if rng.below(9) == 0 {
            self.telling(out, rng, night);
        } else {
            self.filler(out, rng);
        }
    }

    pub(crate) fn filler(&self, out: &mut Out, rng: &mut Rng) {
        let voice = self.section.voice;
        let mut rest = voice.template(rng.below(voice.templates()));
        while let Some(place) = rest.bytes().position(|b| b == b'%') {
            let before = &rest[..place];
            let letter = rest.as_bytes()[place + 1];
            match letter {
                b'#' => {
                    out.text(before);
                    out.number(rng.between(3, 90));
                }
                b'y' => {
                    out.text(before);
                    out.number(rng.between(1950, 2023));
                }
                _ => {
                    let word = rng.pick(words::list(letter).expect("templates are tested"));
                    let article = before.ends_with(" a ") || before == "A ";
                    if article && word.starts_with(['a', 'e', 'i', 'o', 'u']) {
                        out.text(before.trim_end());
                        out.text("n ");
                    } else {
                        out.text(before);
                    }
                    out.text(word);
                }
            }
            rest = &rest[place + 2..];
        }
        out.text(rest);
    }

    /// A sentence with a mention.
    pub(crate) fn telling(&self, out: &mut Out, rng: &mut Rng, night: Night) {
        match self.section.voice {
            Voice::Campus => match rng.below(4) {
                0 => {
                    self.researcher(out, rng, night);
                    out.text(rng.pick(&[
                        " presented first results to the faculty.",
                        " will supervise the new laboratory course.",
                        " was thanked for a decade of service.",
                        " answered questions from the audience.",
                    ]));
                }
                1 => self.talk(out, rng, night),
                _ => self.affiliation(out, rng, night, None),
            },
            // In JSON a quoted title has backslashes, so only names are told there.
            Voice::Stage => match if out.format == Format::Json { 0 } else { rng.below(4) } {
                0 => {
                    out.text(rng.pick(&["The part went to ", "The programme notes praise ", "A portrait shows "]));
                    let person = self.section.some(PageKind::Person, night, rng);
                    self.actor(out, rng, person, night);
                    out.text(rng.pick(&[".", ", who declined to comment.", " at the side of a young cast."]));
                }
                1 => self.award(out, rng, night, None),
                _ => self.play(out, rng, night, None),
            },
        }
    }

    /// An item of a list of mentions.
    pub(crate) fn item(&self, out: &mut Out, rng: &mut Rng, night: Night, page: PageNo) {
        let own = (Section::kind(page) == PageKind::Person).then_some(page);
        match self.section.voice {
            Voice::Campus if rng.percent(65) => self.talk(out, rng, night),
            Voice::Campus => self.affiliation(out, rng, night, own),
            Voice::Stage if out.format == Format::Json => self.telling(out, rng, night),
            Voice::Stage if rng.percent(60) => self.award(out, rng, night, own),
            Voice::Stage => self.play(out, rng, night, own),
        }
    }

    fn link_to(&self, out: &mut Out, page: PageNo, night: Night) {
        if out.format == Format::Html {
            let url = self.section.url_on(page, night);
            out.open_link(&self.short(&url));
        }
    }

    /// Links within a host leave the host out.
    pub(crate) fn short(&self, url: &str) -> String {
        let path = url.strip_prefix("http://").and_then(|rest| rest.strip_prefix(self.host));
        path.filter(|path| path.starts_with('/')).unwrap_or(url).to_owned()
    }

    /// First name, initial, last name, as attributes.
    fn name(&self, out: &mut Out, person: PageNo) -> Vec<(&'static str, Span)> {
        let name = self.section.name(person);
        let mut attributes = Vec::with_capacity(3);
        let start = out.here();
        out.text(name.first);
        attributes.push(("first", out.span_from(start)));
        out.text(" ");
        if let Some(middle) = name.middle {
            let start = out.here();
            let mut buffer = [0; 4];
            out.text(middle.encode_utf8(&mut buffer));
            out.text(".");
            attributes.push(("mid", out.span_from(start)));
            out.text(" ");
        }
        let start = out.here();
        out.text(name.last);
        attributes.push(("last", out.span_from(start)));
        attributes
    }

    fn researcher(&self, out: &mut Out, rng: &mut Rng, night: Night) -> Span {
        let person = self.section.some(PageKind::Person, night, rng);
        self.titled(out, rng, person, night)
    }

    /// A researcher with title; returns where.
    pub(crate) fn titled(&self, out: &mut Out, rng: &mut Rng, person: PageNo, night: Night) -> Span {
        let start = out.here();
        out.text(rng.pick(&["Dr. ", "Prof. "]));
        let linked = rng.percent(40);
        if linked {
            self.link_to(out, person, night);
        }
        let attributes = self.name(out, person);
        if linked {
            out.tag("</a>");
        }
        let span = out.span_from(start);
        out.mark("researcher", start, attributes);
        span
    }

    pub(crate) fn affiliation(&self, out: &mut Out, rng: &mut Rng, night: Night, person: Option<PageNo>) {
        let person = person.unwrap_or_else(|| self.section.some(PageKind::Person, night, rng));
        let researcher = self.titled(out, rng, person, night);
        let form = rng.below(3);
        out.text([" of the ", " joined the ", " ("][form as usize]);
        let start = out.here();
        out.text(&self.section.organization(person));
        let organization = out.span_from(start);
        out.mark("affiliation", researcher.start, vec![("researcher", researcher), ("organization", organization)]);
        out.text(match form {
            0 => rng.pick(&[" received a grant.", " leads the group.", " edits the yearbook.", "."]),
            1 => rng.pick(&[" this term.", " after years abroad.", "."]),
            _ => rng.pick(&[") chairs the session.", ") and others wrote the report.", ")."]),
        });
    }

    fn talk(&self, out: &mut Out, rng: &mut Rng, night: Night) {
        let spoken = rng.percent(50);
        if !spoken {
            out.text("Talk: ");
        }
        let speaker = self.researcher(out, rng, night);
        let mut attributes = vec![("speaker", speaker)];

        out.text(if spoken { " will speak at " } else { ", " });
        let start = out.here();
        out.number(rng.between(1, 12));
        if rng.percent(60) {
            out.text(rng.pick(&[":15", ":30", ":45", ":00"]));
        }
        out.text(rng.pick(&["am", "pm"]));
        attributes.push(("time", out.span_from(start)));

        out.text(if spoken { " in " } else { ", " });
        let start = out.here();
        out.text(rng.pick(&["Room ", "Hall "]));
        if rng.percent(50) {
            out.text(rng.pick(&["A", "B", "C", "D"]));
        }
        out.number(rng.between(1, 480));
        attributes.push(("place", out.span_from(start)));

        out.text(if spoken { " on " } else { ". Topics: " });
        let first = rng.below(u32::try_from(words::TOPICS.len()).expect("a short list"));
        let count = rng.between(1, 3);
        for number in 0..count {
            if number > 0 {
                out.text(if number + 1 == count && spoken { " and " } else { ", " });
            }
            let topic = words::TOPICS[((first + 17 * number) as usize) % words::TOPICS.len()];
            let start = out.here();
            out.text(topic);
            attributes.push(("topics", out.span_from(start)));
        }
        out.mark("talk", speaker.start, attributes);
        out.text(".");
    }

    /// `actor` or `actress` and the name; returns where the name is.
    fn actor(&self, out: &mut Out, rng: &mut Rng, person: PageNo, night: Night) -> Span {
        let start = out.here();
        out.text(rng.pick(&["actor ", "actress "]));
        let name_start = out.here();
        let linked = rng.percent(40);
        if linked {
            self.link_to(out, person, night);
        }
        let attributes = self.name(out, person);
        if linked {
            out.tag("</a>");
        }
        let span = out.span_from(name_start);
        out.mark("actor", start, attributes);
        span
    }

    /// A name, sometimes introduced as an actor.
    fn performer(&self, out: &mut Out, rng: &mut Rng, night: Night, person: Option<PageNo>) -> Span {
        let person = person.unwrap_or_else(|| self.section.some(PageKind::Person, night, rng));
        if rng.percent(40) {
            out.text("The ");
            return self.actor(out, rng, person, night);
        }
        let start = out.here();
        self.name(out, person);
        out.span_from(start)
    }

    fn quoted_film(&self, out: &mut Out, rng: &mut Rng, night: Night) -> Span {
        let film = self.section.some(PageKind::Work, night, rng);
        out.text("\"");
        let linked = rng.percent(50);
        if linked {
            self.link_to(out, film, night);
        }
        let start = out.here();
        out.text(&self.section.film(film));
        let span = out.span_from(start);
        if linked {
            out.tag("</a>");
        }
        out.text("\"");
        span
    }

    fn play(&self, out: &mut Out, rng: &mut Rng, night: Night, person: Option<PageNo>) {
        let actor = self.performer(out, rng, night, person);
        out.text(rng.pick(&[" starred in ", " appeared in ", " had the lead in "]));
        let movie = self.quoted_film(out, rng, night);
        out.mark("play", actor.start, vec![("actor", actor), ("movie", movie)]);
        out.text(rng.pick(&[".", " to mixed reviews.", " for two seasons.", " at short notice."]));
    }

    fn award(&self, out: &mut Out, rng: &mut Rng, night: Night, person: Option<PageNo>) {
        let actor = self.performer(out, rng, night, person);
        out.text(rng.pick(&[" won the ", " received the "]));
        let start = out.here();
        out.text(rng.pick(words::AWARDS));
        let award = out.span_from(start);
        out.text(" for the role of ");
        let start = out.here();
        out.text(rng.pick(words::ROLE_TITLES));
        out.text(" ");
        out.text(rng.pick(words::ROLE_NAMES));
        let role = out.span_from(start);
        out.text(" in ");
        let movie = self.quoted_film(out, rng, night);
        out.mark("award", actor.start, vec![("actor", actor), ("award", award), ("role", role), ("movie", movie)]);
        out.text(rng.pick(&[".", " after a close vote.", ", the third of the evening."]));
    }
}
