use super::*;
use quorate_crypto::IdentityKey;
use quorate_types::{ClientId, ReplicaId};

/// Where all else is equal, the lowest goes first: the liar.
const LIAR: Peer = Peer::Replica(ReplicaId(0));
const A: Peer = Peer::Replica(ReplicaId(30));
const B: Peer = Peer::Replica(ReplicaId(31));
const MS: Duration = Duration::from_millis(1);

fn client(number: u16) -> Peer {
    let mut key = [7; 32];
    key[..2].copy_from_slice(&number.to_le_bytes());
    Peer::Client(ClientId(IdentityKey(key)))
}

/// A thread that checks: takes the next message, and is busy for what the message costs.
struct Bench {
    queue: FairQueue<Duration>,
    now: Time,
}

impl Bench {
    fn new(budget: Option<Budget>) -> Self {
        Self { queue: FairQueue::new(budget), now: Time(1_000_000) }
    }

    fn push(&mut self, from: Peer, costs: impl IntoIterator<Item = Duration>) {
        for cost in costs {
            self.queue.push(self.now, from, cost).expect("nothing is held against it");
        }
    }

    /// Checks one message; gives its sender.
    fn check(&mut self, verdict: Verdict) -> Option<Peer> {
        let (from, cost) = self.queue.pop(self.now)?;
        self.now = self.now + cost;
        self.queue.charge(self.now, from, cost, verdict);
        Some(from)
    }

    fn sound(&mut self) -> Option<Peer> {
        self.check(Verdict::Sound)
    }

    /// Time that each peer was served until `end`, if its line never empties.
    fn served(&mut self, end: Duration, peers: &[(Peer, Duration)]) -> Vec<Duration> {
        let began = self.now;
        let mut served = vec![Duration::ZERO; peers.len()];
        while self.now.since(began) < end {
            for (peer, cost) in peers {
                self.push(*peer, [*cost]);
            }
            let before = self.now;
            let from = self.sound().expect("all have messages waiting");
            let index = peers.iter().position(|(peer, _)| *peer == from).expect("one of them");
            served[index] += self.now.since(before);
        }
        served
    }
}

#[test]
fn a_peers_messages_keep_their_order() {
    let mut bench = Bench::new(None);
    bench.push(A, [3 * MS, MS, 2 * MS]);
    let mut taken = Vec::new();
    while let Some((from, cost)) = bench.queue.pop(bench.now) {
        bench.queue.charge(bench.now, from, cost, Verdict::Sound);
        taken.push(cost);
    }
    assert_eq!(taken, [3 * MS, MS, 2 * MS]);
    assert!(bench.queue.is_empty());
}

/// The figure: 2,000 bogus certificates held another member's vote up for 9.5 s.
#[test]
fn a_vote_waits_for_one_check_of_a_flood() {
    let mut bench = Bench::new(None);
    bench.push(LIAR, [5 * MS; 2_000]);
    for _ in 0..200 {
        assert_eq!(bench.sound(), Some(LIAR));
    }
    bench.push(A, [MS / 50]);
    bench.push(B, [MS / 50]);
    assert_eq!([bench.sound(), bench.sound()].map(|it| it.is_some_and(|it| it != LIAR)), [true; 2]);
    assert_eq!(bench.queue.len(), 1_800);
}

/// Whoever needs less than its share never waits for more than the check that is under way.
#[test]
fn light_peers_never_wait_behind_heavy_ones() {
    let mut bench = Bench::new(None);
    let heavy: Vec<Peer> = (10..14).map(|id| Peer::Replica(ReplicaId(id))).collect();
    for round in 0..3_000_u64 {
        heavy.iter().for_each(|peer| bench.push(*peer, [2 * MS; 2]));
        if round % 20 == 19 {
            bench.push(A, [MS]);
            assert_eq!(bench.sound(), Some(A), "in round {round}");
        }
        bench.sound();
    }
}

#[test]
fn heavy_peers_share_time_and_not_messages() {
    let mut bench = Bench::new(None);
    let served = bench.served(Duration::from_secs(2), &[(A, MS), (B, 10 * MS)]);
    let difference = served[0].abs_diff(served[1]);
    assert!(difference <= CREDIT + 10 * MS, "{served:?}");
}

#[test]
fn the_rule_is_noticed_when_it_is_left_out() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    assert_noticed(Mutant::ChecksCostNothing, a_vote_waits_for_one_check_of_a_flood);
    assert_noticed(Mutant::ChecksCostNothing, light_peers_never_wait_behind_heavy_ones);
    assert_noticed(Mutant::ChecksCostNothing, heavy_peers_share_time_and_not_messages);
    assert_noticed(Mutant::ChecksCostNothing, a_budget_binds_whoever_else_waits);
}

