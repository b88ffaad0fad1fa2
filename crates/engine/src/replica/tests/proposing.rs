//! What a leader proposes, and when.

use super::{NOW, effects, replica};
use crate::testing::request;
use crate::{Message, Replica, Settings, Timer};
use quorate_consensus::ProtocolKind;
use quorate_types::{Body, BodyRef, Effect, Machine, ReplicaId, Request, Time};
use std::sync::Arc;
use std::time::Duration;

/// Author 2's body of so many requests.
fn body_of(sequence: u64, requests: u64) -> Arc<Body> {
    let requests: Vec<Request> = (0..requests).map(|k| request(sequence * 10 + k, 10)).collect();
    Arc::new(Body::seal(ReplicaId(2), sequence, &requests))
}

/// The bodies come and become durable together.
fn take(replica: &mut Replica, now: Time, bodies: &[Arc<Body>]) {
    for body in bodies {
        replica.bodies.hold(now, Arc::clone(body));
        replica.bodies.stored(body.reference);
    }
    replica.handle_timeout(now);
}

/// Bodies of each proposal.
fn proposals(replica: &mut Replica) -> Vec<Vec<BodyRef>> {
    effects(replica)
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Send { message: Message::Consensus(message), .. } => {
                message.proposed_bodies().map(<[_]>::to_vec)
            }
            _ => None,
        })
        .collect()
}

fn names(bodies: &[Arc<Body>]) -> Vec<BodyRef> {
    bodies.iter().map(|body| body.reference).collect()
}

/// A block takes no more operations than it may, but one body in any case.
#[test]
fn a_payload_keeps_to_its_operations() {
    for (most, sizes, taken) in
        [(3, vec![5, 1], 1), (3, vec![2, 1, 1], 2), (3, vec![2, 2, 1], 1), (0, vec![5, 5, 5], 3)]
    {
        let tune = |settings: &mut Settings| settings.comparison.block_operations_max = most;
        let mut leader = replica(0, tune);
        let bodies: Vec<Arc<Body>> =
            (0..).zip(&sizes).map(|(sequence, size)| body_of(sequence, *size)).collect();
        take(&mut leader, NOW, &bodies);
        assert_eq!(proposals(&mut leader), [names(&bodies[..taken])], "{sizes:?}");
    }
}

/// Where several slots may be under way a primary that usually has many bodies waits for more, as
/// long as a batch may wait and no longer.
#[test]
fn a_primary_with_several_slots_waits_for_company() {
    let mut primary = replica(1, |settings| settings.protocol = ProtocolKind::Pbft);
    let many: Vec<Arc<Body>> = (0..20).map(|sequence| body_of(sequence, 1)).collect();
    take(&mut primary, NOW, &many);
    assert_eq!(proposals(&mut primary), [names(&many)]);
    let now = NOW + Duration::from_millis(1);
    let one = body_of(20, 1);
    take(&mut primary, now, std::slice::from_ref(&one));
    assert_eq!(primary.status().timers.get(&Timer::Propose), Some(&5));
    let due = now + Duration::from_millis(5);
    primary.handle_timeout(due - Duration::from_micros(1));
    assert_eq!(proposals(&mut primary), [] as [Vec<BodyRef>; 0]);
    primary.handle_timeout(due);
    assert_eq!(proposals(&mut primary), [names(&[one])]);
}

/// A payload bears its proposer's clock: the wall's at the start, and what passed since.
#[test]
fn a_payload_is_stamped_with_the_time() {
    let mut leader = replica(0, |_| {});
    let now = NOW + Duration::from_millis(41);
    take(&mut leader, now, &[body_of(1, 1)]);
    let stamp = effects(&mut leader).into_iter().find_map(|effect| match effect {
        Effect::Send { message: Message::Consensus(message), .. } => stamp_of(&message),
        _ => None,
    });
    assert_eq!(stamp, Some(1_700_000_000_042));
}

fn stamp_of(message: &quorate_consensus::Message) -> Option<u64> {
    use quorate_consensus::{Message, chained};
    match message {
        Message::Jolteon(chained::Message::Proposal(proposal)) => {
            Some(proposal.block.payload.header.proposed_at_ms)
        }
        _ => None,
    }
}
