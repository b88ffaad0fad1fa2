use super::*;
use quorate_crypto::mutants::assert_noticed;
use quorate_storage::LogConfig;

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
