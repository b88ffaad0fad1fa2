//! Threads of the server for what computes, and the queue before them.

use super::error::{self, Failure, internal};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Threads that read the state.
pub(super) const READERS: usize = 8;

/// Threads of these that no computation has: a balance never waits for calls, however many.
const READERS_FREE: usize = 2;

/// Computations that wait for a thread; what comes on top is refused.
const WAITING_MAX: usize = 1_024;

/// Threads for what computes, and the queue before them.
#[derive(Debug)]
pub(super) struct Computing {
    queue: Arc<Semaphore>,
    threads: Arc<Semaphore>,
}

/// A place in the queue and on a thread, until it is dropped.
pub(super) type Place = [OwnedSemaphorePermit; 2];

impl Computing {
    /// Waits for a thread.
    ///
    /// # Errors
    /// When too many wait already.
    pub(super) async fn take(&self) -> Result<Place, Failure> {
        let place = Arc::clone(&self.queue).try_acquire_owned();
        let place = place.map_err(|_| error::too_many("everybody together"))?;
        let thread = Arc::clone(&self.threads).acquire_owned().await.map_err(internal)?;
        Ok([place, thread])
    }
}

impl Default for Computing {
    fn default() -> Self {
        let threads = READERS - READERS_FREE;
        let of = |permits| Arc::new(Semaphore::new(permits));
        Self { queue: of(WAITING_MAX + threads), threads: of(threads) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn computations_leave_threads_free_and_wait_in_a_bounded_queue() {
        let computing = Computing::default();
        let mut places = Vec::new();
        for _ in 0..READERS - READERS_FREE {
            places.push(computing.take().await.expect("a thread"));
        }
        assert_eq!(computing.threads.available_permits(), 0);
        let _waiting = computing.queue.try_acquire_many(WAITING_MAX as u32).expect("they wait");
        let refused = computing.take().await.expect_err("too many");
        assert!(refused.message().contains("everybody together"), "{refused}");
        drop(places.pop());
        assert_eq!(computing.threads.available_permits(), 1);
    }
}
