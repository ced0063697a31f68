//! The shards of a snapshot: worked on by all threads, a few at a time, and taken in order.
//!
//! At most as many results wait as there are threads, so memory does not grow with the number of shards, and what is
//! written does not depend on the number of threads.

use anyhow::Result;
use rayon::prelude::*;

use super::progress::Bar;

/// Does `work` on all shards in parallel and gives each result to `take`, by shard.
pub(crate) fn in_order<T: Send>(
    shards: u32,
    bar: Option<&Bar>,
    work: impl Fn(u32) -> Result<T> + Sync,
    mut take: impl FnMut(u32, T) -> Result<()>,
) -> Result<()> {
    let all: Vec<u32> = (0..shards).collect();
    for wave in all.chunks(rayon::current_num_threads().max(1)) {
        let results: Vec<(u32, Result<T>)> = wave.par_iter().map(|&shard| (shard, work(shard))).collect();
        for (shard, result) in results {
            take(shard, result?)?;
            if let Some(bar) = bar {
                bar.add(1);
            }
        }
    }
    Ok(())
}

/// The results of all shards, by shard.
pub(crate) fn all<T: Send>(shards: u32, work: impl Fn(u32) -> Result<T> + Sync) -> Result<Vec<T>> {
    let mut results = Vec::new();
    in_order(shards, None, work, |_, result| {
        results.push(result);
        Ok(())
    })?;
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_by_shard_and_the_first_error_ends_it() {
        assert_eq!(all(40, |shard| Ok(shard * 2)).unwrap(), (0..40).map(|shard| shard * 2).collect::<Vec<_>>());
        let mut taken = Vec::new();
        let odd = |shard: u32| if shard == 9 { Err(anyhow::anyhow!("nine")) } else { Ok(()) };
        let error = in_order(40, None, odd, |shard, ()| {
            taken.push(shard);
            Ok(())
        });
        assert_eq!(error.unwrap_err().to_string(), "nine");
        assert_eq!(taken, (0..9).collect::<Vec<_>>());
    }
}
