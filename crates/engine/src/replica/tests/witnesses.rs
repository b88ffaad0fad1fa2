//! What a member does before others have told it what it signed, and when they tell it something
//! new.

use super::{NOW, effects, give, give_at, submit};
use crate::own_signatures::ASK_EVERY;
use crate::own_signatures::question::{OwnQuestion, OwnSignaturesAnswer};
use crate::testing::net::{ALL, LATENCY, Net};
use crate::testing::{certify_executed, config, identity, request, vote, voting};
use crate::{Message, Replica, ReplicaConfig, Settings, Timer, WitnessState};
use quorate_consensus::{Evidence, ProtocolKind, Rule, windowed};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest, Policy};
use quorate_types::machine::{RecordKind, Recovery};
use quorate_types::{
    Effect, Event, Header, Height, Kind, Lane, Machine, Peer, Purpose, Recipients, ReplicaId, Time,
    View,
};
use std::time::Duration;

const PROTOCOLS: [ProtocolKind; 5] = [
    ProtocolKind::Jolteon,
    ProtocolKind::HotStuff,
    ProtocolKind::HotStuffBasic,
    ProtocolKind::Pbft,
    ProtocolKind::LinearPbftFast,
];

fn running(protocol: ProtocolKind) -> Net {
    Net::asking(&Settings { protocol, ..Settings::default() }, |_, _, _| false)
}

/// Member 3 alone, after its `starts`th start at this time.
fn started(starts: u64, at: Time) -> Replica {
    recovered(Settings::default(), starts, at)
}

fn recovered(settings: Settings, starts: u64, at: Time) -> Replica {
    let config = ReplicaConfig { asks_witnesses: true, ..config(3, settings) };
    let mut replica = Replica::new(config);
    let incarnation = Some((starts - 1).to_le_bytes().to_vec().into());
    replica.handle(at, Event::Recovered(Box::new(Recovery { incarnation, ..Recovery::default() })));
    replica
}

fn question_of(replica: &mut Replica) -> OwnQuestion {
    let asked = effects(replica).into_iter().find_map(|effect| match effect {
        Effect::Send { to: Recipients::All, message: Message::OwnQuestion(question), .. } => {
            Some(question)
        }
        _ => None,
    });
    asked.expect("it asks")
}

/// Answer of a member that heard all of these questions to the first of them.
fn answer(questions: &[&OwnQuestion]) -> Message {
    let asked = (questions[0].incarnation, questions[0].started_ms);
    let questions = questions[1..].iter().map(|question| (*question).clone()).collect();
    let signer = ReplicaId(3);
    Message::OwnSignatures(OwnSignaturesAnswer { signer, asked, questions, statements: Vec::new() })
}

fn state(replica: &Replica) -> WitnessState {
    replica.status().witnesses.state
}

/// Promises among what a member sent.
fn promises(net: &Net, member: usize, from: usize) -> Vec<String> {
    let sent = net.sent[from..].iter().filter(|(sender, ..)| *sender == member);
    let verifier = net.members[member].replica.config().verifier.clone();
    let own = ReplicaId(u16::try_from(member).expect("few"));
    let promised = sent.filter_map(|(_, _, message)| match message {
        Message::Consensus(message) | Message::Inline(message, _) => {
            let (signer, signed) = message.signed_statement(own, verifier.consensus())?;
            (signer == own).then(|| signed.statement.to_string())
        }
        _ => None,
    });
    promised.collect()
}

/// Lets the committee run for so long.
fn run(net: &mut Net, span: Duration) {
    let until = net.now + span;
    while net.now < until {
        net.step();
    }
}

#[test]
fn members_that_start_together_answer_each_other_and_sign() {
    for protocol in PROTOCOLS {
        let mut net = running(protocol);
        net.serve(6, &ALL);
        assert!(net.statuses().iter().all(|it| it.witnesses.state == WitnessState::Clear));
    }
}

/// ★ It says nothing but its question, takes nothing from clients, and asks again.
fn one_that_nobody_answers_signs_nothing() {
    let mut replica = started(1, NOW);
    let mut said = effects(&mut replica);
    let barrier = said.iter().position(|effect| match effect {
        Effect::Persist(record) => record.kind == RecordKind::Incarnation,
        _ => false,
    });
    let asked = said
        .iter()
        .position(|effect| matches!(effect, Effect::Send { lane, .. } if *lane == Lane::Consensus));
    assert!(barrier.is_some() && barrier < asked, "its number is durable before it asks");
    submit(&mut replica, request(0, 10));
    said = effects(&mut replica);
    let busy =
        |effect: &Effect<Message>| matches!(effect, Effect::Send { message: Message::Busy(_), .. });
    assert!(said.len() == 1 && busy(&said[0]), "{said:?}");
    assert_eq!(state(&replica), WitnessState::Waiting);
    let due = replica.next_timeout().expect("it asks again");
    assert!(replica.status().timers.contains_key(&Timer::AskWitnesses));
    replica.handle_timeout(due);
    question_of(&mut replica);
}

