//! The oracle: the definitions, word for word. Quadratic and worse; for tests only.

use crate::model::Region;

fn occurs(text: &[u8], old: &[u8]) -> bool {
    text.is_empty() || old.windows(text.len()).any(|window| window == text)
}

fn places(text: &[u8], old: &[u8]) -> Vec<usize> {
    old.windows(text.len()).enumerate().filter(|(_, window)| *window == text).map(|(place, _)| place).collect()
}

/// Byte-maximal old regions, as (start, end): not empty, not extensible on either side.
fn byte_maximal(old: &[u8], new: &[u8]) -> Vec<(usize, usize)> {
    let n = new.len();
    let mut found = Vec::new();
    for start in 0..n {
        for end in start + 1..=n {
            let left = start > 0 && occurs(&new[start - 1..end], old);
            let right = end < n && occurs(&new[start..=end], old);
            if !occurs(&new[start..end], old) {
                break;
            }
            if !left && !right {
                found.push((start, end));
            }
        }
    }
    found
}

fn trimmed(new: &[u8], found: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let text = std::str::from_utf8(new).expect("pages are UTF-8");
    let spans: std::collections::BTreeSet<(usize, usize)> = found
        .iter()
        .map(|&(start, end)| (text.ceil_char_boundary(start), text.floor_char_boundary(end)))
        .filter(|(start, end)| start < end)
        .collect();
    let contained = |a: (usize, usize)| spans.iter().any(|&b| a != b && b.0 <= a.0 && a.1 <= b.1);
    spans.iter().copied().filter(|&span| !contained(span)).collect()
}

/// All maximal old regions in whole characters, each at its smallest place.
pub(super) fn maximal(old: &[u8], new: &[u8]) -> Vec<Region> {
    trimmed(new, &byte_maximal(old, new))
        .into_iter()
        .map(|(start, end)| Region {
            start: start as u32,
            end: end as u32,
            old_start: places(&new[start..end], old)[0] as u32,
        })
        .collect()
}

/// The regions that are kept, each at the place that is preferred.
pub(super) fn regions(old: &[u8], new: &[u8], min_len: u32, short_edges: bool) -> Vec<Region> {
    choose(old, new, &maximal(old, new), min_len, short_edges)
}

/// The same, the maximal ones given.
pub(super) fn choose(old: &[u8], new: &[u8], maximal: &[Region], min_len: u32, short_edges: bool) -> Vec<Region> {
    let mut kept: Vec<Region> = Vec::new();
    for &region in maximal {
        let text = &new[region.span().range()];
        let places = places(text, old);
        let at_start = region.start == 0 && places.contains(&0);
        let old_end = old.len() - text.len();
        let at_end = region.end as usize == new.len() && places.contains(&old_end);
        if region.len() < min_len && !(short_edges && (at_start || at_end)) {
            continue;
        }
        let same_shift = kept.last().map(|before| i64::from(region.start) - before.shift());
        let same_shift = same_shift.and_then(|place| places.iter().copied().find(|&other| other as i64 == place));
        let place = if at_start {
            0
        } else if at_end {
            old_end
        } else {
            same_shift.unwrap_or(places[0])
        };
        kept.push(Region { old_start: place as u32, ..region });
    }
    kept
}
