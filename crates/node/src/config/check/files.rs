//! The files and folders that a configuration names.

use super::Notes;
use super::source::Source;
use crate::ClientPolicy;
use crate::clients::ClientsFile;
use crate::config::NodeConfig;
use crate::keys::{self, Origin};
use crate::marker::{self, Marker};
use crate::metrics::Disk;
use quorate_crypto::{KeyFileError, PublicKeys, StoredKeys};
use quorate_types::{Committee, CommitteeFile, NetworkId};
use rustix::fs::{Access, access, statvfs};
use serde::Serialize;
use std::fmt;
use std::path::Path;

const GIB: u64 = 1 << 30;

/// Free bytes below which an operator should make room.
const SPACE_GOOD: u64 = 20 * GIB;

/// The key file, if it can be read.
pub(super) fn key(source: &Source, config: &NodeConfig, notes: &mut Notes) -> Option<StoredKeys> {
    let place = source.at("", "key");
    let keys = match StoredKeys::read(&config.key) {
        Ok(keys) => keys,
        Err(error) => {
            let hint = match &error {
                KeyFileError::Io { .. } => "`quorate keys generate FILE` makes one",
                _ => "",
            };
            notes.error(place, error.to_string(), hint);
            return None;
        }
    };
    check_passphrase(source, config, &keys, notes);
    if let Some(folder) = config.noted_key().parent()
        && access(folder, Access::WRITE_OK).is_err()
    {
        let (place, whose) = match config.key_notes {
            Some(_) => (source.at("", "key_notes"), "the folder of the key's notes"),
            None => (place, "the key's folder"),
        };
        let problem = format!("{whose} {} is not writable", folder.display());
        let hint = "the validator notes there that the key has signed, so that it is never used \
                    without its log: let its user write there, or name another in key_notes";
        notes.error(place, problem, hint);
    }
    if let Err(error) = marker::check_notes(&config.key, &config.noted_key()) {
        notes.error(source.at("", "key_notes"), error.to_string(), "");
    }
    Some(keys)
}

fn check_passphrase(source: &Source, config: &NodeConfig, keys: &StoredKeys, notes: &mut Notes) {
    let place = source.at("", "passphrase_file");
    let sealed = match (keys, keys::passphrase_file(config)) {
        (StoredKeys::Open(_), Some((_, Origin::Configuration))) => {
            let hint = "seal it with `quorate keys encrypt FILE`, or remove passphrase_file";
            notes.warning(place, "passphrase_file is set, but the key file is not sealed", hint);
            return;
        }
        (StoredKeys::Open(_), _) => return,
        (StoredKeys::Sealed(_), None) => {
            let problem = "the key file is sealed and no passphrase file is named";
            let hint = "`quorate run` will ask at the terminal; a service has none: set \
                        passphrase_file, QUORATE_PASSPHRASE_FILE or the systemd credential \
                        quorate-passphrase";
            notes.warning(source.at("", "key"), problem, hint);
            return;
        }
        (StoredKeys::Sealed(sealed), Some((path, origin))) => (sealed, path, origin),
    };
    let (sealed, path, origin) = sealed;
    let opened = keys::read_passphrase(&path, origin)
        .map_err(|error| error.to_string())
        .and_then(|passphrase| sealed.open(&passphrase).map_err(|error| error.to_string()));
    if let Err(problem) = opened {
        notes.error(place, problem, "");
    }
}

/// The list of clients.
pub(super) fn clients(source: &Source, config: &NodeConfig, notes: &mut Notes) {
    if config.clients == ClientPolicy::Listed
        && let Some(Err(error)) = config.clients_file.as_deref().map(ClientsFile::load)
    {
        let hint =
            "a section [[clients]] with a `key` for each; an empty file lets in gateways alone";
        notes.error(source.at("", "clients_file"), error.to_string(), hint);
    }
}

/// The genesis file, where members agree on one or the configuration names one.
pub(super) fn genesis(source: &Source, config: &NodeConfig, notes: &mut Notes) {
    let place = source.at("", "genesis");
    let Some(path) = &config.genesis else {
        if config.genesis_digest.is_some() {
            let problem = "'genesis' is missing: all members agree on a genesis file";
            notes.error(place, problem, "name it: the committee file has its digest");
        }
        return;
    };
    match std::fs::read_to_string(path) {
        Ok(text) => {
            if let Err(error) = config.check_genesis(&text) {
                notes.error(place, error.to_string(), "");
            }
        }
        Err(error) => notes.error(place, format!("cannot read {}: {error}", path.display()), ""),
    }
}

