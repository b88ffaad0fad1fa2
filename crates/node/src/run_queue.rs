//! Time for which a thread was ready to run and had no processor, as the system counts it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Account of the thread that opened it: Linux keeps one for each. Elsewhere there is none, and no
/// figure.
#[derive(Debug)]
pub(crate) struct RunQueue {
    account: Option<File>,
}

impl RunQueue {
    /// The account of the calling thread, whichever thread reads it later.
    pub(crate) fn of_this_thread() -> Self {
        Self { account: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Time for which the thread waited since it began; `None` where the system does not say.
    pub(crate) fn waited(&self) -> Option<Duration> {
        let mut text = [0; 80];
        let read = self.account.as_ref()?.read_at(&mut text, 0).ok()?;
        parse(text.get(..read)?)
    }
}

/// The second of three numbers: nanoseconds on a processor, nanoseconds waiting for one, turns.
fn parse(account: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(account).ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_time_waited() {
        let waited = |text: &str| parse(text.as_bytes());
        assert_eq!(waited("867324 2278508 3\n"), Some(Duration::from_nanos(2_278_508)));
        assert_eq!(waited("0 0 0\n"), Some(Duration::ZERO));
        assert_eq!((waited(""), waited("1"), waited("1 x 2")), (None, None, None));
    }

    /// Whatever it says, it says more of it later.
    #[test]
    fn an_account_only_grows() {
        let account = RunQueue::of_this_thread();
        let first = account.waited();
        std::thread::yield_now();
        assert!(account.waited() >= first);
    }
}
