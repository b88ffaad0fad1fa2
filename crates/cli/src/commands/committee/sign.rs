//! `quorate committee sign`: a member of the epoch that ends approves the change.

use super::{Loaded, OfChange, change_file};
use crate::failure::{CommandResult, Failure};
use crate::passphrase;
use clap::Args;
use quorate_types::ReplicaId;
use std::path::PathBuf;

/// Approve a change as a member of the epoch that it ends
///
/// Shows what differs, and adds the approval to the file. The identity key alone signs. Members of
/// the epoch that ends approve, which weigh a quorum; those that leave may be among them.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    change: OfChange,
    /// Key file of this member in the epoch that ends
    #[arg(long, value_name = "KEYFILE")]
    key: PathBuf,
    /// Take the passphrase from the first line of FILE instead of asking
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let mut loaded = self.change.load()?;
        let member = self.approve(&mut loaded)?;
        change_file::replace(&self.change.change, &mut loaded.signed)?;
        let path = self.change.change.display();
        loaded.print(Some(&format!("{member} approves the change: {path}.")), self.change.json);
        Ok(())
    }

    fn approve(&self, loaded: &mut Loaded) -> Result<ReplicaId, Failure> {
        let identity = passphrase::open_keys(&self.key, self.passphrase_file.as_deref())?.identity;
        let ends = &loaded.in_force.committee;
        let member = ends.find(&identity.public()).ok_or_else(|| {
            Failure::usage(format!(
                "the identity key in {} is no member's of the epoch that ends: only its members \
                 approve",
                self.key.display()
            ))
        })?;
        let approval = loaded.signed.change.approve(ends, member, &identity);
        loaded.signed.approvals.retain(|other| other.member != member);
        loaded.signed.approvals.push(approval);
        Ok(member)
    }
}
