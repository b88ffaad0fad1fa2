//! Finding the bad items of a batch whose sum was refused.

/// Halves `items` until the bad ones stand alone, and returns them in order.
///
/// `holds` must be linear: where it holds for one half and not for the whole, it cannot hold for
/// the other half. That saves the check of every right half whose left half was clean, so one bad
/// item among `n` costs between `log₂ n` and `2 log₂ n` checks after the first.
///
/// Where errors cancel inside a part, `holds` accepts that part and its members are not found: the
/// remaining sum is valid all the same, which is all it claims.
pub fn bad_items<T: Copy>(items: &[T], mut holds: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut bad = Vec::new();
    if !items.is_empty() {
        search(items, &mut holds, false, &mut bad);
    }
    bad
}

fn search<T: Copy>(
    items: &[T],
    holds: &mut impl FnMut(&[T]) -> bool,
    known_to_fail: bool,
    bad: &mut Vec<T>,
) {
    if !known_to_fail && holds(items) {
        return;
    }
    if let [only] = items {
        bad.push(*only);
        return;
    }
    let (left, right) = items.split_at(items.len() / 2);
    let found_before = bad.len();
    search(left, holds, false, bad);
    let left_holds = bad.len() == found_before;
    search(right, holds, left_holds, bad);
}

#[cfg(test)]
mod tests;
