use super::*;
use crate::tls::Dialer;
use quorate_crypto::IdentitySecret;

const PEER: ReplicaId = ReplicaId(3);

/// Members 0 to 6, reached but for those in `closed`.
fn detours(closed: &[u16]) -> Detours {
    let identity = IdentitySecret::from_seed([1; 32]);
    let tls = Dialer::new(&identity).unwrap().to(identity.public()).unwrap();
    let detour = |member: u16| Detour {
        member: ReplicaId(member),
        address: String::new(),
        tls: Arc::clone(&tls),
        up: Arc::new(AtomicBool::new(!closed.contains(&member))),
        over: Arc::default(),
    };
    Detours::new((0..7).map(detour).collect(), &Arc::new(Contacts::new(7)))
}

/// Asks those that are due, none of whom relays; their indices.
fn ask_in_vain(turns: &mut DetourTurns, detours: &Detours, now: Instant) -> Vec<u16> {
    let due = turns.due(detours, now);
    due.iter().for_each(|detour| turns.refused(detour));
    if !due.is_empty() {
        turns.failed(now);
    }
    due.iter().map(|detour| detour.member.0).collect()
}

#[test]
fn members_are_asked_in_turn_two_at_a_time() {
    let (detours, mut turns) = (detours(&[5]), DetourTurns::new(PEER));
    let mut now = Instant::now();
    let asked: Vec<_> = (0..4)
        .map(|_| {
            now += PAUSE_MAX;
            ask_in_vain(&mut turns, &detours, now)
        })
        .collect();
    assert_eq!(asked, [[4, 6], [0, 1], [2, 4], [6, 0]], "neither the peer nor who is not reached");
}

#[test]
fn whoever_relayed_is_asked_first_again() {
    let (detours, mut turns) = (detours(&[]), DetourTurns::new(PEER));
    let now = Instant::now();
    turns.refused(turns.due(&detours, now)[0]);
    turns.succeeded();
    let due: Vec<_> = turns.due(&detours, now).iter().map(|detour| detour.member.0).collect();
    assert_eq!(due, [5, 6]);
}

/// An hour of attempts each 10 ms: two requests in half a minute, and a few more at first.
#[test]
fn a_dead_member_costs_a_few_requests_however_many_members_there_are() {
    let (detours, mut turns) = (detours(&[]), DetourTurns::new(PEER));
    let began = Instant::now();
    let times = (0..360_000_u64).map(|tick| began + Duration::from_millis(10 * tick));
    let asked: usize = times.map(|now| ask_in_vain(&mut turns, &detours, now).len()).sum();
    assert!((240..=256).contains(&asked), "{asked} requests");
}

#[test]
fn a_member_that_is_heard_is_looked_for_sooner() {
    let (detours, mut turns) = (detours(&[]), DetourTurns::new(PEER));
    let mut now = Instant::now();
    for _ in 0..10 {
        ask_in_vain(&mut turns, &detours, now);
        now += PAUSE_MAX;
    }
    let failed = turns.failed.unwrap();
    let is_pause = |after_s, silence_s: Option<u64>| {
        let after = failed + Duration::from_secs(after_s);
        turns.is_pause(after, silence_s.map(Duration::from_secs))
    };
    assert!(is_pause(29, None) && !is_pause(30, None));
    assert!(is_pause(4, Some(1)) && !is_pause(5, Some(1)), "heard since");
    assert!(is_pause(29, Some(40)), "heard before");
}

#[test]
fn whoever_was_reached_is_looked_for_at_once() {
    let (detours, mut turns) = (detours(&[]), DetourTurns::new(PEER));
    let now = Instant::now();
    ask_in_vain(&mut turns, &detours, now);
    assert!(turns.due(&detours, now).is_empty());
    turns.succeeded();
    assert_eq!(turns.due(&detours, now).len(), ASKED_MAX);
}
