mod fetching;

use super::asking::{FETCH_RETRY, HEARSAY_MAX};
use super::lateness::GRACE_MIN;
use super::{Bodies, DECIDED_KEPT, Fetch, Need, PAYLOAD_BYTES_MAX};
use crate::frames::NAMES_MAX;
use crate::testing::body;
use quorate_crypto::{Bitmap, hash};
use quorate_types::{BlockId, Body, BodyRef, Height, Payload, ReplicaId, Time};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const SELF: ReplicaId = ReplicaId(0);
/// Bodies of unknown sizes that one member is asked for at once, and all together.
const PER_MEMBER_MAX: usize = 8;
const UNDER_WAY_MAX: usize = 4 * PER_MEMBER_MAX;

fn bodies() -> Bodies {
    Bodies::new(SELF, 4, 1_000)
}

fn block(k: u8) -> BlockId {
    BlockId(hash(&[k]))
}

fn name(author: u16, sequence: u64) -> BodyRef {
    BodyRef { author: ReplicaId(author), sequence, digest: hash(&sequence.to_le_bytes()) }
}

fn take(bodies: &mut Bodies, from: u16, body: &Arc<Body>) -> bool {
    bodies.take(Time(0), ReplicaId(from), body)
}

/// Requests by member, disk reads left out.
fn asked(bodies: &mut Bodies, now: Time) -> Vec<(u16, BodyRef)> {
    let mut asked = Vec::new();
    for fetch in bodies.due(now) {
        if let Fetch::Request(member, names) = fetch {
            asked.extend(names.into_iter().map(|name| (member.0, name)));
        }
    }
    asked
}

#[test]
fn a_body_is_pending_once_it_is_stored_and_until_it_is_decided() {
    let (mut bodies, one) = (bodies(), body(1, 1, 10));
    assert!(take(&mut bodies, 1, &one));
    assert!(!take(&mut bodies, 1, &one), "once");
    assert!(!bodies.has_pending());
    assert!(bodies.stored(one.reference).is_empty());
    assert_eq!(bodies.pending().count(), 1);
    bodies.decide(&[one.reference]);
    assert!(!bodies.has_pending());
    assert_eq!(bodies.collect(&[one.reference]).map(|b| b.len()), Some(1));
    bodies.executed(&[one.reference]);
    assert_eq!((bodies.held_bytes(), bodies.collect(&[one.reference])), (0, None));
}

/// A body that is passed over for long, while younger ones or none are ordered, is censored; one
/// that waits its turn is not, however long.
#[test]
fn younger_bodies_or_none_before_an_old_one_are_censorship() {
    let mut bodies = bodies();
    let (old, next, young) = (body(1, 1, 10), body(2, 1, 10), body(3, 1, 10));
    let arrivals = [(&old, 1), (&next, 2), (&young, 900)];
    for (body, at) in arrivals {
        assert!(bodies.take(Time(at), body.reference.author, body));
        bodies.stored(body.reference);
    }
    let limit = Duration::from_micros(500);
    let decided = |names: &[&Arc<Body>]| {
        Payload::new(Height(1), 0, names.iter().map(|body| body.reference).collect())
    };
    bodies.announced(&old.reference, ReplicaId(2));
    let at = |now, since, names: &[&Arc<Body>]| {
        let is_shared = |announced: &Bitmap| announced.contains(2);
        let waits = bodies.passed_over(Time(now), &decided(names), Time(since), limit, is_shared);
        !waits.is_empty()
    };
    let is_shared = |announced: &Bitmap| announced.count() > 1;
    let alone = bodies.passed_over(Time(1_000), &decided(&[]), Time(0), limit, is_shared);
    assert!(alone.is_empty(), "too few others wait for it");
    assert!(at(1_000, 0, &[&young]) && at(1_000, 0, &[]) && at(1_000, 0, &[&next, &young]));
    assert!(!at(1_000, 0, &[&old]) && !at(1_000, 0, &[&next]), "in turn");
    assert!(!at(1_000, 0, &[&old, &next, &young]), "nothing is left");
    assert!(!at(1_000, 800, &[]), "the view began just now");
    assert!(!at(400, 0, &[]), "too soon to tell");
}

