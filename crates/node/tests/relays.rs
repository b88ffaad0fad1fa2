//! Members that do not reach each other: a third hands on their bytes, and nobody else's.

use crate::common::{Cluster, TIMEOUT, expect_progress, new_identity, wait_until};
use quorate_crypto::{IdentitySecret, KeyFile};
use quorate_ledger::Noop;
use quorate_node::tls::{Dialer, no_name};
use quorate_node::transport::Limits;
use quorate_node::transport::hello::{Answer, Ask, Hello};
use quorate_node::transport::relay::RELAYED_MAX;
use quorate_node::{NodeConfig, Validator};
use quorate_types::{Epoch, Lane, NetworkId, ReplicaId};
use std::fs;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Two opposite links of four are cut: everybody is connected to everybody all the same, and takes
/// the direct way again when it is there.
#[test]
fn what_a_cut_link_does_not_carry_goes_over_another_member() {
    let mut cluster = Cluster::prepare(4, Limits::default());
    let file = cluster.folder.path().join("cut-links");
    fs::write(&file, "0-2\n1-3\n").unwrap();
    for path in &cluster.testnet.configs {
        let config =
            NodeConfig { cut_links: Some(file.clone()), ..NodeConfig::load(path).unwrap() };
        let validator = Validator::start_with(&config, Box::new(Noop), cluster.limits);
        cluster.validators.push(validator.unwrap());
    }
    let network = |index: usize| &cluster.validators[index].shown().network;
    let goes_round = |(from, to): (usize, u16)| {
        network(from).members_connected() == 3 && !network(from).reaches_directly(ReplicaId(to))
    };
    let cut = [(0, 2), (2, 0), (1, 3), (3, 1)];
    wait_until("all are connected", || cut.into_iter().all(goes_round));
    expect_progress(&cluster, 40);

    fs::write(&file, "").unwrap();
    let is_direct = |(from, to): (usize, u16)| network(from).reaches_directly(ReplicaId(to));
    wait_until("the direct way is taken", || cut.into_iter().all(is_direct));
    expect_progress(&cluster, 10);
    // It took the place of the other, and nobody takes that for two processes with one key.
    for index in 0..4 {
        assert_eq!(replaced(&cluster, index), 0, "at validator {index}");
    }
    cluster.stop();
}

