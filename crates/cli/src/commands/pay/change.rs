//! `quorate pay change`: a payment network's authorities change at the end of an epoch.

mod border;
mod draft;
mod order;

use super::place::NetworkPlace;
use crate::failure::{CommandResult, Failure};
use crate::{output, passphrase};
use clap::{Args, Subcommand};
use quorate_crypto::IdentityKey;
use quorate_node::payments::{read_change, read_network_before, write_change};
use quorate_payments::Network;
use quorate_payments::change::Change;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Replace, add or remove authorities, at the end of an epoch
///
/// A lost authority is replaced so. The next network file is drafted, signed by a quorum of the
/// present authorities, a quorum of the next ones and every newcomer. Once the committee has
/// ordered it, each present authority closes: it votes for nothing new, for good, and reports what
/// it locked. With the reports of a quorum the next ones begin, newcomers that run among them.
/// Without a committee operators close and begin by hand. Coins, receipts and payments under way
/// stay good.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate pay change entry --key new-key.toml --address pay3.example:7400 > new.toml\n  \
    quorate pay change draft next.toml --network net/network.toml --replace 3=new.toml\n  \
    quorate pay change sign next.toml --network net/network.toml --key authority-0/key.toml\n  \
    quorate pay change show next.toml --network net/network.toml\n  \
    quorate pay change submit next.toml --network net/network.toml\n  \
    quorate pay change watch next.toml --network net/network.toml\n\n\
    Without a committee:\n  \
    quorate pay change close next.toml --config authority-0/shard-0.toml     stopped before\n  \
    quorate pay change begin next.toml --config authority-0/shard-0.toml reports/*\n  \
    cp next.toml net/network.epoch-2.toml                                    and start it")]
pub(super) struct Options {
    #[command(subcommand)]
    command: ChangeCommand,
}

#[derive(Debug, Subcommand)]
enum ChangeCommand {
    /// Print the entry of an authority, for a draft
    Entry(draft::Entry),
    /// Write the change to a next network file, signed by nobody
    Draft(draft::Draft),
    /// Sign a change, as an authority of the present epoch or of the next one
    Sign(Sign),
    /// Show what a change changes, and who has signed it
    Show(Show),
    /// Have a change ordered by the committee
    Submit(order::Submit),
    /// Watch how the next epoch begins
    Watch(order::Watch),
    /// Without a committee: close a shard of a stopped authority for good, and write its report
    Close(border::Close),
    /// Without a committee: begin the next epoch at a shard, with the reports of a quorum
    Begin(border::Begin),
}

/// Sign a change
///
/// Shows what differs, and adds the signature to the file. The identity key alone signs.
#[derive(Debug, Args)]
struct Sign {
    /// File of the change
    change: PathBuf,
    #[command(flatten)]
    network: NetworkPlace,
    /// Key file of the authority
    #[arg(long, value_name = "KEYFILE")]
    key: PathBuf,
    /// Take the passphrase of a sealed key from the first line of FILE instead of asking
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

/// Show a change
///
/// Exit code 0: enough have signed. 1: signatures are missing. 2: it is no change of this network.
#[derive(Debug, Args)]
struct Show {
    /// File of the change
    change: PathBuf,
    #[command(flatten)]
    network: NetworkPlace,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        match &self.command {
            ChangeCommand::Entry(options) => options.run(),
            ChangeCommand::Draft(options) => options.run(),
            ChangeCommand::Sign(options) => options.run(),
            ChangeCommand::Show(options) => options.run(),
            ChangeCommand::Submit(options) => options.run(),
            ChangeCommand::Watch(options) => options.run(),
            ChangeCommand::Close(options) => options.run(),
            ChangeCommand::Begin(options) => options.run(),
        }
    }
}

/// A change, the network that it changes, and the one that it leads to.
struct Loaded {
    change: Change,
    present: Arc<Network>,
    next: Network,
}

impl Loaded {
    /// Reads the change from the epoch in force.
    fn read(path: &Path, network: &NetworkPlace) -> Result<Self, Failure> {
        Self::after(path, network.load(Path::new("."))?)
    }

    /// Reads a change, from the epoch before its own, which may have ended since.
    fn read_any(path: &Path, network: &NetworkPlace) -> Result<Self, Failure> {
        let end = read_change(path).map_err(Failure::usage)?.next.epoch;
        let present = read_network_before(&network.path(Path::new("."))?, end);
        Self::after(path, Arc::new(present.map_err(Failure::usage)?))
    }

    fn after(path: &Path, present: Arc<Network>) -> Result<Self, Failure> {
        let change = read_change(path).map_err(Failure::usage)?;
        let next = present
            .load_next(&change.next)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        Ok(Self { change, present, next })
    }

    fn has_signed(&self, key: &IdentityKey) -> bool {
        self.change.is_signed_by(&self.present, key)
    }

    /// Lines on what differs, who has signed, and what is missing.
    fn describe(&self) -> String {
        let mut text = format!("Epoch {} of {}:\n", self.next.epoch().0, self.next.name());
        for (key, role) in self.everybody() {
            let mark = if self.has_signed(&key) { "signed" } else { "not signed" };
            text.push_str(&format!("  {key}  {role}, {mark}\n"));
        }
        for (what, network) in [("present", &*self.present), ("next", &self.next)] {
            let committee = network.committee();
            text.push_str(&format!(
                "  {what}: {} authorities, of which {} may be faulty; a quorum is {}\n",
                committee.size(),
                committee.faulty_max(),
                committee.quorum()
            ));
        }
        let missing = self.missing();
        text + &missing.unwrap_or_else(|| "Enough have signed.".into())
    }

    fn missing(&self) -> Option<String> {
        self.present.succeed(&self.change).err().map(|error| error.to_string())
    }

    /// Authorities of either epoch, with what becomes of them.
    fn everybody(&self) -> Vec<(IdentityKey, &'static str)> {
        let (present, next) = (self.present.committee(), self.next.committee());
        let keys = |committee: &Arc<quorate_types::Committee>| {
            let key = |one| committee.identity(one).copied();
            committee.members().filter_map(key).collect::<Vec<_>>()
        };
        let role = |key: &IdentityKey| match next.find(key) {
            None => "leaves",
            Some(_) => "stays",
        };
        let staying = keys(present).into_iter().map(|key| (key, role(&key)));
        let new = keys(next).into_iter().filter(|key| present.find(key).is_none());
        staying.chain(new.map(|key| (key, "joins"))).collect()
    }
}

impl Sign {
    fn run(&self) -> CommandResult {
        let mut loaded = Loaded::read(&self.change, &self.network)?;
        let identity = passphrase::open_keys(&self.key, self.passphrase_file.as_deref())?.identity;
        let key = identity.public();
        let is_member = [loaded.present.committee(), loaded.next.committee()]
            .iter()
            .any(|committee| committee.find(&key).is_some());
        if !is_member {
            return Err(Failure::usage(format!(
                "the identity key in {} is no authority's of either epoch: only those sign",
                self.key.display()
            )));
        }
        loaded.change.sign(&loaded.present, &identity);
        write_change(&self.change, &loaded.change).map_err(|error| {
            Failure::usage(format!("cannot write {}: {error}", self.change.display()))
        })?;
        output::line(&loaded.describe());
        Ok(())
    }
}

impl Show {
    fn run(&self) -> CommandResult {
        let loaded = Loaded::read(&self.change, &self.network)?;
        let missing = loaded.missing();
        if self.json {
            let one = |(key, role): &(IdentityKey, &str)| {
                let signed = loaded.has_signed(key);
                json!({ "identity": key.to_string(), "role": role, "signed": signed })
            };
            output::json(&json!({
                "epoch": loaded.next.epoch().0,
                "digest": loaded.change.next.digest().to_hex(),
                "authorities": loaded.everybody().iter().map(one).collect::<Vec<_>>(),
                "missing": missing,
            }));
        } else {
            output::line(&loaded.describe());
        }
        match missing {
            None => Ok(()),
            Some(_) => Err(Failure::Reported(crate::failure::Code::Run)),
        }
    }
}
