//! A temporary folder with a pipeline file, snapshots made by hand, and the program to run on them.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ratoon::inside::model::SnapshotId;
use ratoon::inside::store::Store;
use ratoon::inside::tables::record::Table;
use tempfile::TempDir;

pub(crate) struct Workspace {
    dir: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workspace {
    /// A pipeline file `p.toml` over `snapshots`, writing to `store`, with further lines of `[corpus]`.
    pub(crate) fn new(corpus: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("snapshots")).unwrap();
        let workspace = Self { dir };
        workspace.pipeline(corpus);
        workspace
    }

    /// A sample pipeline of the project as `p.toml`, over the sample data, writing to `store`.
    pub(crate) fn sample(name: &str) -> Self {
        let workspace = Self::new("");
        for entry in fs::read_dir(project().join("pipelines")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "py" || ending == "txt") {
                fs::copy(&path, workspace.path(path.file_name().unwrap().to_str().unwrap())).unwrap();
            }
        }
        let text = fs::read_to_string(project().join(format!("pipelines/{name}.toml"))).unwrap();
        let text = text
            .replace("\"../sample_data", &format!("\"{}/sample_data", project().display()))
            .replace(&format!("\"../out/{name}\""), "\"store\"");
        fs::write(workspace.path("p.toml"), text).unwrap();
        workspace
    }

    pub(crate) fn pipeline(&self, corpus: &str) {
        let text = format!("[corpus]\nsnapshots = 'snapshots'\nstore = 'store'\n{corpus}\n");
        fs::write(self.path("p.toml"), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn snapshot_dir(&self, id: &str) -> PathBuf {
        let dir = self.path("snapshots").join(id);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// Writes a snapshot in manifest layout: pages by path below `http://site.test/`.
    pub(crate) fn snapshot(&self, id: &str, pages: &[(&str, &str)]) {
        let dir = self.snapshot_dir(id);
        let mut manifest = String::new();
        for (i, (path, html)) in pages.iter().enumerate() {
            fs::write(dir.join(format!("{i}.html")), html).unwrap();
            let line = serde_json::json!({
                "url": format!("http://site.test/{path}"), "file": format!("{i}.html"), "status": 200,
                "content_type": "text/html; charset=utf-8",
            });
            writeln!(manifest, "{line}").unwrap();
        }
        fs::write(dir.join("manifest.jsonl"), manifest).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ratoon"));
        command.args(args).current_dir(self.dir.path());
        command
    }

    pub(crate) fn ratoon(&self, args: &[&str]) -> Ended {
        Ended::of(&self.command(args).output().unwrap())
    }

    /// How a command ended, and the most memory that it had, in megabytes.
    pub(crate) fn measured(&self, args: &[&str]) -> (i32, u64) {
        peak_of(self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Runs the pipeline; it must succeed.
    pub(crate) fn run(&self) -> Ended {
        self.ratoon(&["run", "p.toml"]).expect(0)
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.path("store")).unwrap().expect("there is a store")
    }

    /// All rows of a partition, in file order.
    pub(crate) fn rows<T: Table>(&self, snapshot: &str) -> Vec<T> {
        let id = SnapshotId::new(snapshot).unwrap();
        self.store().partition(T::NAME, &id).unwrap().all_rows().unwrap()
    }

    /// Starts a run again and again, each time killed a `step` later, until one ends by itself.
    pub(crate) fn kill_at_many_points(&self, args: &[&str], step: Duration) {
        for kills in 0..200 {
            let mut child = self.command(args).spawn().unwrap();
            std::thread::sleep(step * kills);
            let _ = child.kill();
            let status = child.wait().unwrap();
            if status.success() {
                assert!(kills > 3, "killed only {kills} times");
                return;
            }
            assert_eq!(status.signal(), Some(9), "it fails only because it is killed");
        }
        // On a busy machine it never came to its end.
        self.ratoon(args).expect(0);
    }

    /// Replaces the manifest file of a snapshot by one that says something else and is sound: its last field is a
    /// checksum of the others.
    pub(crate) fn write_manifest(&self, snapshot: &str, mut manifest: serde_json::Value) {
        manifest.as_object_mut().unwrap().remove("sum");
        let object = manifest.to_string();
        let sum = &blake3::hash(object.as_bytes()).to_hex()[..32];
        let sealed = format!("{},\"sum\":\"{sum}\"}}", object.strip_suffix('}').unwrap());
        fs::write(self.path(&format!("store/_meta/snapshots/{snapshot}.json")), sealed).unwrap();
    }

    /// Every file of the tables and heads with its bytes. Manifests hold timings, so they are left out.
    pub(crate) fn table_bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let root = self.path("store");
        let mut files: Vec<_> = walkdir::WalkDir::new(&root)
            .into_iter()
            .map(Result::unwrap)
            .filter(|entry| entry.path().extension().is_some_and(|e| e == "parquet"))
            // These follow measured times.
            .filter(|entry| {
                !["plans", "plan_costs", "answers"].iter().any(|table| entry.path().starts_with(root.join(table)))
            })
            .map(|entry| (entry.path().strip_prefix(&root).unwrap().to_owned(), fs::read(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    }
}

impl Ended {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "'{words}' is not in: {}", self.stderr);
        self
    }
}

/// Waits for a child and gives the most memory it had, in megabytes.
pub(crate) fn peak_of(mut child: Child) -> (i32, u64) {
    let started = Instant::now();
    // A child that has only just come still shows the memory of this process, up to gigabytes, until its own program
    // has taken the place.
    let (ours, program) = (std::env::current_exe().unwrap(), format!("/proc/{}/exe", child.id()));
    let mut peak = 0;
    loop {
        let is_itself = fs::read_link(&program).is_ok_and(|path| path != ours);
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        if is_itself {
            peak = peak.max(kilobytes.unwrap_or(0) / 1024);
        }
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code().unwrap_or(-1), peak);
        }
        assert!(started.elapsed() < Duration::from_secs(300), "it hangs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A page whose text is `text` and a link to `target`.
pub(crate) fn html(title: &str, text: &str, target: &str) -> String {
    format!(
        "<html><head><title>{title}</title></head><body><p>{text}</p><a href='{target}'>to {target}</a></body></html>"
    )
}

/// The project's own folder.
pub(crate) fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
