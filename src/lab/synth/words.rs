//! Word lists and sentence templates that prose is made of.
//!
//! In a template `%x` stands for a word of list x, see [`list`]; `%#` for a small number, `%y` for a year. No template
//! or word may look like a mention (a title before a name, `actor`, a time of day, a room, a quoted film): the truth
//! file lists every mention, so filler must not make one by accident. A test runs reference patterns over whole sites.

#[rustfmt::skip]
pub(crate) const FIRST: &[&str] = &[
    "Anna", "Bertrand", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hiroshi", "Ingrid", "Jonas", "Katarzyna", "Liam",
    "Maren", "Nadia", "Oscar", "Priya", "Quentin", "Rosa", "Samir", "Tamsin", "Ulrich", "Vera", "Wanda", "Xavier",
    "Yusuf", "Zora", "André", "Béatrice", "Cécile", "Émile", "Fátima", "Göran", "Héloïse", "Inés", "José", "Jürgen",
    "Källe", "Loïc", "María", "Núria", "Øystein", "Renée", "Søren", "Théo", "Zoë", "Ágnes", "Čeněk", "Łukasz", "Ştefan",
    "Jean-Luc", "Marie-Claire", "Abena", "Bram", "Carys", "Desmond", "Esther", "Fiona", "Gideon", "Harriet", "Ivo",
    "Joaquim", "Kerstin", "Leopold", "Miriam", "Nils", "Odette", "Pavel", "Ruth", "Sven", "Thandi", "Ursula", "Viktor",
];

#[rustfmt::skip]
pub(crate) const LAST: &[&str] = &[
    "Abernathy", "Bauer", "Castellano", "Dufour", "Ekström", "Fairweather", "Grünwald", "Hallström", "Ibáñez",
    "Jankowski", "Keller", "Lindqvist", "Moreau", "Nakamura", "Okafor", "Petrov", "Quiroga", "Rasmussen", "Sandoval",
    "Thorne", "Underhill", "Valdés", "Whitlock", "Yamada", "Zielinski", "Ångström", "Böhm", "Çelik", "Dvořák", "Esposito",
    "François", "García", "Håkansson", "Ivanova", "Jørgensen", "Königsberg", "Lefèvre", "Müller", "Nuñez", "O'Brien",
    "Pérez-Ruiz", "Rønning", "Śliwa", "Tóth", "Ünal", "Vasquez", "Wójcik", "Adeyemi", "Blackwood", "Carrow", "Delacroix",
    "Eastwick", "Fenn", "Gallagher", "Hargreaves", "Iversen", "Jha", "Kowalczyk", "Lockhart", "Mbeki", "Norwood",
    "Oduya", "Pemberton", "Rossi", "Schreiber", "Tremblay", "Usman", "Voss", "Winterbourne", "Yilmaz", "Zimmer",
    "Ashdown", "Brightwater", "Cavendish", "Drummond", "Ellery", "Farrow", "Greenwell", "Holloway", "Ingleby",
];

#[rustfmt::skip]
pub(crate) const FIELDS: &[&str] = &[
    "Astronomy", "Botany", "Chemistry", "Computer Science", "Economics", "Geology", "History", "Hydrology", "Law",
    "Linguistics", "Marine Biology", "Mathematics", "Medicine", "Music", "Philosophy", "Physics", "Political Science",
    "Psychology", "Sociology", "Statistics", "Veterinary Science", "Applied Optics", "Soil Science", "Urban Planning",
];

pub(crate) const UNITS: &[&str] = &["Department", "Institute", "School", "Centre"];

