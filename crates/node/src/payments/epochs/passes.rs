//! Putting more into an order than memory holds: what is read is read again for each part of it.

/// Entries in memory at once: some 300 MB.
const PASS_ENTRIES: u64 = 4 * 1024 * 1024;

/// Hands on everything that `read` gives, in ascending order, each once, in parts of some
/// [`PASS_ENTRIES`]. `place` is a number that grows with the order, spread over all of them: what
/// names are hashes of. `count` is the number of entries, nearly.
pub(super) fn in_order<T: Ord, E>(
    count: u64,
    place: impl Fn(&T) -> u64,
    read: impl FnMut(&mut dyn FnMut(T)) -> Result<(), E>,
    hand_on: impl FnMut(Vec<T>) -> Result<(), E>,
) -> Result<(), E> {
    in_parts(count.div_ceil(PASS_ENTRIES).max(1), place, read, hand_on)
}

fn in_parts<T: Ord, E>(
    parts: u64,
    place: impl Fn(&T) -> u64,
    mut read: impl FnMut(&mut dyn FnMut(T)) -> Result<(), E>,
    mut hand_on: impl FnMut(Vec<T>) -> Result<(), E>,
) -> Result<(), E> {
    for part in 0..parts {
        let mut entries = Vec::new();
        let is_here = |entry: &T| (u128::from(place(entry)) * u128::from(parts)) >> 64;
        read(&mut |entry| {
            if is_here(&entry) == u128::from(part) {
                entries.push(entry);
            }
        })?;
        entries.sort_unstable();
        entries.dedup();
        hand_on(entries)?;
    }
    Ok(())
}

/// First eight bytes of a name as a number that is in its order.
pub(super) fn place_of(name: &quorate_payments::TxId) -> u64 {
    u64::from_be_bytes(*name.0.0.first_chunk().expect("a name has 32 bytes"))
}

#[cfg(test)]
mod tests;
