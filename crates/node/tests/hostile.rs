//! Hostile peers against a real validator; after each of them it still serves a good client.
//!
//! Validators 0 to 2 of four run; whoever attacks holds the key of the fourth, or none.

use crate::common::{Cluster, TIMEOUT, expect_progress, new_identity};
use bytes::Bytes;
use quorate_consensus as consensus;
use quorate_consensus::chained;
use quorate_crypto::{Digest, IdentitySecret, KeyFile, Share};
use quorate_engine::{Frame, FrameTag, Message};
use quorate_node::config::read_committee_file;
use quorate_node::tls::{Dialer, no_name};
use quorate_node::transport::Limits;
use quorate_node::transport::hello::Hello;
use quorate_node::transport::outbound::{DialedStream, dial};
use quorate_node::{ClientPolicy, NodeConfig, TestnetPlan};
use quorate_types::{
    Body, BodyRef, ClientId, Lane, NetworkId, Peer, Rejected, ReplicaId, View, Voucher,
};
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

const ATTACKER: ReplicaId = ReplicaId(3);

struct Siege {
    cluster: Cluster,
    runtime: Runtime,
    member: IdentitySecret,
}

impl Siege {
    fn begin() -> Self {
        Self::begin_with(Limits::default())
    }

    fn begin_with(limits: Limits) -> Self {
        let mut cluster = Cluster::prepare(4, limits);
        (0..3).for_each(|index| cluster.start_one(index));
        let key = cluster.folder.path().join("net/validator-3/key.toml");
        let member = KeyFile::read(&key).unwrap().identity;
        let runtime = Runtime::new().unwrap();
        Self { cluster, runtime, member }
    }

    /// The validator lives and serves.
    fn end(self) {
        expect_progress(&self.cluster, 20);
        self.cluster.stop();
    }

    fn address(&self) -> String {
        self.cluster.validators[0].address().to_string()
    }

    /// A channel to validator 0, as `identity`, expecting the key of `expected`.
    async fn open(
        &self,
        identity: &IdentitySecret,
        expected: ReplicaId,
        network: NetworkId,
        lane: Lane,
    ) -> io::Result<DialedStream> {
        let key = *self.cluster.committee.identity(expected).unwrap();
        let tls = Dialer::new(identity).unwrap().to(key).unwrap();
        let hello = Hello::new((network, self.cluster.committee.epoch()), lane);
        dial(&self.address(), tls, hello, TIMEOUT).await
    }

    async fn channel(&self, identity: &IdentitySecret, lane: Lane) -> DialedStream {
        let network = self.cluster.committee.network();
        self.open(identity, ReplicaId(0), network, lane).await.unwrap()
    }

