//! The rules: what reports and certificates decide.

use super::{Decision, Docket, Held, Known, ReleaseStep, Standing};
use crate::{Core, CoreKind, OutputId, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::IdentityKey;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{ReplicaId, Weights};
use std::collections::BTreeSet;

/// Coins whose release ended, each with its end.
pub type Decided = Vec<(OutputId, Decision)>;

/// Change by an ordered step, as those learn it who follow the order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Ordered {
    /// Coins are frozen that were not before.
    Freeze {
        /// Owner of them all: the shard that votes for what it spends is the one that reports.
        owner: IdentityKey,
        /// Names of the coins.
        coins: Vec<OutputId>,
    },
    /// The releases of coins ended.
    Decided(Decided),
}

/// Reason that a step changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A report of a coin that nobody froze, or a certificate over none that is frozen.
    #[error("the coin is not frozen")]
    NotFrozen,
    /// A second report of one authority.
    #[error("this authority reported the coin before")]
    Repeated,
    /// A report of a coin that is decided.
    #[error("the coin's release has ended")]
    Ended,
    /// A report of a transaction that does not take the coin.
    #[error("the reported transaction does not take the coin")]
    OtherCoin,
    /// A report of a transaction that the coin's owner did not make.
    #[error("the reported transaction is not of the coin's owner, or a refund")]
    OtherOwner,
    /// A certificate for what decisions were against (beyond F faulty authorities).
    #[error("what is certified was decided against")]
    DecidedAgainst,
}

/// Rules of release over a docket. Steps come checked: signatures, certificates and coins are
/// [`ReleaseStep`]'s.
#[derive(Debug)]
pub struct Releases<'a, D> {
    docket: &'a mut D,
    weights: &'a Weights,
}

impl<'a, D: Docket> Releases<'a, D> {
    /// Rules for authorities of these weights.
    pub fn new(docket: &'a mut D, weights: &'a Weights) -> Self {
        Self { docket, weights }
    }

    /// Executes a step that was checked ([`ReleaseStep::open`]), and returns what that ends.
    ///
    /// # Errors
    /// When the docket fails; within, why the step changes nothing.
    pub fn apply(&mut self, step: &ReleaseStep) -> Result<Result<Decided, Refusal>, D::Error> {
        match step {
            ReleaseStep::Freeze(freeze) => {
                let mut decided = Vec::new();
                for coin in &freeze.coins {
                    decided.extend(self.freeze(coin.id, coin.output.owner)?);
                }
                Ok(Ok(decided))
            }
            ReleaseStep::Report(report) => self.report(report.authority, report.coin, &report.held),
            ReleaseStep::Certified { core, .. } => self.certified(core),
        }
    }

    /// Freezes a coin, and returns what that ends; nothing for one that is frozen.
    ///
    /// # Errors
    /// When the docket fails.
    pub fn freeze(&mut self, coin: OutputId, owner: IdentityKey) -> Result<Decided, D::Error> {
        let mut standing = self.docket.coin(coin)?;
        if standing.is_frozen() {
            return Ok(Vec::new());
        }
        standing.owner = Some(owner);
        self.drop_strangers(&mut standing, owner)?;
        self.docket.set_coin(coin, &standing)?;
        self.settle(vec![coin])
    }

    /// Counts an authority's report.
    ///
    /// # Errors
    /// When the docket fails; within, why the report does not count.
    pub fn report(
        &mut self,
        from: ReplicaId,
        coin: OutputId,
        held: &Held,
    ) -> Result<Result<Decided, Refusal>, D::Error> {
        let standing = self.docket.coin(coin)?;
        if let Err(refusal) = check_report(&standing, from, coin, held) {
            return Ok(Err(refusal));
        }
        if let Held::For(core) = held {
            self.learn(core, false)?;
        }
        let mut standing = self.docket.coin(coin)?;
        standing.claims.extend(held.tx());
        standing.reports.insert(from, held.tx());
        self.docket.set_coin(coin, &standing)?;
        let affected = self.affected(coin, &standing)?;
        self.settle(affected).map(Ok)
    }

