//! Queries beside an execution whose certificates come and do not come.

use super::{DIVERGED, PendingQueries, UNDER_WAY_MAX};
use crate::Settings;
use crate::execution::Execution;
use crate::message::{Query, QueryResponse};
use crate::refusals::Refusal;
use crate::testing::{certify_executed, client, config};
use bytes::Bytes;
use quorate_crypto::{IdentityKey, hash};
use quorate_types::machine::{Executed, QueryJob, QueryResult};
use quorate_types::service::Proven;
use quorate_types::{ClientId, Header, Height, ReplicaId, Time};

fn execution() -> Execution {
    let settings = Settings { execution_certificates: true, ..Settings::default() };
    Execution::new(&config(0, settings))
}

fn header(height: u64) -> Header {
    Header { height: Height(height), ..Header::default() }
}

fn execute(execution: &mut Execution, height: u64) {
    let (leaves, answers) = (Vec::new(), Vec::new());
    let executed = Executed { header: header(height), leaves, answers, operations: 0 };
    execution.executed(Time(0), &executed);
}

fn certify(execution: &mut Execution, height: u64) {
    execution.on_proof(Time(0), ReplicaId(1), certify_executed(header(height)));
}

fn customer() -> ClientId {
    ClientId(client().public())
}

fn proven() -> Proven {
    Proven { answer: Bytes::from_static(b"42"), proof: Bytes::from_static(b"path") }
}

fn accept(queries: &mut PendingQueries, id: u64) {
    // Whoever is refused is told.
    let _ = accept_of(queries, customer(), id);
}

fn accept_of(queries: &mut PendingQueries, client: ClientId, id: u64) -> Result<(), Refusal> {
    queries.accept(client, Query { id, query: Bytes::from(id.to_le_bytes().to_vec()) })
}

fn other(number: u8) -> ClientId {
    ClientId(IdentityKey([number; 32]))
}

/// Puts query `id`, which the service answers as at `height`.
fn answered(queries: &mut PendingQueries, execution: &Execution, id: u64, height: u64) {
    accept(queries, id);
    let job = queries.poll_job().expect("put to the service");
    answer(queries, execution, &job, height);
}

fn answer(queries: &mut PendingQueries, execution: &Execution, job: &QueryJob, height: u64) {
    let result = QueryResult { header: header(height), answer: Ok(proven()) };
    queries.on_result(job.ticket, Some(result), execution);
}

fn refused(id: u64, reason: &str) -> Option<(ClientId, QueryResponse)> {
    Some((customer(), QueryResponse { id, result: Err(reason.to_owned()) }))
}

#[test]
fn a_query_is_answered_once_its_height_is_certified() {
    let (mut queries, mut execution) = (PendingQueries::default(), execution());
    execute(&mut execution, 3);
    accept(&mut queries, 70);
    accept(&mut queries, 71);
    let jobs = [queries.poll_job().expect("first"), queries.poll_job().expect("second")];
    assert_eq!(queries.poll_job(), None);
    assert_eq!(jobs.each_ref().map(|job| job.query[0]), [70, 71]);
    // The second one's answer comes first.
    answer(&mut queries, &execution, &jobs[1], 3);
    queries.settle(&execution);
    assert_eq!((queries.poll(), queries.poll_job()), (None, None));
    certify(&mut execution, 3);
    queries.settle(&execution);
    let expected = |id| QueryResponse { id, result: Ok((proven(), certify_executed(header(3)))) };
    assert_eq!(queries.poll(), Some((customer(), expected(71))));
    assert_eq!(queries.poll(), None);
    answer(&mut queries, &execution, &jobs[0], 3);
    assert_eq!(queries.poll(), Some((customer(), expected(70))), "it is certified already");
    answer(&mut queries, &execution, &jobs[0], 3);
    assert_eq!(queries.poll(), None, "once");
    assert_eq!(queries.occupancy().entries, 0);
}

#[test]
fn a_query_that_has_no_answer_is_refused_with_the_reason() {
    let (mut queries, execution) = (PendingQueries::default(), execution());
    accept(&mut queries, 1);
    let job = queries.poll_job().expect("put to the service");
    queries.on_result(job.ticket, None, &execution);
    assert_eq!(queries.poll(), refused(1, "nothing was executed yet"));
    accept(&mut queries, 2);
    let job = queries.poll_job().expect("put to the service");
    let result = QueryResult { header: header(3), answer: Err("no such account".into()) };
    queries.on_result(job.ticket, Some(result), &execution);
    assert_eq!(queries.poll(), refused(2, "no such account"));
    assert_eq!(queries.occupancy().entries, 0);
}

/// An answer whose height is not certified while a later one is, is asked for anew, as soon as the
/// answer may be another: once a later height was executed here.
#[test]
fn what_is_not_certified_is_asked_for_anew_at_a_later_height() {
    let (mut queries, mut execution) = (PendingQueries::default(), execution());
    execute(&mut execution, 3);
    certify(&mut execution, 2);
    answered(&mut queries, &execution, 1, 3);
    execute(&mut execution, 4);
    queries.settle(&execution);
    assert_eq!(queries.poll_job(), None, "height 3 may still be certified");
    answered(&mut queries, &execution, 2, 4);
    certify(&mut execution, 5);
    queries.settle(&execution);
    let again = queries.poll_job().expect("asked anew");
    assert_eq!(again.query[0], 1);
    assert_eq!(queries.poll_job(), None, "nothing beyond height 4 is executed");
    answer(&mut queries, &execution, &again, 4);
    execute(&mut execution, 5);
    queries.settle(&execution);
    let jobs: Vec<QueryJob> = std::iter::from_fn(|| queries.poll_job()).collect();
    assert_eq!(jobs.iter().map(|job| job.query[0]).collect::<Vec<_>>(), [2, 1]);
    for job in &jobs {
        answer(&mut queries, &execution, job, 5);
    }
    let ids: Vec<u64> = std::iter::from_fn(|| queries.poll()).map(|(_, said)| said.id).collect();
    assert_eq!(ids, [2, 1]);
}

