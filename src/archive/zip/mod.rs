//! Zip files as containers: which entries there are and where their bytes lie.
//!
//! The central directory is read by crate `rawzip`. It is the last thing written, so an interrupted writer leaves none;
//! then the headers in front of the entries are followed from the start. Entries are read from the file in place:
//! nothing is unpacked, so a name cannot lead anywhere. Still a name with `..`, two entries of one name, and entries
//! that share bytes are found only in damaged or hostile files: they come out as faults.
//!
//! What the entries mean belongs to the layouts that have zip files, `layouts::wacz` and `layouts::httrack`.

mod scan;

use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use flate2::bufread::DeflateDecoder;
use fs_err::File;
use rawzip::{RECOMMENDED_BUFFER_SIZE, ZipArchive};

use crate::bounds::{self, most_unpacked};
use crate::model::Loss;
use scan::scan;

pub(crate) const LOCAL_MAGIC: &[u8] = b"PK\x03\x04";
pub(crate) const LOCAL_HEADER: usize = 30;
const ENCRYPTED: u16 = 1;
/// Flag of entries whose sizes follow the data.
const STREAMED: u16 = 8;
const UNKNOWN: u32 = u32::MAX;
/// So many entries are looked at to see whether a directory fits its file.
const LOOKS: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Stored,
    Deflated,
    Other(u16),
}

impl Method {
    fn new(id: u16) -> Self {
        match id {
            0 => Self::Stored,
            8 => Self::Deflated,
            other => Self::Other(other),
        }
    }

    pub(crate) fn unknown(id: u16) -> io::Error {
        io::Error::other(format!("compressed by method {id}; hint: pack it again with deflate or none"))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Offset of its local header.
    pub(crate) offset: u64,
    pub(crate) method: Method,
    pub(crate) packed_bytes: u64,
    /// Size when unpacked.
    pub(crate) bytes: u64,
    pub(crate) crc: u32,
    encrypted: bool,
    /// Where the next thing in the file begins.
    limit: u64,
}

/// Something in a zip file that is not as it should be.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) offset: u64,
    pub(crate) reason: String,
    pub(crate) lost: Loss,
}

/// The entries of a zip file in order of their places, and what is wrong with it.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    pub(crate) entries: Vec<Entry>,
    pub(crate) faults: Vec<Fault>,
}

/// An entry's place.
pub(crate) struct Located {
    pub(crate) data: Range<u64>,
    /// The extra field of its local header.
    pub(crate) extra: Vec<u8>,
}

impl Entry {
    /// Reads the header in front of the entry.
    pub(crate) fn locate(&self, file: &mut (impl Read + Seek)) -> io::Result<Located> {
        let most = (LOCAL_HEADER + 2 * usize::from(u16::MAX)) as u64;
        let header = self.read_span(file, most)?;
        self.parse(&header)
    }

    /// The extra field of the header in front of the entry, and the entry unpacked, if it has at most `max` bytes.
    pub(crate) fn read(&self, file: &mut (impl Read + Seek), max: u64) -> io::Result<(Vec<u8>, io::Result<Vec<u8>>)> {
        let too_large = self.bytes > max || self.packed_bytes > max;
        let packed = if too_large { 0 } else { self.packed_bytes };
        let most = (LOCAL_HEADER + 2 * usize::from(u16::MAX)) as u64 + packed;
        let span = self.read_span(file, most)?;
        let Located { data, extra } = self.parse(&span)?;
        let inside = |at: u64| usize::try_from(at - self.offset).unwrap_or(usize::MAX);
        let body = match span.get(inside(data.start)..inside(data.end)) {
            _ if too_large => Err(io::Error::other(format!("the entry has {} bytes, more than {max}", self.bytes))),
            Some(packed) => self.unpack(packed),
            None => Err(io::Error::other("the entry is cut by the end of the file")),
        };
        Ok((extra, body))
    }

