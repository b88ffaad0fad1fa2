//! The service over a whole release, and its answers against their proofs.

mod epochs;

use super::*;
use crate::map::ProofError;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{IdentitySecret, KeyFile};
use quorate_payments::release::{Decided, Decision, Freeze, Held, Report, Standing};
use quorate_payments::{
    AuthorityEntry, Coin, Endowment, NetworkFile, Origin, OutputId, PayScheme, Transaction,
};
use quorate_storage::{MemoryStore, Store};
use quorate_types::{ClientId, Epoch, Height, ReplicaId};

const MALLORY: u8 = 101;
const HOARDER: u8 = 102;
const ISSUER: u8 = 103;

/// Coins that the hoarder has: more than may be under release at once.
const HOARD: usize = UNDECIDED_MAX as usize + 3;

fn secret(person: u8) -> IdentitySecret {
    IdentitySecret::from_seed([person; 32])
}

fn authority(index: u8) -> KeyFile {
    KeyFile::from_seed(PayScheme::Plain.keys(), &[index + 1; 32])
}

/// The network, as it is founded.
fn network() -> Arc<Network> {
    Arc::new(Network::load(&file()).expect("a sound file"))
}

/// Four authorities; Mallory has two coins, the hoarder many.
fn file() -> NetworkFile {
    let entry = |index: u8| {
        let address = format!("a{index}.example:1");
        AuthorityEntry::new(&authority(index).public(), vec![address])
    };
    let endow = |person| Endowment { owner: secret(person).public().to_string(), value: 1 };
    let owners = [MALLORY; 2].into_iter().chain([HOARDER; HOARD]);
    NetworkFile {
        name: "test".into(),
        network: None,
        epoch: Epoch(1),
        scheme: PayScheme::Plain,
        shards: 1,
        issuer: secret(ISSUER).public().to_string(),
        groups: None,
        genesis: owners.map(endow).collect(),
        authorities: (0..4).map(entry).collect(),
    }
}

/// A replica of the service with its state.
struct Replica {
    network: Arc<Network>,
    store: MemoryStore,
    service: ReleaseService,
}

impl Replica {
    fn new(network: &Arc<Network>) -> Self {
        let (service, network) = (ReleaseService::new(Arc::clone(network)), Arc::clone(network));
        Self { network, store: MemoryStore::new(), service }
    }

    /// Executes steps as one block.
    fn execute(&mut self, steps: &[Step]) -> Vec<Result<Decided, String>> {
        let encoded: Vec<Bytes> = steps.iter().map(|step| step.encode().into()).collect();
        self.execute_bytes(&encoded)
    }

    fn execute_bytes(&mut self, operations: &[Bytes]) -> Vec<Result<Decided, String>> {
        let client = ClientId(secret(1).public());
        let operations: Vec<_> =
            operations.iter().map(|bytes| Operation { client, bytes }).collect();
        let block = BlockContext { height: Height(1), proposed_at_ms: 0 };
        let mut state = self.store.begin().unwrap();
        let outcomes = self.service.execute(&mut *state, block, &operations).unwrap();
        state.commit(true).unwrap();
        let read = |outcome| match outcome {
            Outcome::Applied(bytes) => Ok(borsh::from_slice(&bytes).unwrap()),
            Outcome::Refused(reason) => Err(String::from_utf8(reason.to_vec()).unwrap()),
        };
        outcomes.into_iter().map(read).collect()
    }

    fn step(&mut self, step: &Step) -> Result<Decided, String> {
        self.execute(std::slice::from_ref(step)).remove(0)
    }

    fn root(&mut self) -> Digest {
        self.service.root(&*self.store.begin().unwrap()).unwrap()
    }

    /// The root that a replica comes to which begins with this state.
    fn reopened_root(&mut self) -> Digest {
        let mut service = ReleaseService::new(Arc::clone(&self.network));
        let state = self.store.begin().unwrap();
        service.open(&*state).unwrap();
        service.root(&*state).unwrap()
    }