/// ★ The certificate is of another state: nothing that is true of this one goes out with it.
#[test]
fn an_answer_goes_out_with_the_certificate_of_its_own_state_alone() {
    let (mut queries, mut execution) = (PendingQueries::default(), execution());
    certify(&mut execution, 3);
    accept(&mut queries, 1);
    let job = queries.poll_job().expect("put to the service");
    let other = Header { state: hash(b"another"), ..header(3) };
    let result = QueryResult { header: other, answer: Ok(proven()) };
    queries.on_result(job.ticket, Some(result), &execution);
    assert_eq!(queries.poll(), None);
    assert!(queries.poll_job().is_some(), "asked anew");
}

/// ★ A replica whose state is wrong says so to all who wait.
#[test]
fn whoever_waits_for_an_answer_of_a_wrong_state_is_refused() {
    let (mut queries, mut execution) = (PendingQueries::default(), execution());
    execute(&mut execution, 3);
    answered(&mut queries, &execution, 1, 3);
    execution.diverge(Height(3));
    queries.settle(&execution);
    assert_eq!(queries.poll(), refused(1, DIVERGED));
    certify(&mut execution, 3);
    queries.settle(&execution);
    assert_eq!((queries.poll(), queries.poll_job()), (None, None));
}

/// Queries at the service and those whose answers wait share one bound.
#[test]
fn so_many_queries_are_under_way_at_once() {
    let (mut queries, mut execution) = (PendingQueries::default(), execution());
    execute(&mut execution, 3);
    let most = UNDER_WAY_MAX as u64;
    answered(&mut queries, &execution, 0, 3);
    answered(&mut queries, &execution, 1, 3);
    // Each of them the first of its client: shares do not bind.
    for id in 2..most {
        let bytes = [&id.to_le_bytes()[..], &[1; 24]].concat();
        let client = ClientId(IdentityKey(bytes.try_into().expect("32 bytes")));
        assert_eq!(accept_of(&mut queries, client, id), Ok(()));
    }
    accept(&mut queries, most);
    let full = "this validator has too many queries: ask another";
    assert_eq!(queries.poll(), refused(most, full));
    assert_eq!(queries.poll(), None);
    let occupancy = queries.occupancy();
    assert_eq!((occupancy.entries, occupancy.bound), (UNDER_WAY_MAX, UNDER_WAY_MAX));
    certify(&mut execution, 3);
    queries.settle(&execution);
    assert_eq!(std::iter::from_fn(|| queries.poll()).count(), 2);
    (8..10).for_each(|number| assert_eq!(accept_of(&mut queries, other(number), 1), Ok(())));
    assert_eq!(accept_of(&mut queries, other(10), 1), Err(Refusal::Queries));
}

/// One client that floods leaves an eighth of the places, has half once there is another, and gives
/// its places back with its answers.
#[test]
fn one_client_does_not_take_all_places() {
    let (mut queries, mut execution) = (PendingQueries::default(), execution());
    execute(&mut execution, 3);
    let flood = |queries: &mut PendingQueries| {
        (0..).take_while(|id| accept_of(queries, customer(), *id).is_ok()).count()
    };
    assert_eq!(flood(&mut queries), UNDER_WAY_MAX / 8 * 7);
    let share = "this validator is loaded and answers this client's share of queries: ask another";
    assert_eq!(queries.poll(), refused(896, share));
    for id in 0..UNDER_WAY_MAX as u64 / 8 {
        assert_eq!(accept_of(&mut queries, other(1), id), Ok(()));
    }
    assert_eq!(accept_of(&mut queries, other(2), 0), Err(Refusal::Queries));
    let jobs: Vec<QueryJob> = std::iter::from_fn(|| queries.poll_job()).collect();
    jobs.iter().for_each(|job| answer(&mut queries, &execution, job, 3));
    certify(&mut execution, 3);
    queries.settle(&execution);
    assert!(queries.shares.is_empty(), "{:?}", queries.shares);
    assert_eq!(accept_of(&mut queries, other(1), 1), Ok(()));
    assert_eq!(flood(&mut queries), UNDER_WAY_MAX / 2, "half, beside another");
}

/// A client's places come back one by one.
#[test]
fn each_answer_gives_one_place_back() {
    let (mut queries, mut execution) = (PendingQueries::default(), execution());
    execute(&mut execution, 3);
    certify(&mut execution, 3);
    let flood = |queries: &mut PendingQueries| {
        (0..).take_while(|id| accept_of(queries, customer(), *id).is_ok()).count()
    };
    assert_eq!(flood(&mut queries), UNDER_WAY_MAX / 8 * 7);
    for _ in 0..3 {
        let job = queries.poll_job().expect("put to the service");
        answer(&mut queries, &execution, &job, 3);
        assert_eq!(flood(&mut queries), 1);
    }
}
