//! What a collector learns of the votes that come late, and how long it waits for them: paper 002
//! §V-E and §VIII.

use super::harness::*;
use super::*;
use crate::windowed::fast_timer::FastTimer;
use crate::windowed::slot_votes::INTERPOLATION_TIME;

/// Most that a collector waits for the votes beyond a quorum's: an eighth of a timeout.
const WAIT_MAX: Duration = Duration::from_millis(125);

fn after(bench: &mut Bench, milliseconds: u64) {
    bench.now = bench.now + Duration::from_millis(milliseconds);
}

/// A timer that observed one lag.
fn observed(most: Duration, milliseconds: u64) -> FastTimer {
    let mut timer = FastTimer::new(most);
    timer.observed(Duration::from_millis(milliseconds));
    timer
}

fn wait(timer: &FastTimer) -> Duration {
    timer.wait_at(Height(1))
}

/// Slots that this member of six, of which one is redundant, collects first in view 1.
fn slots_of_six(member: u16) -> impl Iterator<Item = u64> {
    let first = |slot| collectors::collectors(Epoch(1), View(1), Height(slot), 6, 1)[0];
    (1..=WINDOW / 4).filter(move |slot| first(*slot) == ReplicaId(member))
}

/// A member's shares for both thresholds, which have keys of their own.
fn both_shares(verifier: &Verifier, member: u8, proposal: &Proposal) -> Shares {
    let committee = verifier.committee();
    let statement = verifier.statement(Kind::Prepare, proposal);
    let sign = |purpose| committee.sign(purpose, &voting(committee, member), &statement);
    Shares { slow: sign(Purpose::Vote), fast: Some(sign(Purpose::Fast)) }
}

fn vote_with_both(bench: &mut Bench, member: u8, proposal: Proposal) -> Outputs {
    let shares = both_shares(&bench.verifier, member, &proposal);
    bench.tell(member, Message::SignShare(SignShare { proposal, shares }))
}

/// The lag is from the vote that completes a quorum to the one that would decide at once, whenever
/// the first came.
#[test]
fn a_collector_learns_how_late_the_last_votes_come() {
    let mut bench = Bench::new(ProtocolKind::Sbft, 0);
    let slot = slots_of_collector(0).next().expect("one of them");
    bench.propose(1, slot, A);
    after(&mut bench, 5);
    bench.store(slot, A);
    after(&mut bench, 6);
    bench.vote(2, at(1, slot, A));
    after(&mut bench, 20);
    bench.vote(2, at(1, slot, A));
    assert_eq!(wait(&bench.machine.fast_timer), wait(&FastTimer::new(WAIT_MAX)), "the same vote");
    assert!(bench.vote(3, at(1, slot, A)).says(is_fast_proof));
    let expected = wait(&observed(WAIT_MAX, 20));
    assert_ne!(expected, wait(&FastTimer::new(WAIT_MAX)));
    assert_eq!(wait(&bench.machine.fast_timer), expected);
}

/// It learns from votes that come too late as well.
#[test]
fn a_collector_learns_from_votes_that_miss_the_fast_path() {
    let mut bench = Bench::new(ProtocolKind::Sbft, 0);
    let slot = slots_of_collector(0).next().expect("one of them");
    bench.accept(1, slot, A);
    bench.vote(2, at(1, slot, A));
    bench.ring_until(is_prepare);
    bench.now = Time(0) + Duration::from_millis(100);
    bench.vote(3, at(1, slot, A));
    assert_eq!(wait(&bench.machine.fast_timer), wait(&observed(WAIT_MAX, 100)));
}

/// With keys of their own, shares for a quorum's certificate say nothing of the fast path.
#[test]
fn votes_without_a_fast_share_teach_nothing() {
    let verifier = verifier_with(ProtocolKind::Sbft, &dealt_committee_file(4, 0));
    let mut bench = Bench::started(&verifier, 0).0;
    let slot = slots_of_collector(0).next().expect("one of them");
    bench.accept(1, slot, A);
    bench.vote(2, at(1, slot, A));
    after(&mut bench, 20);
    bench.vote(3, at(1, slot, A));
    assert_eq!(wait(&bench.machine.fast_timer), wait(&FastTimer::new(WAIT_MAX)));
}

