//! Free ports for a local committee.

use std::io;
use std::net::TcpListener;

/// Below the range from which Linux takes the ports of outgoing connections, lest one of ours be
/// taken by a connection between looking and listening.
const FIRST: u16 = 10_000;
const LAST: u16 = 32_000;

/// The first of `count` consecutive loopback ports that nobody listens on. The search begins at a
/// place that depends on this process, so that several benches seldom meet.
///
/// # Errors
/// When there are none.
pub fn free_ports(count: u16) -> io::Result<u16> {
    let span = LAST - FIRST;
    let offset = (std::process::id().wrapping_mul(2_654_435_761) >> 8) % u32::from(span);
    let begin = FIRST + u16::try_from(offset).expect("below the span");
    let mut candidates = (begin..LAST).chain(FIRST..begin).step_by(usize::from(count.max(1)));
    candidates
        .find(|&base| all_free(base, count))
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
    fn a_port_in_use_is_passed_over() {
        let base = free_ports(8).expect("eight ports");
        let _taken = TcpListener::bind(("127.0.0.1", base + 3)).expect("it was free");
        assert!(!all_free(base, 8));
    }
}
