//! Price lists: the cost of every operation that a replica pays for, on one machine.

mod derived;

use crate::station::Station;
use crate::workload::Work;
use quorate_crypto::counts::OpCounts;
use serde::{Deserialize, Serialize};

/// Prices of operations on one core of a machine.
///
/// Every field says its unit: `_us` microseconds, `_ns` nanoseconds, both of one core working
/// alone. Lists are TOML files; a field that does not exist is refused, and so is one that is
/// missing. A list may also be made from another: `base` names it, `scale` is how much slower a
/// core is, and `change` holds the prices that are otherwise, in the units of this list and not
/// scaled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Name of the machine, for people.
    pub machine: String,
    /// The commit of this program that was measured, or where else the figures are from.
    pub commit: String,
    /// Date of the measurement.
    pub date: String,
    /// Notes that a reader must know: how figures were scaled, what was not measured.
    pub note: String,
    /// Cores of such a machine, each as quick as this list's.
    pub cores: u16,
    /// Time from waking a thread until it runs on a core that was idle, in microseconds: the core
    /// has to be woken as well. Nobody's core time.
    #[serde(default)]
    pub wake_delay_us: f64,
    /// Prices of Ed25519 signatures.
    pub ed25519: Ed25519Prices,
    /// Prices of BLS12-381 signatures.
    pub bls: BlsPrices,
    /// ECDSA on secp256k1, as transactions of the EVM ledger are signed.
    pub secp256k1: Secp256k1Prices,
    /// Prices of BLAKE3 hashes.
    pub hash: HashPrices,
    /// Prices of frames on connections.
    pub net: NetPrices,
    /// Prices of the machine's thread.
    pub machine_thread: MachinePrices,
    /// Execution of a service that does nothing, with its sessions.
    pub execution: ExecutionPrices,
    /// The log thread, and the disk under it.
    pub log: LogPrices,
    /// Prices of a client's session.
    pub client: ClientPrices,
    /// Cost of a station's thread having been asleep, in microseconds: the scheduler's part and its
    /// waker's, turning round for more before it sleeps, and caches that others used meanwhile.
    /// Charged each time that a station begins without having just ended something; under load,
    /// when jobs wait, it is not paid.
    pub wake_us: PerStation,
    /// Factor on the prices of a station's work that begins while all cores are taken: caches are
    /// others', and threads take turns; but frames share system calls, so it may be less than one.
    pub crowded: PerStation,
}

/// Prices of Ed25519 under ZIP-215.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ed25519Prices {
    /// Price of making a signature.
    pub sign_us: f64,
    /// Price of checking a signature, its key decompressed before.
    pub verify_us: f64,
    /// Decompressing a key to check with it.
    pub key_read_us: f64,
    /// A batch check, whatever is in it.
    pub batch_us: f64,
    /// Each signature in a batch, under a committee's tabulated keys.
    pub batch_item_us: f64,
    /// Each signature in a batch whose key is not tabulated, on top of that.
    pub batch_key_us: f64,
}

/// BLS12-381 with 48-byte signatures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlsPrices {
    /// Making a signature, the message hashed to the curve included.
    pub sign_us: f64,
    /// A pairing check of one message, its hash to the curve included.
    pub pairing_us: f64,
    /// Each further message in a product of pairings: hash, weights, Miller loop.
    pub further_message_us: f64,
    /// Price of decompressing a signature.
    pub point_read_us: f64,
    /// Checking that a signature is in the subgroup.
    pub subgroup_us: f64,
    /// Adding or subtracting a public key.
    pub key_addition_us: f64,
    /// Price of adding a share.
    pub share_addition_us: f64,
    /// Multiplying a share and its key by a random weight.
    pub weighted_point_us: f64,
    /// Multiplying a share by its coefficient, to interpolate threshold signatures.
    pub interpolated_point_us: f64,
}

/// Prices of ECDSA on secp256k1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secp256k1Prices {
    /// Price of recovering the signer from a signature.
    pub recover_us: f64,
}

/// Prices of BLAKE3 hashes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HashPrices {
    /// Price of a hash, whatever is hashed.
    pub call_us: f64,
    /// Price of each byte that is hashed.
    pub byte_ns: f64,
}

/// Frames over TLS and sockets, on the network's threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetPrices {
    /// Sending a frame to one peer: queue, record, system call.
    pub send_frame_us: f64,
    /// Each byte of it: encryption and the copy into the socket.
    pub send_byte_ns: f64,
    /// Price of receiving a frame.
    pub receive_frame_us: f64,
    /// Each byte of it: the copy out of the socket and decryption.
    pub receive_byte_ns: f64,
    /// Encoding or decoding a message, whatever is in it.
    pub codec_us: f64,
    /// Price of each byte of it.
    pub codec_byte_ns: f64,
}