/// A slot of six members of which votes come as they are told: a quorum's at once, the redundant
/// one's so long after those that decide.
fn redundant_vote_comes(bench: &mut Bench, slot: u64, late: u64) {
    let proposal = at(1, slot, A);
    let mut proposed = signed_pre_prepare(&bench.verifier, 1, 1, value(slot, A));
    proposed.shares = both_shares(&bench.verifier, 1, &proposal);
    bench.tell(1, Message::PrePrepare(proposed));
    bench.store(slot, A);
    vote_with_both(bench, 2, proposal);
    vote_with_both(bench, 3, proposal);
    after(bench, 20);
    assert!(!vote_with_both(bench, 4, proposal).combines(), "it waits for the sum of all");
    after(bench, late);
    assert!(vote_with_both(bench, 5, proposal).says(is_fast_proof));
}

/// §VIII: when all sign nothing is interpolated. The wait for that follows what was seen, but for
/// lags that cost more than they save.
#[test]
fn a_collector_learns_how_late_the_redundant_vote_comes() {
    let verifier = verifier_with(ProtocolKind::Sbft, &dealt_committee_file(6, 1));
    let mut bench = Bench::started(&verifier, 0).0;
    let mut slots = slots_of_six(0);
    redundant_vote_comes(&mut bench, slots.next().expect("one of them"), 3);
    assert_eq!(wait(&bench.machine.fast_timer), wait(&observed(WAIT_MAX, 20)));
    let learned = wait(&observed(INTERPOLATION_TIME, 3));
    assert_ne!(learned, wait(&FastTimer::new(INTERPOLATION_TIME)));
    assert_eq!(wait(&bench.machine.whole_timer), learned);

    let mut bench = Bench::started(&verifier, 0).0;
    redundant_vote_comes(&mut bench, slots.next().expect("another"), 5);
    let unlearned = wait(&FastTimer::new(INTERPOLATION_TIME));
    assert_eq!(wait(&bench.machine.whole_timer), unlearned, "longer than it may wait");
}

/// Every member sees who signed a fast proof, whoever made it: where the redundant vote is missing
/// from slot after slot, nobody waits for it.
#[test]
fn a_redundant_vote_that_never_comes_is_not_waited_for() {
    let verifier = verifier_of(ProtocolKind::Sbft, 6, 1);
    let mut bench = Bench::started(&verifier, 0).0;
    let mut decide = |slot, signers: &[u8]| {
        let certificate = certificate(&verifier, Kind::Prepare, at(1, slot, A), signers);
        let proof = Proof { path: Path::Fast, certificate };
        let decided = DecidedSlot { payload: value(slot, A), proof };
        assert_eq!(bench.tell(2, Message::Decided(Box::new(decided))).decided(), [slot]);
        wait(&bench.machine.whole_timer)
    };
    let waits: Vec<Duration> = (1..=8).map(|slot| decide(slot, &[0, 1, 2, 3, 4])).collect();
    assert!(!waits[6].is_zero());
    assert!(waits[7].is_zero(), "eight in a row");
    assert!(!decide(9, &[0, 1, 2, 3, 4, 5]).is_zero(), "it came again");
}

/// A collector that was shown a certificate has nothing to combine when its wait ends: it goes to
/// sleep until something else is due.
#[test]
fn a_wait_ends_with_the_certificate_of_another() {
    let mut bench = Bench::new(ProtocolKind::Sbft, 0);
    let slot = slots_of_collector(0).next().expect("one of them");
    bench.accept(1, slot, A);
    bench.vote(2, at(1, slot, A));
    let shown = prepared(&bench.verifier, at(1, slot, A));
    bench.tell(1, Message::Prepare(shown));
    for _ in 0..3 {
        assert!(!bench.ring().says(is_prepare));
    }
    assert!(bench.machine.next_timeout() > Some(bench.now));
}

/// §V-E: linear PBFT has no fast path, whatever shares its members send.
#[test]
fn fast_shares_decide_nothing_without_a_fast_path() {
    let verifier = verifier_with(ProtocolKind::LinearPbft, &dealt_committee_file(6, 1));
    let mut bench = Bench::started(&verifier, 0).0;
    let slot = slots_of_six(0).next().expect("one of them");
    let votes = (1..6).map(|member| vote_with_both(&mut bench, member, at(1, slot, A)));
    let votes: Vec<Outputs> = votes.collect();
    assert!(votes.iter().any(|outputs| outputs.says(is_prepare)));
    assert!(votes.iter().all(|outputs| !outputs.says(is_proof)));
}
