//! Reads a snapshot to its end, on all threads.
//!
//! A thread takes a batch of captures while it holds the lock of a reader, then works on them without the lock. With more
//! readers than threads each thread has one of its own; with fewer, threads take turns at them. Large files come as
//! several readers. Memory: one batch per thread, whatever the size of the archive, and one large body (`bounds`).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use crate::archive::CaptureReader;
use crate::bounds;
use crate::model::{Body, RawCapture, Reject};
use crate::run::progress::Bar;

/// A batch is handed over when it holds this many bytes or captures.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_CAPTURES: usize = 256;

/// What one thread does with the captures that it takes. Which thread gets which is chance, and no result may depend
/// on it.
pub(super) trait Sink: Send {
    /// Captures, each with its position in its reader.
    fn captures(&mut self, batch: Vec<(RawCapture, u64)>) -> Result<()>;
    fn reject(&mut self, reject: Reject);
}

struct Turn {
    reader: Box<dyn CaptureReader>,
    sequence: u64,
    bytes_shown: u64,
    ended: bool,
}

/// What all threads made of the captures.
pub(super) struct Drained<S> {
    /// One per thread.
    pub(super) sinks: Vec<S>,
    /// A file was cut at a place where no record begins: what the sinks hold is worth nothing.
    pub(super) misread: bool,
}

/// Reads everything.
pub(super) fn drain<S: Sink>(
    readers: Vec<Box<dyn CaptureReader>>,
    sink: impl Fn() -> S + Sync,
    bar: &Bar,
) -> Result<Drained<S>> {
    let turn = |reader| Mutex::new(Turn { reader, sequence: 0, bytes_shown: 0, ended: false });
    let turns: Vec<Mutex<Turn>> = readers.into_iter().map(turn).collect();
    let next = AtomicUsize::new(0);
    let misread = AtomicBool::new(false);
    let failed = Mutex::new(None);
    let sinks = Mutex::new(Vec::new());
    let workers = rayon::current_num_threads();
    rayon::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|_| {
                let mut sink = sink();
                if let Err(error) = run(&mut sink, &turns, &next, &misread, bar) {
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
                sinks.lock().unwrap_or_else(PoisonError::into_inner).push(sink);
            });
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(Drained {
            sinks: sinks.into_inner().unwrap_or_else(PoisonError::into_inner),
            misread: misread.into_inner(),
        }),
    }
}

fn run(sink: &mut impl Sink, turns: &[Mutex<Turn>], next: &AtomicUsize, misread: &AtomicBool, bar: &Bar) -> Result<()> {
    // First the readers that no other thread has begun, then a turn at each that is not at its end.
    loop {
        let own = next.fetch_add(1, Ordering::Relaxed);
        if own >= turns.len() {
            break;
        }
        while take_turn(sink, &turns[own], misread, bar)? {}
    }
    for turn in turns {
        while take_turn(sink, turn, misread, bar)? {}
    }
    Ok(())
}

/// Reads and processes a batch; `false` at the end of the reader. A large body ends its batch, so that whoever has the
/// turn of large ones waits for no reader.
fn take_turn(sink: &mut impl Sink, turn: &Mutex<Turn>, misread: &AtomicBool, bar: &Bar) -> Result<bool> {
    bounds::in_turn(|| take_batch(sink, turn, misread, bar))
}

fn take_batch(sink: &mut impl Sink, turn: &Mutex<Turn>, misread: &AtomicBool, bar: &Bar) -> Result<bool> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    {
        let mut turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        while !turn.ended && bytes < BATCH_BYTES && batch.len() < BATCH_CAPTURES {
            match turn.reader.next() {
                None => {
                    turn.ended = true;
                    misread.fetch_or(turn.reader.misread(), Ordering::Relaxed);
                }
                Some(Err(reject)) => sink.reject(reject),
                Some(Ok(capture)) => {
                    if let Body::Bytes(body) = &capture.body {
                        bytes += body.len();
                    }
                    batch.push((capture, turn.sequence));
                    turn.sequence += 1;
                }
            }
        }
        let read = turn.reader.bytes_read();
        bar.add(read.saturating_sub(turn.bytes_shown));
        turn.bytes_shown = read.max(turn.bytes_shown);
    }
    if batch.is_empty() {
        return Ok(false);
    }
    sink.captures(batch)?;
    Ok(true)
}
