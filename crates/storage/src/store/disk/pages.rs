//! Reads of redb's pages, and what may go wrong with any use of them.

use crate::WantsRoom;
use crate::error::{STATE_FULL, STATE_REFUSED};
use quorate_types::service::{KeyRange, StateError, Visitor};
use redb::{AccessGuard, Range, ReadOnlyTable};
use std::cell::Cell;
use std::io;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// The state's table as one commit left it: pages that it sees are not used again until it is
/// dropped.
pub(super) type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// A key with its value, in a page of the store.
type Pair<'a> = (AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>);

pub(super) fn get(table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
    guarded(|| Ok(table.get(key)?.map(|value| value.value().to_vec()))).map_err(failed)
}

pub(super) fn scan(
    table: &Table,
    keys: KeyRange<'_>,
    visit: &mut Visitor<'_>,
) -> Result<(), StateError> {
    let Some(bounds) = keys.bounds() else { return Ok(()) };
    let mut entries = guarded(|| Ok(table.range::<&[u8]>(bounds)?)).map_err(failed)?;
    while let Some((key, value)) = next(&mut entries)? {
        if visit(key.value(), value.value()).is_break() {
            break;
        }
    }
    Ok(())
}

/// The next entry of a table, if there is one.
fn next<'a>(
    entries: &mut Range<'a, &'static [u8], &'static [u8]>,
) -> Result<Option<Pair<'a>>, StateError> {
    let read = guarded(|| {
        let entry = entries.next().transpose()?;
        if let Some((key, value)) = &entry {
            // Where these lie is read each time: what can be had once will be.
            let _ = (key.value(), value.value());
        }
        Ok(entry)
    });
    read.map_err(failed)
}

thread_local! {
    /// Set while redb is at work on this thread.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Has redb do something. It asserts what it reads, so that it panics over a damaged file: an error
/// as others are. Nothing of ours is called in there: our own panics stay panics.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    static HOOK: Once = Once::new();
    // Nobody is told of a defect of this program where the error says that the file is damaged.
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                others(panic);
            }
        }));
    });
    GUARDED.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(false);
    match outcome {
        Ok(Err(redb::Error::Io(error))) if error.kind() == io::ErrorKind::InvalidData => {
            Err(redb::Error::Corrupted(error.to_string()))
        }
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(redb::Error::Corrupted(text.unwrap_or("it cannot be read").to_owned()))
        }
    }
}

pub(super) fn failed(error: redb::Error) -> StateError {
    StateError(match error {
        redb::Error::Corrupted(reason) => format!("its file is damaged ({reason})"),
        redb::Error::Io(error) if error.wants_room() => STATE_FULL.to_owned(),
        error => format!("{STATE_REFUSED}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::{failed, guarded};
    use crate::StorageError;
    use std::io;

    fn said(error: redb::Error) -> StorageError {
        StorageError::State(failed(error))
    }

    fn of(kind: io::ErrorKind) -> redb::Error {
        redb::Error::Io(kind.into())
    }

    /// A full file system, a file that cannot be used, and one that is damaged are three things:
    /// the last alone is made again.
    #[test]
    fn what_is_wrong_with_a_file_is_told_apart() {
        let full = said(of(io::ErrorKind::StorageFull));
        assert!(full.is_full() && !full.is_damaged_state(), "{full}");
        let broken = said(of(io::ErrorKind::BrokenPipe));
        assert!(!broken.is_full() && !broken.is_damaged_state(), "{broken}");
        for work in
            [|| Err(of(io::ErrorKind::InvalidData)), || panic!("page {}", 7), || panic!("a page")]
        {
            let damaged = said(guarded::<()>(work).expect_err("it is damaged"));
            assert!(damaged.is_damaged_state() && !damaged.is_full(), "{damaged}");
        }
        assert_eq!(guarded(|| Ok(7)).expect("nothing is wrong"), 7);
    }
}
