//! A worker in Python that finds capitalised words, notes what it is asked, and can be taken away for a while.

use std::fs;

use crate::workspace::Workspace;

/// Finds capitalised words line by line. While the file `down` is there it reports an error on texts that hold a line of
/// that file, or on all if the file is empty. Notes every text that it is asked about in `asked`.
pub(crate) const SCRIPT: &str = r#"
import json, os, re, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        print(json.dumps({"name": "word", "fingerprint": "f1", "unit": "line"}), flush=True)
        continue
    text = request["text"]
    with open("asked", "a") as asked:
        asked.write(json.dumps(text) + "\n")
    down = [l for l in open("down").read().split("\n") if l] if os.path.exists("down") else None
    if down is not None and (not down or any(l in text for l in down)):
        print(json.dumps({"id": request["id"], "error": "429 rate limited"}), flush=True)
        continue
    found = [{"start": m.start(), "end": m.end()} for m in re.finditer(r"\b[A-Z]\w+", text)]
    print(json.dumps({"id": request["id"], "mentions": found}), flush=True)
"#;

/// The worker as an extractor `word`, and a watch of its mentions that writes to the file `told`. Plans are fixed, so that
/// no table follows measured times.
pub(crate) const PIPELINE: &str = r#"
[plan]
choose = "anchor"
[[extractor]]
name = "word"
kind = "command"
command = ["python3", "worker.py"]
unit = "line"
[[watch]]
name = "new-words"
on = { mentions = "word" }
command = ["sh", "-c", "cat >> told"]
"#;

/// A workspace with the worker, further lines of `[corpus]` and further sections.
pub(crate) fn workspace(corpus: &str, sections: &str) -> Workspace {
    let w = Workspace::new(&format!("{corpus}\n{PIPELINE}{sections}"));
    fs::write(w.path("worker.py"), SCRIPT).unwrap();
    w
}

/// Takes the worker away from texts with one of these lines, or from all.
pub(crate) fn down(w: &Workspace, lines: &str) {
    fs::write(w.path("down"), lines).unwrap();
}

pub(crate) fn up(w: &Workspace) {
    fs::remove_file(w.path("down")).unwrap();
}
