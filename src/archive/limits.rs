//! How much is taken from an archive at most. What is larger does not occur in real archives; what is made to be so
//! would keep a machine busy for hours or fill its memory.

/// Larger records are passed over: a page of this size is no page.
pub(crate) const MAX_RECORD: u64 = 512 << 20;
/// Bytes that compressed data may have, however few bytes they are packed into.
const FREE: u64 = 16 << 20;
/// Unpacked bytes per packed byte, beyond `FREE`. Deflate reaches 1032 on constant input.
pub(crate) const MAX_RATIO: u64 = 1000;

/// Whether unpacked data is so much larger than the bytes it came from that unpacking must stop.
pub(crate) fn grows_too_much(packed: u64, unpacked: u64) -> bool {
    unpacked > FREE && unpacked / MAX_RATIO > packed
}

/// The largest size that data packed into so many bytes can have and still be used.
pub(crate) fn most_unpacked(packed: u64) -> u64 {
    FREE.max(packed.saturating_mul(MAX_RATIO))
}
