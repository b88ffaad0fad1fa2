//! Threads of the server for what computes, and the queues before them: each caller has one, and
//! their turns come in a round. Whoever asks a thousand things at once waits for its own.

use super::access::Asker;
use super::error::{self, Failure, internal};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Threads that read the state.
pub(super) const READERS: usize = 8;

/// Threads of these that no computation has: a balance never waits for calls, however many.
const READERS_FREE: usize = 2;

/// Computations that wait for a thread, of all callers and of one; what comes on top is refused.
const WAITING_MAX: usize = 1_024;
const WAITING_EACH_MAX: usize = 256;

/// Threads for what computes, and the queues before them.
#[derive(Debug)]
pub(super) struct Computing {
    turns: Arc<Mutex<Turns>>,
}

#[derive(Debug)]
struct Turns {
    /// Threads that nobody has.
    free: usize,
    waiting: usize,
    queues: BTreeMap<Asker, VecDeque<oneshot::Sender<Place>>>,
    /// Callers that wait, in the order of their turns.
    round: VecDeque<Asker>,
}

/// A place on a thread, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    /// `None` where it was given back.
    turns: Option<Arc<Mutex<Turns>>>,
}

impl Computing {
    /// Waits for a thread.
    ///
    /// # Errors
    /// When too many wait already, of all callers or of this one.
    pub(super) async fn take(&self, asker: Asker) -> Result<Place, Failure> {
        let turn = {
            let mut turns = self.turns.lock();
            if turns.free > 0 {
                turns.free -= 1;
                return Ok(Place { turns: Some(Arc::clone(&self.turns)) });
            }
            turns.enter(asker)?
        };
        turn.await.map_err(internal)
    }
}

impl Default for Computing {
    fn default() -> Self {
        let turns = Turns {
            free: READERS - READERS_FREE,
            waiting: 0,
            queues: BTreeMap::new(),
            round: VecDeque::new(),
        };
        Self { turns: Arc::new(Mutex::new(turns)) }
    }
}

impl Turns {
    fn enter(&mut self, asker: Asker) -> Result<oneshot::Receiver<Place>, Failure> {
        if self.waiting >= WAITING_MAX {
            return Err(error::too_many("everybody together"));
        }
        let queue = self.queues.entry(asker).or_default();
        if queue.len() >= WAITING_EACH_MAX {
            return Err(error::too_many("this caller"));
        }
        if queue.is_empty() {
            self.round.push_back(asker);
        }
        let (turn, comes) = oneshot::channel();
        queue.push_back(turn);
        self.waiting += 1;
        Ok(comes)
    }

    /// The computation whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<Place>> {
        let asker = self.round.pop_front()?;
        let queue = self.queues.get_mut(&asker)?;
        let turn = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&asker);
        } else {
            self.round.push_back(asker);
        }
        self.waiting -= 1;
        turn
    }
}

impl Drop for Place {
    /// Hands the place on.
    fn drop(&mut self) {
        let Some(shared) = self.turns.take() else { return };
        let mut turns = shared.lock();
        while let Some(turn) = turns.next() {
            match turn.send(Place { turns: Some(Arc::clone(&shared)) }) {
                Ok(()) => return,
                // Its caller is gone: the next one's turn.
                Err(mut place) => place.turns = None,
            }
        }
        turns.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const THREADS: usize = READERS - READERS_FREE;

    fn asker(number: u8) -> Asker {
        Asker::Address(Ipv4Addr::new(192, 0, 2, number).into())
    }

    async fn full(computing: &Computing) -> Vec<Place> {
        let mut places = Vec::new();
        for _ in 0..THREADS {
            places.push(computing.take(asker(0)).await.expect("a thread"));
        }
        places
    }

    fn waits(computing: &Computing, number: u8) -> oneshot::Receiver<Place> {
        computing.turns.lock().enter(asker(number)).expect("there is room")
    }

    #[tokio::test]
    async fn computations_leave_threads_free_and_wait_in_bounded_queues() {
        let computing = Computing::default();
        let places = full(&computing).await;
        assert_eq!(computing.turns.lock().free, 0);
        let mut waiting = Vec::new();
        for number in 0..4 {
            waiting.extend((0..WAITING_EACH_MAX).map(|_| waits(&computing, number)));
            let refused = computing.take(asker(number)).await.expect_err("too many of one");
            let of_all = usize::from(number) + 1 == WAITING_MAX / WAITING_EACH_MAX;
            let whose = if of_all { "everybody together" } else { "this caller" };
            assert!(refused.message().contains(whose), "{refused}");
        }
        drop(waiting);
        drop(places);
        let turns = computing.turns.lock();
        assert_eq!((turns.free, turns.waiting, turns.queues.len()), (THREADS, 0, 0));
    }

    #[tokio::test]
    async fn callers_have_their_turns_in_a_round() {
        let computing = Computing::default();
        let mut places = full(&computing).await;
        let mut greedy: Vec<_> = (0..100).map(|_| waits(&computing, 1)).collect();
        let mut modest = waits(&computing, 2);
        places.truncate(THREADS - 2);
        let _first = greedy[0].try_recv().expect("the first turn");
        let place = modest.try_recv().expect("the second turn is another's");
        assert!(greedy[1].try_recv().is_err());
        drop(place);
        assert!(greedy[1].try_recv().is_ok());
    }

    #[tokio::test]
    async fn who_is_gone_takes_no_turn() {
        let computing = Computing::default();
        let mut places = full(&computing).await;
        drop(waits(&computing, 1));
        let mut there = waits(&computing, 1);
        places.pop();
        assert!(there.try_recv().is_ok());
        assert_eq!(computing.turns.lock().free, 1, "it was given back, and nobody waits");
    }
}
