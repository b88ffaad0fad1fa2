//! A member's end of the transport, without a replica behind it: for laboratories that ask what the
//! transport takes by itself.
//!
//! Everything on a frame's way is a validator's own: its key and address, connections in all lanes,
//! queues and their bounds, readers and their permits, and the pool's threads, which hand what
//! arrived to the caller where they would decode and check it.

use super::frames::IngressContext;
use super::inbound::{HasState, IsNextMember, Listener, Peers};
use super::outbound::{MadeUp, member_links};
use super::{Limits, Network};
use crate::clients::ClientDoor;
use crate::metrics::Metrics;
use crate::pool::{MessageSink, Pool};
use crate::validator::{bind, start_runtime};
use crate::{Epochs, NodeConfig, NodeError, keys, tls};
use quorate_engine::{Incoming, Verifier};
use quorate_types::{Peer, ReplicaId, Verified};
use std::fmt;
use std::sync::Arc;
use std::thread::Builder;
use tokio::runtime::Runtime;

/// Handler of a frame's content, its tag included: runs on a thread of the pool, and may answer
/// through the network at once.
pub type Heard = Box<dyn Fn(&Network, &[u8]) + Send + Sync>;

/// A member that runs. Ends when dropped.
#[derive(Debug)]
pub struct Endpoint {
    id: ReplicaId,
    network: Arc<Network>,
    runtime: Option<Runtime>,
}

impl Endpoint {
    /// Listens and dials as the validator with this configuration would. Not to be called from a
    /// tokio task: it brings a runtime of its own.
    ///
    /// # Errors
    /// When a file is refused, the address is taken, or the system gives no threads.
    pub fn start(config: &NodeConfig, heard: Heard) -> Result<Self, NodeError> {
        let keys = keys::load(config, &mut |_| None)?;
        let epochs = Arc::new(Epochs::open(config)?);
        let committee = Arc::clone(epochs.committee());
        let id = keys::member_of(config, &committee, epochs.file(), &keys.public())?;
        let (metrics, limits) = (Arc::new(Metrics::new()), Limits::default());
        let network = Arc::new(Network::new(id, committee.size(), Arc::clone(&metrics)));
        let verifier = Verifier::new(Arc::clone(&committee), &config.replica);
        let (pool, workers) =
            Pool::without_combining(&Arc::new(verifier), &metrics, config.verify_threads);
        for worker in workers {
            let failed = |source| NodeError::Start { what: "check", source };
            Builder::new().name("check".into()).spawn(worker).map_err(failed)?;
        }
        let sink = Arc::new(RawSink { network: Arc::clone(&network), heard });
        let ingress = IngressContext::new(pool, sink, metrics, limits);

        let runtime = start_runtime(config.network_threads)?;
        let own = committee.address(id).expect("a member has an address");
        let address = config.listen.as_deref().unwrap_or(own);
        let socket = runtime.block_on(bind(address, "peers"))?;
        let dialer = tls::Dialer::new(&keys.identity)?;
        for link in member_links(&network, &committee, &dialer, limits, &MadeUp::default(), None)? {
            runtime.spawn(link.run());
        }
        let tls = tls::listener(&keys.identity)?;
        let clients = Arc::new(ClientDoor::open());
        let peers = Peers {
            committee,
            learners: config.learner_ids(),
            clients,
            epochs,
            has_state: HasState(Arc::new(|| false)),
            is_next_member: IsNextMember(Arc::new(|_| false)),
        };
        runtime.spawn(Listener::new(tls, peers, Arc::clone(&network), ingress).run(socket));
        Ok(Self { id, network, runtime: Some(runtime) })
    }

    /// Its index in the committee.
    #[must_use]
    pub fn id(&self) -> ReplicaId {
        self.id
    }

    /// Network through which it sends.
    #[must_use]
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Hears every frame as it came, and lets none be checked.
struct RawSink {
    network: Arc<Network>,
    heard: Heard,
}

impl MessageSink for RawSink {
    fn message(&self, _from: Peer, _urgent: bool, _message: Verified<Incoming>) -> bool {
        true
    }

    fn wants(&self, content: &[u8]) -> bool {
        (self.heard)(&self.network, content);
        false
    }
}

impl fmt::Debug for RawSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RawSink")
    }
}
