use super::*;
use crate::testing::{ALICE, BOB, Town, replica, to};
use crate::{Network, NetworkFile, Transaction};
use quorate_crypto::{Aggregate, Digest, Share};
use quorate_types::Epoch;

fn towns() -> impl Iterator<Item = Town> {
    PayScheme::ALL.into_iter().map(|scheme| Town::with(scheme, 4, 1))
}

fn payment(town: &Town) -> Transaction {
    town.spend(ALICE, &town.endowed(ALICE)[..1], &[to(BOB, 10)])
}

fn count(town: &Town, tx: &Transaction, votes: &[(ReplicaId, Vote)]) -> Counted {
    let suspects = Bitmap::new(town.keys.len());
    town.network.votes().count(tx.id(town.network.chain()), votes, &suspects)
}

fn holds(network: &Network, tx: &Transaction, certificate: &TxCertificate) -> bool {
    let id = tx.id(network.chain());
    network.votes().verify(&[(id, certificate)]) == [true]
}

#[test]
fn a_quorum_of_votes_is_a_certificate_under_every_scheme() {
    for town in towns() {
        let tx = payment(&town);
        for voters in [vec![0, 1, 2], vec![3, 1, 2], vec![0, 1, 2, 3]] {
            let votes: Vec<_> =
                voters.iter().map(|one| (replica(*one), town.vote(*one, &tx))).collect();
            let counted = count(&town, &tx, &votes);
            assert_eq!(counted.bad, [] as [usize; 0]);
            let certificate = counted.certificate.expect("a quorum");
            assert!(certificate.signers().count() >= 3);
            assert!(holds(&town.network, &tx, &certificate), "{}", town.file.scheme);
            let other = town.spend(ALICE, &town.endowed(ALICE)[1..2], &[to(BOB, 20)]);
            assert!(!holds(&town.network, &other, &certificate), "it certifies one name");
        }
    }
}

#[test]
fn too_few_signers_are_no_quorum_under_any_scheme() {
    for town in towns() {
        let tx = payment(&town);
        assert_eq!(town.certificate_by(&tx, 0..2), None);
        let votes = [0, 1, 1].map(|one| (replica(one), town.vote(one, &tx)));
        assert_eq!(count(&town, &tx, &votes).certificate, None, "a voter counts once");
    }
}

/// The signatures of two that claim to be three's, and those of three that claim to be two's.
#[test]
fn a_certificate_is_refused_whose_signers_are_not_enough() {
    for town in towns() {
        let tx = payment(&town);
        let certificate = town.certificate(&tx);
        let few = Bitmap::from_indices(4, [0, 1]);
        let foreign = Bitmap::from_indices(7, [0, 1, 2, 3, 4]);
        for signers in [few, foreign, Bitmap::new(4)] {
            let mut forged = certificate.clone();
            match &mut forged {
                TxCertificate::Signatures(one) => one.signers = signers,
                TxCertificate::Merkle { signers: of, .. } => *of = signers,
            }
            assert!(!holds(&town.network, &tx, &forged), "{}", town.file.scheme);
        }
    }
}

#[test]
fn a_bad_vote_is_found_and_spoils_nothing() {
    for town in towns() {
        let tx = payment(&town);
        let other = town.spend(ALICE, &town.endowed(ALICE)[1..2], &[to(BOB, 20)]);
        let good = |one: usize| (replica(one), town.vote(one, &tx));
        let bad = (replica(2), town.vote(2, &other));
        let counted = count(&town, &tx, &[good(0), good(1), bad.clone(), good(3)]);
        assert_eq!(counted.bad, [2], "{}", town.file.scheme);
        let certificate = counted.certificate.expect("three are good");
        assert!(holds(&town.network, &tx, &certificate));
        let counted = count(&town, &tx, &[good(0), good(1), bad]);
        assert_eq!((counted.certificate, counted.bad), (None, vec![2]));
        let copied = (replica(2), town.vote(1, &tx));
        assert_eq!(count(&town, &tx, &[good(0), good(1), copied]).bad, [2], "another's vote");
    }
}

