//! The judge: who owns what, who promised what, and what nobody may believe.
//!
//! It is told of every transaction that anybody makes, of every vote as it leaves an honest
//! authority, and of every certificate that anybody accepts. It takes faulty authorities to have
//! voted for everything: what they and the honest voters could certify counts as certified, whether
//! anybody collects the votes or not. Releases are judged by what honest authorities
//! promised: a decision against what may be certified is wrong, whatever the committee counted.
//!
//! A transaction takes effect once: where it may be certified in any epoch, or where an honest
//! authority of a later one spends what it made. Whoever has the keys of an ended epoch may make
//! certificates of it for anything: these count for nothing by themselves.

mod borders;
mod releases;

use quorate_crypto::IdentityKey;
use quorate_payments::change::LockEntry;
use quorate_payments::release::Decision;
use quorate_payments::{Output, OutputId, Source, Transaction, TxCertificate, TxId};
use std::collections::{BTreeMap, BTreeSet};

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the property's judge.
    pub oracle: &'static str,
    /// Contradiction that was seen, in words.
    pub text: String,
}

/// Something that can be taken once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    Output(OutputId),
    Serial(u64),
}

/// Effect of a transaction, without any proof.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Action {
    payer: IdentityKey,
    is_refund: bool,
    takes: Vec<Taken>,
    gives: Vec<Output>,
    /// Names that it locks, in ascending order.
    locks: Vec<OutputId>,
}

/// Authorities of one epoch.
#[derive(Clone, Debug)]
pub(super) struct Electorate {
    /// Number of all of them.
    pub(super) size: usize,
    /// Indices of those that may say anything.
    pub(super) faulty: BTreeSet<usize>,
}

impl Electorate {
    /// Most that may be faulty.
    fn tolerated(&self) -> usize {
        (self.size - 1) / 3
    }

    /// Fewest of whom any two share an honest one.
    fn quorum(&self) -> usize {
        (self.size + self.tolerated()) / 2 + 1
    }

    /// Fewest honest votes of a certificate.
    fn vouching(&self) -> usize {
        self.quorum() - self.tolerated()
    }
}

/// An authority's index in an epoch.
pub(super) type Voter = (usize, usize);

/// Everything known of the world's money.
#[derive(Debug)]
pub(super) struct Books {
    issuer: IdentityKey,
    /// Authorities by epoch.
    electorates: Vec<Electorate>,
    actions: BTreeMap<TxId, Action>,
    /// Outputs that exist: those of genesis, and those of what could be certified.
    outputs: BTreeMap<OutputId, Output>,
    /// Honest authorities that voted for a transaction, by epoch.
    voters: BTreeMap<(usize, TxId), BTreeSet<usize>>,
    promises: BTreeMap<(Voter, Taken), TxId>,
    /// What shards of honest authorities reported when their epoch ended.
    closings: BTreeMap<(Voter, u16), BTreeSet<LockEntry>>,
    /// Transactions that their shards voted for before.
    voted: BTreeMap<(Voter, u16), BTreeSet<TxId>>,
    takers: BTreeMap<Taken, TxId>,
    certifiable: BTreeSet<TxId>,
    /// Transactions whose certificates somebody saw.
    believed: BTreeSet<TxId>,
    /// Transactions that honest owners showed.
    shown: BTreeSet<TxId>,
    /// What honest authorities reported of coins under release.
    reports: BTreeMap<(Voter, OutputId), Option<TxId>>,
    decisions: BTreeMap<OutputId, Decision>,
    issued: u128,
    unspent: u128,
    redeemed: u128,
}

type Verdict = Result<(), Violation>;

fn violation(oracle: &'static str, text: String) -> Verdict {
    Err(Violation { oracle, text })
}

fn worth(outputs: &[Output]) -> u128 {
    outputs.iter().map(|output| u128::from(output.value)).sum()
}

impl Books {
    pub(super) fn new(
        issuer: IdentityKey,
        electorates: Vec<Electorate>,
        genesis: BTreeMap<OutputId, Output>,
    ) -> Self {
        let begun: u128 = genesis.values().map(|output| u128::from(output.value)).sum();
        Self {
            issuer,
            electorates,
            actions: BTreeMap::new(),
            outputs: genesis,
            voters: BTreeMap::new(),
            promises: BTreeMap::new(),
            closings: BTreeMap::new(),
            voted: BTreeMap::new(),
            takers: BTreeMap::new(),
            certifiable: BTreeSet::new(),
            believed: BTreeSet::new(),
            shown: BTreeSet::new(),
            reports: BTreeMap::new(),
            decisions: BTreeMap::new(),
            issued: begun,
            unspent: begun,
            redeemed: 0,
        }
    }

    /// Somebody made a transaction of this name.
    pub(super) fn on_transaction(&mut self, id: TxId, tx: &Transaction) -> Verdict {
        let takes = match &tx.source {
            Source::Spend(inputs) => inputs.iter().map(|input| Taken::Output(input.id)).collect(),
            Source::Issue { serial } => vec![Taken::Serial(*serial)],
            Source::Refund(input) => vec![Taken::Output(input.id)],
        };
        let is_refund = matches!(tx.source, Source::Refund(_));
        let mut locks = tx.locks();
        locks.sort_unstable();
        locks.dedup();
        let gives = tx.outputs.clone();
        let action = Action { payer: tx.payer, is_refund, takes, gives, locks };
        match self.actions.insert(id, action.clone()) {
            Some(other) if other != action => {
                violation("names", format!("{id} names {other:?} and {action:?}"))
            }
            _ => Ok(()),
        }
    }

