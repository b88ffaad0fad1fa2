use super::{Answer, Reply, Request, RequestError};
use crate::{
    Body, BodyRef, ClientId, EpochId, Height, NetworkId, Outcome, ReplicaId, Results, Scope,
};
use bytes::Bytes;
use quorate_crypto::{IdentitySecret, hash, hash_parts};

const NETWORK: NetworkId = NetworkId([9; 32]);

fn secret() -> IdentitySecret {
    IdentitySecret::from_seed([1; 32])
}

fn sign(operations: &[Bytes]) -> Result<Request, RequestError> {
    Request::sign(&secret(), NETWORK, 5, operations)
}

fn operations(count: usize, bytes: usize) -> Vec<Bytes> {
    vec![Bytes::from(vec![3; bytes]); count]
}

#[test]
fn a_request_decodes_to_itself_and_leaves_what_follows() {
    let request =
        sign(&[Bytes::from_static(b"one"), Bytes::new(), Bytes::from_static(b"two")]).unwrap();
    let bytes = Bytes::from([request.raw().as_ref(), b"rest"].concat());
    let (found, rest) = Request::split_from(&bytes).unwrap();
    assert_eq!((&found, rest.as_ref()), (&request, b"rest".as_slice()));
    assert_eq!(found.operations.len(), 3);
    assert!(found.client.0.verify(&found.statement(NETWORK), &found.signature()).is_ok());
    let elsewhere = found.statement(NetworkId([8; 32]));
    assert!(found.client.0.verify(&elsewhere, &found.signature()).is_err(), "another network");
}

#[test]
fn limits_of_a_request() {
    let (most, bytes) = (Request::OPERATIONS_MAX, Request::BYTES_MAX);
    assert_eq!(sign(&[]), Err(RequestError::OperationCount));
    assert_eq!(sign(&operations(most + 1, 1)), Err(RequestError::OperationCount));
    assert_eq!(sign(&operations(1, bytes + 1)), Err(RequestError::TooLarge));
    let largest = sign(&operations(most, bytes / most)).unwrap();
    assert_eq!(largest.raw().len(), Request::WIRE_BYTES_MAX);
}

/// Cut anywhere, or with lengths that do not add up: refused, and nothing panics.
#[test]
fn malformed_requests_are_refused() {
    let raw = sign(&operations(3, 10)).unwrap().raw().to_vec();
    for cut in 0..raw.len() {
        let cut = Bytes::copy_from_slice(&raw[..cut]);
        assert!(Request::split_from(&cut).is_err());
    }
    for (at, with) in [(40, 0xff), (42, 9), (42, 0xff), (45, 0xff), (46, 11), (49, 0xff), (54, 9)] {
        let mut spoiled = raw.clone();
        spoiled[at] = with;
        let found = Request::split_from(&Bytes::from(spoiled));
        assert!(found.is_err(), "byte {at}");
    }
}

