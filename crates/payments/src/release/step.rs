//! Steps that are ordered, and their checks.

use super::Held;
use crate::{Coin, Core, Equivocation, Invalid, Network, OutputId, TxCertificate};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{IdentityKey, IdentitySecret, Signature, hash};
use quorate_types::{Kind, ReplicaId, Scope, sign};

/// Step of a release: an operation of the committee's order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ReleaseStep {
    /// Begin the release of coins.
    Freeze(Freeze),
    /// Say what an authority is locked for.
    Report(Report),
    /// Show that a transaction over a frozen coin is certified.
    Certified {
        /// The transaction, as its payer signed it.
        core: Core,
        /// The quorum's votes for it.
        certificate: TxCertificate,
    },
}

/// Wish, or reason, to release coins of one owner.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Freeze {
    /// The coins, 1 to [`Freeze::COINS_MAX`], ascending, with the proof that each exists.
    pub coins: Vec<Coin>,
    /// Right to have them frozen.
    pub cause: Cause,
}

/// Right to have coins frozen.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Cause {
    /// The owner's signature over the coins' names.
    Owner(Signature),
    /// Proof that the owner signed two transactions; each coin is an input of one of them.
    Equivocation(Box<Equivocation>),
}

/// An authority's word on what a frozen coin is locked for (★: no vote over the coin follows it but
/// for what is decided).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Report {
    /// Index of the authority in its network.
    pub authority: ReplicaId,
    /// Coin whose freeze it executed.
    pub coin: OutputId,
    /// Lock that it has.
    pub held: Held,
    /// The authority's signature, under its identity key.
    pub signature: Signature,
}

/// Rule that a step breaks, whatever came before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The bytes are no step, or too many.
    #[error("this is no step of a release")]
    Malformed,
    /// Coins that cannot be frozen together.
    #[error(
        "a release names 1 to {max} coins of one owner, in ascending order, each once",
        max = Freeze::COINS_MAX
    )]
    Coins,
    /// A coin that does not exist.
    #[error(transparent)]
    Coin(#[from] Invalid),
    /// A cause that proves no right to have the coins frozen.
    #[error("neither the coins' owner signed the wish, nor is it proven to have spent them twice")]
    Cause,
    /// A report that its authority did not sign.
    #[error("the report is not signed by an authority of this network")]
    Reporter,
    /// A transaction that its payer did not sign.
    #[error("the payer did not sign the transaction that is named")]
    Payer,
    /// A certificate that does not hold.
    #[error("the certificate does not hold")]
    Certificate,
    /// A certificate of an epoch that has ended.
    #[error("the certificate is of an epoch that has ended: reports of the present one decide")]
    FormerEpoch,
}

impl Freeze {
    /// Most coins of one freeze.
    pub const COINS_MAX: usize = crate::Transaction::INPUTS_MAX;

    /// The wish of the coins' owner. Sorts the coins.
    #[must_use]
    pub fn by_owner(network: &Network, secret: &IdentitySecret, mut coins: Vec<Coin>) -> Self {
        coins.sort_by_key(|coin| coin.id);
        let signature = secret.sign(&wish(network, &coins));
        Self { coins, cause: Cause::Owner(signature) }
    }

    fn check(&self, network: &Network) -> Result<(), StepError> {
        let Some(first) = self.coins.first() else { return Err(StepError::Coins) };
        let owner = first.output.owner;
        let ascending = self.coins.windows(2).all(|pair| pair[0].id < pair[1].id);
        let together = self.coins.iter().all(|coin| coin.output.owner == owner);
        if !ascending || !together || self.coins.len() > Self::COINS_MAX {
            return Err(StepError::Coins);
        }
        if !self.is_due(network, owner) && !mutants::active(Mutant::PayFreezeByAnybody) {
            return Err(StepError::Cause);
        }
        self.coins.iter().try_for_each(|coin| coin.check(network).map_err(StepError::Coin))
    }

