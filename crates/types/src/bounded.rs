//! Decoding what anybody may have sent, of a bounded length.

use borsh::BorshDeserialize;

/// Decodes bytes that are no more than `most`; `None` for others.
pub(crate) fn decode<T: BorshDeserialize>(bytes: &[u8], most: usize) -> Option<T> {
    (bytes.len() <= most).then(|| borsh::from_slice(bytes).ok()).flatten()
}
