use super::*;
use crate::testing::{ALICE, BOB, TestNetwork, replica, to};
use crate::{Network, NetworkFile, Transaction};
use quorate_crypto::{Aggregate, Digest, Policy, Share};
use quorate_types::{Epoch, Kind, Purpose, sign};

fn towns() -> impl Iterator<Item = TestNetwork> {
    PayScheme::ALL.into_iter().map(|scheme| TestNetwork::with(scheme, 4, 1))
}

fn payment(testnet: &TestNetwork) -> Transaction {
    testnet.spend(ALICE, &testnet.endowed(ALICE)[..1], &[to(BOB, 10)])
}

fn count(testnet: &TestNetwork, tx: &Transaction, votes: &[(ReplicaId, Vote)]) -> Counted {
    let suspects = Bitmap::new(testnet.keys.len());
    testnet.network.votes().count(tx.id(testnet.network.id()), votes, &suspects)
}

fn holds(network: &Network, tx: &Transaction, certificate: &TxCertificate) -> bool {
    let id = tx.id(network.id());
    network.votes().verify(&[(id, certificate)]) == [true]
}

#[test]
fn a_quorum_of_votes_is_a_certificate_under_every_scheme() {
    for testnet in towns() {
        let tx = payment(&testnet);
        for voters in [vec![0, 1, 2], vec![3, 1, 2], vec![0, 1, 2, 3]] {
            let votes: Vec<_> =
                voters.iter().map(|one| (replica(*one), testnet.vote(*one, &tx))).collect();
            let counted = count(&testnet, &tx, &votes);
            assert_eq!(counted.bad, [] as [usize; 0]);
            let certificate = counted.certificate.expect("a quorum");
            assert!(certificate.signers().count() >= 3);
            assert!(holds(&testnet.network, &tx, &certificate), "{}", testnet.file.scheme);
            let other = testnet.spend(ALICE, &testnet.endowed(ALICE)[1..2], &[to(BOB, 20)]);
            assert!(!holds(&testnet.network, &other, &certificate), "it certifies one name");
        }
    }
}

#[test]
fn too_few_signers_are_no_quorum_under_any_scheme() {
    for testnet in towns() {
        let tx = payment(&testnet);
        assert_eq!(testnet.certificate_by(&tx, 0..2), None);
        let votes = [0, 1, 1].map(|one| (replica(one), testnet.vote(one, &tx)));
        assert_eq!(count(&testnet, &tx, &votes).certificate, None, "a voter counts once");
    }
}

/// The signatures of two that claim to be three's, and those of three that claim to be two's.
#[test]
fn a_certificate_is_refused_whose_signers_are_not_enough() {
    for testnet in towns() {
        let tx = payment(&testnet);
        let certificate = testnet.certificate(&tx);
        let few = Bitmap::from_indices(4, [0, 1]);
        let foreign = Bitmap::from_indices(7, [0, 1, 2, 3, 4]);
        for signers in [few, foreign, Bitmap::new(4)] {
            let mut forged = certificate.clone();
            match &mut forged.votes {
                QuorumVotes::Signatures(one) => one.signers = signers,
                QuorumVotes::Merkle { signers: of, .. } => *of = signers,
            }
            assert!(!holds(&testnet.network, &tx, &forged), "{}", testnet.file.scheme);
        }
    }
}

/// What f + 1 made together, which is signed as it should be.
#[test]
fn a_certificate_of_too_few_true_votes_is_refused() {
    for scheme in [PayScheme::Plain, PayScheme::Bls] {
        let testnet = TestNetwork::with(scheme, 4, 1);
        let (network, tx) = (&testnet.network, payment(&testnet));
        let (committee, id) = (network.committee(), tx.id(network.id()));
        let share = |one: usize| match testnet.vote(one, &tx) {
            Vote::Share(share) => (one, share),
            Vote::Merkle(_) => unreachable!("this scheme signs each vote by itself"),
        };
        let statement = sign::statement(Kind::TxVote, network.scope(), &id);
        let certificate = |voters: usize| {
            let shares: Vec<_> = (0..voters).map(share).collect();
            let (scheme, _) = committee.scheme(Purpose::Vote);
            let suspects = Bitmap::new(testnet.keys.len());
            let combined = scheme.combine(&statement, &shares, &suspects, Policy::Aggregate);
            let votes = QuorumVotes::Signatures(combined.certificate.expect("sound shares"));
            TxCertificate { epoch: committee.epoch(), votes }
        };
        assert!(holds(network, &tx, &certificate(3)), "{scheme}");
        assert!(!holds(network, &tx, &certificate(2)), "{scheme}");
    }
}

