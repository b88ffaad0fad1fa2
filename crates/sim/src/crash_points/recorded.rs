//! The run whose every step is a crash point.

mod border;

use super::chronicle::{Chronicle, SharedChronicle};
use super::committee::{Committee, Script};
use super::disks::{DiskFailure, Disks};
use super::host::Observer;
use super::offers::request_of;
use super::shared::Shared;
use super::{Options, Role};
use crate::epoch::EpochConfig;
use bytes::Bytes;
use quorate_consensus::ProposalKey;
use quorate_crypto::{IdentitySecret, KeyFile, SchemeKind};
use quorate_engine::{Comparison, Settings};
use quorate_storage::{ExecutorConfig, LogConfig, StorageError};
use quorate_types::{
    AgreedSettings, Committee as Members, CommitteeFile, Epoch, Member, Peer, Time,
};
use std::sync::Arc;

/// Members of the committee.
const MEMBERS: u16 = 4;

/// Host whose steps are looked at where the committee stays.
const SUBJECT: usize = 1;

/// Times at which clients submit an operation, in microseconds: alone, and faster than views pass.
const TIMES: [u64; 24] = [
    2_000, 8_000, 20_000, 40_000, 42_000, 90_000, 300_000, 400_000, 404_000, 650_000, 760_000,
    761_000, 765_000, 800_000, 990_000, 1_060_000, 1_300_000, 1_304_000, 1_310_000, 1_500_000,
    1_800_000, 1_803_000, 1_806_000, 1_809_000,
];

/// End of the recorded run.
const END: Time = Time(2_400_000);

/// What outlives the hosts of a run: stub signatures, a log of small segments that keeps next to
/// nothing, frequent snapshots, so that everything that can happen on a disk does.
pub(super) fn shared(options: &Options) -> Arc<Shared> {
    let subject = options.border.map_or(SUBJECT, Role::host);
    let hosts = if options.border.is_some() { border::HOSTS } else { MEMBERS };
    let key =
        |host| KeyFile::from_seed(SchemeKind::Stub, &[u8::try_from(host).expect("few") + 1; 32]);
    let keys: Vec<KeyFile> = (0..hosts).map(key).collect();
    let members = &keys[..usize::from(MEMBERS)];
    let settings = Settings {
        protocol: options.protocol,
        batch_delay_ms: 1,
        timeout_ms: 100,
        snapshot_every: 4,
        comparison: Comparison { proposal_key: ProposalKey::Voting, ..Comparison::default() },
        leader_reputation: false,
        ..Settings::default()
    };
    let committee =
        Members::load_simulated(&file_of(members.iter()), settings.comparison.key_cache)
            .expect("fresh keys");
    let identities: Vec<_> = keys.iter().map(|keys| keys.identity.public()).collect();
    let first = EpochConfig::first(settings, members.to_vec(), Arc::new(committee), &identities);
    Arc::new(Shared {
        subject,
        change: options.border.map(|_| border::change(&first, &keys)),
        keys,
        first: Arc::new(first),
        log: LogConfig {
            segment_bytes: 12 * 1024,
            retention_bytes: 4 * 1024,
            ..LogConfig::default()
        },
        executor: ExecutorConfig { durable_every: 2, ..ExecutorConfig::default() },
    })
}

/// A committee file of members with these keys.
fn file_of<'a>(keys: impl Iterator<Item = &'a KeyFile>) -> CommitteeFile {
    let members = keys.enumerate();
    let members = members.map(|(port, keys)| Member::new(&keys.public(), format!("sim:{port}")));
    CommitteeFile {
        name: "crash points".to_owned(),
        network: None,
        epoch: Epoch(0),
        scheme: SchemeKind::Stub.to_string(),
        redundancy: 0,
        settings: AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: members.collect(),
    }
}

/// Work in three stretches. In the first a member is away, so that its views time out; in the
/// second the subject itself is, times out alone, and fetches what it missed.
fn script(shared: &Shared) -> Script {
    if shared.change.is_some() {
        return border::script(shared);
    }
    let cut_off = vec![(3, 60_000..700_000), (SUBJECT, 1_000_000..1_250_000)];
    Script { requests: requests(shared, &TIMES), cut_off }
}

/// Operations of one client at these times, each submitted to the subject and another member.
fn requests(shared: &Shared, times: &[u64]) -> Vec<(Time, usize, Peer, Bytes)> {
    let secret = IdentitySecret::from_seed([99; 32]);
    let mut requests = Vec::new();
    for (sequence, at) in (0..).zip(times) {
        let operation = Bytes::from(format!("operation {sequence}"));
        let (peer, content) = request_of(shared, &secret, sequence, &operation);
        for to in [usize::try_from(sequence % 4).expect("few"), shared.subject] {
            requests.push((Time(*at), to, peer, content.clone()));
        }
    }
    requests
}

/// The recorded run, or one that is like it until a disk fails.
pub(super) struct Recorded {
    pub(super) disks: Vec<Option<Disks>>,
    pub(super) chronicle: SharedChronicle,
    pub(super) committee: Committee,
    end: Time,
}

impl Recorded {
    /// At its beginning. `plan` is how the subject's disks fail.
    ///
    /// # Errors
    /// When they fail at once.
    pub(super) fn begin(shared: &Arc<Shared>, plan: &[DiskFailure]) -> Result<Self, StorageError> {
        let disks: Vec<_> = shared.keys.iter().map(|_| Some(Disks::new())).collect();
        let chronicle = Chronicle::new(shared.subject).shared();
        let script = script(shared);
        let committee = Committee::start(shared, &disks, plan, &chronicle, Time(0), script)?;
        let end = if shared.change.is_some() { border::END } else { END };
        Ok(Self { disks, chronicle, committee, end })
    }

    /// Has every boundary of the subject shown from here on.
    pub(super) fn watch(&mut self, observer: Observer) {
        self.committee.subject().observer = Some(observer);
    }

    /// Runs until the end, or until the subject's disk fails or something is wrong.
    pub(super) fn run(&mut self) {
        let chronicle = self.chronicle.clone();
        self.committee.run(self.end, &mut |committee| {
            committee.subject().failure.is_none() && chronicle.borrow().complaint.is_none()
        });
    }
}
