//! One part of the site: which pages exist on which night, under which URL.
//!
//! Names, URLs and texts are pure functions of (seed, page, night) and made when they are needed. Births, deaths and
//! moves are drawn once for the whole run and kept, because every link asks for them: 6 bytes a page and 2 a move.

use crate::lab::synth::clock::moment;
use crate::lab::synth::draws::MILLION;
use crate::lab::synth::params::Params;
use crate::lab::synth::rhythm::Pulse;
use crate::lab::synth::words::{self, Voice};
use crate::model::Timestamp;
use crate::model::rng::{Rng, key};

/// Number of a page within its section; numbers are given in order of birth and never reused.
pub(crate) type PageNo = u32;
/// Nights since the first snapshot.
pub(crate) type Night = u32;

/// Pages that form a group: a hub and what it lists.
pub(crate) const GROUP: u32 = 20;

/// Seconds after midnight when a crawl starts, and how long it takes.
pub(crate) const CRAWL_START: i64 = 2 * 3600;
pub(crate) const CRAWL_SECONDS: i64 = 2 * 3600;

// Purposes of draws, so that no two draws share a key.
const NAME: u64 = 1;
const LIFE: u64 = 2;
const SHOWS_COUNTER: u64 = 3;
const ADDED: u64 = 4;
const DEPLOY: u64 = 5;
const CREATED: u64 = 6;
const PULSE: u64 = 7;

/// What a page is about; the meaning depends on the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageKind {
    Home,
    /// A department; a genre.
    Hub,
    /// A researcher; an actor.
    Person,
    /// A talk; the awards of a year.
    Event,
    /// A paper; a film or play.
    Work,
    News,
    Plain,
    Json,
}

#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) voice: Voice,
    pub(crate) seed: u64,
    pub(crate) first_day: i64,
    pub(crate) page_bytes: u32,
    counters: u32,
    change: u32,
    /// Night of each page's death, `Night::MAX` if it lives on.
    deaths: Vec<Night>,
    /// Nights on which pages move, page after page; those of page i start at `first_move[i]`.
    moves: Vec<u16>,
    first_move: Vec<u32>,
    /// Pages born up to and including each night.
    born: Vec<u32>,
    /// Boilerplate version on each night.
    version: Vec<u32>,
}

/// A person's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) first: &'static str,
    /// Initial without its point.
    pub(crate) middle: Option<char>,
    pub(crate) last: &'static str,
}

/// A page's life up to some night.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) born: Night,
    pub(crate) died: Option<Night>,
    pub(crate) moves: u32,
    pub(crate) last_move: Option<Night>,
}

impl Section {
    pub(crate) fn new(params: &Params, voice: Voice, pages: u32) -> Self {
        let (salt, default_change) = match voice {
            Voice::Campus => (101, 50_000),
            Voice::Stage => (102, 400_000),
        };
        let seed = key(&[params.seed, salt]);
        let change = params.change.unwrap_or(default_change);
        // Pages come, go and move in step with the change of texts, within what a real site shows.
        let added = (change / 5).min(50_000);
        let mut born = vec![pages];
        let mut version = vec![0];
        // Drawn for one night more than asked for: a page does not change on the eve of its move, so the last night
        // needs to know the moves of the night after it.
        for night in 1..=params.snapshots {
            let mut rng = Rng::keyed(&[seed, ADDED, u64::from(night)]);
            let expected = u64::from(pages) * u64::from(added);
            let million = u64::from(MILLION);
            let rest = u32::try_from(expected % million).expect("below a million");
            let new = u32::try_from(expected / million).unwrap_or(0) + u32::from(rng.chance(rest));
            let deploy = Rng::keyed(&[seed, DEPLOY, u64::from(night)]).chance(params.boilerplate);
            born.push(born[night as usize - 1] + new);
            version.push(version[night as usize - 1] + u32::from(deploy));
        }
        let mut section = Self {
            voice,
            seed,
            first_day: params.first_day,
            page_bytes: params.page_bytes,
            counters: params.counters,
            change,
            deaths: Vec::new(),
            moves: Vec::new(),
            first_move: Vec::new(),
            born,
            version,
        };
        section.draw_lives((change / 6).min(40_000), (change / 8).min(30_000));
        section
    }

