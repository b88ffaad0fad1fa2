//! Keys as strings of bits.
//!
//! Byte `i` of a key gives nine bits: 1, which says that the byte is there, then its own from the
//! most significant. Past the end all bits are 0. So a key stands before its extensions, and the
//! order of the bits is that of the bytes.

/// Most bytes of a key; the fewest are 1.
pub const KEY_BYTES_MAX: usize = 1024;

/// No two keys agree so far: positions are below this.
pub(crate) const POSITIONS: u16 = BITS_A_BYTE * KEY_BYTES_MAX as u16;

/// Bits that a byte of a key gives.
pub(crate) const BITS_A_BYTE: u16 = 9;

/// The bit of `key` at a position, from 0.
pub(crate) fn bit(key: &[u8], position: u16) -> bool {
    match (key.get(usize::from(position / BITS_A_BYTE)), position % BITS_A_BYTE) {
        (None, _) => false,
        (Some(_), 0) => true,
        (Some(byte), place) => byte >> (8 - place) & 1 == 1,
    }
}

/// The first position at which two keys differ; `None` when they are equal.
pub(crate) fn difference(a: &[u8], b: &[u8]) -> Option<u16> {
    let (byte, place) = match a.iter().zip(b).position(|(a, b)| a != b) {
        Some(byte) => (byte, 1 + (a[byte] ^ b[byte]).leading_zeros()),
        None if a.len() == b.len() => return None,
        None => (a.len().min(b.len()), 0),
    };
    let position = byte * usize::from(BITS_A_BYTE) + place as usize;
    Some(u16::try_from(position).expect("keys have at most 1,024 bytes"))
}

/// The first bits of some keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// The lowest key with these bits: the last byte is filled up with zeroes.
    bytes: Box<[u8]>,
    bits: u16,
}

impl Prefix {
    /// All bits of a key, with the one that says that it has ended.
    pub(crate) fn whole(key: &[u8]) -> Self {
        let bytes = u16::try_from(key.len()).expect("keys have at most 1,024 bytes");
        Self { bytes: key.into(), bits: BITS_A_BYTE * bytes + 1 }
    }

    /// The first `bits` of it; it has as many.
    pub(crate) fn cut(self, bits: u16) -> Self {
        let mut bytes = self.bytes.into_vec();
        bytes.truncate(usize::from(bits.div_ceil(BITS_A_BYTE)));
        let known = known_of_last(&bytes, bits);
        if let Some(last) = bytes.last_mut() {
            *last &= !(0xff >> known) as u8;
        }
        Self { bytes: bytes.into(), bits }
    }

    /// Bit at which `key` departs from it; `None` when it has these bits.
    pub(crate) fn departure(&self, key: &[u8]) -> Option<u16> {
        difference(&self.bytes, key).filter(|position| *position < self.bits)
    }

    /// No key with these bits is below it.
    pub(crate) fn lowest(&self) -> &[u8] {
        &self.bytes
    }

    /// Every key with these bits is below it; `None` when nothing is above them.
    pub(crate) fn end(&self) -> Option<Vec<u8>> {
        let mut end = self.bytes.to_vec();
        if usize::from(self.bits) > end.len() * usize::from(BITS_A_BYTE) {
            end.push(0); // one key, with its end
            return Some(end);
        }
        let mut step = 0x100u16 >> known_of_last(&end, self.bits);
        while let Some(last) = end.pop() {
            if let Ok(next) = u8::try_from(u16::from(last) + step) {
                end.push(next);
                return Some(end);
            }
            step = 1;
        }
        None
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Number of bits of the last of `bytes` that are among the first `bits`: 0 to 8.
fn known_of_last(bytes: &[u8], bits: u16) -> u16 {
    let before = bytes.len().saturating_sub(1) as u16 * BITS_A_BYTE;
    bits.saturating_sub(before + 1).min(8)
}

#[cfg(test)]
mod tests;
