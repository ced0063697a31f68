//! The shards of a snapshot: worked on by all threads, a few at a time, and taken in order.
//!
//! A thread that is done with a shard goes on with the next, also while an earlier one takes long: up to twice as many shards
//! as there are threads are worked on or wait to be taken. So memory does not grow with the number of shards, and what is
//! written does not depend on the number of threads.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use anyhow::Result;

use super::hands::{Hands, Pass};
use super::progress::Bar;
use super::stage::Context;
use crate::store::parquet::{EncodedGroup, Encoder, GROUP_ROWS, PartitionWriter};
use crate::store::passes::Parcel;
use crate::tables::record::Record;

/// Shards of a snapshot that are worked on one by one.
#[derive(Clone, Copy)]
pub(crate) struct Shards<'a> {
    pub(crate) count: u32,
    pub(crate) bar: Option<&'a Bar>,
    /// At most so many are worked on or wait to be taken.
    ahead: u32,
}

impl<'a> Shards<'a> {
    pub(crate) fn new(count: u32, bar: Option<&'a Bar>) -> Self {
        let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(u32::MAX);
        Self { count, bar, ahead: threads.max(1).saturating_mul(2) }
    }

    /// All of them may wait: where work means waiting for others, no thread should stand still for memory's sake.
    #[must_use]
    pub(crate) fn all_at_once(self) -> Self {
        Self { ahead: self.count.max(1), ..self }
    }
}

