//! A site and its truth as files, in one of the layouts. No disk here: whoever calls says where bytes go.

use std::io::{self, Write};

use crate::lab::synth::drugs;
use crate::lab::synth::faults::{Fault, Faults, Halved};
use crate::lab::synth::out::json_escape;
use crate::lab::synth::params::{BadParams, Layout, Params, Part};
use crate::lab::synth::site::{EditKind, Event, Site, SynthPage};
use crate::lab::synth::warc::WarcWriter;
use crate::lab::synth::words;
use crate::model::Rng;

/// A WARC file is closed when it is larger than this, and the next begun.
const WARC_BYTES: u64 = 1 << 30;

/// The folder that a file belongs to. Truth lies beside the snapshots, for every folder among them is a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    Snapshots,
    Truth,
}

/// Takes the files of a site.
pub trait Sink {
    /// A new file at a relative path with `/`, folders made as needed. It is flushed before it is dropped; several are
    /// open at a time.
    fn create(&mut self, root: Root, path: &str) -> io::Result<Box<dyn Write>>;
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub snapshots: u32,
    pub captures: u64,
    /// Size of all bodies, before any compression.
    pub body_bytes: u64,
    pub mentions: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum SynthError {
    #[error(transparent)]
    Params(#[from] BadParams),
    #[error("writing the synthetic site: {0}")]
    Write(#[from] io::Error),
}

/// Writes every snapshot and the truth.
pub fn write_site(params: &Params, sink: &mut dyn Sink) -> Result<Written, SynthError> {
    let site = Site::new(params.clone())?;
    let mut written = Written { snapshots: site.snapshots(), ..Written::default() };
    let mut warc = WarcWriter::new(params.layout == Layout::Warc, params.seed);
    let wanted = params.mention_truth && params.part != Part::Drugs;
    let mut mentions = if wanted { Some(sink.create(Root::Truth, "mentions.jsonl")?) } else { None };
    let faults = Faults::new(params.faults && params.part != Part::Drugs, params.seed);
    let mut truth = match params.faults {
        true => Some(sink.create(Root::Truth, "faults.csv")?),
        false => None,
    };
    if let Some(file) = &mut truth {
        file.write_all(b"snapshot,fault,url\n")?;
    }
    for snapshot in 0..site.snapshots() {
        let id = site.snapshot_id(snapshot);
        let night = FaultyNight { site: &site, faults: &faults, snapshot, id: &id };
        let mut line = String::new();
        let mut count = |page: &SynthPage| -> io::Result<()> {
            written.captures += 1;
            written.body_bytes += page.body.len() as u64;
            let Some(file) = mentions.as_mut().filter(|_| !page.superseded) else {
                return Ok(());
            };
            line.clear();
            written.mentions += mention_lines(&id, page, &mut line);
            file.write_all(line.as_bytes())
        };
        match params.layout {
            Layout::Warc | Layout::WarcPlain => write_warc(&night, sink, &mut warc, &mut truth, &mut count)?,
            Layout::Manifest => write_manifest(&night, sink, &mut truth, &mut count)?,
            Layout::Mirror => write_mirror(&night, sink, &mut truth, &mut count)?,
        }
    }
    if let Some(mut file) = truth {
        file.flush()?;
    }
    if let Some(mut file) = mentions {
        file.flush()?;
    }
    write_truth(&site, sink)?;
    Ok(written)
}

/// A night as its fault left it.
struct FaultyNight<'a> {
    site: &'a Site,
    faults: &'a Faults,
    snapshot: u32,
    id: &'a str,
}

impl FaultyNight<'_> {
    /// Visits its captures, and writes down what was spoiled. Of an archive that is cut, that is the file.
    fn visit(
        &self,
        truth: &mut Option<Box<dyn Write>>,
        each: impl FnMut(&SynthPage) -> io::Result<()>,
    ) -> io::Result<()> {
        let id = self.id;
        let mut spoiled = |fault: Fault, url: &str| match truth {
            Some(file) => writeln!(file, "{id},{fault},{url}"),
            None => Ok(()),
        };
        if self.is_cut() {
            spoiled(Fault::CutArchive, "")?;
        }
        self.faults.visit(self.site, self.snapshot, spoiled, each)
    }

    fn is_cut(&self) -> bool {
        self.faults.of(self.snapshot) == Some(Fault::CutArchive)
    }

    /// A file that lists or holds captures.
    fn archive(&self, sink: &mut dyn Sink, name: &str) -> io::Result<Box<dyn Write>> {
        let file = sink.create(Root::Snapshots, &format!("{}/{name}", self.id))?;
        Ok(if self.is_cut() { Box::new(Halved::new(file)) } else { file })
    }
}

fn write_warc(
    night: &FaultyNight<'_>,
    sink: &mut dyn Sink,
    warc: &mut WarcWriter,
    truth: &mut Option<Box<dyn Write>>,
    count: &mut dyn FnMut(&SynthPage) -> io::Result<()>,
) -> io::Result<()> {
    let ending = if night.site.params().layout == Layout::Warc { "warc.gz" } else { "warc" };
    let mut files = 0;
    night.visit(truth, |page| {
        if files == 0 || warc.written() > WARC_BYTES {
            warc.finish()?;
            let name = format!("crawl-{files:05}.{ending}");
            warc.start(night.archive(sink, &name)?, &name, night.snapshot, page.fetched_at)?;
            files += 1;
        }
        count(page)?;
        warc.page(page)
    })?;
    warc.finish()
}

fn write_manifest(
    night: &FaultyNight<'_>,
    sink: &mut dyn Sink,
    truth: &mut Option<Box<dyn Write>>,
    count: &mut dyn FnMut(&SynthPage) -> io::Result<()>,
) -> io::Result<()> {
    let id = night.id;
    let mut manifest = night.archive(sink, "manifest.jsonl")?;
    let mut number = 0u32;
    night.visit(truth, |page| {
        count(page)?;
        let ending = match page.content_type.split(';').next().unwrap_or_default() {
            "text/plain" => "txt",
            "application/json" => "json",
            _ => "html",
        };
        // A thousand files a folder, numbered as captured.
        let path = format!("pages/{:03}/{:03}.{ending}", number / 1000, number % 1000);
        number += 1;
        let mut file = sink.create(Root::Snapshots, &format!("{id}/{path}"))?;
        file.write_all(&page.body)?;
        file.flush()?;

        let mut line = String::from("{");
        json_field("url", &page.url, &mut line);
        json_field("file", &path, &mut line);
        json_field("fetched_at", &page.fetched_at.to_string(), &mut line);
        if let Some(time) = page.last_modified {
            json_field("last_modified", &time.to_string(), &mut line);
        }
        if let Some(etag) = &page.etag {
            json_field("etag", etag, &mut line);
        }
        // Crawlers that keep only good pages often leave their status out.
        if page.status != 200 || Rng::keyed(&[page.identity]).percent(80) {
            line.push_str(",\"status\":");
            line.push_str(&page.status.to_string());
        }
        json_field("content_type", &page.content_type, &mut line);
        line.push_str("}\n");
        manifest.write_all(line.as_bytes())
    })?;
    manifest.flush()
}

fn write_mirror(
    night: &FaultyNight<'_>,
    sink: &mut dyn Sink,
    truth: &mut Option<Box<dyn Write>>,
    count: &mut dyn FnMut(&SynthPage) -> io::Result<()>,
) -> io::Result<()> {
    let id = night.id;
    night.visit(truth, |page| {
        // A mirror holds the last good state only.
        if page.status != 200 || page.superseded {
            return Ok(());
        }
        count(page)?;
        let mut path = page.url.strip_prefix("http://").unwrap_or(&page.url).to_owned();
        if path.ends_with('/') {
            path.push_str("index.html");
        }
        let mut file = sink.create(Root::Snapshots, &format!("{id}/{path}"))?;
        file.write_all(&page.body)?;
        file.flush()
    })
}

fn write_truth(site: &Site, sink: &mut dyn Sink) -> io::Result<()> {
    if site.params().part == Part::Drugs {
        let mut file = sink.create(Root::Truth, "nodes.csv")?;
        file.write_all(drugs::node_lines().as_bytes())?;
        return file.flush();
    }
    let mut file = sink.create(Root::Truth, "updates.csv")?;
    file.write_all(b"source,updated_at\n")?;
    // No URL of ours has a comma or a quote, so no field needs quoting.
    site.updates(|url, time| writeln!(file, "{url},{time}"))?;
    file.flush()?;

    let mut file = sink.create(Root::Truth, "rhythms.csv")?;
    file.write_all(b"source,rhythm\n")?;
    site.rhythms(|url, rhythm| writeln!(file, "{url},{rhythm}"))?;
    file.flush()?;

    let mut file = sink.create(Root::Truth, "events.csv")?;
    file.write_all(b"snapshot,event,url,from\n")?;
    for snapshot in 0..site.snapshots() {
        let id = site.snapshot_id(snapshot);
        site.events(snapshot, |event: Event, url, from| {
            writeln!(file, "{id},{},{url},{}", event.as_str(), from.unwrap_or_default())
        })?;
    }
    file.flush()?;

    let mut file = sink.create(Root::Truth, "edits.csv")?;
    file.write_all(b"snapshot,edit,url\n")?;
    for snapshot in 0..site.snapshots() {
        let id = site.snapshot_id(snapshot);
        site.edits(snapshot, |edit: EditKind, url| writeln!(file, "{id},{},{url}", edit.as_str()))?;
    }
    file.flush()?;

    for (name, terms) in [("topics.txt", words::TOPICS), ("awards.txt", words::AWARDS)] {
        let mut file = sink.create(Root::Truth, name)?;
        for term in terms {
            writeln!(file, "{term}")?;
        }
        file.flush()?;
    }
    Ok(())
}

/// One JSON object per mention; returns how many.
fn mention_lines(snapshot: &str, page: &SynthPage, out: &mut String) -> u64 {
    let mut count = 0;
    for mention in page.mentions() {
        count += 1;
        out.push('{');
        json_field("snapshot", snapshot, out);
        json_field("url", &page.url, out);
        json_field("extractor", mention.extractor, out);
        json_field("text", mention.text, out);
        out.push_str(",\"attributes\":{");
        for (place, (name, text)) in mention.attributes.iter().enumerate() {
            // The topics of a talk are a list, all else stands alone.
            let many = *name == "topics";
            let first = place == 0 || mention.attributes[place - 1].0 != *name;
            let last = mention.attributes.get(place + 1).is_none_or(|(next, _)| next != name);
            if first {
                if place > 0 {
                    out.push(',');
                }
                json_string(name, out);
                out.push(':');
                if many {
                    out.push('[');
                }
            } else {
                out.push(',');
            }
            json_string(text, out);
            if many && last {
                out.push(']');
            }
        }
        out.push_str("}}\n");
    }
    count
}

fn json_string(text: &str, out: &mut String) {
    out.push('"');
    json_escape(text, out);
    out.push('"');
}

fn json_field(name: &str, text: &str, out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
    json_string(name, out);
    out.push(':');
    json_string(text, out);
}
