//! Members of a compressed file, decoded a piece at a time: gzip members or zstd frames.
//!
//! A member that grows beyond all measure is an error, as damage is.

use std::io;

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder as ZstdDecoder, Operation as _};

use crate::bounds::{MAX_RATIO, grows_too_much};
use crate::text::gzip::{self, Member};

/// Real dictionaries have some hundred kilobytes.
const MAX_DICTIONARY: u64 = 16 << 20;
const GZIP_MAGIC: &[u8] = b"\x1f\x8b\x08";
const ZSTD_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";
/// The skippable frame at the start of a file that holds the dictionary of all its frames.
const DICTIONARY_MAGIC: &[u8] = b"\x5d\x2a\x4d\x18";
const GZIP_WINDOW_BITS: u8 = 15;
/// Whole members are tried where there is room for most of them.
const WHOLE: usize = 32 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    /// Told from the first bytes of a file; `None` if it is not compressed by either.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        let skippable = |start: &[u8]| matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
        match () {
            () if start.starts_with(GZIP_MAGIC) => Some(Self::Gzip),
            () if start.starts_with(ZSTD_MAGIC) || skippable(start) => Some(Self::Zstd),
            () => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip member",
            Self::Zstd => "zstd frame",
        }
    }

    /// How members start that hold data.
    pub(crate) fn magic(self) -> &'static [u8] {
        match self {
            Self::Gzip => GZIP_MAGIC,
            Self::Zstd => ZSTD_MAGIC,
        }
    }

    /// Can a member start with this byte?
    pub(crate) fn may_start(self, byte: u8) -> bool {
        match self {
            Self::Gzip => byte == GZIP_MAGIC[0],
            Self::Zstd => byte == ZSTD_MAGIC[0] || matches!(byte, 0x50..=0x5f),
        }
    }

    /// Bytes of a member that surely suffice to decode its first few: a header, and with zstd a whole block.
    pub(crate) fn probe(self) -> usize {
        match self {
            Self::Gzip => 2 << 10,
            Self::Zstd => (128 << 10) + 64,
        }
    }
}

/// What a call of [`Decoder::step`] did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) used: usize,
    pub(crate) made: usize,
    /// The member ends here.
    pub(crate) ended: bool,
}

pub(crate) struct Decoder {
    packing: Packing,
    gzip: Option<Decompress>,
    zstd: Option<ZstdDecoder<'static>>,
    /// Whether a member was begun and has not ended.
    open: bool,
    /// Bytes of the member that were read, and that came out.
    used: u64,
    made: u64,
    /// An error in the member, which the next call returns.
    error: Option<String>,
}

impl Decoder {
    /// `dictionary`: that of the zstd file, empty if it has none.
    pub(crate) fn new(packing: Packing, dictionary: &[u8]) -> io::Result<Self> {
        let zstd = match packing {
            Packing::Gzip => None,
            Packing::Zstd => Some(ZstdDecoder::with_dictionary(dictionary)?),
        };
        Ok(Self { packing, gzip: None, zstd, open: false, used: 0, made: 0, error: None })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Forgets the member it is in.
    pub(crate) fn reset(&mut self) {
        self.open = false;
        self.gzip = None;
        self.error = None;
        if let Some(zstd) = &mut self.zstd {
            // Resetting the session alone cannot fail.
            let _ = zstd.reinit();
        }
    }

    /// Decodes some of `input`; begins a member if none is open.
    pub(crate) fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, String> {
        if !self.open {
            self.reset();
            (self.used, self.made) = (0, 0);
            if self.packing == Packing::Gzip
                && out.len() >= WHOLE
                && let Some(Member { used, made }) = gzip::unpack_member(input, out)
                && !grows_too_much(used as u64, made as u64)
            {
                return Ok(Step { used, made, ended: true });
            }
            self.open = true;
            if self.packing == Packing::Gzip {
                self.gzip = Some(Decompress::new_gzip(GZIP_WINDOW_BITS));
            }
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let step = match (&mut self.gzip, &mut self.zstd) {
            (Some(gzip), _) => {
                let before = (gzip.total_in(), gzip.total_out());
                let result = gzip.decompress(input, out, FlushDecompress::None);
                let step = Step {
                    used: usize::try_from(gzip.total_in() - before.0).expect("no more than the buffer holds"),
                    made: usize::try_from(gzip.total_out() - before.1).expect("no more than the buffer holds"),
                    ended: matches!(result, Ok(Status::StreamEnd)),
                };
                if let Err(error) = result {
                    let error = error.message().unwrap_or("not decodable").to_owned();
                    if step.made == 0 {
                        return Err(error);
                    }
                    // What was decoded before the error is in `out` and comes first.
                    self.error = Some(error);
                }
                step
            }
            (None, Some(zstd)) => {
                let status = zstd.run_on_buffers(input, out).map_err(|error| error.to_string())?;
                Step { used: status.bytes_read, made: status.bytes_written, ended: status.remaining == 0 }
            }
            (None, None) => return Err("no decoder".to_owned()),
        };
        self.used += step.used as u64;
        self.made += step.made as u64;
        self.open = !step.ended;
        if grows_too_much(self.used, self.made) {
            return Err(format!("it grows to more than {MAX_RATIO} times its size"));
        }
        Ok(step)
    }
}

/// Where the content of the dictionary frame lies, if a zstd file starts with one.
pub(crate) fn dictionary_frame(start: &[u8]) -> Option<std::ops::Range<u64>> {
    let (magic, rest) = start.split_at_checked(4)?;
    let length = u64::from(u32::from_le_bytes(*rest.first_chunk::<4>()?));
    (magic == DICTIONARY_MAGIC).then_some(8..8 + length)
}

/// The dictionary in the content of such a frame: as it is, or compressed itself.
pub(crate) fn dictionary(content: Vec<u8>) -> io::Result<Vec<u8>> {
    use io::Read as _;
    if !content.starts_with(ZSTD_MAGIC) {
        return Ok(content);
    }
    let mut dictionary = Vec::new();
    zstd::stream::read::Decoder::with_buffer(&content[..])?.take(MAX_DICTIONARY + 1).read_to_end(&mut dictionary)?;
    if dictionary.len() as u64 > MAX_DICTIONARY { Err(too_large()) } else { Ok(dictionary) }
}

pub(crate) fn check_dictionary(length: u64) -> io::Result<()> {
    if length > MAX_DICTIONARY { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> io::Error {
    io::Error::other(format!("its zstd dictionary has more than {MAX_DICTIONARY} bytes"))
}