    /// An honest authority's vote leaves it.
    pub(super) fn on_vote(&mut self, voter: Voter, shard: u16, id: TxId) -> Verdict {
        let (epoch, authority) = voter;
        let Some(action) = self.actions.get(&id).cloned() else {
            let text = format!("{voter:?} votes for {id}, which nobody made");
            return violation("validity", text);
        };
        for taken in &action.takes {
            self.on_promise(voter, id, &action, *taken)?;
        }
        self.check_closed(voter, shard, id, &action)?;
        self.voted.entry((voter, shard)).or_default().insert(id);
        self.count_parents(epoch, &action)?;
        if let Err(reason) = self.validity(&action) {
            return violation("validity", format!("{voter:?} votes for {id}: {reason}"));
        }
        let voters = self.voters.entry((epoch, id)).or_default();
        voters.insert(authority);
        let electorate = &self.electorates[epoch];
        if voters.len() + electorate.faulty.len() >= electorate.quorum() {
            self.take_effect(id)?;
        }
        Ok(())
    }

    /// One promise an input, but for what the coin's release was decided for.
    fn on_promise(&mut self, voter: Voter, id: TxId, action: &Action, taken: Taken) -> Verdict {
        if let Taken::Output(coin) = taken
            && self.is_decided_for(coin, id, action.is_refund)
        {
            self.promises.insert((voter, taken), id);
            return Ok(());
        }
        let promised = *self.promises.entry((voter, taken)).or_insert(id);
        if promised != id {
            let text = format!("{voter:?} votes for {promised} and {id}, both take {taken:?}");
            return violation("one vote an input", text);
        }
        match taken {
            Taken::Output(coin) => self.check_frozen(voter, id, action.is_refund, coin),
            Taken::Serial(_) => Ok(()),
        }
    }

    fn validity(&self, action: &Action) -> Result<(), String> {
        if action.takes.is_empty() || action.gives.is_empty() {
            return Err("it takes or gives nothing".into());
        }
        if action.gives.iter().any(|output| output.value == 0) {
            return Err("it gives outputs of nothing".into());
        }
        let given = worth(&action.gives);
        if given > u128::from(u64::MAX) {
            return Err(format!("{given} is more than there can be"));
        }
        let mut taken = 0;
        let mut seen = BTreeSet::new();
        for one in &action.takes {
            if !seen.insert(*one) {
                return Err(format!("it takes {one:?} twice"));
            }
            match one {
                Taken::Serial(_) if action.payer == self.issuer => taken = given,
                Taken::Serial(_) => return Err("somebody else issues".into()),
                Taken::Output(id) => match self.outputs.get(id) {
                    Some(output) if output.owner == action.payer => {
                        taken += u128::from(output.value);
                    }
                    Some(_) => return Err(format!("{id} is somebody else's")),
                    None => return Err(format!("{id} does not exist")),
                },
            }
        }
        if taken == given { Ok(()) } else { Err(format!("it gives {given} for {taken}")) }
    }

    /// A transaction takes what it takes, for good; once.
    fn take_effect(&mut self, id: TxId) -> Verdict {
        if !self.certifiable.insert(id) {
            return Ok(());
        }
        let action = self.actions[&id].clone();
        for taken in &action.takes {
            if let Some(other) = self.takers.insert(*taken, id) {
                let text = format!("{other} and {id} can be certified, both take {taken:?}");
                return violation("one certificate an input", text);
            }
            match taken {
                Taken::Output(id) => self.unspent -= u128::from(self.outputs[id].value),
                Taken::Serial(_) => self.issued += worth(&action.gives),
            }
        }
        for (index, output) in (0..).zip(&action.gives) {
            self.outputs.insert(OutputId { tx: id, index }, *output);
            if output.owner == Output::BURNT {
                self.redeemed += u128::from(output.value);
            } else {
                self.unspent += u128::from(output.value);
            }
        }
        let Self { issued, unspent, redeemed, .. } = self;
        if *unspent + *redeemed > *issued {
            let text = format!("{unspent} unspent and {redeemed} redeemed of {issued} issued");
            return violation("conservation", text);
        }
        Ok(())
    }

    /// Somebody believes a certificate: its honest signers voted, and they are a quorum with the
    /// others.
    pub(super) fn on_certificate(&mut self, id: TxId, certificate: &TxCertificate) -> Verdict {
        let signers: BTreeSet<usize> = certificate.signers().iter().collect();
        let nobody = BTreeSet::new();
        let epoch = usize::try_from(certificate.epoch.0).expect("few");
        let electorate = &self.electorates[epoch];
        let voters = self.voters.get(&(epoch, id)).unwrap_or(&nobody);
        let invented: Vec<_> = signers
            .iter()
            .filter(|one| !voters.contains(one) && !electorate.faulty.contains(one))
            .collect();
        if signers.len() < electorate.quorum() || !invented.is_empty() {
            let text = format!("{id} by {signers:?}; {invented:?} never voted for it");
            return violation("certificates", text);
        }
        self.believed.insert(id);
        Ok(())
    }

    /// An output exists as far as anybody may believe.
    pub(super) fn exists(&self, id: OutputId) -> bool {
        self.outputs.contains_key(&id)
    }
}
