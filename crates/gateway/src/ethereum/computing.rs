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

/// Threads of one caller: somebody else's turn comes sooner than all of its computations end.
const THREADS_EACH_MAX: usize = 4;

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
    /// Threads that nobody has, and how many each caller has.
    free: usize,
    taken: BTreeMap<Asker, usize>,
    waiting: usize,
    queues: BTreeMap<Asker, VecDeque<oneshot::Sender<Place>>>,
    /// Callers that wait, in the order of their turns.
    round: VecDeque<Asker>,
}

/// A caller's place on a thread, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    asker: Asker,
    /// `None` where it was never taken.
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
            if turns.may_begin(asker) {
                turns.begin(asker);
                return Ok(Place { asker, turns: Some(Arc::clone(&self.turns)) });
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
            taken: BTreeMap::new(),
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

    /// There is a thread for this caller.
    fn may_begin(&self, asker: Asker) -> bool {
        let taken = self.taken.get(&asker).copied().unwrap_or_default();
        self.free > 0 && taken < THREADS_EACH_MAX
    }

    fn begin(&mut self, asker: Asker) {
        self.free -= 1;
        *self.taken.entry(asker).or_default() += 1;
    }

    fn end(&mut self, asker: Asker) {
        self.free += 1;
        let taken = self.taken.get_mut(&asker).expect("it began");
        *taken -= 1;
        if *taken == 0 {
            self.taken.remove(&asker);
        }
    }

    /// The computation whose turn it is, if there is a thread for it.
    fn next(&mut self) -> Option<(Asker, oneshot::Sender<Place>)> {
        let at = self.round.iter().position(|asker| self.may_begin(*asker))?;
        let asker = self.round.remove(at)?;
        let queue = self.queues.get_mut(&asker)?;
        let turn = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&asker);
        } else {
            self.round.push_back(asker);
        }
        self.waiting -= 1;
        Some((asker, turn))
    }
}

impl Drop for Place {
    /// Hands the place on.
    fn drop(&mut self) {
        let Some(shared) = self.turns.take() else { return };
        let mut turns = shared.lock();
        turns.end(self.asker);
        while let Some((asker, turn)) = turns.next() {
            let place = Place { asker, turns: Some(Arc::clone(&shared)) };
            match turn.send(place) {
                Ok(()) => turns.begin(asker),
                // Its caller is gone: the next one's turn.
                Err(mut place) => place.turns = None,
            }
        }
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
        for number in 0..THREADS {
            let asker = asker(100 + u8::try_from(number).expect("a few"));
            places.push(computing.take(asker).await.expect("a thread"));
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
    async fn one_caller_leaves_threads_to_others() {
        let computing = Computing::default();
        let mut places = Vec::new();
        for _ in 0..THREADS_EACH_MAX {
            places.push(computing.take(asker(1)).await.expect("a thread"));
        }
        let mut more = waits(&computing, 1);
        let _other = computing.take(asker(2)).await.expect("there are threads for it");
        assert!(more.try_recv().is_err());
        places.pop();
        assert!(more.try_recv().is_ok());
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
