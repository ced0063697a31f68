//! The shards of a snapshot: worked on by all threads, a few at a time, and taken in order.
//!
//! Results of as many shards as there are threads are taken while the next are worked on, so memory does not grow with the
//! number of shards, and what is written does not depend on the number of threads.

use anyhow::Result;
use rayon::prelude::*;

use super::hands::{Hands, Pass};
use super::progress::Bar;
use super::stage::Context;
use crate::store::passes::Parcel;

/// Does `work` on all shards in parallel and gives each result to `take`, by shard.
pub(crate) fn in_order<T: Send>(
    shards: u32,
    bar: Option<&Bar>,
    work: impl Fn(u32) -> Result<T> + Sync,
    mut take: impl FnMut(u32, T) -> Result<()>,
) -> Result<()> {
    let threads = rayon::current_num_threads().max(1);
    let mut take = |(shard, result): (u32, Result<T>)| -> Result<()> {
        take(shard, result?)?;
        if let Some(bar) = bar {
            bar.add(1);
        }
        Ok(())
    };
    let all: Vec<u32> = (0..shards).collect();
    let mut done: Vec<(u32, Result<T>)> = Vec::new();
    for wave in all.chunks(threads) {
        let mut next = Vec::with_capacity(wave.len());
        let go_on = |next: &mut Vec<(u32, Result<T>)>| {
            wave.par_iter().map(|&shard| (shard, work(shard))).collect_into_vec(next);
        };
        let last = std::mem::take(&mut done);
        if threads == 1 {
            last.into_iter().try_for_each(&mut take)?;
            go_on(&mut next);
        } else {
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| go_on(&mut next));
                last.into_iter().try_for_each(&mut take)
            })?;
        }
        done = next;
    }
    done.into_iter().try_for_each(take)
}

/// How the result of a shard goes from the process that worked on it to the one that takes it.
pub(crate) struct Handing<P, U> {
    pub(crate) pack: P,
    pub(crate) unpack: U,
}

/// As [`in_order`], for work that others may do: see [`hands`](super::hands).
pub(crate) fn handed<T: Send>(
    context: &Context<'_>,
    pass: Pass,
    (shards, bar): (u32, Option<&Bar>),
    work: impl Fn(u32) -> Result<T> + Sync,
    handing: &Handing<impl Fn(T) -> Result<Parcel>, impl Fn(u32, Parcel) -> Result<T> + Sync>,
    take: impl FnMut(u32, T) -> Result<()>,
) -> Result<()> {
    match context.hands {
        Hands::Others(others) if shards > 0 => {
            let folder = others.folder(pass, true);
            if !folder.is_complete() {
                return Err(others.need(pass, true, shards));
            }
            let unpack = &handing.unpack;
            in_order(shards, bar, |shard| unpack(shard, folder.parcel(shard)?), take)
        }
        Hands::Worker(worker) => worker.shards(|shard| (handing.pack)(work(shard)?)),
        Hands::Own | Hands::Others(_) => in_order(shards, bar, work, take),
    }
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