    fn draw_lives(&mut self, removed: u32, moved: u32) {
        let nights = u32::try_from(self.born.len()).expect("nights are few");
        for page in 0..self.born_by(nights - 1) {
            self.first_move.push(u32::try_from(self.moves.len()).expect("fewer than 2^32 moves"));
            self.deaths.push(Night::MAX);
            // Home and hubs stay where they are: the rest hangs on them.
            if page.is_multiple_of(GROUP) {
                continue;
            }
            // A page with a counter is new on every fetch, so that its move could not be seen.
            let settled = self.shows_counter(page);
            let mut rng = Rng::keyed(&[self.seed, u64::from(page), LIFE]);
            for night in self.birth(page) + 1..nights {
                if rng.chance(removed) {
                    self.deaths[page as usize] = night;
                    break;
                }
                // Nor do pages move when their boilerplate changes: a moved page keeps its text.
                let deployed = self.version[night as usize] != self.version[night as usize - 1];
                if rng.chance(moved) && !settled && !deployed {
                    self.moves.push(u16::try_from(night).expect("nights are few"));
                }
            }
        }
        self.first_move.push(u32::try_from(self.moves.len()).expect("fewer than 2^32 moves"));
    }

    /// Whether the page shows a visitor counter and the time of serving.
    pub(crate) fn shows_counter(&self, page: PageNo) -> bool {
        let html = !matches!(Self::kind(page), PageKind::Plain | PageKind::Json);
        html && Rng::keyed(&[self.seed, u64::from(page), SHOWS_COUNTER]).chance(self.counters)
    }

    pub(crate) fn day(&self, night: Night) -> i64 {
        self.first_day + i64::from(night)
    }

    /// Pages ever born up to a night.
    pub(crate) fn born_by(&self, night: Night) -> u32 {
        self.born[night as usize]
    }

    pub(crate) fn birth(&self, page: PageNo) -> Night {
        u32::try_from(self.born.partition_point(|&born| born <= page)).expect("nights are few")
    }

    /// Boilerplate version on a night, and when it was put up (`None`: it has always been so).
    pub(crate) fn boilerplate(&self, night: Night) -> (u32, Option<Timestamp>) {
        let version = self.version[night as usize];
        let since = u32::try_from(self.version.partition_point(|&v| v < version)).expect("nights are few");
        (version, (since > 0).then(|| moment(self.day(since), 3600)))
    }

    pub(crate) fn kind(page: PageNo) -> PageKind {
        match page % GROUP {
            0 if page == 0 => PageKind::Home,
            0 => PageKind::Hub,
            1..=8 => PageKind::Person,
            9..=12 => PageKind::Event,
            13..=15 => PageKind::Work,
            16..=18 => PageKind::News,
            _ if (page / GROUP).is_multiple_of(2) => PageKind::Plain,
            _ => PageKind::Json,
        }
    }

    fn moves(&self, page: PageNo) -> &[u16] {
        let page = page as usize;
        &self.moves[self.first_move[page] as usize..self.first_move[page + 1] as usize]
    }

    /// Whether the page moves on this night: same text, another URL.
    pub(crate) fn moves_on(&self, page: PageNo, night: Night) -> bool {
        self.moves(page).iter().any(|&moved| u32::from(moved) == night)
    }

    pub(crate) fn life(&self, page: PageNo, night: Night) -> Life {
        let past = self.moves(page).iter().take_while(|&&moved| u32::from(moved) <= night);
        let (moves, last_move) = past.fold((0, None), |(count, _), &moved| (count + 1, Some(u32::from(moved))));
        let died = Some(self.deaths[page as usize]).filter(|&died| died <= night);
        Life { born: self.birth(page), died, moves, last_move }
    }

    pub(crate) fn pulse(&self, page: PageNo) -> Pulse {
        Pulse::new(key(&[self.seed, u64::from(page), PULSE]), self.change)
    }