#[test]
fn golden_request_and_body() {
    let request = sign(&[Bytes::from_static(b"ab"), Bytes::from_static(b"c")]).unwrap();
    let raw = request.raw();
    assert_eq!(&raw[..32], &secret().public().0);
    let fixed: Vec<u8> = [
        [5, 0, 0, 0, 0, 0, 0, 0].as_slice(), // sequence
        &[2, 0],                             // operations
        &[3, 0, 0, 0],                       // their bytes
        &[2, 0, 0, 0, 1, 0, 0, 0],           // each one's
        b"abc",
    ]
    .concat();
    assert_eq!(&raw[32..raw.len() - 64], fixed);
    let body = Body::seal(ReplicaId(2), 7, &[request.clone(), request.clone()]);
    assert_eq!(body.raw, [raw.as_ref(), raw.as_ref()].concat());
    assert_eq!(request.digest(), hash(&raw[..raw.len() - 64]));
    let (digest, signature) = (request.digest().0, request.signature().0);
    let twice = [digest.as_slice(), &signature, &digest, &signature];
    assert_eq!(body.reference.digest, hash_parts("quorate v1 body", &twice));
    let named = borsh::to_vec(&body.reference).unwrap();
    assert_eq!(named[..10], [2, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(named.len(), 42);
}

#[test]
fn a_body_is_what_its_name_says() {
    let body = Body::seal(ReplicaId(2), 7, &[sign(&operations(1, 5)).unwrap()]);
    assert_eq!(Body::parse(body.reference, body.raw.clone()), Ok(body.clone()));
    let other = BodyRef { digest: hash(b"other"), ..body.reference };
    assert_eq!(Body::parse(other, body.raw.clone()), Err(RequestError::Malformed));
    let nothing = BodyRef { digest: hash(b""), ..body.reference };
    assert_eq!(Body::parse(nothing, Bytes::new()), Err(RequestError::Malformed));
    let large = Bytes::from(vec![0; Body::BYTES_MAX + 1]);
    assert_eq!(Body::parse_named(body.reference, large), Err(RequestError::TooLarge));
}

/// The name covers every byte, though none is hashed twice for it.
#[test]
fn a_body_changed_in_any_byte_has_another_name() {
    let requests = [sign(&operations(2, 3)).unwrap(), sign(&operations(1, 4)).unwrap()];
    let body = Body::seal(ReplicaId(2), 7, &requests);
    assert_eq!(body.requests, requests);
    for at in 0..body.raw.len() {
        let mut changed = body.raw.to_vec();
        changed[at] ^= 1;
        assert!(Body::parse(body.reference, Bytes::from(changed)).is_err(), "byte {at}");
    }
    let swapped = Bytes::from([requests[1].raw().as_ref(), requests[0].raw()].concat());
    assert_eq!(Body::parse(body.reference, swapped), Err(RequestError::Malformed));
}

fn answer(sequence: u64, result: &'static [u8]) -> Answer {
    Answer {
        client: ClientId(secret().public()),
        sequence,
        height: Height(3),
        results: Results::new(vec![Outcome::Applied(Bytes::from_static(result))]),
        index: None,
    }
}

/// A reply binds client, sequence, height and results, alone or signed together with others.
#[test]
fn a_reply_answers_one_request() {
    let replica = IdentitySecret::from_seed([2; 32]);
    let scope = Scope { network: NETWORK, epoch: EpochId([1; 32]) };
    let signed = |reply: &Reply, scope| {
        let statement = reply.statement(scope);
        statement.is_some_and(|said| replica.public().verify(&said, &reply.signature).is_ok())
    };
    let alone = Reply::sign(&replica, scope, ReplicaId(0), answer(5, b"x"));
    let answers = (4..9).map(|sequence| answer(sequence, b"x")).collect();
    let together = Reply::sign_all(&replica, scope, ReplicaId(0), answers);
    assert!(together.iter().all(|reply| signed(reply, scope) && reply.is_consistent()));
    let changes: [fn(&mut Reply); 7] = [
        |r| r.client = ClientId(IdentitySecret::from_seed([3; 32]).public()),
        |r| r.sequence = 6,
        |r| r.height = Height(4),
        |r| r.results_digest = hash(b"other"),
        |r| r.path.index += 1,
        |r| r.path.count += 1,
        |r| r.path.siblings.push(hash(b"a sibling")),
    ];
    for reply in [alone, together[1].clone()] {
        assert!(signed(&reply, scope) && reply.is_consistent());
        assert!(!signed(&reply, Scope { network: NetworkId([8; 32]), ..scope }));
        assert!(!signed(&reply, Scope { epoch: EpochId([2; 32]), ..scope }));
        for change in changes {
            let mut changed = reply.clone();
            change(&mut changed);
            assert!(!signed(&changed, scope));
        }
        let refused = Results::new(vec![Outcome::Refused(Bytes::from_static(b"x"))]);
        let refused = Reply { results: refused, ..reply };
        assert!(!refused.is_consistent(), "refused is not applied");
    }
}

/// Nobody's answer passes for another's that was signed with it.
#[test]
fn replies_that_share_a_signature_do_not_change_places() {
    let replica = IdentitySecret::from_seed([2; 32]);
    let scope = Scope { network: NETWORK, epoch: EpochId([1; 32]) };
    let answers = vec![answer(1, b"x"), answer(2, b"y"), answer(3, b"z")];
    let replies = Reply::sign_all(&replica, scope, ReplicaId(0), answers);
    let said = |reply: &Reply| reply.statement(scope);
    assert!(replies.iter().all(|reply| said(reply) == said(&replies[0])));
    assert!(replies.iter().all(|reply| reply.signature == replies[0].signature));
    let Reply { path, .. } = &replies[0];
    for other in &replies[1..] {
        let moved = Reply { path: path.clone(), ..other.clone() };
        assert_ne!(said(&moved), said(other));
    }
}
