//! Agreement, replay and transcripts.

use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use quorate_crypto::{BySharing, Digest, PossessionProof, VotingKey};
use quorate_storage::{Executor, ExecutorConfig, MemoryStore};
use quorate_types::machine::Block;
use quorate_types::service::{Operation, Service};
use quorate_types::{Body, ClientId, Height, Outcome, Payload, ReplicaId, Request};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Members act in any order, some die at any moment, some complain falsely: the living have
    /// keys that sign, and whoever replays the order agrees.
    #[test]
    fn any_schedule_gives_keys(
        turns in prop::collection::vec(0_usize..4, 40..80),
        dead in 0_usize..4,
        dies_at in 0_usize..40,
        liar in 0_usize..4,
    ) {
        let world = World::new(4);
        let mut ceremony = world.ceremony();
        let is_there = |member: usize, turn: usize| member != dead || turn < dies_at;
        for (turn, member) in turns.into_iter().enumerate() {
            if !is_there(member, turn) {
                continue;
            }
            let lies = member == liar && ceremony.phase() == Phase::Checking;
            let other = ceremony.dealers().into_iter().find(|other| *other != index(liar));
            match other {
                Some(other) if lies && !ceremony.did_its_part(index(member)) => {
                    world.say(&mut ceremony, member, &Step::Check(vec![other])).expect("taken");
                }
                _ => world.play(&mut ceremony, member),
            }
        }
        let living: Vec<usize> = (0..4).filter(|member| *member != dead).collect();
        while ceremony.phase() != Phase::Over {
            let phase = ceremony.phase();
            world.play_all(&mut ceremony, &living);
            if ceremony.phase() == phase {
                let open: Vec<usize> = living
                    .iter()
                    .copied()
                    .filter(|member| !ceremony.wants_to_close(index(*member)))
                    .collect();
                world.close(&mut ceremony, &open);
            }
        }
        let holders: Vec<usize> = living
            .iter()
            .copied()
            .filter(|member| world.members[*member].keys(&ceremony).is_ok())
            .collect();
        prop_assert_eq!(&holders, &living);
        world.check_keys(&ceremony, &holders);
        let transcript = Transcript::of(&world.generators, "1", &ceremony);
        let replayed = transcript.replay().expect("the same steps");
        prop_assert_eq!(result(&replayed), result(&ceremony));
    }
}

#[test]
fn a_transcript_shows_the_committee_and_nothing_else() {
    let world = World::new(4);
    let ceremony = world.until(Phase::Over);
    let transcript = Transcript::of(&world.generators, "1", &ceremony);
    let mut committee = result(&ceremony).committee(&world.generators);
    transcript.verify(&committee).expect("its committee");
    committee.members[0].address = "elsewhere:1".into();
    committee.name = "renamed".into();
    transcript.verify(&committee).expect("names and addresses are the committee's own");
    let changes: [fn(&mut CommitteeFile); 4] = [
        |file| file.members.swap(0, 1),
        |file| file.members[0].weight = 2,
        |file| file.redundancy = 1,
        |file| file.groups.as_mut().expect("groups").slow.make_ascii_uppercase(),
    ];
    for change in changes {
        let mut other = committee.clone();
        change(&mut other);
        let refused = transcript.verify(&other).map(drop);
        assert_eq!(refused, Err(TranscriptError::OtherCommittee));
    }
}

/// Keys of the next epoch are of that epoch of that network, and of no other.
#[test]
fn a_transcript_for_the_next_epoch_is_of_that_epoch() {
    let world = World::of(next_epoch(4, 1));
    let ceremony = world.until(Phase::Over);
    let transcript = Transcript::of(&world.generators, "1", &ceremony);
    let committee = result(&ceremony).committee(&world.generators);
    assert_eq!((committee.network, committee.epoch), (Some(NetworkId([1; 32])), Epoch(2)));
    transcript.verify(&committee).expect("its committee");
    let changes: [fn(&mut CommitteeFile); 3] = [
        |file| file.epoch = Epoch(3),
        |file| file.network = Some(NetworkId([2; 32])),
        |file| file.network = None,
    ];
    for change in changes {
        let mut other = committee.clone();
        change(&mut other);
        let refused = transcript.verify(&other).map(drop);
        assert_eq!(refused, Err(TranscriptError::OtherCommittee));
    }
}