/// Connections that took another's place at a validator as if two processes had one key.
fn replaced(cluster: &Cluster, index: usize) -> u64 {
    let text = cluster.validators[index].shown().metrics_text();
    let lines = text.lines().filter(|line| line.starts_with("quorate_connections_replaced_total"));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Channel to validator 0 that asks to be relayed, and the answer.
async fn ask(
    cluster: &Cluster,
    identity: &IdentitySecret,
    (network, to): (NetworkId, u16),
) -> (TlsStream<TcpStream>, u8) {
    let tcp = TcpStream::connect(cluster.validators[0].address()).await.unwrap();
    let ask = Ask { network, epoch: Epoch(1), to: ReplicaId(to) }.encode();
    introduce(cluster, tcp, identity, 0, &ask).await
}

/// Channel to a validator over what reaches it, with this first message, and the answer.
async fn introduce<S: AsyncRead + AsyncWrite + Unpin>(
    cluster: &Cluster,
    stream: S,
    identity: &IdentitySecret,
    to: u16,
    first: &[u8],
) -> (TlsStream<S>, u8) {
    let key = *cluster.committee.identity(ReplicaId(to)).unwrap();
    let tls = Dialer::new(identity).unwrap().to(key).unwrap();
    let mut stream = TlsConnector::from(tls).connect(no_name(), stream).await.unwrap();
    stream.write_all(first).await.unwrap();
    let answer = timeout(TIMEOUT, stream.read_u8()).await.unwrap().unwrap();
    (stream, answer)
}

/// Validators 0 to 2 of four, each of which reaches the others, and the key of the fourth.
async fn three_of_four(limits: Limits) -> (Cluster, IdentitySecret) {
    let start = move || {
        let mut cluster = Cluster::prepare(4, limits);
        (0..3).for_each(|index| cluster.start_one(index));
        wait_until("all reach the others", || {
            cluster.validators.iter().all(|one| one.shown().network.members_connected() == 2)
        });
        cluster
    };
    let cluster = tokio::task::spawn_blocking(start).await.unwrap();
    let key = cluster.folder.path().join("net/validator-3/key.toml");
    let member = KeyFile::read(&key).unwrap().identity;
    (cluster, member)
}

async fn stop(cluster: Cluster) {
    let stop = move || {
        expect_progress(&cluster, 20);
        cluster.stop();
    };
    tokio::task::spawn_blocking(stop).await.unwrap();
}

/// Validators 0 to 2 of four run. Whoever holds the key of the fourth is relayed to the other two,
/// over so many connections and not one more, and nowhere else; a stranger is not relayed.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_relays_for_members_to_members_and_so_much() {
    // What is relayed here says nothing, and stays for as long as a handshake may take.
    let limits = Limits { handshake: TIMEOUT, ..Limits::default() };
    let (cluster, member) = three_of_four(limits).await;
    let network = cluster.committee.network();
    let [welcome, not_yours, out_of_reach] =
        [Answer::Welcome, Answer::LaneNotYours, Answer::OutOfReach].map(|answer| answer as u8);
    for (to, what) in [(3, "itself"), (0, "the relay"), (9, "nobody")] {
        let (_, answer) = ask(&cluster, &member, (network, to)).await;
        assert_eq!(answer, out_of_reach, "{what}");
    }
    let (_, answer) = ask(&cluster, &new_identity(), (network, 1)).await;
    assert_eq!(answer, not_yours, "a stranger");
    let (_, answer) = ask(&cluster, &member, (NetworkId([9; 32]), 1)).await;
    assert_eq!(answer, Answer::OtherNetwork as u8);

    let mut relayed = Vec::new();
    for number in 0..RELAYED_MAX {
        let (stream, answer) = ask(&cluster, &member, (network, 1 + number as u16 % 2)).await;
        assert_eq!(answer, welcome, "connection {number}");
        relayed.push(stream);
    }
    let (_, answer) = ask(&cluster, &member, (network, 1)).await;
    assert_eq!(answer, out_of_reach, "one too many");
    drop(relayed);
    let again = async {
        while ask(&cluster, &member, (network, 1)).await.1 != welcome {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, again).await.expect("there is room again");
    stop(cluster).await;
}

/// What was relayed is not relayed further, and only members come that way.
#[tokio::test(flavor = "multi_thread")]
async fn a_relayed_connection_has_one_hop_and_a_member_at_its_end() {
    let (cluster, member) = three_of_four(Limits::default()).await;
    let network = cluster.committee.network();
    let further = Ask { network, epoch: Epoch(1), to: ReplicaId(2) }.encode();
    let (near, answer) = ask(&cluster, &member, (network, 1)).await;
    assert_eq!(answer, Answer::Welcome as u8);
    let (_, answer) = introduce(&cluster, near, &member, 1, &further).await;
    assert_eq!(answer, Answer::OutOfReach as u8, "over 0 and 1 to 2");

    let (near, _) = ask(&cluster, &member, (network, 1)).await;
    let client = Hello::new((network, Epoch(1)), Lane::Client).encode();
    let (_, answer) = introduce(&cluster, near, &new_identity(), 1, &client).await;
    assert_eq!(answer, Answer::LaneNotYours as u8, "a client over 0");
    stop(cluster).await;
}

/// A member whose direct way is lost comes over another, and that is no second process; whoever
/// comes back sooner than a member looks for the direct way is one, relayed or not.
#[tokio::test(flavor = "multi_thread")]
async fn another_way_is_no_second_process_and_two_that_fight_are() {
    let (cluster, member) = three_of_four(Limits::default()).await;
    let network = cluster.committee.network();
    let votes = Hello::new((network, Epoch(1)), Lane::Votes).encode();
    let direct = || async {
        let tcp = TcpStream::connect(cluster.validators[1].address()).await.unwrap();
        introduce(&cluster, tcp, &member, 1, &votes).await
    };
    let over_another = || async {
        let (near, _) = ask(&cluster, &member, (network, 1)).await;
        introduce(&cluster, near, &member, 1, &votes).await
    };
    let _first = direct().await;
    let _second = over_another().await;
    assert_eq!(replaced(&cluster, 1), 0, "the direct way was lost");
    let _third = over_another().await;
    assert_eq!(replaced(&cluster, 1), 1, "two that are relayed");
    let _fourth = direct().await;
    assert_eq!(replaced(&cluster, 1), 2, "one of two marks its connections");
    let _fifth = direct().await;
    assert_eq!(replaced(&cluster, 1), 3, "two that are not relayed");
    stop(cluster).await;
}
