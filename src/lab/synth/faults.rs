//! Nights that went wrong: every second one from the third on has a fault, one kind after the other, and `faults.csv` of
//! the truth says which captures it spoiled.
//!
//! The site itself goes on undisturbed, so that the same parameters without faults give what an undisturbed crawler
//! would have seen.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::lab::synth::site::{Site, SynthPage};
use crate::model::Timestamp;
use crate::model::closed_set::closed_set;
use crate::model::rng::Rng;

const FAULT: u64 = 51;

closed_set! {
    /// What goes wrong in a night.
    pub(crate) enum Fault: "fault" {
        /// A wall asks whether a person reads.
        Challenge = "challenge",
        /// Pages ask to log in.
        Login = "login",
        /// Some pages say with status 200 that they are not found.
        SoftNotFound = "soft_404",
        /// The crawler stopped half way.
        HalfCrawl = "half_crawl",
        /// The archive file was cut.
        CutArchive = "cut_archive",
        /// The server was overloaded.
        Storm = "storm",
        /// The crawler's clock was not set.
        Clock = "clock",
    }
}

/// The faults of a site.
pub(crate) struct Faults {
    wanted: bool,
    seed: u64,
    /// Pages that an earlier night has shown.
    known: RefCell<BTreeSet<u64>>,
}

impl Faults {
    pub(crate) fn new(wanted: bool, seed: u64) -> Self {
        Self { wanted, seed, known: RefCell::default() }
    }

    /// What goes wrong in a night.
    pub(crate) fn of(&self, night: u32) -> Option<Fault> {
        let place = usize::try_from(night / 2).expect("a small number").checked_sub(1)?;
        (self.wanted && night.is_multiple_of(2)).then(|| Fault::ALL[place % Fault::ALL.len()])
    }

    /// Visits the captures of a night as its fault left them; `spoiled` is told the URLs that it spoiled.
    pub(crate) fn visit(
        &self,
        site: &Site,
        night: u32,
        mut spoiled: impl FnMut(Fault, &str) -> io::Result<()>,
        mut each: impl FnMut(&SynthPage) -> io::Result<()>,
    ) -> io::Result<()> {
        let fault = self.of(night);
        let mut pages = 0;
        if fault == Some(Fault::HalfCrawl) {
            site.visit(night, |_| {
                pages += 1;
                Ok::<_, io::Error>(())
            })?;
        }
        let mut number = 0;
        let mut seen = BTreeSet::new();
        site.visit(night, |page| {
            number += 1;
            seen.insert(page.identity);
            let Some(fault) = fault else { return each(page) };
            if fault == Fault::HalfCrawl && number > pages / 2 {
                return spoiled(fault, &page.url);
            }
            if !self.strikes(fault, page, night) {
                return each(page);
            }
            spoiled(fault, &page.url)?;
            let mut page = page.clone();
            let number = self.seed ^ page.identity;
            spoil(&mut page, fault, number);
            each(&page)
        })?;
        self.known.borrow_mut().extend(seen);
        Ok(())
    }

    /// Whether a fault spoils a capture: of good ones a share, by page, so that a second capture fares as the first.
    fn strikes(&self, fault: Fault, page: &SynthPage, night: u32) -> bool {
        let percent = match fault {
            Fault::Challenge => 60,
            Fault::Login => 40,
            Fault::SoftNotFound => 10,
            Fault::Storm => 50,
            Fault::Clock => return true,
            Fault::HalfCrawl | Fault::CutArchive => return false,
        };
        let known = self.known.borrow().contains(&page.identity) && page.moved_from.is_none();
        let chance = Rng::keyed(&[self.seed, page.identity, FAULT, u64::from(night)]).percent(percent);
        page.status == 200 && chance && (known || fault != Fault::SoftNotFound)
    }
}

fn spoil(page: &mut SynthPage, fault: Fault, number: u64) {
    let body = match fault {
        Fault::Challenge => format!(
            "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body><h1>Checking your browser</h1>\
             <script>window._cf_chl_opt={{cRay:'{number:016x}'}}</script><p>Ray ID: {number:016x}</p></body></html>\n"
        ),
        Fault::Login => "<!DOCTYPE html><html><head><title>Sign in | Fernhill</title></head><body><h1>Sign in</h1>\
                         <form method=post><p>User <input name=user></p><p>Password <input type=password name=word></p>\
                         <button>Sign in</button></form></body></html>\n"
            .to_owned(),
        Fault::SoftNotFound => format!(
            "<!DOCTYPE html><html><head><title>Page not found</title></head><body><h1>Page not found</h1>\
             <p>There is nothing at {}.</p></body></html>\n",
            page.url
        ),
        Fault::Storm => {
            page.status = 503;
            "<html><head><title>503 Service Unavailable</title></head><body>Try again later.</body></html>\n".to_owned()
        }
        Fault::Clock => {
            // Seconds since it was switched on.
            page.fetched_at = Timestamp(page.fetched_at.0.rem_euclid(3_600 * Timestamp::SECOND));
            return;
        }
        Fault::HalfCrawl | Fault::CutArchive => return,
    };
    page.say_instead(body.into_bytes());
}

/// A file of which only the first half is written.
pub(crate) struct Halved {
    file: Box<dyn Write>,
    bytes: Vec<u8>,
}

impl Halved {
    pub(crate) fn new(file: Box<dyn Write>) -> Self {
        Self { file, bytes: Vec::new() }
    }
}

impl Write for Halved {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Halved {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        // Whoever cuts files does not care.
        let _ = self.file.write_all(&bytes[..bytes.len() / 2]).and_then(|()| self.file.flush());
    }
}
