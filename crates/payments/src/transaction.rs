//! Coins and transactions, and what can be said of one without asking anybody.

use crate::{Network, Output, OutputId, TxCertificate, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::merkle::{self, Tree};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, IdentityKey, IdentitySecret, Signature, hash_keyed, hash_parts};
use quorate_types::{Kind, NetworkId, Scope, sign};

/// Opening of a transaction's name for one of its outputs.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Opening {
    /// Payer of the transaction; the issuer, where it issued.
    pub payer: IdentityKey,
    /// The hash of what it spent.
    pub sources: Digest,
    /// The way from the output to the root over all of them; says the output's place and their
    /// number.
    pub path: merkle::Path,
}

impl Opening {
    /// The name of the transaction that has this output where the path says; `None` where the path
    /// fits no place.
    #[must_use]
    pub fn opens(&self, network: NetworkId, output: &Output) -> Option<OutputId> {
        let root = self.path.root(&output.leaf())?;
        let index = u16::try_from(self.path.index).ok()?;
        Some(OutputId { tx: name(network, self.payer, self.sources, root), index })
    }
}

/// Origin of an output, which proves that it exists.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Origin {
    /// The network began with it.
    Genesis,
    /// A quorum voted for the transaction that made it.
    Certified(Box<Proof>),
}

/// Proof that a transaction with this output was certified.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Proof {
    /// Opening of the transaction's name, from the output on.
    pub opening: Opening,
    /// The quorum's votes for that name.
    pub certificate: TxCertificate,
}

/// An output with the proof that it exists. Its holder can show it to anybody, offline; only
/// its owner can spend it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Coin {
    /// Name of the output.
    pub id: OutputId,
    /// Owner and value of the output.
    pub output: Output,
    /// Proof of its existence.
    pub origin: Origin,
}

/// Source of a transaction's money.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Source {
    /// Outputs of one owner, in ascending order of their names.
    Spend(Vec<Input>),
    /// An issue of new money by the issuer. A serial number is used once.
    Issue {
        /// The issuer's own count.
        serial: u64,
    },
    /// A coin that goes back to its owner because its release was decided so
    /// ([`release`](crate::release)).
    Refund(Input),
}

/// An output that is spent. Whose it is, the transaction says once for all its inputs.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Input {
    /// Name of the output that is spent.
    pub id: OutputId,
    /// Value of that output, in the smallest unit.
    pub value: u64,
    /// Proof of its existence.
    pub origin: Origin,
}

/// A signed transaction, as it goes to every authority.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Transaction {
    /// Key of the owner whose coins are spent; the issuer's, where money is issued.
    pub payer: IdentityKey,
    /// Source of the money: coins, or an issue.
    pub source: Source,
    /// New outputs, 1 to [`Transaction::OUTPUTS_MAX`].
    pub outputs: Vec<Output>,
    /// The payer's signature over the transaction's name.
    pub signature: Signature,
}

/// Rule that a transaction breaks, whoever checks it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, BorshSerialize, BorshDeserialize)]
pub enum Invalid {
    /// The bytes are no transaction.
    #[error("the bytes are no transaction: {0}")]
    Malformed(String),
    /// Too few or too many inputs.
    #[error("a transaction has 1 to {max} inputs", max = Transaction::INPUTS_MAX)]
    Inputs,
    /// Too few or too many outputs.
    #[error("a transaction has 1 to {max} outputs", max = Transaction::OUTPUTS_MAX)]
    Outputs,
    /// Inputs that are not in ascending order, or one of them twice.
    #[error("inputs must be in ascending order, each named once")]
    InputOrder,
    /// An output of nothing.
    #[error("an output is worth at least 1")]
    ZeroValue,
    /// Sums beyond 2⁶⁴ − 1.
    #[error("the values add up to more than 64 bits hold")]
    Overflow,
    /// Inputs and outputs that are not worth the same.
    #[error("inputs are worth {inputs}, outputs {outputs}: they must be worth the same")]
    Conservation {
        /// Sum of the inputs' values.
        inputs: u64,
        /// Sum of the outputs' values.
        outputs: u64,
    },
    /// The payer did not sign.
    #[error("the payer's signature does not verify")]
    OwnerSignature,
    /// An issue that somebody else signed.
    #[error("only the network's issuer issues")]
    NotTheIssuer,
    /// An input that the network did not begin with.
    #[error("input {0} is not in the genesis set, or not as stated")]
    NotInGenesis(OutputId),
    /// An input that is not what its certified transaction made.
    #[error("input {0} is not an output of the transaction that is shown")]
    Path(OutputId),
    /// A refund that pays anything else than the coin's value to its owner.
    #[error("a refund pays the coin's whole value to its owner, in one output")]
    Refund,
    /// An input without a quorum's votes.
    #[error("the certificate of input {0} does not verify")]
    Certificate(OutputId),
    /// An owner of another shard.
    #[error("the payer belongs to shard {0}, not to this one")]
    WrongShard(u16),
}