#[test]
fn a_transcript_that_was_altered_does_not_hold() {
    let world = World::new(4);
    let ceremony = world.until(Phase::Over);
    let transcript = Transcript::of(&world.generators, "1", &ceremony);
    let refusal = |change: &dyn Fn(&mut Transcript)| {
        let mut altered = transcript.clone();
        change(&mut altered);
        altered.replay().map(drop).expect_err("refused")
    };
    assert_eq!(refusal(&|it| drop(it.steps.pop())), TranscriptError::Unfinished);
    let repeated = refusal(&|it| it.steps.insert(1, it.steps[0].clone()));
    assert_eq!(repeated, TranscriptError::Refused { step: 1, reason: Refusal::Repeated });
    let other = refusal(&|it| it.label = "2".into());
    assert_eq!(other, TranscriptError::Refused { step: 0, reason: Refusal::Unsigned });
    let none = refusal(&|it| it.steps[3] = Bytes::from_static(b"x"));
    assert_eq!(none, TranscriptError::Undecodable { step: 3 });
    let unequal = refusal(&|it| it.generators.members[1].weight = 2);
    assert_eq!(unequal, TranscriptError::Plan(PlanError::Unweighted));
}

/// Executed by the real executor, a service opened anew on the state stands where the first one
/// stood.
#[test]
fn the_service_goes_on_where_its_state_stands() {
    let world = World::new(4);
    let expected = world.until(Phase::Checking);
    let client = IdentitySecret::from_seed([99; 32]);
    let network = NetworkId::default();
    let service = || Box::new(KeyGeneration::new(Arc::clone(&world.plan)));
    let store = MemoryStore::new();
    let mut executor =
        Executor::open(Box::new(store.clone()), service(), ExecutorConfig::default())
            .expect("an empty store")
            .0;
    for (number, step) in (0..).zip(expected.steps()) {
        let operations = [step.clone(), step.clone()];
        let request = Request::sign(&client, network, number, &operations).expect("small");
        let body = Arc::new(Body::seal(ReplicaId(0), number, &[request]));
        let block = Block {
            payload: Payload::new(Height(number + 1), number, vec![body.reference]),
            bodies: vec![body],
            decided: Bytes::from("proof"),
        };
        let executed = executor.execute(&block).expect("executed");
        let results = &executed.answers[0].results;
        assert!(matches!(results[0], Outcome::Applied(_)), "{results:?}");
        assert!(matches!(results[1], Outcome::Refused(_)), "a repeat changes nothing");
    }
    executor.make_durable().expect("memory");
    let opened = executor.query(|state| {
        let mut service = KeyGeneration::new(Arc::clone(&world.plan));
        service.open(state)?;
        Ok((service.ceremony().head(), service.ceremony().phase()))
    });
    assert_eq!(opened.expect("its own state"), (expected.head(), Phase::Checking));
}

#[test]
fn strangers_operations_do_not_enter_the_log() {
    let world = World::new(4);
    let service = KeyGeneration::new(Arc::clone(&world.plan));
    let admit = |bytes: &Bytes| {
        let client = ClientId(identity(0).public());
        service.admit(Operation { client, bytes })
    };
    let step = world.members[0].next_step(service.ceremony()).expect("to join");
    let signed = world.members[0].sign(&step);
    assert_eq!(admit(&signed.encode()), Ok(()));
    let forged = SignedStep { member: 1, ..signed };
    assert!(admit(&forged.encode()).expect_err("refused").contains("did not sign"));
    assert!(admit(&Bytes::from_static(b"x")).expect_err("refused").contains("no step"));
    let large = Bytes::from(vec![0; SignedStep::BYTES_MAX + 1]);
    assert!(admit(&large).expect_err("refused").contains("at most"));
    assert_ne!(service.ceremony().plan().scope.network.0, Digest::ZERO.0);
}

/// Deals are the largest steps: they fit at the most members that a plan takes.
#[test]
fn the_largest_deal_fits_into_an_operation() {
    let members = 300;
    let thresholds = BySharing { fast: members, slow: 201, execution: 100 };
    let keys = |count: &usize| vec![VotingKey(vec![0; 96]); *count];
    let sealed = Envelope { encapsulated: [0; 32], ciphertext: vec![0; 96 + 16] };
    let deal = Deal {
        commitments: Sharing::ALL.map(|sharing| keys(thresholds.get(sharing))),
        possession: Sharing::ALL.map(|_| PossessionProof(vec![0; 48])),
        envelopes: (1..index(members)).map(|member| (member, sealed.clone())).collect(),
    };
    let plan = World::new(1).plan;
    let bytes = SignedStep::sign(&plan, &identity(0), 0, &Step::Deal(Box::new(deal))).encode();
    assert!(bytes.len() <= SignedStep::BYTES_MAX, "{} bytes", bytes.len());
    Request::sign(&identity(0), NetworkId::default(), 0, &[bytes]).expect("a request of one step");
}