    /// A channel of the attacker's, as soon as it is no longer barred for what it sent before.
    async fn channel_once_let_in(&self, lane: Lane) -> DialedStream {
        let network = self.cluster.committee.network();
        let began = Instant::now();
        loop {
            match self.open(&self.member, ReplicaId(0), network, lane).await {
                Ok(channel) => return channel,
                Err(error) => assert!(began.elapsed() < TIMEOUT, "still barred: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn cuts(&self, reason: &'static str) -> u64 {
        self.cluster.validators[0].shown().metrics.cuts(reason)
    }

    fn wait_for_cuts(&self, reason: &'static str, count: u64) {
        let began = Instant::now();
        while self.cuts(reason) < count {
            assert!(began.elapsed() < TIMEOUT, "{} cut for {reason}", self.cuts(reason));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn wait_for_rejection(&self, peer: Peer, reason: &Rejected) {
        let began = Instant::now();
        while self.cluster.validators[0].shown().metrics.rejections(peer, reason) == 0 {
            assert!(began.elapsed() < TIMEOUT, "nothing was refused as: {reason}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

async fn send(stream: &mut DialedStream, frame: &Frame) {
    try_send(stream, frame).await.unwrap();
}

/// Fails once the other end has closed the connection.
async fn try_send(stream: &mut DialedStream, frame: &Frame) -> io::Result<()> {
    for piece in &frame.0 {
        stream.write_all(piece).await?;
    }
    stream.flush().await
}

/// Waits until the other end closes the connection.
async fn wait_for_the_end(stream: &mut (impl AsyncReadExt + Unpin)) {
    let mut sink = [0; 1_024];
    let wait = async { while stream.read(&mut sink).await.is_ok_and(|bytes| bytes > 0) {} };
    tokio::time::timeout(TIMEOUT, wait).await.expect("the connection stays open");
}

fn announce() -> Frame {
    let reference = BodyRef { author: ReplicaId(1), sequence: 1, digest: Digest::ZERO };
    Message::Announce(vec![reference]).frame()
}

fn vote(siege: &Siege, signer: ReplicaId) -> Frame {
    let view = siege.cluster.validators[0].shown().now().replica.view;
    let vote = chained::Vote {
        view: View(view.0 + 1),
        id: Default::default(),
        base_view: View(0),
        base_id: Default::default(),
        signer,
        share: Share(vec![0; 64]),
    };
    Message::Consensus(consensus::Message::Jolteon(chained::Message::Vote(vote))).frame()
}

#[test]
fn a_dialer_refuses_a_listener_with_another_key() {
    let siege = Siege::begin();
    let network = siege.cluster.committee.network();
    let work = siege.open(&siege.member, ReplicaId(1), network, Lane::Votes);
    let error = siege.runtime.block_on(work).unwrap_err();
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    siege.end();
}

#[test]
fn a_stranger_is_a_client_and_opens_no_members_lane() {
    let siege = Siege::begin();
    let stranger = new_identity();
    let network = siege.cluster.committee.network();
    for lane in [Lane::Votes, Lane::Consensus, Lane::Bulk] {
        let work = siege.open(&stranger, ReplicaId(0), network, lane);
        let error = siege.runtime.block_on(work).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it does not know this key as a member's: compare the committee files"
        );
    }
    siege.end();
}

#[test]
fn a_client_that_sends_members_messages_is_cut_off() {
    let siege = Siege::begin();
    let stranger = new_identity();
    siege.runtime.block_on(async {
        let mut channel = siege.channel(&stranger, Lane::Client).await;
        send(&mut channel, &announce()).await;
        wait_for_the_end(&mut channel).await;
    });
    siege.wait_for_rejection(Peer::Client(ClientId(stranger.public())), &Rejected::NotAMember);
    siege.end();
}

#[test]
fn a_member_of_another_chain_is_told_so() {
    let siege = Siege::begin();
    let work = siege.open(&siege.member, ReplicaId(0), NetworkId([9; 32]), Lane::Votes);
    let error = siege.runtime.block_on(work).unwrap_err();
    assert_eq!(error.to_string(), "it serves another network: compare the committee files");
    siege.end();
}

/// A member whose committee file has one setting otherwise would wait for other leaders, or vote by
/// other rules: it is of another network.
#[test]
fn a_member_with_another_setting_in_its_committee_file_is_told_so() {
    let siege = Siege::begin();
    let mut file = read_committee_file(&siege.cluster.testnet.committee).unwrap();
    assert_eq!(file.network_id(), siege.cluster.committee.network());
    file.settings.protocol = "hotstuff".into();
    let work = siege.open(&siege.member, ReplicaId(0), file.network_id(), Lane::Votes);
    let error = siege.runtime.block_on(work).unwrap_err();
    assert_eq!(error.to_string(), "it serves another network: compare the committee files");
    siege.end();
}

// testing.md 44
#[test]
fn a_member_that_speaks_as_another_is_refused() {
    let siege = Siege::begin();
    expect_progress(&siege.cluster, 5);
    siege.runtime.block_on(async {
        let mut channel = siege.channel(&siege.member, Lane::Votes).await;
        send(&mut channel, &vote(&siege, ReplicaId(1))).await;
        siege.wait_for_rejection(Peer::Replica(ATTACKER), &Rejected::ForeignSender);
    });
    siege.end();
}

/// It is told so when it comes back, and its other connections end with the next frame on them.
#[test]
fn a_member_that_lies_is_cut_off_for_a_while() {
    let siege = Siege::begin();
    expect_progress(&siege.cluster, 5);
    siege.runtime.block_on(async {
        let mut votes = siege.channel(&siege.member, Lane::Votes).await;
        let mut consensus = siege.channel(&siege.member, Lane::Consensus).await;
        send(&mut votes, &vote(&siege, ReplicaId(1))).await;
        wait_for_the_end(&mut votes).await;
        send(&mut consensus, &announce()).await;
        wait_for_the_end(&mut consensus).await;
        // Once more for as long as it takes to be turned away: the bar grows each time.
        let network = siege.cluster.committee.network();
        let error = loop {
            match siege.open(&siege.member, ReplicaId(0), network, Lane::Votes).await {
                Ok(mut votes) => {
                    let _ = try_send(&mut votes, &vote(&siege, ReplicaId(1))).await;
                    wait_for_the_end(&mut votes).await;
                }
                Err(error) => break error,
            }
        };
        assert_eq!(
            error.to_string(),
            "it refused what this key's owner sent, and takes no more for a while"
        );
    });
    siege.end();
}

// testing.md 45
#[test]
fn a_slow_handshake_is_cut() {
    let handshake = Duration::from_secs(3);
    let siege = Siege::begin_with(Limits { handshake, ..Limits::default() });
    siege.runtime.block_on(async {
        let mut silent = TcpStream::connect(siege.address()).await.unwrap();
        wait_for_the_end(&mut silent).await;

        // One that gets through TLS and never says which lane it wants.
        let tcp = TcpStream::connect(siege.address()).await.unwrap();
        let key = *siege.cluster.committee.identity(ReplicaId(0)).unwrap();
        let tls = Dialer::new(&siege.member).unwrap().to(key).unwrap();
        let mut mute = TlsConnector::from(tls).connect(no_name(), tcp).await.unwrap();
        wait_for_the_end(&mut mute).await;
    });
    siege.wait_for_cuts("handshake", 2);
    siege.end();
}

// testing.md 45
#[test]
fn a_slow_frame_is_cut_and_a_silent_connection_is_not() {
    let frame = Duration::from_millis(500);
    let siege = Siege::begin_with(Limits { frame, ..Limits::default() });
    siege.runtime.block_on(async {
        let mut silent = siege.channel(&siege.member, Lane::Bulk).await;
        let mut slow = siege.channel(&siege.member, Lane::Votes).await;
        let frame = announce();
        slow.write_all(&frame.0[0][..20]).await.unwrap();
        slow.flush().await.unwrap();
        wait_for_the_end(&mut slow).await;

        let mut stingy = siege.channel(&siege.member, Lane::Consensus).await;
        stingy.write_all(&frame.0[0][..3]).await.unwrap();
        stingy.flush().await.unwrap();
        wait_for_the_end(&mut stingy).await;
        // Of the members' own frames none takes so long, but on a machine that is too busy.
        siege.wait_for_cuts("slow-frame", 2);

        let mut byte = [0];
        let heard = tokio::time::timeout(Duration::from_millis(800), silent.read(&mut byte)).await;
        assert!(heard.is_err(), "a connection without frames was cut: {heard:?}");
    });
    siege.end();
}

// testing.md 46
#[test]
fn an_oversized_frame_is_refused_by_its_length_alone() {
    let siege = Siege::begin();
    siege.runtime.block_on(async {
        for (lane, tag, bytes) in [
            (Lane::Votes, FrameTag::Consensus, u32::MAX),
            (Lane::Consensus, FrameTag::Consensus, 4 * 1024 * 1024 + 1),
            (Lane::Bulk, FrameTag::Body, 64 + Body::BYTES_MAX as u32 + 1),
        ] {
            let mut channel = siege.channel(&siege.member, lane).await;
            channel.write_all(&bytes.to_le_bytes()).await.unwrap();
            channel.write_all(&[tag.number()]).await.unwrap();
            channel.flush().await.unwrap();
            wait_for_the_end(&mut channel).await;
        }
        siege.wait_for_cuts("oversized-frame", 3);
        assert_eq!(siege.cuts("oversized-frame"), 3);

        let mut channel = siege.channel(&siege.member, Lane::Votes).await;
        channel.write_all(&[0, 0, 0, 0, 1]).await.unwrap();
        channel.flush().await.unwrap();
        wait_for_the_end(&mut channel).await;
        siege.wait_for_cuts("empty-frame", 1);
        assert_eq!(siege.cuts("empty-frame"), 1);
    });
    siege.end();
}

#[test]
fn garbage_costs_its_sender_the_connection() {
    let siege = Siege::begin();
    let noise: Vec<u8> =
        (0..200_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    siege.runtime.block_on(async {
        // Instead of TLS.
        let mut raw = TcpStream::connect(siege.address()).await.unwrap();
        raw.write_all(&noise).await.unwrap();
        wait_for_the_end(&mut raw).await;

        // Instead of frames.
        let mut channel = siege.channel(&siege.member, Lane::Votes).await;
        channel.write_all(&[16, 0, 0, 0, 200]).await.unwrap();
        channel.flush().await.unwrap();
        wait_for_the_end(&mut channel).await;
        siege.wait_for_cuts("unknown-tag", 1);
        assert_eq!(siege.cuts("unknown-tag"), 1);

        // Instead of a message. Alone: what is refused first may decide what becomes of the rest.
        let mut channel = siege.channel(&siege.member, Lane::Consensus).await;
        let _ = try_send(&mut channel, &garbage(FrameTag::Consensus, &noise)).await;
        wait_for_the_end(&mut channel).await;
        siege.wait_for_rejection(Peer::Replica(ATTACKER), &Rejected::Malformed(String::new()));

        // Under every tag there is, until the connection is cut.
        let mut channel = siege.channel_once_let_in(Lane::Consensus).await;
        for tag in FrameTag::all().filter(|tag| tag.rules().bytes_max > noise.len()) {
            if try_send(&mut channel, &garbage(tag, &noise)).await.is_err() {
                break;
            }
        }
        wait_for_the_end(&mut channel).await;
    });
    siege.end();
}

fn garbage(tag: FrameTag, noise: &[u8]) -> Frame {
    let length = u32::try_from(1 + noise.len()).unwrap();
    Frame(vec![Bytes::from([&length.to_le_bytes(), &[tag.number()][..], noise].concat())])
}

#[test]
fn idle_strangers_do_not_keep_others_out() {
    // Longer than anything here waits: who gets in does so beside the crowd, not after it.
    let siege = Siege::begin_with(Limits { handshake: 10 * TIMEOUT, ..Limits::default() });
    siege.runtime.block_on(async {
        let mut crowd = Vec::new();
        for _ in 0..300 {
            crowd.push(TcpStream::connect(siege.address()).await.unwrap());
        }
        drop(siege.channel(&siege.member, Lane::Votes).await);
        siege.wait_for_cuts("too-many-handshakes", 1);
    });
    siege.end();
}

/// A client with as many sessions as it may have opens one more where all places are taken: it is
/// told, and nobody loses a place for that.
#[test]
fn a_session_that_is_not_let_in_takes_nobodys_place() {
    const SESSIONS: usize = 8;
    let plan = TestnetPlan { clients: ClientPolicy::Listed, ..TestnetPlan::default() };
    let mut cluster = Cluster::plan(plan, Limits::default());
    let list = cluster.folder.path().join("clients.toml");
    std::fs::write(&list, "").unwrap();
    cluster.configure(|config| {
        *config = NodeConfig {
            clients_file: Some(list.clone()),
            clients_max: SESSIONS + 1,
            ..config.clone()
        };
    });
    cluster.start_one(0);
    let runtime = Runtime::new().unwrap();
    let network = cluster.committee.network();
    let key = *cluster.committee.identity(ReplicaId(0)).unwrap();
    // Members vouch for whom they like, without a list.
    let open = |member: u16| {
        let file = cluster.folder.path().join(format!("net/validator-{member}/key.toml"));
        let (member, session) = (KeyFile::read(&file).unwrap().identity, new_identity());
        let voucher = Some(Voucher::sign(&member, network, &session.public()));
        let hello = Hello { voucher, ..Hello::to(&cluster.committee, Lane::Client) };
        let tls = Dialer::new(&session).unwrap().to(key).unwrap();
        let address = cluster.validators[0].address().to_string();
        runtime.block_on(dial(&address, tls, hello, TIMEOUT))
    };
    let _other = open(2).unwrap();
    let _own: Vec<_> = (0..SESSIONS).map(|_| open(3).unwrap()).collect();
    let refusal = open(3).unwrap_err().to_string();
    assert!(refusal.contains("as many clients as it may have"), "{refusal}");
    let cuts = |reason| cluster.validators[0].shown().metrics.cuts(reason);
    assert_eq!((cuts("too-many-sessions"), cuts("too-many-clients")), (1, 0));
    cluster.stop();
}