    /// The bytes from the entry's header on, up to the next thing in the file.
    fn read_span(&self, file: &mut (impl Read + Seek), most: u64) -> io::Result<Vec<u8>> {
        file.seek(SeekFrom::Start(self.offset))?;
        let span = most.min(self.limit.saturating_sub(self.offset));
        let mut bytes = Vec::with_capacity(usize::try_from(span.min(1 << 20)).unwrap_or(0));
        file.take(span).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn parse(&self, header: &[u8]) -> io::Result<Located> {
        if self.encrypted {
            return Err(io::Error::other("the entry is encrypted"));
        }
        let local = Local::parse(header).ok_or_else(|| io::Error::other("no entry where the directory says"))?;
        let extra = LOCAL_HEADER + usize::from(local.name);
        let data = extra + usize::from(local.extra);
        let extra = header.get(extra..data).ok_or_else(|| io::Error::other("the entry's header is cut"))?.to_vec();
        let start = self.offset + data as u64;
        let end = start.saturating_add(self.packed_bytes);
        if end > self.limit {
            return Err(io::Error::other("the entry runs into the next one"));
        }
        Ok(Located { data: start..end, extra })
    }

    /// Unpacks the entry and checks its size and checksum.
    fn unpack(&self, packed: &[u8]) -> io::Result<Vec<u8>> {
        let most = self.bytes.min(most_unpacked(self.packed_bytes));
        bounds::before_growing(usize::try_from(most).unwrap_or(usize::MAX));
        let mut bytes = Vec::with_capacity(usize::try_from(most.min(1 << 20)).unwrap_or(0));
        // One byte more than stated is read to notice that there is more.
        match self.method {
            Method::Stored => packed.take(most + 1).read_to_end(&mut bytes)?,
            Method::Deflated => DeflateDecoder::new(packed).take(most + 1).read_to_end(&mut bytes)?,
            Method::Other(method) => return Err(Method::unknown(method)),
        };
        if bytes.len() as u64 != self.bytes {
            return Err(io::Error::other(format!("the entry has not the {} bytes that it states", self.bytes)));
        }
        if rawzip::crc32(&bytes) != self.crc {
            return Err(io::Error::other("the entry's checksum does not fit"));
        }
        Ok(bytes)
    }
}

/// Whether one name may stand for several entries of a zip file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Writers replace an entry by appending another one of the same name, so the last one counts.
    Unique,
    MayRepeat,
}

/// Lists a zip file. `may_scan`: if there is no directory that fits, look for the entries themselves, which reads all
/// of the file.
pub(crate) fn list(file: File, may_scan: bool, names: Names) -> io::Result<Directory> {
    let (file, path) = file.into_parts();
    let length = file.metadata()?.len();
    let found = central_directory(file.try_clone()?);
    let mut file = File::from_parts(file, path);
    // A directory is written last. A file without one ends in the middle; in one that it does not fit, bytes are missing.
    let found = match found {
        Ok(directory) if may_scan && !directory.is_true(&mut file)? => {
            Err(("it does not fit the file".to_owned(), Loss::Captures))
        }
        found => found.map_err(|reason| (reason, Loss::Rest)),
    };
    let mut directory = match found {
        Ok(directory) => directory,
        Err((reason, _)) if !may_scan => return Err(io::Error::other(format!("not a readable zip file: {reason}"))),
        Err((reason, lost)) => {
            let mut directory = scan(file, length)?;
            let reason = format!("the zip file has no readable directory ({reason}); its entries were looked for");
            directory.faults.push(Fault { offset: length, reason, lost });
            directory
        }
    };
    directory.check(length, names);
    Ok(directory)
}

/// Reads the directory at the end of a zip file.
fn central_directory(file: std::fs::File) -> Result<Directory, String> {
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::with_max_search_space(1 << 20)
        .locate_in_file(file, &mut buffer)
        .map_err(|(_, error)| error.to_string())?;
    let (stated, limit) = (archive.entries_hint(), archive.directory_offset());
    let mut directory = Directory::default();
    let mut entries = archive.entries(&mut buffer);
    while let Some(record) = entries.next_entry().map_err(|error| error.to_string())? {
        directory.entries.push(Entry {
            name: String::from_utf8_lossy(record.file_path().as_bytes()).into_owned(),
            offset: record.local_header_offset(),
            method: Method::new(record.compression_method().as_u16()),
            packed_bytes: record.compressed_size_hint(),
            bytes: record.uncompressed_size_hint(),
            crc: record.crc32(),
            encrypted: record.flags().is_encrypted(),
            limit,
        });
    }
    let count = directory.entries.len() as u64;
    if stated != count {
        let reason = format!("the directory of the zip file states {stated} entries and has {count}");
        directory.faults.push(Fault { offset: limit, reason, lost: Loss::Captures });
    }
    Ok(directory)
}

