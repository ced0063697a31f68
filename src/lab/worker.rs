//! A worker of our own with a settable price per byte: for measuring what recycling saves, and for tests that need a
//! worker without needing an interpreter.
//!
//! It finds words of 2 to 30 ASCII letters that begin with a capital, with no letter next to them: scope 30, context 1.
//! It may declare more than that.

use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::extract::command::Offsets;
use crate::extract::command::protocol::{Context, Ready};
use crate::extract::reach::Unit;

#[derive(Clone, Debug)]
pub(crate) struct Bench {
    /// Time to spend per byte of text.
    pub cost: Duration,
    pub scope: u32,
    pub context: u32,
    pub unit: Unit,
    /// Dies at a text that contains this.
    pub crash_on: Option<String>,
    /// Never answers a text that contains this.
    pub hang_on: Option<String>,
}

impl Default for Bench {
    fn default() -> Self {
        Self { cost: Duration::ZERO, scope: LONGEST, context: 1, unit: Unit::Window, crash_on: None, hang_on: None }
    }
}

const LONGEST: u32 = 30;

#[derive(Deserialize)]
struct Request {
    id: u64,
    text: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: u64,
    mentions: Vec<Stated<'a>>,
}

#[derive(Serialize)]
struct Stated<'a> {
    start: usize,
    end: usize,
    text: &'a str,
}

/// Serves requests until the input ends.
pub(crate) fn serve(bench: &Bench, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut lines = input.lines();
    if lines.next().transpose()?.is_none() {
        return Ok(());
    }
    let ready = Ready {
        name: "bench".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        fingerprint: format!("capitals-1 {LONGEST}"),
        attributes: Vec::new(),
        offsets: Some(Offsets::Byte),
        unit: Some(bench.unit),
        scope: Some(bench.scope.max(LONGEST)),
        context: Some(Context::Both(bench.context.max(1))),
        deterministic: true,
    };
    write_line(&mut output, &ready)?;
    for line in lines {
        let request: Request = serde_json::from_str(&line?)?;
        let contains =
            |marker: &Option<String>| marker.as_ref().is_some_and(|marker| request.text.contains(marker.as_str()));
        if contains(&bench.crash_on) {
            return Err(io::Error::other("told to crash"));
        }
        if contains(&bench.hang_on) {
            continue;
        }
        let started = Instant::now();
        let mentions = capitals(&request.text)
            .map(|(start, end)| Stated { start, end, text: &request.text[start..end] })
            .collect();
        let cost = bench.cost.saturating_mul(u32::try_from(request.text.len()).unwrap_or(u32::MAX));
        // Work, not sleep: a model keeps the processor busy.
        while started.elapsed() < cost {
            std::hint::spin_loop();
        }
        write_line(&mut output, &Answer { id: request.id, mentions })?;
    }
    Ok(())
}

fn write_line(output: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *output, message)?;
    output.write_all(b"\n")?;
    output.flush()
}

fn capitals(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut at = 0;
    text.as_bytes().split(|byte| !byte.is_ascii_alphabetic()).filter_map(move |word| {
        let start = at;
        at += word.len() + 1;
        let fits = (2..=LONGEST as usize).contains(&word.len()) && word[0].is_ascii_uppercase();
        fits.then_some((start, start + word.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn introduces_itself_and_answers() {
        let input = "{\"hello\":1}\n{\"id\":4,\"text\":\"Ann éB met BobX\",\"span\":[0,9],\"edges\":[true,true]}\n";
        let mut output = Vec::new();
        serve(&Bench::default(), input.as_bytes(), &mut output).unwrap();
        let lines: Vec<&str> = std::str::from_utf8(&output).unwrap().lines().collect();
        let ready: Ready = serde_json::from_str(lines[0]).unwrap();
        assert_eq!((ready.scope, ready.name.as_str()), (Some(30), "bench"));
        assert_eq!(
            lines[1],
            r#"{"id":4,"mentions":[{"start":0,"end":3,"text":"Ann"},{"start":12,"end":16,"text":"BobX"}]}"#
        );
    }

    #[test]
    fn dies_when_told_to() {
        let bench = Bench { crash_on: Some("boom".into()), ..Bench::default() };
        let input = "{\"hello\":1}\n{\"id\":1,\"text\":\"boom\"}\n";
        assert!(serve(&bench, input.as_bytes(), Vec::new()).is_err());
    }
}
