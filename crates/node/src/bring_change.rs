//! Bringing a change of committee to the members whose epoch it ends.

use crate::NodeError;
use crate::tls::Dialer;
use crate::transport::Limits;
use crate::transport::frames::{FrameReader, content_bytes_max};
use crate::transport::hello::Hello;
use crate::transport::outbound::dial;
use quorate_crypto::{Bitmap, Digest, IdentitySecret};
use quorate_engine::{Frame, Incoming, Message, Verifier};
use quorate_types::{Committee, Lane, Peer, ReplicaId, SignedChange, Verified};
use rustls::ClientConfig;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Longest time from the first byte of a change to a member's answer, which checks every signature
/// in it first.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Answers of the members that were asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeBrought {
    /// Members that took the change.
    pub taken: Vec<ReplicaId>,
    /// Members that did not, each with its reason, or with why it was not reached.
    pub refused: Vec<(ReplicaId, String)>,
}

/// Brings a change to one member after the other, as the client of this identity, until those that
/// took it include an honest one (which hands it on to all), or all were asked. Blocks. What the
/// change says is for the members to check.
///
/// # Errors
/// When the system gives no thread, or the key is refused.
pub fn bring_change(
    committee: &Arc<Committee>,
    identity: &IdentitySecret,
    change: &SignedChange,
) -> Result<ChangeBrought, NodeError> {
    let runtime = crate::validator::start_runtime(1)?;
    let bringer = Bringer {
        digest: change.change.digest(),
        frame: Message::Change(change.encode().into()).frame(),
        dialer: Dialer::new(identity)?,
        verifier: Verifier::for_client(Arc::clone(committee)),
    };
    let brought = runtime.block_on(bringer.ask_all(committee));
    runtime.shutdown_background();
    brought
}

struct Bringer {
    digest: Digest,
    frame: Frame,
    dialer: Dialer,
    verifier: Verifier,
}

impl Bringer {
    async fn ask_all(&self, committee: &Committee) -> Result<ChangeBrought, NodeError> {
        let mut brought = ChangeBrought::default();
        let mut takers = Bitmap::new(committee.size());
        for member in committee.members() {
            let key = committee.identity(member).expect("a member has a key");
            let tls = self.dialer.to(*key)?;
            match self.ask(committee, member, tls).await {
                Ok(()) => {
                    takers.insert(member.index());
                    brought.taken.push(member);
                }
                Err(reason) => brought.refused.push((member, reason)),
            }
            if committee.includes_honest(&takers) {
                break;
            }
        }
        Ok(brought)
    }

    async fn ask(
        &self,
        committee: &Committee,
        member: ReplicaId,
        tls: Arc<ClientConfig>,
    ) -> Result<(), String> {
        let limits = Limits::default();
        let address = committee.address(member).expect("a member has an address");
        let hello = Hello::to(committee, Lane::Client);
        let unreached = |error| format!("cannot be reached at {address}: {error}");
        let stream = dial(address, tls, hello, limits.handshake).await.map_err(unreached)?;
        let (reader, writer) = tokio::io::split(stream);
        let cap = |tag| content_bytes_max(Lane::Client, tag);
        let mut reader = FrameReader::new(reader, cap, limits.frame);
        let exchange = async {
            write(&self.frame, writer).await.map_err(|error| error.to_string())?;
            loop {
                let head = reader.begin().await.map_err(|cut| cut.to_string())?;
                let content = reader.finish(head).await.map_err(|cut| cut.to_string())?;
                let checked =
                    Verified::<Incoming>::check(content, Peer::Replica(member), &self.verifier);
                let message = checked.map_err(|refused| refused.to_string())?;
                if let Incoming::ChangeAnswer(answer) = message.into_inner() {
                    return answer;
                }
            }
        };
        let answer = timeout(ANSWER_MAX, exchange).await;
        let taken = answer.map_err(|_| "it does not answer".to_owned())??;
        let is_its = taken == self.digest;
        is_its.then_some(()).ok_or_else(|| format!("it says that it took another change, {taken}"))
    }
}

async fn write(frame: &Frame, mut writer: impl AsyncWrite + Unpin) -> io::Result<()> {
    for piece in &frame.0 {
        writer.write_all(piece).await?;
    }
    writer.flush().await
}