/// What a primary left waiting: pending at enough members, and not decided just now.
#[test]
fn what_others_hold_too_is_left_waiting() {
    let mut bodies = bodies();
    let all = [body(1, 1, 10), body(2, 1, 10), body(3, 1, 10), body(1, 2, 10)];
    for (body, at) in all.iter().zip(1..) {
        assert!(bodies.take(Time(at), body.reference.author, body));
    }
    let [one, two, alone, unstored] = [0, 1, 2, 3].map(|index: usize| all[index].reference);
    [one, two, alone].into_iter().for_each(|name| drop(bodies.stored(name)));
    [one, two, unstored].iter().for_each(|name| bodies.announced(name, ReplicaId(2)));
    let left = |bodies: &Bodies, names: Vec<BodyRef>| -> Vec<(ReplicaId, Time)> {
        let decided = Payload::new(Height(1), 0, names);
        bodies.left_waiting(&decided, Time(9), |announced| announced.contains(2)).collect()
    };
    assert_eq!(left(&bodies, vec![]), [(ReplicaId(1), Time(1)), (ReplicaId(2), Time(2))]);
    assert_eq!(left(&bodies, vec![one]), [(ReplicaId(2), Time(2))]);
    let arrivals = |bodies: &Bodies| bodies.arrivals(&[two, unstored]).collect::<Vec<_>>();
    assert_eq!(arrivals(&bodies), [(ReplicaId(2), Time(2))]);
    bodies.decide(&[two]);
    assert_eq!(arrivals(&bodies), [], "once");
}

/// Until the limit is over nobody is suspected, and what arrived by then is not younger.
#[test]
fn the_limit_of_what_is_passed_over_is_exact() {
    let mut bodies = bodies();
    let (old, within, beyond) = (body(1, 1, 10), body(2, 1, 10), body(3, 1, 10));
    for (body, at) in [(&old, 1), (&within, 501), (&beyond, 502)] {
        assert!(bodies.take(Time(at), body.reference.author, body));
        bodies.stored(body.reference);
    }
    let passed_over = |now, names: Vec<BodyRef>| {
        let decided = Payload::new(Height(1), 0, names);
        let limit = Duration::from_micros(500);
        !bodies.passed_over(Time(now), &decided, Time(0), limit, |_| true).is_empty()
    };
    assert!(!passed_over(501, vec![]));
    assert!(passed_over(502, vec![]));
    assert!(!passed_over(1_000, vec![within.reference]));
    assert!(passed_over(1_000, vec![beyond.reference]));
}

#[test]
fn the_oldest_pending_bodies_are_announced() {
    let mut bodies = bodies();
    let waiting = [body(3, 1, 10), body(1, 1, 10), body(2, 1, 10)];
    for (body, at) in waiting.iter().zip([10, 20, 30]) {
        assert!(bodies.take(Time(at), body.reference.author, body));
        bodies.stored(body.reference);
    }
    let names = waiting.map(|body| body.reference);
    assert_eq!(bodies.pending_since(Time(9), 8), []);
    assert_eq!(bodies.pending_since(Time(20), 8), names[..2]);
    assert_eq!(bodies.pending_since(Time(30), 1), names[..1]);
    assert_eq!(bodies.pending_count(), 3);
    bodies.decide(&names[..1]);
    assert_eq!(bodies.pending_since(Time(30), 8), names[1..]);
    assert_eq!(bodies.pending_count(), 2);
}

#[test]
fn unasked_a_member_may_send_only_its_own() {
    let mut bodies = bodies();
    assert!(!take(&mut bodies, 2, &body(1, 1, 10)));
    assert!(take(&mut bodies, 1, &body(1, 1, 10)));
}

#[test]
fn an_author_has_a_quota_and_a_block_overrules_it() {
    let mut bodies = bodies();
    let (first, second) = (body(1, 1, 600), body(1, 2, 600));
    assert!(take(&mut bodies, 1, &first));
    assert!(!take(&mut bodies, 1, &second));
    bodies.require(Time(0), block(1), &[second.reference], ReplicaId(3));
    assert!(take(&mut bodies, 3, &second), "a proposal names it");
    bodies.stored(first.reference);
    bodies.decide(&[first.reference, second.reference]);
    bodies.stored(second.reference);
    bodies.executed(&[first.reference, second.reference]);
    assert!(take(&mut bodies, 1, &body(1, 3, 600)), "what was executed counts no more");
}

