use super::Epochs;
use crate::{NodeConfig, NodeError, Testnet, TestnetPlan};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{Bitmap, Certificate, KeyFile, Policy};
use quorate_storage::Role;
use quorate_types::{
    BlockId, Committee, CommitteeFile, Epoch, HandOver, HandedOver, Header, Height, Purpose,
    SignedHandOver,
};
use tempfile::TempDir;

/// A committee's files.
struct Place {
    _folder: TempDir,
    configs: Vec<NodeConfig>,
    keys: Vec<KeyFile>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plan = TestnetPlan { members: 4, ..TestnetPlan::default() };
        let testnet = Testnet::create(&folder.path().join("net"), &plan).unwrap();
        let configs: Vec<NodeConfig> =
            testnet.configs.iter().map(|path| NodeConfig::load(path).unwrap()).collect();
        let keys = configs.iter().map(|config| KeyFile::read(&config.key).unwrap()).collect();
        Self { _folder: folder, configs, keys }
    }

    fn open(&self, member: usize) -> Epochs {
        Epochs::open(&self.configs[member]).unwrap()
    }

    /// A file of the next epoch in which the fourth member has left.
    fn next(epochs: &Epochs) -> CommitteeFile {
        let network = Some(epochs.committee().network());
        let mut file =
            CommitteeFile { network, epoch: epochs.epoch().next(), ..epochs.file().clone() };
        file.members.truncate(3);
        file.settings.protocol = "pbft".into();
        file
    }

    /// The end of the epoch in force at this height, by all of its members that are left.
    fn end(&self, epochs: &Epochs, height: u64) -> HandedOver {
        let header = Header { height: Height(height), ..Header::default() };
        end_of(epochs.committee(), &self.keys, header, Self::next(epochs))
    }
}

/// The end of a committee's epoch with this header, by those of its members whose keys these are.
pub(crate) fn end_of(
    ends: &Committee,
    keys: &[KeyFile],
    header: Header,
    file: CommitteeFile,
) -> HandedOver {
    let stop = BlockId::default();
    let (root, digest) = (header.root(), file.digest());
    let content = HandOver { height: header.height, stop, root, file: digest };
    let statement = content.statement(ends.scope());
    let certificate = certify(ends, keys, Purpose::HandOver, &statement);
    HandedOver { signed: SignedHandOver { content, certificate }, header, file }
}

/// What those members of a committee sign whose keys these are.
pub(crate) fn certify(
    committee: &Committee,
    keys: &[KeyFile],
    purpose: Purpose,
    statement: &[u8],
) -> Certificate {
    let share = |keys: &KeyFile| {
        let member = committee.find(&keys.public().identity)?;
        Some((member.index(), committee.sign(purpose, &keys.voting, statement)))
    };
    let shares: Vec<_> = keys.iter().filter_map(share).collect();
    let (scheme, _) = committee.scheme(purpose);
    let nobody = Bitmap::new(committee.size());
    let combined = scheme.combine(statement, &shares, &nobody, Policy::Aggregate);
    combined.certificate.unwrap()
}

/// ★ An epoch has begun once the way to it is on the disk, and stays begun.
fn check_epochs_are_found_again() {
    let place = Place::new();
    let mut epochs = place.open(0);
    assert_eq!((epochs.epoch(), epochs.start().follows()), (Epoch(1), false));
    assert!(epochs.step_after(Epoch(1)).is_none());
    for height in [9, 20] {
        let step = place.end(&epochs, height);
        assert!(epochs.check(&step).is_ok());
        epochs.begin(step).unwrap();
    }
    let again = place.open(0);
    assert_eq!((again.epoch(), again.steps()), (Epoch(3), epochs.steps()));
    assert_eq!(again.committee().epoch_id(), epochs.committee().epoch_id());
    assert_eq!(again.start().height(), Height(20));
    let heights = [0, 1, 2, 3].map(|epoch| Some(again.step_after(Epoch(epoch))?.header.height));
    assert_eq!(heights, [None, Some(Height(9)), Some(Height(20)), None]);
    assert_eq!(place.open(1).epoch(), Epoch(1), "each has its own");
}

#[test]
fn epochs_are_found_again() {
    check_epochs_are_found_again();
}

#[test]
fn an_epoch_without_a_record_is_noticed() {
    assert_noticed(Mutant::EpochUnrecorded, check_epochs_are_found_again);
}

/// The settings of the file in force are taken, and whoever left follows at its old address.
#[test]
fn what_a_host_is_follows_the_file_in_force() {
    let place = Place::new();
    let mut epochs = place.open(3);
    let key = place.keys[3].public().identity;
    let before = epochs.configure(&place.configs[3], &key).unwrap();
    assert_eq!(before, place.configs[3]);
    let address = epochs.committee().address(quorate_types::ReplicaId(3)).unwrap().to_owned();
    epochs.begin(place.end(&epochs, 9)).unwrap();
    let after = epochs.configure(&place.configs[3], &key).unwrap();
    assert!(after.learner && after.replica.protocol.to_string() == "pbft");
    assert_eq!(after.listen, Some(address));
    let member = epochs.configure(&place.configs[0], &place.keys[0].public().identity).unwrap();
    assert!(!member.learner && member.listen == place.configs[0].listen);
    assert_eq!(epochs.former_members().len(), 1);
    let parts = epochs.former_parts(&key);
    assert_eq!(parts, [(Role::Validator, "jolteon".to_owned())]);
}

/// Files are checked each time: one that is not the next, or was changed, is named.
#[test]
fn other_files_are_refused_by_name() {
    let place = Place::new();
    let mut epochs = place.open(0);
    let first = place.end(&epochs, 9);
    epochs.begin(first.clone()).unwrap();
    let path = epochs.path_after(Epoch(1));
    let other = Header { height: Height(10), ..Header::default() };
    let changed = HandedOver { header: other, ..first.clone() }.encode();
    for (bytes, reason) in [
        (changed, "the header beside the hand-over of epoch e1 is not of the state"),
        (b"torn".to_vec(), "these 4 bytes are no hand-over"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let refused = Epochs::open(&place.configs[0]).unwrap_err();
        assert!(matches!(refused, NodeError::HandOver { .. }), "{refused}");
        let said = refused.to_string();
        assert!(said.contains(reason) && said.contains("00000001.handover"), "{said}");
    }
    std::fs::write(&path, first.encode()).unwrap();
    let again = epochs.begin(first).unwrap_err();
    assert!(matches!(again, NodeError::HandOver { .. }), "it ends the first epoch alone: {again}");
}