/// Prices of handling one event on the machine's thread, hashes and signatures apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachinePrices {
    /// Price of a client's request.
    pub request_us: f64,
    /// Price of a body.
    pub body_us: f64,
    /// A body that became durable.
    pub stored_us: f64,
    /// Each request in a body that became durable or was decided.
    pub body_request_us: f64,
    /// Price of a proposal.
    pub proposal_us: f64,
    /// Price of a vote.
    pub vote_us: f64,
    /// A timeout or certificates.
    pub timeout_us: f64,
    /// Price of a combined certificate.
    pub combined_us: f64,
    /// Price of an executed height.
    pub executed_us: f64,
    /// A reply to a client, its signature apart.
    pub reply_us: f64,
    /// Any other event, and a timer.
    pub other_us: f64,
    /// Handing a message to the network, for each recipient.
    pub send_us: f64,
}

/// The execution thread, under the service that does nothing. Each price has its part of the
/// state's checkpoints, though another thread writes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionPrices {
    /// Price of a height without requests: one transaction of the state store.
    pub block_us: f64,
    /// A request: its session and its stored answer.
    pub request_us: f64,
    /// Price of an operation.
    pub operation_us: f64,
    /// Price of a height on top of that under the authenticated key-value store.
    pub kv_block_us: f64,
    /// A put into it, in the place of an operation.
    pub kv_put_us: f64,
    /// Price of a height on top of that under the EVM ledger.
    pub evm_block_us: f64,
    /// A transaction of it, in the place of an operation, its sender recovered before: the mean of
    /// one creation, twenty swaps and 79 transfers of tokens, with the state on disk.
    pub evm_tx_us: f64,
}

impl ExecutionPrices {
    /// Prices of a height and of an operation, in microseconds.
    #[must_use]
    pub fn of(&self, work: Work) -> (f64, f64) {
        match work {
            Work::Noop => (self.block_us, self.operation_us),
            Work::Kv => (self.block_us + self.kv_block_us, self.kv_put_us),
            Work::Evm => (self.block_us + self.evm_block_us, self.evm_tx_us),
        }
    }
}

/// Prices of the log's thread and the disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogPrices {
    /// A group: its system calls, its commit record.
    pub group_us: f64,
    /// Price of an entry in it.
    pub entry_us: f64,
    /// Each byte: checksum, copy into the page cache.
    pub byte_ns: f64,
    /// A sync that is alone on its disk, whatever was written. Only under `fsync`.
    pub sync_us: f64,
    /// Part of that for which the log's thread has a core. Only under `fsync`.
    #[serde(default)]
    pub sync_core_us: f64,
    /// A sync where many logs of one disk sync at once: the time by which the next is done later,
    /// at most `sync_us`. Only under `fsync`.
    pub sync_shared_us: f64,
    /// Megabytes a second that the disk takes. Only under `fsync`.
    pub disk_mb_s: f64,
}

/// Prices of a client's session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientPrices {
    /// An operation, from its submission to its completion.
    pub operation_us: f64,
    /// A request, its signature apart.
    pub request_us: f64,
    /// A reply, its check apart.
    pub reply_us: f64,
}

/// Figures, one for each station.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerStation {
    /// Figure of a network thread.
    pub net: f64,
    /// Figure of a thread that checks bodies and requests.
    pub checks: f64,
    /// Figure of the thread that checks votes.
    pub votes: f64,
    /// Figure of the machine's thread.
    pub machine: f64,
    /// Figure of the log's thread.
    pub log: f64,
    /// Figure of the execution's thread.
    pub execution: f64,
    /// Figure of the client's threads.
    pub client: f64,
}

impl PerStation {
    /// Same figure for all stations.
    #[must_use]
    pub const fn all(value: f64) -> Self {
        Self {
            net: value,
            checks: value,
            votes: value,
            machine: value,
            log: value,
            execution: value,
            client: value,
        }
    }

    /// Figure of one station.
    #[must_use]
    pub fn of(mut self, station: Station) -> f64 {
        *self.of_mut(station)
    }

    /// Figure of one station, to be set.
    pub fn of_mut(&mut self, station: Station) -> &mut f64 {
        match station {
            Station::Net => &mut self.net,
            Station::Checks => &mut self.checks,
            Station::Votes => &mut self.votes,
            Station::Machine => &mut self.machine,
            Station::Log => &mut self.log,
            Station::Execution => &mut self.execution,
            Station::Client => &mut self.client,
        }
    }
}

