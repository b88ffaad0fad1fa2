//! Waiting for queues between threads.

use crossbeam_channel::{Receiver, never, select};
use std::convert::Infallible;

/// The next item of a queue, for which this thread sleeps; `None` when nobody sends any more.
///
/// `Receiver::recv` first yields the processor four times: on a machine with other work that is
/// four switches between threads before each sleep. A choice of several queues sleeps at once.
pub(crate) fn next_of<T>(queue: &Receiver<T>) -> Option<T> {
    let nothing = never::<Infallible>();
    select! {
        recv(queue) -> item => item.ok(),
        recv(nothing) -> never => match never {
            Ok(never) => match never {},
            Err(_) => None,
        },
    }
}