    fn answer(&mut self, query: &Query) -> Proven {
        self.service.query(&*self.store.begin().unwrap(), &query.encode()).unwrap().unwrap()
    }

    fn standing(&mut self, coin: OutputId) -> Standing {
        let proven = self.answer(&standing_query(coin));
        read_standing(self.root(), coin, &proven).unwrap()
    }

    fn ordered(&mut self, from: u64, max: u32) -> Result<Vec<Ordered>, OrderedError> {
        let proven = self.answer(&ordered_query(from, max));
        read_ordered(self.root(), from, max, &proven)
    }
}

fn coins(network: &Network, person: u8) -> Vec<Coin> {
    let outputs = network.genesis_outputs();
    let own = outputs.filter(|(_, output)| output.owner == secret(person).public());
    own.map(|(id, output)| Coin { id, output, origin: Origin::Genesis }).collect()
}

fn freeze(network: &Network, person: u8, coins: &[Coin]) -> Step {
    let freeze = Freeze::by_owner(network, &secret(person), coins.to_vec());
    Step::Release(ReleaseStep::Freeze(freeze))
}

fn report(network: &Network, from: u8, coin: OutputId, held: Held) -> Step {
    let identity = authority(from).identity;
    let report = Report::sign(network, &identity, ReplicaId(from.into()), coin, held);
    Step::Release(ReleaseStep::Report(report))
}

/// Steps of a release of Mallory's first coin, for which one authority voted once.
fn release_of_half_a_payment(network: &Network) -> Vec<Step> {
    let coins = coins(network, MALLORY);
    let half = Transaction::spend(network, &secret(MALLORY), &coins[..1], vec![coins[0].output]);
    let held = [Held::For(half.core(network.id())), Held::Free, Held::Free];
    let reports = (0..).zip(held).map(|(from, held)| report(network, from, coins[0].id, held));
    [freeze(network, MALLORY, &coins[..1])].into_iter().chain(reports).collect()
}

#[test]
fn what_a_step_changes_is_numbered_from_0_and_proven() {
    let network = network();
    let mut replica = Replica::new(&network);
    let coin = coins(&network, MALLORY)[0].id;
    assert_eq!(replica.ordered(0, 10), Ok(vec![]));
    assert_eq!(replica.standing(coin), Standing::default());
    let steps = release_of_half_a_payment(&network);
    let outcomes = replica.execute(&steps);
    let decided = outcomes.last().expect("four").clone().expect("counted");
    assert!(matches!(decided[..], [(of, Decision::Spend(_))] if of == coin), "{outcomes:?}");
    let standing = replica.standing(coin);
    assert_eq!(standing.decision, Some(decided[0].1));
    assert_eq!(standing.reports.len(), 3);
    let owner = secret(MALLORY).public();
    let frozen = release::Ordered::Freeze { owner, coins: vec![coin] };
    let ordered = [frozen, release::Ordered::Decided(decided)].map(Ordered::Release);
    assert_eq!(replica.ordered(0, 10), Ok(ordered.to_vec()));
    assert_eq!(replica.ordered(0, 1), Ok(ordered[..1].to_vec()));
    assert_eq!(replica.ordered(1, 1), Ok(ordered[1..].to_vec()));
    assert_eq!(replica.ordered(2, 10), Ok(vec![]));
}

#[test]
fn replicas_agree_however_the_steps_lie_in_blocks() {
    let network = network();
    let steps = release_of_half_a_payment(&network);
    let (mut one, mut other) = (Replica::new(&network), Replica::new(&network));
    let together = one.execute(&steps);
    let apart: Vec<_> = steps.iter().map(|step| other.step(step)).collect();
    assert_eq!(together, apart);
    assert_eq!(one.root(), other.root());
    assert_eq!(one.root(), one.reopened_root());
    let state = one.store.begin().unwrap();
    assert_eq!(one.service.is_whole(&*state), Ok(true));
}

