//! The running ledger, as the environment names it, and what alloy has to work with it: the fillers
//! that it recommends, and no other intervals than its own.

use alloy::network::TransactionBuilder;
use alloy::primitives::{Address, U256, utils::Unit};
use alloy::providers::{Provider, ProviderBuilder, WsConnect};
use alloy::rpc::types::{TransactionReceipt, TransactionRequest};
use alloy::signers::local::PrivateKeySigner;
use tokio::sync::Mutex;

alloy::sol! {
    #[sol(rpc)]
    #[derive(Debug, PartialEq)]
    Token,
    "../../contracts/artifacts/Token.json"
}

/// The tenth of the funded accounts is this suite's.
const FUNDER: usize = 9;

/// Tests run at the same time, and the funder sends one transaction after the other.
static FUNDING: Mutex<()> = Mutex::const_new(());

fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: see clients/README.md"))
}

fn client(signer: PrivateKeySigner) -> impl Provider + Clone {
    let url = setting("QUORATE_RPC").parse().expect("QUORATE_RPC is a URL");
    ProviderBuilder::new().wallet(signer).connect_http(url)
}

/// Over a WebSocket, and without a key.
pub async fn socket() -> impl Provider {
    let connect = WsConnect::new(setting("QUORATE_WS"));
    ProviderBuilder::new().connect_ws(connect).await.expect("QUORATE_WS answers")
}

/// An account that is new and has an ether, with a client that signs for it.
pub async fn account() -> (Address, impl Provider + Clone) {
    let keys = setting("QUORATE_KEYS");
    let key = keys.split(',').nth(FUNDER).expect("QUORATE_KEYS holds ten keys");
    let signer = PrivateKeySigner::random();
    let address = signer.address();
    let _alone = FUNDING.lock().await;
    let funder = client(key.parse().expect("a private key"));
    let receipt = send(&funder, pay(address, Unit::ETHER.wei())).await;
    assert!(receipt.status());
    (address, client(signer))
}

/// The address of an account that nobody has used.
pub fn stranger() -> Address {
    PrivateKeySigner::random().address()
}

pub fn pay(to: Address, value: U256) -> TransactionRequest {
    TransactionRequest::default().with_to(to).with_value(value)
}

/// Sends what the client fills in, and waits for its receipt.
pub async fn send(client: &impl Provider, request: TransactionRequest) -> TransactionReceipt {
    let sent = client.send_transaction(request).await.expect("it is taken");
    sent.get_receipt().await.expect("it is carried out")
}