/// What leaves memory makes room for as many bytes of its author, and for no more.
#[test]
fn what_was_executed_makes_room_for_as_much() {
    let (one, two) = (body(1, 1, 600), body(1, 2, 300));
    let mut bodies = Bodies::new(SELF, 4, one.raw.len() + two.raw.len());
    assert!(take(&mut bodies, 1, &one) && take(&mut bodies, 1, &two));
    bodies.executed(&[one.reference]);
    assert!(!take(&mut bodies, 1, &body(1, 3, 601)));
    assert!(take(&mut bodies, 1, &body(1, 4, 600)));
}

/// Any client key signs requests, so a member can invent bodies without end.
#[test]
fn hearsay_does_not_escape_the_authors_quota() {
    let mut bodies = bodies();
    let mut taken = 0;
    for sequence in 0..10 {
        let invented = body(1, sequence, 300);
        bodies.want(Time(0), invented.reference, ReplicaId(2), Need::Hearsay);
        taken += usize::from(take(&mut bodies, 2, &invented));
    }
    assert!((1..=2).contains(&taken), "{taken} bodies of 300 bytes in a quota of 1,000");
}

#[test]
fn a_late_copy_of_a_decided_body_does_not_become_pending() {
    let (mut bodies, one) = (bodies(), body(1, 1, 10));
    bodies.decide(&[one.reference]);
    assert!(!take(&mut bodies, 1, &one), "unasked");
    bodies.want(Time(0), one.reference, SELF, Need::Decided(Height(1)));
    assert!(take(&mut bodies, 3, &one), "asked");
    bodies.stored(one.reference);
    assert!(!bodies.has_pending());
}

#[test]
fn a_block_waits_until_its_last_body_is_stored() {
    let mut bodies = bodies();
    let (one, two) = (body(1, 1, 10), body(1, 2, 10));
    let names = [one.reference, two.reference];
    assert!(!bodies.require(Time(0), block(1), &names, ReplicaId(1)));
    assert!(take(&mut bodies, 1, &one) && take(&mut bodies, 1, &two));
    assert!(bodies.stored(two.reference).is_empty());
    assert_eq!(bodies.stored(one.reference), [block(1)]);
    assert!(bodies.stored(one.reference).is_empty(), "said once");
    assert!(bodies.require(Time(0), block(2), &names, ReplicaId(1)));
}

#[test]
fn a_wanted_body_is_asked_for_after_a_grace_first_of_its_source() {
    let mut bodies = bodies();
    bodies.want(Time(0), name(1, 7), ReplicaId(2), Need::Proposed);
    assert_eq!(bodies.deadline(Time(0)), Some(Time(0) + GRACE_MIN));
    assert_eq!(asked(&mut bodies, Time(0)), []);
    let mut now = Time(0) + GRACE_MIN;
    let mut members = Vec::new();
    for _ in 0..5 {
        members.extend(asked(&mut bodies, now).into_iter().map(|(member, _)| member));
        assert_eq!(asked(&mut bodies, now), [], "not twice at once");
        now = now + FETCH_RETRY * 3;
    }
    assert_eq!(members.len(), 5);
    assert_eq!(members[0], 2);
    assert!(!members.contains(&SELF.0));
    for other in 1..4 {
        assert!(members.contains(&other), "never {other}: {members:?}");
    }
}

/// A body that everybody released is found out in seconds, however large the committee.
#[test]
fn what_nobody_has_is_soon_asked_of_everybody() {
    let mut bodies = Bodies::new(SELF, 100, 1 << 20);
    let name = name(1, 7);
    bodies.want(Time(0), name, ReplicaId(2), Need::Decided(Height(1)));
    let mut steps = 0;
    while bodies.attempts(&name) < 3 * 100 {
        let now = bodies.deadline(Time(0)).expect("it is asked for");
        let asked = asked(&mut bodies, now);
        assert!(!asked.is_empty());
        let members: BTreeSet<u16> = asked.iter().map(|(member, _)| *member).collect();
        assert_eq!(members.len(), asked.len(), "somebody is asked twice at once");
        steps += 1;
    }
    assert!(steps < 24, "{steps} requests one after the other");
}

