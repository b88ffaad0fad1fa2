//! Files that cannot be opened for want of a descriptor: no fault of the disk.

use rustix::io::Errno;
use std::io;
use std::thread::sleep;
use std::time::Duration;

/// Pause until the next attempt.
const PAUSE: Duration = Duration::from_millis(50);

/// Opens a file; where the process or the system has no descriptor to give, waits until it has. An
/// open that failed so has written nothing: unlike a failed write, it may be tried again.
///
/// # Errors
/// What `open` fails with for any other reason.
pub fn open_when_possible<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut is_known = false;
    loop {
        match open() {
            Err(error) if is_shortage(&error) => {
                if !std::mem::replace(&mut is_known, true) {
                    tracing::warn!(%error, "the disk waits until a file can be opened");
                }
                sleep(PAUSE);
            }
            result => return result,
        }
    }
}

/// True of errors that say that there are no descriptors, in the process or in the system.
fn is_shortage(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use super::open_when_possible;
    use rustix::io::Errno;
    use std::io;

    #[test]
    fn a_shortage_of_descriptors_is_waited_out_and_nothing_else_is() {
        let mut answers = vec![Ok(7), Err(Errno::NFILE), Err(Errno::MFILE)];
        let opened =
            open_when_possible(|| answers.pop().expect("one more").map_err(io::Error::from));
        assert_eq!(opened.expect("opened"), 7);
        let mut answers = vec![Ok(7), Err(Errno::NOSPC)];
        let failed =
            open_when_possible(|| answers.pop().expect("one more").map_err(io::Error::from));
        assert_eq!(failed.expect_err("no shortage").kind(), io::ErrorKind::StorageFull);
    }
}
