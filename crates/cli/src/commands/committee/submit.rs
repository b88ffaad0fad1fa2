//! `quorate committee submit`: brings a change to the committee.

use super::{OfChange, change_file};
use crate::failure::{CommandResult, Failure};
use crate::{output, passphrase};
use clap::Args;
use quorate_crypto::IdentitySecret;
use quorate_node::testnet::system_random;
use quorate_node::{ChangeBrought, bring_change};
use serde_json::json;
use std::path::PathBuf;

/// Bring a change to the members of the epoch that it ends
///
/// Asks one member after the other, at the addresses of the committee file, until so many took the
/// change that an honest one is among them: it hands it on to all, and whoever leads orders it at
/// the first height that may. There the epoch ends, and members go on to the next one by themselves.
/// Anybody may bring a change; members that let in listed clients alone want a listed --key. Exit code 0: it was taken. 1: by nobody, and each member's reason is said.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    change: OfChange,
    /// Key file of the client that brings it; a fresh key by default
    #[arg(long, value_name = "KEYFILE")]
    key: Option<PathBuf>,
    /// Take the passphrase from the first line of FILE instead of asking
    #[arg(long, value_name = "FILE", requires = "key")]
    passphrase_file: Option<PathBuf>,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let in_force = self.change.source.load()?;
        let signed = change_file::read(&self.change.change)?;
        let refused = |broken| Failure::usage(format!("nobody was asked: {broken}"));
        in_force.check_signed(&signed).map_err(refused)?;
        let identity = self.identity()?;
        let brought =
            bring_change(&in_force.committee, &identity, &signed).map_err(Failure::run)?;
        if brought.taken.is_empty() {
            return Err(Failure::run(format!("no member took the change:{}", reasons(&brought))));
        }
        let digest = signed.change.digest().to_hex();
        let taken: Vec<u16> = brought.taken.iter().map(|member| member.0).collect();
        if self.change.json {
            let refused: Vec<_> = brought.refused.iter().map(|(id, why)| (id.0, why)).collect();
            output::json(&json!({ "digest": digest, "taken": taken, "refused": refused }));
        } else {
            output::line(&describe(&digest, &brought));
        }
        Ok(())
    }

    fn identity(&self) -> Result<IdentitySecret, Failure> {
        if let Some(key) = &self.key {
            return Ok(passphrase::open_keys(key, self.passphrase_file.as_deref())?.identity);
        }
        let mut seed = [0; 32];
        system_random(&mut seed);
        Ok(IdentitySecret::from_seed(seed))
    }
}

fn describe(digest: &str, brought: &ChangeBrought) -> String {
    let takers: Vec<String> = brought.taken.iter().map(ToString::to_string).collect();
    format!("Taken by {}:\n{digest}{}", takers.join(", "), reasons(brought))
}

/// The members that did not take it, a line each.
fn reasons(brought: &ChangeBrought) -> String {
    let line = |(member, reason): &(_, String)| format!("\n  {member}: {reason}");
    brought.refused.iter().map(line).collect()
}