#[test]
fn a_pause_earns_no_more_than_the_credit() {
    let mut bench = Bench::new(None);
    bench.push(A, [MS]);
    bench.sound();
    bench.served(Duration::from_secs(5), &[(B, MS)]);
    bench.push(A, [MS; 100]);
    bench.push(B, [MS; 100]);
    let in_a_row = std::iter::from_fn(|| bench.sound()).take_while(|from| *from == A).count();
    assert!(MS * u32::try_from(in_a_row).unwrap() <= CREDIT + 2 * MS, "{in_a_row} in a row");
}

/// A member is not outnumbered by keys that cost nothing.
#[test]
fn strangers_have_one_members_share_together() {
    let mut peers: Vec<(Peer, Duration)> = (0..100).map(|number| (client(number), MS)).collect();
    peers.push((A, MS));
    let served = Bench::new(None).served(Duration::from_secs(2), &peers);
    let (member, clients) = served.split_last().expect("there are many");
    let clients: Duration = clients.iter().sum();
    assert!(member.abs_diff(clients) <= Duration::from_millis(100), "{member:?} {clients:?}");
}

/// Nor by clients that each ask once, whose accounts are not kept.
#[test]
fn strangers_that_come_once_have_one_members_share_together() {
    let mut bench = Bench::new(None);
    let mut member = 0_u32;
    for number in 0..2_000 {
        bench.push(client(number), [MS]);
        bench.push(A, [MS]);
        member += u32::from(bench.sound() == Some(A));
    }
    assert!((900..1_100).contains(&member), "{member} of 2,000");
}

/// And none of those that stay is passed over for those that come once each, 49 at a time.
#[test]
fn strangers_that_stay_are_served_beside_those_that_come_once() {
    let mut bench = Bench::new(None);
    bench.push(client(0), [MS; 2_000]);
    bench.push(client(1), [MS; 48]);
    let mut stays = 0_u32;
    for number in 2..2_000 {
        bench.push(client(number), [MS]);
        let from = bench.sound();
        stays += u32::from(from == Some(client(0)));
    }
    assert!(stays >= 40, "{stays} of 2,000");
}

#[test]
fn newcomers_are_served_beside_strangers_that_stay() {
    let mut bench = Bench::new(None);
    for _ in 0..1_000 {
        (0..10).for_each(|number| bench.push(client(number), [MS]));
        bench.sound();
    }
    bench.push(client(99), [MS]);
    let place = std::iter::from_fn(|| bench.sound()).position(|from| from == client(99));
    assert!(place.is_some_and(|place| place <= 10), "{place:?}");
}

#[test]
fn a_fault_bars_its_sender_for_longer_each_time() {
    let mut bench = Bench::new(None);
    for expected in [BACKOFF, 2 * BACKOFF, 4 * BACKOFF, 8 * BACKOFF] {
        bench.push(LIAR, [MS; 10]);
        let (from, cost) = bench.queue.pop(bench.now).expect("it waits");
        assert_eq!(from, LIAR);
        let until = bench.queue.charge(bench.now, from, cost, Verdict::Faulty);
        assert_eq!(until, Some(bench.now + expected));
        assert_eq!(bench.queue.len(), 0, "what waited is dropped");
        assert_eq!(bench.queue.push(bench.now, LIAR, MS), Err(MS));
        assert!(bench.queue.is_barred(bench.now, LIAR));
        bench.now = bench.now + expected;
    }
    bench.push(LIAR, [MS]);
    assert_eq!(bench.sound(), Some(LIAR), "it is heard again");
}

#[test]
fn no_bar_is_longer_than_the_longest() {
    let mut bench = Bench::new(None);
    for _ in 0..100 {
        let until = bench.queue.charge(bench.now, LIAR, MS, Verdict::Faulty).expect("a bar");
        assert!(until <= bench.now + BACKOFF_MAX);
        bench.now = until;
    }
}

#[test]
fn whoever_was_at_fault_is_checked_last_until_it_is_forgiven() {
    let mut bench = Bench::new(None);
    let until = bench.queue.charge(bench.now, LIAR, Duration::ZERO, Verdict::Faulty);
    bench.now = until.expect("a bar");
    bench.push(A, [MS; 50]);
    bench.push(LIAR, [MS]);
    let order: Vec<Peer> = std::iter::from_fn(|| bench.sound()).collect();
    assert_eq!(order.iter().position(|from| *from == LIAR), Some(50));
    bench.now = bench.now + FORGIVEN_AFTER;
    bench.push(A, [MS; 50]);
    bench.push(LIAR, [MS]);
    let order: Vec<Peer> = std::iter::from_fn(|| bench.sound()).collect();
    assert_ne!(order.iter().position(|from| *from == LIAR), Some(50));
}