    fn is_due(&self, network: &Network, owner: IdentityKey) -> bool {
        match &self.cause {
            Cause::Owner(signature) => owner.verify(&wish(network, &self.coins), signature).is_ok(),
            Cause::Equivocation(proof) => {
                let takes = |core: &Core, coin: &Coin| core.locks.contains(&coin.id);
                let taken = |coin| takes(&proof.first, coin) || takes(&proof.second, coin);
                proof.first.payer == owner
                    && self.coins.iter().all(taken)
                    && proof.is_proven(network)
            }
        }
    }
}

impl Report {
    /// Signs what an authority has locked a coin for.
    #[must_use]
    pub fn sign(
        network: &Network,
        secret: &IdentitySecret,
        authority: ReplicaId,
        coin: OutputId,
        held: Held,
    ) -> Self {
        let signature = secret.sign(&report(network, coin, &held));
        Self { authority, coin, held, signature }
    }

    fn check(&self, network: &Network) -> Result<(), StepError> {
        let statement = report(network, self.coin, &self.held);
        let key = network.committee().identity(self.authority).ok_or(StepError::Reporter)?;
        let is_signed = key.verify(&statement, &self.signature).is_ok();
        if !is_signed && !mutants::active(Mutant::PayReportByAnybody) {
            return Err(StepError::Reporter);
        }
        match &self.held {
            Held::For(core) if !core.is_genuine(network) => Err(StepError::Payer),
            _ => Ok(()),
        }
    }
}

impl ReleaseStep {
    /// Most bytes of an encoded step: those of an order.
    pub const BYTES_MAX: usize = crate::ORDER_BYTES_MAX;

    /// The step in these bytes, if it keeps every rule that needs no order (★).
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn open(network: &Network, bytes: &[u8]) -> Result<Self, StepError> {
        if bytes.len() > Self::BYTES_MAX {
            return Err(StepError::Malformed);
        }
        let step = Self::try_from_slice(bytes).map_err(|_| StepError::Malformed)?;
        step.check(network)?;
        Ok(step)
    }

    /// Checks every rule that needs no order (★). `network` is that of the epoch in force.
    ///
    /// # Errors
    /// The first rule that the step breaks.
    pub fn check(&self, network: &Network) -> Result<(), StepError> {
        match self {
            Self::Freeze(freeze) => freeze.check(network),
            Self::Report(report) => report.check(network),
            Self::Certified { core, certificate } => check_certified(network, core, certificate),
        }
    }

    /// The bytes to order.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        borsh::to_vec(self).expect("encoding into memory cannot fail")
    }
}

/// A certificate decides where reports do not, so that its signers' keys must not have leaked: it
/// is of the epoch in force (★).
fn check_certified(
    network: &Network,
    core: &Core,
    certificate: &TxCertificate,
) -> Result<(), StepError> {
    if certificate.epoch != network.epoch() && !mutants::active(Mutant::PayReleaseByFormerKeys) {
        return Err(StepError::FormerEpoch);
    }
    if !core.is_genuine(network) {
        return Err(StepError::Payer);
    }
    let is_certified = network.votes().verify(&[(core.id, certificate)]) == [true];
    if is_certified { Ok(()) } else { Err(StepError::Certificate) }
}

/// Statement that an owner signs to have coins frozen.
fn wish(network: &Network, coins: &[Coin]) -> Vec<u8> {
    let names: Vec<OutputId> = coins.iter().map(|coin| coin.id).collect();
    let digest = hash(&borsh::to_vec(&names).expect("encoding into memory cannot fail"));
    sign::statement(Kind::TxRelease, Scope::network(network.id()), &digest)
}

/// Statement that an authority signs about its lock. It holds in its epoch, as its votes do.
fn report(network: &Network, coin: OutputId, held: &Held) -> Vec<u8> {
    let held = hash(&borsh::to_vec(held).expect("encoding into memory cannot fail"));
    sign::statement(Kind::TxReport, network.scope(), &(coin, held))
}