#[test]
fn a_bad_vote_is_found_and_spoils_nothing() {
    for testnet in towns() {
        let tx = payment(&testnet);
        let other = testnet.spend(ALICE, &testnet.endowed(ALICE)[1..2], &[to(BOB, 20)]);
        let good = |one: usize| (replica(one), testnet.vote(one, &tx));
        let bad = (replica(2), testnet.vote(2, &other));
        let counted = count(&testnet, &tx, &[good(0), good(1), bad.clone(), good(3)]);
        assert_eq!(counted.bad, [2], "{}", testnet.file.scheme);
        let certificate = counted.certificate.expect("three are good");
        assert!(holds(&testnet.network, &tx, &certificate));
        let counted = count(&testnet, &tx, &[good(0), good(1), bad]);
        assert_eq!((counted.certificate, counted.bad), (None, vec![2]));
        let copied = (replica(2), testnet.vote(1, &tx));
        assert_eq!(count(&testnet, &tx, &[good(0), good(1), copied]).bad, [2], "another's vote");
    }
}

#[test]
fn votes_of_another_kind_are_bad() {
    let (plain, merkle) = (TestNetwork::new(), TestNetwork::with(PayScheme::Merkle, 4, 1));
    for (testnet, other) in [(&plain, &merkle), (&merkle, &plain)] {
        let tx = payment(testnet);
        let votes = [0, 1, 2].map(|one| (replica(one), other.vote(one, &payment(other))));
        let counted = count(testnet, &tx, &votes);
        assert_eq!((counted.certificate, counted.bad), (None, vec![0, 1, 2]));
        assert!(!holds(&testnet.network, &tx, &other.certificate(&payment(other))));
    }
}

/// The same keys in another epoch, or in a network of another name.
#[test]
fn votes_of_another_epoch_or_network_are_refused() {
    for testnet in towns() {
        let tx = payment(&testnet);
        let changed = |change: &dyn Fn(&mut NetworkFile)| {
            let mut file = testnet.file.clone();
            change(&mut file);
            Network::load(&file).expect("a sound file")
        };
        let names = [
            changed(&|file| file.epoch = Epoch(4)),
            changed(&|file| file.name = "other".into()),
            changed(&|file| file.shards_of_one(2)),
        ];
        for other in names {
            assert_ne!(other.id(), testnet.network.id());
            let id = tx.id(testnet.network.id());
            let votes: Vec<_> = (0..3)
                .map(|one| {
                    let keys = &testnet.keys[one].voting;
                    (replica(one), other.votes().sign(keys, replica(one), &[id]).remove(0))
                })
                .collect();
            let counted = count(&testnet, &tx, &votes);
            assert_eq!((counted.certificate, counted.bad), (None, vec![0, 1, 2]));
        }
    }
}

impl NetworkFile {
    fn shards_of_one(&mut self, shards: u16) {
        self.shards = shards;
        for authority in &mut self.authorities {
            authority.addresses = vec![authority.addresses[0].clone(); usize::from(shards)];
        }
    }
}

#[test]
fn certificates_are_judged_one_by_one() {
    for testnet in towns() {
        let txs: Vec<_> = (0..6).map(|serial| testnet.issue(serial, &[to(ALICE, 1)])).collect();
        let id = |at: usize| txs[at].id(testnet.network.id());
        let certificates: Vec<_> = txs.iter().map(|tx| testnet.certificate(tx)).collect();
        // The third shows the fourth's certificate.
        let shown = [0, 1, 3, 3, 4, 5];
        let items: Vec<_> =
            shown.iter().enumerate().map(|(at, of)| (id(at), &certificates[*of])).collect();
        let verdicts = testnet.network.votes().verify(&items);
        assert_eq!(verdicts, [true, true, false, true, true, true], "{}", testnet.file.scheme);
        assert_eq!(testnet.network.votes().verify(&[]), [] as [bool; 0]);
    }
}

/// Bytes that are no signature, of any length.
#[test]
fn garbage_is_refused() {
    for testnet in towns() {
        let tx = payment(&testnet);
        for bytes in [vec![], vec![0; 48], vec![0; 64], vec![255; 192], vec![7; 1_000]] {
            let mut certificate = testnet.certificate(&tx);
            match &mut certificate.votes {
                QuorumVotes::Signatures(one) => one.aggregate = Aggregate(bytes.clone()),
                QuorumVotes::Merkle { votes, .. } => votes[1].signature = Share(bytes.clone()),
            }
            assert!(!holds(&testnet.network, &tx, &certificate), "{}", testnet.file.scheme);
            let mut votes: Vec<_> =
                (0..3).map(|one| (replica(one), testnet.vote(one, &tx))).collect();
            match &mut votes[1].1 {
                Vote::Share(share) => *share = Share(bytes.clone()),
                Vote::Merkle(vote) => vote.signature = Share(bytes.clone()),
            }
            assert_eq!(count(&testnet, &tx, &votes).bad, [1], "{}", testnet.file.scheme);
        }
    }
}

#[test]
fn a_voter_beyond_the_committee_is_refused() {
    let testnet = TestNetwork::with(PayScheme::Merkle, 4, 1);
    let tx = payment(&testnet);
    let vote = (replica(4), testnet.vote(0, &tx));
    assert_eq!(count(&testnet, &tx, &[vote]).bad, [4]);
}

