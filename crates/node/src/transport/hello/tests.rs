use super::*;
use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_types::{ClientId, ReplicaId};

const FIRST: Epoch = Epoch(1);

async fn read(bytes: &[u8]) -> Option<Hello> {
    Hello::read(&mut &bytes[..]).await.expect("there are enough bytes")
}

#[tokio::test]
async fn a_hello_has_golden_bytes() {
    let hello = Hello::new((NetworkId([7; 32]), Epoch(0x0102)), Lane::Bulk);
    let bytes = hello.encode();
    assert_eq!(&bytes[..9], b"quorate\x06\x02");
    assert_eq!(bytes[9..41], [7; 32]);
    assert_eq!(bytes[41..], [2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(read(&bytes).await, Some(hello));
    for (at, wrong) in [(0, b'Q'), (7, 3), (8, 9)] {
        let mut other = bytes.clone();
        other[at] = wrong;
        assert_eq!(read(&other).await, None, "byte {at}");
    }
}

#[tokio::test]
async fn a_vouched_hello_has_golden_bytes() {
    let (network, client) = (NetworkId([7; 32]), IdentitySecret::from_seed([1; 32]));
    let voucher = Voucher::sign(&client, network, &IdentityKey([9; 32]));
    let hello = Hello { voucher: Some(voucher), ..Hello::new((network, FIRST), Lane::Client) };
    let bytes = hello.encode();
    assert_eq!(&bytes[..9], b"quorate\x06\x83");
    assert_eq!(bytes[49..], voucher.encode());
    assert_eq!(read(&bytes).await, Some(hello));
    let cut = Hello::read(&mut &bytes[..60]).await.expect_err("cut short");
    assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn lanes_belong_to_members_learners_or_clients() {
    let network = NetworkId([1; 32]);
    let member = Peer::Replica(ReplicaId(0));
    let learner = Peer::Learner(ClientId(IdentityKey([8; 32])));
    let client = Peer::Client(ClientId(IdentityKey([9; 32])));
    let judge = |lane, network, peer| {
        let hello = Hello::new((NetworkId([1; 32]), FIRST), lane);
        let judged = super::judge(Some(hello), (network, FIRST), peer);
        judged.map(|hello| hello.expect("one epoch").lane)
    };
    assert_eq!(judge(Lane::Votes, network, member), Ok(Lane::Votes));
    assert_eq!(judge(Lane::Client, network, client), Ok(Lane::Client));
    for lane in [Lane::Votes, Lane::Consensus, Lane::Bulk] {
        assert_eq!(judge(lane, network, client), Err(Answer::LaneNotYours));
    }
    assert_eq!(judge(Lane::Bulk, network, learner), Ok(Lane::Bulk));
    for lane in [Lane::Votes, Lane::Consensus, Lane::Client] {
        assert_eq!(judge(lane, network, learner), Err(Answer::LaneNotYours));
    }
    assert_eq!(judge(Lane::Client, network, member), Err(Answer::LaneNotYours));
    assert_eq!(judge(Lane::Votes, NetworkId([2; 32]), member), Err(Answer::OtherNetwork));
    assert_eq!(super::judge(None, (network, FIRST), member), Err(Answer::Unknown));
}

#[tokio::test]
async fn members_alone_are_relayed() {
    let network = NetworkId([7; 32]);
    let ask = Ask { network, epoch: FIRST, to: ReplicaId(0x0102) };
    let bytes = ask.encode();
    assert_eq!((&bytes[..9], &bytes[49..]), (&b"quorate\x06\x10"[..], &[2, 1][..]));
    let heard =
        async |network, peer| receive_asked(&mut &bytes[..], (network, FIRST), peer).await.unwrap();
    let member = Peer::Replica(ReplicaId(0));
    assert_eq!(heard(network, member).await, Ok(Asked::Relay(ReplicaId(0x0102))));
    let key = ClientId(IdentityKey([8; 32]));
    for stranger in [Peer::Learner(key), Peer::Client(key)] {
        assert_eq!(heard(network, stranger).await, Err(Answer::LaneNotYours));
    }
    assert_eq!(heard(NetworkId([1; 32]), member).await, Err(Answer::OtherNetwork));
    let hello = Hello::new((network, FIRST), Lane::Bulk);
    let asked = receive_asked(&mut &hello.encode()[..], (network, FIRST), member).await.unwrap();
    assert_eq!(asked, Ok(Asked::Lane(hello)));
    let elsewhere = receive(&mut &bytes[..], (network, FIRST), member).await.unwrap();
    assert_eq!(elsewhere, Err(Answer::Unknown), "where nobody is relayed");
}

/// Who it is that comes from another epoch, the committee of this one cannot say: also a stranger
/// is heard, and shown the way.
#[tokio::test]
async fn whoever_is_in_another_epoch_is_told_which() {
    let network = NetworkId([7; 32]);
    let stranger = Peer::Client(ClientId(IdentityKey([8; 32])));
    for epoch in [Epoch(0), Epoch(2)] {
        let hello = Hello::new((network, epoch), Lane::Votes).encode();
        let asked = receive_asked(&mut &hello[..], (network, FIRST), stranger).await.unwrap();
        assert_eq!(asked, Ok(Asked::Elsewhere(epoch)));
        let ask = Ask { network, epoch, to: ReplicaId(1) }.encode();
        let asked = receive_asked(&mut &ask[..], (network, FIRST), stranger).await.unwrap();
        assert_eq!(asked, Ok(Asked::Elsewhere(epoch)));
    }
}
