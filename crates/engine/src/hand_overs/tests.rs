use super::HandOvers;
use crate::testing::{config, hand_over, identity, signed_change, signed_hand_over, voting};
use crate::{Message, Settings};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{Share, hash};
use quorate_types::machine::Halt;
use quorate_types::{ClientId, CommitteeFile, HandOver, Height, Recipients, ReplicaId, Time};
use std::time::Duration;

const NOW: Time = Time(1_000_000);

/// More than whoever has the certificate waits for others.
const PATIENCE: Duration = Duration::from_secs(3_600);

fn next_file() -> CommitteeFile {
    signed_change(1, 9).change.file
}

fn member(id: u8) -> HandOvers {
    HandOvers::new(&config(id, Settings::default()))
}

fn other_root() -> HandOver {
    HandOver { root: hash(b"other"), ..hand_over() }
}

/// Share of a member over this content.
fn share(member: u8, content: HandOver) -> Share {
    let scope = crate::testing::committee().scope();
    voting(member).sign(&content.statement(scope))
}

/// A member hears another's share, and carries out what it asks for.
fn hear(at: &mut HandOvers, from: u8, content: HandOver) {
    at.on_share(NOW, ReplicaId(from.into()), content, share(from, content));
    while let Some(job) = at.output.jobs.pop_front() {
        at.on_combined(NOW, &job.run());
    }
}

/// ★ Three of four hand over; two do not, nor do three that say different things.
#[test]
fn a_quorum_of_one_content_hands_over() {
    let mut own = member(0);
    own.ended(NOW, hand_over(), &next_file());
    hear(&mut own, 1, hand_over());
    hear(&mut own, 2, other_root());
    hear(&mut own, 2, hand_over());
    assert!(own.certified().is_none(), "the third said something else first");
    hear(&mut own, 3, hand_over());
    let signed = own.take_unrecorded().expect("a quorum");
    assert_eq!(signed, signed_hand_over(hand_over()));
    assert_eq!(own.take_handed(NOW + PATIENCE), Some(signed));
    assert!(own.take_unrecorded().is_none() && own.take_handed(NOW + PATIENCE).is_none(), "once");
    assert_eq!(own.deadline(), None, "nothing is to be said any more");
}

/// A bad share is found as shares are added up, and does not count.
#[test]
fn a_bad_share_is_its_senders() {
    let mut own = member(0);
    own.ended(NOW, hand_over(), &next_file());
    own.on_share(NOW, ReplicaId(1), hand_over(), share(1, other_root()));
    hear(&mut own, 2, hand_over());
    assert!(own.certified().is_none());
    assert_eq!(own.output.misbehaviour.pop_front().map(|seen| seen.member), Some(ReplicaId(1)));
    hear(&mut own, 3, hand_over());
    assert!(own.certified().is_some());
}

/// A share goes to all, again and again until the certificate is here; who has it answers with it,
/// each member once in a while.
#[test]
fn who_lacks_the_certificate_is_shown_it() {
    let mut late = member(3);
    late.ended(NOW, hand_over(), &next_file());
    let sent = |member: &mut HandOvers| {
        let (to, message) = member.output.outbox.pop_front()?;
        matches!(message, Message::HandOverShare(content, _) if content == hand_over())
            .then_some(to)
    };
    assert_eq!((sent(&mut late), sent(&mut late)), (Some(Recipients::All), None));
    let again = late.deadline().expect("it waits");
    late.due(again);
    assert_eq!(sent(&mut late), Some(Recipients::All));
    let mut early = member(0);
    early.learn(NOW, signed_hand_over(hand_over()));
    for (at, is_answered) in [(NOW, true), (NOW, false), (again, true)] {
        early.on_share(at, ReplicaId(3), hand_over(), share(3, hand_over()));
        let answer = early.output.outbox.pop_front();
        assert_eq!(answer.is_some(), is_answered, "{at:?}");
        if let Some((to, Message::HandOver(signed))) = answer {
            assert_eq!(to, Recipients::One(ReplicaId(3)));
            late.learn(NOW, signed);
        }
    }
    assert!(late.take_handed(NOW + PATIENCE).is_some() && late.deadline().is_none());
}