/// While it is passed over for its fault its account stands still; what it missed is not made good
/// at the cost of clients. Found by the oracle of waits: seed 173 of basic HotStuff, floods of
/// bodies.
#[test]
fn being_checked_last_earns_nothing() {
    let mut bench = Bench::new(None);
    let until = bench.queue.charge(bench.now, LIAR, Duration::ZERO, Verdict::Faulty);
    bench.now = until.expect("a bar");
    bench.push(LIAR, [MS; 2_000]);
    bench.push(A, [MS; 1_000]);
    for _ in 0..1_000 {
        assert_eq!(bench.sound(), Some(A));
    }
    bench.push(client(1), [MS]);
    let place = std::iter::from_fn(|| bench.sound()).position(|from| from == client(1));
    assert!(place.is_some_and(|place| place <= 1), "{place:?}");
}

/// One client at fault waits behind members, and no other client makes good what it missed.
#[test]
fn being_checked_last_earns_other_strangers_nothing() {
    let mut bench = Bench::new(None);
    let until = bench.queue.charge(bench.now, client(0), Duration::ZERO, Verdict::Faulty);
    bench.now = until.expect("a bar");
    bench.push(client(0), [MS]);
    bench.push(A, [MS; 1_000]);
    for _ in 0..1_000 {
        assert_eq!(bench.sound(), Some(A));
    }
    bench.push(A, [MS]);
    bench.push(client(1), [MS; 1_000]);
    let place = std::iter::from_fn(|| bench.sound()).position(|from| from == A);
    assert!(place.is_some_and(|place| place <= 1), "{place:?}");
}

/// Nobody else waits, and still its checks take no more than its part of the thread.
#[test]
fn a_budget_binds_whoever_else_waits() {
    let mut bench = Bench::new(Some(Budget::URGENT));
    let (began, mut busy) = (bench.now, Duration::ZERO);
    bench.push(LIAR, [MS; 5_000]);
    let end = began + Duration::from_secs(8);
    while bench.now < end {
        match bench.sound() {
            Some(_) => busy += MS,
            None => bench.now = bench.queue.next_ready().expect("it waits for its budget"),
        }
    }
    let Budget { share, burst } = Budget::URGENT;
    let allowed = burst + Duration::from_secs(8) / share;
    assert!(busy <= allowed + 2 * MS, "{busy:?}");
    assert!(busy + 2 * MS >= allowed, "{busy:?}");
    bench.push(A, [MS]);
    assert_eq!(bench.sound(), Some(A), "others are served meanwhile");
}

/// Its line never empties, and others never stop: it is forgiven all the same.
#[test]
fn a_member_with_a_full_line_is_forgiven() {
    let mut bench = Bench::new(None);
    let until = bench.queue.charge(bench.now, A, Duration::ZERO, Verdict::Faulty);
    bench.now = until.expect("a bar");
    bench.push(A, [MS; 1_000]);
    let (began, mut served) = (bench.now, 0);
    while bench.now.since(began) < FORGIVEN_AFTER + Duration::from_secs(1) {
        bench.push(client(1), [10 * MS]);
        served += u32::from(bench.sound() == Some(A));
    }
    assert!(served >= 1_000, "beside clients it has a member's share: {served}");
    bench.push(A, [MS]);
    bench.push(B, [MS; 50]);
    let place = std::iter::from_fn(|| bench.sound()).position(|from| from == A);
    assert!(place.is_some_and(|place| place < 50), "{place:?}");
}

#[test]
fn accounts_of_strangers_are_few() {
    let mut bench = Bench::new(None);
    for number in 0..5_000 {
        bench.push(client(number), [MS]);
        let verdict = if number % 2 == 0 { Verdict::Faulty } else { Verdict::Sound };
        bench.check(verdict);
        assert!(bench.queue.accounts() <= STRANGERS_MAX + 1);
    }
    assert!(bench.queue.is_empty());
}

/// However many others have messages waiting, a client's fault is remembered.
#[test]
fn a_crowd_does_not_hide_a_fault() {
    let mut bench = Bench::new(None);
    let crowd = u16::try_from(STRANGERS_MAX + 100).expect("few");
    (0..crowd).for_each(|number| bench.push(client(number), [MS]));
    let faulty = client(crowd);
    bench.queue.charge(bench.now, faulty, MS, Verdict::Faulty);
    assert!(bench.queue.is_barred(bench.now, faulty));
    assert_eq!(std::iter::from_fn(|| bench.sound()).count(), usize::from(crowd));
}

#[test]
fn a_fault_found_later_drops_what_waits() {
    let mut bench = Bench::new(Some(Budget::URGENT));
    bench.push(LIAR, [MS; 3]);
    bench.push(client(1), [MS; 3]);
    assert!(bench.queue.charge(bench.now, LIAR, Duration::ZERO, Verdict::Faulty).is_some());
    assert!(bench.queue.charge(bench.now, client(1), Duration::ZERO, Verdict::Faulty).is_some());
    assert!(bench.queue.is_empty());
    assert_eq!(bench.queue.pop(bench.now), None);
    bench.push(client(2), [MS]);
    assert_eq!(bench.sound(), Some(client(2)));
}

