//! Ends a worker with all that it started, whatever happens to us.
//!
//! A worker that hangs does not notice that its input has ended, and ending the shell of `sh -c …` leaves what the shell
//! has started. So every worker has a minder: a shell that leads a process group, in which the worker runs too, and that
//! waits for the end of a pipe whose other end only we hold. When it comes, the minder kills the group. The pipe ends when
//! the minder is dropped, and also when we end, in whatever way: no signal has to be caught, and `kill -9` is no exception.
//! (A signal at the death of the parent would reach the worker alone, and would come when the thread that started it ends.)
//!
//! In a group of its own a worker does not get the Ctrl-C that is meant for us either, and so answers what is asked until
//! we end. What leaves its group by itself, as daemons do, is not found.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// Nothing is ever written to the pipe, so `read` returns when it ends. Group 0 is its own.
const SCRIPT: &str = "trap '' HUP INT TERM; read -r _; kill -KILL 0";

pub(super) struct Minder {
    shell: Child,
}

impl Minder {
    pub(super) fn start() -> io::Result<Self> {
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "ratoon-minder"])
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { shell })
    }

    /// The process group that it ends.
    pub(super) fn group(&self) -> i32 {
        i32::try_from(self.shell.id()).expect("a process id")
    }
}

impl Drop for Minder {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It ends itself with the group. An error means that it is gone already.
        _ = self.shell.wait();
    }
}
