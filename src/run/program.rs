//! Programs that are told something: one JSON object on standard input. One that fails or hangs never hurts the run.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// How much of a program's complaint is shown.
const COMPLAINT: u64 = 2_000;

/// Starts a program in `folder`, gives it the message, and waits for its end. The error says what went wrong.
pub(crate) fn tell(
    command: &[String],
    timeout: Duration,
    folder: &Path,
    message: &serde_json::Value,
) -> Result<(), String> {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start it: {error}"))?;
    let line = format!("{message}\n");
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input must not hold up the run.
        thread::spawn(move || {
            let _ = stdin.write_all(line.as_bytes());
        });
    }
    let (said, complaint) = channel();
    if let Some(mut stderr) = child.stderr.take() {
        thread::spawn(move || {
            let mut words = Vec::new();
            let _ = stderr.by_ref().take(COMPLAINT).read_to_end(&mut words);
            let _ = said.send(String::from_utf8_lossy(&words).trim().to_owned());
            // The rest is read and dropped, so that a full pipe does not block the program.
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        });
    }
    let until = Instant::now() + timeout;
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                let words = complaint.recv_timeout(Duration::from_millis(200)).unwrap_or_default();
                let last: String = words.lines().last().unwrap_or_default().replace(char::is_control, " ");
                return Err(if last.is_empty() { status.to_string() } else { format!("{status}: {last}") });
            }
            Ok(None) if Instant::now() >= until => {
                // An error means that the program has ended already.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no end after {} s; stopped", timeout.as_secs()));
            }
            Ok(None) => thread::sleep(pause),
            Err(error) => return Err(error.to_string()),
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, timeout: Duration) -> Result<(), String> {
        let command = ["sh", "-c", script].map(str::to_owned);
        tell(&command, timeout, Path::new("."), &serde_json::json!({"text": "x".repeat(200_000)}))
    }

    #[test]
    fn failures_say_why() {
        let long = Duration::from_secs(20);
        assert_eq!(sh("cat > /dev/null", long), Ok(()));
        assert_eq!(sh("exit 0", long), Ok(()));
        assert_eq!(sh("echo no such room >&2; exit 3", long).unwrap_err(), "exit status: 3: no such room");
        assert_eq!(sh("yes >&2 & sleep 0.1; kill $!; cat > /dev/null; exit 1", long).unwrap_err(), "exit status: 1: y");
        assert!(sh("exec sleep 60", Duration::from_millis(100)).unwrap_err().contains("no end after"));
        let missing = ["no-such-program-here".to_owned()];
        assert!(tell(&missing, long, Path::new("."), &serde_json::Value::Null).unwrap_err().contains("cannot start"));
    }
}
