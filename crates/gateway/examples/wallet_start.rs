//! Time and memory that a wallet takes to start after so many finished payments:
//!
//! ```sh
//! cargo run -p quorate-gateway --example wallet_start -- 100000
//! ```
//!
//! The certificates are none, which nobody checks in a wallet's own book.

use quorate_crypto::{Aggregate, Bitmap, Certificate, IdentitySecret, KeyFile, SchemeKind};
use quorate_gateway::wallet::{Order, Purpose, Wallet};
use quorate_payments::{
    AuthorityEntry, Endowment, Network, NetworkFile, PayScheme, PaymentOutcome, QuorumVotes,
    TxCertificate,
};
use quorate_types::Epoch;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [open, book, payments] if open == "open" => start(Path::new(book), payments.parse()?),
        [payments] => {
            let folder = tempfile::tempdir()?;
            let book = folder.path().join("wallet");
            let begun = Instant::now();
            make(&book, payments.parse()?)?;
            println!(
                "made in {:.1} s, the book is {} bytes",
                begun.elapsed().as_secs_f64(),
                book.metadata()?.len()
            );
            let own = std::env::current_exe()?;
            Command::new(own).arg("open").arg(&book).arg(payments).status()?;
            Ok(())
        }
        _ => Err("say how many payments".into()),
    }
}

fn network() -> Result<Arc<Network>, Box<dyn Error>> {
    let entry = |index: u8| {
        let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[200 + index; 32]);
        AuthorityEntry::new(&keys.public(), vec![format!("127.0.0.1:{}", 1 + u16::from(index))])
    };
    let file = NetworkFile {
        name: "measured".to_owned(),
        network: None,
        epoch: Epoch(1),
        scheme: PayScheme::Plain,
        shards: 1,
        issuer: secret(100).public().to_string(),
        groups: None,
        genesis: vec![Endowment { owner: secret(1).public().to_string(), value: 1 << 40 }],
        authorities: (0..4).map(entry).collect(),
    };
    Ok(Arc::new(Network::load(&file)?))
}

fn secret(seed: u8) -> IdentitySecret {
    IdentitySecret::from_seed([seed; 32])
}

fn key(number: u64) -> String {
    format!("order {number}")
}

fn order(number: u64) -> Order {
    let purpose = Purpose::Pay { payee: secret(2).public(), value: 1 };
    Order { purpose, memo: Some(format!("invoice {number}")) }
}

fn make(book: &Path, payments: u64) -> Result<(), Box<dyn Error>> {
    Wallet::create(book, secret(1).public())?;
    let mut wallet = Wallet::open(book, network()?, secret(1))?;
    wallet.receive_genesis()?;
    let signers = Bitmap::from_indices(4, [0, 1, 2]);
    let certificate = Certificate { signers, aggregate: Aggregate(vec![7; 3 * 64]) };
    let votes = QuorumVotes::Signatures(certificate);
    let certificate = TxCertificate { epoch: Epoch(1), votes };
    for number in 0..payments {
        let begun = wallet.begin(&order(number), Some(&key(number)))?;
        wallet.end(begun.id, PaymentOutcome::Certified(Box::new(certificate.clone())))?;
    }
    Ok(())
}

fn start(book: &Path, payments: u64) -> Result<(), Box<dyn Error>> {
    let network = network()?;
    let before = resident_kib()?;
    let begun = Instant::now();
    let mut wallet = Wallet::open(book, network, secret(1))?;
    let (ms, kib) = (begun.elapsed().as_secs_f64() * 1e3, resident_kib()? - before);
    println!("a start: {ms:.1} ms, {kib} KiB of memory");
    let begun = Instant::now();
    wallet.begin(&order(payments / 2), Some(&key(payments / 2)))?;
    println!("an old key again: {:.3} ms", begun.elapsed().as_secs_f64() * 1e3);
    let begun = Instant::now();
    let lines = wallet.history()?.len();
    println!("all {lines} lines: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

/// Memory of this process that is resident, in KiB.
fn resident_kib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let digits = line.and_then(|line| line.split_whitespace().next());
    Ok(digits.ok_or("no resident memory is known here")?.parse()?)
}