/// Topics of talks, lower case; also the term list that is written beside the truth.
#[rustfmt::skip]
pub(crate) const TOPICS: &[&str] = &[
    "adaptive optics", "alpine glaciers", "approximate counting", "bird migration", "carbon cycles", "coastal erosion",
    "compiler construction", "crystal growth", "deep sea vents", "dialect atlases", "drug interactions",
    "electoral systems", "error correction", "fungal networks", "game theory", "gene regulation", "graph colouring",
    "gravitational lensing", "index structures", "information extraction", "labour markets", "lattice methods",
    "machine translation", "medieval trade", "memory consolidation", "mixed forests", "number fields",
    "ocean acidification", "pension reform", "plasma confinement", "protein folding", "quantum sensors",
    "query optimisation", "random graphs", "river deltas", "robot grasping", "seismic imaging", "sleep disorders",
    "soil bacteria", "spectral methods", "speech perception", "stellar winds", "string matching", "suffix trees",
    "tax competition", "tidal power", "topic models", "urban heat islands", "vaccine uptake", "volcanic ash",
    "water rights", "web archives",
];

#[rustfmt::skip]
pub(crate) const AWARDS: &[&str] = &[
    "Silver Lantern Award", "Golden Quill Prize", "Harbour Medal", "Critics Circle Award", "Velvet Curtain Prize",
    "Northern Star Award", "Amber Mask", "Founders Medal", "Grand Jury Prize", "Blue Heron Award", "Limelight Trophy",
    "Crystal Reel Award",
];

#[rustfmt::skip]
pub(crate) const ROLE_TITLES: &[&str] =
    &["Captain", "Countess", "Detective", "Professor", "Sister", "Judge", "Lady", "Sergeant", "Uncle", "Queen", "Nurse"];

#[rustfmt::skip]
pub(crate) const ROLE_NAMES: &[&str] = &[
    "Marlow", "Irina", "Blythe", "Ravel", "Carter", "Ophir", "Pell", "Quince", "Rook", "Selwyn", "Tully", "Vance",
    "Wren", "Yorick", "Zell", "Ashby", "Brand", "Corvin", "Dane", "Ember",
];

#[rustfmt::skip]
pub(crate) const FILM_ADJECTIVES: &[&str] = &[
    "Silent", "Glass", "Crooked", "Distant", "Last", "Burning", "Hollow", "Scarlet", "Winter", "Forgotten", "Paper",
    "Endless", "Broken", "Golden", "Quiet", "Second", "Hidden", "Borrowed", "Midnight", "Salt", "Wandering", "Pale",
];

#[rustfmt::skip]
pub(crate) const FILM_NOUNS: &[&str] = &[
    "Harbour", "Orchard", "Letter", "Bridge", "Lighthouse", "Garden", "Voyage", "Mirror", "Train", "Island", "Waltz",
    "Archive", "Winter", "Crown", "Street", "Station", "Storm", "Tide", "Portrait", "Meadow", "Signal", "Verdict",
    "Carnival", "Frontier", "Lullaby", "Masquerade",
];

#[rustfmt::skip]
const ADJECTIVES: &[&str] = &[
    "small", "recent", "careful", "ambitious", "modest", "early", "patient", "remarkable", "quiet", "thorough", "bold",
    "narrow", "unusual", "steady", "generous", "difficult", "lively", "sober", "practical", "promising", "simple",
    "complex", "regional", "shared", "independent", "open", "local", "rare", "bright", "gradual", "broad", "timely",
];

#[rustfmt::skip]
const NOUNS: &[&str] = &[
    "project", "survey", "report", "library", "laboratory", "collection", "programme", "committee", "workshop",
    "lecture", "proposal", "network", "method", "dataset", "archive", "model", "question", "result", "grant", "field",
    "garden", "building", "river", "village", "market", "museum", "bridge", "season", "debate", "answer", "plan",
    "measure", "course", "study", "exhibition", "garage", "orchestra", "journal", "volume", "chapter",
];

#[rustfmt::skip]
const PLURALS: &[&str] = &[
    "students", "visitors", "colleagues", "samples", "records", "instruments", "farmers", "engineers", "teachers",
    "measurements", "volunteers", "readers", "notes", "maps", "letters", "drawings", "experiments", "results",
    "questions", "partners", "towns", "workers", "families", "members", "guests", "copies", "interviews", "reviews",
];