impl Transaction {
    /// Most inputs of a transaction.
    pub const INPUTS_MAX: usize = 64;
    /// Most outputs of a transaction.
    pub const OUTPUTS_MAX: usize = 64;

    const SOURCES: &'static str = "quorate v1 payments: inputs";
    const SERIAL: &'static str = "quorate v1 payments: an issuer's serial";
    const RELEASED: &'static str = "quorate v1 payments: a released coin";

    /// Makes and signs a transaction that spends coins of one owner. Sorts the coins; checks
    /// nothing else: [`Transaction::check_form`] and a verifier of orders do.
    #[must_use]
    pub fn spend(
        network: &Network,
        secret: &IdentitySecret,
        coins: &[Coin],
        outputs: Vec<Output>,
    ) -> Self {
        let mut coins: Vec<&Coin> = coins.iter().collect();
        coins.sort_by_key(|coin| coin.id);
        let source = Source::Spend(coins.into_iter().map(Input::of).collect());
        Self::sign(network, secret, source, outputs)
    }

    /// Makes and signs the transaction by which a released coin goes back to its owner. There is
    /// one for a coin; authorities vote for it once its refund was decided.
    #[must_use]
    pub fn refund(network: &Network, secret: &IdentitySecret, coin: &Coin) -> Self {
        let back = Output { owner: secret.public(), value: coin.output.value };
        Self::sign(network, secret, Source::Refund(Input::of(coin)), vec![back])
    }

    /// Makes and signs an issue.
    #[must_use]
    pub fn issue(
        network: &Network,
        secret: &IdentitySecret,
        serial: u64,
        outputs: Vec<Output>,
    ) -> Self {
        Self::sign(network, secret, Source::Issue { serial }, outputs)
    }

    fn sign(
        network: &Network,
        secret: &IdentitySecret,
        source: Source,
        outputs: Vec<Output>,
    ) -> Self {
        let signature = Signature([0; 64]);
        let mut tx = Self { payer: secret.public(), source, outputs, signature };
        tx.signature = secret.sign(&owner_statement(network, tx.core(network.id()).id));
        tx
    }

    /// The hash of what it spends: names alone, so that it does not matter which of several
    /// certificates for one parent is shown.
    #[must_use]
    pub fn sources(&self) -> Digest {
        match &self.source {
            Source::Spend(inputs) => {
                let mut bytes = Vec::with_capacity(34 * inputs.len());
                for input in inputs {
                    bytes.extend_from_slice(&input.id.tx.0.0);
                    bytes.extend_from_slice(&input.id.index.to_le_bytes());
                }
                hash_parts(Self::SOURCES, &[&bytes])
            }
            Source::Issue { serial } => hash_parts(Self::SERIAL, &[&serial.to_le_bytes()]),
            Source::Refund(input) => {
                hash_parts(Self::RELEASED, &[&input.id.tx.0.0, &input.id.index.to_le_bytes()])
            }
        }
    }

    /// The names that it locks: what it spends, or the serial number that it uses.
    #[must_use]
    pub fn locks(&self) -> Vec<OutputId> {
        match &self.source {
            Source::Spend(inputs) => inputs.iter().map(|input| input.id).collect(),
            Source::Issue { .. } => vec![OutputId { tx: TxId(self.sources()), index: 0 }],
            Source::Refund(input) => vec![input.id],
        }
    }

    /// Core that an authority keeps of it: enough to show to anybody what its payer signed.
    #[must_use]
    pub fn core(&self, network: NetworkId) -> Core {
        let (sources, outputs) = (self.sources(), self.tree().root());
        Core {
            id: name(network, self.payer, sources, outputs),
            payer: self.payer,
            locks: self.locks(),
            kind: match self.source {
                Source::Spend(_) => CoreKind::Spend,
                Source::Issue { serial } => CoreKind::Issue(serial),
                Source::Refund(_) => CoreKind::Refund,
            },
            outputs,
            signature: self.signature,
        }
    }

    /// Name of the transaction in this network.
    #[must_use]
    pub fn id(&self, network: NetworkId) -> TxId {
        name(network, self.payer, self.sources(), self.tree().root())
    }

    fn tree(&self) -> Tree {
        let leaves: Vec<Digest> = self.outputs.iter().map(Output::leaf).collect();
        Tree::new(&leaves)
    }