/// Who may not sign learns of it all the same.
#[test]
fn who_signs_no_more_collects() {
    let mut own = member(0);
    own.ended(NOW, hand_over(), &next_file());
    own.stop_signing();
    assert!(own.output.outbox.pop_front().is_none() && own.deadline().is_none());
    for other in 1..4 {
        hear(&mut own, other, hand_over());
    }
    assert!(own.take_handed(NOW + PATIENCE).is_some());
}

/// ★ Whoever came to another state has the wrong one, and hands nothing over until it has the
/// certified one.
fn check_the_own_state_is_the_certified_one() {
    let mut own = member(0);
    own.ended(NOW, other_root(), &next_file());
    own.learn(NOW, signed_hand_over(hand_over()));
    assert_eq!((own.diverged(), own.take_handed(NOW + PATIENCE)), (Some(Height(9)), None));
    assert!(own.halt().is_none());
    own.ended(NOW, hand_over(), &next_file());
    assert!(own.diverged().is_none() && own.take_handed(NOW + PATIENCE).is_some());
}

#[test]
fn the_own_state_is_the_certified_one() {
    check_the_own_state_is_the_certified_one();
}

#[test]
fn trusting_the_own_state_is_noticed() {
    assert_noticed(Mutant::HandOverTrustOwn, check_the_own_state_is_the_certified_one);
}

/// Two hand-overs of one epoch, or one after another block than was decided here.
#[test]
fn two_contents_halt() {
    let mut own = member(0);
    own.learn(NOW, signed_hand_over(hand_over()));
    own.learn(NOW, signed_hand_over(hand_over()));
    assert!(own.halt().is_none());
    own.learn(NOW, signed_hand_over(other_root()));
    let halted = own.halt();
    let Some(Halt::ConflictingHandOvers { height: Height(9), evidence }) = halted else {
        panic!("{halted:?}")
    };
    for content in [hand_over(), other_root()] {
        assert!(evidence.contains(&format!("{content:?}")), "{evidence}");
    }
    let mut own = member(0);
    own.ended(NOW, HandOver { file: hash(b"another file"), ..hand_over() }, &next_file());
    own.learn(NOW, signed_hand_over(hand_over()));
    assert!(matches!(own.halt(), Some(Halt::ConflictingHandOvers { .. })));
    assert_eq!(own.take_handed(NOW + PATIENCE), None);
}

/// Who has the certificate stays until all members have the last height, or had the time for it.
#[test]
fn who_has_the_certificate_stays_for_the_others() {
    for is_complete in [true, false] {
        let mut own = member(0);
        own.ended(NOW, hand_over(), &next_file());
        hear(&mut own, 1, hand_over());
        hear(&mut own, 2, hand_over());
        let until = own.deadline().expect("it waits for one member");
        assert!(own.certified().is_some() && own.take_handed(NOW).is_none());
        if is_complete {
            hear(&mut own, 3, hand_over());
            assert!(own.take_handed(NOW).is_some());
        } else {
            assert!(until > NOW && own.take_handed(until).is_some());
        }
        assert_eq!(own.deadline(), None);
    }
}

/// Who learns of it before it is there itself says once that it is.
#[test]
fn who_is_late_says_that_it_is_there() {
    let mut late = member(3);
    late.learn(NOW, signed_hand_over(hand_over()));
    late.ended(NOW, hand_over(), &next_file());
    let said = late.output.outbox.pop_front();
    assert!(matches!(said, Some((Recipients::All, Message::HandOverShare(..)))));
    assert!(late.deadline().is_some_and(|at| at > NOW), "it stays, and says nothing again");
    late.due(NOW + PATIENCE);
    assert!(late.output.outbox.pop_front().is_none());
}

/// A newcomer of the next committee is waited for as the members are, and says so as a learner.
#[test]
fn who_has_the_certificate_stays_for_newcomers() {
    let mut next = next_file();
    let newcomer = identity(9).public();
    next.members[3].identity = newcomer.to_string();
    let mut own = member(0);
    own.ended(NOW, hand_over(), &next);
    for other in 1..4 {
        hear(&mut own, other, hand_over());
    }
    assert!(own.take_handed(NOW).is_none(), "all members are there, and the newcomer is not");
    own.learner_is_there(ClientId(identity(8).public()));
    assert!(own.take_handed(NOW).is_none(), "a stranger");
    own.learner_is_there(ClientId(newcomer));
    assert!(own.take_handed(NOW).is_some());
}
