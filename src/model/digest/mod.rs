//! BLAKE3 cut to 128 bits: pages are hostile, so equality of digests must be as good as equality of bytes.

mod lanes;

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 16]);

/// The value of each hex digit; 16 of what is none.
static VALUES: [u8; 256] = {
    let mut values = [16; 256];
    let mut digit = 0u8;
    while digit < 16 {
        values[(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }) as usize] = digit;
        values[(if digit < 10 { b'0' + digit } else { b'A' + digit - 10 }) as usize] = digit;
        digit += 1;
    }
    values
};

/// The two hex digits of each byte.
static PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// The hex digits of a digest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hex([u8; Digest::HEX]);

impl Hex {
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hex digits are ASCII")
    }
}

/// Hex digits where people may read it, bytes elsewhere.
impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return <[u8; 16]>::deserialize(deserializer).map(Self);
        }
        let hex = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_hex(&hex).ok_or_else(|| D::Error::custom("a digest has 32 hex digits"))
    }
}

impl Digest {
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::cut(blake3::hash(bytes).as_bytes())
    }

    /// Of each text; faster than one after the other where they are of a few KB.
    #[must_use]
    pub(crate) fn of_each(texts: &[&[u8]]) -> Vec<Self> {
        lanes::digests(texts)
    }

    /// Reads the 32 hex digits that `Display` writes.
    #[must_use]
    pub fn from_hex(hex: &str) -> Option<Self> {
        let hex = hex.as_bytes();
        if hex.len() != Self::HEX {
            return None;
        }
        let mut out = [0; 16];
        // What is no digit leaves a trace in `all`.
        let mut all = 0;
        for (byte, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
            let (high, low) = (VALUES[usize::from(pair[0])], VALUES[usize::from(pair[1])]);
            *byte = high << 4 | low;
            all |= high | low;
        }
        (all < 16).then_some(Self(out))
    }

    /// Number of hex digits.
    pub(crate) const HEX: usize = 32;

    /// Its hex digits.
    #[must_use]
    pub(crate) fn hex(self) -> Hex {
        let mut hex = [0; Self::HEX];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&PAIRS[usize::from(byte)]);
        }
        Hex(hex)
    }

    /// The first eight bytes as a number, for choosing a shard or a bucket.
    #[must_use]
    pub fn low64(self) -> u64 {
        u64::from_le_bytes(self.0[..8].try_into().expect("a digest has 16 bytes"))
    }

    /// The first eight bytes as a number that orders as the bytes do.
    #[must_use]
    pub(crate) fn ordered64(self) -> u64 {
        u64::from_be_bytes(self.0[..8].try_into().expect("a digest has 16 bytes"))
    }

    /// Of what a hasher was fed.
    #[must_use]
    pub(crate) fn finish(hasher: &blake3::Hasher) -> Self {
        Self::cut(hasher.finalize().as_bytes())
    }

    fn cut(hash: &[u8; blake3::OUT_LEN]) -> Self {
        Self(hash[..16].try_into().expect("a BLAKE3 hash has 32 bytes"))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hex().as_str())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Digest of several fields, each preceded by its length so that no two lists of fields collide. They are gathered first: the
/// hash is several times faster on a long run of bytes.
#[derive(Default)]
pub(crate) struct DigestBuilder {
    gathered: Vec<u8>,
    /// What came before it, once that was much.
    before: Option<Box<blake3::Hasher>>,
}

impl DigestBuilder {
    /// More than this is not gathered.
    const MOST: usize = 64 << 10;

    #[must_use]
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn field(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        if self.gathered.len() + bytes.len() <= Self::MOST {
            self.gathered.extend_from_slice(bytes);
            return self;
        }
        let before = self.before.get_or_insert_default();
        before.update(&self.gathered);
        before.update(bytes);
        self.gathered.clear();
        self
    }

    pub(crate) fn number(&mut self, n: u64) -> &mut Self {
        self.gathered.extend_from_slice(&n.to_le_bytes());
        self
    }

    /// A field by its name, so that what is added, left out or reordered later changes no other identity.
    pub(crate) fn named(&mut self, name: &str, value: impl fmt::Display) -> &mut Self {
        self.field(name.as_bytes()).field(value.to_string().as_bytes())
    }

    /// As [`Self::named`]; nothing if there is no value.
    pub(crate) fn optional(&mut self, name: &str, value: Option<impl fmt::Display>) -> &mut Self {
        if let Some(value) = value {
            self.named(name, value);
        }
        self
    }

    #[must_use]
    pub(crate) fn finish(&self) -> Digest {
        match &self.before {
            Some(before) => Digest::finish(before.as_ref().clone().update(&self.gathered)),
            None => Digest::of(&self.gathered),
        }
    }

    /// Of each, as [`Digest::of_each`].
    #[must_use]
    pub(crate) fn finish_each(builders: &[Self]) -> Vec<Digest> {
        // Of what was much, only the last bytes are here.
        let is_here = |builder: &&Self| builder.before.is_none();
        let texts: Vec<&[u8]> = builders.iter().filter(is_here).map(|builder| builder.gathered.as_slice()).collect();
        let mut together = Digest::of_each(&texts).into_iter();
        let mut digest = |builder: &Self| match &builder.before {
            None => together.next().expect("one for each that is here"),
            Some(_) => builder.finish(),
        };
        builders.iter().map(&mut digest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips() {
        let digest = Digest::of(b"ratoon");
        assert_eq!(Digest::from_hex(&digest.to_string()), Some(digest));
        let bytes = Digest(std::array::from_fn(|i| u8::try_from(17 * i).expect("15 * 17 is 255")));
        assert_eq!(bytes.to_string(), "00112233445566778899aabbccddeeff");
        assert_eq!(Digest::from_hex("xyz"), None);
        assert_eq!(Digest::from_hex(&"g".repeat(32)), None);
    }

    #[test]
    fn fields_do_not_run_together() {
        let of = |fields: &[&str]| {
            let mut builder = DigestBuilder::new();
            for field in fields {
                builder.field(field.as_bytes());
            }
            builder.finish()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["ab"]), of(&["ab", ""]));
    }

    /// However much is gathered, the digest is that of one run of bytes.
    #[test]
    fn gathering_changes_no_digest() {
        let most = DigestBuilder::MOST;
        let mut all = Vec::new();
        for lengths in
            [&[][..], &[0], &[3, 5], &[most - 16, 1, 7], &[most, most + 1, 0], &[1, 3 * most, 9, most / 2, most]]
        {
            let fields: Vec<Vec<u8>> = lengths.iter().map(|n| (0..=250u8).cycle().take(*n).collect()).collect();
            let mut builder = DigestBuilder::new();
            let mut bytes = Vec::new();
            for field in &fields {
                builder.field(field);
                bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
                bytes.extend_from_slice(field);
            }
            assert_eq!(builder.finish(), Digest::of(&bytes), "{lengths:?}");
            builder.number(7);
            bytes.extend_from_slice(&7u64.to_le_bytes());
            assert_eq!(builder.finish(), Digest::of(&bytes), "{lengths:?}");
            all.push(builder);
        }
        let each: Vec<Digest> = all.iter().map(DigestBuilder::finish).collect();
        assert_eq!(DigestBuilder::finish_each(&all), each);
    }
}
