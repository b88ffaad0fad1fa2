//! Whom a member sends its share, when, and whose turn it is to add up.

use super::{LEADER, START, TestNetwork, block, collector, executed};
use crate::execution::Execution;
use crate::testing::{certify_executed, config, voting, with_redundancy};
use crate::{Message, ReplicaConfig, Settings, Verifier};
use quorate_types::executed::executed_statement;
use quorate_types::{Height, Recipients, ReplicaId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);

fn number(member: usize) -> u16 {
    u16::try_from(member).expect("few")
}

/// One member of four, alone with itself.
fn alone(member: usize) -> Execution {
    TestNetwork::new().members.swap_remove(member)
}

/// The heights whose shares a member sends now, each with its receiver.
fn shares(member: &mut Execution) -> Vec<(u64, Recipients)> {
    let sent = std::iter::from_fn(|| member.output.outbox.pop_front());
    let share = |(to, message)| match message {
        Message::ExecutionShare(height, ..) => Some((height.0, to)),
        _ => None,
    };
    sent.filter_map(share).collect()
}

/// Neither leads nor collects these heights.
fn bystander(heights: &[u64]) -> usize {
    let collectors: BTreeSet<usize> = heights.iter().map(|height| collector(*height)).collect();
    let free = |member: &usize| *member != LEADER.index() && !collectors.contains(member);
    (0..4).find(free).expect("there are others")
}

/// The share goes to the collector, to whoever leads, and then to everybody, ever more seldom.
#[test]
fn a_share_that_is_not_answered_goes_to_ever_more_members() {
    let (first, leader) = (collector(1), LEADER.index());
    let one = |member| vec![(1, Recipients::One(ReplicaId(number(member))))];
    let all = vec![(1, Recipients::All)];
    for member in [bystander(&[1]), first, leader] {
        let mut execution = alone(member);
        execution.starts(&block(1, number(member)));
        execution.executed(START, &executed(&block(1, number(member)), 1));
        // Nobody sends to itself.
        let to_first = if member == first { vec![] } else { one(first) };
        let to_leader = if member == leader { vec![] } else { one(leader) };
        let mut expected = vec![to_first, to_leader];
        expected.resize(9, all.clone());
        let waits = [250, 250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000];
        let mut now = START;
        for (at, (wait, expected)) in waits.into_iter().zip(expected).enumerate() {
            execution.due(now);
            assert_eq!(shares(&mut execution), expected, "attempt {at} of {member}");
            let next = now + wait * MILLISECOND;
            assert_eq!(execution.deadline(), Some(next), "after attempt {at} of {member}");
            execution.due(now);
            assert_eq!(shares(&mut execution), [], "too early");
            now = next;
        }
    }
}

/// A certificate needs two of four: the collector's own share is one.
#[test]
fn a_collectors_own_share_counts() {
    let (first, other) = (collector(1), bystander(&[1]));
    let mut net = TestNetwork::new();
    net.dead = (0..4).filter(|member| *member != first && *member != other).collect();
    net.execute(&[first, other], &block(1, number(other)), 1);
    assert_eq!((net.newest()[first], net.newest()[other]), (1, 1));
}

/// The others' shares came before the collector executed: it shows the certificate as it does.
#[test]
fn a_collector_that_executes_last_shows_the_certificate_at_once() {
    let last = collector(1);
    let others: Vec<usize> = (0..4).filter(|member| *member != last).collect();
    let mut net = TestNetwork::new();
    net.execute(&others, &block(1, number(last)), 1);
    assert_eq!(net.newest(), [0; 4]);
    net.execute(&[last], &block(1, number(last)), 1);
    assert_eq!(net.newest(), [1; 4]);
    assert_eq!(net.replies.len(), 1);
}

/// Where leaders take turns, they do so among those asked last too.
#[test]
fn without_a_steady_leader_each_member_is_the_last_to_be_asked_in_its_turn() {
    let mut execution = alone(0);
    execution.led_by(None);
    let last = |height| execution.collectors(Height(height)).last().copied();
    let asked: Vec<_> = (4..12).filter_map(last).collect();
    assert_eq!(asked, [0, 1, 2, 3, 0, 1, 2, 3].map(ReplicaId));
}

/// What own clients wait for is certified however long it takes, and so is the last height: it
/// brings the others. Shares over the rest go to everybody once.
#[test]
fn only_the_last_height_and_those_of_own_clients_are_pressed_for() {
    let heights = [1, 2, 3];
    let own = 0;
    let mut execution = alone(own);
    for height in heights {
        let author = if height == 2 { number(own) } else { LEADER.0 };
        execution.starts(&block(height, author));
        execution.executed(START, &executed(&block(height, author), 1));
    }
    let (end, mut sent) = (START + 30_000 * MILLISECOND, Vec::new());
    for _ in 0..100 {
        let at = execution.deadline().expect("own clients wait");
        execution.due(at);
        sent.extend(shares(&mut execution).into_iter().map(|(height, to)| (at, height, to)));
        if at > end {
            break;
        }
    }
    assert!(execution.deadline() > Some(end), "it goes on ever more seldom");
    let to_all = sent.iter().filter(|(_, _, to)| *to == Recipients::All);
    assert_eq!(to_all.map(|(_, height, _)| *height).collect::<BTreeSet<_>>(), heights.into());
    let late = sent.iter().filter(|(at, ..)| *at > START + 10_000 * MILLISECOND);
    assert_eq!(late.map(|(_, height, _)| *height).collect::<BTreeSet<_>>(), [2, 3].into());
}

