//! Progress bars on a terminal, nothing elsewhere. The only owner of indicatif.

use std::fmt;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Decides once whether anything is shown.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    shown: bool,
}

/// A bar in use; gone from the screen when dropped.
pub struct Bar(ProgressBar);

impl Progress {
    /// Bars on stderr if `wanted` and stderr is a terminal (indicatif looks).
    #[must_use]
    pub fn new(wanted: bool) -> Self {
        Self { shown: wanted }
    }

    /// A bar over bytes, with rate and remaining time.
    #[must_use]
    pub fn bytes(&self, what: &str, total: u64) -> Bar {
        self.bar(what, total, "{msg:32!} {bar:24} {bytes:>10}/{total_bytes:10} {bytes_per_sec:>12} {eta:>4} left")
    }

    /// A bar over things counted, with rate and remaining time.
    #[must_use]
    pub fn count(&self, what: &str, total: u64) -> Bar {
        self.bar(what, total, "{msg:32!} {bar:24} {human_pos:>10}/{human_len:10} {rate:>12} {eta:>4} left")
    }

    fn bar(&self, what: &str, total: u64, template: &str) -> Bar {
        let target = if self.shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let style = ProgressStyle::with_template(template).expect("the template is well formed");
        bar.set_style(style.with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            // Fails only if there is nowhere to show it.
            let _ = write!(out, "{:.1}/s", state.per_sec());
        }));
        bar.set_message(what.to_owned());
        if self.shown {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Bar(bar)
    }
}

impl Bar {
    pub fn add(&self, n: u64) {
        self.0.inc(n);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
