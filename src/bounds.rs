//! How much is taken from foreign bytes at most. What is larger does not occur in real archives; what is made to be so
//! would keep a machine busy for hours or fill its memory.
//!
//! A body has a largest size, alone ([`MAX_BODY`]) and by the bytes that it was packed into, over all its encodings
//! together ([`most_unpacked`]). Large bodies are read one at a time over all threads ([`in_turn`]), so that memory does
//! not grow with threads: whoever unpacks calls [`before_growing`], and the body's turn ends with its capture.

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Larger records and bodies are passed over: a page of this size is no page.
pub(crate) const MAX_BODY: usize = 512 << 20;
/// Bytes that compressed data may have, however few bytes they are packed into.
const FREE: u64 = 16 << 20;
/// Unpacked bytes per packed byte, beyond `FREE`. Deflate reaches 1032 on constant input.
pub(crate) const MAX_RATIO: u64 = 1000;
/// Bodies that have more bytes than this wait for their turn.
pub(crate) const LARGE: usize = 32 << 20;

/// Whether unpacked data is so much larger than the bytes it came from that unpacking must stop.
pub(crate) fn grows_too_much(packed: u64, unpacked: u64) -> bool {
    unpacked > FREE && unpacked / MAX_RATIO > packed
}

/// The largest size that data packed into so many bytes can have and still be used.
pub(crate) fn most_unpacked(packed: u64) -> u64 {
    FREE.max(packed.saturating_mul(MAX_RATIO))
}

static TURN: Mutex<()> = Mutex::new(());

/// What a thread has of the turn while it is inside [`in_turn`].
#[derive(Default)]
enum Turn {
    #[default]
    Outside,
    NotNeeded,
    Has {
        _guard: MutexGuard<'static, ()>,
    },
}

thread_local! {
    static MINE: RefCell<Turn> = const { RefCell::new(Turn::Outside) };
}

/// Reads some captures and uses them up. Where one of them is large, all other threads that meet a large one wait until
/// this is done. It must not wait for another thread that is at the same.
pub(crate) fn in_turn<T>(work: impl FnOnce() -> T) -> T {
    /// Ends the turn also where the work panics.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            MINE.set(Turn::Outside);
        }
    }
    if MINE.with_borrow(|mine| !matches!(mine, Turn::Outside)) {
        return work();
    }
    MINE.set(Turn::NotNeeded);
    let _end = End;
    work()
}

/// To be called before a body grows to so many bytes: waits if it becomes large while another thread is at a large one.
/// Outside of [`in_turn`] nobody waits.
pub(crate) fn before_growing(bytes: usize) {
    if bytes > LARGE && MINE.with_borrow(|mine| matches!(mine, Turn::NotNeeded)) {
        let guard = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        MINE.set(Turn::Has { _guard: guard });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn large_bodies_come_one_at_a_time_and_small_ones_do_not_wait() {
        let (at_once, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let small = AtomicUsize::new(0);
        let grow = || {
            before_growing(LARGE + 1);
            before_growing(2 * LARGE);
            most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(20));
            at_once.fetch_sub(1, Ordering::SeqCst);
        };
        let body = |is_large: bool| {
            before_growing(LARGE);
            small.fetch_add(1, Ordering::SeqCst);
            if is_large {
                grow();
            }
        };
        thread::scope(|scope| {
            for i in 0..8 {
                let body = &body;
                scope.spawn(move || in_turn(|| body(i % 2 == 0)));
            }
        });
        assert_eq!((most.into_inner(), small.into_inner()), (1, 8));
    }

    #[test]
    fn a_turn_ends_with_its_work_also_by_a_panic() {
        let panicked = thread::spawn(|| {
            in_turn(|| {
                before_growing(LARGE + 1);
                panic!("a test");
            });
        });
        assert!(panicked.join().is_err());
        in_turn(|| in_turn(|| before_growing(LARGE + 1)));
        // Whoever reads outside of turns keeps nobody waiting.
        before_growing(LARGE + 1);
        thread::spawn(|| in_turn(|| before_growing(LARGE + 1))).join().unwrap();
    }
}
