//! The first bytes of a connection: which chain, which lane, or which member it is to be relayed
//! to; and the one-byte answer.

use super::LEARNER_LANE;
use quorate_types::{ChainId, Lane, Peer, ReplicaId};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// `"quorate" ‖ version ‖ lane ‖ chain[32]`.
const HELLO_BYTES: usize = 7 + 1 + 1 + 32;
const MAGIC: &[u8; 7] = b"quorate";
const VERSION: u8 = 3;
/// In the lane's place: the index of a member follows, to which the connection is to be relayed.
const RELAY: u8 = 0x10;

/// First message of a dialer on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The chain that it serves or uses.
    pub chain: ChainId,
    /// The lane that this connection is to be.
    pub lane: Lane,
}

/// What a dialer asks for with its first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// This connection is to be a lane.
    Lane(Lane),
    /// What follows is for this member.
    Relay(ReplicaId),
}

/// Answer of a listener to a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Answer {
    /// Go on with frames.
    Welcome = 0,
    /// The hello is not one, or of another version.
    Unknown = 1,
    /// The listener serves another chain.
    OtherChain = 2,
    /// The lane is for others than the owner of this key.
    LaneNotYours = 3,
    /// Too many clients are connected.
    Full = 4,
    /// Something that no correct peer sends came from the owner of this key a moment ago.
    Barred = 5,
    /// The member to relay to is not reached directly, or as much is relayed as may be.
    OutOfReach = 6,
}

impl Answer {
    /// Reason of a refusal, for people; `None` for [`Answer::Welcome`].
    #[must_use]
    pub fn refusal(self) -> Option<&'static str> {
        Some(match self {
            Self::Welcome => return None,
            Self::Unknown => "it speaks another version",
            Self::OtherChain => "it serves another chain: compare the committee files",
            Self::LaneNotYours => {
                "it does not know this key as a member's: compare the committee files"
            }
            Self::Full => "it has as many clients as it may have",
            Self::Barred => "it refused what this key's owner sent, and takes no more for a while",
            Self::OutOfReach => "it does not reach that member itself, or relays enough already",
        })
    }

    fn parse(byte: u8) -> Option<Self> {
        [
            Self::Welcome,
            Self::Unknown,
            Self::OtherChain,
            Self::LaneNotYours,
            Self::Full,
            Self::Barred,
            Self::OutOfReach,
        ]
        .into_iter()
        .find(|answer| *answer as u8 == byte)
    }
}

impl Hello {
    /// Encodes the hello in its fixed length.
    #[must_use]
    pub fn encode(self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..7].copy_from_slice(MAGIC);
        bytes[7] = VERSION;
        bytes[8] = self.lane as u8;
        bytes[9..].copy_from_slice(&self.chain.0);
        bytes
    }

    fn parse(bytes: &[u8; HELLO_BYTES]) -> Option<Self> {
        if bytes[..7] != MAGIC[..] || bytes[7] != VERSION {
            return None;
        }
        let lane = [Lane::Votes, Lane::Consensus, Lane::Bulk, Lane::Client]
            .into_iter()
            .find(|lane| *lane as u8 == bytes[8])?;
        Some(Self { chain: ChainId(bytes[9..].try_into().expect("32 bytes")), lane })
    }
}

/// First message of a dialer that wants to be relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The chain that it serves.
    pub chain: ChainId,
    /// Member that it wants to reach.
    pub to: ReplicaId,
}

impl Ask {
    /// Encodes the wish in its fixed length.
    #[must_use]
    pub fn encode(self) -> [u8; HELLO_BYTES + 2] {
        let mut bytes = [0; HELLO_BYTES + 2];
        let hello = Hello { chain: self.chain, lane: Lane::Votes };
        bytes[..HELLO_BYTES].copy_from_slice(&hello.encode());
        bytes[8] = RELAY;
        bytes[HELLO_BYTES..].copy_from_slice(&self.to.0.to_le_bytes());
        bytes
    }
}

/// The dialer's side: sends a first message and reads the answer.
///
/// # Errors
/// When the connection fails, or the listener turns us away; the message says why.
pub async fn introduce<S>(stream: &mut S, first: &[u8]) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(first).await?;
    stream.flush().await?;
    let answer = Answer::parse(stream.read_u8().await?).unwrap_or(Answer::Unknown);
    match answer.refusal() {
        None => Ok(()),
        Some(reason) => Err(io::Error::new(io::ErrorKind::ConnectionRefused, reason)),
    }
}

/// The listener's side, where nobody is relayed: reads the hello and decides; the caller answers.
///
/// # Errors
/// When the connection fails.
pub async fn receive<S>(
    stream: &mut S,
    chain: ChainId,
    peer: Peer,
) -> io::Result<Result<Lane, Answer>>
where
    S: AsyncRead + Unpin,
{
    let mut bytes = [0; HELLO_BYTES];
    stream.read_exact(&mut bytes).await?;
    Ok(judge(Hello::parse(&bytes), chain, peer))
}

