//! `quorate kv`: the key-value store of a running committee.

mod bench;
mod token;

use super::client_files::{ClientFiles, RENEW};
use crate::failure::{CommandResult, Failure};
use crate::output;
use bytes::Bytes;
use clap::{Args, Subcommand};
use quorate_gateway::receipt::ReceiptFile;
use quorate_gateway::{
    CallError, Certified, ClientConfig, Completed, Connection, KvClient, KvError, check_answer,
};
use quorate_ledger::kv::{Operation, Output, Page, Scan, Step, StepOutput};
use quorate_node::LearnerAddress;
use quorate_node::proof_file::ProofFile as _;
use quorate_types::{History, ReplicaId};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Read and write the key-value store of a running committee.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate testnet net --service kv                 a committee of four; run its validators, then:\n  \
    quorate kv --net net put colour green\n  \
    quorate kv --net net get colour                  a read in the order: the latest value\n  \
    quorate kv --net net get colour --certified      a proof by one validator, and its age\n  \
    quorate kv --net net cas colour --expected green --new blue --receipt colour.json\n  \
    quorate receipt verify colour.json --net net     offline, by the committee file\n  \
    quorate kv --net net scan --from a --to n\n  \
    quorate kv --net net bench\n  \
    quorate kv token add tokens.toml till --rights write --prefix till/    a gateway's user\n\n\
    Exit code 0: done. 1: no answer, or the store says no: there is no value, or a\n\
    compare-and-swap found another one. 2: the options are wrong.")]
pub(crate) struct Options {
    #[command(flatten)]
    files: ClientFiles,
    /// Longest wait for an operation, in seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS", global = true,
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    timeout: u64,
    /// Index of the validator that is asked first
    #[arg(long, default_value_t = 0, value_name = "INDEX", global = true)]
    first: u16,
    /// Read and show keys and values in hexadecimal
    #[arg(long, global = true)]
    hex: bool,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the value of a key
    Get {
        /// Key to read, as text
        key: String,
        #[command(flatten)]
        read: Read,
    },
    /// Set the value of a key
    Put {
        /// Key to write, as text
        key: String,
        /// Value to write, as text
        value: String,
        #[command(flatten)]
        keep: Keep,
    },
    /// Remove a key and its value
    Delete {
        /// Key to remove, as text
        key: String,
        #[command(flatten)]
        keep: Keep,
    },
    /// Change a value if it is the expected one
    Cas {
        /// Key to write, as text
        key: String,
        /// Value that the key must have
        #[arg(long, value_name = "VALUE", required_unless_present = "absent")]
        expected: Option<String>,
        /// Require that the key has no value
        #[arg(long, conflicts_with = "expected")]
        absent: bool,
        /// Value to write instead
        #[arg(long, value_name = "VALUE", required_unless_present = "remove")]
        new: Option<String>,
        /// Remove the key instead of writing a value
        #[arg(long, conflicts_with = "new")]
        remove: bool,
        #[command(flatten)]
        keep: Keep,
    },
    /// Show keys in order, with their values
    Scan {
        /// First key of the range
        #[arg(long, value_name = "KEY", default_value = "")]
        from: String,
        /// First key beyond the range; by default the range has no end
        #[arg(long, value_name = "KEY")]
        to: Option<String>,
        /// Most keys to show, up to 1,000
        #[arg(long, default_value_t = 100, value_name = "COUNT")]
        limit: u32,
        #[command(flatten)]
        read: Read,
    },
    /// Put values from several callers at once, and show the rate
    Bench(bench::Options),
    #[command(subcommand)]
    Token(token::Token),
}

/// Ways of reading a key.
#[derive(Clone, Debug, Args)]
struct Read {
    /// Ask one validator for a proof instead of reading in the order: quicker, and a little old
    #[arg(long)]
    certified: bool,
    /// Ask this learner first, and validators only when it does not answer
    #[arg(long, value_name = "KEY@ADDRESS", requires = "certified")]
    learner: Option<LearnerAddress>,
}

/// Evidence of a write to keep.
#[derive(Debug, Args)]
struct Keep {
    /// File to write a receipt to, which proves offline what was done
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        if let Command::Token(token) = &self.command {
            return token.run(self.json);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(Failure::run)?.block_on(self.call())
    }

