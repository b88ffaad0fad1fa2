//! Bringing a change: its file, everybody's signatures, and the wait until all are in the next
//! epoch.

use super::{Roster, What};
use crate::bench::BenchError;
use crate::status::ask_all;
use quorate_crypto::{IdentitySecret, KeyFile, SchemeKind};
use quorate_node::keys::next_key_file;
use quorate_node::testnet::system_random;
use quorate_node::{Epochs, NodeConfig, bring_change};
use quorate_report::results::beside::BorderTimes;
use quorate_types::{Change, Committee, CommitteeFile, Height, Member, ReplicaId, SignedChange};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval at which members are asked whether they are in the next epoch.
const INTERVAL: Duration = Duration::from_millis(10);

/// Time for one answer, and for all to be in the next epoch.
const ANSWER: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

/// Wait until all are in the next epoch.
pub(in crate::bench) type Border = JoinHandle<Result<BorderTimes, String>>;

/// The processes, by their configurations and the addresses of their status.
pub(in crate::bench) struct Processes<'a> {
    pub(in crate::bench) configs: &'a [PathBuf],
    pub(in crate::bench) http: &'a [String],
    /// Those that do not run.
    pub(in crate::bench) dead: &'a [u16],
}

/// Brings a change to the members in force, signed by all, and waits for its end in a thread.
///
/// # Errors
/// When the epoch that it ends has not begun, the change breaks a rule, or a file is refused.
pub(in crate::bench) fn bring(
    what: What,
    roster: &mut Roster,
    processes: &Processes<'_>,
) -> Result<Border, BenchError> {
    let changing = |reason: String| BenchError::Change { what: what.to_string(), reason };
    let refused = |error: &dyn std::fmt::Display| changing(error.to_string());
    let configs: Vec<NodeConfig> = (processes.configs.iter())
        .map(|path| NodeConfig::load(path).map_err(|error| refused(&error)))
        .collect::<Result<_, _>>()?;
    let living = |id: &&u16| !processes.dead.contains(id);
    let first =
        *roster.members().iter().find(living).ok_or_else(|| changing("all are dead".into()))?;
    let epochs = Epochs::open(&configs[usize::from(first)]).map_err(|error| refused(&error))?;
    if epochs.epoch().0 != roster.epoch() {
        let epoch = roster.epoch();
        return Err(changing(format!(
            "epoch {epoch} has not begun yet: leave more time between two changes"
        )));
    }
    let approvers = roster.members().to_vec();
    let next = roster.change(what, processes.dead);
    let signed = sign(what, &epochs, &configs, &approvers, &next).map_err(changing)?;
    let living = (0..).zip(processes.http).filter(|(id, _)| !processes.dead.contains(id));
    let addresses: Vec<String> = living.map(|(_, address)| address.clone()).collect();
    let committee = Arc::clone(epochs.committee());
    Ok(thread::spawn(move || cross(&committee, &signed, &addresses)))
}

/// The change with everybody's signatures.
fn sign(
    what: What,
    epochs: &Epochs,
    configs: &[NodeConfig],
    approvers: &[u16],
    next: &[(u16, bool)],
) -> Result<SignedChange, String> {
    let ends = epochs.committee();
    let keys: Vec<KeyFile> =
        configs.iter().map(|config| key_in_force(&config.key)).collect::<Result<_, _>>()?;
    let next_keys = match what {
        What::Scheme(scheme) => {
            let rotate =
                |(config, keys): (&NodeConfig, &KeyFile)| rotate(&config.key, keys, scheme);
            configs.iter().zip(&keys).map(rotate).collect::<Result<_, _>>()?
        }
        _ => keys.clone(),
    };
    let file = next_file(what, epochs.file(), ends, (configs, &next_keys), next);
    let change = Change {
        network: ends.network(),
        epoch: ends.epoch(),
        file,
        not_before: Height(0),
        expires: Height(u64::MAX),
    };
    let committee = change.check(ends).map_err(|error| error.to_string())?;
    let approve = |(member, id): (u16, &u16)| {
        change.approve(ends, ReplicaId(member), &keys[usize::from(*id)].identity)
    };
    // Any state is near enough to height 0, from which on the change may be ordered.
    let accept = |(member, (id, _)): (u16, &(u16, bool))| {
        let keys = &next_keys[usize::from(*id)];
        let place = (ReplicaId(member), Height(0));
        change.accept((ends, &committee), place, (&keys.identity, &keys.voting))
    };
    Ok(SignedChange {
        approvals: (0..).zip(approvers).map(approve).collect(),
        acceptances: (0..).zip(next).map(accept).collect(),
        change,
    })
}