#[rustfmt::skip]
const VERBS: &[&str] = &[
    "reviewed", "described", "extended", "questioned", "completed", "repeated", "supported", "published", "organised",
    "measured", "restored", "compared", "simplified", "collected", "presented", "opened", "funded", "translated",
    "improved", "examined", "recorded", "followed", "replaced", "tested",
];

#[rustfmt::skip]
const ADVERBS: &[&str] = &[
    "slowly", "carefully", "twice", "finally", "quietly", "again", "together", "largely", "partly", "openly", "soon",
    "independently", "thoroughly", "briefly", "widely", "clearly", "successfully", "gradually",
];

#[rustfmt::skip]
const TIMES: &[&str] = &[
    "last autumn", "in the spring", "over the summer", "during the winter term", "after a long delay",
    "before the holidays", "in the past year", "within a few weeks", "on the first day", "at short notice",
    "since the reopening", "during the festival", "in the second half of the year", "for the third time",
];

#[rustfmt::skip]
const PLACES: &[&str] = &[
    "by the river", "in the old library", "on the north side of town", "near the botanical garden", "in the archive",
    "at the station", "behind the chapel", "in the glass pavilion", "across the valley", "in the harbour district",
    "beside the observatory", "in the reading wing", "on the island", "under the arcade", "at the town theatre",
];

#[rustfmt::skip]
const GENRES: &[&str] = &[
    "drama", "comedy", "thriller", "period piece", "documentary", "musical", "mystery", "romance", "satire", "western",
    "fable", "tragedy",
];

#[rustfmt::skip]
const CREW: &[&str] = &[
    "director", "producer", "screenwriter", "composer", "editor", "set designer", "costume department",
    "camera operator", "stage manager", "casting office", "sound crew", "choreographer",
];

/// Sentences that fit anywhere.
#[rustfmt::skip]
const COMMON: &[&str] = &[
    "The %a %n was %v %r %t.",
    "Many %p %v the %n, although the %n remained %a.",
    "A %a %n and a %a %n were %v %l.",
    "About %# %p took part, and %# of them returned %t.",
    "It was a %a %n, but the %p %v it %r.",
    "Since %y the %n has been open to all %p.",
    "The %n %l attracts %p from more than %# towns.",
    "No %n was %v without the %p.",
    "%# %p %v the %a %n %t.",
    "What began as a %a %n became a %a %n within %# years.",
    "The %p were asked to bring %# %p and a %a %n.",
    "In %y a %a %n was %v %l, and the %p %v it %r.",
    "Everyone agreed that the %n needed a %a %n.",
    "The %n costs less than the %n it replaced, say the %p.",
];

#[rustfmt::skip]
const CAMPUS: &[&str] = &[
    "The research group %v %# %p for a %a study of the %n.",
    "Funding for the %a %n was %v %t by the faculty board.",
    "First-year students %v the %n %r under the guidance of older %p.",
    "The paper argues that a %a %n explains most of the %p.",
    "Doctoral candidates may apply for the %n until the end of the term.",
    "Teaching moved %l while the %n is being %v.",
    "The seminar series on %f has %v %# %p since %y.",
    "An introduction to %f is offered %t and needs no earlier %n.",
    "The working group in %f %v a %a dataset of %# %p.",
    "Our findings suggest a %a link between the %n and the %n.",
    "The reading list for %f names %# titles, most of them %a.",
    "Exchange students in %f %v the %n %l.",
];

