//! Authorities that may say anything.

use crate::dice::Dice;
use quorate_crypto::{Digest, KeyFile, Share};
use quorate_payments::{Answer, Invalid, Network, Transaction, TxId, Verdict, Vote};
use quorate_types::ReplicaId;

/// How an authority behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduct {
    /// As it should.
    Honest,
    /// It never answers.
    Silent,
    /// It votes for whatever it is shown.
    SignsEverything,
    /// It says one thing to one payer and another to the next.
    TwoFaced,
    /// It answers with votes that are none.
    BadVotes,
}

impl Conduct {
    /// All but the honest one.
    pub const FAULTY: [Self; 4] =
        [Self::Silent, Self::SignsEverything, Self::TwoFaced, Self::BadVotes];

    /// What several of its kind are called.
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

/// What a faulty authority says to an order, if anything.
pub(super) fn answer(
    conduct: Conduct,
    network: &Network,
    keys: &KeyFile,
    me: ReplicaId,
    tx: &Transaction,
    dice: &mut Dice,
) -> Option<Answer> {
    let id = tx.id(network.chain());
    let vote = |id: TxId| network.votes().sign(&keys.voting, me, &[id]).remove(0);
    let verdict = match conduct {
        Conduct::Honest | Conduct::Silent => return None,
        Conduct::SignsEverything => Verdict::Vote(vote(id)),
        Conduct::TwoFaced => match dice.below(4) {
            0 => Verdict::Vote(vote(id)),
            1 => Verdict::Busy,
            2 => Verdict::Invalid(Invalid::OwnerSignature),
            _ => {
                let input = *tx.locks().first()?;
                let first = dice.coin().then(|| Box::new(tx.core(network.chain())));
                Verdict::Locked { input, first }
            }
        },
        Conduct::BadVotes => Verdict::Vote(match dice.below(3) {
            0 => vote(TxId(Digest(dice.bytes32()))),
            1 => Vote::Share(Share(dice.bytes32().repeat(dice.index(5)))),
            _ => spoilt(vote(id), dice),
        }),
    };
    Some(Answer { tx: id, verdict })
}

/// A vote with one bit that is not as it was.
fn spoilt(mut vote: Vote, dice: &mut Dice) -> Vote {
    let (Vote::Share(share) | Vote::Merkle(quorate_payments::MerkleVote { signature: share, .. })) =
        &mut vote;
    let at = dice.index(share.0.len());
    share.0[at] ^= 1 << dice.below(8);
    vote
}
