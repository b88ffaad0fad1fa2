//! Ethereum's JSON-RPC beside a validator of the EVM ledger, over HTTP and WebSocket on one port,
//! and the explorer's page on the same.
//!
//! Whatever reads the state reads a view of the validator beside it, never its execution thread;
//! whatever is sent goes into the order through the committee, as any client's operation.
//! `docs/EVM.md` lists the methods and says where they differ from other nodes'.
//!
//! **Whom to trust.** A caller trusts this validator's word, as with any node. What needs no trust:
//! `eth_getProof`, `quorate_getReceipt` and `quorate_getCertificate` carry the committee's
//! signatures.

mod access;
mod arguments;
mod beside;
mod chain;
mod computing;
mod context;
mod convert;
mod dry_runs;
mod error;
mod fees;
mod filters;
mod forks;
mod internal_calls;
mod methods;
mod module;
mod otterscan;
mod pages;
mod pool;
mod quorate;
mod simulate;
mod subscriptions;
mod tokens;
mod traces;
mod txpool;

pub use beside::{Description, Run};

use crate::Connection;
use access::{CallRules, RpcUsers};
use beside::Beside;
use chain::Chain;
use context::Context;
use jsonrpsee::RpcModule;
use jsonrpsee::server::middleware::rpc::RpcServiceBuilder;
use jsonrpsee::server::{BatchRequestConfig, PingConfig, Server, ServerConfig, stop_channel};
use pool::Pool;
use prometheus_client::metrics::counter::Counter;
use quorate_crypto::IdentitySecret;
use quorate_ledger::evm::{Genesis, Query, UnderWayQuery};
use quorate_node::NodeError;
use quorate_node::connections::{Acceptor, ConnectionLimiter, ConnectionLimits};
use quorate_node::http_access::{Access, DoorUser, TokenError, reload_on_hangups};
use quorate_node::http_server::{self, DoorRules};
use quorate_types::History;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Threads that move bytes.
const THREADS: usize = 1;

/// Most subscriptions of a connection, bytes of a request, bytes of an answer, calls of a
/// batch.
const SUBSCRIPTIONS_MAX: u32 = 64;
const REQUEST_BYTES_MAX: u32 = 4 << 20;
const ANSWER_BYTES_MAX: u32 = 64 << 20;
const BATCH_MAX: u32 = 1_000;

/// Messages to a subscriber that wait until it reads them; those that follow wait in the state.
const MESSAGES_UNREAD_MAX: u32 = 64;

/// Longest silence of a subscriber that is asked for a sign of life.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// Configuration of a JSON-RPC server beside a validator.
#[derive(Clone, Debug)]
pub struct EthereumConfig {
    /// `address:port` to listen on.
    pub address: String,
    /// Epochs of the network up to the one whose committee orders the transactions.
    pub history: History,
    /// Identity that vouches for the server, where members let in listed clients alone: that of the
    /// validator beside it.
    pub vouching: Arc<IdentitySecret>,
    /// Genesis of the ledger, which fixes chain id, gas limit and base fee.
    pub genesis: Arc<Genesis>,
    /// Connections at once: the least recently used gives way to one more.
    pub connections: ConnectionLimits,
    /// Counter of connections that gave way to others or were refused.
    pub cut: Counter,
    /// Who is let in.
    pub access: Access,
    /// Certificate of the server, and rates of those who ask.
    pub rules: DoorRules,
}