#[rustfmt::skip]
const STAGE: &[&str] = &[
    "The %g opened %l and ran for %# weeks.",
    "Critics called the %g %a, and the %w %v the final act %r.",
    "Shooting of the %g began %t with a %a crew of %#.",
    "The %w %v the script %r before the premiere.",
    "Audiences %v the %g %t, and %# extra shows were added.",
    "A %a revival of the %g is planned %l.",
    "The %w and the %w disagreed about the %a ending.",
    "Tickets for the %g sold out within %# hours.",
    "The soundtrack of the %g was %v by the %w %t.",
    "In %y the %g was %v for a %a run abroad.",
    "The %g was filmed %l in only %# days.",
    "A %a trailer of the %g was %v %t.",
];

/// Which sentences a page may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    Campus,
    Stage,
}

impl Voice {
    /// Templates of its own and the common ones, as one numbered list.
    pub(crate) fn template(self, number: u32) -> &'static str {
        let own = match self {
            Self::Campus => CAMPUS,
            Self::Stage => STAGE,
        };
        let number = number as usize;
        own.get(number).copied().unwrap_or_else(|| COMMON[(number - own.len()) % COMMON.len()])
    }

    pub(crate) fn templates(self) -> u32 {
        let own = match self {
            Self::Campus => CAMPUS.len(),
            Self::Stage => STAGE.len(),
        };
        u32::try_from(own + COMMON.len()).expect("templates are few")
    }
}

/// The list that a template letter stands for.
pub(crate) fn list(letter: u8) -> Option<&'static [&'static str]> {
    Some(match letter {
        b'a' => ADJECTIVES,
        b'n' => NOUNS,
        b'p' => PLURALS,
        b'v' => VERBS,
        b'r' => ADVERBS,
        b't' => TIMES,
        b'l' => PLACES,
        b'g' => GENRES,
        b'w' => CREW,
        b'f' => FIELDS,
        _ => return None,
    })
}

/// ASCII letters of a name for use in URLs; what has no near letter is left out.
pub(crate) fn slug(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        let near = match c {
            'a'..='z' | '0'..='9' => c,
            'A'..='Z' => c.to_ascii_lowercase(),
            ' ' | '-' => '-',
            'á' | 'à' | 'â' | 'ä' | 'å' | 'ã' | 'Á' | 'Å' | 'Ä' => 'a',
            'ç' | 'č' | 'Ç' | 'Č' => 'c',
            'é' | 'è' | 'ê' | 'ë' | 'ě' | 'É' => 'e',
            'í' | 'ï' | 'î' => 'i',
            'ł' | 'Ł' => 'l',
            'ñ' | 'ń' | 'Ñ' => 'n',
            'ó' | 'ö' | 'ø' | 'ô' | 'Ø' | 'Ö' => 'o',
            'ř' => 'r',
            'ş' | 'Ş' | 'Ś' | 'ś' => 's',
            'ú' | 'ü' | 'Ü' => 'u',
            _ => continue,
        };
        out.push(near);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_letter_has_a_list() {
        for voice in [Voice::Campus, Voice::Stage] {
            for number in 0..voice.templates() {
                let template = voice.template(number).as_bytes();
                for (place, _) in template.iter().enumerate().filter(|&(_, &b)| b == b'%') {
                    let letter = template[place + 1];
                    assert!(matches!(letter, b'#' | b'y') || list(letter).is_some(), "%{}", letter as char);
                }
            }
        }
    }

    #[test]
    fn names_fold_to_url_letters() {
        assert_eq!(slug("Łukasz Pérez-Ruiz"), "lukasz-perez-ruiz");
        for name in FIRST.iter().chain(LAST) {
            let letters = name.chars().filter(|c| c.is_alphabetic()).count();
            assert_eq!(slug(name).bytes().filter(u8::is_ascii_lowercase).count(), letters, "{name}");
        }
    }

    #[test]
    fn lists_have_no_twins() {
        for list in [FIRST, LAST, FIELDS, TOPICS, AWARDS, FILM_ADJECTIVES, FILM_NOUNS, ADJECTIVES, NOUNS, PLURALS] {
            let mut sorted = list.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), list.len(), "{:?}", list[0]);
        }
    }
}