    async fn call(&self) -> CommandResult {
        let key = self.files.vouching()?;
        let history = self.files.known_epochs()?;
        let members = history.committee().size();
        if usize::from(self.first) >= members {
            return Err(Failure::usage(format!("--first is an index of 0 to {}", members - 1)));
        }
        let config = ClientConfig {
            call_timeout: Duration::from_secs(self.timeout),
            learner: self.learner().cloned(),
            ..Connection::config_after(history, ReplicaId(self.first), check_answer)
        };
        if let Command::Bench(options) = &self.command {
            return options.run(config, key.as_ref(), self.json).await;
        }
        let config = match &key {
            Some(key) => config.vouched_by(key),
            None => config,
        };
        let store = KvClient::new(Connection::open(&config).map_err(Failure::run)?);
        let applied = self.apply(&store).await;
        let kept = self.files.keep_epochs(&config.history, &store.connection().history());
        applied.and(kept)
    }

    fn learner(&self) -> Option<&LearnerAddress> {
        match &self.command {
            Command::Get { read, .. } | Command::Scan { read, .. } => read.learner.as_ref(),
            _ => None,
        }
    }

    async fn apply(&self, store: &KvClient) -> CommandResult {
        match &self.command {
            Command::Get { key, read } => {
                let key = self.bytes(key)?;
                let certified = if read.certified {
                    store.get_certified(key).await.map(Read::of)
                } else {
                    store.get(key).await.map(|value| (value, None))
                };
                let (value, age) = certified.map_err(explain)?;
                self.show_value(value, age)
            }
            Command::Scan { from, to, limit, read } => {
                let to = to.as_ref().map(|to| self.bytes(to)).transpose()?;
                let scan = Scan { from: self.bytes(from)?, to, limit: *limit };
                let certified = if read.certified {
                    store.scan_certified(scan).await.map(Read::of)
                } else {
                    store.scan(scan).await.map(|page| (page, None))
                };
                let (page, age) = certified.map_err(explain)?;
                self.show_page(&page, age);
                Ok(())
            }
            Command::Put { key, value, keep } => {
                let step = Step::put(self.bytes(key)?, self.bytes(value)?);
                self.write(store, step, keep).await
            }
            Command::Delete { key, keep } => {
                self.write(store, Step::delete(self.bytes(key)?), keep).await
            }
            Command::Cas { key, expected, new, keep, .. } => {
                let expected = expected.as_ref().map(|value| self.bytes(value)).transpose()?;
                let new = new.as_ref().map(|value| self.bytes(value)).transpose()?;
                let step = Step::compare_and_swap(self.bytes(key)?, expected, new);
                self.write(store, step, keep).await
            }
            Command::Bench(_) | Command::Token(_) => {
                unreachable!("it has connections of its own, or needs none")
            }
        }
    }

    async fn write(&self, store: &KvClient, step: Step, keep: &Keep) -> CommandResult {
        let (output, done) = store.execute(&Operation::Step(step)).await.map_err(explain)?;
        let receipt = keep.receipt.as_deref();
        if let Some(path) = receipt {
            write_receipt(path, &done, &store.connection().history())?;
        }
        let Output::Step(output) = output else {
            return Err(Failure::run("the committee's service is not the key-value store"));
        };
        self.show_write(&output, &done, receipt)
    }

    fn bytes(&self, text: &str) -> Result<Bytes, Failure> {
        if !self.hex {
            return Ok(Bytes::copy_from_slice(text.as_bytes()));
        }
        let refused = |error| Failure::usage(format!("'{text}' is not hexadecimal: {error}"));
        hex::decode(text).map(Bytes::from).map_err(refused)
    }

    fn text(&self, bytes: &Bytes) -> String {
        if self.hex { hex::encode(bytes) } else { bytes.escape_ascii().to_string() }
    }

    fn show_value(&self, value: Option<Bytes>, age: Option<(u64, u64)>) -> CommandResult {
        let found = value.is_some();
        if self.json {
            output::json(&with_age(json!({ "value_hex": value.map(hex::encode) }), age));
        } else if let Some(value) = value {
            self.print(&value);
            say_age(age);
        }
        if found { Ok(()) } else { Err(Failure::run("there is no such key")) }
    }

