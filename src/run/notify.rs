//! `[notify]`: a program is told that a run starts and how it ended.

use std::path::Path;

use serde_json::{Value, json};

use super::problems::TOLD;
use super::program;
use crate::config::Pipeline;
use crate::config::notify::Event;

/// Tells that a run starts, if that is wanted.
pub(crate) fn started(pipeline: &Pipeline) {
    tell(pipeline, Event::Start, &json!({"pipeline": pipeline.path.display().to_string()}));
}

/// Tells an event, if that is wanted. A program that fails or hangs is said, and changes nothing.
pub(crate) fn tell(pipeline: &Pipeline, event: Event, summary: &Value) {
    let wanted = &pipeline.notify;
    let Some(command) = wanted.command.as_ref().filter(|_| wanted.on.contains(&event)) else { return };
    let folder = pipeline.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let message = json!({"event": event, "summary": summary});
    if let Err(problem) = program::tell(command, wanted.timeout, folder, &message) {
        log::warn!(target: TOLD, "[notify] command '{}': {problem}", command[0]);
    }
}