#[test]
fn what_is_on_disk_is_read_back_and_not_asked_for() {
    let (mut bodies, one) = (bodies(), body(1, 1, 10));
    bodies.recover(vec![one.reference]);
    bodies.require(Time(0), block(1), &[one.reference], ReplicaId(1));
    assert_eq!(bodies.due(Time(0)), [Fetch::Load(one.reference)]);
    bodies.hold(Time(0), Arc::clone(&one));
    bodies.hold(Time(0), Arc::clone(&one));
    assert_eq!(bodies.held_bytes(), one.raw.len(), "held once");
    assert_eq!(bodies.stored(one.reference), [block(1)]);
    assert_eq!(bodies.pending().count(), 1);
}

/// A member that announces what nobody has can want only so much of us, for so long.
#[test]
fn hearsay_is_bounded_and_released() {
    let mut bodies = bodies();
    let invented: Vec<BodyRef> = (0..10_000).map(|sequence| name(1, sequence)).collect();
    bodies.hear(Time(0), ReplicaId(2), &invented);
    bodies.hear(Time(0), ReplicaId(3), &[name(3, 1)]);
    let mut now = Time(0);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..10_000 {
        let Some(at) = bodies.deadline(now) else { break };
        now = now.max(at);
        seen.extend(asked(&mut bodies, now).into_iter().map(|(_, name)| name));
        assert!(bodies.occupancy().iter().all(|collection| !collection.is_exceeded()));
        assert!(bodies.wanted.len() <= HEARSAY_MAX + 1);
    }
    assert_eq!(bodies.deadline(now), None, "no longer wanted");
    assert!(seen.contains(&name(3, 1)), "one member's flood leaves room for another's word");
    assert!(seen.len() <= NAMES_MAX + 1);
}

/// Names that are looked for on the disk already do not become hearsay beyond its limit.
#[test]
fn hearsay_of_what_is_looked_for_counts_once() {
    let mut bodies = bodies();
    let stored: Vec<BodyRef> = (0..5 * HEARSAY_MAX as u64).map(|seq| name(1, seq)).collect();
    bodies.recover(stored.clone());
    bodies.revive(Time(0));
    while !bodies.due(Time(0)).is_empty() {}
    bodies.hear(Time(1), ReplicaId(2), &stored);
    assert!(bodies.occupancy().iter().all(|collection| !collection.is_exceeded()));
}

/// A flood of invented names, announced or proposed, does not starve what is decided.
#[test]
fn a_flood_does_not_starve_what_is_decided() {
    for need in [Need::Hearsay, Need::Proposed] {
        let mut bodies = bodies();
        let flood: Vec<BodyRef> = (0..1_024).map(|sequence| name(0, sequence)).collect();
        match need {
            Need::Proposed => drop(bodies.require(Time(0), block(1), &flood, ReplicaId(2))),
            _ => bodies.hear(Time(0), ReplicaId(2), &flood),
        }
        let mut now = Time(0) + GRACE_MIN;
        let flooded = asked(&mut bodies, now);
        assert!(flooded.len() <= UNDER_WAY_MAX);
        bodies.want(now, name(3, 9), ReplicaId(3), Need::Decided(Height(1)));
        now = now + FETCH_RETRY;
        let names: Vec<BodyRef> = asked(&mut bodies, now).into_iter().map(|(_, n)| n).collect();
        assert!(names.contains(&name(3, 9)), "{need:?}");
    }
}

/// Its name was decided so long ago that it is not remembered: stored late, it counts as pending,
/// and executing it ends that.
#[test]
fn a_body_that_was_decided_long_ago_is_not_pending_for_ever() {
    let (mut bodies, one) = (bodies(), body(1, 1, 10));
    bodies.decide(&[one.reference]);
    for sequence in 0..DECIDED_KEPT as u64 {
        bodies.decide(&[name(2, sequence)]);
    }
    take(&mut bodies, 1, &one);
    bodies.stored(one.reference);
    bodies.executed(&[one.reference]);
    assert!(!bodies.has_pending());
}

/// So many decided names are remembered, the last ones.
#[test]
fn the_last_decided_names_are_remembered() {
    let mut bodies = bodies();
    let names: Vec<BodyRef> = (0..=DECIDED_KEPT as u64).map(|sequence| name(2, sequence)).collect();
    bodies.decide(&names[..DECIDED_KEPT]);
    assert!(bodies.is_decided(&names[0]));
    assert!(!bodies.is_decided(&names[DECIDED_KEPT]));
    bodies.decide(&names[DECIDED_KEPT..]);
    assert!(!bodies.is_decided(&names[0]), "forgotten");
    assert!(names[1..].iter().all(|name| bodies.is_decided(name)));
}

