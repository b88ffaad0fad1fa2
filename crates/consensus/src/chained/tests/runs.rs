//! Runs of blocks that one member fetches from another: links, sizes, and what contradicts what is
//! decided.

use super::found_by_simulation::chain;
use super::harness::*;
use crate::block_tree::TreeBlock;
use crate::chained::messages::encode;
use crate::chained::{Block, DecidedBlock, Qc, Run, verify_run};
use crate::{Input, ProtocolKind, ProtocolView, VerifiedRun, check_certified};
use bytes::Bytes;
use quorate_crypto::Bitmap;
use quorate_types::machine::Halt;
use quorate_types::{BlockId, Height, Payload, Rejected};

/// The blocks of these heights as they are served, each with the certificate that decided it.
fn records(blocks: &[(Block, Qc)], heights: &[usize]) -> Vec<Bytes> {
    let record = |height: &usize| {
        let (block, commit) = (blocks[height - 1].0.clone(), blocks[*height].1.clone());
        Bytes::from(encode(&DecidedBlock::new(block, commit)))
    };
    heights.iter().map(record).collect()
}

fn tail(blocks: &[&Block]) -> Vec<Bytes> {
    blocks.iter().map(|block| Bytes::from(encode(*block))).collect()
}

/// What a member that decided `after` at this height makes of records.
fn fetch(keys: &Keys, height: u64, after: BlockId, served: &[Bytes]) -> Result<Run, Rejected> {
    verify_run(Height(height), Some(after), after, served, &[], &keys.verifier())
}

/// Two decisions for one height are evidence, and stop the asker; what it has was not asked for.
#[test]
fn another_block_at_the_own_height_is_evidence() {
    let mut cluster = Cluster::new();
    let keys = &cluster.keys;
    let blocks = chain(keys, 3);
    let own = keys.block(1, &keys.genesis(), 1, &[9]);
    let run = fetch(keys, 1, own.id(), &records(&blocks, &[1, 2])).expect("two proofs");
    assert!(run.conflicts);
    let link = Some(Rejected::RuleBroken("each block of a run extends the one before"));
    let same = fetch(keys, 1, blocks[0].0.id(), &records(&blocks, &[1, 2]));
    assert_eq!(same.err(), link, "what it has was not asked for");
    let above = fetch(keys, 2, own.id(), &records(&blocks, &[1, 2]));
    assert_eq!(above.err(), link, "of another height");
    cluster.feed(3, Input::Run(Box::new(VerifiedRun::Chained(run))));
    let halted = &cluster.node(3).halted;
    assert!(matches!(halted, Some(Halt::ConflictingDecisions { .. })), "{halted:?}");
}

/// The genesis is known to all: no block contradicts it, whatever height it claims.
#[test]
fn nothing_contradicts_the_genesis() {
    let keys = Keys::new(4);
    let genesis = keys.genesis();
    let first = keys.block(1, &genesis, 0, &[]);
    let second = keys.block(2, &keys.certify(&first), 1, &[]);
    let record = DecidedBlock::new(first, keys.certify(&second));
    let run = fetch(&keys, 0, genesis.id, &[Bytes::from(encode(&record))]).expect("linked");
    assert!(!run.conflicts);
}

/// Links prove what the certificates inside blocks say, not their signatures' bytes: those must at
/// least be as many as they should be, or history could be filled with anything.
#[test]
fn certificates_inside_a_run_have_their_size() {
    let keys = Keys::new(4);
    let genesis = keys.genesis();
    let first = keys.block(1, &genesis, 1, &[]);
    let mut third = keys.block(3, &keys.certify(&first), 2, &[]);
    third.tc = Some(keys.tc(2, &keys.certify(&first), &[(0, &[0]), (1, &[1, 2])]));
    let resized: [fn(&mut Block); 4] = [
        |block| block.justify.certificate.aggregate.0.push(0),
        |block| block.justify.certificate.aggregate.0.truncate(1),
        |block| {
            let tc = block.tc.as_mut().expect("it has one");
            tc.high_qc.certificate.aggregate.0.push(0);
        },
        |block| {
            let tc = block.tc.as_mut().expect("it has one");
            tc.groups[1].1.aggregate.0.push(0);
        },
    ];
    let check = |block: &Block| {
        let served = tail(&[&first, block]);
        let (after, target) = (Some(genesis.id), block.id());
        verify_run(Height(0), after, target, &[], &served, &keys.verifier()).err()
    };
    assert_eq!(check(&third), None);
    let length = Rejected::BadSignature("a certificate of the wrong length");
    for (place, resize) in resized.into_iter().enumerate() {
        let mut forged = third.clone();
        resize(&mut forged);
        assert_eq!(forged.id(), third.id(), "{place}: the id tells nothing");
        assert_eq!(check(&forged), Some(length.clone()), "{place}");
    }
    let mut forged = third.clone();
    forged.justify.certificate.signers = Bitmap::new(900);
    let bits = Rejected::RuleBroken("a bitmap has one bit a member");
    assert_eq!(check(&forged), Some(bits));
}

