//! Threads of the server for what computes, and the queue before them.

use super::error::{self, Failure, internal};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Threads that read the state.
pub(super) const READERS: usize = 8;

/// Threads of these that no computation has: a balance never waits for calls, however many.
const READERS_FREE: usize = 2;

/// Computations that wait for a thread; what comes on top is refused.
const WAITING_MAX: usize = 1_024;

/// Threads for what computes, and the queue before them.
#[derive(Debug)]
pub(super) struct Computing {
    queue: Semaphore,
    threads: Semaphore,
}

/// A place in the queue and on a thread, until it is dropped.
type Place<'a> = (SemaphorePermit<'a>, SemaphorePermit<'a>);

impl Computing {
    /// Waits for a thread.
    ///
    /// # Errors
    /// When too many wait already.
    pub(super) async fn take(&self) -> Result<Place<'_>, Failure> {
        let place = self.queue.try_acquire().map_err(|_| error::too_many("everybody together"))?;
        let thread = self.threads.acquire().await.map_err(internal)?;
        Ok((place, thread))
    }
}

impl Default for Computing {
    fn default() -> Self {
        let threads = READERS - READERS_FREE;
        Self { queue: Semaphore::new(WAITING_MAX + threads), threads: Semaphore::new(threads) }
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
