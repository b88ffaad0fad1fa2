//! The index beside what it is of: blocks, traces and logs are searched one by one, and the same is
//! found.

use super::tracing::{block_at, busy, traced};
use super::*;
use quorate_storage::history::{DiskHistory, HistoryConfig};
use quorate_storage::{DiskStore, Owner, Room, Store};
use quorate_types::service::ScanOrder;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Places = BTreeSet<(u64, u32)>;

fn transactions(ledger: &mut Ledger, of: Address, most: u32) -> Vec<FoundTransaction> {
    let mut all: Vec<FoundTransaction> = Vec::new();
    loop {
        let beyond = all.last().map(|last| last.location.height);
        let order = ScanOrder::Backward;
        let query = Query::Index(IndexQuery::Transactions { account: of, beyond, order, most });
        let page: TransactionPage = ledger.ask(&query).expect("an index");
        all.extend(page.transactions);
        if !page.has_more {
            return all;
        }
    }
}

fn places(found: &[FoundTransaction]) -> Places {
    found.iter().map(|found| (found.location.height, found.location.index)).collect()
}

/// Accounts in a tree of calls, of those that were not taken back.
fn called(frame: &Value, accounts: &mut BTreeSet<Address>) {
    if !frame["error"].is_null() {
        return;
    }
    for end in ["from", "to"] {
        accounts.extend(frame[end].as_str().and_then(|text| text.parse::<Address>().ok()));
    }
    for inner in frame["calls"].as_array().into_iter().flatten() {
        called(inner, accounts);
    }
}

/// Whom each transaction touched, by its trace and what it names.
fn touched(
    ledger: &mut Ledger,
    heights: std::ops::RangeInclusive<u64>,
) -> BTreeMap<Address, Places> {
    let mut touched = BTreeMap::<Address, Places>::new();
    for height in heights {
        let traces = traced(ledger, height, None, &json!({ "tracer": "callTracer" }));
        let found = block_at(ledger, height).transactions;
        for ((index, trace), of) in
            (0..).zip(traces.expect("traces").as_array().expect("one each")).zip(found)
        {
            let mut accounts = BTreeSet::from([of.sender]);
            accounts.extend(of.created);
            let to = trace["result"]["to"].as_str();
            accounts.extend(to.and_then(|text| text.parse::<Address>().ok()));
            called(&trace["result"], &mut accounts);
            for account in accounts {
                touched.entry(account).or_default().insert((height, index));
            }
        }
    }
    touched
}

/// Everything that is found by the index is found by looking at all there is, and the reverse.
fn check_index(ledger: &mut Ledger, heights: std::ops::RangeInclusive<u64>) {
    for (account, places_of) in touched(ledger, heights.clone()) {
        for most in [1, 7, PAGE_MAX] {
            let found = transactions(ledger, account, most);
            let located: Vec<_> = found.iter().map(|found| found.location).collect();
            assert!(located.is_sorted_by_key(|at| std::cmp::Reverse((at.height, at.index))));
            assert_eq!(places(&found), places_of, "{account}");
            assert_eq!(found.len(), places_of.len());
        }
    }
    check_transfers(ledger, heights);
}

fn check_transfers(ledger: &mut Ledger, heights: std::ops::RangeInclusive<u64>) {
    let topics = vec![vec![keccak256("Transfer(address,address,uint256)")]];
    let heights = (*heights.start(), *heights.end());
    let filter = LogFilter { heights, addresses: Vec::new(), topics };
    let logs: Vec<FoundLog> = ledger.ask(&Query::Logs(filter)).expect("logs");
    assert!(!logs.is_empty());
    let mut by = BTreeMap::<(bool, Address), Vec<FoundLog>>::new();
    for log in logs.into_iter().rev() {
        let parties = log.log.topics[1..3].iter().map(|topic| Address::from_word(*topic));
        let parties: BTreeSet<_> = parties.filter(|party| !party.is_zero()).collect();
        for party in parties {
            by.entry((false, party)).or_default().push(log.clone());
        }
        by.entry((true, log.log.address)).or_default().push(log);
    }
    for ((is_token, of), expected) in by {
        let of = if is_token { TransfersOf::Token(of) } else { TransfersOf::Account(of) };
        for most in [3, PAGE_MAX] {
            assert_eq!(transfers(ledger, of, most), expected, "{of:?}");
        }
    }
}

fn transfers(ledger: &mut Ledger, of: TransfersOf, most: u32) -> Vec<FoundLog> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let query = Query::Index(IndexQuery::Transfers { of, before, most });
        let page: TransferPage = ledger.ask(&query).expect("an index");
        assert!(page.logs.len() <= most as usize);
        all.extend(page.logs);
        before = page.next;
        if before.is_none() {
            return all;
        }
    }
}

#[test]
fn whatever_an_account_or_a_token_did_is_found() {
    for shape in [Shape::Transfers, Shape::Mixed] {
        let mut ledger = busy(shape);
        check_index(&mut ledger, 1..=20);
        let nobody = transactions(&mut ledger, Address::repeat_byte(0x77), 10);
        assert_eq!(nobody, []);
    }
}