/// Error that keeps a server from starting.
#[derive(Debug, thiserror::Error)]
pub enum EthereumError {
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address} for JSON-RPC: {source}; write an IP address of this machine and a free port into `gateway`"
    )]
    Listen {
        /// Address from the configuration, as `address:port`.
        address: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The tokens are not taken.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The system gave no threads.
    #[error("cannot start the threads of JSON-RPC: {0}")]
    Threads(io::Error),
    /// The client did not start.
    #[error(transparent)]
    Client(#[from] NodeError),
}

/// A server that runs until it is dropped, from one run of the validator beside it to the next.
#[derive(Debug)]
pub struct Ethereum {
    address: SocketAddr,
    beside: Arc<Beside>,
    connections: Arc<ConnectionLimiter>,
    runtime: Option<Runtime>,
}

impl Ethereum {
    /// Listens, and begins to connect to the committee as a client with a new key. Not to be called
    /// from a tokio task: it brings a runtime of its own.
    ///
    /// # Errors
    /// Why it cannot start.
    pub fn start(config: &EthereumConfig, run: &Run) -> Result<Self, EthereumError> {
        let users = config.access.load::<DoorUser>()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(computing::READERS)
            .thread_name("json-rpc")
            .enable_all()
            .build()
            .map_err(EthereumError::Threads)?;
        follow_arrivals(run);
        let failed = |source| EthereumError::Listen { address: config.address.clone(), source };
        let context = context(config, run)?;
        let (pool, beside) = (Arc::clone(&context.pool), Arc::clone(&context.chain.beside));
        let connections = ConnectionLimiter::new(config.connections, config.cut.clone());
        let listening = listen(config, Arc::clone(&connections), (users.clone(), context));
        let (serving, address) = runtime.block_on(listening).map_err(failed)?;
        let has_token = users.is_some();
        let names = ["users of JSON-RPC", "certificate of JSON-RPC"];
        let files = (users, &config.rules);
        reload_on_hangups(&runtime, names, files).map_err(EthereumError::Threads)?;
        runtime.spawn(serving);
        runtime.spawn(pool.follow());
        runtime.spawn(Arc::clone(&beside).follow(run.reading.heights()));
        let (chain_id, tls) = (config.genesis.chain_id, config.rules.tls.is_some());
        tracing::info!(%address, chain_id, token = has_token, tls, "JSON-RPC started");
        Ok(Self { address, beside, connections, runtime: Some(runtime) })
    }

    /// Lets go of the state, once nobody reads it any more: the validator's run is over. Until the
    /// next one begins, whatever asks for the state is told to try again.
    pub fn end_run(&self) {
        self.beside.end_run();
    }

    /// Goes on with the next run of the validator. Connections, subscriptions and filters stay.
    pub fn begin_run(&self, run: Run) {
        let heights = run.reading.heights();
        follow_arrivals(&run);
        self.beside.begin_run(run);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(Arc::clone(&self.beside).follow(heights));
        }
    }

    /// Counts connections that give way, or are refused, with another counter from now on.
    pub fn count_cuts_with(&self, cut: Counter) {
        self.connections.count_with(cut);
    }

    /// Address that the server listens on, with the port that the system gave.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Ethereum {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_millis(200));
        }
    }
}

/// Has the ledger note what comes from now on: it does when somebody asks.
fn follow_arrivals(run: &Run) {
    let ask = Query::UnderWay(UnderWayQuery::Since(None));
    // Whoever asks later is told what is wrong.
    drop(run.reading.query(None, &ask.encode()));
}

fn context(config: &EthereumConfig, run: &Run) -> Result<Context, NodeError> {
    let (history, first) = (config.history.clone(), run.description.validator);
    let (chain, genesis) = (Chain { beside: Beside::new(run) }, Arc::clone(&config.genesis));
    let check = quorate::proof_check(Arc::clone(&chain.beside));
    let connection = Connection::config_after(history, first, check).vouched_by(&config.vouching);
    let connection = Connection::open(&connection)?;
    Ok(Context {
        pool: Pool::new(connection.clone(), chain.clone(), Arc::clone(&genesis)),
        chain,
        genesis,
        filters: filters::Filters::default(),
        computing: computing::Computing::default(),
        connection,
    })
}

/// Future that serves for ever.
type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

async fn listen(
    config: &EthereumConfig,
    limiter: Arc<ConnectionLimiter>,
    (users, context): (RpcUsers, Context),
) -> io::Result<(Serving, SocketAddr)> {
    let limits = ServerConfig::builder()
        .max_connections(u32::try_from(config.connections.total).unwrap_or(u32::MAX))
        .max_subscriptions_per_connection(SUBSCRIPTIONS_MAX)
        .max_request_body_size(REQUEST_BYTES_MAX)
        .max_response_body_size(ANSWER_BYTES_MAX)
        .set_message_buffer_capacity(MESSAGES_UNREAD_MAX)
        .set_batch_request_config(BatchRequestConfig::Limit(BATCH_MAX))
        .set_id_provider(subscriptions::Numbers)
        .enable_ws_ping(PingConfig::new().inactive_limit(SILENCE_MAX))
        .build();
    let listener = TcpListener::bind(&config.address).await?;
    let address = listener.local_addr()?;
    let mut module = RpcModule::new(context);
    methods::register(&mut module).expect("each name once");
    subscriptions::register(&mut module).expect("each name once");
    let (stopped, handle) = stop_channel();
    let calls_taken = CallRules { rates: Arc::clone(&config.rules.rates) };
    let calls = Server::builder()
        .set_config(limits)
        .set_http_middleware(tower::ServiceBuilder::new().layer(pages::Pages { users }))
        .set_rpc_middleware(RpcServiceBuilder::new().layer(calls_taken))
        .to_service_builder()
        .build(module, stopped);
    let acceptor = Acceptor::new(listener, limiter, config.connections.total);
    let rules = config.rules.clone();
    let serving = async move {
        // Calls end when it is dropped.
        let _handle = handle;
        http_server::serve(acceptor, calls, rules).await;
    };
    Ok((Box::pin(serving), address))
}