#[test]
fn a_member_alone_signs_nothing_and_asks_again() {
    mutants::assert_noticed(Mutant::SignWithoutWitnesses, one_that_nobody_answers_signs_nothing);
}

#[test]
fn answers_of_weak_weight_are_enough() {
    let mut replica = started(1, NOW);
    let question = question_of(&mut replica);
    let other = OwnQuestion { started_ms: question.started_ms + 1, ..question.clone() };
    give(&mut replica, Peer::Replica(ReplicaId(0)), &answer(&[&question]));
    give(&mut replica, Peer::Replica(ReplicaId(0)), &answer(&[&question]));
    give(&mut replica, Peer::Replica(ReplicaId(1)), &answer(&[&other]));
    assert_eq!(state(&replica), WitnessState::Waiting, "one answered this start, twice");
    give(&mut replica, Peer::Replica(ReplicaId(2)), &answer(&[&question]));
    assert_eq!(state(&replica), WitnessState::Clear);
    effects(&mut replica);
    let due = replica.next_timeout().expect("it asks once more");
    assert!(replica.status().timers.contains_key(&Timer::AskWitnesses));
    replica.handle_timeout(due);
    assert_eq!(question_of(&mut replica), question);
    assert!(!replica.status().timers.contains_key(&Timer::AskWitnesses));
}

/// A member whose log is whole signs again as soon as two have answered.
#[test]
fn a_member_that_restarts_signs_again() {
    for protocol in PROTOCOLS {
        let mut net = running(protocol);
        net.serve(6, &ALL);
        for member in ALL {
            let disk = net.disk(member);
            net.restart(member, disk);
            assert_eq!(state(&net.members[member].replica), WitnessState::Waiting);
            run(&mut net, 4 * LATENCY);
            assert_eq!(state(&net.members[member].replica), WitnessState::Clear, "{protocol}");
        }
        net.serve_from(6, 6, &ALL);
        assert!(net.members.iter().all(|member| member.stopped.is_none()));
    }
}

#[test]
fn members_that_all_restart_at_once_go_on() {
    for protocol in PROTOCOLS {
        let mut net = running(protocol);
        net.serve(6, &ALL);
        for member in ALL {
            let disk = net.disk(member);
            net.restart(member, disk);
        }
        net.serve_from(6, 6, &ALL);
    }
}

/// ★ Its disk is as it was some decisions ago, and no other start tells: what it signed since does.
fn an_old_copy_of_a_running_disk_signs_nothing() {
    for protocol in PROTOCOLS {
        let mut net = running(protocol);
        net.serve(6, &ALL);
        let copy = net.disk(3);
        net.serve_from(6, 6, &ALL);
        let before = net.sent.len();
        net.restart(3, copy);
        run(&mut net, Duration::from_millis(50));
        let stopped = net.members[3].stopped.clone().expect("it finds out");
        assert!(stopped.contains("this key signed"), "{protocol}: {stopped}");
        assert_eq!(promises(&net, 3, before), Vec::<String>::new(), "{protocol}");
        let status = net.members[3].replica.status();
        assert!(!status.signs && status.witnesses.contradiction == stopped);
        net.serve_from(12, 6, &ALL[..3]);
        assert_eq!(promises(&net, 3, before), Vec::<String>::new(), "{protocol}");
    }
}

#[test]
fn an_old_copy_is_told_by_the_signatures_since() {
    mutants::assert_noticed(
        Mutant::SignBelowWitnesses,
        an_old_copy_of_a_running_disk_signs_nothing,
    );
}

