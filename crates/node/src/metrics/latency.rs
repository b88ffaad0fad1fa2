//! Histograms that the replica keeps, as of its last status.

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use quorate_engine::LatencyCounts;
use std::fmt;
use std::sync::Arc;

/// Times that the replica took in. Its thread counts without a lock; only readers of `/metrics`
/// take this one.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplicaLatency(Arc<Mutex<LatencyCounts>>);

impl ReplicaLatency {
    pub(super) fn register(registry: &mut Registry, name: &str, help: &str) -> Self {
        let latency = Self::default();
        registry.register(name, help, latency.clone());
        latency
    }

    pub(super) fn set(&self, counts: &LatencyCounts) {
        *self.0.lock() = counts.clone();
    }
}

impl EncodeMetric for ReplicaLatency {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let counts = self.0.lock();
        let buckets: Vec<(f64, u64)> = counts.buckets().collect();
        encoder.encode_histogram::<NoLabelSet>(counts.sum_seconds(), counts.count(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