    /// A value as it is, for whoever reads it from a pipe.
    fn print(&self, value: &Bytes) {
        if self.hex {
            output::line(&hex::encode(value));
        } else {
            let mut stdout = std::io::stdout().lock();
            // A reader that went away is no error.
            let _ = stdout.write_all(value).and_then(|()| stdout.write_all(b"\n"));
        }
    }

    fn show_page(&self, page: &Page, age: Option<(u64, u64)>) {
        if self.json {
            let entry = |entry: &quorate_ledger::kv::Entry| {
                json!({
                    "key_hex": hex::encode(&entry.key),
                    "value_hex": hex::encode(&entry.value),
                })
            };
            let entries: Vec<Value> = page.entries.iter().map(entry).collect();
            output::json(&with_age(json!({ "entries": entries, "more": page.more }), age));
            return;
        }
        for entry in &page.entries {
            output::line(&format!("{}\t{}", self.text(&entry.key), self.text(&entry.value)));
        }
        if page.more {
            eprintln!("there are more: go on with --from and the last key followed by a byte 00");
        }
        say_age(age);
    }

    fn show_write(
        &self,
        output: &StepOutput,
        done: &Completed,
        receipt: Option<&Path>,
    ) -> CommandResult {
        let (text, swapped) = match output {
            StepOutput::Done { replaced: true } => ("there was a value before".to_owned(), true),
            StepOutput::Done { replaced: false } => ("there was no value before".to_owned(), true),
            StepOutput::Swapped => ("swapped".to_owned(), true),
            StepOutput::NotSwapped { actual: Some(actual) } => {
                (format!("not swapped: the value is '{}'", self.text(actual)), false)
            }
            StepOutput::NotSwapped { actual: None } => {
                ("not swapped: there is no value".to_owned(), false)
            }
            StepOutput::Value(_) => ("read".to_owned(), true),
        };
        if self.json {
            output::json(&json!({
                "height": done.height.0,
                "result": text,
                "changed": swapped,
                "certified": done.receipt.is_some(),
                "receipt": receipt,
            }));
        } else if swapped {
            output::line(&format!("done at height {}: {text}", done.height.0));
            if let Some(path) = receipt {
                output::line(&format!("receipt: {}", path.display()));
            }
        }
        if swapped { Ok(()) } else { Err(Failure::run(text)) }
    }
}

impl Read {
    /// A certified value with its height and its age in milliseconds.
    fn of<T>(Certified { value, height, age }: Certified<T>) -> (T, Option<(u64, u64)>) {
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        (value, Some((height.0, age_ms)))
    }
}

fn with_age(mut object: Value, age: Option<(u64, u64)>) -> Value {
    if let Some((height, age_ms)) = age {
        object["height"] = json!(height);
        object["age_ms"] = json!(age_ms);
    }
    object
}

/// Beside the value, not in it.
fn say_age(age: Option<(u64, u64)>) {
    if let Some((height, age_ms)) = age {
        eprintln!("proven of height {height}, which was proposed {age_ms} ms ago");
    }
}

fn write_receipt(path: &Path, done: &Completed, history: &History) -> CommandResult {
    let Some((receipt, _)) = &done.receipt else {
        return Err(Failure::run(
            "it was done, and there is no receipt: the committee answered without a certificate. \
             There are receipts where its committee file says execution_certificates = true",
        ));
    };
    let file = ReceiptFile::new(receipt, history).map_err(Failure::run)?;
    let failed = |error| format!("it was done, and {} was not written: {error}", path.display());
    fs::write(path, file.to_text()).map_err(|error| Failure::run(failed(error)))
}

fn explain(error: KvError) -> Failure {
    match error {
        KvError::Form(error) => Failure::usage(error),
        KvError::Call(CallError::Timeout(_)) => Failure::run(format!(
            "{error}. Are more than two thirds of the validators running? See `quorate status`"
        )),
        KvError::Call(CallError::Outdated(_)) => Failure::run(format!("{error}. {RENEW}")),
        error => Failure::run(error),
    }
}