/// Two copies of one folder start, each under the number after the copy's: the one that is answered
/// hears of the other.
fn a_second_process_with_the_key_is_noticed() {
    let (mut one, mut other) = (started(5, NOW), started(5, NOW + Duration::from_secs(1)));
    let (own, others) = (question_of(&mut one), question_of(&mut other));
    give(&mut one, Peer::Replica(ReplicaId(0)), &answer(&[&own]));
    give(&mut one, Peer::Replica(ReplicaId(1)), &answer(&[&own]));
    assert_eq!(state(&one), WitnessState::Clear);
    give(&mut one, Peer::Replica(ReplicaId(1)), &answer(&[&others, &own]));
    assert_eq!(state(&one), WitnessState::Clear, "that is its own question");
    give(&mut one, Peer::Replica(ReplicaId(1)), &answer(&[&own, &others]));
    assert_eq!(state(&one), WitnessState::Contradicted);
    let stops = |effect: &Effect<Message>| matches!(effect, Effect::StopSigning(_));
    assert!(effects(&mut one).iter().any(stops) && !one.status().signs);
}

#[test]
fn a_second_process_with_the_key_stops_both() {
    mutants::assert_noticed(Mutant::IgnoreTwin, a_second_process_with_the_key_is_noticed);
}

/// A liar shows what the member asked before it restarted: that is no other process.
#[test]
fn questions_of_earlier_starts_are_nothing_new() {
    let (mut now, mut before) = (started(5, NOW), started(4, Time(0)));
    let (own, earlier) = (question_of(&mut now), question_of(&mut before));
    for member in [0, 1] {
        give(&mut now, Peer::Replica(ReplicaId(member)), &answer(&[&own, &earlier]));
    }
    assert_eq!(state(&now), WitnessState::Clear);
}

/// The members that are asked remember who asked, whatever became of the process.
#[test]
fn members_show_a_question_of_another_start_under_the_number() {
    let mut net = running(ProtocolKind::Jolteon);
    net.serve(6, &ALL);
    let stopped = net.disk(3);
    net.restart(3, stopped.clone());
    run(&mut net, 4 * LATENCY);
    assert_eq!(state(&net.members[3].replica), WitnessState::Clear);
    net.restart(3, stopped);
    run(&mut net, Settings::default().timeout());
    let reason = net.members[3].stopped.clone().expect("it finds out");
    assert!(reason.contains("as of start 2, and this one is start 2"), "{reason}");
}

#[test]
fn a_busy_member_asks_now_and_then() {
    let mut net = running(ProtocolKind::Pbft);
    let asked = |net: &Net| {
        let questions =
            net.sent.iter().filter(|(.., message)| matches!(message, Message::OwnQuestion(_)));
        questions.count()
    };
    net.serve(6, &ALL);
    run(&mut net, Settings::default().timeout());
    let first = asked(&net);
    assert_eq!(first, 2 * 4 * 3, "each asked all others at its start, and once more");
    net.serve_from(6, 2 * ASK_EVERY, &ALL);
    assert!(net.statuses()[0].decided.0 >= ASK_EVERY);
    assert_eq!(asked(&net), first, "heights pass quickly");
    run(&mut net, Settings::default().timeout() * 4);
    net.serve_from(6 + 2 * ASK_EVERY, 6, &ALL);
    assert!(asked(&net) > first, "{first}");
}

/// Whoever is idle shows its last decision once: to a member that came up, before that one's
/// question is answered.
#[test]
fn a_decision_that_is_shown_before_the_answers_is_kept() {
    for protocol in PROTOCOLS {
        let mut net = running(protocol);
        net.serve(6, &ALL);
        net.lost = |from, to, _| from == 3 || to == 3;
        net.serve_from(6, 6, &ALL[..3]);
        net.lost = |_, _, _| false;
        let disk = net.disk(3);
        net.restart(3, disk);
        for other in 0..3 {
            net.connect(other, 3);
        }
        run(&mut net, LATENCY);
        assert_eq!(state(&net.members[3].replica), WitnessState::Waiting);
        run(&mut net, Duration::from_secs(60));
        let decided: Vec<_> = net.statuses().iter().map(|status| status.decided).collect();
        assert_eq!(decided[3], decided[0], "{protocol}: {decided:?}");
        assert!(net.members[3].stopped.is_none(), "{protocol}");
    }
}

/// Nobody tells a member unasked what was decided while its connections dropped what was said: when
/// it stood still, or its disk was full.
#[test]
fn a_member_that_stood_still_asks_what_it_missed() {
    for (protocol, event) in PROTOCOLS.into_iter().zip([0_u64, 1].into_iter().cycle()) {
        let mut net = running(protocol);
        net.serve(6, &ALL);
        run(&mut net, Settings::default().timeout());
        net.lost = |from, to, _| from == 3 || to == 3;
        net.serve_from(6, 6, &ALL[..3]);
        run(&mut net, Duration::from_secs(60));
        net.lost = |_, _, _| false;
        let behind = net.statuses();
        assert!(behind[3].decided < behind[0].decided, "{protocol}");
        let event = match event {
            0 => Event::WallClock(1_700_000_100_000),
            _ => Event::DiskNearlyFull(false),
        };
        let now = net.now;
        net.members[3].replica.handle(now, event);
        run(&mut net, Duration::from_secs(60));
        let decided: Vec<_> = net.statuses().iter().map(|status| status.decided).collect();
        assert_eq!(decided[3], decided[0], "{protocol}: {decided:?}");
    }
}

