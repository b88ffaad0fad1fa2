//! What members can show of each other's signatures: who said what, and that it is true.

use super::harness::*;
use super::*;
use crate::chained::Phase;
use crate::{ProtocolView, Rule, SignedStatement, Statement, StatementProof};
use quorate_crypto::{Certificate, Digest};

const PRIMARY: u8 = 1;

fn of(protocol: ProtocolKind, message: &Message, from: u8) -> Option<(ReplicaId, SignedStatement)> {
    let verifier = verifier(protocol);
    let message = protocol.windowed(message.clone());
    message.signed_statement(ReplicaId(u16::from(from)), &verifier)
}

/// Each message with a signature, whoever passes it on, and the statement that it shows of whom.
fn signed_messages(verifier: &Verifier) -> Vec<(Message, u8, u8, Statement)> {
    let value = at(1, 1, A);
    let change = change(verifier, 2, 3, Vec::new());
    let begun = new_view(verifier, 2, &empty_changes(verifier, 2));
    let Message::NewView(new_view) = &begun else { unreachable!("a new view") };
    let change_of_3 = Statement::ViewChange { view: View(2), digest: change.digest() };
    let begun_by_2 = Statement::NewView { view: View(2), digest: new_view.digest() };
    vec![
        (
            pre_prepare(verifier, 1, self::value(1, A)),
            PRIMARY,
            PRIMARY,
            Statement::PrePrepare(value),
        ),
        (sign_share(verifier, 3, value), 3, 3, Statement::Prepare(value)),
        (commit_share(verifier, 3, value), 3, 3, Statement::Commit(value)),
        (Message::ViewChange(Box::new(change)), 0, 3, change_of_3),
        (begun, 0, 2, begun_by_2),
    ]
}

/// The statement, said to be of another view: its signer would seem to have left views that it
/// never saw.
fn in_another_view(statement: Statement) -> Option<Statement> {
    let view = View(1 << 40);
    match statement {
        Statement::ViewChange { digest, .. } => Some(Statement::ViewChange { view, digest }),
        Statement::NewView { digest, .. } => Some(Statement::NewView { view, digest }),
        _ => None,
    }
}

/// ★ Nobody but its signer can have made a statement: not under another name, nor of another value.
#[test]
fn a_signed_message_shows_its_signers_statement() {
    let protocol = ProtocolKind::Pbft;
    let verifier = verifier(protocol);
    let is_refused = |found| matches!(found, Err(Rejected::BadSignature(_)));
    for (message, from, signer, statement) in signed_messages(&verifier) {
        let (shown, signed) = of(protocol, &message, from).expect("it is signed");
        let signer = ReplicaId(u16::from(signer));
        assert_eq!((shown, signed.statement), (signer, statement));
        assert_eq!(signed.check(signer, &verifier), Ok(()), "{statement}");
        assert!(is_refused(signed.check(ReplicaId(0), &verifier)), "{statement}");
        assert_eq!(signed.check(ReplicaId(4), &verifier), Err(Rejected::NotAMember));
        let messages = signed_messages(&verifier);
        let others = messages.iter().map(|(.., other)| *other).filter(|other| *other != statement);
        for other in others.chain(in_another_view(statement)) {
            let forged = SignedStatement { statement: other, ..signed.clone() };
            assert!(is_refused(forged.check(signer, &verifier)), "{statement}, {other}");
        }
    }
    let foreign = Statement::Timeout { view: View(1), reported: View(0) };
    let proof = StatementProof::Signature(Vec::new());
    let rule = Err(Rejected::RuleBroken("a statement is of the committee's protocol"));
    assert_eq!(SignedStatement { statement: foreign, proof }.check(ReplicaId(1), &verifier), rule);
    let certified = Message::Prepare(prepared(&verifier, at(1, 1, A)));
    for unsigned in [certified, Message::Status(status(0))] {
        assert_eq!(of(protocol, &unsigned, 3), None, "nobody signs it alone");
    }
}

