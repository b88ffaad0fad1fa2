//! Differences of two texts by lines.

/// Lines around a difference that are shown with it.
const CONTEXT: usize = 2;

/// Lines of both texts, `-` before those of the first alone and `+` before those of the second
/// alone; of lines in common only those near a difference.
pub(crate) fn lines(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let marked = marked(&old, &new);
    let differs = |at: usize| marked[at].0 != ' ';
    let is_near = |at: usize| {
        let last = (at + CONTEXT).min(marked.len() - 1);
        (at.saturating_sub(CONTEXT)..=last).any(differs)
    };
    let mut text = String::new();
    let mut skipped = false;
    for (at, (mark, line)) in marked.iter().enumerate() {
        if is_near(at) {
            text += &format!("{mark} {line}\n");
        } else if !skipped {
            text += "  …\n";
        }
        skipped = !is_near(at);
    }
    text
}

/// All lines of both, those of a longest common subsequence once.
fn marked<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let common = common(old, new);
    let (mut i, mut j) = (0, 0);
    let mut marked = Vec::new();
    while i < old.len() || j < new.len() {
        let is_common = i < old.len() && j < new.len() && old[i] == new[j];
        if is_common {
            marked.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            marked.push(('-', old[i]));
            i += 1;
        } else {
            marked.push(('+', new[j]));
            j += 1;
        }
    }
    marked
}

/// Lengths of longest common subsequences of what follows each pair of lines.
fn common(old: &[&str], new: &[&str]) -> Vec<Vec<usize>> {
    let mut lengths = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i][j] = if old[i] == new[j] {
                lengths[i + 1][j + 1] + 1
            } else {
                lengths[i + 1][j].max(lengths[i][j + 1])
            };
        }
    }
    lengths
}

#[test]
fn differences_of_transcripts_are_lines() {
    let (old, new) = ("a\nb\nc\nd\ne\nf\ng\n", "a\nb\nc\nd\nE\nf\ng\n");
    assert_eq!(lines(old, new), "  …\n  c\n  d\n- e\n+ E\n  f\n  g\n");
    assert_eq!(lines("", "a\n"), "+ a\n");
}
