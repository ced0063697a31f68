//! Readers of Parquet and Arrow panic where parts of what they read contradict each other. Here that is an error like any
//! other, told once and in its place.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{Result, StoreError};

/// Threads of polars, which reads for others.
const THEIRS: &str = "polars-";

/// How many such readers are at work.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);
static HOOK: Once = Once::new();

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// Reads a file that may be damaged.
pub(super) fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    without_panic(read, |problem| StoreError::Damaged { path: path.to_owned(), problem })
}

/// Reads Parquet or Arrow that may be damaged.
pub(super) fn without_panic<T, E>(
    read: impl FnOnce() -> Result<T, E>,
    damaged: impl FnOnce(String) -> E,
) -> Result<T, E> {
    HOOK.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !is_expected() {
                tell(panic);
            }
        }));
    });
    AT_WORK.fetch_add(1, Ordering::SeqCst);
    HERE.set(HERE.get() + 1);
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    HERE.set(HERE.get() - 1);
    AT_WORK.fetch_sub(1, Ordering::SeqCst);
    read.unwrap_or_else(|_| Err(damaged("its parts contradict each other".to_owned())))
}

/// Whether a panic of this thread is caught here.
fn is_expected() -> bool {
    let theirs = || thread::current().name().is_some_and(|name| name.starts_with(THEIRS));
    HERE.get() > 0 || AT_WORK.load(Ordering::SeqCst) > 0 && theirs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_caught_is_kept_quiet() {
        assert!(!is_expected());
        let read = without_panic(
            || {
                assert!(is_expected());
                assert!(!thread::spawn(is_expected).join().unwrap(), "another thread, another matter");
                let polars = thread::Builder::new().name("polars-7".into()).spawn(is_expected).unwrap();
                assert!(polars.join().unwrap());
                if HERE.get() == 1 { panic!("a test") } else { Ok(()) }
            },
            |problem| problem,
        );
        assert_eq!(read, Err("its parts contradict each other".to_owned()));
        assert!(!is_expected());
        assert_eq!(without_panic(|| Ok::<_, String>(7), |problem| problem), Ok(7));
    }
}