/// A proposal of more bytes than any honest leader orders makes nothing welcome.
#[test]
fn what_an_oversized_block_names_is_not_welcome() {
    let mut bodies = bodies();
    let large: Vec<Arc<Body>> = (1..=300).map(|k| body(1, k, 120_000)).collect();
    let names: Vec<BodyRef> = large.iter().map(|body| body.reference).collect();
    assert!(!bodies.require(Time(0), block(1), &names, ReplicaId(1)));
    for one in &large {
        take(&mut bodies, 2, one);
        bodies.stored(one.reference);
    }
    assert!(bodies.held_bytes() <= PAYLOAD_BYTES_MAX + large[0].raw.len());
}

/// Hundreds of bodies that nobody keeps any more stand behind the one without which nothing
/// executes: that nobody gives this one is known after a few rounds of the members, not of the
/// bodies. Found by seed 247 of PBFT, floods of bodies: 8 attempts in a minute.
#[test]
fn the_next_height_waits_for_no_others_bodies() {
    let mut bodies = bodies();
    let next = name(1, 1);
    for sequence in 2..500 {
        let need = Need::Overdue(Height(2 + sequence % 16));
        bodies.want(Time(0), name(1, sequence), ReplicaId(1), need);
    }
    bodies.want(Time(0), next, ReplicaId(1), Need::Overdue(Height(1)));
    let mut now = Time(0);
    for _ in 0..4 {
        let names: Vec<BodyRef> = asked(&mut bodies, now).into_iter().map(|(_, n)| n).collect();
        assert!(names.contains(&next), "asked again at {now:?}");
        now = now + 3 * FETCH_RETRY;
    }
}

/// A proposal that names bodies decided and executed long ago brings them back to memory only for
/// as long as it may get a vote.
#[test]
fn bodies_read_back_for_a_forgotten_block_leave_memory() {
    let (mut bodies, one) = (bodies(), body(1, 1, 10));
    take(&mut bodies, 1, &one);
    bodies.stored(one.reference);
    bodies.decide(&[one.reference]);
    bodies.executed(&[one.reference]);
    bodies.require(Time(0), block(1), &[one.reference], ReplicaId(1));
    assert_eq!(bodies.due(Time(0)), [Fetch::Load(one.reference)]);
    bodies.hold(Time(0), Arc::clone(&one));
    bodies.stored(one.reference);
    assert!(!bodies.has_pending());
    bodies.tidy(|_| false, |_| false);
    assert_eq!(bodies.held_bytes(), 0);
    bodies.require(Time(0), block(2), &[one.reference], ReplicaId(1));
    assert_eq!(bodies.due(Time(0)), [Fetch::Load(one.reference)], "it is still on disk");
}

#[test]
fn tidying_forgets_what_only_dead_blocks_named() {
    let mut bodies = bodies();
    bodies.require(Time(0), block(1), &[name(1, 1)], ReplicaId(1));
    bodies.require(Time(0), block(2), &[name(1, 2)], ReplicaId(1));
    bodies.want(Time(0), name(1, 3), ReplicaId(1), Need::Decided(Height(1)));
    bodies.tidy(|id| id == block(2), |_| false);
    let now = Time(0) + GRACE_MIN;
    let names: Vec<u64> = asked(&mut bodies, now).into_iter().map(|(_, n)| n.sequence).collect();
    assert_eq!(names, [3, 2]);
}

/// With much missing several members are asked at once, and none for more than its share.
#[test]
fn many_bodies_are_asked_of_several_members_at_once() {
    let mut bodies = bodies();
    for sequence in 0..100 {
        let name = name(1, sequence);
        bodies.want(Time(0), name, bodies.spread(&name), Need::Decided(Height(1)));
    }
    let now = Time(0) + GRACE_MIN;
    let mut loads = std::collections::BTreeMap::<u16, usize>::new();
    for (member, _) in asked(&mut bodies, now) {
        *loads.entry(member).or_default() += 1;
    }
    assert_eq!(loads.len(), 3, "{loads:?}");
    assert!(loads.values().all(|load| *load <= PER_MEMBER_MAX), "{loads:?}");
    assert_eq!(asked(&mut bodies, now), [], "they have enough to do");
    assert!(bodies.deadline(now).is_some_and(|at| at > now), "and it does not spin");
}