/// ★ What it was given to order is numbered by nobody: whoever signs in its place numbers its own.
fn a_member_that_is_contradicted_seals_nothing() {
    let settings = Settings { batch_delay_ms: 50, ..Settings::default() };
    let mut one = recovered(settings, 5, NOW);
    let (own, others) = (question_of(&mut one), question_of(&mut started(5, Time(0))));
    for member in [0, 1] {
        give(&mut one, Peer::Replica(ReplicaId(member)), &answer(&[&own]));
    }
    let sealed = |effect: &Effect<Message>| matches!(effect, Effect::Store(_));
    submit(&mut one, request(0, 10));
    assert!(effects(&mut one).iter().any(sealed), "the first of an idle member");
    submit(&mut one, request(1, 10));
    give(&mut one, Peer::Replica(ReplicaId(1)), &answer(&[&own, &others]));
    assert_eq!(state(&one), WitnessState::Contradicted);
    for _ in 0..20 {
        let Some(due) = one.next_timeout() else { break };
        one.handle_timeout(due);
    }
    assert!(!effects(&mut one).iter().any(sealed));
}

#[test]
fn a_member_that_stops_signing_seals_nothing() {
    mutants::assert_noticed(
        Mutant::SealWithoutSigning,
        a_member_that_is_contradicted_seals_nothing,
    );
}

#[test]
fn a_member_that_votes_twice_is_convicted_by_whoever_got_both() {
    let mut replica = super::replica(0, |_| {});
    for (view, block) in [(5, 1), (5, 1), (6, 1)] {
        give(&mut replica, Peer::Replica(ReplicaId(1)), &Message::Consensus(vote(1, view, block)));
        assert_eq!(replica.evidence().iter().count(), 0);
    }
    give(&mut replica, Peer::Replica(ReplicaId(1)), &Message::Consensus(vote(1, 6, 2)));
    let kept: Vec<_> = replica.evidence().iter().map(|(member, rule, _)| (member, rule)).collect();
    assert_eq!(kept, [(ReplicaId(1), Rule::DoubleVote)]);
    assert_eq!(replica.status().evidence, *replica.evidence());
    assert!(replica.occupancy().iter().all(|collection| collection.entries <= collection.bound));
    let bound = |name| replica.occupancy().iter().find(|one| one.field == name).map(|it| it.bound);
    assert_eq!([bound("evidence"), bound("false_pairs")], [Some(4 * 3), Some(4)], "of four");
}

/// Peers count it: two processes run with one key, or one that was put back.
#[test]
fn two_starts_of_one_number_convict() {
    let verifier = config(1, Settings::default()).verifier;
    let start = |started_ms| OwnQuestion::signed(&identity(1), verifier.consensus(), 7, started_ms);
    let mut replica = super::replica(0, |_| {});
    for (asked, convicted) in [(start(1), 0), (start(1), 0), (start(2), 1), (start(3), 1)] {
        give(&mut replica, Peer::Replica(ReplicaId(1)), &Message::OwnQuestion(asked));
        assert_eq!(replica.evidence().iter().count(), convicted);
    }
    let (member, rule, evidence) = replica.evidence().iter().next().expect("convicted");
    assert_eq!((member, rule), (ReplicaId(1), Rule::SharedKey));
    assert_eq!(evidence.check(verifier.consensus()), Ok(Rule::SharedKey));
    assert!(evidence.in_words()[0].starts_with("start 7 at 1 ms"), "{:?}", evidence.in_words());
    let status = replica.status();
    let named: Vec<_> = status.misbehaviour.iter().collect();
    assert_eq!(named, [(ReplicaId(1), Rule::SharedKey, 1, &Evidence::Starts { number: 7 })]);
}

