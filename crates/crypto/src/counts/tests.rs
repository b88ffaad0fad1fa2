use super::*;

/// One of everything, and of each another number.
fn counts() -> OpCounts {
    OpCounts {
        ed25519_verify: 1,
        ed25519_batches: 20,
        bls_verify: 300,
        stub_verify: 4_000,
        bls_key_additions: 50_000,
        bls_share_additions: 600_000,
        hashes: 7_000_000,
        hashed_bytes: 80_000_000,
        ..OpCounts::default()
    }
}

#[test]
fn parts_of_the_counts_are_taken_out() {
    let nothing = OpCounts::default();
    assert_eq!(counts().checks(), 4_321);
    let adding = OpCounts { bls_key_additions: 50_000, bls_share_additions: 600_000, ..nothing };
    assert_eq!(counts().adding(), adding);
    let hashing = OpCounts { hashes: 7_000_000, hashed_bytes: 80_000_000, ..nothing };
    assert_eq!(counts().hashing(), hashing);
}

/// What is charged for a share's check is what the check takes.
#[cfg(all(feature = "count", feature = "stub"))]
#[test]
fn a_share_takes_what_it_is_said_to_take() {
    use crate::scheme::tests::{Committee, MESSAGE};
    for kind in [SchemeKind::Ed25519, SchemeKind::Bls, SchemeKind::Stub] {
        let committee = Committee::new(kind, 4);
        let share = committee.secrets[1].sign(MESSAGE);
        take();
        committee.scheme.verify_share(MESSAGE, 1, &share).expect("its own");
        assert_eq!(peek(), OpCounts::one_share(kind), "{kind}");
        assert_eq!(take(), OpCounts::one_share(kind), "{kind}");
        assert_eq!(take(), OpCounts::default(), "{kind}");
    }
}
