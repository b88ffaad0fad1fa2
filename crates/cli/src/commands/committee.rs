//! `quorate committee`: changes of a running network's committee, from the draft to the members.

mod accept;
pub(super) mod change_file;
mod difference;
mod draft;
mod entry;
mod found;
pub(super) mod history;
pub(super) mod in_force;
mod installed;
mod merge;
mod show;
mod sign;
mod signatures;
mod submit;
mod verify;
mod watch;

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::{Args, Subcommand};
use quorate_types::{Committee, SignedChange};
use serde_json::json;
use std::path::PathBuf;

/// Change the committee of a running network: its members, their keys and weights, the protocol,
/// the voting scheme and the settings that all have alike.
///
/// A change is one text file that travels between operators. It holds the next epoch's committee
/// file, and later the signatures: of members of the epoch that ends, which weigh a quorum, and of
/// members of the next one, which accept their places: every newcomer, and a quorum. Nothing here
/// but `submit` and `watch` connects to anybody, so that keys may stay where there is no network.
///
/// Each command checks the change against the committee in force. That is the committee file of
/// --net or --committee as long as the network is in its first epoch. Later, --committee names the
/// same first file, and --history the hand-overs since, which are verified on the way.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate committee draft --net net --replace 2=new.toml --out change.toml\n  \
    quorate committee accept change.toml --net net --key key.toml --executed 1200\n  \
    quorate committee sign change.toml --net net --key key.toml\n  \
    quorate committee merge change.toml others/*.toml --net net\n  \
    quorate committee verify change.toml --net net\n  \
    quorate committee submit change.toml --net net\n  \
    quorate committee watch change.toml --net net")]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Draft(draft::Options),
    Accept(accept::Options),
    Sign(sign::Options),
    Merge(merge::Options),
    Show(show::Options),
    Verify(verify::Options),
    Submit(submit::Options),
    Watch(watch::Options),
    Found(found::Options),
    History(history::Options),
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        match &self.command {
            Command::Draft(options) => options.run(),
            Command::Accept(options) => options.run(),
            Command::Sign(options) => options.run(),
            Command::Merge(options) => options.run(),
            Command::Show(options) => options.run(),
            Command::Verify(options) => options.run(),
            Command::Submit(options) => options.run(),
            Command::Watch(options) => options.run(),
            Command::Found(options) => options.run(),
            Command::History(options) => options.run(),
        }
    }
}

/// A change, and where the committee in force is found.
#[derive(Debug, Args)]
struct OfChange {
    /// File of the change, as `quorate committee draft` wrote it
    change: PathBuf,
    #[command(flatten)]
    source: in_force::Source,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl OfChange {
    /// The change, and the two committees that it is between. It is sound but for its signatures.
    fn load(&self) -> Result<Loaded, Failure> {
        let in_force = self.source.load()?;
        let (signed, next) = in_force.read_change(&self.change)?;
        Ok(Loaded { in_force, signed, next })
    }
}

/// A change whose rules hold but for those of signatures.
struct Loaded {
    in_force: in_force::InForce,
    signed: SignedChange,
    next: Committee,
}

impl Loaded {
    /// Shows what differs, and who has signed.
    fn print(&self, said: Option<&str>, as_json: bool) {
        let difference =
            difference::Difference::of(&self.in_force, &self.next, &self.signed.change);
        let signatures = signatures::Signatures::of(&self.in_force, &self.next, &self.signed);
        if as_json {
            output::json(&json!({ "change": difference, "signatures": signatures }));
        } else {
            output::line(&format!("{difference}\n\n{signatures}"));
            said.iter().for_each(|said| output::line(&format!("\n{said}")));
        }
    }
}
