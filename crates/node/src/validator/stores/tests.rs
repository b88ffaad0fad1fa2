use super::*;
use crate::Archive;
use quorate_crypto::Digest;
use quorate_crypto::mutants::assert_noticed;
use quorate_storage::LogConfig;
use quorate_types::service::{BlockContext, Operation, Outcome, State, StateError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// ★ A log that was begun since a loss is not what was lost.
#[test]
fn a_lost_log_stays_lost_at_the_next_start() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    let config = NodeConfig::new(at("committee.toml"), at("key.toml"), at("data"));
    let (marker, network) = (Marker::beside(&config.key), NetworkId([1; 32]));
    marker.write(network, KeyStatus::Used).expect("written");
    assert!(note_loss(&config, &marker, network).expect("looked for"));

    let disk = |name| Box::new(RealDisk::open(&config.data_dir.join(name)).expect("a folder"));
    let (log, bodies) = (disk("log"), disk("bodies"));
    let opened = Journal::open(log, bodies, &Owner::nobody(), LogConfig::default(), None);
    opened.expect("a new log").0.begin().expect("begun");
    assert!(note_loss(&config, &marker, network).expect("looked for"));
}

#[test]
fn a_loss_that_is_not_noted_is_noticed() {
    assert_noticed(Mutant::LossUnnoted, a_lost_log_stays_lost_at_the_next_start);
}

/// Executes nothing, and says how much memory it was granted: for its state, and for proofs of what
/// it was.
struct Granted(Arc<[AtomicU64; 2]>);

impl Service for Granted {
    fn name(&self) -> &'static str {
        "granted"
    }

    fn limit_cache(&mut self, bytes: u64) {
        self.0[0].store(bytes, Ordering::Relaxed);
    }

    fn keep_provable(&mut self, bytes: u64) {
        self.0[1].store(bytes, Ordering::Relaxed);
    }

    fn admit(&self, _: Operation<'_>) -> Result<(), String> {
        Ok(())
    }

    fn execute(
        &mut self,
        _: &mut dyn State,
        _: BlockContext,
        _: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        unreachable!("nothing is decided")
    }

    fn root(&self, _: &dyn State) -> Result<Digest, StateError> {
        Ok(Digest::ZERO)
    }
}

#[test]
fn a_service_is_granted_the_memory_for_the_state() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    let mut config = NodeConfig::new(at("committee.toml"), at("key.toml"), at("data"));
    (config.state_cache_bytes, config.archive_proof_bytes) = (10 << 20, 3 << 20);
    for (archive, provable) in [(Archive::Recent, 3 << 20), (Archive::Off, 0)] {
        config.archive = archive;
        let granted = Arc::new([const { AtomicU64::new(7) }; 2]);
        let service = Box::new(Granted(Arc::clone(&granted)));
        drop(Stores::open(&config, service, &Owner::nobody()).expect("opened"));
        let granted = granted.each_ref().map(|bytes| bytes.load(Ordering::Relaxed));
        assert_eq!(granted, [10 << 20, provable]);
    }
}
