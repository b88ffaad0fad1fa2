//! Going on with the next epoch's committee.

use super::{ClientConfig, Members, Session, SessionEffect, UnderWay};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{ReplicaId, Time};
use std::sync::Arc;

impl Session {
    /// Goes on in the epoch of this configuration, which is the session's own but for its history.
    ///
    /// What is under way is kept and sent again: requests are signed for the network, not for an
    /// epoch, and members execute each once, whichever epoch orders it. From here on messages of
    /// the next epoch's members alone may be delivered.
    ///
    /// ★ What members said before is forgotten: replies of two epochs do not add up, as the faulty
    /// of both together may be enough to be believed.
    pub fn enter(&mut self, now: Time, config: Arc<ClientConfig>) {
        let home = self.config.committee().identity(self.home);
        let home = home.and_then(|key| config.committee().find(key));
        self.home = home.unwrap_or(ReplicaId(0));
        (self.target, self.home_after) = (self.home, None);
        self.members = Members::new(Arc::clone(config.committee()), config.retry_after / 2);
        self.config = config;
        self.effects.retain(|effect| matches!(effect, SessionEffect::Return { .. }));
        for (sequence, former) in std::mem::take(&mut self.under_way) {
            let UnderWay { request, tags, is_reused, .. } = former;
            self.begin(now, request, tags, is_reused);
            if mutants::active(Mutant::RepliesAcrossEpochs)
                && let Some(under_way) = self.under_way.get_mut(&sequence)
            {
                (under_way.answered, under_way.answers) = (former.answered, former.answers);
            }
        }
        self.queries.enter(now, &self.config, self.target);
    }
}
