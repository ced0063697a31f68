//! What a sample of pages tells of all of them: shares, with 95 % intervals.
//!
//! **Problem.** A trial looks at some pages and counts mentions: of those that either extractor finds, how many do both
//! find? Mentions of a page go together, some pages have many and most have none, and a share is often near 1, where
//! "plus or minus two standard errors" is wrong.
//!
//! **Idea.** Pages are put into strata by how many mentions they have, and drawn at random in each. A share is a ratio of
//! two weighted sums; its variance is that of the pages' residuals within strata (Cochran, "Sampling Techniques",
//! 1977, section 6.10). The interval is that of Clopper and Pearson for as many independent mentions as would have the
//! same variance (Korn and Graubard, "Confidence intervals for proportions with small expected number of positive
//! counts", 1998), which keeps its word near 0 and 1. It is rather too wide than too narrow: that a stratum was looked at
//! almost wholly is not counted in its favour.

/// What one page of a sample counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PageCount {
    pub(crate) stratum: usize,
    pub(crate) part: u64,
    /// At least `part`.
    pub(crate) whole: u64,
}

/// A share of all pages' counts, and the 95 % interval that it lies in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    pub(crate) share: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Share {
    /// What is known without any doubt.
    #[must_use]
    pub(crate) fn exact(share: f64) -> Self {
        Self { share, low: share, high: share }
    }
}

/// Standard normal deviate of a 95 % interval.
const Z: f64 = 1.959_964;
/// What each end of the interval leaves out.
const TAIL: f64 = 0.025;

/// The share of `part` in `whole` over all pages, from a sample of them. `sizes`: how many pages each stratum has. `None`
/// if the sample has nothing to count.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts")]
pub(crate) fn share(pages: &[PageCount], sizes: &[u64]) -> Option<Share> {
    let mut drawn = vec![0u64; sizes.len()];
    pages.iter().for_each(|page| drawn[page.stratum] += 1);
    let weight = |page: &PageCount| sizes[page.stratum] as f64 / drawn[page.stratum] as f64;
    let part: f64 = pages.iter().map(|page| weight(page) * page.part as f64).sum();
    let whole: f64 = pages.iter().map(|page| weight(page) * page.whole as f64).sum();
    if whole <= 0.0 {
        return None;
    }
    let share = (part / whole).clamp(0.0, 1.0);
    let mut residuals: Vec<Vec<f64>> = vec![Vec::new(); sizes.len()];
    for page in pages {
        residuals[page.stratum].push(weight(page) * (page.part as f64 - share * page.whole as f64));
    }
    let variance: f64 = residuals.iter().map(|of| spread(of)).sum::<f64>() / (whole * whole);
    let counted: f64 = pages.iter().map(|page| page.whole as f64).sum();
    let saying = pages.iter().filter(|page| page.whole > 0).count() as f64;
    let says = |stratum: usize| pages.iter().any(|page| page.stratum == stratum && page.whole > 0);
    let strata = (0..sizes.len()).filter(|&stratum| says(stratum)).count() as f64;
    let freedom = (saying - strata).max(1.0);
    // Where all pages say the same there is no variance to go by: each of them counts once.
    let alike = if variance > 0.0 { share * (1.0 - share) / variance } else { saying };
    let independent = alike.min(counted) * (Z / student(freedom)).powi(2);
    let (low, high) = clopper_pearson(share * independent, independent);
    Some(Share { share, low: low.min(share), high: high.max(share) })
}

/// What the residuals of a stratum add to the variance of a sum. One page alone says nothing of it but its own size.
#[expect(clippy::cast_precision_loss, reason = "counts")]
fn spread(residuals: &[f64]) -> f64 {
    let n = residuals.len() as f64;
    if residuals.len() < 2 {
        return residuals.iter().map(|residual| residual * residual).sum();
    }
    let mean = residuals.iter().sum::<f64>() / n;
    n / (n - 1.0) * residuals.iter().map(|residual| (residual - mean).powi(2)).sum::<f64>()
}

