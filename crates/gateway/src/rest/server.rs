//! The gateway on its own threads, behind a listening socket.

use super::{RestLimits, User, router};
use crate::{ClientConfig, Connection, KvClient, check_answer};
use axum::Router;
use prometheus_client::metrics::counter::Counter;
use quorate_crypto::IdentitySecret;
use quorate_node::connections::{Acceptor, ConnectionLimiter};
use quorate_node::http_access::{Access, TokenError, reload_on_hangups};
use quorate_node::http_server::{self, DoorRules};
use quorate_node::{LearnerAddress, NodeError};
use quorate_types::{History, ReplicaId};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Threads that serve HTTP: they wait, mostly.
const THREADS: usize = 2;

/// Configuration of a REST gateway.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// `address:port` to listen on.
    pub address: String,
    /// Epochs of the network up to the one whose committee executes the operations; the gateway
    /// follows it to later ones.
    pub history: History,
    /// The member that it sends to first.
    pub first: ReplicaId,
    /// A learner that is asked questions before members are.
    pub learner: Option<LearnerAddress>,
    /// Identity that vouches for the gateway, where members let in listed clients alone: that of
    /// the validator beside it.
    pub vouching: Option<Arc<IdentitySecret>>,
    /// Who is let in.
    pub access: Access,
    /// Certificate of the gateway, and rates of those who ask.
    pub rules: DoorRules,
    /// Time until an operation is answered with 504; it may take effect all the same.
    pub call_timeout: Duration,
    /// Limits on the work and the time that callers can take.
    pub limits: RestLimits,
    /// Counter of connections that gave way to others or were refused.
    pub cut: Counter,
}

impl GatewayConfig {
    /// Ten seconds for an operation, the usual limits, no token, plain HTTP.
    #[must_use]
    pub fn new(address: String, history: History, first: ReplicaId) -> Self {
        let call_timeout = Duration::from_secs(10);
        Self {
            address,
            history,
            first,
            learner: None,
            vouching: None,
            access: Access::Open,
            rules: DoorRules::default(),
            call_timeout,
            limits: RestLimits::default(),
            cut: Counter::default(),
        }
    }
}

/// Error that keeps a gateway from starting.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address} for the gateway: {source}; write an IP address of this machine and a free port into `gateway`"
    )]
    Listen {
        /// Address from the configuration, as `address:port`.
        address: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The token is not taken.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The system gave no threads.
    #[error("cannot start the gateway's threads: {0}")]
    Threads(io::Error),
    /// The client did not start.
    #[error(transparent)]
    Client(#[from] NodeError),
}

/// A gateway that runs until it is dropped, from one epoch of its network to the next.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    connections: Arc<ConnectionLimiter>,
    runtime: Option<Runtime>,
}

impl Gateway {
    /// Listens, and begins to connect to the committee as a client with a new key. Not to be called
    /// from a tokio task: it brings a runtime of its own.
    ///
    /// # Errors
    /// Why it cannot start.
    pub fn start(config: &GatewayConfig) -> Result<Self, GatewayError> {
        let users = config.access.load::<User>()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("gateway")
            .enable_all()
            .build()
            .map_err(GatewayError::Threads)?;
        let failed = |source| GatewayError::Listen { address: config.address.clone(), source };
        let listener = runtime.block_on(TcpListener::bind(&config.address)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let client = ClientConfig {
            learner: config.learner.clone(),
            call_timeout: config.call_timeout,
            ..Connection::config_after(config.history.clone(), config.first, check_answer)
        };
        let client = match &config.vouching {
            Some(identity) => client.vouched_by(identity),
            None => client,
        };
        let connection = Connection::open(&client)?;
        let (tls, is_open) = (config.rules.tls.is_some(), users.is_none());
        let names = ["users of the gateway", "certificate of the gateway"];
        let files = (users.clone(), &config.rules);
        reload_on_hangups(&runtime, names, files).map_err(GatewayError::Threads)?;
        let pages = router(KvClient::new(connection), users, config.limits);
        let connections = ConnectionLimiter::new(config.limits.connections, config.cut.clone());
        let (limiter, rules) = (Arc::clone(&connections), config.rules.clone());
        runtime.spawn(serve(listener, pages, config.limits, (limiter, rules)));
        tracing::info!(%address, token = !is_open, tls, "gateway started");
        Ok(Self { address, connections, runtime: Some(runtime) })
    }

    /// Address that the gateway listens on, with the port that the system gave.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts connections that give way, or are refused, with another counter from now on.
    pub fn count_cuts_with(&self, cut: Counter) {
        self.connections.count_with(cut);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Serves pages on as many connections as the limiter lets in, for ever.
pub(crate) async fn serve(
    listener: TcpListener,
    pages: Router,
    limits: RestLimits,
    (connections, rules): (Arc<ConnectionLimiter>, DoorRules),
) {
    let acceptor = Acceptor::new(listener, connections, limits.connections.total);
    let rules = DoorRules { head_timeout: limits.head_timeout, ..rules };
    http_server::serve(acceptor, pages, rules).await;
}
