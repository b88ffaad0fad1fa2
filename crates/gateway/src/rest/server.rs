//! The gateway on its own threads, behind a listening socket.

use super::{RestLimits, Token, TokenError, router};
use crate::{ClientConfig, Connection, KvClient, check_answer};
use axum::Router;
use prometheus_client::metrics::counter::Counter;
use quorate_node::connections::{Acceptor, ConnectionLimiter};
use quorate_node::{LearnerAddress, NodeError, http_server};
use quorate_types::{Committee, ReplicaId};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
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
    /// Committee that executes the operations.
    pub committee: Arc<Committee>,
    /// The member that it sends to first.
    pub first: ReplicaId,
    /// A learner that is asked questions before members are.
    pub learner: Option<LearnerAddress>,
    /// A file with the token that callers show. `None`: everybody is let in.
    pub token_file: Option<PathBuf>,
    /// Time until an operation is answered with 504; it may take effect all the same.
    pub call_timeout: Duration,
    /// Limits on the work and the time that callers can take.
    pub limits: RestLimits,
    /// Counter of connections that gave way to others or were refused.
    pub cut: Counter,
}

impl GatewayConfig {
    /// Ten seconds for an operation, the usual limits, no token.
    #[must_use]
    pub fn new(address: String, committee: Arc<Committee>, first: ReplicaId) -> Self {
        let call_timeout = Duration::from_secs(10);
        Self {
            address,
            committee,
            first,
            learner: None,
            token_file: None,
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

/// A gateway that runs until it is dropped.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Gateway {
    /// Listens, and begins to connect to the committee as a client with a new key. Not to be called
    /// from a tokio task: it brings a runtime of its own.
    ///
    /// # Errors
    /// Why it cannot start.
    pub fn start(config: &GatewayConfig) -> Result<Self, GatewayError> {
        let token = config.token_file.as_deref().map(Token::read).transpose()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("gateway")
            .enable_all()
            .build()
            .map_err(GatewayError::Threads)?;
        let failed = |source| GatewayError::Listen { address: config.address.clone(), source };
        let listener = runtime.block_on(TcpListener::bind(&config.address)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let connection = Connection::open(&ClientConfig {
            learner: config.learner.clone(),
            call_timeout: config.call_timeout,
            ..Connection::config(Arc::clone(&config.committee), config.first, check_answer)
        })?;
        let pages = router(KvClient::new(connection), token, config.limits);
        runtime.spawn(serve(listener, pages, config.limits, config.cut.clone()));
        tracing::info!(%address, token = token.is_some(), "gateway started");
        Ok(Self { address, runtime: Some(runtime) })
    }

    /// Address that the gateway listens on, with the port that the system gave.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Serves pages to so many at once, for ever; `cut` counts connections that gave way.
pub(crate) async fn serve(listener: TcpListener, pages: Router, limits: RestLimits, cut: Counter) {
    let connections = ConnectionLimiter::new(limits.connections, cut);
    let acceptor = Acceptor::new(listener, connections, limits.connections.total);
    http_server::serve(acceptor, pages, limits.head_timeout).await;
}
