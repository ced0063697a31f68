//! Numbers as bytes.

/// Seven bits a byte, low ones first; the high bit says that more follow.
pub(super) fn put_varint(out: &mut Vec<u8>, number: usize) {
    let mut number = number as u64;
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// Takes a number off the front; `None` if there is none.
pub(super) fn take_varint(from: &mut &[u8]) -> Option<usize> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return usize::try_from(number).ok();
        }
    }
    None
}

/// Takes the first `N` bytes off the front; `None` if there are fewer.
pub(super) fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 300, 1 << 20, usize::MAX - 1, usize::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            let mut rest = bytes.as_slice();
            assert_eq!((take_varint(&mut rest), rest.len()), (Some(number), 0));
            assert_eq!(take_varint(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(take_varint(&mut &[0xff; 20][..]), None);
        assert_eq!(take_varint(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02][..]), None);
    }
}
