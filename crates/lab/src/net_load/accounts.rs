//! Accounts that send the transactions of a load, funded by one that has ether.

use super::NetLoadError;
use super::clients::Clients;
use crate::load::{EtherMix, send_ether};
use bytes::Bytes;
use quorate_ledger::evm::{Address, Genesis, ProofOf, Signer, U256, verify_account};
use quorate_node::testnet::system_random;
use quorate_node::{CallResult, Completion};
use quorate_types::{Outcome, Request};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Wei that each account gets: a thousandth of an ether, which pays for millions of transfers.
const EACH_WEI: u64 = 1_000_000_000_000_000;

/// Time for one step.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Interval at which an interruption is noticed.
const GLANCE: Duration = Duration::from_millis(50);

/// Account that pays for those of a load.
#[derive(Debug)]
pub struct Funds {
    /// Signer for the account.
    pub signer: Signer,
    /// Identifier of the chain.
    pub chain_id: u64,
}

impl Funds {
    /// A development account that this chain began with: each load of several takes another.
    ///
    /// # Errors
    /// A sentence that says what to do, where there are none or too few.
    pub fn development(genesis: &Genesis, index: usize) -> Result<Self, String> {
        let funded = |signer: &Signer| genesis.accounts.contains_key(&signer.address());
        let signers = Signer::development().into_iter().map(|(signer, _)| signer).filter(funded);
        let signers: Vec<Signer> = signers.collect();
        let count = signers.len();
        match signers.into_iter().nth(index) {
            Some(signer) => Ok(Self { signer, chain_id: genesis.chain_id }),
            None if count == 0 => {
                Err("the genesis has no development accounts: name the key of an \
                                       account that has ether by --funds"
                    .to_owned())
            }
            None => Err(format!(
                "the genesis has {count} development accounts, one for each load: name keys of \
                 accounts that have ether by --funds"
            )),
        }
    }

    /// An account by its secret key, in hexadecimal.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn of_key(text: &str, chain_id: u64) -> Result<Self, String> {
        let text = text.trim();
        let bytes = hex::decode(text.strip_prefix("0x").unwrap_or(text));
        let bytes: Option<[u8; 32]> = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        let signer = bytes.and_then(Signer::from_bytes);
        let signer = signer.ok_or("it holds no secret key of 64 hexadecimal digits")?;
        Ok(Self { signer, chain_id })
    }
}

/// Makes new accounts and gives each some ether; a load of their transactions.
pub(super) fn fund(
    funds: &Funds,
    count: usize,
    clients: &Clients,
    interrupted: &AtomicBool,
) -> Result<EtherMix, NetLoadError> {
    let accounts: Vec<Signer> = (0..count.max(1)).map(|_| new_signer()).collect();
    let nonce = nonce_of(funds.signer.address(), clients, interrupted)?;
    let addresses: Vec<Address> = accounts.iter().map(Signer::address).collect();
    for (batch, first) in
        addresses.chunks(Request::OPERATIONS_MAX).zip((nonce..).step_by(Request::OPERATIONS_MAX))
    {
        let send = |(nonce, to): (u64, &Address)| {
            let amount = U256::from(EACH_WEI);
            send_ether(&funds.signer, funds.chain_id, nonce, *to, amount)
        };
        order((first..).zip(batch).map(send).collect(), clients, interrupted)?;
    }
    Ok(EtherMix::new(funds.chain_id, accounts))
}

/// Number of the next transaction of an account, by a proof.
fn nonce_of(
    address: Address,
    clients: &Clients,
    interrupted: &AtomicBool,
) -> Result<u64, NetLoadError> {
    let of = ProofOf { address, slots: Vec::new(), height: None };
    let failed = |reason: String| NetLoadError::Funds(reason);
    let begun = Instant::now();
    loop {
        let taken = clients.client.query(0, 0, of.encode().into());
        taken.map_err(|error| failed(error.to_string()))?;
        let reason = match next(clients, interrupted)?.result {
            CallResult::Answered(Ok((proven, certificate))) => {
                let shown = verify_account(certificate.header.state, &of, &proven);
                let account = shown.map_err(|error| failed(error.to_string()))?.account;
                return Ok(account.map_or(0, |account| account.nonce));
            }
            CallResult::Answered(Err(reason)) => reason,
            other => return Err(failed(format!("a question was not answered: {other:?}"))),
        };
        if begun.elapsed() >= TIMEOUT {
            return Err(failed(reason));
        }
        // Nothing is proven before something is certified: a transaction that is none will do.
        order_any(vec![Bytes::from_static(b"none")], clients, interrupted)?;
    }
}

/// Has transactions ordered in their order; none may be refused.
fn order(
    operations: Vec<Bytes>,
    clients: &Clients,
    interrupted: &AtomicBool,
) -> Result<(), NetLoadError> {
    for result in order_any(operations, clients, interrupted)? {
        match result {
            CallResult::Completed(done) => {
                if let Outcome::Refused(reason) = done.outcome {
                    let text = format!(
                        "a transfer was refused: {}. Does another load use the same account?",
                        String::from_utf8_lossy(&reason)
                    );
                    return Err(NetLoadError::Funds(text));
                }
            }
            other => {
                return Err(NetLoadError::Funds(format!("a transfer was not made: {other:?}")));
            }
        }
    }
    Ok(())
}

/// Has operations of one request ordered, and waits for what came of each.
fn order_any(
    operations: Vec<Bytes>,
    clients: &Clients,
    interrupted: &AtomicBool,
) -> Result<Vec<CallResult>, NetLoadError> {
    let count = operations.len();
    let operations = operations.into_iter().map(|operation| (0, operation)).collect();
    let taken = clients.client.submit_many(0, operations);
    taken.map_err(|error| NetLoadError::Funds(error.to_string()))?;
    (0..count).map(|_| next(clients, interrupted).map(|done| done.result)).collect()
}

fn next(clients: &Clients, interrupted: &AtomicBool) -> Result<Completion, NetLoadError> {
    let begun = Instant::now();
    while begun.elapsed() < TIMEOUT {
        if let Ok(completion) = clients.client.completions().recv_timeout(GLANCE) {
            return Ok(completion);
        }
        clients.check()?;
        if interrupted.load(Ordering::Relaxed) {
            return Err(NetLoadError::Interrupted);
        }
    }
    let seconds = TIMEOUT.as_secs();
    Err(NetLoadError::Funds(format!("the committee answered nothing for {seconds} s")))
}

fn new_signer() -> Signer {
    loop {
        let mut bytes = [0; 32];
        system_random(&mut bytes);
        if let Some(signer) = Signer::from_bytes(bytes) {
            return signer;
        }
    }
}