/// The wait for a collector follows the time that certificates took; one whose share was sent twice
/// tells nothing of it.
#[test]
fn the_wait_for_a_collector_follows_what_certificates_take() {
    let first = collector(1);
    let heights: Vec<u64> = (1..100).filter(|height| collector(*height) == first).take(3).collect();
    let own = number(bystander(&heights));
    let mut execution = alone(usize::from(own));
    let mut now = START;
    let mut waits = Vec::new();
    // The second one takes longer than the wait.
    for (height, takes) in heights.into_iter().zip([10, 300, 10]) {
        let executed = executed(&block(height, own), 1);
        execution.starts(&block(height, own));
        execution.executed(now, &executed);
        let deadline = execution.deadline().expect("it waits");
        waits.push(deadline.since(now));
        now = now + takes * MILLISECOND;
        if deadline < now {
            execution.due(deadline);
        }
        let proof = certify_executed(executed.header);
        execution.on_proof(now, ReplicaId(number(first)), proof);
        assert_eq!(execution.deadline(), None, "certified");
    }
    let usual = Duration::from_millis(250);
    // Four times the mean, in which one time of 10 ms is an eighth.
    let quicker = (7 * usual + 4 * 10 * MILLISECOND) / 8;
    assert_eq!(waits, [usual, quicker, quicker]);
}

/// Two collectors are drawn of six members, where one may be slow.
fn redundant() -> (ReplicaId, Execution) {
    let committee = with_redundancy(&[1; 6], 1);
    let settings = Settings { execution_certificates: true, ..Settings::default() };
    let member = |member: u8| {
        let verifier = Arc::new(Verifier::new(Arc::clone(&committee), &settings));
        let config = ReplicaConfig { verifier, ..config(member, settings.clone()) };
        let mut execution = Execution::new(&config);
        execution.led_by(Some(LEADER));
        execution
    };
    let collectors = member(0).collectors(Height(1));
    let [first, second, LEADER] = collectors[..] else { panic!("{collectors:?}") };
    (first, member(u8::try_from(second.0).expect("few")))
}

/// A member says what height 1 came to.
fn give_share(to: &mut Execution, now: quorate_types::Time, from: u8) {
    let root = executed(&block(1, 0), 1).header.root();
    let scope = to.committee.scope();
    let share = voting(from).sign(&executed_statement(scope, Height(1), root));
    to.on_share(now, ReplicaId(u16::from(from)), (Height(1), root), share);
}

/// The second collector adds up when the first one had its time, and does not wait for that one
/// again.
#[test]
fn the_next_collector_waits_its_turn() {
    let (first, mut second) = redundant();
    let turn = START + Settings::default().timeout() / 4;
    (0..6).for_each(|from| give_share(&mut second, START, from));
    assert_eq!(second.deadline(), Some(turn));
    second.due(turn - Duration::from_micros(1));
    assert!(second.output.jobs.pop_front().is_none());
    second.due(turn);
    assert!(second.output.jobs.pop_front().is_some());
    assert!(!second.collector_backoff.awaits(turn, first), "it missed its turn");
}

/// A collector that had nothing to add up missed nothing; whoever is next adds up what comes.
#[test]
fn a_turn_in_which_there_is_too_little_to_add_up_is_nobodys_fault() {
    let (first, mut second) = redundant();
    let turn = START + Settings::default().timeout() / 4;
    give_share(&mut second, START, 4);
    second.due(turn);
    assert!(second.output.jobs.pop_front().is_none());
    assert!(second.collector_backoff.awaits(turn, first));
    assert_eq!(second.deadline(), None);
    give_share(&mut second, turn, 5);
    assert!(second.output.jobs.pop_front().is_some());
}

/// ★ Its records are older than its signatures: no share leaves that waited, and none is signed.
#[test]
fn a_member_that_stops_signing_shares_no_root() {
    let author = number(bystander(&[1]));
    let mut execution = alone(bystander(&[1]));
    execution.starts(&block(1, author));
    execution.executed(START, &executed(&block(1, author), 1));
    execution.stop_signing();
    assert_eq!(shares(&mut execution), [], "it had not left");
    assert_eq!(execution.deadline(), None, "nothing is to be sent again");
    execution.executed(START, &executed(&block(2, author), 1));
    execution.due(START + Settings::default().timeout());
    assert_eq!((shares(&mut execution), execution.deadline()), (vec![], None));
}
