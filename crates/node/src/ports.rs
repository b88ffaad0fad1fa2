//! Free ports for a local committee.

use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the range from which Linux takes the ports of outgoing connections, lest one of ours be
/// taken by a connection between looking and listening.
const FIRST: u16 = 10_000;
const LAST: u16 = 32_000;

/// Number of ports that this process was given already.
static GIVEN: AtomicU32 = AtomicU32::new(0);

/// The first of `count` consecutive loopback ports that nobody listens on. The search begins at a
/// place that depends on this process, so that several seldom meet, and behind the ports that it
/// was given before: nobody in a process is given the same twice before all were.
///
/// # Errors
/// When there are none.
pub fn free_ports(count: u16) -> io::Result<u16> {
    let span = u32::from(LAST - FIRST);
    let own = std::process::id().wrapping_mul(2_654_435_761) >> 8;
    let next = || {
        let given = GIVEN.fetch_add(u32::from(count), Ordering::Relaxed);
        FIRST + u16::try_from(own.wrapping_add(given) % span).expect("below the span")
    };
    let mut candidates = (0..span / u32::from(count.max(1))).map(|_| next());
    candidates
        .find(|&base| {
            base.checked_add(count).is_some_and(|end| end <= LAST) && all_free(base, count)
        })
        .ok_or_else(|| io::Error::other(format!("no {count} free ports in a row on the loopback")))
}

fn all_free(base: u16, count: u16) -> bool {
    let bind = |port| TcpListener::bind(("127.0.0.1", port));
    let listeners: io::Result<Vec<_>> = (base..base.saturating_add(count)).map(bind).collect();
    listeners.is_ok()
}

#[cfg(test)]
mod tests {
    use super::{all_free, free_ports};
    use std::net::TcpListener;

    #[test]
    fn no_port_is_given_twice() {
        let bases: Vec<u16> = (0..3).map(|_| free_ports(8).expect("eight ports")).collect();
        assert!(bases[0].abs_diff(bases[1]) >= 8 && bases[1].abs_diff(bases[2]) >= 8);
    }

    #[test]
    fn a_port_in_use_is_passed_over() {
        let base = free_ports(8).expect("eight ports");
        let _taken = TcpListener::bind(("127.0.0.1", base + 3)).expect("it was free");
        assert!(!all_free(base, 8));
    }
}