impl Directory {
    /// Are entries where the directory says? Looks at some of them, spread over all.
    fn is_true(&self, file: &mut File) -> io::Result<bool> {
        let step = self.entries.len().div_ceil(LOOKS).max(1);
        for entry in self.entries.iter().step_by(step) {
            let mut magic = Vec::new();
            file.seek(SeekFrom::Start(entry.offset))?;
            file.by_ref().take(LOCAL_MAGIC.len() as u64).read_to_end(&mut magic)?;
            if magic != LOCAL_MAGIC {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Drops what no sound writer writes.
    fn check(&mut self, length: u64, names: Names) {
        self.entries.sort_by(|a, b| (a.offset, &a.name).cmp(&(b.offset, &b.name)));
        let mut fault = |entry: &Entry, reason: String| {
            let reason = format!("entry '{}': {reason}", entry.name);
            self.faults.push(Fault { offset: entry.offset, reason, lost: Loss::Captures });
        };
        let last: HashMap<String, u64> = self.entries.iter().map(|entry| (entry.name.clone(), entry.offset)).collect();
        let mut taken = 0;
        let mut kept: Vec<Entry> = Vec::with_capacity(self.entries.len());
        for entry in self.entries.drain(..) {
            let least = LOCAL_HEADER as u64 + entry.name.len() as u64;
            let end = entry.offset.saturating_add(least).saturating_add(entry.packed_bytes);
            if entry.offset < taken {
                fault(&entry, "it shares bytes with another entry".to_owned());
            } else if names == Names::Unique && last.get(&entry.name) != Some(&entry.offset) {
                fault(&entry, "there is another one of this name behind it".to_owned());
            } else if end > length {
                fault(&entry, "it lies beyond the end of the file".to_owned());
            } else {
                if let Some(before) = kept.last_mut() {
                    before.limit = before.limit.min(entry.offset);
                }
                taken = end;
                kept.push(entry);
            }
        }
        self.entries = kept;
    }
}

/// The fixed part of a local header.
pub(crate) struct Local {
    flags: u16,
    method: u16,
    crc: u32,
    packed: u32,
    bytes: u32,
    pub(crate) name: u16,
    pub(crate) extra: u16,
}

impl Local {
    pub(crate) fn parse(header: &[u8]) -> Option<Self> {
        let two = |at: usize| header.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        let four = |at: usize| header.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        header.starts_with(LOCAL_MAGIC).then_some(())?;
        Some(Self {
            flags: two(6)?,
            method: two(8)?,
            crc: four(14)?,
            packed: four(18)?,
            bytes: four(22)?,
            name: two(26)?,
            extra: two(28)?,
        })
    }

    /// The entry that it stands before. Its sizes are not known if they follow the data.
    pub(crate) fn entry(&self, names: &[u8], offset: u64, limit: u64) -> (Entry, bool) {
        let (name, extra) = names.split_at(usize::from(self.name).min(names.len()));
        let mut entry = Entry {
            name: String::from_utf8_lossy(name).into_owned(),
            offset,
            method: Method::new(self.method),
            packed_bytes: u64::from(self.packed),
            bytes: u64::from(self.bytes),
            crc: self.crc,
            encrypted: self.flags & ENCRYPTED != 0,
            limit,
        };
        let streamed = self.flags & STREAMED != 0;
        let long = self.long_sizes(extra).filter(|_| !streamed);
        if let Some((bytes, packed)) = long {
            (entry.bytes, entry.packed_bytes) = (bytes, packed);
        }
        (entry, !streamed && (long.is_some() || self.packed != UNKNOWN))
    }

    /// Sizes beyond four bytes stand in an extra field: unpacked and packed.
    fn long_sizes(&self, mut extra: &[u8]) -> Option<(u64, u64)> {
        if self.packed != UNKNOWN || self.bytes != UNKNOWN {
            return None;
        }
        loop {
            let (id, rest) = extra.split_first_chunk::<2>()?;
            let (length, rest) = rest.split_first_chunk::<2>()?;
            let (field, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            if *id == [1, 0] {
                let (bytes, rest) = field.split_first_chunk::<8>()?;
                return Some((u64::from_le_bytes(*bytes), u64::from_le_bytes(*rest.first_chunk::<8>()?)));
            }
            extra = rest;
        }
    }
}

/// Does a name lead out of where its file would be unpacked?
pub(crate) fn leaves(name: &str) -> bool {
    name.starts_with(['/', '\\']) || name.split(['/', '\\']).any(|part| part == "..") || name.get(1..2) == Some(":")
}
