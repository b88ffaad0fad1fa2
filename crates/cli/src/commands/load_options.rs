//! Options of a load, on a committee of its own or on a running one.

use clap::Args;
use quorate_lab::load::{LoadConfig, SendTo, Shape};

/// Time that a client waits for operations to share a request, in milliseconds.
pub(super) const BUNDLE_DELAY_MS: u64 = 20;

/// What is offered, and how clients bring it.
#[derive(Debug, Args)]
pub(super) struct LoadOptions {
    /// Pace of the operations: fixed (at even intervals), poisson (at random moments) or closed
    /// (each as an earlier one is answered)
    #[arg(long, default_value = "fixed")]
    pub(super) load: Shape,
    /// Operations that each session has under way at once, with --load closed
    #[arg(long, default_value_t = 256, value_name = "COUNT")]
    outstanding: u64,
    /// Validators that get each request: one, and the next when it is silent; or all of them
    #[arg(long, default_value = "one", value_name = "one|all")]
    send_to: SendTo,
    /// Bytes of an operation
    #[arg(long, default_value_t = 512, value_name = "BYTES")]
    tx_bytes: usize,
    /// Length of the measured window, in seconds
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    duration: u64,
    /// Seconds of load before the measured window, which do not count
    #[arg(long, default_value_t = 2, value_name = "SECONDS")]
    warmup: u64,
    /// Longest wait for the last answers after the load, in seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    drain: u64,
    /// Number of keys that the puts write, in random order, with --service kv
    #[arg(long, default_value_t = 100_000, value_name = "COUNT",
          value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// Number of accounts that send the transactions in turn, with --service evm
    #[arg(long, default_value_t = 4_000, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) accounts: u32,
    /// Client sessions; by default as many as the rate needs, and four in a closed loop
    #[arg(long, visible_alias = "clients")]
    sessions: Option<usize>,
    /// Time that a client waits for operations to share a request, in milliseconds
    #[arg(long, default_value_t = BUNDLE_DELAY_MS, value_name = "MS")]
    bundle_delay: u64,
}

impl LoadOptions {
    /// The load, at the least rate, until somebody says how much is offered and by which seed.
    pub(super) fn config(&self) -> LoadConfig {
        LoadConfig {
            shape: self.load,
            rate: 1,
            outstanding: self.outstanding,
            send_to: self.send_to,
            tx_bytes: self.tx_bytes,
            duration_s: self.duration,
            warmup_s: self.warmup,
            drain_s: self.drain,
            sessions: self.sessions,
            bundle_delay_ms: self.bundle_delay,
            retry_after_ms: 1_000,
            seed: 1,
            keys: self.keys,
        }
    }
}
