//! Authorities that may say anything.

use quorate_crypto::{Digest, KeyFile, Share};
use quorate_deterministic::Rng;
use quorate_payments::{Answer, Invalid, Network, Transaction, TxId, Verdict, Vote};
use quorate_types::ReplicaId;

/// Behaviour of an authority, honest or in one way faulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Follows the protocol in all it does.
    Honest,
    /// Takes every order and never answers.
    Silent,
    /// It votes for whatever it is shown.
    SignsEverything,
    /// It says one thing to one payer and another to the next.
    TwoFaced,
    /// It answers with votes that are none.
    BadVotes,
}

impl Behaviour {
    /// All but the honest one.
    pub const FAULTY: [Self; 4] =
        [Self::Silent, Self::SignsEverything, Self::TwoFaced, Self::BadVotes];

    /// Name for several of its kind, in statistics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest authorities",
            Self::Silent => "silent authorities",
            Self::SignsEverything => "authorities that sign everything",
            Self::TwoFaced => "two-faced authorities",
            Self::BadVotes => "authorities with bad votes",
        }
    }
}

/// Answer of a faulty authority to an order, if any.
pub(super) fn answer(
    behaviour: Behaviour,
    network: &Network,
    keys: &KeyFile,
    me: ReplicaId,
    tx: &Transaction,
    rng: &mut Rng,
) -> Option<Answer> {
    let id = tx.id(network.id());
    let vote = |id: TxId| network.votes().sign(&keys.voting, me, &[id]).remove(0);
    let verdict = match behaviour {
        Behaviour::Honest | Behaviour::Silent => return None,
        Behaviour::SignsEverything => Verdict::Vote(vote(id)),
        Behaviour::TwoFaced => match rng.below(4) {
            0 => Verdict::Vote(vote(id)),
            1 => Verdict::Busy,
            2 => Verdict::Invalid(Invalid::OwnerSignature),
            _ => {
                let input = *tx.locks().first()?;
                let first = rng.coin().then(|| Box::new(tx.core(network.id())));
                Verdict::Locked { input, first }
            }
        },
        Behaviour::BadVotes => Verdict::Vote(match rng.below(3) {
            0 => vote(TxId(Digest(rng.bytes32()))),
            1 => Vote::Share(Share(rng.bytes32().repeat(rng.index(5)))),
            _ => spoilt(vote(id), rng),
        }),
    };
    Some(Answer { tx: id, verdict })
}

/// A vote with one bit that is not as it was.
fn spoilt(mut vote: Vote, rng: &mut Rng) -> Vote {
    let (Vote::Share(share) | Vote::Merkle(quorate_payments::MerkleVote { signature: share, .. })) =
        &mut vote;
    let at = rng.index(share.0.len());
    share.0[at] ^= 1 << rng.below(8);
    vote
}
