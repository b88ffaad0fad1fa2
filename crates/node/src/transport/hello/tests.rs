use super::*;
use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_types::{ClientId, ReplicaId};

async fn read(bytes: &[u8]) -> Option<Hello> {
    Hello::read(&mut &bytes[..]).await.expect("there are enough bytes")
}

#[tokio::test]
async fn a_hello_has_golden_bytes() {
    let hello = Hello::new(ChainId([7; 32]), Lane::Bulk);
    let bytes = hello.encode();
    assert_eq!(&bytes[..9], b"quorate\x03\x02");
    assert_eq!(bytes[9..], [7; 32]);
    assert_eq!(read(&bytes).await, Some(hello));
    for (at, wrong) in [(0, b'Q'), (7, 2), (8, 9)] {
        let mut other = bytes.clone();
        other[at] = wrong;
        assert_eq!(read(&other).await, None, "byte {at}");
    }
}

#[tokio::test]
async fn a_vouched_hello_has_golden_bytes() {
    let (chain, client) = (ChainId([7; 32]), IdentitySecret::from_seed([1; 32]));
    let voucher = Voucher::sign(&client, chain, &IdentityKey([9; 32]));
    let hello = Hello { voucher: Some(voucher), ..Hello::new(chain, Lane::Client) };
    let bytes = hello.encode();
    assert_eq!(&bytes[..9], b"quorate\x03\x83");
    assert_eq!(bytes[41..], voucher.encode());
    assert_eq!(read(&bytes).await, Some(hello));
    let cut = Hello::read(&mut &bytes[..60]).await.expect_err("cut short");
    assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn lanes_belong_to_members_learners_or_clients() {
    let chain = ChainId([1; 32]);
    let member = Peer::Replica(ReplicaId(0));
    let learner = Peer::Learner(ClientId(IdentityKey([8; 32])));
    let client = Peer::Client(ClientId(IdentityKey([9; 32])));
    let judge = |lane, chain, peer| {
        let hello = Hello::new(ChainId([1; 32]), lane);
        super::judge(Some(hello), chain, peer).map(|hello| hello.lane)
    };
    assert_eq!(judge(Lane::Votes, chain, member), Ok(Lane::Votes));
    assert_eq!(judge(Lane::Client, chain, client), Ok(Lane::Client));
    for lane in [Lane::Votes, Lane::Consensus, Lane::Bulk] {
        assert_eq!(judge(lane, chain, client), Err(Answer::LaneNotYours));
    }
    assert_eq!(judge(Lane::Bulk, chain, learner), Ok(Lane::Bulk));
    for lane in [Lane::Votes, Lane::Consensus, Lane::Client] {
        assert_eq!(judge(lane, chain, learner), Err(Answer::LaneNotYours));
    }
    assert_eq!(judge(Lane::Client, chain, member), Err(Answer::LaneNotYours));
    assert_eq!(judge(Lane::Votes, ChainId([2; 32]), member), Err(Answer::OtherChain));
    assert_eq!(super::judge(None, chain, member), Err(Answer::Unknown));
}

#[tokio::test]
async fn members_alone_are_relayed() {
    let chain = ChainId([7; 32]);
    let ask = Ask { chain, to: ReplicaId(0x0102) };
    let bytes = ask.encode();
    assert_eq!((&bytes[..9], &bytes[41..]), (&b"quorate\x03\x10"[..], &[2, 1][..]));
    let heard = async |chain, peer| receive_asked(&mut &bytes[..], chain, peer).await.unwrap();
    let member = Peer::Replica(ReplicaId(0));
    assert_eq!(heard(chain, member).await, Ok(Asked::Relay(ReplicaId(0x0102))));
    let key = ClientId(IdentityKey([8; 32]));
    for stranger in [Peer::Learner(key), Peer::Client(key)] {
        assert_eq!(heard(chain, stranger).await, Err(Answer::LaneNotYours));
    }
    assert_eq!(heard(ChainId([1; 32]), member).await, Err(Answer::OtherChain));
    let hello = Hello::new(chain, Lane::Bulk);
    let asked = receive_asked(&mut &hello.encode()[..], chain, member).await.unwrap();
    assert_eq!(asked, Ok(Asked::Lane(hello)));
    let elsewhere = receive(&mut &bytes[..], chain, member).await.unwrap();
    assert_eq!(elsewhere, Err(Answer::Unknown), "where nobody is relayed");
}