/// A certificate shows the votes of those whom it names, and of nobody else.
#[test]
fn a_certificate_shows_what_each_of_its_signers_voted_for() {
    let protocol = ProtocolKind::Pbft;
    let verifier = verifier(protocol);
    let value = at(1, 1, A);
    let slow = proof(&verifier, value);
    let fast = Proof { path: Path::Fast, certificate: prepared(&verifier, value) };
    let messages = [
        (Message::Prepare(prepared(&verifier, value)), Statement::Prepare(value)),
        (Message::Proof(fast), Statement::Prepare(value)),
        (Message::Proof(slow), Statement::Commit(value)),
        (
            Message::Decided(Box::new(decided(&verifier, 1, self::value(1, A)))),
            Statement::Commit(value),
        ),
    ];
    let shown = |message: &Message, member| {
        let message = protocol.windowed(message.clone());
        message.certified_statement(ReplicaId(member), &verifier)
    };
    for (message, statement) in messages {
        assert_eq!([0, 2].map(|it| shown(&message, it)), [Some(statement); 2], "{message:?}");
        assert_eq!([3, 4].map(|it| shown(&message, it)), [None; 2], "{message:?}");
    }
    let vote = sign_share(&verifier, 3, value);
    assert_eq!(shown(&vote, 3), None);

    // Bits that name members of another committee name nobody here.
    let mut wider = prepared(&verifier, value);
    wider.certificate.signers = Bitmap::from_indices(5, [0, 1, 2]);
    assert_eq!(shown(&Message::Prepare(wider), 0), None);
}

/// Of keys that were dealt a certificate tells how many signed, and not who.
#[test]
fn a_certificate_of_dealt_keys_names_nobody() {
    let dealt = verifier_with(ProtocolKind::Pbft, &dealt_committee_file(MEMBERS, 0));
    let named = prepared(&verifier(ProtocolKind::Pbft), at(1, 1, A));
    let message = ProtocolKind::Pbft.windowed(Message::Prepare(named));
    assert_eq!(message.certified_statement(ReplicaId(0), &dealt), None);
}

/// ★ A certificate is a proof if it names the signer and is good, for what many sign alike.
#[test]
fn a_certificate_proves_the_votes_of_its_signers_alone() {
    let verifier = verifier(ProtocolKind::Pbft);
    let (value, by) = (at(1, 1, A), |signers: &[u8]| {
        certificate(&verifier, Kind::Prepare, at(1, 1, A), signers).certificate
    });
    let check = |statement, certificate: Certificate, signer| {
        let proof = StatementProof::Certificate(certificate);
        SignedStatement { statement, proof }.check(ReplicaId(signer), &verifier)
    };
    assert_eq!(check(Statement::Prepare(value), by(&[0, 1, 2]), 2), Ok(()));
    let unnamed = Err(Rejected::RuleBroken("a certificate names the signer"));
    assert_eq!(check(Statement::Prepare(value), by(&[0, 1, 2]), 3), unnamed);
    assert_eq!(check(Statement::PrePrepare(value), by(&[0, 1, 2]), 2), unnamed, "no vote");
    let refused = Err(Rejected::BadSignature("a statement of the receiver"));
    assert_eq!(check(Statement::Commit(value), by(&[0, 1, 2]), 2), refused);
    let mut forged = by(&[0, 1]);
    forged.signers = Bitmap::from_indices(4, [0, 3]);
    assert_eq!(check(Statement::Prepare(value), forged, 3), refused);
}

/// What an honest member says once: one value for a slot in a view, and one vote of each kind.
#[test]
fn two_values_for_one_slot_and_view_conflict() {
    let view_change = |view, byte| {
        let digest = Digest([byte; 32]);
        [
            Statement::ViewChange { view: View(view), digest },
            Statement::NewView { view: View(view), digest },
        ]
    };
    let kinds = [
        (Statement::PrePrepare as fn(Proposal) -> Statement, Rule::Equivocation),
        (Statement::Prepare, Rule::DoubleVote),
        (Statement::Commit, Rule::DoubleVote),
    ];
    for (statement, rule) in kinds {
        let first = statement(at(1, 1, A));
        assert_eq!(first.conflict_with(&statement(at(1, 1, B))), Some(rule));
        for innocent in [at(1, 1, A), at(2, 1, B), at(1, 2, B)] {
            assert_eq!(first.conflict_with(&statement(innocent)), None);
        }
    }
    let (value, other) = (at(1, 1, A), at(1, 1, B));
    assert_eq!(Statement::Prepare(value).conflict_with(&Statement::Commit(other)), None);
    for (one, other) in view_change(2, 1).iter().zip(&view_change(2, 2)) {
        assert_eq!(one.conflict_with(other), None, "worded anew");
    }
}

