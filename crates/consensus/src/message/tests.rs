use super::*;
use crate::chained::tests::harness::{Keys, body, certificates};
use crate::windowed::{PrePrepare, Shares};
use quorate_crypto::Share;
use quorate_types::{Height, Payload};

/// A driver fetches the bodies that a proposal names before anything asks for them; nothing else
/// names any.
#[test]
fn proposals_alone_name_bodies() {
    let keys = Keys::new(4);
    let block = keys.block(1, &keys.genesis(), 1, &[7, 8]);
    let jolteon = |said| ProtocolKind::Jolteon.message(said);
    let bodies = [body(7), body(8)];
    let proposal = jolteon(keys.propose(&block));
    assert_eq!(proposal.proposed_bodies(), Some(&bodies[..]));
    let empty = jolteon(keys.propose(&keys.block(1, &keys.genesis(), 1, &[])));
    assert_eq!(empty.proposed_bodies(), Some(&[][..]));
    let vote = jolteon(chained::Message::Vote(keys.vote(2, &block)));
    assert_eq!(vote.proposed_bodies(), None);
    assert_eq!(jolteon(certificates(&keys.genesis(), None)).proposed_bodies(), None);
    let payload = Payload::new(Height(1), 0, bodies.to_vec());
    let shares = Shares { slow: Share(Vec::new()), fast: None };
    let proposed = PrePrepare { view: View(1), payload, shares, signature: Vec::new() };
    let pbft = ProtocolKind::Pbft.windowed(windowed::Message::PrePrepare(proposed));
    assert_eq!(pbft.proposed_bodies(), Some(&bodies[..]));
    assert!(!pbft.reports() && proposal.reports() && !vote.reports());
}
