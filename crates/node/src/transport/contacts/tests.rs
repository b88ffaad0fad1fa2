use super::*;
use crate::transport::frames::content_bytes_max;
use quorate_engine::FrameTag;
use quorate_types::Lane;

const PEER: ReplicaId = ReplicaId(1);

/// Content of a frame, behind its length.
fn content(frame: &Frame) -> Vec<u8> {
    frame.0[0][4..].to_vec()
}

#[test]
fn a_probe_comes_back_as_it_was_and_says_how_far_away_the_member_is() {
    let (here, there) = (Contacts::new(4), Contacts::new(4));
    let probe = content(&here.probe());
    let echo = there.hear(PEER, &probe).expect("a probe").expect("an echo");
    assert_eq!(content(&echo)[1..], probe[1..]);
    assert_eq!(here.of(PEER).and_then(|contact| contact.round_trip), None);
    assert!(here.hear(PEER, &content(&echo)).expect("an echo").is_none(), "it is not answered");
    assert!(here.of(PEER).is_some_and(|contact| contact.round_trip.is_some()));
    assert_eq!(here.of(ReplicaId(4)), None);
}

#[test]
fn probes_have_golden_bytes() {
    let bytes: Vec<u8> = frame(PROBE, 0x0102).0[0].to_vec();
    assert_eq!(bytes, [9, 0, 0, 0, 0xf0, 2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(frame(ECHO, 0).0[0][4], 0xf1);
}

#[test]
fn a_flood_of_probes_is_not_answered() {
    let contacts = Contacts::new(4);
    let probe = content(&contacts.probe());
    assert!(contacts.hear(PEER, &probe).expect("a probe").is_some());
    let contact = &contacts.members[PEER.index()];
    let echoed = contact.echoed.load(Ordering::Relaxed);
    assert!(!contact.may_echo(echoed + 99_999));
    assert!(contact.may_echo(echoed + 100_000));
}

#[test]
fn what_is_no_probe_goes_its_way_and_counts_as_heard() {
    let contacts = Contacts::new(4);
    assert_eq!(contacts.hear(PEER, &[1, 2, 3]).map(|_| ()), None);
    assert!(contacts.members[PEER.index()].heard.load(Ordering::Relaxed) > 0);
    // Cut short, or from the future.
    assert!(contacts.hear(PEER, &[PROBE, 1]).expect("no frame of the engine").is_none());
    let later = content(&frame(ECHO, u64::MAX));
    assert!(contacts.hear(PEER, &later).expect("an echo").is_none());
    assert_eq!(contacts.of(PEER).and_then(|contact| contact.round_trip), None);
}

#[test]
fn probes_belong_to_the_lane_of_votes_and_have_tags_of_their_own() {
    for tag in [PROBE, ECHO] {
        assert_eq!(FrameTag::parse(tag), None);
        assert_eq!(content_bytes_max(Lane::Votes, tag), Some(9));
        for lane in [Lane::Consensus, Lane::Bulk, Lane::Client] {
            assert_eq!(content_bytes_max(lane, tag), None);
        }
    }
}