/// Bodies that nobody decided become pending again after a restart; executed ones do not.
#[test]
fn undecided_bodies_of_an_earlier_run_are_pending_again() {
    let (mut bodies, kept, executed) = (bodies(), body(1, 1, 10), body(1, 2, 10));
    bodies.recover(vec![kept.reference, executed.reference]);
    bodies.recall(&[executed.reference]);
    bodies.revive(Time(0));
    assert_eq!(bodies.due(Time(0)), [Fetch::Load(kept.reference)]);
    bodies.hold(Time(0), Arc::clone(&kept));
    bodies.stored(kept.reference);
    assert_eq!(
        bodies.pending().map(|(body, _)| body.reference).collect::<Vec<_>>(),
        [kept.reference]
    );
    assert!(!bodies.take(Time(0), ReplicaId(1), &executed), "a late copy of what was executed");
}

/// Under load every body is later than its proposal: asking others for it brought it twice.
/// A snapshot made them superfluous: they are neither asked for nor in the way of others.
#[test]
fn what_was_skipped_is_wanted_no_longer() {
    let mut bodies = bodies();
    let name = name(1, 5);
    bodies.want(Time(0), name, ReplicaId(2), Need::Decided(Height(1)));
    assert!(bodies.deadline(Time(0)).is_some());
    bodies.decide(&[name]);
    bodies.executed(&[name]);
    assert_eq!(bodies.deadline(Time(0)), None);
    assert_eq!(asked(&mut bodies, Time(9_000_000)), []);
}

#[test]
fn who_asks_waits_as_long_as_the_author_usually_takes() {
    let mut bodies = bodies();
    let late = body(1, 1, 10);
    bodies.want(Time(0), late.reference, ReplicaId(2), Need::Proposed);
    assert!(bodies.take(Time(200_000), ReplicaId(1), &late));
    let (again, other) = (name(1, 2), name(3, 2));
    bodies.want(Time(300_000), again, ReplicaId(2), Need::Proposed);
    bodies.want(Time(300_000), other, ReplicaId(2), Need::Proposed);
    let due = |bodies: &mut Bodies, now| bodies.due(Time(now));
    let Fetch::Request(_, asked) = due(&mut bodies, 320_000).remove(0) else { panic!("a request") };
    assert_eq!(asked, [other], "only that of an author that was not late before");
    assert_eq!(due(&mut bodies, 599_999), []);
    assert_eq!(due(&mut bodies, 600_000).len(), 1, "half as long again as it took last");
}

/// A Byzantine leader may name a thousand bodies that everybody has on disk: they are read for no
/// longer than an honest block would need.
#[test]
fn a_block_that_names_too_much_is_waited_for_no_longer() {
    let large: Vec<Arc<Body>> = (0..300).map(|k| body(1, k, 120_000)).collect();
    let names: Vec<BodyRef> = large.iter().map(|body| body.reference).collect();
    let within = PAYLOAD_BYTES_MAX / large[0].raw.len();
    let mut bodies = bodies();
    assert!(!bodies.require(Time(0), block(1), &names, ReplicaId(1)));
    assert!(!bodies.require(Time(0), block(2), &names[..within], ReplicaId(1)));
    let mut ready = Vec::new();
    for body in &large {
        bodies.take(Time(0), ReplicaId(1), body);
        ready.extend(bodies.stored(body.reference));
        bodies.tidy(|_| true, |_| false);
    }
    assert_eq!(ready, [block(2)]);
    let wanted = bodies.due(Time(10_000_000));
    assert!(wanted.is_empty(), "{wanted:?}");
    assert!(!bodies.require(Time(0), block(3), &names[..=within], ReplicaId(1)), "all are here");
    assert!(bodies.require(Time(0), block(4), &names[..within], ReplicaId(1)));
}

