//! The run whose every step is a crash point.

use super::chronicle::{Chronicle, SharedChronicle};
use super::committee::{Committee, Script};
use super::disks::{Disks, LogKind};
use super::host::Observer;
use super::offers::request_of;
use super::shared::Shared;
use bytes::Bytes;
use quorate_consensus::{ProposalKey, ProtocolKind};
use quorate_crypto::{IdentitySecret, KeyFile, SchemeKind};
use quorate_engine::{Comparison, Settings};
use quorate_storage::{ExecutorConfig, Fault, LogConfig, StorageError};
use quorate_types::{
    AgreedSettings, Committee as Members, CommitteeFile, Epoch, Member, ReplicaId, Time,
};
use std::sync::Arc;

/// Members of the committee.
pub(super) const MEMBERS: u16 = 4;

/// The replica whose steps are looked at.
pub(super) const SUBJECT: ReplicaId = ReplicaId(1);

/// Times at which clients submit an operation, in microseconds: alone, and faster than views pass.
const TIMES: [u64; 24] = [
    2_000, 8_000, 20_000, 40_000, 42_000, 90_000, 300_000, 400_000, 404_000, 650_000, 760_000,
    761_000, 765_000, 800_000, 990_000, 1_060_000, 1_300_000, 1_304_000, 1_310_000, 1_500_000,
    1_800_000, 1_803_000, 1_806_000, 1_809_000,
];

/// End of the recorded run.
const END: Time = Time(2_400_000);

/// The run's committee: stub signatures, a log of small segments that keeps next to nothing,
/// frequent snapshots, so that everything that can happen on a disk does.
pub(super) fn shared(protocol: ProtocolKind) -> Arc<Shared> {
    let scheme = SchemeKind::Stub;
    let key = |member| KeyFile::from_seed(scheme, &[u8::try_from(member).expect("few") + 1; 32]);
    let keys: Vec<KeyFile> = (0..MEMBERS).map(key).collect();
    let members = keys.iter().enumerate();
    let members = members.map(|(port, keys)| Member::new(&keys.public(), format!("sim:{port}")));
    let file = CommitteeFile {
        name: "crash points".to_owned(),
        network: None,
        epoch: Epoch(0),
        scheme: scheme.to_string(),
        redundancy: 0,
        settings: AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: members.collect(),
    };
    let settings = Settings {
        protocol,
        batch_delay_ms: 1,
        timeout_ms: 100,
        snapshot_every: 4,
        comparison: Comparison { proposal_key: ProposalKey::Voting, ..Comparison::default() },
        leader_reputation: false,
        ..Settings::default()
    };
    let committee =
        Members::load_simulated(&file, settings.comparison.key_cache).expect("fresh keys");
    Arc::new(Shared {
        keys,
        committee: Arc::new(committee),
        settings,
        log: LogConfig {
            segment_bytes: 12 * 1024,
            retention_bytes: 4 * 1024,
            ..LogConfig::default()
        },
        executor: ExecutorConfig { durable_every: 2, ..ExecutorConfig::default() },
    })
}

/// Work in three stretches. In the first a member is away, so that its views time out; in the
/// second the subject itself is, times out alone, and fetches what it missed.
fn script(shared: &Shared) -> Script {
    let mut script = Script {
        cut_off: vec![(ReplicaId(3), 60_000..700_000), (SUBJECT, 1_000_000..1_250_000)],
        ..Script::default()
    };
    let secret = IdentitySecret::from_seed([99; 32]);
    for (sequence, at) in (0..).zip(TIMES) {
        let operation = Bytes::from(format!("operation {sequence}"));
        let (peer, content) = request_of(shared, &secret, sequence, &operation);
        for to in [u16::try_from(sequence % 4).expect("few"), SUBJECT.0] {
            script.requests.push((Time(at), ReplicaId(to), peer, content.clone()));
        }
    }
    script
}

/// The recorded run, or one that is like it until a disk fails.
pub(super) struct Recorded {
    pub(super) disks: Vec<Option<Disks>>,
    pub(super) chronicle: SharedChronicle,
    pub(super) committee: Committee,
}

impl Recorded {
    /// At its beginning. `plan` is how the subject's disks fail.
    ///
    /// # Errors
    /// When they fail at once.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        plan: &[(LogKind, Fault)],
    ) -> Result<Self, StorageError> {
        let disks: Vec<_> = (0..MEMBERS).map(|_| Some(Disks::default())).collect();
        let chronicle = Chronicle::new(SUBJECT, MEMBERS, shared.settings.protocol).shared();
        let script = script(shared);
        let plan = (SUBJECT, plan);
        let committee = Committee::start(shared, &disks, plan, &chronicle, Time(0), script)?;
        Ok(Self { disks, chronicle, committee })
    }

    /// Has every boundary of the subject shown from here on.
    pub(super) fn watch(&mut self, observer: Observer) {
        self.committee.host(SUBJECT).observer = Some(observer);
    }

    /// Runs until the end, or until the subject's disk fails or something is wrong.
    pub(super) fn run(&mut self) {
        let chronicle = self.chronicle.clone();
        self.committee.run(END, &mut |committee| {
            committee.host(SUBJECT).failure.is_none() && chronicle.borrow().complaint.is_none()
        });
    }
}