    /// When the page was first put up.
    pub(crate) fn created(&self, page: PageNo) -> Timestamp {
        let mut rng = Rng::keyed(&[self.seed, u64::from(page), CREATED]);
        let second = i64::from(rng.between(6 * 3600, 86_399));
        match self.birth(page) {
            0 => moment(self.first_day - i64::from(rng.between(1, 900)), second),
            night => moment(self.day(night) - 1, second),
        }
    }

    pub(crate) fn fetched_at(&self, page: PageNo, night: Night) -> Timestamp {
        let rank = i64::from(page) * CRAWL_SECONDS / i64::from(self.born_by(night));
        moment(self.day(night), CRAWL_START + rank)
    }

    pub(crate) fn name(&self, page: PageNo) -> Name {
        let mut rng = Rng::keyed(&[self.seed, u64::from(page), NAME]);
        let first = rng.pick(words::FIRST);
        let last = rng.pick(words::LAST);
        let middle = rng.percent(45).then(|| char::from(b"ABCDEFGHJKLMNPRSTW"[rng.below(18) as usize]));
        Name { first, middle, last }
    }

    /// Title of a film or play.
    pub(crate) fn film(&self, page: PageNo) -> String {
        let mut rng = Rng::keyed(&[self.seed, u64::from(page), NAME]);
        let adjective = rng.pick(words::FILM_ADJECTIVES);
        let noun = rng.pick(words::FILM_NOUNS);
        match rng.below(4) {
            0 => format!("{adjective} {noun}"),
            1 => format!("The {noun} of {}", rng.pick(words::ROLE_NAMES)),
            _ => format!("The {adjective} {noun}"),
        }
    }

    /// `Department of Physics`; belongs to a group.
    pub(crate) fn organization(&self, page: PageNo) -> String {
        let group = page / GROUP;
        let mut rng = Rng::keyed(&[self.seed, u64::from(group), NAME, 1]);
        format!("{} of {}", rng.pick(words::UNITS), rng.pick(words::FIELDS))
    }

    /// Some page of a kind that was born by `night`; kinds lie at fixed places in a group.
    pub(crate) fn some(&self, kind: PageKind, night: Night, rng: &mut Rng) -> PageNo {
        let (first, count) = match kind {
            PageKind::Home => return 0,
            PageKind::Hub => (0, 1),
            PageKind::Person => (1, 8),
            PageKind::Event => (9, 4),
            PageKind::Work => (13, 3),
            PageKind::News => (16, 3),
            PageKind::Plain | PageKind::Json => (19, 1),
        };
        // The first group is always complete: a site has at least as many pages.
        let page = rng.below(self.born_by(night).div_ceil(GROUP)) * GROUP + first + rng.below(count);
        if page < self.born_by(night) { page } else { first }
    }

