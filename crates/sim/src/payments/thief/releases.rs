//! What a thief tries with releases: freezes of its own coins and of others', proofs that prove
//! nothing, reports in another's name, certificates long after, refunds that nobody decided.

use super::{Act, Attempt, Thief};
use quorate_crypto::IdentityKey;
use quorate_deterministic::Rng;
use quorate_payments::release::{Cause, Freeze, Held, ReleaseStep, Report};
use quorate_payments::{Coin, Equivocation, Output, Transaction};
use quorate_types::{Kind, ReplicaId, Scope, sign};
use std::collections::BTreeMap;

impl Thief {
    pub(super) fn misuse_releases(&mut self, others: &[IdentityKey], rng: &mut Rng) -> Vec<Act> {
        let step = match rng.below(12) {
            0..=2 => return self.split(others, rng),
            3..=5 => {
                let refunds = self.refunds(rng);
                return refunds.into_iter().map(|tx| Act::Show(self.attempt(tx))).collect();
            }
            6 | 7 => self.freeze_own(rng),
            8 => self.freeze_foreign(rng),
            9 => self.freeze_by_proof(rng),
            10 => self.show_certificate(rng),
            _ => self.forge_report(rng),
        };
        step.map(|step| Act::Submit(Box::new(step))).into_iter().collect()
    }

    /// Half a payment, or two over one coin, and the coin's freeze at once.
    fn split(&mut self, others: &[IdentityKey], rng: &mut Rng) -> Vec<Act> {
        let Some(coin) = self.coins.get(rng.index(self.coins.len().max(1))).cloned() else {
            return Vec::new();
        };
        let to = |owner| vec![Output { owner, value: coin.output.value }];
        let payees = [self.owner(), *rng.choose(others)];
        let rivals = payees.into_iter().take(rng.index(2) + 1);
        let rivals = rivals.map(|payee| self.spend(std::slice::from_ref(&coin), to(payee)));
        let rivals: Vec<Transaction> = rivals.collect();
        let rivals = rivals.into_iter().map(|tx| self.attempt(tx)).collect();
        let freeze = Freeze::by_owner(&self.network, &self.secret, vec![coin]);
        vec![Act::Split(rivals), Act::Submit(Box::new(ReleaseStep::Freeze(freeze)))]
    }

    /// One that it made up before, with some that share an input.
    fn rivals(&self, rng: &mut Rng) -> Vec<&Attempt> {
        let all: Vec<&Attempt> = self.attempts.values().collect();
        if all.is_empty() {
            return all;
        }
        let locks = rng.choose(&all).tx.locks();
        let shares = |one: &&Attempt| one.tx.locks().iter().any(|lock| locks.contains(lock));
        all.into_iter().filter(shares).collect()
    }

    /// Coins of rivals: of all of them, or of one.
    fn contested(&self, rng: &mut Rng) -> Vec<Coin> {
        let rivals = self.rivals(rng);
        let coins = rivals.iter().flat_map(|one| one.tx.spent_coins());
        let own = coins.filter(|coin| coin.output.owner == self.owner());
        let coins: BTreeMap<_, _> = own.map(|coin| (coin.id, coin)).collect();
        let mut coins: Vec<Coin> = coins.into_values().collect();
        if rng.one_in(4) {
            coins.truncate(1);
        }
        coins
    }

    fn freeze_own(&self, rng: &mut Rng) -> Option<ReleaseStep> {
        let coins = self.contested(rng);
        let freeze = Freeze::by_owner(&self.network, &self.secret, coins);
        (!freeze.coins.is_empty()).then_some(ReleaseStep::Freeze(freeze))
    }

    /// Another's coin, under its own signature.
    fn freeze_foreign(&self, rng: &mut Rng) -> Option<ReleaseStep> {
        let coin = self.heard.get(rng.index(self.heard.len().max(1)))?.clone();
        let freeze = Freeze::by_owner(&self.network, &self.secret, vec![coin]);
        Some(ReleaseStep::Freeze(freeze))
    }

    /// With two transactions of its own, over coins of theirs, or over another's.
    fn freeze_by_proof(&self, rng: &mut Rng) -> Option<ReleaseStep> {
        let network = self.network.id();
        let rivals = self.rivals(rng);
        let (first, second) = (rng.index(rivals.len().max(1)), rng.index(rivals.len().max(1)));
        let core = |at: usize| rivals.get(at).map(|one| one.tx.core(network));
        let proof = Equivocation { first: core(first)?, second: core(second)? };
        let coins = match self.heard.first() {
            Some(heard) if rng.one_in(3) => vec![heard.clone()],
            _ => self.contested(rng),
        };
        let cause = Cause::Equivocation(Box::new(proof));
        Some(ReleaseStep::Freeze(Freeze { coins, cause }))
    }

    fn show_certificate(&self, rng: &mut Rng) -> Option<ReleaseStep> {
        let certified = self.attempts.values().filter(|one| one.certificate.is_some());
        let certified: Vec<&Attempt> = certified.collect();
        let shown = certified.get(rng.index(certified.len().max(1)))?;
        let core = shown.tx.core(self.network.id());
        Some(ReleaseStep::Certified { core, certificate: shown.certificate.clone()? })
    }

    /// In an authority's name, over a coin of its own.
    fn forge_report(&self, rng: &mut Rng) -> Option<ReleaseStep> {
        let rivals = self.rivals(rng);
        let one = rivals.get(rng.index(rivals.len().max(1)))?;
        let core = one.tx.core(self.network.id());
        let coin = *core.locks.first()?;
        let size = self.network.committee().size();
        let authority = ReplicaId(u16::try_from(rng.index(size)).expect("few"));
        let held = if rng.coin() { Held::For(core) } else { Held::Free };
        let report = Report::sign(&self.network, &self.secret, authority, coin, held);
        Some(ReleaseStep::Report(report))
    }

    /// Of a coin that it has or had: to itself, and, properly signed, to somebody else.
    fn refunds(&self, rng: &mut Rng) -> Vec<Transaction> {
        let coins = self.contested(rng);
        let Some(coin) = coins.get(rng.index(coins.len().max(1))) else { return Vec::new() };
        let refund = Transaction::refund(&self.network, &self.secret, coin);
        let mut other = refund.clone();
        other.outputs = vec![Output { owner: Output::BURNT, value: coin.output.value }];
        let scope = Scope::network(self.network.id());
        let statement = sign::statement(Kind::TxOwner, scope, &other.id(self.network.id()));
        other.signature = self.secret.sign(&statement);
        if rng.coin() { vec![refund, other] } else { vec![other, refund] }
    }
}