/// Student's deviate of a 95 % interval, by its expansion around the normal one.
fn student(freedom: f64) -> f64 {
    let (z, z3, z5) = (Z, Z.powi(3), Z.powi(5));
    let first = (z3 + z) / 4.0;
    let second = (5.0 * z5 + 16.0 * z3 + 3.0 * z) / 96.0;
    z + first / freedom + second / (freedom * freedom)
}

/// The interval for a share when `x` of `n` independent ones have it; neither need be whole.
fn clopper_pearson(x: f64, n: f64) -> (f64, f64) {
    let low = if x <= 0.0 { 0.0 } else { beta_quantile(TAIL, x, n - x + 1.0) };
    let high = if x >= n { 1.0 } else { beta_quantile(1.0 - TAIL, x + 1.0, n - x) };
    (low, high)
}

/// Where the distribution function of Beta(a, b) is `p`.
fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if beta_distribution(middle, a, b) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The regularised incomplete beta function, by its continued fraction.
fn beta_distribution(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on this side of the mean; the other side is the mirror image.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_distribution(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    let away_from_0 = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / away_from_0(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..300 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / away_from_0(1.0 + term * d);
            c = away_from_0(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction - before).abs() < 1e-14 * fraction.abs() {
            break;
        }
    }
    front * fraction
}

/// The logarithm of the gamma function, for arguments above 0: Stirling's series, from where it is good enough.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 12.0 {
        below += x.ln();
        x += 1.0;
    }
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - below
}

/// Which stratum each page belongs to, by its mentions: 0 has those without any, 1 to 3 the thirds of the others.
#[must_use]
pub(crate) fn strata(mentions: &[u64]) -> Vec<usize> {
    let mut some: Vec<u64> = mentions.iter().copied().filter(|&count| count > 0).collect();
    some.sort_unstable();
    let at = |third: usize| some.get(some.len() * third / 3).copied().unwrap_or(u64::MAX);
    let (second, last) = (at(1), at(2));
    let stratum = |&count: &u64| match count {
        0 => 0,
        count => 1 + usize::from(count > second) + usize::from(count > last),
    };
    mentions.iter().map(stratum).collect()
}