#[test]
fn a_page_after_a_block_is_the_one_next_to_it() {
    let mut ledger = busy(Shape::Transfers);
    let account = mix::TOKEN;
    let all = places(&transactions(&mut ledger, account, PAGE_MAX));
    for beyond in [None, Some(0), Some(7), Some(20), Some(u64::MAX)] {
        let order = ScanOrder::Forward;
        let query = Query::Index(IndexQuery::Transactions { account, beyond, order, most: 1 });
        let page: TransactionPage = ledger.ask(&query).expect("an index");
        let next = all.iter().map(|(height, _)| *height);
        let next = next.filter(|height| beyond.is_none_or(|beyond| *height > beyond)).min();
        let block: Places = all.iter().copied().filter(|at| Some(at.0) == next).collect();
        assert_eq!(places(&page.transactions), block, "whole blocks, beyond {beyond:?}");
        let last = all.last().expect("some").0;
        assert_eq!(page.has_more, next.is_some_and(|height| height < last));
    }
}

#[test]
fn a_tokens_holders_are_those_to_whom_it_says_so() {
    let mut ledger = busy(Shape::Transfers);
    let (mut held, mut after) = (BTreeMap::new(), None);
    loop {
        let query = Query::Index(IndexQuery::Holders { token: mix::TOKEN, after, most: 2 });
        let page: HolderPage = ledger.ask(&query).expect("an index");
        held.extend(page.holders.into_iter().map(|(key, balance)| (key.account, balance)));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let token = TransfersOf::Token(mix::TOKEN);
    let logs = transfers(&mut ledger, token, PAGE_MAX);
    let parties: BTreeSet<Address> = logs
        .iter()
        .flat_map(|log| &log.log.topics[1..3])
        .map(|at| Address::from_word(*at))
        .collect();
    assert_eq!(held.keys().copied().collect::<BTreeSet<_>>(), parties);
    for (account, balance) in held {
        let data = mix::call("balanceOf(address)", &[account.into_word()]);
        let call = Call { data, ..call_of(mix::TOKEN) };
        let called: Called = ledger.ask(&Query::Call(run(call, NEXT))).expect("a call");
        let Called::Success { output, .. } = called else { panic!("{called:?}") };
        assert_eq!(U256::from_be_slice(&output), balance, "{account}");
    }
}

/// What failed is found by whom it names, and who is paid its fees is not in it.
#[test]
fn a_transaction_that_failed_is_found_and_its_fees_are_not() {
    let fees_to = Address::repeat_byte(9);
    let mut ledger = Ledger::new(Genesis { fees_to, ..genesis() });
    // INVALID, which takes all gas.
    let code = EvmBytes::from_static(&[0x60, 0xfe, 0x5f, 0x53, 0x60, 0x01, 0x5f, 0xf3]);
    let creation = TxEip1559 {
        gas_limit: 100_000,
        to: TxKind::Create,
        input: code,
        ..payment(0, Address::ZERO, U256::ZERO)
    };
    let rich = signer(RICH);
    let created = applied(&ledger.execute(&[rich.sign(creation)])[0]).created.expect("a contract");
    let failing = TxEip1559 { gas_limit: 50_000, ..payment(1, created, U256::from(1)) };
    assert!(!applied(&ledger.execute(&[rich.sign(failing)])[0]).success);
    assert_eq!(places(&transactions(&mut ledger, created, 9)), Places::from([(1, 0), (2, 0)]));
    assert_eq!(transactions(&mut ledger, fees_to, 9), []);
    let query = Query::Index(IndexQuery::Creation(created));
    let creation: Option<FoundTransaction> = ledger.ask(&query).expect("an index");
    assert_eq!(
        creation.expect("it is known").location,
        TransactionLocation { height: 1, index: 0 }
    );
    let query = Query::Index(IndexQuery::Creation(rich.address()));
    assert_eq!(ledger.ask::<Option<FoundTransaction>>(&query), Ok(None));
    assert_eq!(ledger.ask::<Option<u64>>(&Query::Index(IndexQuery::Begins)), Ok(Some(1)));
}

fn on_disk(folder: &Path, genesis: Genesis) -> Ledger {
    let store = DiskStore::open(&folder.join("state"), &Owner::nobody()).expect("opened");
    let store: Box<dyn Store> = Box::new(store);
    let config = ExecutorConfig { durable_every: 8, ..ExecutorConfig::default() };
    let opened = Executor::open(store, Box::new(Evm::new(genesis)), config);
    let (mut executor, executed) = opened.expect("opens");
    let all = HistoryConfig { heights_max: None, bytes_max: None };
    let history =
        DiskHistory::open(&folder.join("archive"), &Owner::nobody(), all, Room::unwatched());
    executor.keep_history(Arc::new(history.expect("opened")));
    let sequence = executed.map_or(0, |executed| executed.height().0);
    Ledger { executor, client: IdentitySecret::from_seed([7; 32]), sequence }
}

/// A process is killed again and again. What its state lost is executed once more, and blocks and
/// index agree.
#[test]
fn index_and_blocks_agree_after_a_crash() {
    const BLOCKS: usize = 50;
    let mut mix = Mix::new(CHAIN, Shape::Mixed, 5, 9);
    let genesis = mix.genesis();
    let blocks: Vec<Vec<Bytes>> =
        (0..BLOCKS).map(|_| (0..3).map(|_| mix.next_transaction()).collect()).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let mut executed = 0;
    for killed_at in [13, 14, 27, BLOCKS] {
        let mut ledger = on_disk(folder.path(), genesis.clone());
        assert!(ledger.sequence as usize <= executed);
        let history = ledger.executor.history().expect("one is kept");
        assert_eq!(history.oldest(), Some(Height(0)), "it has no gap");
        for block in &blocks[ledger.sequence as usize..killed_at] {
            ledger.execute(block);
        }
        executed = killed_at;
        check_index(&mut ledger, 1..=executed as u64);
    }
}

#[test]
fn without_an_archive_there_is_no_index() {
    let mut ledger = busy(Shape::Transfers);
    ledger.executor.history().expect("one is kept").close();
    assert_eq!(ledger.ask::<Option<u64>>(&Query::Index(IndexQuery::Begins)), Ok(None));
    let query = Query::Index(IndexQuery::Creation(mix::TOKEN));
    let refused = ledger.ask::<Option<FoundTransaction>>(&query).expect_err("no index");
    assert_eq!(refused, "this validator keeps no index: it has no archive");
}

/// Logs a transfer of kinds 0 to 249 of itself from nobody, five times.
fn batches() -> Vec<u8> {
    let batch = keccak256("TransferBatch(address,address,address,uint256[],uint256[])");
    // Words 0 to 2 of memory: where the arrays are, and how many are in the first.
    let mut code = vec![0x60, 64, 0x5f, 0x52, 0x60, 64, 0x60, 32, 0x52, 0x60, 250, 0x60, 64, 0x52];
    for kind in 0..250_u16 {
        let at = 96 + 32 * kind;
        code.extend([0x60, kind as u8, 0x61]);
        code.extend(at.to_be_bytes());
        code.push(0x52);
    }
    for to in 1..=5 {
        // Each to another account, so that each kind has a holder of its own.
        code.extend([0x60, to, 0x5f, 0x5f, 0x7f]);
        code.extend(batch);
        code.extend([0x61, 0x1f, 0xa0, 0x5f, 0xa4]);
    }
    code
}

/// What costs its author little costs whoever keeps an index no more than this.
#[test]
fn a_transaction_is_noted_for_so_many_holders() {
    let at = Address::repeat_byte(0xc0);
    let mut genesis = genesis();
    let code = alloy_genesis::GenesisAccount::default().with_code(Some(batches().into()));
    genesis.accounts.insert(at, code);
    let mut ledger = Ledger::new(genesis);
    let call = TxEip1559 { gas_limit: 1_000_000, ..payment(0, at, U256::ZERO) };
    let outcomes = ledger.execute(&[signer(RICH).sign(call)]);
    assert!(applied(&outcomes[0]).success, "{:?}", outcomes[0]);
    let of = TransfersOf::Token(at);
    assert_eq!(transfers(&mut ledger, of, PAGE_MAX).len(), 5, "the transfers are all there");
    let (mut after, mut seen) = (None, 0);
    loop {
        let query = IndexQuery::Holders { token: at, after, most: HOLDERS_MAX };
        let page: HolderPage = ledger.ask(&Query::Index(query)).expect("an index");
        seen += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, 1_024_u32.div_ceil(HOLDERS_MAX), "of the 1,250 there are");
}

/// A page has no logs, of which a transaction may have many more bytes than it has itself.
#[test]
fn pages_of_transactions_have_no_logs() {
    let mut ledger = busy(Shape::Transfers);
    let found = transactions(&mut ledger, mix::TOKEN, 7);
    assert!(!found.is_empty());
    assert!(found.iter().all(|found| found.transaction.logs.is_empty()));
}

/// Blocks whose transactions are gone are not among those that the index says it knows.
#[test]
fn the_index_begins_where_transactions_do() {
    let mut mix = Mix::new(CHAIN, Shape::Transfers, 5, 9);
    let genesis = Genesis { history_blocks: 256, ..mix.genesis() };
    let mut ledger = Ledger::new(genesis);
    for _ in 0..300 {
        ledger.execute(&[mix.next_transaction()]);
    }
    let begins: Option<u64> = ledger.ask(&Query::Index(IndexQuery::Begins)).expect("an index");
    let head: Head = ledger.ask(&Query::Head).expect("a head");
    assert!(head.oldest > 1);
    assert_eq!(begins, Some(head.oldest));
    let found = transactions(&mut ledger, mix::TOKEN, PAGE_MAX);
    let first = found.last().expect("some").location.height;
    assert_eq!(first, head.oldest);
}