#[test]
fn a_queue_is_empty_when_nobody_has_a_message_left() {
    let long = Duration::from_secs(2);
    for peer in [A, client(1)] {
        let mut bench = Bench::new(Some(Budget::URGENT));
        assert!(bench.queue.is_empty());
        bench.push(peer, [long, MS]);
        assert!(!bench.queue.is_empty(), "both may be taken");
        bench.sound();
        assert_eq!(bench.sound(), None, "it has used up its budget");
        assert!(!bench.queue.is_empty(), "and waits for more of it");
        bench.now = bench.queue.next_ready().expect("it waits");
        assert_eq!(bench.sound(), Some(peer));
        assert!(bench.queue.is_empty());
    }
}

/// Members and strangers take turns by the time that each kind took.
#[test]
fn a_client_goes_before_a_member_that_was_served_more() {
    let mut bench = Bench::new(None);
    bench.push(A, [10 * MS; 3]);
    let mut order = vec![bench.sound()];
    bench.push(client(1), [4 * MS; 6]);
    order.extend((0..6).map(|_| bench.sound()));
    let (member, stranger) = (Some(A), Some(client(1)));
    let both = [member, stranger, stranger, stranger, member, stranger, stranger];
    assert_eq!(order, both);
}

/// What one peer is charged later concerns nobody else that waits for its budget.
#[test]
fn who_waits_for_its_budget_waits_on_when_another_is_charged() {
    let mut bench = Bench::new(Some(Budget::URGENT));
    for peer in [LIAR, A] {
        bench.push(peer, [Duration::from_secs(1), MS]);
        assert_eq!(bench.sound(), Some(peer));
    }
    bench.queue.charge(bench.now, LIAR, MS, Verdict::Sound);
    bench.now = bench.now + Duration::from_secs(60);
    let mut served: Vec<Peer> = std::iter::from_fn(|| bench.sound()).collect();
    served.sort();
    assert_eq!(served, [LIAR, A]);
}

/// Strangers that used up their budgets were not passed over meanwhile: what members took in that
/// time is not made good to them.
#[test]
fn waiting_for_a_budget_earns_strangers_nothing() {
    let mut bench = Bench::new(Some(Budget::URGENT));
    for stranger in [client(0), client(1)] {
        bench.push(stranger, [Duration::from_secs(5)]);
        bench.push(stranger, [MS; 200]);
        assert_eq!(bench.sound(), Some(stranger));
    }
    for member in 0..24 {
        let member = Peer::Replica(ReplicaId(member));
        bench.push(member, [10 * MS; 50]);
        (0..50).for_each(|_| assert_eq!(bench.sound(), Some(member)));
    }
    bench.now = bench.now + Duration::from_secs(20);
    bench.push(A, [MS]);
    let place = std::iter::from_fn(|| bench.sound()).position(|from| from == A);
    assert!(place.is_some_and(|place| place <= 1), "{place:?}");
}

/// Of idle strangers at fault as many are remembered as may be; then the one is forgotten whose bar
/// ends first.
#[test]
fn the_fault_whose_bar_ends_first_is_forgotten_first() {
    let mut bench = Bench::new(None);
    bench.queue.charge(bench.now, LIAR, MS, Verdict::Faulty);
    let most = u16::try_from(STRANGERS_MAX).expect("few");
    let mut fault = |number| {
        bench.now = bench.now + MS / 10;
        bench.queue.charge(bench.now, client(number), Duration::ZERO, Verdict::Faulty);
        let is_barred = |number: &u16| bench.queue.is_barred(bench.now, client(*number));
        (0..=number).filter(is_barred).collect::<Vec<u16>>()
    };
    for number in 0..most {
        assert_eq!(fault(number).len(), usize::from(number) + 1);
    }
    assert!(fault(most).into_iter().eq(1..=most));
}

/// Half of the faults, to the moment.
#[test]
fn faults_are_halved_for_each_span_without_one() {
    let micro = Duration::from_micros(1);
    for (halvings, early, left) in
        [(1, micro, 4), (1, Duration::ZERO, 2), (2, micro, 2), (9, micro, 0)]
    {
        let mut bench = Bench::new(None);
        for _ in 0..4 {
            bench.queue.charge(bench.now, LIAR, MS, Verdict::Faulty);
        }
        bench.now = bench.now + (halvings * FORGIVEN_AFTER - early);
        let until = bench.queue.charge(bench.now, LIAR, MS, Verdict::Faulty);
        assert_eq!(until, Some(bench.now + BACKOFF * (1 << left)), "after {halvings}");
    }
}