/// The listener's side, where members are relayed: reads what is asked for and decides.
///
/// # Errors
/// When the connection fails.
pub async fn receive_asked<S>(
    stream: &mut S,
    chain: ChainId,
    peer: Peer,
) -> io::Result<Result<Asked, Answer>>
where
    S: AsyncRead + Unpin,
{
    let mut bytes = [0; HELLO_BYTES];
    stream.read_exact(&mut bytes).await?;
    if bytes[8] != RELAY {
        return Ok(judge(Hello::parse(&bytes), chain, peer).map(Asked::Lane));
    }
    let to = ReplicaId(stream.read_u16_le().await?);
    // But for what it asks for, it is the hello of a member's lane.
    bytes[8] = Lane::Votes as u8;
    Ok(judge(Hello::parse(&bytes), chain, peer).map(|_| Asked::Relay(to)))
}

fn judge(hello: Option<Hello>, chain: ChainId, peer: Peer) -> Result<Lane, Answer> {
    let hello = hello.ok_or(Answer::Unknown)?;
    if hello.chain != chain {
        return Err(Answer::OtherChain);
    }
    match (peer, hello.lane) {
        (Peer::Client(_), Lane::Client) | (Peer::Learner(_), LEARNER_LANE) => Ok(hello.lane),
        (Peer::Replica(_), Lane::Votes | Lane::Consensus | Lane::Bulk) => Ok(hello.lane),
        _ => Err(Answer::LaneNotYours),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_crypto::IdentityKey;
    use quorate_types::{ClientId, ReplicaId};

    #[test]
    fn a_hello_has_golden_bytes() {
        let hello = Hello { chain: ChainId([7; 32]), lane: Lane::Bulk };
        let bytes = hello.encode();
        assert_eq!(&bytes[..9], b"quorate\x03\x02");
        assert_eq!(bytes[9..], [7; 32]);
        assert_eq!(Hello::parse(&bytes), Some(hello));
    }

    #[tokio::test]
    async fn members_alone_are_relayed() {
        let chain = ChainId([7; 32]);
        let ask = Ask { chain, to: ReplicaId(0x0102) };
        let bytes = ask.encode();
        assert_eq!((&bytes[..9], &bytes[41..]), (&b"quorate\x02\x10"[..], &[2, 1][..]));
        let heard = async |chain, peer| receive_asked(&mut &bytes[..], chain, peer).await.unwrap();
        let member = Peer::Replica(ReplicaId(0));
        assert_eq!(heard(chain, member).await, Ok(Asked::Relay(ReplicaId(0x0102))));
        let key = ClientId(IdentityKey([8; 32]));
        for stranger in [Peer::Learner(key), Peer::Client(key)] {
            assert_eq!(heard(chain, stranger).await, Err(Answer::LaneNotYours));
        }
        assert_eq!(heard(ChainId([1; 32]), member).await, Err(Answer::OtherChain));
        let lane = Hello { chain, lane: Lane::Bulk }.encode();
        let asked = receive_asked(&mut &lane[..], chain, member).await.unwrap();
        assert_eq!(asked, Ok(Asked::Lane(Lane::Bulk)));
        let elsewhere = receive(&mut &bytes[..], chain, member).await.unwrap();
        assert_eq!(elsewhere, Err(Answer::Unknown), "where nobody is relayed");
    }

    #[test]
    fn lanes_belong_to_members_learners_or_clients() {
        let chain = ChainId([1; 32]);
        let member = Peer::Replica(ReplicaId(0));
        let learner = Peer::Learner(ClientId(IdentityKey([8; 32])));
        let client = Peer::Client(ClientId(IdentityKey([9; 32])));
        let hello = |lane| Some(Hello { chain, lane });
        assert_eq!(judge(hello(Lane::Votes), chain, member), Ok(Lane::Votes));
        assert_eq!(judge(hello(Lane::Client), chain, client), Ok(Lane::Client));
        for lane in [Lane::Votes, Lane::Consensus, Lane::Bulk] {
            assert_eq!(judge(hello(lane), chain, client), Err(Answer::LaneNotYours));
        }
        assert_eq!(judge(hello(Lane::Bulk), chain, learner), Ok(Lane::Bulk));
        for lane in [Lane::Votes, Lane::Consensus, Lane::Client] {
            assert_eq!(judge(hello(lane), chain, learner), Err(Answer::LaneNotYours));
        }
        assert_eq!(judge(hello(Lane::Client), chain, member), Err(Answer::LaneNotYours));
        assert_eq!(judge(hello(Lane::Votes), ChainId([2; 32]), member), Err(Answer::OtherChain));
        assert_eq!(judge(None, chain, member), Err(Answer::Unknown));
    }
}
