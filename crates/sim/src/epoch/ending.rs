//! Rules of a simulated host between two epochs, as validators have them.

use crate::epoch::EpochConfig;
use quorate_crypto::Bitmap;
use quorate_engine::host::leaving::{AtTheEnd, Stay};
use quorate_types::{HandedOver, Time};
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks of a host that leaves whether the next members have begun.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// How its epoch ended, as a running host knows it.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) step: Arc<HandedOver>,
    /// Time at which it heard of it.
    pub(crate) since: Time,
    /// Its own replica handed over: the state is here.
    pub(crate) is_own: bool,
}

impl Ended {
    /// Time until the host looks again; `None` when it goes on to the next epoch now.
    pub(crate) fn waits(
        &self,
        now: Time,
        view_timeout: Duration,
        host: AtTheEnd,
        have_others_begun: impl FnOnce() -> bool,
    ) -> Option<Duration> {
        match host.stay(view_timeout) {
            Stay::Over => None,
            Stay::UntilOthersBegan => (!have_others_begun()).then_some(ASK_EVERY),
            Stay::For(time) => {
                let left = time.checked_sub(now.since(self.since))?;
                (left > Duration::ZERO).then(|| left.min(view_timeout))
            }
        }
    }
}

impl EpochConfig {
    /// Returns `true` if these hosts are a quorum of its members.
    pub(crate) fn is_quorum(&self, hosts: impl IntoIterator<Item = usize>) -> bool {
        let mut members = Bitmap::new(self.committee.size());
        for member in hosts.into_iter().filter_map(|host| self.seat(host)) {
            members.insert(member.index());
        }
        self.committee.weight_of(&members) >= self.committee.quorum()
    }
}

/// A hand-over of a state that nobody came to, with the signatures of a true one, or in the words
/// of a true one.
pub(crate) fn falsified(step: &HandedOver, in_its_words: bool) -> Arc<HandedOver> {
    let mut step = step.clone();
    step.header.height = step.header.height.next();
    if !in_its_words {
        step.signed.content.height = step.header.height;
        step.signed.content.root = step.header.root();
    }
    Arc::new(step)
}
