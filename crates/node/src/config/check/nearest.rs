//! The known name nearest to an unknown one.

/// The candidate that takes the fewest edits to reach, if that is few for its length.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = |candidate: &'a str| {
        let edits = distance(name, candidate);
        let within = candidate.starts_with(name) || candidate.ends_with(name);
        let most = name.chars().count().max(candidate.chars().count()) / 3;
        (edits <= most.max(1) || (within && name.len() >= 3)).then_some((edits, candidate))
    };
    candidates.into_iter().filter_map(close).min().map(|(_, candidate)| candidate)
}

/// Distance of two words: letters to insert, remove or replace, or neighbours to exchange (optimal
/// string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        rows[i][0] = i;
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn edits_are_counted() {
        for (a, b, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("timeout", "timeout_ms", 3),
            ("htpt", "http", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (edits, edits), "{a} {b}");
        }
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        let known = ["timeout_ms", "batch_bytes", "http", "key"];
        let found = |name| nearest(name, known);
        assert_eq!(found("timeout"), Some("timeout_ms"));
        assert_eq!(found("tiemout_ms"), Some("timeout_ms"));
        assert_eq!(found("batchbytes"), Some("batch_bytes"));
        assert_eq!(found("htpt"), Some("http"));
        assert_eq!(found("colour"), None);
    }
}
