//! Another version of what is executed, from an epoch on.

use super::{Process, bring, change, client_of, next_file};
use crate::common::{Cluster, TIMEOUT, wait_until};
use bytes::Bytes;
use quorate_crypto::{Digest, hash};
use quorate_ledger::Noop;
use quorate_node::transport::Limits;
use quorate_node::{CallResult, Client, NodeError};
use quorate_types::service::{BlockContext, State, StateError};
use quorate_types::{Epoch, LacksVersion, Operation, Outcome, Service, Versions};
use std::path::{Path, PathBuf};

/// The program before the second version was written, and after.
const OLD: Versions = Versions::FIRST;
const NEW: Versions = Versions::new(1, 2);

const SUM: &[u8] = b"sum";

/// Adds the version in force to a sum for each operation, and answers with that version: whoever
/// executes a height by another one comes to another root.
#[derive(Debug)]
struct Summing {
    versions: Versions,
    version: u64,
}

impl Summing {
    fn of_program(versions: Versions) -> Box<dyn Service> {
        Box::new(Self { versions, version: 0 })
    }
}

fn sum(state: &dyn State) -> Result<u64, StateError> {
    let bytes = state.get(SUM)?.map(|bytes| bytes.try_into().expect("written below"));
    Ok(bytes.map_or(0, u64::from_le_bytes))
}

impl Service for Summing {
    fn name(&self) -> &'static str {
        Noop::NAME
    }

    fn versions(&self) -> Versions {
        self.versions
    }

    fn execute_by(&mut self, version: u64) {
        self.version = version;
    }

    fn admit(&self, _: Operation<'_>) -> Result<(), String> {
        Ok(())
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        _: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        let sum = sum(state)? + self.version * operations.len() as u64;
        state.put(SUM, &sum.to_le_bytes())?;
        let answer = Outcome::Applied(Bytes::copy_from_slice(&self.version.to_le_bytes()));
        Ok(vec![answer; operations.len()])
    }

    fn root(&self, state: &dyn State) -> Result<Digest, StateError> {
        Ok(hash(&sum(state)?.to_le_bytes()))
    }
}

fn start(config: &Path, versions: Versions) -> Process {
    Process::start_program(config, move || Summing::of_program(versions))
}

/// Submits twenty operations, all of which are executed by this version.
fn expect_served_by(version: u64, client: &Client) {
    for tag in 0..20 {
        client.submit(0, tag, Bytes::from_static(b"one more")).unwrap();
    }
    for _ in 0..20 {
        let completion = client.completions().recv_timeout(TIMEOUT).expect("progress");
        let CallResult::Completed(completed) = completion.result else { panic!("{completion:?}") };
        assert_eq!(completed.outcome.bytes()[..], version.to_le_bytes());
    }
}

/// Has the members change to the second version, whatever their programs have.
fn change_version(members: &[Process], configs: &[PathBuf]) {
    let epochs = members[0].epochs();
    let mut file = next_file(&epochs);
    file.settings.execution_version = 2;
    bring(&epochs, &change(epochs.committee(), file, configs));
}

/// Waits until a process ends by itself because its program lacks the second version. The
/// hand-over to it is on its disk.
fn expect_stopped(process: Process) {
    wait_until("it stops", || process.thread.is_finished());
    let (stopped, config) = (process.thread.join().unwrap(), process.config);
    let lacks = LacksVersion { service: Noop::NAME.into(), needed: 2, has: OLD };
    assert!(matches!(&stopped, Err(NodeError::LacksVersion(why)) if *why == lacks), "{stopped:?}");
    assert_eq!(quorate_node::Epochs::open(&config).unwrap().epoch(), Epoch(2));
}

/// Waits until all have executed both twenties, and came to one root: nothing is lost, and nothing
/// was executed by another version than was in force.
fn expect_all_executed(members: &[Process]) {
    wait_until("all have executed all", || {
        let state = |member: &Process| (member.status("operations"), member.status("root"));
        let first = state(&members[0]);
        first.0 == Some(40.into()) && members.iter().all(|member| state(member) == first)
    });
}

/// A member that was not upgraded takes part until the epoch has ended, stops there, as often as it
/// is started, and goes on from its disk with the newer program.
#[test]
fn who_lacks_the_next_version_stops_at_the_border() {
    let cluster = Cluster::prepare(4, Limits::default());
    let configs = &cluster.testnet.configs;
    let mut members: Vec<Process> = configs[..3].iter().map(|path| start(path, NEW)).collect();
    members.push(start(&configs[3], OLD));
    wait_until("all serve", || members.iter().all(|member| member.is_in(1)));
    let client = client_of(&cluster.committee);
    expect_served_by(1, &client);
    change_version(&members, configs);
    expect_stopped(members.pop().unwrap());
    wait_until("the others go on", || members.iter().all(|member| member.is_in(2)));
    expect_served_by(2, &client);
    expect_stopped(start(&configs[3], OLD));
    members.push(start(&configs[3], NEW));
    expect_all_executed(&members);
    members.into_iter().for_each(Process::stop);
}

/// Whatever members declared: where all lack the version, all end the epoch and stop, and go on
/// once they are upgraded.
#[test]
fn a_committee_that_lacks_the_next_version_loses_nothing() {
    let cluster = Cluster::prepare(4, Limits::default());
    let configs = &cluster.testnet.configs;
    let members: Vec<Process> = configs.iter().map(|path| start(path, OLD)).collect();
    wait_until("all serve", || members.iter().all(|member| member.is_in(1)));
    let client = client_of(&cluster.committee);
    expect_served_by(1, &client);
    change_version(&members, configs);
    members.into_iter().for_each(expect_stopped);
    let members: Vec<Process> = configs.iter().map(|path| start(path, NEW)).collect();
    expect_served_by(2, &client);
    expect_all_executed(&members);
    members.into_iter().for_each(Process::stop);
}
