use super::*;
use quorate_crypto::hash;

fn share(member: u16, text: &str) -> Misbehaviour {
    Misbehaviour {
        member: ReplicaId(member),
        rule: Rule::InvalidShare,
        evidence: Evidence::Share { statement: hash(text.as_bytes()) },
    }
}

#[test]
fn the_first_evidence_is_kept_and_all_are_counted() {
    let mut log = MisbehaviourLog::default();
    for (member, text) in [(1, "one"), (1, "two"), (2, "three")] {
        log.count(&share(member, text));
    }
    let first = Evidence::Share { statement: hash(b"one") };
    let third = Evidence::Share { statement: hash(b"three") };
    let expected = [
        (ReplicaId(1), Rule::InvalidShare, 2, &first),
        (ReplicaId(2), Rule::InvalidShare, 1, &third),
    ];
    assert!(log.iter().eq(expected), "{log:?}");
}

#[test]
fn what_is_new_is_told_once_for_each_member_and_rule() {
    let mut log = MisbehaviourLog::default();
    log.count(&share(1, "one"));
    let earlier = log.clone();
    log.count(&share(1, "two"));
    log.count(&share(2, "three"));
    let conflict = Misbehaviour {
        member: ReplicaId(1),
        rule: Rule::DoubleVote,
        evidence: Evidence::Conflict { view: View(3), first: hash(b"a"), second: hash(b"b") },
    };
    log.count(&conflict);
    let new: Vec<Misbehaviour> = log.since(&earlier).collect();
    assert_eq!(new, [conflict, share(2, "three")]);
    assert_eq!(log.since(&log).count(), 0);
}

#[test]
fn evidence_reads_as_a_sentence() {
    let evidence = Evidence::Conflict { view: View(3), first: hash(b"a"), second: hash(b"b") };
    let text = evidence.to_string();
    assert!(text.contains("v3") && text.contains(&hash(b"a").to_hex()), "{text}");
}
