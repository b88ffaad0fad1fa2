//! The first bytes of a connection: which network and epoch, which lane, who vouches for a client,
//! or which member it is to be relayed to; and the one-byte answer. Whoever comes with an earlier
//! epoch is shown how it ended.

use super::LEARNER_LANE;
use quorate_types::{Committee, Epoch, HandedOver, Lane, NetworkId, Peer, ReplicaId, Voucher};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// `"quorate" ‖ version ‖ lane ‖ network[32] ‖ epoch[8]`, and a voucher where the lane's byte says
/// so.
const HELLO_BYTES: usize = 7 + 1 + 1 + 32 + 8;
const MAGIC: &[u8; 7] = b"quorate";
const VERSION: u8 = 6;
/// In the lane's place: the index of a member follows, to which the connection is to be relayed.
const RELAY: u8 = 0x10;
/// In the lane's byte: a voucher follows. A listener of an earlier version knows no such lane.
const VOUCHED: u8 = 0x80;

/// Epoch in the hellos of payments, whose network's id names its epoch.
pub const ANY_EPOCH: Epoch = Epoch(0);

/// First message of a dialer on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The network that it serves or uses.
    pub network: NetworkId,
    /// The epoch that it is in.
    pub epoch: Epoch,
    /// The lane that this connection is to be.
    pub lane: Lane,
    /// A client's word for the key that the dialer proved, where members ask for one.
    pub voucher: Option<Voucher>,
}

/// What a dialer asks for with its first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// This connection is to be a lane.
    Lane(Hello),
    /// What follows is for this member.
    Relay(ReplicaId),
    /// Nothing that the listener could give: the dialer is in this epoch, and not in its.
    Elsewhere(Epoch),
}

/// Answer of a listener to a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Answer {
    /// Go on with frames.
    Welcome = 0,
    /// The hello is not one, or of another version.
    Unknown = 1,
    /// The listener serves another network.
    OtherNetwork = 2,
    /// The lane is for others than the owner of this key.
    LaneNotYours = 3,
    /// Too many clients are connected.
    Full = 4,
    /// Something that no correct peer sends came from the owner of this key a moment ago.
    Barred = 5,
    /// The member to relay to is not reached directly, or as much is relayed as may be.
    OutOfReach = 6,
    /// The listener lets in listed clients alone, and this is none.
    NotListed = 7,
    /// The listener is in a later epoch: how the dialer's ended follows ([`Ended`]).
    LaterEpoch = 8,
    /// The listener is in an earlier epoch.
    EarlierEpoch = 9,
}

impl Answer {
    /// Reason of a refusal, for people; `None` for [`Answer::Welcome`].
    #[must_use]
    pub fn refusal(self) -> Option<&'static str> {
        Some(match self {
            Self::Welcome => return None,
            Self::Unknown => "it speaks another version",
            Self::OtherNetwork => "it serves another network: compare the committee files",
            Self::LaneNotYours => {
                "it does not know this key as a member's: compare the committee files"
            }
            Self::Full => "it has as many clients as it may have",
            Self::Barred => "it refused what this key's owner sent, and takes no more for a while",
            Self::OutOfReach => "it does not reach that member itself, or relays enough already",
            Self::LaterEpoch => "the network is in a later epoch",
            Self::EarlierEpoch => "it is in an earlier epoch, and has yet to hear how that ended",
            Self::NotListed => {
                "it lets in listed clients alone: have this client's key added to its clients.toml, \
                 or connect with a key that is there"
            }
        })
    }

    fn parse(byte: u8) -> Option<Self> {
        [
            Self::Welcome,
            Self::Unknown,
            Self::OtherNetwork,
            Self::LaneNotYours,
            Self::Full,
            Self::Barred,
            Self::OutOfReach,
            Self::NotListed,
            Self::LaterEpoch,
            Self::EarlierEpoch,
        ]
        .into_iter()
        .find(|answer| *answer as u8 == byte)
    }
}

impl Hello {
    /// A hello that nobody vouches for.
    #[must_use]
    pub fn new((network, epoch): (NetworkId, Epoch), lane: Lane) -> Self {
        Self { network, epoch, lane, voucher: None }
    }

    /// The hello of whoever serves or uses this committee.
    #[must_use]
    pub fn to(committee: &Committee, lane: Lane) -> Self {
        Self::new((committee.network(), committee.epoch()), lane)
    }

    /// Bytes on the wire: 49, and a voucher behind them where there is one.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let vouched = if self.voucher.is_some() { VOUCHED } else { 0 };
        let mut bytes = Vec::with_capacity(HELLO_BYTES + Voucher::BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[VERSION, self.lane as u8 | vouched]);
        bytes.extend_from_slice(&self.network.0);
        bytes.extend_from_slice(&self.epoch.0.to_le_bytes());
        bytes.extend(self.voucher.iter().flat_map(Voucher::encode));
        bytes
    }

    /// Reads a hello; `None` for bytes that are none.
    async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<Self>> {
        let bytes = read_first(stream).await?;
        Self::complete(&bytes, stream).await
    }

    /// Reads what follows the part of fixed length, and decodes both.
    async fn complete<S: AsyncRead + Unpin>(
        bytes: &[u8; HELLO_BYTES],
        stream: &mut S,
    ) -> io::Result<Option<Self>> {
        let lane = [Lane::Votes, Lane::Consensus, Lane::Bulk, Lane::Client]
            .into_iter()
            .find(|lane| *lane as u8 == bytes[8] & !VOUCHED);
        let Some(lane) = lane.filter(|_| bytes[..7] == MAGIC[..] && bytes[7] == VERSION) else {
            return Ok(None);
        };
        let network = NetworkId(bytes[9..41].try_into().expect("32 bytes"));
        let epoch = Epoch(u64::from_le_bytes(bytes[41..].try_into().expect("8 bytes")));
        let mut hello = Self::new((network, epoch), lane);
        if bytes[8] & VOUCHED != 0 {
            let mut voucher = [0; Voucher::BYTES];
            stream.read_exact(&mut voucher).await?;
            hello.voucher = Some(Voucher::decode(&voucher));
        }
        Ok(Some(hello))
    }
}