/// Two proposals that a member shows convict their primary.
#[test]
fn a_shown_equivocation_is_the_primarys() {
    let verifier = verifier(ProtocolKind::Pbft);
    let [one, other] =
        [A, B].map(|stamp| signed_pre_prepare(&verifier, PRIMARY, 1, value(1, stamp)));
    let message = Message::Equivocation(Box::new((one, other)));
    let message = ProtocolKind::Pbft.windowed(message);
    let (primary, both) = message.shown_equivocation(&verifier).expect("two values");
    assert_eq!(primary, ReplicaId(u16::from(PRIMARY)));
    assert!(both.iter().all(|signed| signed.check(primary, &verifier) == Ok(())));
    let rule = both[0].statement.conflict_with(&both[1].statement);
    assert_eq!(rule, Some(Rule::Equivocation));
    assert_eq!(message.signed_statement(ReplicaId(0), &verifier), None);
    let vote = ProtocolKind::Pbft.windowed(sign_share(&verifier, 3, at(1, 1, A)));
    assert!(vote.shown_equivocation(&verifier).is_none());
}

/// Certificates that a machine keeps anyway are shown to those whose votes they prove.
#[test]
fn a_member_is_shown_the_newest_votes_that_certificates_prove() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 0);
    let verifier = Arc::clone(&bench.verifier);
    assert_eq!(bench.machine.certified_statements(ReplicaId(2)), []);
    bench.decide(1, A);
    for slot in [2, 3] {
        bench.accept(1, slot, A);
        bench.tell(1, Message::Prepare(prepared(&verifier, at(1, slot, A))));
    }
    let shown = bench.machine.certified_statements(ReplicaId(2));
    let statements: Vec<Statement> = shown.iter().map(|signed| signed.statement).collect();
    let last = Statement::Commit(at(1, 1, A));
    assert_eq!(statements, [Statement::Prepare(at(1, 3, A)), last, last]);
    assert!(shown.iter().all(|signed| signed.check(ReplicaId(2), &verifier) == Ok(())));
    assert_eq!(bench.machine.certified_statements(ReplicaId(3)), [], "no certificate names it");
}

/// An operator reads what was signed.
#[test]
fn statements_are_written_in_words() {
    let value = Proposal { view: View(1), slot: Height(7), digest: Digest([0xab; 32]) };
    let digest = Digest::ZERO;
    let of_slot = format!("slot h7 in {}, {}", View(1), "ab".repeat(32));
    for (statement, words) in [
        (Statement::PrePrepare(value), format!("a proposal for {of_slot}")),
        (Statement::Prepare(value), format!("a vote to prepare {of_slot}")),
        (Statement::Commit(value), format!("a vote to commit {of_slot}")),
        (
            Statement::ViewChange { view: View(2), digest },
            format!("a view change into {}", View(2)),
        ),
        (Statement::NewView { view: View(2), digest }, format!("the beginning of {}", View(2))),
    ] {
        assert_eq!(statement.to_string(), words);
    }
    let phases = [Phase::Prepare, Phase::PreCommit];
    let block = (View(3), BlockId(Digest([0xcd; 32])));
    let votes = phases.map(|phase| Statement::Vote { phase, block, base: block }.to_string());
    let id = "cd".repeat(32);
    assert_eq!(votes[0], format!("a vote in {} for {id}", View(3)));
    assert_eq!(votes[1], format!("a vote of phase PreCommit in {} for {id}", View(3)));
    let proposal = Statement::Proposal { view: View(3), id: block.1 };
    assert_eq!(proposal.to_string(), format!("a proposal in {}, {id}", View(3)));
    let timeout = Statement::Timeout { view: View(3), reported: View(2) };
    assert_eq!(timeout.to_string(), format!("a timeout of {} that reports {}", View(3), View(2)));
}
