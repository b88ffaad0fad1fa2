//! A state from one disk to another, and everything that is refused on the way.

use super::{Founded, RescueError, StateFile, StateProofs, check, export, import};
use crate::epochs::tests::{certify, end_of};
use crate::{Epochs, NodeConfig, NodeError, Testnet, TestnetPlan};
use bytes::Bytes;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{IdentitySecret, KeyCache, KeyFile, hash};
use quorate_ledger::kv::{Kv, Operation};
use quorate_storage::{Executor, MemoryStore, Owner, RealDisk, Role, Snapshots};
use quorate_types::executed::ExecutionCertificate;
use quorate_types::machine::Block;
use quorate_types::{
    Body, CertifiedBy, Committee, CommitteeFile, ExportedState, ExportedStateError, Header, Height,
    Manifest, NetworkId, Payload, Purpose, ReplicaId, Request,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

const EVERY: u64 = 8;

/// The files of a network of four.
struct Place {
    folder: TempDir,
    configs: Vec<NodeConfig>,
    keys: Vec<KeyFile>,
    file: CommitteeFile,
}

impl Place {
    fn new() -> Self {
        Self::founded(|_| {})
    }

    /// The same with other content in the committee file.
    fn founded(change: impl FnOnce(&mut CommitteeFile)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = TestnetPlan { members: 4, ..TestnetPlan::default() };
        let testnet = Testnet::create(&folder.path().join("net"), &plan).expect("written");
        let load = |path: &PathBuf| NodeConfig::load(path).expect("sound");
        let configs: Vec<NodeConfig> = testnet.configs.iter().map(load).collect();
        let mut file = configs[0].read_committee_file().expect("sound");
        change(&mut file);
        let text = crate::testnet::committee_text(&file);
        fs::write(&configs[0].committee, text).expect("written");
        let keys = configs.iter().map(|config| KeyFile::read(&config.key).expect("keys"));
        Self { keys: keys.collect(), folder, configs, file }
    }

    fn committee(&self) -> Committee {
        Committee::load(&self.file, KeyCache::Off).expect("sound")
    }

    fn data(&self) -> &Path {
        &self.configs[0].data_dir
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The last disk: snapshots of these heights, of a member that ran.
    fn take_snapshots(&self, heights: &[u64]) -> Vec<Header> {
        let owner = Owner {
            network: self.committee().network(),
            member: self.keys[0].public().identity,
            role: Role::Validator,
            protocol: "jolteon".into(),
            formerly: Vec::new(),
        };
        let disk = RealDisk::open(&self.data().join("snapshots")).expect("opened");
        let snapshots = Snapshots::open(Box::new(disk), &owner).expect("opened");
        let (store, service) = (Box::new(MemoryStore::new()), Box::new(Kv::default()));
        let (mut executor, _) =
            Executor::open(store, service, self.configs[0].executor_config()).expect("opened");
        let mut headers = Vec::new();
        for height in 1..=*heights.last().expect("one") {
            executor.execute(&self.block(height)).expect("executed");
            if heights.contains(&height) {
                executor.snapshot().expect("taken").write(&snapshots).expect("written");
                headers.push(executor.executed().expect("some").header);
            }
        }
        headers
    }

    /// Writes of a client of its own: some of these heights fill a chunk.
    fn block(&self, height: u64) -> Block {
        let seed = u8::try_from(height).expect("few");
        let client = IdentitySecret::from_seed([seed; 32]);
        let put = |key: u8| {
            let operation = Operation::put(vec![seed, key], vec![seed; 60_000]).encode();
            let network = self.committee().network();
            Request::sign(&client, network, u64::from(key), &[operation]).expect("small")
        };
        let requests: Vec<Request> = (0..3).map(put).collect();
        let body = Arc::new(Body::seal(ReplicaId(0), height, &requests));
        let payload = Payload::new(Height(height), height, vec![body.reference]);
        Block { payload, bodies: vec![body], decided: Bytes::from_static(b"decided") }
    }

    /// What these members sign of a header, kept where a validator keeps it.
    fn keep_certificate(&self, members: &[usize], header: Header) {
        self.keep_certificate_of(&self.committee(), members, header);
    }

    /// The same as members of a later committee.
    fn keep_certificate_of(&self, committee: &Committee, members: &[usize], header: Header) {
        let keys: Vec<KeyFile> = members.iter().map(|at| self.keys[*at].clone()).collect();
        let statement = header.statement(committee.scope());
        let certificate = certify(committee, &keys, Purpose::Execute, &statement);
        let kept = ExecutionCertificate { header, certificate };
        StateProofs::of(self.data()).keep(&kept).expect("kept");
    }

    /// A disk with a certified snapshot at the first of two, exported.
    fn exported() -> (Self, PathBuf) {
        let old = Self::new();
        let headers = old.take_snapshots(&[EVERY, 2 * EVERY]);
        old.keep_certificate(&[1, 2], headers[0]);
        let out = old.out("state");
        let exported = export(old.data(), &old.file, &out).expect("exported");
        assert_eq!(exported.state.manifest.header, headers[0], "the newest that is certified");
        assert_eq!((exported.by, exported.executed), (CertifiedBy::Members, None));
        (old, out)
    }

    /// A network that goes on from the state in a file.
    fn on(out: &Path) -> Self {
        let from = StateFile::open(out).expect("a state").state.from_state();
        Self::founded(|file| file.from_state = Some(from))
    }

    fn import(&self, out: &Path) -> Result<(), RescueError> {
        let member = self.keys[0].public().identity;
        import(&self.configs[0], member, Box::new(Kv::default()), out).map(drop)
    }
}

fn said(result: Result<impl Sized, RescueError>) -> String {
    result.err().expect("refused").to_string()
}

#[test]
fn a_state_goes_from_the_last_disk_to_a_new_network() {
    let (old, out) = Place::exported();
    let checked = check(&out, &old.file, Box::new(Kv::default())).expect("it holds");
    assert_eq!((checked.sessions, checked.history.steps().len()), (EVERY, 0));
    assert!(checked.state.manifest.chunks.len() > 1, "of several chunks");

    let new = Place::on(&out);
    new.import(&out).expect("imported");
    let epochs = Epochs::open(&new.configs[0]).expect("it begins");
    assert_eq!(*epochs.start().header(), checked.state.manifest.header);
    assert!(epochs.start().follows());
    assert!(said(new.import(&out)).contains("a state is imported once"));
}

#[test]
fn what_nobody_certified_is_not_exported() {
    let old = Place::new();
    let out = old.out("state");
    assert!(said(export(old.data(), &old.file, &out)).contains("has no snapshots"));
    let headers = old.take_snapshots(&[EVERY, 2 * EVERY]);
    let refused = said(export(old.data(), &old.file, &out));
    assert!(refused.contains("h16 is not (nobody certified it"), "{refused}");
    old.keep_certificate(&[0], headers[1]);
    let refused = said(export(old.data(), &old.file, &out));
    assert!(refused.contains("h16 is not (its certificate"), "{refused}");
    assert!(refused.contains("h8 is not (nobody certified it"), "{refused}");

    let stranger = Place::new();
    let refused = export(old.data(), &stranger.file, &out).expect_err("another network's");
    assert!(matches!(refused, RescueError::Storage(_)), "{refused}");
    let running = RealDisk::open(&old.data().join("snapshots")).expect("locked");
    assert!(said(export(old.data(), &old.file, &out)).contains("is running: stop it first"));
    drop(running);
    assert!(!out.exists(), "nothing was written");
}

/// The state that an epoch ended with is certified by the quorum that handed over; one of the next
/// epoch by members of that, and by those of no other.
#[test]
fn a_state_of_a_later_epoch_goes_with_its_hand_overs() {
    let old = Place::new();
    let headers = old.take_snapshots(&[EVERY, 2 * EVERY]);
    let mut epochs = Epochs::open(&old.configs[0]).expect("the first");
    let network = Some(epochs.committee().network());
    let next = CommitteeFile { network, epoch: epochs.epoch().next(), ..old.file.clone() };
    let step = end_of(epochs.committee(), &old.keys, headers[0], next);
    epochs.begin(step).expect("it ended so");

    let first = old.out("first");
    let exported = export(old.data(), &old.file, &first).expect("exported");
    assert_eq!(exported.by, CertifiedBy::HandOver);
    assert_eq!(exported.state.manifest.header, headers[0]);
    old.keep_certificate(&[0, 1, 2, 3], headers[1]);
    let again = export(old.data(), &old.file, &old.out("again")).expect("exported");
    assert_eq!(again.state.manifest.header, headers[0], "no word of the epoch before counts");
    old.keep_certificate_of(epochs.committee(), &[0, 3], headers[1]);
    let second = old.out("second");
    let exported = export(old.data(), &old.file, &second).expect("exported");
    assert_eq!(exported.by, CertifiedBy::Members);
    for (out, height) in [(&first, EVERY), (&second, 2 * EVERY)] {
        let checked = check(out, &old.file, Box::new(Kv::default())).expect("it holds");
        assert_eq!(checked.state.manifest.header.height, Height(height));
        assert_eq!(checked.last_file(&old.file).epoch, epochs.epoch());
    }
}

#[test]
fn an_export_overwrites_nothing() {
    let (old, out) = Place::exported();
    assert!(said(export(old.data(), &old.file, &out)).contains("File exists"));
}

#[test]
fn a_file_that_is_something_else_is_refused_by_its_fault() {
    let (old, out) = Place::exported();
    let good = fs::read(&out).expect("a file");
    let verdict = |bytes: &[u8]| {
        fs::write(&out, bytes).expect("written");
        said(check(&out, &old.file, Box::new(Kv::default())))
    };
    assert!(verdict(b"committee").contains("it does not begin as one"));
    assert!(verdict(&good[..good.len() - 1_048_576]).contains("it is cut off"));
    assert!(verdict(&[&good[..], &[0; 2_000_000]].concat()).contains("something follows"));
    fs::write(&out, &good).expect("written");
    let stranger = Place::new();
    let refused = check(&out, &stranger.file, Box::new(Kv::default())).expect_err("another's");
    let RescueError::Refused { source, .. } = refused else { panic!("{refused}") };
    assert!(matches!(*source, ExportedStateError::OtherNetwork { .. }), "{source}");
}

/// The chunks are whole, and what they hold is not what members signed.
#[test]
fn a_state_that_comes_to_another_root_is_refused() {
    let (old, out) = Place::exported();
    let mut file = StateFile::open(&out).expect("a state");
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    while let Some(chunk) = file.next_chunk().expect("sound") {
        chunks.push(chunk.to_vec());
    }
    let last = chunks.last_mut().expect("one");
    *last.last_mut().expect("bytes") ^= 1;
    let mut state = file.state.clone();
    let hashes = chunks.iter().map(|chunk| hash(chunk));
    state.manifest.chunks = hashes.collect();
    let changed = old.out("changed");
    write(&changed, &state, &chunks).expect("written");
    let refused = check(&changed, &old.file, Box::new(Kv::default())).expect_err("another root");
    assert!(matches!(refused, RescueError::OtherRoot { .. }), "{refused}");
}

/// A state's file of these chunks.
fn write(path: &Path, state: &ExportedState, chunks: &[Vec<u8>]) -> Result<(), RescueError> {
    let lengths = chunks.iter().map(|chunk| u32::try_from(chunk.len()).expect("small"));
    let lengths: Vec<u32> = lengths.collect();
    let chunks = chunks.iter().map(|chunk| Ok(Bytes::copy_from_slice(chunk)));
    StateFile::write(path, (state, &lengths), chunks)
}

/// A description of a state whose chunks are these, proven by nobody.
fn described(chunks: &[Vec<u8>]) -> ExportedState {
    let chunks = chunks.iter().map(|chunk| hash(chunk)).collect();
    let (service, header) = ("kv".to_owned(), Header::default());
    let manifest = Manifest { service, header, operations: 0, chunks };
    ExportedState { network: NetworkId([7; 32]), steps: vec![], manifest, certificate: None }
}

/// The chunks in a file, as it is read.
fn chunks_of(path: &Path) -> Result<Vec<Bytes>, RescueError> {
    let mut file = StateFile::open(path)?;
    std::iter::from_fn(|| file.next_chunk().transpose()).collect()
}

/// The file's bytes. A change of them needs a new version in its first line.
#[test]
fn golden_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let chunks = [b"one".to_vec(), b"and two".to_vec()];
    let state = described(&chunks);
    write(&path, &state, &chunks).expect("written");
    let description = state.encode();
    let length = u32::try_from(description.len()).expect("small").to_le_bytes();
    let golden = [&b"quorate state v2\n"[..], &length, &description, &[3, 0, 0, 0, 7, 0, 0, 0]];
    let golden = [&golden.concat()[..], b"oneand two"].concat();
    assert_eq!(fs::read(&path).expect("a file"), golden);
    assert_eq!(chunks_of(&path).expect("sound"), chunks);
    for cut in [1, 10, 14, 18] {
        fs::write(&path, &golden[..golden.len() - cut]).expect("written");
        assert!(said(chunks_of(&path)).contains("it is cut off"), "by {cut}");
    }
}

/// Exported by the version before: chunks of a mebibyte each, and the last of what is left.
#[test]
fn a_file_of_the_version_before_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let chunks = [vec![1; Manifest::CHUNK_BYTES], vec![2; Manifest::CHUNK_BYTES], vec![3; 9]];
    let description = described(&chunks).encode();
    let length = u32::try_from(description.len()).expect("small").to_le_bytes();
    let head = [&b"quorate state v1\n"[..], &length, &description].concat();
    let whole = [head, chunks.concat()].concat();
    fs::write(&path, &whole).expect("written");
    assert_eq!(chunks_of(&path).expect("sound"), chunks);
    for bytes in [&whole[..whole.len() - 9], &[&whole[..], &vec![0; 1 << 20]].concat()] {
        fs::write(&path, bytes).expect("written");
        assert!(said(chunks_of(&path)).contains("it is cut off, or something follows"));
    }
}