/// Links do not prove heights: a block whose height does not follow its parent's is left out, and
/// so is all above it.
#[test]
fn a_fetched_block_takes_the_next_height() {
    let mut cluster = Cluster::new();
    let keys = &cluster.keys;
    let genesis = keys.genesis();
    let first = keys.block(1, &genesis, 1, &[]);
    let gap = keys.block(2, &keys.certify(&first), 5, &[]);
    let above = keys.block(3, &keys.certify(&gap), 6, &[]);
    let served = tail(&[&first, &gap, &above]);
    let (after, target) = (Some(genesis.id), above.id());
    let run = verify_run(Height(0), after, target, &[], &served, &keys.verifier()).unwrap();
    cluster.feed(3, Input::Run(Box::new(VerifiedRun::Chained(run))));
    let has = |block: &Block| cluster.node(3).machine.has_block(block.id());
    assert_eq!([&first, &gap, &above].map(has), [true, false, false]);
}

/// Commit: of several deciding certificates whose blocks are missing the latest waits for them, in
/// whichever order they came; it decides what the others would.
#[test]
fn the_latest_deciding_certificate_waits_for_its_blocks() {
    for order in [[1, 2], [2, 1]] {
        let mut cluster = Cluster::new();
        let blocks = chain(&cluster.keys, 3);
        for place in order {
            cluster.tell(3, 0, certificates(&blocks[place].1, None)).unwrap();
        }
        assert!(cluster.node(3).decided.is_empty());
        let served = tail(&[&blocks[0].0, &blocks[1].0, &blocks[2].0]);
        let (after, target) = (cluster.keys.genesis().id, blocks[2].0.id());
        let verifier = &cluster.node(3).verifier;
        let run = verify_run(Height(0), Some(after), target, &[], &served, verifier).unwrap();
        cluster.feed(3, Input::Run(Box::new(VerifiedRun::Chained(run))));
        let decided: Vec<_> = cluster.node(3).decided.iter().map(|d| d.block).collect();
        assert_eq!(decided, [blocks[0].0.id(), blocks[1].0.id()], "in the order {order:?}");
    }
}

/// What the driver asks of a run before it hands it on.
#[test]
fn a_run_says_what_it_brings() {
    let keys = Keys::new(4);
    let blocks = chain(&keys, 4);
    let check = |records: &[Bytes], tail: &[Bytes], target: &Block| {
        let (after, verifier) = (Some(keys.genesis().id), keys.verifier());
        VerifiedRun::check(Height(0), after, target.id(), records, tail, &verifier).unwrap()
    };
    let says = |run: &VerifiedRun| (run.is_empty(), run.heights());
    let target = &blocks[1].0;
    assert_eq!(says(&check(&[], &[], target)), (true, None));
    let decided = check(&records(&blocks, &[1, 2, 3]), &[], target);
    assert_eq!(says(&decided), (false, Some((Height(1), Height(3)))));
    let undecided = check(&[], &tail(&[&blocks[0].0, target]), target);
    assert_eq!(says(&undecided), (false, None), "what is not decided takes no height");
}

/// Slots that are not decided name no parent, so a windowed protocol serves none.
#[test]
fn a_windowed_protocol_serves_decided_slots_alone() {
    let keys = Keys::new(4).running(ProtocolKind::Pbft);
    let verifier = keys.verifier();
    let check = |tail: &[Bytes]| {
        let target = verifier.genesis();
        let run = VerifiedRun::check(Height(0), Some(target), target, &[], tail, &verifier);
        run.map(|run| run.is_empty())
    };
    assert_eq!(check(&[]), Ok(true));
    let rule = Rejected::RuleBroken("what is not decided is not served");
    assert_eq!(check(&[Bytes::from_static(b"a slot")]), Err(rule));
}

/// Blocks that nobody asked for are taken in only below a certified one.
#[test]
fn a_chain_leads_to_a_block_with_a_certificate_of_its_own() {
    let keys = Keys::new(4);
    let blocks = chain(&keys, 2);
    let [(first, its), (second, _)] = &blocks[..] else { panic!("two blocks") };
    let check = |block: &Block, qc: &Qc| {
        check_certified(block.id(), &Bytes::from(encode(qc)), &keys.verifier())
    };
    assert_eq!(check(first, its), Ok(()));
    let other = Rejected::RuleBroken("a chain leads to a certified block");
    assert_eq!(check(second, its), Err(other), "another block's");
    let few = keys.certify_by(first, &[0, 1]);
    assert_eq!(check(first, &few), Err(Rejected::BelowThreshold));
    let torn = check_certified(first.id(), &Bytes::from_static(b"torn"), &keys.verifier());
    assert!(matches!(torn, Err(Rejected::Malformed(_))), "{torn:?}");
    let pbft = Keys::new(4).running(ProtocolKind::Pbft).verifier();
    let none = check_certified(first.id(), &Bytes::from(encode(its)), &pbft);
    assert_eq!(none, Err(Rejected::RuleBroken("messages rest on no blocks here")));
}

/// The record of a decided height is read back by whoever serves or executes it.
#[test]
fn a_record_names_its_block_and_holds_its_payload() {
    let cluster = Cluster::new();
    let keys = &cluster.keys;
    let block = keys.block(1, &keys.genesis(), 1, &[7]);
    let commit = keys.certify(&keys.block(2, &keys.certify(&block), 2, &[]));
    let record = Bytes::from(encode(&DecidedBlock::new(block.clone(), commit)));
    let machine: &dyn ProtocolView = &cluster.node(3).machine;
    assert_eq!(machine.record_id(&record), Some(block.id()));
    let payload = Payload::new(Height(1), 0, vec![body(7)]);
    assert_eq!(machine.record_payload(&record), Some(payload));
    let torn = record.slice(..record.len() - 1);
    assert_eq!((machine.record_id(&torn), machine.record_payload(&torn)), (None, None));
}