    /// Takes in that a transaction is certified.
    ///
    /// # Errors
    /// When the docket fails; within, that something else was decided.
    pub fn certified(&mut self, core: &Core) -> Result<Result<Decided, Refusal>, D::Error> {
        let mut is_any_frozen = false;
        for lock in &core.locks {
            let standing = self.docket.coin(*lock)?;
            is_any_frozen |= standing.is_frozen();
            if standing.decision.is_some_and(|decision| decision != Decision::Spend(core.id)) {
                return Ok(Err(Refusal::DecidedAgainst));
            }
        }
        if !is_any_frozen {
            return Ok(Err(Refusal::NotFrozen));
        }
        self.learn(core, true)?;
        self.settle(core.locks.clone()).map(Ok)
    }

    /// Forgets claims of whoever does not own the coin: none can be certified, and a liar may have
    /// reported many.
    fn drop_strangers(&self, standing: &mut Standing, owner: IdentityKey) -> Result<(), D::Error> {
        if mutants::active(Mutant::PayReleaseToAnybody) {
            return Ok(());
        }
        for tx in std::mem::take(&mut standing.claims) {
            if self.docket.transaction(tx)?.is_none_or(|known| known.payer == owner) {
                standing.claims.insert(tx);
            }
        }
        Ok(())
    }

    /// Notes which coins a transaction takes, at each of them that may be its payer's.
    fn learn(&mut self, core: &Core, certified: bool) -> Result<(), D::Error> {
        let before = self.docket.transaction(core.id)?;
        let certified = certified || before.is_some_and(|known| known.certified);
        let known = Known { payer: core.payer, locks: core.locks.clone(), certified };
        self.docket.set_transaction(core.id, &known)?;
        for lock in &core.locks {
            let mut standing = self.docket.coin(*lock)?;
            let is_theirs = standing.owner.is_none_or(|owner| owner == core.payer)
                || mutants::active(Mutant::PayReleaseToAnybody);
            if is_theirs && standing.claims.insert(core.id) {
                self.docket.set_coin(*lock, &standing)?;
            }
        }
        Ok(())
    }

    /// Ends the release of every coin in `agenda`, and of those that follow from it, where the
    /// rules allow. Each waits there once, whatever names it.
    fn settle(&mut self, agenda: impl IntoIterator<Item = OutputId>) -> Result<Decided, D::Error> {
        let mut agenda: BTreeSet<OutputId> = agenda.into_iter().collect();
        let mut decided = Vec::new();
        while let Some(coin) = agenda.pop_first() {
            let Some(decision) = self.decision(coin)? else { continue };
            for taken in self.taken_by(decision, coin)? {
                let mut standing = self.docket.coin(taken)?;
                if standing.is_frozen() && standing.decision.is_none() {
                    standing.decision = Some(decision);
                    self.docket.set_coin(taken, &standing)?;
                    decided.push((taken, decision));
                    agenda.extend(self.affected(taken, &standing)?);
                }
            }
        }
        Ok(decided)
    }

    /// Decision about one coin; `None` while there is none to make.
    fn decision(&self, coin: OutputId) -> Result<Option<Decision>, D::Error> {
        let standing = self.docket.coin(coin)?;
        if !standing.is_frozen() || standing.decision.is_some() {
            return Ok(None);
        }
        for tx in &standing.claims {
            if self.docket.transaction(*tx)?.is_some_and(|known| known.certified) {
                return Ok(Some(Decision::Spend(*tx)));
            }
        }
        Ok(match self.rivals(coin, &standing)?.as_deref() {
            Some([]) => Some(Decision::Refund),
            Some([tx]) if self.is_alone(*tx)? => Some(Decision::Spend(*tx)),
            _ => None,
        })
    }

    /// Transactions that take the coin and are possible; `None` before enough have reported.
    fn rivals(&self, coin: OutputId, standing: &Standing) -> Result<Option<Vec<TxId>>, D::Error> {
        if !self.is_heard(standing) {
            return Ok(None);
        }
        let mut rivals = Vec::new();
        for tx in &standing.claims {
            if self.is_possible(*tx, coin)? {
                rivals.push(*tx);
            }
        }
        if mutants::active(Mutant::PayReleaseMostReported) {
            rivals.sort_by_key(|tx| std::cmp::Reverse(standing.named(*tx, self.weights)));
            rivals.truncate(1);
        }
        Ok(Some(rivals))
    }

