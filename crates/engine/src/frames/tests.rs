use super::{FrameTag, is_urgent};
use crate::Message;
use crate::message::Frame;
use quorate_types::Lane;

#[test]
fn each_row_stands_at_its_tags_number() {
    for (number, tag) in (1..).zip(FrameTag::all()) {
        assert_eq!((tag.number(), tag.rules().tag), (number, tag));
        assert_eq!(FrameTag::of(&[number, 0]), Some(tag));
    }
    let known = u8::try_from(FrameTag::all().count()).expect("a byte each");
    assert!((known + 1..=u8::MAX).chain([0]).all(|byte| FrameTag::parse(byte).is_none()));
    assert_eq!(FrameTag::of(&[]), None);
}

#[test]
fn only_the_protocols_messages_choose_their_lanes() {
    let choose = FrameTag::all().filter(|tag| tag.rules().lane.is_none());
    assert!(choose.eq([FrameTag::Consensus, FrameTag::Inline]));
}

/// What is longest to check, and what has no business there, waits for itself alone, whatever lane
/// a member puts it in.
#[test]
fn what_carries_bodies_blocks_or_state_never_goes_before_votes() {
    let behind = [
        FrameTag::Inline,
        FrameTag::Body,
        FrameTag::Blocks,
        FrameTag::Request,
        FrameTag::Reply,
        FrameTag::Busy,
        FrameTag::Offer,
        FrameTag::Chunk,
        FrameTag::Chain,
        FrameTag::CertifiedReply,
        FrameTag::Query,
        FrameTag::QueryResponse,
        FrameTag::OwnSignatures,
        FrameTag::NotAdmitted,
        FrameTag::Change,
        FrameTag::ChangeAnswer,
    ];
    for tag in FrameTag::all() {
        let content = [tag.number()];
        for lane in [Lane::Votes, Lane::Consensus] {
            assert_eq!(is_urgent(lane, &content), !behind.contains(&tag), "{tag:?}");
        }
        assert!(!is_urgent(Lane::Bulk, &content) && !is_urgent(Lane::Client, &content));
    }
    let unknown = [0, u8::MAX];
    assert!(unknown.iter().all(|byte| !is_urgent(Lane::Votes, &[*byte])));
    assert!(!is_urgent(Lane::Votes, &[]));
}

/// A view change is the one thing of more than 256 KiB that is checked ahead.
#[test]
fn what_is_checked_ahead_is_short() {
    let long = FrameTag::all().filter(|tag| tag.rules().bytes_max > super::URGENT_BYTES_MAX);
    let ahead: Vec<_> = long.filter(|tag| tag.rules().may_be_urgent()).collect();
    assert_eq!(ahead, [FrameTag::Consensus]);
    let long_vote = super::FrameRules::small(FrameTag::Announce, 1 << 20, Lane::Consensus);
    assert!(!long_vote.is_sound(), "such a row does not compile");
}

#[test]
fn a_frame_is_as_long_as_its_pieces() {
    let frame = Message::FetchAvailable(7).frame();
    assert_eq!((frame.is_empty(), frame.len()), (false, 4 + 1 + 8));
    let nothing = Frame(Vec::new());
    assert_eq!((nothing.is_empty(), nothing.len()), (true, 0));
}