/// A member that has yet to hear of its signatures is shown a decision once, and by nobody again:
/// it acts on it when it may.
#[test]
fn what_was_shown_to_a_member_that_waited_is_acted_on() {
    for protocol in PROTOCOLS {
        let mut net = running(protocol);
        net.serve(6, &ALL);
        net.lost = |from, to, _| from == 3 || to == 3;
        net.serve_from(6, 6, &ALL[..3]);
        net.lost = |_, _, _| false;
        let disk = net.disk(3);
        net.restart(3, disk);
        (0..3).for_each(|other| net.connect(other, 3));
        net.lost = |_, to, message| to == 3 && matches!(message, Message::Consensus(_));
        run(&mut net, Duration::from_secs(60));
        let decided: Vec<_> = net.statuses().iter().map(|status| status.decided).collect();
        assert_eq!(decided[3], decided[0], "{protocol}: {decided:?}");
    }
}

/// What it would only say later is not kept for it: members ask again, and nothing bounds how often
/// they asked meanwhile.
#[test]
fn a_member_that_waits_keeps_no_answers_for_later() {
    let settings = Settings { execution_certificates: true, ..Settings::default() };
    let mut replica = recovered(settings, 1, NOW);
    let question = question_of(&mut replica);
    let proof = Message::ExecutionProof(certify_executed(Header::default()));
    give(&mut replica, Peer::Replica(ReplicaId(0)), &proof);
    let later = NOW + Settings::default().timeout();
    let share = voting(1).sign(b"anything");
    for _ in 0..3 {
        let asked = Message::ExecutionShare(Height(0), Header::default().root(), share.clone());
        give_at(&mut replica, later, Peer::Replica(ReplicaId(1)), &asked);
    }
    for member in [0, 1] {
        give_at(&mut replica, later, Peer::Replica(ReplicaId(member)), &answer(&[&question]));
    }
    assert_eq!(state(&replica), WitnessState::Clear);
    let proofs = |replica: &mut Replica| {
        let sent = effects(replica).into_iter().filter(|effect| {
            matches!(effect, Effect::Send { message: Message::ExecutionProof(_), .. })
        });
        sent.count()
    };
    assert_eq!(proofs(&mut replica), 0);
    let asked = Message::ExecutionShare(Height(0), Header::default().root(), share);
    give_at(&mut replica, later, Peer::Replica(ReplicaId(1)), &asked);
    assert_eq!(proofs(&mut replica), 1, "now it answers");
}

/// ★ What comes unasked is looked at as what comes with an answer: a report with its key that
/// another member passes on, and a certificate that names it.
#[test]
fn a_member_that_hears_of_signatures_it_did_not_make_stops() {
    let settings = Settings { protocol: ProtocolKind::Pbft, ..Settings::default() };
    let verifier = config(3, settings.clone()).verifier;
    let mut change = windowed::ViewChange {
        view: View(2),
        signer: ReplicaId(3),
        stable: None,
        slots: Vec::new(),
        signature: Vec::new(),
    };
    let statement = verifier.consensus().statement(Kind::ViewChange, &change.signed_content());
    change.signature = identity(3).sign(&statement).0.to_vec();
    let proposal = windowed::Proposal { view: View(1), slot: Height(1), digest: Digest::ZERO };
    let statement = verifier.consensus().statement(Kind::Prepare, &proposal);
    let prepared = |signers: [u8; 3]| {
        let shares = signers.map(|it| (usize::from(it), voting(it).sign(&statement)));
        let (scheme, _) = verifier.committee().scheme(Purpose::Vote);
        let combined = scheme.combine(&statement, &shares, &Bitmap::new(4), Policy::Aggregate);
        let certificate = combined.certificate.expect("good shares");
        windowed::Message::Prepare(windowed::SlotCertificate { proposal, certificate })
    };
    let (others, own) = (prepared([0, 1, 2]), prepared([0, 1, 3]));
    for (message, stops) in
        [(others, false), (own, true), (windowed::Message::ViewChange(Box::new(change)), true)]
    {
        let mut replica = recovered(settings.clone(), 1, NOW);
        let question = question_of(&mut replica);
        for member in [0, 1] {
            give(&mut replica, Peer::Replica(ReplicaId(member)), &answer(&[&question]));
        }
        assert_eq!(state(&replica), WitnessState::Clear);
        let message = Message::Consensus(quorate_consensus::Message::Pbft(message));
        give(&mut replica, Peer::Replica(ReplicaId(1)), &message);
        assert_eq!(state(&replica) == WitnessState::Contradicted, stops, "{message:?}");
        let is_stop = |effect: &Effect<Message>| matches!(effect, Effect::StopSigning(_));
        assert_eq!(effects(&mut replica).iter().any(is_stop), stops);
        assert_eq!(replica.status().signs, !stops);
    }
}