#[test]
fn votes_of_another_kind_are_bad() {
    let (plain, merkle) = (Town::new(), Town::with(PayScheme::Merkle, 4, 1));
    for (town, other) in [(&plain, &merkle), (&merkle, &plain)] {
        let tx = payment(town);
        let votes = [0, 1, 2].map(|one| (replica(one), other.vote(one, &payment(other))));
        let counted = count(town, &tx, &votes);
        assert_eq!((counted.certificate, counted.bad), (None, vec![0, 1, 2]));
        assert!(!holds(&town.network, &tx, &other.certificate(&payment(other))));
    }
}

/// The same keys in another epoch, or in a network of another name.
#[test]
fn votes_of_another_epoch_or_network_are_refused() {
    for town in towns() {
        let tx = payment(&town);
        let changed = |change: &dyn Fn(&mut NetworkFile)| {
            let mut file = town.file.clone();
            change(&mut file);
            Network::load(&file).expect("a sound file")
        };
        let names = [
            changed(&|file| file.epoch = Epoch(4)),
            changed(&|file| file.name = "other".into()),
            changed(&|file| file.shards_of_one(2)),
        ];
        for other in names {
            assert_ne!(other.chain(), town.network.chain());
            let id = tx.id(town.network.chain());
            let votes: Vec<_> = (0..3)
                .map(|one| {
                    let keys = &town.keys[one].voting;
                    (replica(one), other.votes().sign(keys, replica(one), &[id]).remove(0))
                })
                .collect();
            let counted = count(&town, &tx, &votes);
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
    for town in towns() {
        let txs: Vec<_> = (0..6).map(|serial| town.issue(serial, &[to(ALICE, 1)])).collect();
        let id = |at: usize| txs[at].id(town.network.chain());
        let certificates: Vec<_> = txs.iter().map(|tx| town.certificate(tx)).collect();
        // The third shows the fourth's certificate.
        let shown = [0, 1, 3, 3, 4, 5];
        let items: Vec<_> =
            shown.iter().enumerate().map(|(at, of)| (id(at), &certificates[*of])).collect();
        let verdicts = town.network.votes().verify(&items);
        assert_eq!(verdicts, [true, true, false, true, true, true], "{}", town.file.scheme);
        assert_eq!(town.network.votes().verify(&[]), [] as [bool; 0]);
    }
}

/// Bytes that are no signature, of any length.
#[test]
fn garbage_is_refused() {
    for town in towns() {
        let tx = payment(&town);
        for bytes in [vec![], vec![0; 48], vec![0; 64], vec![255; 192], vec![7; 1_000]] {
            let mut certificate = town.certificate(&tx);
            match &mut certificate {
                TxCertificate::Signatures(one) => one.aggregate = Aggregate(bytes.clone()),
                TxCertificate::Merkle { votes, .. } => votes[1].signature = Share(bytes.clone()),
            }
            assert!(!holds(&town.network, &tx, &certificate), "{}", town.file.scheme);
            let mut votes: Vec<_> = (0..3).map(|one| (replica(one), town.vote(one, &tx))).collect();
            match &mut votes[1].1 {
                Vote::Share(share) => *share = Share(bytes.clone()),
                Vote::Merkle(vote) => vote.signature = Share(bytes.clone()),
            }
            assert_eq!(count(&town, &tx, &votes).bad, [1], "{}", town.file.scheme);
        }
    }
}

#[test]
fn a_voter_beyond_the_committee_is_refused() {
    let town = Town::with(PayScheme::Merkle, 4, 1);
    let tx = payment(&town);
    let vote = (replica(4), town.vote(0, &tx));
    assert_eq!(count(&town, &tx, &[vote]).bad, [4]);
}

#[test]
fn votes_are_gathered_only_where_that_saves_work() {
    for town in towns() {
        let together = town.network.votes().together();
        assert_eq!(together > 1, town.file.scheme == PayScheme::Merkle);
    }
}

mod trees {
    use super::*;

    fn town() -> Town {
        Town::with(PayScheme::Merkle, 4, 1)
    }

    /// Votes that were signed together, for each transaction one of each authority.
    #[test]
    fn one_signature_serves_many() {
        let town = town();
        let txs: Vec<_> = (0..100).map(|serial| town.issue(serial, &[to(ALICE, 1)])).collect();
        let ids: Vec<_> = txs.iter().map(|tx| tx.id(town.network.chain())).collect();
        let sign =
            |one: usize| town.network.votes().sign(&town.keys[one].voting, replica(one), &ids);
        let votes: Vec<Vec<Vote>> = (0..3).map(sign).collect();
        for (at, tx) in txs.iter().enumerate() {
            let of_tx: Vec<_> = (0..3).map(|one| (replica(one), votes[one][at].clone())).collect();
            let counted = count(&town, tx, &of_tx);
            assert!(counted.certificate.is_some_and(|one| holds(&town.network, tx, &one)));
            let next = (at + 1) % txs.len();
            assert_eq!(count(&town, &txs[next], &of_tx).certificate, None, "for its own leaf");
        }
    }

    #[test]
    fn a_path_beyond_16_levels_leads_nowhere() {
        let town = town();
        let tx = payment(&town);
        let Vote::Merkle(mut vote) = town.vote(0, &tx) else { panic!("a tree's vote") };
        vote.path.count = 1 << 17;
        vote.path.siblings = vec![Digest::ZERO; 17];
        assert_eq!(count(&town, &tx, &[(replica(0), Vote::Merkle(vote))]).bad, [0]);
    }

    #[test]
    fn a_path_of_another_place_or_count_leads_nowhere() {
        let town = town();
        let tx = payment(&town);
        let Vote::Merkle(vote) = town.vote(0, &tx) else { panic!("a tree's vote") };
        for (index, count_of) in [(1, 1), (0, 0), (0, 2), (u32::MAX, u32::MAX)] {
            let mut vote = vote.clone();
            (vote.path.index, vote.path.count) = (index, count_of);
            assert_eq!(count(&town, &tx, &[(replica(0), Vote::Merkle(vote))]).bad, [0]);
        }
    }

    #[test]
    fn there_are_as_many_votes_as_signers() {
        let town = town();
        let tx = payment(&town);
        for change in [0, 1, 2] {
            let mut certificate = town.certificate_by(&tx, 0..4).expect("all of them");
            let TxCertificate::Merkle { votes, .. } = &mut certificate else { panic!("a tree's") };
            match change {
                0 => drop(votes.pop()),
                1 => votes.push(votes[0].clone()),
                _ => votes.swap(0, 1),
            }
            assert!(!holds(&town.network, &tx, &certificate));
        }
    }

    /// Paper 003's cache: what the first signed passes for the others' signature.
    #[test]
    fn a_checked_root_counts_for_its_signer_alone() {
        let town = town();
        let tx = payment(&town);
        let Vote::Merkle(vote) = town.vote(0, &tx) else { panic!("a tree's vote") };
        assert_eq!(count(&town, &tx, &[(replica(0), Vote::Merkle(vote.clone()))]).bad, [0; 0]);
        let copies = [0, 1, 2].map(|one| (replica(one), Vote::Merkle(vote.clone())));
        let counted = count(&town, &tx, &copies);
        assert_eq!((counted.certificate, counted.bad), (None, vec![1, 2]));
        let signers = Bitmap::from_indices(4, [0, 1, 2]);
        let forged = TxCertificate::Merkle { signers, votes: vec![vote; 3] };
        assert!(!holds(&town.network, &tx, &forged));
    }

    /// Nor does a root count once with one signature and then with any.
    #[test]
    fn a_checked_root_counts_with_its_signature_alone() {
        let town = town();
        let tx = payment(&town);
        let Vote::Merkle(mut vote) = town.vote(0, &tx) else { panic!("a tree's vote") };
        assert_eq!(count(&town, &tx, &[(replica(0), Vote::Merkle(vote.clone()))]).bad, [0; 0]);
        vote.signature.0[0] ^= 1;
        assert_eq!(count(&town, &tx, &[(replica(0), Vote::Merkle(vote))]).bad, [0]);
    }

    #[cfg(feature = "mutants")]
    #[test]
    fn a_root_of_anybody_is_missed() {
        use quorate_crypto::mutants::{Mutant, assert_noticed};
        assert_noticed(Mutant::PayRootOfAnybody, a_checked_root_counts_for_its_signer_alone);
    }
}