    /// Tells whether a transaction is all that is possible at each of its coins (★).
    fn is_alone(&self, tx: TxId) -> Result<bool, D::Error> {
        let unasked = [Mutant::PayReleaseOneInput, Mutant::PayReleaseMostReported];
        if unasked.into_iter().any(mutants::active) {
            return Ok(true);
        }
        let Some(known) = self.docket.transaction(tx)? else { return Ok(false) };
        if !self.is_possible(tx, known.locks[0])? {
            return Ok(false);
        }
        for lock in &known.locks {
            let standing = self.docket.coin(*lock)?;
            if !self.is_heard(&standing) {
                return Ok(false);
            }
            for rival in standing.claims.iter().filter(|rival| **rival != tx) {
                if self.is_possible(*rival, *lock)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Tells whether a coin is frozen, and enough have reported it.
    fn is_heard(&self, standing: &Standing) -> bool {
        standing.is_frozen() && standing.reported(self.weights) >= self.weights.honest()
    }

    /// Tells whether a transaction that takes `coin` may be certified, for all that is known (★):
    /// not where one of its coins is somebody else's, for then no honest authority votes for it.
    fn is_possible(&self, tx: TxId, coin: OutputId) -> Result<bool, D::Error> {
        let known = self.docket.transaction(tx)?;
        let payer = known.as_ref().map(|known| known.payer);
        let others = known.into_iter().flat_map(|known| known.locks);
        // This coin first: of most that are ruled out it says so, and nothing else is read.
        for lock in std::iter::once(coin).chain(others.filter(|lock| *lock != coin)) {
            let standing = self.docket.coin(lock)?;
            let is_theirs = mutants::active(Mutant::PayReleaseToAnybody)
                || payer.is_none_or(|payer| standing.owner == Some(payer));
            if standing.is_frozen() && !(is_theirs && self.is_possible_at(tx, &standing)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_possible_at(&self, tx: TxId, standing: &Standing) -> bool {
        if let Some(decision) = standing.decision {
            return decision == Decision::Spend(tx);
        }
        let unheard = self.weights.total() - standing.reported(self.weights);
        let unheard = if mutants::active(Mutant::PayReleaseUnheard) { 0 } else { unheard };
        standing.named(tx, self.weights) + unheard
            >= self.weights.quorum() - self.weights.faulty_max()
    }

    /// Coins whose release may end because something changed at this one: those of every
    /// transaction that takes it.
    fn affected(&self, coin: OutputId, standing: &Standing) -> Result<Vec<OutputId>, D::Error> {
        let mut affected = vec![coin];
        for tx in &standing.claims {
            affected.extend(self.docket.transaction(*tx)?.into_iter().flat_map(|tx| tx.locks));
        }
        Ok(affected)
    }

    fn taken_by(&self, decision: Decision, coin: OutputId) -> Result<Vec<OutputId>, D::Error> {
        let known = match decision {
            Decision::Spend(tx) => self.docket.transaction(tx)?,
            Decision::Refund => None,
        };
        Ok(known.map_or_else(|| vec![coin], |known| known.locks))
    }
}

fn check_report(
    standing: &Standing,
    from: ReplicaId,
    coin: OutputId,
    held: &Held,
) -> Result<(), Refusal> {
    if !standing.is_frozen() {
        return Err(Refusal::NotFrozen);
    }
    if standing.decision.is_some() {
        return Err(Refusal::Ended);
    }
    if standing.reports.contains_key(&from) {
        return Err(Refusal::Repeated);
    }
    let Held::For(core) = held else { return Ok(()) };
    if !core.locks.contains(&coin) {
        return Err(Refusal::OtherCoin);
    }
    let is_owners = standing.owner == Some(core.payer) && core.kind == CoreKind::Spend;
    if !is_owners && !mutants::active(Mutant::PayReleaseToAnybody) {
        return Err(Refusal::OtherOwner);
    }
    Ok(())
}
