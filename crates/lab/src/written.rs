//! Bytes that processes have written to disk, where the system tells.

use std::collections::BTreeMap;
use std::fs;

/// What processes had written at one moment. The system counts pages as they are made dirty, less
/// those that never reach the disk since their file is removed first.
#[derive(Debug, Default)]
pub(crate) struct Written(BTreeMap<u32, i64>);

impl Written {
    /// Of these processes, now.
    pub(crate) fn of(processes: impl IntoIterator<Item = u32>) -> Self {
        let each = processes.into_iter().filter_map(|id| Some((id, written(id)?)));
        Self(each.collect())
    }

    /// Bytes that they wrote since, all together; `None` where one of them is gone, or nothing is
    /// told, as of a file system in memory.
    pub(crate) fn since(&self) -> Option<f64> {
        let each = self.0.iter().map(|(id, before)| Some(written(*id)? - before));
        let sum: i64 = each.sum::<Option<_>>()?;
        (sum > 0).then_some(sum as f64)
    }
}

/// As proc(5) has it under `/proc/PID/io`.
fn written(process: u32) -> Option<i64> {
    let text = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    Some(field(&text, "write_bytes")? - field(&text, "cancelled_write_bytes")?)
}

fn field(text: &str, name: &str) -> Option<i64> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok();
    text.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::{Written, field};

    #[test]
    fn counters_are_told_apart() {
        let text = "wchar: 900\nsyscw: 3\nread_bytes: 1\nwrite_bytes: 4096\n\
                    cancelled_write_bytes: 12\n";
        assert_eq!(field(text, "write_bytes"), Some(4_096));
        assert_eq!(field(text, "cancelled_write_bytes"), Some(12));
        assert_eq!(field(text, "bytes"), None);
    }

    #[test]
    fn nothing_is_known_of_nobody() {
        assert_eq!(Written::of([]).since(), None);
    }
}
