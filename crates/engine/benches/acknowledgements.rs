//! Cost to a client of an acknowledgement that proves itself.
//!
//! ```text
//! cargo bench -p quorate-engine
//! ```
//!
//! Measured in turns, so that a busy machine slows down both sides of a ratio: the check of one
//! execution certificate alone, and of a whole acknowledgement as it comes off the wire, decoding,
//! path, certificate and comparison with the request, in a client that saw nothing of the block
//! before; then of all acknowledgements of a block of 64 requests, which share the certificate.

use bytes::Bytes;
use quorate_crypto::merkle::Tree;
use quorate_crypto::{Bitmap, KeyCache, KeyFile, Policy, SchemeKind, hash};
use quorate_engine::{Incoming, Message, Verifier};
use quorate_types::executed::{CertifiedReply, Completion, ExecutionCertificate};
use quorate_types::{
    AgreedSettings, ClientId, Committee, CommitteeFile, Epoch, Header, Height, Member, Outcome,
    Peer, Purpose, ReplicaId, Request, Results, Verified,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const TURNS: usize = 201;
const REQUESTS: u64 = 64;
const OPERATION: [u8; 200] = [7; 200];

/// A committee, and a block that it executed and certified.
struct Block {
    committee: Arc<Committee>,
    certificate: ExecutionCertificate,
    requests: Vec<Request>,
    /// The acknowledgements as they come off the wire.
    contents: Vec<Bytes>,
}

impl Block {
    fn new(scheme: SchemeKind, members: usize) -> Self {
        let keys: Vec<KeyFile> = (0..members).map(|member| key_file(scheme, member)).collect();
        let committee = Arc::new(committee(scheme, &keys));
        let client = key_file(scheme, members).identity;
        let operation = Bytes::from_static(&OPERATION);
        let request = |sequence| {
            Request::sign(&client, committee.network(), sequence, std::slice::from_ref(&operation))
        };
        let requests: Vec<Request> = (0..REQUESTS).map(|s| request(s).expect("fits")).collect();
        let results = Results::new(vec![Outcome::Applied(Bytes::from_static(b"done"))]);
        let completion = |request: &Request| Completion {
            client: ClientId(client.public()),
            sequence: request.sequence,
            request: request.digest(),
            results: results.digest(),
        };
        let leaf = |(index, request): (u32, &Request)| completion(request).leaf(Height(9), index);
        let tree = Tree::new(&(0..).zip(&requests).map(leaf).collect::<Vec<_>>());
        let header = Header {
            height: Height(9),
            proposed_at_ms: 1_700_000_000_000,
            state: hash(b"state"),
            sessions: hash(b"sessions"),
            requests: tree.root(),
        };
        let certificate = certify(&committee, &keys, header);
        let content = |(index, request): (u32, &Request)| {
            content(&CertifiedReply {
                completion: completion(request),
                results: results.clone(),
                path: tree.path(index).expect("a leaf"),
                executed: certificate.clone(),
            })
        };
        let contents = (0..).zip(&requests).map(content).collect();
        Self { committee, certificate, requests, contents }
    }

    /// A client that has seen nothing yet.
    fn newcomer(&self) -> Verifier {
        Verifier::for_client(Arc::clone(&self.committee))
    }

    /// All that a client does with an acknowledgement.
    fn take(&self, verifier: &Verifier, index: usize) {
        let (from, content) = (Peer::Replica(ReplicaId(0)), self.contents[index].clone());
        let checked = Verified::<Incoming>::check(black_box(content), from, verifier);
        let Incoming::CertifiedReply(reply) = checked.expect("an honest reply").into_inner() else {
            panic!("another message")
        };
        assert!(reply.answers(&self.requests[index]));
    }
}

fn key_file(scheme: SchemeKind, index: usize) -> KeyFile {
    let mut seed = [3; 32];
    seed[..8].copy_from_slice(&(index as u64).to_le_bytes());
    KeyFile::from_seed(scheme, &seed)
}

fn committee(scheme: SchemeKind, keys: &[KeyFile]) -> Committee {
    let member = |keys: &KeyFile| Member::new(&keys.public(), "127.0.0.1:1".to_owned());
    let file = CommitteeFile {
        name: "bench".to_owned(),
        network: None,
        epoch: Epoch(1),
        scheme: scheme.to_string(),
        redundancy: 0,
        settings: AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: keys.iter().map(member).collect(),
    };
    Committee::load(&file, KeyCache::On).expect("fresh keys are sound")
}

/// Signed by as few members as are enough.
fn certify(committee: &Committee, keys: &[KeyFile], header: Header) -> ExecutionCertificate {
    let statement = header.statement(committee.scope());
    let (scheme, _) = committee.scheme(Purpose::Execute);
    let signers = 0..=(keys.len() - 1) / 3;
    let shares: Vec<_> =
        signers.map(|signer| (signer, keys[signer].voting.sign(&statement))).collect();
    let combined = scheme.combine(&statement, &shares, &Bitmap::new(keys.len()), Policy::Aggregate);
    ExecutionCertificate { header, certificate: combined.certificate.expect("honest shares") }
}

fn content(reply: &CertifiedReply) -> Bytes {
    let frame = Message::CertifiedReply(Box::new(reply.clone())).frame();
    Bytes::from(frame.0.concat()).slice(4..)
}

fn micros(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e6
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    println!(
        "scheme, members: one check µs, first acknowledgement µs, ratio; each of 64 µs, later ones µs"
    );
    for (scheme, members) in [
        (SchemeKind::Bls, 4),
        (SchemeKind::Bls, 80),
        (SchemeKind::Ed25519, 4),
        (SchemeKind::Ed25519, 80),
    ] {
        let block = Block::new(scheme, members);
        let (mut alone, mut first, mut each, mut later) = (vec![], vec![], vec![], vec![]);
        for _ in 0..TURNS {
            alone.push(micros(|| {
                black_box(&block.certificate).check(&block.committee).expect("honest shares");
            }));
            let verifier = block.newcomer();
            let begin = micros(|| block.take(&verifier, 0));
            let rest = micros(|| (1..block.contents.len()).for_each(|i| block.take(&verifier, i)));
            first.push(begin);
            each.push((begin + rest) / block.contents.len() as f64);
            later.push(rest / (block.contents.len() - 1) as f64);
        }
        let (alone, first) = (median(alone), median(first));
        let (each, later, ratio) = (median(each), median(later), first / alone);
        println!(
            "{scheme:>8} {members:>4} {alone:>9.1} {first:>9.1} {ratio:>7.2} {each:>8.1} {later:>7.1}"
        );
    }
}
