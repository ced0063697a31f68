//! Batches as OpenAI-compatible servers have them: a file of requests is uploaded, a batch is made of it, and when it is
//! done there are files of answers and of errors.
//!
//! ```text
//! POST /files      purpose = batch, the file        ──►  the file's id
//! POST /batches    the file's id                    ──►  the batch's id
//! GET  /batches    those there are: who was killed before the id came finds it by its file
//! GET  /batches/ID ──► status, and the files of answers and of errors
//! GET  /files/ID/content
//! ```

use std::collections::HashSet;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{Client, Reply, Trouble};
use crate::model::Digest;

/// How far a server is with a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Running,
    /// It does nothing more. `problem`: why not all is answered.
    Ended {
        files: Vec<String>,
        problem: Option<String>,
    },
}

/// A line of a batch's files.
pub(crate) struct Line {
    pub(crate) key: Digest,
    pub(crate) reply: Result<Reply, Trouble>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

#[derive(Deserialize)]
struct Listed {
    data: Vec<Made>,
    #[serde(default)]
    has_more: bool,
}

#[derive(Deserialize)]
struct Made {
    id: String,
    input_file_id: Option<String>,
    #[serde(default)]
    status: String,
    output_file_id: Option<String>,
    error_file_id: Option<String>,
    #[serde(default)]
    errors: Value,
}

/// How a request stands in a batch's file. `body` is JSON.
#[must_use]
pub(crate) fn line(key: Digest, body: &str) -> String {
    format!("{{\"custom_id\":\"{key}\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{body}}}")
}

/// Separates the parts of an upload. No line of JSON has it: there a line break is written as an escape.
const BOUNDARY: &str = "ratoon-batch-file-boundary";

impl Client {
    /// Uploads a batch's file; gives its id.
    pub(crate) fn upload(&self, name: &str, lines: &[u8]) -> Result<String, Trouble> {
        let mut head = String::new();
        let disposition = "Content-Disposition: form-data; name=";
        let _ = write!(head, "--{BOUNDARY}\r\n{disposition}\"purpose\"\r\n\r\nbatch\r\n");
        let _ = write!(head, "--{BOUNDARY}\r\n{disposition}\"file\"; filename=\"{name}\"\r\n");
        head.push_str("Content-Type: application/jsonl\r\n\r\n");
        let body = [head.as_bytes(), lines, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat();
        let said = self.put("/files", &format!("multipart/form-data; boundary={BOUNDARY}"), &body)?;
        self.understood::<Named>(&said).map(|named| named.id)
    }

    /// Has a batch made of an uploaded file; gives its id.
    pub(crate) fn create_batch(&self, file: &str) -> Result<String, Trouble> {
        let body = json!({
            "input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h",
        });
        let said = self.put("/batches", "application/json", body.to_string().as_bytes())?;
        self.understood::<Named>(&said).map(|named| named.id)
    }

    /// The batch that was made of a file, if there is one.
    pub(crate) fn find_batch(&self, file: &str) -> Result<Option<String>, Trouble> {
        let mut after = String::new();
        let mut seen = HashSet::new();
        loop {
            let said = self.get(&format!("/batches?limit=100{after}"))?;
            let listed: Listed = self.understood(&said)?;
            if let Some(made) = listed.data.iter().find(|made| made.input_file_id.as_deref() == Some(file)) {
                return Ok(Some(made.id.clone()));
            }
            // A server that ignores `after` would list the same ones for ever.
            match listed.data.last().filter(|last| listed.has_more && seen.insert(last.id.clone())) {
                Some(last) => after = format!("&after={}", last.id),
                None => return Ok(None),
            }
        }
    }

    pub(crate) fn batch(&self, id: &str) -> Result<Progress, Trouble> {
        let made: Made = self.understood(&self.get(&format!("/batches/{id}"))?)?;
        let problem = match made.status.as_str() {
            "completed" => None,
            "failed" | "expired" | "cancelled" => {
                let why = made.errors["data"][0]["message"].as_str().unwrap_or_default();
                Some(self.told(&format!("it is {} {why}", made.status)))
            }
            _ => return Ok(Progress::Running),
        };
        Ok(Progress::Ended { files: made.output_file_id.into_iter().chain(made.error_file_id).collect(), problem })
    }

    /// The lines of a batch's file; what is no such line is passed over.
    pub(crate) fn batch_lines(&self, file: &str) -> Result<Vec<Line>, Trouble> {
        let said = self.get(&format!("/files/{file}/content"))?;
        let read = |line: &str| {
            let line: Value = serde_json::from_str(line).ok()?;
            let key = Digest::from_hex(line["custom_id"].as_str()?)?;
            let response = &line["response"];
            let reply = match response["status_code"].as_u64() {
                Some(200) => self.read(&response["body"].to_string()),
                _ => {
                    let error = if line["error"].is_null() { &response["body"]["error"] } else { &line["error"] };
                    let why = error["message"].as_str().unwrap_or("it says no reason");
                    Err(Trouble::Refused(self.told(why)))
                }
            };
            Some(Line { key, reply })
        };
        Ok(said.lines().filter_map(read).collect())
    }

    fn understood<T: for<'a> Deserialize<'a>>(&self, said: &str) -> Result<T, Trouble> {
        let why = |error| self.told(&format!("what came back is not understood ({error}): {said}"));
        serde_json::from_str(said).map_err(|error| Trouble::Bad { why: why(error), usage: None, timed_out: false })
    }
}

impl Trouble {
    /// In words.
    pub(crate) fn why(self) -> String {
        match self {
            Self::Busy { why, .. } | Self::Bad { why, .. } | Self::Refused(why) => why,
        }
    }
}