/// The member that these keys belong to, unless they are a learner's.
pub(super) fn member(
    source: &Source,
    config: &NodeConfig,
    keys: &PublicKeys,
    (file, committee): (&CommitteeFile, &Committee),
    notes: &mut Notes,
) -> Option<u16> {
    match keys::place_of(config, committee, file, keys) {
        Ok(id) => committee.contains(id).then_some(id.0),
        Err(error) => {
            notes.error(source.at("", "key"), error.to_string(), "");
            None
        }
    }
}

/// The data folder, and whether the key has signed without it.
pub(super) fn data(
    source: &Source,
    config: &NodeConfig,
    network: Option<NetworkId>,
    notes: &mut Notes,
) -> Option<DiskNeeds> {
    let place = source.at("", "data_dir");
    let data = &config.data_dir;
    if data.exists() && !data.is_dir() {
        notes.error(place, format!("data_dir {} is not a folder", data.display()), "name a folder");
        return None;
    }
    let existing = data.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    if access(existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let problem = match existing == data {
            true => format!("data_dir {} is not writable", data.display()),
            false => format!("data_dir {} cannot be made", data.display()),
        };
        let hint = format!("let the validator's user write in {}", existing.display());
        notes.error(place, problem, hint);
    }
    let needs = DiskNeeds::of(config, existing)?;
    check_space(source, &needs, notes);
    let Some(network) = network else { return Some(needs) };
    // What cannot be read is reported where it is.
    let lost =
        Marker::beside(&config.noted_key()).is_lost(network, &data.join("log")).unwrap_or(false);
    if lost && !config.follow_only && !config.learner {
        let problem = format!(
            "the key was used before and its log is not in {}: the validator will follow and never vote",
            data.display()
        );
        let hint = "if the log is elsewhere, correct data_dir before starting; if it is lost, make a \
                    new key and a committee file that names it (docs/OPERATING.md)";
        notes.warning(place, problem, hint);
    }
    Some(needs)
}

/// Disk that a validator asks for beside what its files take already, and what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DiskNeeds {
    /// Bytes by which the log may still grow within `retention_bytes`.
    pub log_bytes: u64,
    /// Bytes of two snapshots of the state as it is.
    pub snapshot_bytes: u64,
    /// Bytes of the reserve, if it is not written yet.
    pub reserve_bytes: u64,
    /// Bytes below which clients are refused.
    pub low_bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
}

impl DiskNeeds {
    /// Needs of a validator whose data are, or will be, on the disk of `folder`; `None` if the
    /// system does not say.
    fn of(config: &NodeConfig, folder: &Path) -> Option<Self> {
        let system = statvfs(folder).ok()?;
        let (room, disk) = (config.room_config(), Disk::of(&config.data_dir));
        let snapshots = Disk::in_folder(&config.data_dir.join("snapshots"));
        let has_reserve = config.data_dir.join("reserve").exists();
        Some(Self {
            log_bytes: config.retention_bytes.saturating_sub(disk.log_bytes),
            snapshot_bytes: (2 * disk.state_bytes).saturating_sub(snapshots),
            reserve_bytes: if has_reserve { 0 } else { room.reserve_in(folder) },
            low_bytes: room.low_bytes,
            free_bytes: system.f_bavail.saturating_mul(system.f_frsize),
        })
    }

    fn total(&self) -> u64 {
        let own = self.log_bytes.saturating_add(self.snapshot_bytes);
        own.saturating_add(self.reserve_bytes).saturating_add(self.low_bytes)
    }
}

impl fmt::Display for DiskNeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log_bytes, snapshot_bytes, reserve_bytes, low_bytes, free_bytes } = *self;
        let (total, free) = (gib(self.total()), gib(free_bytes));
        write!(
            f,
            "{total} GiB and the state's growth, of {free} GiB that are free: log {} more, snapshots {} \
             more, reserve {} more; clients are refused below {}",
            gib(log_bytes),
            gib(snapshot_bytes),
            gib(reserve_bytes),
            gib(low_bytes)
        )
    }
}

/// So many bytes in GiB.
fn gib(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / GIB as f64)
}

fn check_space(source: &Source, needs: &DiskNeeds, notes: &mut Notes) {
    let (free, growth) = (needs.free_bytes, needs.total());
    if growth > free {
        let problem = format!(
            "log, snapshots and reserve may still grow by {} GiB, and {} GiB are free",
            gib(growth),
            gib(free)
        );
        let hint = "lower retention_bytes, make room, or name another disk";
        notes.error(source.at("", "retention_bytes"), problem, hint);
        return;
    }
    if free >= SPACE_GOOD {
        return;
    }
    let problem = format!("{} GiB are free where data_dir is", gib(free));
    let hint = "a validator whose disk is full takes no part: make room, or name another disk";
    notes.warning(source.at("", "data_dir"), problem, hint);
}
