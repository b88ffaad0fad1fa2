//! What a release would come to, by what authorities say of coins before anybody is asked for one.

use super::Wallet;
use super::release::CoinRelease;
use quorate_payments::release::{Docket, Held, MemoryDocket, Releases, Standing};
use quorate_payments::{CoinStatus, OutputId, TxId};
use quorate_types::ReplicaId;

impl Wallet {
    /// How the release of these coins would end if the authorities reported what they answer now:
    /// the rules of releases, over these answers.
    pub(super) fn forecast(
        &self,
        coins: &mut [CoinRelease],
        answers: &[(ReplicaId, Vec<CoinStatus>)],
    ) {
        let weights = self.network.committee().weights();
        let mut docket = MemoryDocket::default();
        let mut rules = Releases::new(&mut docket, weights);
        for release in &*coins {
            let Ok(_) = rules.freeze(release.coin, self.owner());
        }
        for (from, states) in answers {
            for (release, state) in coins.iter().zip(states) {
                let Some(held) = self.held(release.coin, state) else { continue };
                let Ok(_) = rules.report(*from, release.coin, &held);
            }
        }
        for (at, release) in coins.iter_mut().enumerate() {
            let Ok(standing) = docket.coin(release.coin);
            release.standing = standing;
            // Those too that came after the end.
            let states = answers.iter().filter_map(|(from, states)| Some((*from, states.get(at)?)));
            for (from, state) in states {
                let Some(held) = self.held(release.coin, state) else { continue };
                release.standing.reports.insert(from, held.tx());
                release.standing.claims.extend(held.tx());
            }
        }
    }

    /// Lock that an authority would report; `None` where it would report nothing.
    fn held(&self, coin: OutputId, state: &CoinStatus) -> Option<Held> {
        Some(match state {
            CoinStatus::Contested => return None,
            CoinStatus::Free | CoinStatus::Frozen => Held::Free,
            CoinStatus::Locked { tx, core } if self.is_own(core.as_deref(), *tx, coin) => {
                Held::For(core.as_deref().expect("a transaction that is shown").clone())
            }
            CoinStatus::Locked { tx, .. } => Held::Pruned(*tx),
        })
    }

    /// Tells whether only a release can free coins of a payment that lost, and may: a quorum
    /// answered of each, no other transaction over them can get a quorum any more, and not all stay
    /// locked for ever.
    pub(super) fn is_release_due(&self, lost: TxId, forecast: &[CoinRelease]) -> bool {
        let weights = self.network.committee().weights();
        let can_win = |standing: &Standing, tx: TxId| {
            let locked = standing.claims.iter().map(|tx| standing.named(*tx, weights));
            let open = weights.total() - locked.sum::<u64>();
            tx != lost && standing.named(tx, weights) + open >= weights.quorum()
        };
        let is_won =
            |one: &CoinRelease| one.standing.claims.iter().any(|tx| can_win(&one.standing, *tx));
        let is_heard = |one: &CoinRelease| one.standing.reported(weights) >= weights.quorum();
        forecast.iter().all(is_heard)
            && !forecast.iter().any(is_won)
            && forecast.iter().any(|one| !one.standing.is_stuck(weights))
    }
}
