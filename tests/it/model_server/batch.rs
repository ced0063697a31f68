//! Batches: files of requests that are answered later, all at once.

use serde_json::{Value, json};

use super::answer::{self, Reply};
use super::http::Request;
use super::{Desk, Logged};

/// How batches go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BatchManner {
    /// Done when they are first looked at.
    #[default]
    Done,
    /// They take their time.
    Running,
    /// Every second request was not reached in time.
    Expired,
    /// None was.
    Failed,
}

#[derive(Default)]
pub(super) struct BatchBooks {
    /// By the number in their ids.
    files: Vec<String>,
    batches: Vec<Made>,
    pub(super) manner: BatchManner,
}

struct Made {
    file: String,
    /// Status, and the files of answers and of errors, when it has ended.
    ended: Option<(&'static str, [String; 2])>,
}

impl BatchBooks {
    pub(super) fn made(&self) -> usize {
        self.batches.len()
    }

    fn keep(&mut self, content: String) -> String {
        self.files.push(content);
        format!("file-{}", self.files.len())
    }

    fn file(&self, id: &str) -> Option<&String> {
        self.files.get(id.strip_prefix("file-")?.parse::<usize>().ok()?.checked_sub(1)?)
    }
}

impl Desk {
    /// Answers what is about files and batches; `None` if it is about something else.
    pub(super) fn batch(&self, request: &Request) -> Option<Reply> {
        let path = request.path.strip_prefix("/v1/")?;
        let (path, _) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("POST", ["files"]) => Some(self.upload(request)),
            ("POST", ["batches"]) => Some(self.make(request)),
            ("GET", ["batches"]) => Some(self.list()),
            ("GET", ["batches", id]) => Some(self.look(id)),
            ("GET", ["files", id, "content"]) => {
                let books = self.batches.lock().unwrap();
                Some(
                    books
                        .file(id)
                        .map_or_else(|| answer::problem(404, "no such file"), |text| Reply::free(200, text.clone())),
                )
            }
            _ => None,
        }
    }

    fn upload(&self, request: &Request) -> Reply {
        let body = String::from_utf8_lossy(&request.body);
        let boundary = request.header("content-type").and_then(|kind| kind.split_once("boundary="));
        let Some((_, boundary)) = boundary else { return answer::problem(400, "no boundary") };
        let boundary = format!("--{boundary}");
        let parts: Vec<&str> = body.split(&boundary).collect();
        let part = |name: &str| {
            let part = parts.iter().find(|part| part.contains(&format!("name=\"{name}\"")))?;
            Some(part.split_once("\r\n\r\n")?.1.strip_suffix("\r\n")?.to_owned())
        };
        let (Some(file), Some("batch")) = (part("file"), part("purpose").as_deref()) else {
            return answer::problem(400, "a file for batches is wanted");
        };
        let id = self.batches.lock().unwrap().keep(file);
        Reply::free(200, json!({ "id": id, "object": "file", "purpose": "batch" }).to_string())
    }

    fn make(&self, request: &Request) -> Reply {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let mut books = self.batches.lock().unwrap();
        let file = body["input_file_id"].as_str().unwrap_or_default().to_owned();
        if books.file(&file).is_none() || body["endpoint"] != "/v1/chat/completions" {
            return answer::problem(400, "no such file, or no such endpoint");
        }
        books.batches.push(Made { file, ended: None });
        let at = books.batches.len() - 1;
        Reply::free(200, shown(at, &books.batches[at]).to_string())
    }

    fn list(&self) -> Reply {
        let books = self.batches.lock().unwrap();
        let all: Vec<Value> = books.batches.iter().enumerate().map(|(at, made)| shown(at, made)).collect();
        Reply::free(200, json!({ "object": "list", "data": all, "has_more": false }).to_string())
    }

    fn look(&self, id: &str) -> Reply {
        let at = id.strip_prefix("batch-").and_then(|number| number.parse::<usize>().ok()).unwrap_or(usize::MAX);
        let (manner, lines) = {
            let books = self.batches.lock().unwrap();
            let Some(made) = books.batches.get(at) else { return answer::problem(404, "no such batch") };
            let running = made.ended.is_none() && books.manner != BatchManner::Running;
            (books.manner, books.file(&made.file).filter(|_| running).cloned())
        };
        if let Some(lines) = lines {
            let status = match manner {
                BatchManner::Expired => "expired",
                BatchManner::Failed => "failed",
                BatchManner::Done | BatchManner::Running => "completed",
            };
            let files = self.work(&lines, manner);
            let mut books = self.batches.lock().unwrap();
            let ids = files.map(|content| books.keep(content));
            books.batches[at].ended = Some((status, ids));
        }
        let books = self.batches.lock().unwrap();
        Reply::free(200, shown(at, &books.batches[at]).to_string())
    }

    /// Answers the requests of a file as they would be one by one; gives the files of answers and of errors.
    fn work(&self, lines: &str, manner: BatchManner) -> [String; 2] {
        let mut files = [String::new(), String::new()];
        for (i, line) in lines.lines().enumerate() {
            let reached = match manner {
                BatchManner::Expired => i % 2 == 0,
                BatchManner::Failed => false,
                BatchManner::Done | BatchManner::Running => true,
            };
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!((&line["method"], &line["url"]), (&json!("POST"), &json!("/v1/chat/completions")));
            if !reached {
                continue;
            }
            let bytes = line["body"].to_string().len() as u64;
            let asked = self.note(line["body"].clone(), None, bytes).expect("a question with a user message");
            let decide = std::sync::Arc::clone(&self.decide.lock().unwrap());
            let manner = decide(&asked);
            let reply = answer::reply(&self.rule, &manner, &asked);
            let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
            let answered = json!({
                "id": format!("r{i}"), "custom_id": line["custom_id"], "error": null,
                "response": { "status_code": reply.status, "request_id": "x", "body": body },
            });
            files[usize::from(reply.status != 200)] += &format!("{answered}\n");
            let (status, billed, stated) = (reply.status, reply.billed, reply.stated);
            self.leave(Logged { asked, manner, status, billed, stated, after: self.since.elapsed() });
        }
        files
    }
}

fn shown(at: usize, made: &Made) -> Value {
    let mut shown = json!({
        "id": format!("batch-{at}"), "object": "batch", "input_file_id": made.file, "status": "in_progress",
        "endpoint": "/v1/chat/completions",
    });
    if let Some((status, [answers, errors])) = &made.ended {
        shown["status"] = json!(status);
        if *status == "failed" {
            shown["errors"] = json!({ "data": [{ "message": "nobody had time" }] });
        } else {
            shown["output_file_id"] = json!(answers);
            shown["error_file_id"] = json!(errors);
        }
    }
    shown
}
