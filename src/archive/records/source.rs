//! Where the bytes of an archive file come from: a file of its own, a part of one, or an entry of a zip file.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

use flate2::bufread::DeflateDecoder;
use fs_err::File;

use crate::archive::zip::{Entry, Method};
use crate::bounds::{MAX_RATIO, grows_too_much};

/// Going back in a deflated entry means to start it over, and damage makes readers go back. This bounds the time on
/// hostile input.
const MAX_RESTARTS: u32 = 16;

/// Bytes that can be read from any place.
pub(crate) trait Bytes: Read + Seek + Send {}
impl<T: Read + Seek + Send> Bytes for T {}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    File(PathBuf),
    /// An entry of the zip file at the path.
    Entry(PathBuf, Entry),
}

impl Source {
    pub(crate) fn open(&self) -> io::Result<Box<dyn Bytes>> {
        match self {
            Self::File(path) => Ok(Box::new(File::open(path)?)),
            Self::Entry(path, entry) => {
                let mut file = File::open(path)?;
                let data = entry.locate(&mut file)?.data;
                let section = Section::new(file, data.start, data.end - data.start)?;
                match entry.method {
                    Method::Stored => Ok(Box::new(section)),
                    Method::Deflated => Ok(Box::new(Inflated::new(section, entry.bytes)?)),
                    Method::Other(method) => Err(Method::unknown(method)),
                }
            }
        }
    }

    /// How many bytes of its file it takes up, as far as known without opening it.
    pub(crate) fn packed_bytes(&self) -> Option<u64> {
        match self {
            Self::File(_) => None,
            Self::Entry(_, entry) => Some(entry.packed_bytes),
        }
    }

    /// Whether reading from the middle costs no more than from the start.
    pub(crate) fn is_seekable(&self) -> bool {
        match self {
            Self::File(_) => true,
            Self::Entry(_, entry) => entry.method == Method::Stored,
        }
    }
}

/// A part of a file, as if it were one.
pub(crate) struct Section<R> {
    inner: R,
    start: u64,
    len: u64,
    pos: u64,
}

impl<R: Read + Seek> Section<R> {
    pub(crate) fn new(mut inner: R, start: u64, len: u64) -> io::Result<Self> {
        inner.seek(SeekFrom::Start(start))?;
        Ok(Self { inner, start, len, pos: 0 })
    }
}

impl<R: Read> Read for Section<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(self.pos);
        let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let got = self.inner.read(&mut buffer[..most])?;
        self.pos += got as u64;
        Ok(got)
    }
}

impl<R: Seek> Seek for Section<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.pos = target(to, self.pos, self.len)?;
        self.inner.seek(SeekFrom::Start(self.start + self.pos))?;
        Ok(self.pos)
    }
}

/// A deflated part of a file. Going forward passes over bytes, going back starts over.
pub(crate) struct Inflated<R> {
    /// `None` only while it is being started over.
    decoder: Option<DeflateDecoder<BufReader<Section<R>>>>,
    /// Its length, as the zip file states it.
    len: u64,
    pos: u64,
    restarts: u32,
}

impl<R: Read + Seek> Inflated<R> {
    pub(crate) fn new(section: Section<R>, len: u64) -> io::Result<Self> {
        Ok(Self { decoder: Some(DeflateDecoder::new(BufReader::new(section))), len, pos: 0, restarts: 0 })
    }

    fn restart(&mut self) -> io::Result<()> {
        self.restarts += 1;
        let decoder = self.decoder.take().filter(|_| self.restarts <= MAX_RESTARTS);
        let mut section = decoder.ok_or_else(|| io::Error::other("too much damage in a deflated entry"))?.into_inner();
        section.seek(SeekFrom::Start(0))?;
        self.decoder = Some(DeflateDecoder::new(section));
        self.pos = 0;
        Ok(())
    }
}

impl<R: Read + Seek> Read for Inflated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let decoder = self.decoder.as_mut().ok_or_else(|| io::Error::other("too much damage in a deflated entry"))?;
        let got = decoder.read(buffer)?;
        self.pos += got as u64;
        if grows_too_much(decoder.total_in(), self.pos) {
            return Err(io::Error::other(format!("the entry grows to more than {MAX_RATIO} times its size")));
        }
        Ok(got)
    }
}

impl<R: Read + Seek> Seek for Inflated<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // Readers ask for the length before they read anything and then seek to the start. This needs no decoding.
        if self.pos == 0 && to == SeekFrom::End(0) {
            return Ok(self.len);
        }
        let to = target(to, self.pos, self.len)?;
        if to < self.pos {
            self.restart()?;
        }
        let skip = to - self.pos;
        io::copy(&mut self.by_ref().take(skip), &mut io::sink())?;
        Ok(self.pos)
    }
}

fn target(to: SeekFrom, pos: u64, len: u64) -> io::Result<u64> {
    let target = match to {
        SeekFrom::Start(to) => Some(to),
        SeekFrom::End(by) => len.checked_add_signed(by),
        SeekFrom::Current(by) => pos.checked_add_signed(by),
    };
    target.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "seek before the start"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn parts_read_like_files() {
        let text: Vec<u8> = (0..100_000u32).map(|i| (i % 253) as u8).collect();
        let packed = deflate(&text);
        let file = [b"before".as_slice(), &text, b"after"].concat();
        let packed_file = [b"before".as_slice(), &packed, b"after"].concat();
        let section = Section::new(io::Cursor::new(file), 6, text.len() as u64).unwrap();
        let inner = Section::new(io::Cursor::new(packed_file), 6, packed.len() as u64).unwrap();
        let inflated = Inflated::new(inner, text.len() as u64).unwrap();
        for mut part in [Box::new(section) as Box<dyn Bytes>, Box::new(inflated)] {
            assert_eq!(part.seek(SeekFrom::End(0)).unwrap(), text.len() as u64);
            for at in [0, 77_777, 5, 99_999] {
                assert_eq!(part.seek(SeekFrom::Start(at)).unwrap(), at);
                let mut rest = Vec::new();
                part.read_to_end(&mut rest).unwrap();
                assert_eq!(rest, text[usize::try_from(at).unwrap()..]);
            }
            assert!(part.seek(SeekFrom::Current(-1_000_000)).is_err());
        }
    }

    #[test]
    fn what_grows_without_measure_is_refused() {
        // Deflate packs more than 1,000 zeros into a byte.
        let bomb = deflate(&vec![0; 64 << 20]);
        let mut inflated =
            Inflated::new(Section::new(io::Cursor::new(bomb.clone()), 0, bomb.len() as u64).unwrap(), 64 << 20)
                .unwrap();
        let error = io::copy(&mut inflated, &mut io::sink()).unwrap_err().to_string();
        assert!(error.contains("grows"), "{error}");
    }

    #[test]
    fn going_back_is_not_for_ever() {
        let packed = deflate(b"abc");
        let mut inflated =
            Inflated::new(Section::new(io::Cursor::new(packed.clone()), 0, packed.len() as u64).unwrap(), 3).unwrap();
        let mut byte = [0];
        let failed =
            (0..100).find(|_| inflated.seek(SeekFrom::Start(0)).and_then(|_| inflated.read_exact(&mut byte)).is_err());
        assert_eq!(failed, Some(MAX_RESTARTS as usize + 1));
    }
}