/// The lists that come with this program, by name.
const SHIPPED: [(&str, &str); 7] = [
    ("this-machine", include_str!("../prices/this-machine.toml")),
    ("t3.medium", include_str!("../prices/t3.medium.toml")),
    ("paper-bls-blst", include_str!("../prices/paper-bls-blst.toml")),
    ("paper-bls-fork", include_str!("../prices/paper-bls-fork.toml")),
    ("paper-bls-93ms", include_str!("../prices/paper-bls-93ms.toml")),
    ("m5d.8xlarge", include_str!("../prices/m5d.8xlarge.toml")),
    ("sbft-paper", include_str!("../prices/sbft-paper.toml")),
];

/// Reason for which a price list is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PricesError {
    /// A list that does not come with this program.
    #[error("there is no price list '{0}'; there are {names}, or give a file", names = Prices::names().join(", "))]
    Unknown(String),
    /// The file cannot be read.
    #[error("cannot read the price list {file}: {reason}")]
    Unreadable {
        /// Path of the file.
        file: String,
        /// Reason in the system's words.
        reason: String,
    },
    /// A file that is no price list.
    #[error("the price list does not parse: {0}")]
    Malformed(String),
    /// A price that no machine has.
    #[error("the price {field} is {value}; it must be a number, zero or more")]
    Price {
        /// Path of the field, with dots.
        field: String,
        /// Value in the list.
        value: f64,
    },
}

impl Prices {
    /// Names of the lists that come with this program.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        SHIPPED.iter().map(|(name, _)| *name).collect()
    }

    /// A list that comes with this program.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn shipped(name: &str) -> Result<Self, PricesError> {
        let found = SHIPPED.iter().find(|(other, _)| *other == name);
        let (_, text) = found.ok_or_else(|| PricesError::Unknown(name.to_owned()))?;
        Self::parse(text)
    }

    /// A list by its name, or from a file.
    ///
    /// # Errors
    /// When there is neither, or the file holds no list.
    pub fn find(name: &str) -> Result<Self, PricesError> {
        match std::fs::read_to_string(name) {
            Ok(text) if !SHIPPED.iter().any(|(other, _)| *other == name) => Self::parse(&text),
            Err(reason) if name.ends_with(".toml") => {
                Err(PricesError::Unreadable { file: name.to_owned(), reason: reason.to_string() })
            }
            _ => Self::shipped(name),
        }
    }

    /// Reads a list, or what makes one from another.
    ///
    /// # Errors
    /// The first field that is unknown, missing, or not a price.
    pub fn parse(text: &str) -> Result<Self, PricesError> {
        let table: toml::Table = toml::from_str(text).map_err(malformed)?;
        check_numbers("", &table)?;
        if table.contains_key("base") {
            derived::parse(text)
        } else {
            toml::from_str(text).map_err(malformed)
        }
    }

    /// The list as a TOML file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("plain fields")
    }

    /// Cost of counted operations, in nanoseconds.
    #[must_use]
    pub fn of(&self, counts: &OpCounts) -> f64 {
        let Self { ed25519, bls, secp256k1, hash, .. } = self;
        let us = |count: u64, price: f64| count as f64 * price * 1e3;
        let further = counts.bls_hash_to_curve.saturating_sub(counts.bls_verify + counts.bls_sign);
        us(counts.ed25519_sign, ed25519.sign_us)
            + us(counts.ed25519_verify, ed25519.verify_us)
            + us(counts.ed25519_key_reads, ed25519.key_read_us)
            + us(counts.ed25519_batches, ed25519.batch_us)
            + us(counts.ed25519_batch_items, ed25519.batch_item_us)
            + us(counts.ed25519_batch_keys, ed25519.batch_key_us)
            + us(counts.bls_sign, bls.sign_us)
            + us(counts.bls_verify, bls.pairing_us)
            + us(further, bls.further_message_us)
            + us(counts.bls_points_read, bls.point_read_us)
            + us(counts.bls_subgroup_checks, bls.subgroup_us)
            + us(counts.bls_key_additions, bls.key_addition_us)
            + us(counts.bls_share_additions, bls.share_addition_us)
            + us(counts.bls_weighted_points, bls.weighted_point_us)
            + us(counts.bls_interpolated_points, bls.interpolated_point_us)
            + us(counts.secp256k1_recover, secp256k1.recover_us)
            + us(counts.hashes, hash.call_us)
            + counts.hashed_bytes as f64 * hash.byte_ns
    }
}

fn malformed(reason: impl std::fmt::Display) -> PricesError {
    PricesError::Malformed(reason.to_string())
}

fn check_numbers(path: &str, table: &toml::Table) -> Result<(), PricesError> {
    for (name, value) in table {
        let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        match (value.as_table(), number) {
            (Some(inner), _) => check_numbers(&field, inner)?,
            (_, Some(value)) if !(value.is_finite() && value >= 0.0) => {
                return Err(PricesError::Price { field, value });
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