#[test]
fn votes_are_gathered_only_where_that_saves_work() {
    for testnet in towns() {
        let together = testnet.network.votes().batch_size();
        assert_eq!(together > 1, testnet.file.scheme == PayScheme::Merkle);
    }
}

mod trees {
    use super::*;

    fn testnet() -> TestNetwork {
        TestNetwork::with(PayScheme::Merkle, 4, 1)
    }

    /// Votes that were signed together, for each transaction one of each authority.
    #[test]
    fn one_signature_serves_many() {
        let testnet = testnet();
        let txs: Vec<_> = (0..100).map(|serial| testnet.issue(serial, &[to(ALICE, 1)])).collect();
        let ids: Vec<_> = txs.iter().map(|tx| tx.id(testnet.network.id())).collect();
        let sign = |one: usize| {
            testnet.network.votes().sign(&testnet.keys[one].voting, replica(one), &ids)
        };
        let votes: Vec<Vec<Vote>> = (0..3).map(sign).collect();
        for (at, tx) in txs.iter().enumerate() {
            let of_tx: Vec<_> = (0..3).map(|one| (replica(one), votes[one][at].clone())).collect();
            let counted = count(&testnet, tx, &of_tx);
            assert!(counted.certificate.is_some_and(|one| holds(&testnet.network, tx, &one)));
            let next = (at + 1) % txs.len();
            assert_eq!(count(&testnet, &txs[next], &of_tx).certificate, None, "for its own leaf");
        }
    }

    #[test]
    fn a_path_beyond_16_levels_leads_nowhere() {
        let testnet = testnet();
        let tx = payment(&testnet);
        let Vote::Merkle(mut vote) = testnet.vote(0, &tx) else { panic!("a tree's vote") };
        vote.path.count = 1 << 17;
        vote.path.siblings = vec![Digest::ZERO; 17];
        assert_eq!(count(&testnet, &tx, &[(replica(0), Vote::Merkle(vote))]).bad, [0]);
    }

    #[test]
    fn a_path_of_another_place_or_count_leads_nowhere() {
        let testnet = testnet();
        let tx = payment(&testnet);
        let Vote::Merkle(vote) = testnet.vote(0, &tx) else { panic!("a tree's vote") };
        for (index, count_of) in [(1, 1), (0, 0), (0, 2), (u32::MAX, u32::MAX)] {
            let mut vote = vote.clone();
            (vote.path.index, vote.path.count) = (index, count_of);
            assert_eq!(count(&testnet, &tx, &[(replica(0), Vote::Merkle(vote))]).bad, [0]);
        }
    }

    #[test]
    fn there_are_as_many_votes_as_signers() {
        let testnet = testnet();
        let tx = payment(&testnet);
        for change in [0, 1, 2] {
            let mut certificate = testnet.certificate_by(&tx, 0..4).expect("all of them");
            let QuorumVotes::Merkle { votes, .. } = &mut certificate.votes else {
                panic!("a tree's")
            };
            match change {
                0 => drop(votes.pop()),
                1 => votes.push(votes[0].clone()),
                _ => votes.swap(0, 1),
            }
            assert!(!holds(&testnet.network, &tx, &certificate));
        }
    }

    /// Paper 003's cache: what the first signed passes for the others' signature.
    #[test]
    fn a_checked_root_counts_for_its_signer_alone() {
        let testnet = testnet();
        let tx = payment(&testnet);
        let Vote::Merkle(vote) = testnet.vote(0, &tx) else { panic!("a tree's vote") };
        assert_eq!(count(&testnet, &tx, &[(replica(0), Vote::Merkle(vote.clone()))]).bad, [0; 0]);
        let copies = [0, 1, 2].map(|one| (replica(one), Vote::Merkle(vote.clone())));
        let counted = count(&testnet, &tx, &copies);
        assert_eq!((counted.certificate, counted.bad), (None, vec![1, 2]));
        let signers = Bitmap::from_indices(4, [0, 1, 2]);
        let votes = QuorumVotes::Merkle { signers, votes: vec![vote; 3] };
        let forged = TxCertificate { epoch: testnet.file.epoch, votes };
        assert!(!holds(&testnet.network, &tx, &forged));
    }

    /// Nor does a root count once with one signature and then with any.
    #[test]
    fn a_checked_root_counts_with_its_signature_alone() {
        let testnet = testnet();
        let tx = payment(&testnet);
        let Vote::Merkle(mut vote) = testnet.vote(0, &tx) else { panic!("a tree's vote") };
        assert_eq!(count(&testnet, &tx, &[(replica(0), Vote::Merkle(vote.clone()))]).bad, [0; 0]);
        vote.signature.0[0] ^= 1;
        assert_eq!(count(&testnet, &tx, &[(replica(0), Vote::Merkle(vote))]).bad, [0]);
    }

    #[test]
    fn a_root_of_anybody_is_missed() {
        use quorate_crypto::mutants::{Mutant, assert_noticed};
        assert_noticed(Mutant::PayRootOfAnybody, a_checked_root_counts_for_its_signer_alone);
    }
}
