//! Members that do not reach each other: a third hands on their bytes, and nobody else's.

mod common;

use common::{Cluster, TIMEOUT, expect_progress, new_identity, wait_until};
use quorate_crypto::{IdentitySecret, KeyFile};
use quorate_ledger::Noop;
use quorate_node::tls::{Dialer, no_name};
use quorate_node::transport::Limits;
use quorate_node::transport::hello::{Answer, Ask};
use quorate_node::transport::relay::RELAYED_MAX;
use quorate_node::{NodeConfig, Validator};
use quorate_types::{ChainId, ReplicaId};
use std::fs;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
    cluster.stop();
}

/// Channel to validator 0 that asks to be relayed, and the answer.
async fn ask(
    cluster: &Cluster,
    identity: &IdentitySecret,
    (chain, to): (ChainId, u16),
) -> (TlsStream<TcpStream>, u8) {
    let tls = Dialer::new(identity).unwrap().to(*cluster.committee.identity(ReplicaId(0)).unwrap());
    let tcp = TcpStream::connect(cluster.validators[0].address()).await.unwrap();
    let mut stream = TlsConnector::from(tls.unwrap()).connect(no_name(), tcp).await.unwrap();
    stream.write_all(&Ask { chain, to: ReplicaId(to) }.encode()).await.unwrap();
    let answer = timeout(TIMEOUT, stream.read_u8()).await.unwrap().unwrap();
    (stream, answer)
}

/// Validators 0 to 2 of four run. Whoever holds the key of the fourth is relayed to the other two,
/// over so many connections and not one more, and nowhere else; a stranger is not relayed.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_relays_for_members_to_members_and_so_much() {
    let cluster = tokio::task::spawn_blocking(|| {
        // What is relayed here says nothing, and stays for as long as a handshake may take.
        let limits = Limits { handshake: TIMEOUT, ..Limits::default() };
        let mut cluster = Cluster::prepare(4, limits);
        (0..3).for_each(|index| cluster.start_one(index));
        let network = &cluster.validators[0].shown().network;
        wait_until("validator 0 reaches the others", || network.members_connected() == 2);
        cluster
    });
    let cluster = cluster.await.unwrap();
    let key = cluster.folder.path().join("net/validator-3/key.toml");
    let member = KeyFile::read(&key).unwrap().identity;
    let chain = cluster.committee.chain();
    let [welcome, not_yours, out_of_reach] =
        [Answer::Welcome, Answer::LaneNotYours, Answer::OutOfReach].map(|answer| answer as u8);
    for (to, what) in [(3, "itself"), (0, "the relay"), (9, "nobody")] {
        let (_, answer) = ask(&cluster, &member, (chain, to)).await;
        assert_eq!(answer, out_of_reach, "{what}");
    }
    let (_, answer) = ask(&cluster, &new_identity(), (chain, 1)).await;
    assert_eq!(answer, not_yours, "a stranger");
    let (_, answer) = ask(&cluster, &member, (ChainId([9; 32]), 1)).await;
    assert_eq!(answer, Answer::OtherChain as u8);

    let mut relayed = Vec::new();
    for number in 0..RELAYED_MAX {
        let (stream, answer) = ask(&cluster, &member, (chain, 1 + number as u16 % 2)).await;
        assert_eq!(answer, welcome, "connection {number}");
        relayed.push(stream);
    }
    let (_, answer) = ask(&cluster, &member, (chain, 1)).await;
    assert_eq!(answer, out_of_reach, "one too many");
    drop(relayed);
    let again = async {
        while ask(&cluster, &member, (chain, 1)).await.1 != welcome {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, again).await.expect("there is room again");
    tokio::task::spawn_blocking(move || {
        expect_progress(&cluster, 20);
        cluster.stop();
    })
    .await
    .unwrap();
}