fn next_file(
    what: What,
    present: &CommitteeFile,
    ends: &Committee,
    (configs, keys): (&[NodeConfig], &[KeyFile]),
    next: &[(u16, bool)],
) -> CommitteeFile {
    let entry = |(place, (id, is_new)): (usize, &(u16, bool))| {
        let keys = keys[usize::from(*id)].public();
        let identity = keys.identity.to_string();
        let own = present.members.iter().find(|member| member.identity == identity);
        let address = own.map(|member| member.address.clone());
        let address = address.or_else(|| configs[usize::from(*id)].listen.clone());
        // Who comes in another's place weighs as much.
        let before = if *is_new { present.members.get(place) } else { own };
        let weight = before.map_or(1, |member| member.weight);
        Member { weight, ..Member::new(&keys, address.unwrap_or_default()) }
    };
    let mut file = present.next_epoch(ends.network());
    file.members = next.iter().enumerate().map(entry).collect();
    match what {
        What::Protocol(protocol) => file.settings.protocol = protocol.to_string(),
        What::Scheme(scheme) => file.scheme = scheme.to_string(),
        What::Replace(_) | What::Add(_) | What::Remove(_) => {}
    }
    file
}

/// Keys in force: those that an earlier change brought take the other file's name first.
fn key_in_force(key: &Path) -> Result<KeyFile, String> {
    let next = next_key_file(key);
    if next.exists() {
        fs::rename(&next, key).map_err(|error| format!("{}: {error}", next.display()))?;
    }
    KeyFile::read(key).map_err(|error| error.to_string())
}

/// A new voting key, where it takes over by itself.
fn rotate(key: &Path, present: &KeyFile, scheme: SchemeKind) -> Result<KeyFile, String> {
    let fresh = KeyFile::generate(scheme, &mut system_random).map_err(|error| error.to_string())?;
    let keys = KeyFile { identity: present.identity.clone(), ..fresh };
    keys.write(&next_key_file(key)).map_err(|error| error.to_string())?;
    Ok(keys)
}

/// Brings the change and waits until all are in the next epoch.
fn cross(
    ends: &Arc<Committee>,
    change: &SignedChange,
    addresses: &[String],
) -> Result<BorderTimes, String> {
    let epoch = change.change.file.epoch.0;
    let mut stranger = [0; 32];
    system_random(&mut stranger);
    let brought = Instant::now();
    let answers = bring_change(ends, &IdentitySecret::from_seed(stranger), change);
    let answers = answers.map_err(|error| error.to_string())?;
    if answers.taken.is_empty() {
        return Err(format!("no member took the change: {answers:?}"));
    }
    let mut times = BorderTimes { epoch, ..BorderTimes::default() };
    loop {
        let looks = ask_all(addresses, ANSWER);
        let entered = looks.iter().flatten().filter(|look| look.config.epoch >= epoch).count();
        let seconds = (brought.elapsed().as_secs_f64() * 1_000.0).round() / 1_000.0;
        if entered > 0 && times.first_s.is_none() {
            times.first_s = Some(seconds);
        }
        if entered == addresses.len() {
            times.all_s = Some(seconds);
            return Ok(times);
        }
        if brought.elapsed() > PATIENCE {
            let missing = addresses.len() - entered;
            return Err(format!("{missing} validators are not in epoch {epoch} after {seconds} s"));
        }
        thread::sleep(INTERVAL);
    }
}