/// What a chunk's length says is not taken from anybody.
#[test]
fn a_chunk_longer_than_any_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let chunks = [vec![1; Manifest::CHUNK_BYTES + 1]];
    write(&path, &described(&chunks), &chunks).expect("written");
    assert!(said(chunks_of(&path)).contains("it is cut off, or something follows"));
}

/// A disk that fails while a state is exported leaves no part of it.
#[test]
fn an_export_that_fails_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let chunks = [b"one".to_vec(), b"two".to_vec()];
    let decayed = || RescueError::Decayed { folder: "data".into(), height: Height(8) };
    let read = [Ok(Bytes::from_static(b"one")), Err(decayed())];
    let failed = StateFile::write(&path, (&described(&chunks), &[3, 3]), read.into_iter());
    assert!(said(failed).contains("once and not again"));
    assert!(!path.exists(), "half a state is left");
}

/// The last disk may be one that nobody has opened since the version before.
#[test]
fn snapshots_of_the_version_before_are_exported() {
    let old = Place::new();
    let headers = old.take_snapshots(&[EVERY]);
    old.keep_certificate(&[1, 2], headers[0]);
    let folder = old.data().join("snapshots");
    let out = old.out("state");
    let exported = export(old.data(), &old.file, &out).expect("exported");
    for (index, chunk) in exported.state.manifest.chunks.iter().enumerate() {
        let (name, former) =
            (format!("chunk-{}", chunk.to_hex()), format!("snapshot-{EVERY:012}-{index:06}"));
        fs::rename(folder.join(name), folder.join(former)).expect("renamed");
    }
    let again = old.out("again");
    export(old.data(), &old.file, &again).expect("exported");
    assert_eq!(fs::read(&again).expect("a file"), fs::read(&out).expect("a file"));
}