    /// Outputs as coins, with the proof that they exist, once a quorum voted for it.
    #[must_use]
    pub fn coins(&self, network: NetworkId, certificate: &TxCertificate) -> Vec<Coin> {
        let (tree, sources) = (self.tree(), self.sources());
        let tx = name(network, self.payer, sources, tree.root());
        let coin = |(index, output): (u16, &Output)| {
            let path = tree.path(u32::from(index)).expect("as many leaves as outputs");
            let opening = Opening { payer: self.payer, sources, path };
            let proof = Proof { opening, certificate: certificate.clone() };
            let origin = Origin::Certified(Box::new(proof));
            Coin { id: OutputId { tx, index }, output: *output, origin }
        };
        (0..).zip(&self.outputs).map(coin).collect()
    }

    /// Checks everything that needs no cryptography but hashing (★): counts, order, conservation,
    /// the origin of inputs.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check_form(&self, network: &Network) -> Result<(), Invalid> {
        if self.outputs.is_empty() || self.outputs.len() > Self::OUTPUTS_MAX {
            return Err(Invalid::Outputs);
        }
        if self.outputs.iter().any(|output| output.value == 0) {
            return Err(Invalid::ZeroValue);
        }
        let outputs = sum(self.outputs.iter().map(|output| output.value))?;
        match &self.source {
            Source::Spend(inputs) => self.check_spend(network, inputs, outputs),
            Source::Issue { .. } => {
                let is_issuer =
                    self.payer == network.issuer() || mutants::active(Mutant::PayAnyIssuer);
                if is_issuer { Ok(()) } else { Err(Invalid::NotTheIssuer) }
            }
            Source::Refund(input) => {
                let back = Output { owner: self.payer, value: input.value };
                if self.outputs != [back] && !mutants::active(Mutant::PayRefundToAnybody) {
                    return Err(Invalid::Refund);
                }
                self.check_origin(network, input)
            }
        }
    }

    fn check_spend(
        &self,
        network: &Network,
        inputs: &[Input],
        outputs: u64,
    ) -> Result<(), Invalid> {
        if inputs.is_empty() || inputs.len() > Self::INPUTS_MAX {
            return Err(Invalid::Inputs);
        }
        let ascending = inputs.windows(2).all(|pair| pair[0].id < pair[1].id);
        if !ascending && !mutants::active(Mutant::PayDuplicateInputs) {
            return Err(Invalid::InputOrder);
        }
        let inputs_sum = sum(inputs.iter().map(|input| input.value))?;
        if inputs_sum != outputs && !mutants::active(Mutant::PayInflate) {
            return Err(Invalid::Conservation { inputs: inputs_sum, outputs });
        }
        inputs.iter().try_for_each(|input| self.check_origin(network, input))
    }

    /// Checks that an input is what its origin says, certificates apart.
    fn check_origin(&self, network: &Network, input: &Input) -> Result<(), Invalid> {
        let output = Output { owner: self.payer, value: input.value };
        match &input.origin {
            Origin::Genesis => match network.genesis(input.id) {
                Some(known) if known == output => Ok(()),
                _ => Err(Invalid::NotInGenesis(input.id)),
            },
            Origin::Certified(proof) => {
                let opened = proof.opening.opens(network.id(), &output);
                if opened == Some(input.id) || mutants::active(Mutant::PayTrustPath) {
                    Ok(())
                } else {
                    Err(Invalid::Path(input.id))
                }
            }
        }
    }

    /// The certificates that its validity rests on: one for each parent, with the input that shows
    /// it.
    pub fn certificates(&self) -> impl Iterator<Item = (OutputId, &TxCertificate)> {
        let inputs = match &self.source {
            Source::Spend(inputs) => inputs.as_slice(),
            Source::Issue { .. } => &[],
            Source::Refund(input) => std::slice::from_ref(input),
        };
        let mut last = None;
        inputs.iter().filter_map(move |input| match &input.origin {
            Origin::Certified(proof) if last != Some(input.id.tx) => {
                last = Some(input.id.tx);
                Some((input.id, &proof.certificate))
            }
            _ => None,
        })
    }
}

impl Input {
    fn of(coin: &Coin) -> Self {
        Self { id: coin.id, value: coin.output.value, origin: coin.origin.clone() }
    }

    /// A name without the rest, which no hash of inputs covers.
    fn bare(id: OutputId) -> Self {
        Self { id, value: 0, origin: Origin::Genesis }
    }
}

/// Kind of a transaction, with what its locks do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum CoreKind {
    /// It spends what it locks.
    Spend,
    /// It issues under this serial number, which its lock is the hash of.
    Issue(u64),
    /// It gives back the coin that it locks.
    Refund,
}

/// Rest of a transaction that an authority voted for: its payer, inputs and signature. Two of
/// different names that share a lock prove that their payer tried to spend it twice.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Core {
    /// Name of the transaction.
    pub id: TxId,
    /// Key of the payer, whose signature it bears.
    pub payer: IdentityKey,
    /// Names that the transaction locks.
    pub locks: Vec<OutputId>,
    /// Kind of the transaction.
    pub kind: CoreKind,
    /// The root over its outputs.
    pub outputs: Digest,
    /// The payer's signature over the name.
    pub signature: Signature,
}

