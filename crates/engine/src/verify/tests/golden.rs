//! The bytes of every frame, pinned. What changes here is another version on the wire: see
//! "Versions on the wire" in CONTRIBUTING.md.

use super::*;
use crate::own_signatures::question::{OwnQuestion, OwnSignaturesAnswer};
use std::collections::BTreeMap;

/// A frame of each tag, its content hashed, in the order of the tags' numbers.
const GOLDEN: [(FrameTag, &str); 31] = [
    (FrameTag::Consensus, "cfcdbeac74c0abcc"),
    (FrameTag::Inline, "9fb3c95135e630f3"),
    (FrameTag::Body, "f94142aa81adcf2d"),
    (FrameTag::Announce, "cc61084b755f273f"),
    (FrameTag::FetchBodies, "7229c48343d84aaf"),
    (FrameTag::FetchBlocks, "e34ad3f330cd2f37"),
    (FrameTag::Blocks, "5148fe22a7184129"),
    (FrameTag::Request, "8dec201e9f70824b"),
    (FrameTag::Reply, "d50555376a653925"),
    (FrameTag::Busy, "c4f92b87bb77fd38"),
    (FrameTag::FetchSnapshots, "b2762ed4d299863b"),
    (FrameTag::Offer, "55fd5fefbd24c6ce"),
    (FrameTag::FetchChunk, "0d9844caa03398c6"),
    (FrameTag::Chunk, "ad1472968e8c8150"),
    (FrameTag::Acknowledgement, "9431ddc055985928"),
    (FrameTag::Available, "b8e015879661ab6f"),
    (FrameTag::FetchAvailable, "c6e0a09c21d4e519"),
    (FrameTag::Chain, "89f18691a525a714"),
    (FrameTag::ExecutionShare, "c327b446ecc24ec5"),
    (FrameTag::ExecutionProof, "611dbbff816f6fb7"),
    (FrameTag::CertifiedReply, "2b0927f58f41c35f"),
    (FrameTag::Query, "fa98dcffceb9f4a4"),
    (FrameTag::QueryResponse, "d81ee9d241c00b7c"),
    (FrameTag::CheckpointShare, "050268867a3e2d03"),
    (FrameTag::OwnQuestion, "24f4d5b2cbe1ef13"),
    (FrameTag::OwnSignatures, "37f88691507beb80"),
    (FrameTag::NotAdmitted, "e4a734cd5280ef53"),
    (FrameTag::Change, "01cc5da3c110cab0"),
    (FrameTag::ChangeAnswer, "e78f0352691f4151"),
    (FrameTag::HandOverShare, "71da29d02ace80bf"),
    (FrameTag::HandOver, "17dee2cf6ecd4b9e"),
];

/// What [`one_of_each`] lacks, for it is not checked alone.
fn others() -> Vec<Message> {
    let verifier = verifier();
    let question = OwnQuestion::signed(&identity(0), verifier.consensus(), 2, 1_700_000_000_000);
    let answer = OwnSignaturesAnswer {
        signer: ReplicaId(0),
        asked: (2, 1_700_000_000_000),
        questions: vec![question.clone()],
        statements: Vec::new(),
    };
    let proof = vec![Bytes::from_static(b"record")];
    let (snapshot, bytes) = (hash(b"snapshot"), Bytes::from_static(b"chunk"));
    vec![
        Message::Offer(Offer { manifest: Bytes::from_static(b"manifest"), proof }),
        Message::Chunk(Chunk { snapshot, index: 3, bytes }),
        Message::OwnQuestion(question),
        Message::OwnSignatures(answer),
    ]
}

/// The first message of each tag.
fn samples() -> BTreeMap<FrameTag, Message> {
    let named = one_of_each().into_iter().map(|(_, _, message)| message);
    let mut samples = BTreeMap::new();
    for message in named.chain(others()) {
        samples.entry(message.tag()).or_insert(message);
    }
    samples
}

#[test]
fn every_tag_has_golden_bytes() {
    let samples = samples();
    let missing: Vec<FrameTag> = FrameTag::all().filter(|tag| !samples.contains_key(tag)).collect();
    assert_eq!(missing, [], "frames without a sample: add one here, and its golden bytes");
    let found: Vec<(FrameTag, String)> = samples
        .iter()
        .map(|(tag, message)| (*tag, hash(&content(message)).to_hex()[..16].to_owned()))
        .collect();
    let golden: Vec<(FrameTag, String)> =
        GOLDEN.iter().map(|(tag, hash)| (*tag, (*hash).to_owned())).collect();
    assert_eq!(found, golden, "the wire's version changes with these: {found:#?}");
}

#[test]
fn a_frame_begins_with_its_length_and_tag() {
    for (tag, message) in samples() {
        let bytes = message.frame().0.concat();
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        assert_eq!((length, bytes[4]), (bytes.len() - 4, tag.number()), "{tag:?}");
        assert!(length <= tag.rules().bytes_max, "{tag:?}");
    }
}