#[test]
fn an_answer_is_checked_under_its_root() {
    let network = network();
    let mut replica = Replica::new(&network);
    let coin = coins(&network, MALLORY)[0].id;
    let before = replica.root();
    replica.execute(&release_of_half_a_payment(&network));
    let stale = read_ordered(before, 0, 10, &replica.answer(&ordered_query(0, 10)));
    assert_eq!(stale, Err(ProofError::OtherRoot.into()));
    let stale = read_standing(before, coin, &replica.answer(&standing_query(coin)));
    assert_eq!(stale, Err(ProofError::OtherRoot.into()));
    let mut altered = replica.answer(&ordered_query(0, 10));
    let last = altered.answer.len() - 1;
    altered.answer = [&altered.answer[..last], &[altered.answer[last] ^ 1]].concat().into();
    let altered = read_ordered(replica.root(), 0, 10, &altered);
    assert_eq!(altered, Err(ProofError::OtherAnswer.into()));
    let other = replica.answer(&standing_query(coin));
    let other = read_ordered(replica.root(), 0, 10, &other);
    assert_eq!(other, Err(ProofError::OtherAnswer.into()));
}

/// ★ Whoever follows the order must not miss a freeze.
#[test]
fn a_number_that_is_left_out_is_noticed() {
    let network = network();
    let mut replica = Replica::new(&network);
    let mut state = replica.store.begin().unwrap();
    let mut map = crate::map::MapWriter::new(&mut *state);
    let nothing = Ordered::Release(release::Ordered::Decided(vec![]));
    for number in [0, 2] {
        map.set(&keys::event(number), Some(&keys::encode(&nothing))).unwrap();
    }
    map.finish(&mut replica.service.tree).unwrap();
    state.commit(true).unwrap();
    assert_eq!(replica.ordered(0, 10), Err(OrderedError::Gap(1)));
    assert_eq!(replica.ordered(1, 10), Err(OrderedError::Gap(1)));
}

#[test]
fn what_changes_nothing_has_no_number() {
    let network = network();
    let mut replica = Replica::new(&network);
    let coins = coins(&network, MALLORY);
    let first = freeze(&network, MALLORY, &coins[..1]);
    assert_eq!(replica.step(&first), Ok(vec![]));
    let root = replica.root();
    assert_eq!(replica.step(&first), Ok(vec![]), "it is frozen");
    let unfrozen = report(&network, 0, coins[1].id, Held::Free);
    assert_eq!(replica.step(&unfrozen), Err("the coin is not frozen".to_owned()));
    assert_eq!(replica.root(), root);
    assert_eq!(replica.step(&freeze(&network, MALLORY, &coins)), Ok(vec![]));
    let owner = secret(MALLORY).public();
    let frozen =
        |coin: &Coin| Ordered::Release(release::Ordered::Freeze { owner, coins: vec![coin.id] });
    assert_eq!(replica.ordered(0, 10), Ok(coins.iter().map(frozen).collect()));
}

#[test]
fn what_breaks_a_rule_without_any_order_is_not_admitted() {
    let network = network();
    let mut replica = Replica::new(&network);
    let coins = coins(&network, MALLORY);
    let foreign = freeze(&network, HOARDER, &coins[..1]).encode();
    let mut forged = report(&network, 0, coins[0].id, Held::Free);
    if let Step::Release(ReleaseStep::Report(report)) = &mut forged {
        report.authority = ReplicaId(1);
    }
    let steps = [foreign, forged.encode(), vec![0; 9], vec![0; STEP_BYTES_MAX + 1]];
    let reasons = [
        "neither the coins' owner signed the wish, nor is it proven to have spent them twice",
        "the report is not signed by an authority of this network",
        "this is no step of a release or of a change of authorities",
        "a step takes at most 131072 bytes",
    ];
    let root = replica.root();
    let admission = replica.service.admission().expect("one");
    for (step, reason) in steps.into_iter().map(Bytes::from).zip(reasons) {
        let client = ClientId(secret(1).public());
        let operation = Operation { client, bytes: &step };
        assert_eq!(admission.judge(operation), Err(reason.to_owned()));
        assert_eq!(replica.execute_bytes(&[step]), [Err(reason.to_owned())]);
    }
    assert_eq!(replica.root(), root);
}