/// How many pages of each stratum are looked at: two of each at least, more where there are more pages and mentions.
/// `mentions`: of all pages of each stratum.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts")]
pub(crate) fn allocate(sizes: &[u64], mentions: &[u64], pages: u64) -> Vec<u64> {
    let mut drawn: Vec<u64> = sizes.iter().map(|&size| size.min(2)).collect();
    // Counts vary as their roots do.
    let worth = |i: usize| sizes[i] as f64 + (sizes[i] as f64 * mentions[i] as f64).sqrt();
    while drawn.iter().sum::<u64>() < pages {
        let open = (0..sizes.len()).filter(|&i| drawn[i] < sizes[i]);
        let next = open.max_by(|&a, &b| (worth(a) / drawn[a] as f64).total_cmp(&(worth(b) / drawn[b] as f64)));
        let Some(next) = next else { break };
        drawn[next] += 1;
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Rng;

    #[test]
    fn known_values() {
        // Of 10, none, 3 and all: as tables of binomial intervals have it.
        for (x, low, high) in [(0.0, 0.0, 0.308_497), (3.0, 0.066_740, 0.652_453), (10.0, 0.691_503, 1.0)] {
            let found = clopper_pearson(x, 10.0);
            assert!((found.0 - low).abs() < 1e-5 && (found.1 - high).abs() < 1e-5, "{x}: {found:?}");
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-10);
        assert!((ln_gamma(11.0) - 3_628_800f64.ln()).abs() < 1e-9);
        assert!((student(10.0) - 2.228_139).abs() < 5e-3 && (student(60.0) - 2.000_298).abs() < 1e-4);
    }

    #[test]
    fn a_sample_that_agrees_wholly_leaves_what_its_pages_leave() {
        let pages: Vec<PageCount> = (0..100).map(|_| PageCount { stratum: 0, part: 7, whole: 7 }).collect();
        let found = share(&pages, &[1000]).unwrap();
        assert!((found.share - 1.0).abs() < 1e-12 && (0.96..0.97).contains(&found.low), "{found:?}");
        assert_eq!(share(&[PageCount { stratum: 0, part: 0, whole: 0 }], &[1]), None);
    }

    #[test]
    fn strata_go_by_mentions_and_each_is_looked_at() {
        let mentions: Vec<u64> = (0..100).map(|i| if i < 70 { 0 } else { i - 69 }).collect();
        let of = strata(&mentions);
        let sizes: Vec<u64> = (0..4).map(|s| of.iter().filter(|&&o| o == s).count() as u64).collect();
        assert_eq!(sizes.iter().sum::<u64>(), 100);
        assert!(sizes.iter().all(|&size| size >= 8) && sizes[0] == 70, "{sizes:?}");
        let sums: Vec<u64> =
            (0..4).map(|s| mentions.iter().zip(&of).filter(|(_, o)| **o == s).map(|(m, _)| m).sum()).collect();
        let drawn = allocate(&sizes, &sums, 30);
        assert_eq!(drawn.iter().sum::<u64>(), 30);
        assert!(drawn.iter().zip(&sizes).all(|(drawn, size)| *drawn >= 2 && drawn <= size), "{drawn:?}");
        assert_eq!(allocate(&sizes, &sums, 1000), sizes, "there are no more than there are");
        assert_eq!(allocate(&[0, 1], &[0, 5], 10), [0, 1]);
    }

    /// A corpus in which two requests are both answered with a mention, or one of them, with planted chances; some pages
    /// are worse than others. Returns whether the interval of a sample has the share that holds for all.
    fn covers(seed: u64, noise: f64, pages: u64) -> bool {
        let mut rng = Rng::keyed(&[seed, noise.to_bits(), pages]);
        let total = 2000;
        let all: Vec<(u64, f64)> = (0..total)
            .map(|_| {
                let mentions = if rng.unit() < 0.4 { 0 } else { 25 / (1 + rng.number() % 25) };
                (mentions, (noise * 2.0 * rng.unit()).min(0.9))
            })
            .collect();
        // A mention is left out of an answer with chance q: of those in either of two, (1 - q) / (1 + q) are in both.
        let expected = |part: fn(f64) -> f64| all.iter().map(|(m, q)| *m as f64 * part(*q)).sum::<f64>();
        let truth = expected(|q| (1.0 - q) * (1.0 - q)) / expected(|q| 1.0 - q * q);
        let counts: Vec<u64> = all.iter().map(|(mentions, _)| *mentions).collect();
        let of = strata(&counts);
        let sizes: Vec<u64> = (0..4).map(|s| of.iter().filter(|&&o| o == s).count() as u64).collect();
        let sums: Vec<u64> =
            (0..4).map(|s| counts.iter().zip(&of).filter(|(_, o)| **o == s).map(|(c, _)| c).sum()).collect();
        let mut left = allocate(&sizes, &sums, pages);
        let mut order: Vec<(u64, usize)> = (0..all.len()).map(|i| (rng.number(), i)).collect();
        order.sort_unstable();
        let mut sample = Vec::new();
        for (_, i) in order {
            if left[of[i]] == 0 {
                continue;
            }
            left[of[i]] -= 1;
            let (mut part, mut whole) = (0, 0);
            for _ in 0..all[i].0 {
                let (first, second) = (rng.unit() >= all[i].1, rng.unit() >= all[i].1);
                part += u64::from(first && second);
                whole += u64::from(first || second);
            }
            sample.push(PageCount { stratum: of[i], part, whole });
        }
        share(&sample, &sizes).is_some_and(|found| found.low <= truth && truth <= found.high)
    }

    /// Of runs with other seeds, so that a hundred that are lucky, or not, do not decide.
    const RUNS: u64 = 500;

    #[test]
    fn intervals_cover_planted_shares_in_at_least_93_of_100_runs() {
        for (noise, pages) in [(0.002, 100), (0.02, 30), (0.02, 100), (0.1, 100), (0.1, 20), (0.4, 60)] {
            let covered = (0..RUNS).filter(|&run| covers(run, noise, pages)).count() as u64;
            assert!(covered * 100 >= 93 * RUNS, "noise {noise}, {pages} pages: {covered} of {RUNS}");
        }
    }
}
