//! Page pairs and regions.

use crate::model::{Region, Rng};

const ALPHABETS: &[&[char]] = &[
    &['a'],
    &['a', 'b'],
    &['a', 'b', 'c', ' '],
    &['a', 'b', 'é', '\n', ' '],
    &['a', 'è', 'é', '€', '😀', 'b'],
    &['a', 'b', 'c', '.', '\r', '\n', ' ', '+', '\u{212A}', 'k', 'A'],
];

fn block(rng: &mut Rng, alphabet: &[char], longest: usize) -> String {
    let len = rng.index(longest + 1);
    (0..len).map(|_| *rng.choose(alphabet)).collect()
}

/// A position between characters.
fn boundary(rng: &mut Rng, text: &str) -> usize {
    text.floor_char_boundary(rng.index(text.len() + 1))
}

/// An old and a new page: the new one is the old one after a few insertions, deletions, replacements, moves and copies.
pub(super) fn pair(rng: &mut Rng) -> (String, String) {
    let alphabet = *rng.choose(ALPHABETS);
    let longest = *rng.choose(&[6, 20, 40, 80]);
    let q = block(rng, alphabet, longest);
    let mut p = if rng.index(12) == 0 { block(rng, alphabet, longest) } else { q.clone() };
    for _ in 0..=rng.index(4) {
        let (a, b) = (boundary(rng, &p), boundary(rng, &p));
        let (from, to) = (a.min(b), a.max(b));
        match rng.index(6) {
            0 => p.insert_str(from, &block(rng, alphabet, 4)),
            1 => p.replace_range(from..to.min(p.floor_char_boundary(from + 6)), ""),
            2 => {
                let other = block(rng, alphabet, 3);
                p.replace_range(from..to.min(p.ceil_char_boundary(from + 3)), &other);
            }
            3 => {
                let moved: String = p.drain(from..to).collect();
                let at = boundary(rng, &p);
                p.insert_str(at, &moved);
            }
            4 => {
                let copied = p[from..to].to_owned();
                let at = boundary(rng, &p);
                p.insert_str(at, &copied);
            }
            _ => p.truncate(from.max(to)),
        }
    }
    (q, p)
}

/// For every alignment of the two pages, every longest stretch where they agree, trimmed to characters. In order.
#[must_use]
pub(crate) fn all_regions(q: &str, p: &str) -> Vec<Region> {
    let (old, new) = (q.as_bytes(), p.as_bytes());
    let mut regions = Vec::new();
    let mut add = |start: usize, end: usize, old_start: usize| {
        let trimmed = p.ceil_char_boundary(start);
        let (end, old_start) = (p.floor_char_boundary(end), old_start + (trimmed - start));
        if trimmed < end && q.is_char_boundary(old_start) && q.is_char_boundary(old_start + (end - trimmed)) {
            let at = |at: usize| u32::try_from(at).expect("small pages");
            regions.push(Region { start: at(trimmed), end: at(end), old_start: at(old_start) });
        }
    };
    for diagonal in 0..old.len() + new.len() {
        let (mut i, mut j) = if diagonal < new.len() { (diagonal, 0) } else { (0, diagonal - new.len()) };
        let mut run = 0;
        while i < new.len() && j < old.len() {
            if new[i] == old[j] {
                run += 1;
            } else {
                if run > 0 {
                    add(i - run, i, j - run);
                }
                run = 0;
            }
            (i, j) = (i + 1, j + 1);
        }
        if run > 0 {
            add(i - run, i, j - run);
        }
    }
    regions.sort_unstable();
    regions.dedup();
    regions
}

/// Any of what a matcher might report: all of it, some of it, the long ones, or fragments.
pub(super) fn some_regions(rng: &mut Rng, q: &str, p: &str) -> Vec<Region> {
    let mut regions = all_regions(q, p);
    match rng.index(5) {
        0 => {}
        1 => {
            let share = 1 + rng.index(8);
            regions.retain(|_| rng.index(8) < share);
        }
        2 => {
            let least = u32::try_from(rng.index(12)).expect("small");
            regions.retain(|region| region.len() >= least);
        }
        3 => {
            // Without what lies inside another: what the matchers report.
            let all = regions.clone();
            regions.retain(|r| !all.iter().any(|o| o != r && o.span().contains(r.span()) && o.len() > r.len()));
        }
        _ => {
            for region in &mut regions {
                let (start, end) = (region.start as usize, region.end as usize);
                let a = p.floor_char_boundary(start + rng.index(end - start + 1));
                let b = p.floor_char_boundary(start + rng.index(end - start + 1));
                let at = |at: usize| u32::try_from(at).expect("small pages");
                let (from, to) = (at(a.min(b)), at(a.max(b)));
                *region = Region { start: from, end: to, old_start: region.old_start + (from - region.start) };
            }
            regions.sort_unstable();
        }
    }
    regions
}