/// ★ Nobody fills the state with coins under release; what is decided makes room.
#[test]
fn an_owner_has_so_many_coins_under_release() {
    let network = network();
    let mut replica = Replica::new(&network);
    let hoard = coins(&network, HOARDER);
    let (most, rest) = hoard.split_at(UNDECIDED_MAX as usize);
    for coins in most.chunks(Freeze::COINS_MAX) {
        assert_eq!(replica.step(&freeze(&network, HOARDER, coins)), Ok(vec![]));
    }
    let root = replica.root();
    let refused = replica.step(&freeze(&network, HOARDER, &rest[..1])).unwrap_err();
    assert!(refused.starts_with("this owner has 256 coins under release"), "{refused}");
    assert_eq!(replica.root(), root);
    let other = coins(&network, MALLORY);
    assert_eq!(replica.step(&freeze(&network, MALLORY, &other)), Ok(vec![]), "it is each owner's");
    let reports: Vec<_> =
        (0..3).map(|from| report(&network, from, most[0].id, Held::Free)).collect();
    let decided = replica.execute(&reports).pop().expect("three");
    assert_eq!(decided, Ok(vec![(most[0].id, Decision::Refund)]));
    assert_eq!(replica.step(&freeze(&network, HOARDER, &rest[..1])), Ok(vec![]));
    let refused = replica.step(&freeze(&network, HOARDER, &rest[1..])).unwrap_err();
    assert!(refused.starts_with("this owner has 256 coins under release"), "{refused}");
}

#[test]
fn an_owner_has_so_many_coins_frozen_in_a_day() {
    let mut quota = quota::Quota::default();
    for _ in 0..DAILY_MAX {
        quota.charge(1, 7).expect("there is room");
        quota.release();
    }
    assert_eq!(quota.charge(1, 7), Err(quota::QuotaFull::Daily(DAILY_MAX)));
    quota.charge(64, 8).expect("another day");
}

/// Decisions of many coins at once are told in parts, each of which an answer has room for.
#[test]
fn no_change_is_too_large_for_an_answer() {
    let network = network();
    let coin = coins(&network, MALLORY)[0].id;
    let decided = vec![(coin, Decision::Refund); 1_500];
    let parts: Vec<Decided> = query::in_parts(&decided).collect();
    assert_eq!(parts.concat(), decided);
    assert!(parts.iter().all(|part| keys::encode(part).len() < crate::kv::RESULT_BYTES_MAX / 2));
}

#[test]
fn broken_rules_are_noticed() {
    assert_noticed(Mutant::PayFreezeWithoutBound, an_owner_has_so_many_coins_under_release);
    assert_noticed(Mutant::PayFreezeWithoutBound, an_owner_has_so_many_coins_frozen_in_a_day);
    assert_noticed(Mutant::PayFollowOverGap, a_number_that_is_left_out_is_noticed);
    let ordered = epochs::a_change_is_ordered_with_its_reports_and_ends_when_the_next_epoch_begins;
    assert_noticed(Mutant::PayChangeBeforeBegun, ordered);
    let late = epochs::a_report_of_an_epoch_counts_until_the_next_has_begun;
    assert_noticed(Mutant::PayReportTooLate, late);
    let reports = epochs::reports_of_an_epoch_end_with_it;
    assert_noticed(Mutant::PayReportsOfFormerEpoch, reports);
}