/// A body that is here and not stored yet counts once, when it is stored: under load most are.
#[test]
fn bodies_that_are_being_stored_count_once() {
    let large: Vec<Arc<Body>> = (0..200).map(|k| body(1, k, 120_000)).collect();
    let names: Vec<BodyRef> = large.iter().map(|body| body.reference).collect();
    let total: usize = large.iter().map(|body| body.raw.len()).sum();
    assert!(total <= PAYLOAD_BYTES_MAX && 2 * total > PAYLOAD_BYTES_MAX);
    let mut bodies = Bodies::new(SELF, 4, PAYLOAD_BYTES_MAX);
    assert!(large.iter().all(|body| take(&mut bodies, 1, body)));
    assert!(!bodies.require(Time(0), block(1), &names, ReplicaId(1)));
    let ready: Vec<BlockId> = names.iter().flat_map(|name| bodies.stored(*name)).collect();
    assert_eq!(ready, [block(1)]);
}

/// Nobody is sending what was ordered long ago: it is asked for at once, also when it was expected
/// before, and how long it took says nothing of its author.
#[test]
fn what_is_overdue_is_asked_for_at_once() {
    let mut bodies = bodies();
    let (first, second) = (body(2, 1, 10), body(2, 2, 10));
    bodies.want(Time(0), first.reference, ReplicaId(2), Need::Decided(Height(1)));
    assert_eq!(bodies.due(Time(0)), [], "it is on its way");
    bodies.want(Time(1), first.reference, ReplicaId(2), Need::Overdue(Height(1)));
    bodies.want(Time(1), second.reference, ReplicaId(2), Need::Overdue(Height(1)));
    let names = vec![first.reference, second.reference];
    assert_eq!(bodies.due(Time(1)), [Fetch::Request(ReplicaId(2), names)]);
    let late = Time(0) + Duration::from_millis(900);
    assert!(bodies.take(late, ReplicaId(2), &first));
    assert!(!bodies.take(late, ReplicaId(2), &first), "a copy");
    assert_eq!(bodies.grace(ReplicaId(2)), GRACE_MIN);
}

/// Bodies that become wanted one by one are not asked for one by one: a member drops the third
/// question.
#[test]
fn what_is_wanted_meanwhile_shares_a_question() {
    let mut bodies = bodies();
    let names: Vec<Arc<Body>> = (0..12).map(|sequence| body(1, sequence, 10)).collect();
    let mut asked: Vec<(u16, usize)> = Vec::new();
    for (at, wanted) in names.iter().enumerate() {
        let now = Time(u64::try_from(at).unwrap());
        bodies.want(now, wanted.reference, ReplicaId(2), Need::Overdue(Height(1)));
        asked.extend(bodies.due(now).into_iter().map(|fetch| match fetch {
            Fetch::Request(member, names) => (member.0, names.len()),
            Fetch::Load(_) => panic!("nothing is on disk"),
        }));
    }
    asked.sort_unstable();
    assert_eq!(asked, [(1, 1), (1, 1), (2, 1), (2, 1), (3, 1), (3, 1)]);
    assert!(bodies.take(Time(20), ReplicaId(2), &names[0]));
    assert_eq!(bodies.due(Time(20)).len(), 1, "an answer makes room for a question");
    assert_eq!(bodies.due(Time(20)), []);
}

/// Whoever is no member has one member more to ask: in a committee of one, one.
#[test]
fn a_learner_of_a_committee_of_one_gets_its_bodies() {
    let mut bodies = Bodies::new(ReplicaId(1), 1, 1 << 20);
    let wanted = body(0, 1, 10).reference;
    bodies.want(Time(0), wanted, ReplicaId(0), Need::Overdue(Height(1)));
    assert_eq!(bodies.due(Time(0)), [Fetch::Request(ReplicaId(0), vec![wanted])]);
    assert!(bodies.deadline(Time(0)) > Some(Time(0)), "and it waits for the answer");
}

/// How long a height took is counted from the first of its bodies that was not ordered before.
#[test]
fn the_oldest_arrival_is_that_of_a_body_that_was_not_decided() {
    let (mut bodies, [ordered, old, young]) = (bodies(), [1, 2, 3].map(|at| body(1, at, 10)));
    for (at, body) in [(5, &ordered), (7, &old), (9, &young)] {
        assert!(bodies.take(Time(at), ReplicaId(1), body));
    }
    bodies.decide(&[ordered.reference]);
    let names = [&young, &ordered, &old].map(|body| body.reference);
    assert_eq!(bodies.oldest_arrival(&names), Some(Time(7)));
    assert_eq!(bodies.oldest_arrival(&[ordered.reference, name(2, 1)]), None, "not here");
}