async fn read_first<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<[u8; HELLO_BYTES]> {
    let mut bytes = [0; HELLO_BYTES];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// First message of a dialer that wants to be relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The network that it serves.
    pub network: NetworkId,
    /// The epoch that it is in.
    pub epoch: Epoch,
    /// Member that it wants to reach.
    pub to: ReplicaId,
}

impl Ask {
    /// Encodes the wish in its fixed length.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = Hello::new((self.network, self.epoch), Lane::Votes).encode();
        bytes[8] = RELAY;
        bytes.extend_from_slice(&self.to.0.to_le_bytes());
        bytes
    }
}

/// How the dialer's epoch ended, as a listener in a later one says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The listener has the state that the next epoch began with, or a later one.
    pub has_state: bool,
    /// The step to the next epoch, unchecked.
    pub step: HandedOver,
}

impl Ended {
    /// Encodes what follows [`Answer::LaterEpoch`]: one byte for the state, four for the step's
    /// length, and the step.
    #[must_use]
    pub fn encode(has_state: bool, step: &HandedOver) -> Vec<u8> {
        let step = step.encode();
        let length = u32::try_from(step.len()).expect("some megabytes");
        let mut bytes = vec![u8::from(has_state)];
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&step);
        bytes
    }

    async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Self> {
        let has_state = stream.read_u8().await? != 0;
        let length = stream.read_u32_le().await? as usize;
        if length > HandedOver::BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a hand-over of many bytes"));
        }
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).await?;
        let step = HandedOver::decode(&bytes).map_err(io::Error::other)?;
        Ok(Self { has_state, step })
    }
}

/// A listener turned the dialer away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct TurnedAway {
    /// Byte that came back in the place of a welcome.
    pub answer: Answer,
    /// What it means, for people.
    pub reason: &'static str,
    /// How the dialer's epoch ended, from a listener in a later one.
    pub ended: Option<Arc<Ended>>,
}

impl TurnedAway {
    /// The listener's answer behind an error of [`introduce`]; `None` if the connection failed.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().cloned()
    }
}

/// The dialer's side: sends a first message and reads the answer.
///
/// # Errors
/// When the connection fails, or the listener turns us away ([`TurnedAway`]).
pub async fn introduce<S>(stream: &mut S, first: &[u8]) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(first).await?;
    stream.flush().await?;
    let answer = Answer::parse(stream.read_u8().await?).unwrap_or(Answer::Unknown);
    match answer.refusal() {
        None => Ok(()),
        Some(reason) => {
            let ended = match answer {
                Answer::LaterEpoch => Some(Arc::new(Ended::read(stream).await?)),
                _ => None,
            };
            let refusal = TurnedAway { answer, reason, ended };
            Err(io::Error::new(io::ErrorKind::ConnectionRefused, refusal))
        }
    }
}

/// The listener's side, where nobody is relayed: reads the hello and decides; the caller answers,
/// and looks at the voucher.
///
/// # Errors
/// When the connection fails.
pub async fn receive<S>(
    stream: &mut S,
    at: (NetworkId, Epoch),
    peer: Peer,
) -> io::Result<Result<Hello, Answer>>
where
    S: AsyncRead + Unpin,
{
    let judged = judge(Hello::read(stream).await?, at, peer);
    Ok(judged.and_then(|asked| asked.map_err(|_| Answer::OtherNetwork)))
}

/// The listener's side, where members are relayed: reads what is asked for and decides.
///
/// # Errors
/// When the connection fails.
pub async fn receive_asked<S>(
    stream: &mut S,
    at: (NetworkId, Epoch),
    peer: Peer,
) -> io::Result<Result<Asked, Answer>>
where
    S: AsyncRead + Unpin,
{
    let mut bytes = read_first(stream).await?;
    if bytes[8] != RELAY {
        let hello = Hello::complete(&bytes, stream).await?;
        return Ok(
            judge(hello, at, peer).map(|hello| hello.map_or_else(Asked::Elsewhere, Asked::Lane))
        );
    }
    let to = ReplicaId(stream.read_u16_le().await?);
    // But for what it asks for, it is the hello of a member's lane.
    bytes[8] = Lane::Votes as u8;
    let hello = Hello::complete(&bytes, stream).await?;
    let asked = judge(hello, at, peer);
    Ok(asked.map(|hello| hello.map_or_else(Asked::Elsewhere, |_| Asked::Relay(to))))
}

/// The hello of a peer that may have its lane, or the epoch that it is in if that is another one:
/// who it is there is not for this one's committee to say.
fn judge(
    hello: Option<Hello>,
    (network, epoch): (NetworkId, Epoch),
    peer: Peer,
) -> Result<Result<Hello, Epoch>, Answer> {
    let hello = hello.ok_or(Answer::Unknown)?;
    if hello.network != network {
        return Err(Answer::OtherNetwork);
    }
    if hello.epoch != epoch {
        return Ok(Err(hello.epoch));
    }
    match (peer, hello.lane) {
        (Peer::Client(_), Lane::Client)
        | (Peer::Learner(_), LEARNER_LANE)
        | (Peer::Replica(_), Lane::Votes | Lane::Consensus | Lane::Bulk) => Ok(Ok(hello)),
        _ => Err(Answer::LaneNotYours),
    }
}

#[cfg(test)]
mod tests;
