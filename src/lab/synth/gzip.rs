//! One gzip member after the other with one compressor.
//!
//! A compressor holds a quarter of a megabyte; making one per record costs more than compressing a small one, and
//! scatters the heap: a site of 100,000 pages took a gigabyte that way.

use std::io;

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// Speed before size: higher levels save a twentieth of the bytes and take a fifth more time.
const LEVEL: u32 = 2;
/// Deflate, no name, no time, no hint on the level, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

pub(crate) struct Gzip {
    deflate: Compress,
    member: Vec<u8>,
}

impl Gzip {
    pub(crate) fn new() -> Self {
        Self { deflate: Compress::new(Compression::new(LEVEL), false), member: Vec::new() }
    }

    /// The parts, one after the other, as one member.
    pub(crate) fn member(&mut self, parts: &[&[u8]]) -> io::Result<&[u8]> {
        self.deflate.reset();
        self.member.clear();
        self.member.extend_from_slice(&HEADER);
        let mut crc = Crc::new();
        for part in parts {
            crc.update(part);
            self.push(part, FlushCompress::None)?;
        }
        self.push(&[], FlushCompress::Finish)?;
        self.member.extend_from_slice(&crc.sum().to_le_bytes());
        self.member.extend_from_slice(&crc.amount().to_le_bytes());
        Ok(&self.member)
    }

    fn push(&mut self, mut rest: &[u8], flush: FlushCompress) -> io::Result<()> {
        let finish = matches!(flush, FlushCompress::Finish);
        loop {
            self.member.reserve(rest.len() / 2 + 256);
            let before = self.deflate.total_in();
            let status = self.deflate.compress_vec(rest, &mut self.member, flush).map_err(io::Error::other)?;
            let taken = usize::try_from(self.deflate.total_in() - before).map_err(io::Error::other)?;
            rest = &rest[taken..];
            if status == Status::StreamEnd || (!finish && rest.is_empty()) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn members_are_read_back(records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5000), 1..5)) {
            let mut gzip = Gzip::new();
            for record in &records {
                let (a, b) = record.split_at(record.len() / 3);
                let member = gzip.member(&[a, b"", b]).unwrap();
                let mut back = Vec::new();
                flate2::read::GzDecoder::new(member).read_to_end(&mut back).unwrap();
                prop_assert_eq!(&back, record);
            }
        }
    }
}