/// ★ A chunk is the one that is named.
fn check_chunks_are_compared() {
    let (old, out) = Place::exported();
    let mut bytes = fs::read(&out).expect("a file");
    let place = bytes.len() / 2;
    bytes[place] ^= 1;
    fs::write(&out, bytes).expect("written");
    let refused = check(&out, &old.file, Box::new(Kv::default())).expect_err("it was changed");
    assert!(matches!(refused, RescueError::Chunk { .. }), "{refused}");
}

#[test]
fn a_chunk_that_was_changed_is_refused() {
    check_chunks_are_compared();
}

#[test]
fn a_chunk_that_nobody_compares_is_noticed() {
    assert_noticed(Mutant::StateChunkUnchecked, check_chunks_are_compared);
}

/// ★ A network begins with the state that its committee file names.
fn check_another_state_is_refused() {
    let (old, out) = Place::exported();
    let headers = old.take_snapshots(&[3 * EVERY]);
    old.keep_certificate(&[1, 2], headers[0]);
    let later = old.out("later");
    export(old.data(), &old.file, &later).expect("exported");
    let new = Place::on(&out);
    let refused = said(new.import(&later));
    assert!(refused.contains("at h24") && refused.contains("at h8"), "{refused}");
    assert!(!Founded::path(new.data()).exists(), "and nothing was begun");
    assert!(said(old.import(&out)).contains("begins with no state"));
}