    fn host(&self, page: PageNo) -> &'static str {
        const CAMPUS: [&str; 6] = [
            "www.fernhill.example",
            "science.fernhill.example",
            "letters.fernhill.example",
            "medicine.fernhill.example",
            "archive.fernhill.example:8080",
            "people.fernhill.example",
        ];
        const STAGE: [&str; 4] =
            ["www.limelight.example", "films.limelight.example", "stage.limelight.example", "gala.limelight.example"];
        let group = (page / GROUP) as usize;
        match self.voice {
            Voice::Campus => CAMPUS[group % CAMPUS.len()],
            Voice::Stage => STAGE[group % STAGE.len()],
        }
    }

    /// URL after a number of moves. No URL is a folder of another, so that a mirror tree can hold them all.
    pub(crate) fn url(&self, page: PageNo, moves: u32) -> String {
        let host = self.host(page);
        // Each move leads to another folder, later ones are numbered.
        let turn = |names: [&str; 3]| match moves {
            0..=2 => names[moves as usize].to_owned(),
            _ => format!("{}-{moves}", names[0]),
        };
        let campus = self.voice == Voice::Campus;
        let path = match Self::kind(page) {
            PageKind::Home => String::new(),
            PageKind::Hub if campus => format!("departments/{page}/"),
            PageKind::Hub => format!("genres/{page}/"),
            PageKind::Person => {
                let name = self.name(page);
                let folder = turn(if campus { ["people", "staff", "faculty"] } else { ["actors", "cast", "artists"] });
                format!("{folder}/{}-{}-{page}.html", words::slug(name.first), words::slug(name.last))
            }
            PageKind::Event if campus && page.is_multiple_of(3) => {
                format!("{}?talk={page}&term=spring", turn(["calendar", "agenda", "diary"]))
            }
            PageKind::Event if campus => format!("{}/{page}.html", turn(["talks", "seminars", "colloquia"])),
            PageKind::Event => format!("{}/{page}.html", turn(["awards", "prizes", "honours"])),
            PageKind::Work if campus => format!("{}/{page}.html", turn(["papers", "reports", "preprints"])),
            PageKind::Work => {
                format!("{}/{}-{page}.html", turn(["films", "plays", "productions"]), words::slug(&self.film(page)))
            }
            PageKind::News => format!("{}/item-{page}", turn(["news", "press", "stories"])),
            PageKind::Plain => format!("{}/{page}.txt", turn(["notes", "texts", "plain"])),
            PageKind::Json => format!("{}/{page}.json", turn(["feeds", "api", "data"])),
        };
        format!("http://{host}/{path}")
    }

    /// URL on a night.
    pub(crate) fn url_on(&self, page: PageNo, night: Night) -> String {
        self.url(page, self.life(page, night).moves)
    }

    /// What a link to a page is called.
    pub(crate) fn label(&self, page: PageNo) -> String {
        let campus = self.voice == Voice::Campus;
        match Self::kind(page) {
            PageKind::Home if campus => "Fernhill University".to_owned(),
            PageKind::Home => "Limelight Review".to_owned(),
            PageKind::Hub if campus => self.organization(page),
            PageKind::Hub => format!("Listings {}", page / GROUP),
            PageKind::Person => {
                let name = self.name(page);
                format!("{} {}", name.first, name.last)
            }
            PageKind::Event if campus => format!("Talk {page}"),
            PageKind::Event => format!("Awards of the season {}", 1950 + page % 75),
            PageKind::Work if campus => format!("Technical paper {page}"),
            PageKind::Work => self.film(page),
            PageKind::News => format!("News item {page}"),
            PageKind::Plain => format!("Notes {page} (text)"),
            PageKind::Json => format!("Feed {page} (data)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::synth::params::Part;

    fn section(voice: Voice) -> Section {
        let params = Params { pages: 400, snapshots: 40, part: Part::Campus, ..Params::default() };
        Section::new(&params, voice, 400)
    }

    #[test]
    fn urls_never_repeat_and_never_contain_each_other() {
        for voice in [Voice::Campus, Voice::Stage] {
            let section = section(voice);
            let mut urls = Vec::new();
            for page in 0..section.born_by(39) {
                for moves in 0..if page.is_multiple_of(GROUP) { 1 } else { 6 } {
                    urls.push(section.url(page, moves));
                }
            }
            urls.sort_unstable();
            let count = urls.len();
            urls.dedup();
            assert_eq!(urls.len(), count);
            // A URL that is a folder of another ends in a slash.
            for pair in urls.windows(2) {
                assert!(!pair[1].starts_with(&format!("{}/", pair[0])), "{pair:?}");
            }
        }
    }

    #[test]
    fn pages_are_born_die_and_move_at_the_rates_given() {
        let section = section(Voice::Stage);
        let (mut died, mut moves) = (0, 0);
        for page in 0..400 {
            let life = section.life(page, 39);
            assert_eq!(life.born, 0);
            died += u32::from(life.died.is_some());
            moves += life.moves;
        }
        // 4 % removed and 3 % moved a night, hubs excepted; pages with counters stay, and all stay on nights of new
        // boilerplate.
        assert!((250..360).contains(&died), "{died}");
        assert!((100..250).contains(&moves), "{moves}");
        assert_eq!(section.born_by(39) - 400, 39 * 20);
        assert_eq!(section.born.len(), 41);
        assert_eq!(section.birth(400), 1);
        assert_eq!(section.life(419, 10).born, 1);
    }
}