impl Core {
    /// Returns `true` if the payer signed a transaction of this name that locks what is stated.
    #[must_use]
    pub fn is_genuine(&self, network: &Network) -> bool {
        let source = match (self.kind, self.locks.as_slice()) {
            (CoreKind::Spend, locks) => {
                Source::Spend(locks.iter().map(|id| Input::bare(*id)).collect())
            }
            (CoreKind::Issue(serial), _) => Source::Issue { serial },
            (CoreKind::Refund, [coin]) => Source::Refund(Input::bare(*coin)),
            (CoreKind::Refund, _) => return false,
        };
        let (outputs, signature) = (Vec::new(), self.signature);
        let tx = Transaction { payer: self.payer, source, outputs, signature };
        let ascending = self.locks.windows(2).all(|pair| pair[0] < pair[1]);
        let is_in_form = (1..=Transaction::INPUTS_MAX).contains(&self.locks.len()) && ascending;
        is_in_form
            && tx.locks() == self.locks
            && name(network.id(), self.payer, tx.sources(), self.outputs) == self.id
            && self.payer.verify(&owner_statement(network, self.id), &self.signature).is_ok()
    }

    /// Returns `true` if `payer` signed a transaction of this name that takes the coin.
    #[must_use]
    pub fn is_of(&self, network: &Network, payer: IdentityKey, tx: TxId, coin: OutputId) -> bool {
        self.id == tx
            && self.payer == payer
            && self.locks.contains(&coin)
            && self.is_genuine(network)
    }
}

/// Two transactions that one payer signed and that cannot both be.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Equivocation {
    /// Transaction that was locked first, as far as the reporter knows.
    pub first: Core,
    /// Transaction that was refused for it.
    pub second: Core,
}

impl Equivocation {
    /// Returns `true` if the payer of both signed two transactions over one lock. A refund is none
    /// of them: it is there for coins that another one locked.
    #[must_use]
    pub fn is_proven(&self, network: &Network) -> bool {
        let Self { first, second } = self;
        let is_refund = |core: &Core| core.kind == CoreKind::Refund;
        first.id != second.id
            && !is_refund(first)
            && !is_refund(second)
            && first.payer == second.payer
            && first.locks.iter().any(|lock| second.locks.contains(lock))
            && first.is_genuine(network)
            && second.is_genuine(network)
    }
}

impl Coin {
    /// Payer of the transaction that made it; `None` for an output of the genesis.
    #[must_use]
    pub fn payer(&self) -> Option<IdentityKey> {
        match &self.origin {
            Origin::Genesis => None,
            Origin::Certified(proof) => Some(proof.opening.payer),
        }
    }

    /// Checks that the coin exists: its transaction is certified, or it is in the genesis. It may
    /// have been spent since; only its owner can have done that.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, network: &Network) -> Result<(), Invalid> {
        match &self.origin {
            Origin::Genesis if network.genesis(self.id) == Some(self.output) => Ok(()),
            Origin::Genesis => Err(Invalid::NotInGenesis(self.id)),
            Origin::Certified(proof) => {
                if proof.opening.opens(network.id(), &self.output) != Some(self.id) {
                    return Err(Invalid::Path(self.id));
                }
                let verdicts = network.votes().verify(&[(self.id.tx, &proof.certificate)]);
                if verdicts == [true] { Ok(()) } else { Err(Invalid::Certificate(self.id)) }
            }
        }
    }
}

/// `H(network ‖ payer ‖ H(inputs) ‖ root of outputs)`; the root covers how many there are.
fn name(network: NetworkId, payer: IdentityKey, sources: Digest, outputs: Digest) -> TxId {
    const NAME: &[u8; 32] = b"quorate v1 payments: transaction";
    let sources = if mutants::active(Mutant::PayVoteNamedOutputs) { Digest::ZERO } else { sources };
    let mut bytes = [0; 128];
    bytes[..32].copy_from_slice(&network.0);
    bytes[32..64].copy_from_slice(&payer.0);
    bytes[64..96].copy_from_slice(&sources.0);
    bytes[96..].copy_from_slice(&outputs.0);
    TxId(hash_keyed(NAME, &bytes))
}

/// Statement that a payer signs. Its outputs outlive an epoch, and so does its signature.
pub(crate) fn owner_statement(network: &Network, id: TxId) -> Vec<u8> {
    sign::statement(Kind::TxOwner, Scope::network(network.id()), &id)
}

fn sum(mut values: impl Iterator<Item = u64>) -> Result<u64, Invalid> {
    if mutants::active(Mutant::PayOverflow) {
        return Ok(values.fold(0, u64::wrapping_add));
    }
    values.try_fold(0, u64::checked_add).ok_or(Invalid::Overflow)
}

#[cfg(test)]
mod tests;