#[test]
fn a_network_does_not_begin_with_another_state() {
    check_another_state_is_refused();
}

#[test]
fn another_state_is_noticed() {
    assert_noticed(Mutant::BeginWithOtherState, check_another_state_is_refused);
}

/// ★ Nobody begins, and signs, without the state that the network goes on from.
fn check_nobody_begins_without_the_state() {
    let (_old, out) = Place::exported();
    let new = Place::on(&out);
    let refused = Epochs::open(&new.configs[0]).expect_err("nothing is imported");
    assert!(matches!(refused, NodeError::NotFounded { .. }), "{refused}");
    // Whoever was interrupted has a state, and not the note that it is durable.
    new.import(&out).expect("imported");
    fs::remove_file(Founded::path(new.data())).expect("removed");
    assert!(Epochs::open(&new.configs[0]).is_err());
    new.import(&out).expect("imported again");
    Epochs::open(&new.configs[0]).expect("it begins");
}

#[test]
fn nobody_begins_without_the_state() {
    check_nobody_begins_without_the_state();
}

#[test]
fn a_beginning_without_the_state_is_noticed() {
    assert_noticed(Mutant::BeginWithoutState, check_nobody_begins_without_the_state);
}

/// The certificates of the last snapshots are kept, and those before them go.
#[test]
fn the_last_certificates_are_kept() {
    let place = Place::new();
    for height in 1..=14 {
        let header = Header { height: Height(height * EVERY), ..Header::default() };
        place.keep_certificate(&[0, 1], header);
    }
    let proofs = StateProofs::of(place.data());
    let kept = (1..=14).filter(|height| proofs.read(Height(height * EVERY)).is_some());
    assert_eq!(kept.collect::<Vec<_>>(), (3..=14).collect::<Vec<_>>());
}