/// Does `work` on all shards in parallel and gives each result to `take`, by shard.
pub(crate) fn in_order<T: Send>(
    shards: Shards<'_>,
    work: impl Fn(u32) -> Result<T> + Sync,
    mut take: impl FnMut(u32, T) -> Result<()>,
) -> Result<()> {
    let Shards { count, bar, ahead } = shards;
    let mut take = |shard: u32, result: Result<T>| -> Result<()> {
        take(shard, result?)?;
        if let Some(bar) = bar {
            bar.add(1);
        }
        Ok(())
    };
    if rayon::current_num_threads() <= 1 {
        return (0..count).try_for_each(|shard| take(shard, work(shard)));
    }
    let (send, results) = mpsc::channel();
    let is_over = AtomicBool::new(false);
    let done = |shard: u32| {
        // A panic is told like a result: else it would be waited for.
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(shard)));
        // Nobody listens after an error.
        let _ = send.send((shard, result));
    };
    let (is_over, done) = (&is_over, &done);
    rayon::in_place_scope_fifo(|scope| {
        let begin = |shard: u32| {
            scope.spawn_fifo(move |_| {
                if !is_over.load(Ordering::Relaxed) {
                    done(shard);
                }
            });
        };
        (0..count.min(ahead)).for_each(begin);
        let mut early = BTreeMap::new();
        let taken = (0..count).try_for_each(|shard| {
            let result = result_of(shard, &results, &mut early).unwrap_or_else(|panic| {
                is_over.store(true, Ordering::Relaxed);
                panic::resume_unwind(panic)
            });
            take(shard, result)?;
            if count - shard > ahead {
                begin(shard + ahead);
            }
            Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        taken
    })
}

type Done<T> = Result<T, Box<dyn Any + Send>>;

/// The result of a shard, as soon as it is there; those that come before it wait in `early`.
fn result_of<T>(shard: u32, results: &Receiver<(u32, Done<T>)>, early: &mut BTreeMap<u32, Done<T>>) -> Done<T> {
    loop {
        if let Some(result) = early.remove(&shard) {
            return result;
        }
        early.extend(next(results));
    }
}

/// What comes next, if anything does within a moment. A thread that others need for their work does some of it meanwhile.
fn next<T>(results: &Receiver<T>) -> Option<T> {
    match results.try_recv() {
        Ok(result) => Some(result),
        Err(_) => match rayon::yield_now() {
            Some(rayon::Yield::Executed) => None,
            Some(rayon::Yield::Idle) => results.recv_timeout(Duration::from_millis(1)).ok(),
            None => results.recv().ok(),
        },
    }
}

/// Writes rows of all shards, which are made and packed in parallel.
pub(crate) fn written<T: Record>(
    writer: &mut PartitionWriter<T>,
    count: u32,
    rows: impl Fn(u32) -> Result<Vec<T>> + Sync,
) -> Result<()> {
    let encoder = writer.encoder();
    in_order(
        Shards::new(count, None),
        |shard| packed(&encoder, shard, &rows(shard)?),
        |_, groups| groups.into_iter().try_for_each(|group| Ok(writer.append(group)?)),
    )
}

/// The rows of a shard, in as many row groups as they need.
pub(crate) fn packed<T: Record>(encoder: &Encoder<T>, shard: u32, rows: &[T]) -> Result<Vec<EncodedGroup>> {
    rows.chunks(GROUP_ROWS).map(|part| Ok(encoder.encode(shard, part)?)).collect()
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
    shards: Shards<'_>,
    work: impl Fn(u32) -> Result<T> + Sync,
    handing: &Handing<impl Fn(T) -> Result<Parcel>, impl Fn(u32, Parcel) -> Result<T> + Sync>,
    take: impl FnMut(u32, T) -> Result<()>,
) -> Result<()> {
    match context.hands {
        Hands::Others(others) if shards.count > 0 => {
            let folder = others.folder(pass, true);
            if !folder.is_complete() {
                return Err(others.need(pass, true, shards.count));
            }
            let unpack = &handing.unpack;
            in_order(shards, |shard| unpack(shard, folder.parcel(shard)?), take)
        }
        Hands::Worker(worker) => worker.shards(|shard| (handing.pack)(work(shard)?)),
        Hands::Own | Hands::Others(_) => in_order(shards, work, take),
    }
}

/// The results of all shards, by shard.
pub(crate) fn all<T: Send>(shards: u32, work: impl Fn(u32) -> Result<T> + Sync) -> Result<Vec<T>> {
    let mut results = Vec::new();
    in_order(Shards::new(shards, None), work, |_, result| {
        results.push(result);
        Ok(())
    })?;
    Ok(results)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn results_come_by_shard_and_the_first_error_ends_it() {
        assert_eq!(all(40, |shard| Ok(shard * 2)).unwrap(), (0..40).map(|shard| shard * 2).collect::<Vec<_>>());
        assert_eq!(all(0, |_| Ok(())).unwrap(), Vec::<()>::new());
        let mut taken = Vec::new();
        let odd = |shard: u32| if shard == 9 { Err(anyhow::anyhow!("nine")) } else { Ok(()) };
        let error = in_order(Shards::new(40, None), odd, |shard, ()| {
            taken.push(shard);
            Ok(())
        });
        assert_eq!(error.unwrap_err().to_string(), "nine");
        assert_eq!(taken, (0..9).collect::<Vec<_>>());
    }

    /// On threads of its own, whatever the machine has.
    fn with_threads<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
    }

    #[test]
    fn a_shard_that_takes_long_holds_up_no_more_than_memory_demands() {
        // The first is done only when others are: those that may be ahead of it.
        let done = AtomicU32::new(0);
        let wait_for = |others: u32| {
            while done.load(Ordering::SeqCst) < others {
                std::thread::yield_now();
            }
        };
        let work = |others: u32| {
            let (done, wait_for) = (&done, &wait_for);
            move |shard: u32| {
                if shard == 0 {
                    wait_for(others);
                }
                done.fetch_add(1, Ordering::SeqCst);
                Ok(shard)
            }
        };
        let order = Mutex::new(Vec::new());
        let take = |shard: u32, _: u32| {
            order.lock().unwrap().push(shard);
            Ok(())
        };
        with_threads(2, || in_order(Shards::new(16, None), work(3), take)).unwrap();
        done.store(0, Ordering::SeqCst);
        with_threads(2, || in_order(Shards::new(16, None).all_at_once(), work(15), take)).unwrap();
        assert_eq!(*order.lock().unwrap(), (0..16).chain(0..16).collect::<Vec<_>>());
    }

    #[test]
    fn no_more_shards_wait_than_are_allowed() {
        let (begun, taken) = (AtomicU32::new(0), AtomicU32::new(0));
        let most = AtomicU32::new(0);
        let work = |_| {
            let open = begun.fetch_add(1, Ordering::SeqCst) + 1 - taken.load(Ordering::SeqCst);
            most.fetch_max(open, Ordering::SeqCst);
            Ok(())
        };
        let take = |_, ()| {
            taken.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        with_threads(2, || in_order(Shards::new(64, None), work, take)).unwrap();
        assert!(most.load(Ordering::SeqCst) <= 4, "{most:?}");
    }

    #[test]
    fn a_panic_in_a_shard_is_one_here() {
        let work = |shard: u32| if shard == 5 { panic!("five") } else { Ok(()) };
        let run = || with_threads(3, || in_order(Shards::new(16, None), work, |_, ()| Ok(())));
        let panic = panic::catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"five"));
    }
}
