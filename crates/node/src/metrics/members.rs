//! Metrics of each member, as this validator sees it, and of the committee that they make up.

use super::{Labels, peer_label, raise};
use crate::health::{Health, MemberStatus};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use quorate_types::Peer;
use std::sync::atomic::AtomicU64;

type Figures = Family<Labels, Gauge<f64, AtomicU64>>;

#[derive(Debug, Default)]
pub(super) struct MemberMetrics {
    connected: Family<Labels, Gauge>,
    silent: Family<Labels, Gauge>,
    silence: Figures,
    round_trip: Figures,
    votes: Figures,
    turns: Family<Labels, Counter>,
    turns_failed: Family<Labels, Counter>,
    heard_weight: Gauge,
    has_quorum: Gauge,
    stalled: Gauge,
    ready: Gauge,
}

impl MemberMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let mut add = |name, help, family: &Family<Labels, Gauge>| {
            registry.register(name, help, family.clone());
        };
        add("peer_connected", "Whether all lanes to a member are connected", &metrics.connected);
        add("peer_silent", "1 for a member that was not heard for some seconds", &metrics.silent);
        let mut add = |name, help, family: &Figures| {
            registry.register(name, help, family.clone());
        };
        add("peer_silence_seconds", "Time since a member was last heard", &metrics.silence);
        add("peer_round_trip_seconds", "Time to a member and back", &metrics.round_trip);
        add(
            "member_votes_ratio",
            "Part of the last certificates that carries a member's vote",
            &metrics.votes,
        );
        registry.register("member_turns", "Views that a member led", metrics.turns.clone());
        registry.register(
            "member_turns_failed",
            "Views that a member led and that were given up",
            metrics.turns_failed.clone(),
        );
        let mut add = |name, help, gauge: &Gauge| registry.register(name, help, gauge.clone());
        add("heard_weight", "Weight of the members heard, its own included", &metrics.heard_weight);
        add("has_quorum", "1 while those heard are a quorum", &metrics.has_quorum);
        add("stalled", "1 while work waits and nothing is decided", &metrics.stalled);
        add("ready", "1 while it is of use to clients, as /readyz says", &metrics.ready);
        metrics
    }

    pub(super) fn show(&self, members: &[MemberStatus], health: &Health, is_ready: bool) {
        for member in members {
            self.show_member(member);
        }
        self.heard_weight.set(health.heard_weight.cast_signed());
        self.has_quorum.set(i64::from(health.has_quorum()));
        self.stalled.set(i64::from(health.is_stalled()));
        self.ready.set(i64::from(is_ready));
    }

    fn show_member(&self, member: &MemberStatus) {
        let labels = vec![("peer", peer_label(Peer::Replica(member.id)))];
        if let Some(contact) = &member.contact {
            self.connected.get_or_create(&labels).set(i64::from(contact.connected));
            self.silent.get_or_create(&labels).set(i64::from(contact.silent));
            self.silence.get_or_create(&labels).set(contact.silence_s);
            if let Some(ms) = contact.round_trip_ms {
                self.round_trip.get_or_create(&labels).set(ms / 1e3);
            }
        }
        if let Some(ratio) = member.votes_ratio() {
            self.votes.get_or_create(&labels).set(ratio);
        }
        raise(&self.turns, &labels, member.turns);
        raise(&self.turns_failed, &labels, member.turns_failed);
    }
}
