//! `quorate committee accept`: a member of the next committee is ready for its place.

use super::{Loaded, OfChange, change_file, installed};
use crate::commands::status::Keys;
use crate::failure::{CommandResult, Failure};
use crate::passphrase;
use clap::Args;
use quorate_crypto::{KeyFile, PublicKeys};
use quorate_lab::status::ask;
use quorate_types::{Height, ReplicaId, Versions};
use std::path::PathBuf;
use std::time::Duration;

/// Time for a validator's answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Accept a place in the next committee, with both keys of this member
///
/// Every newcomer accepts, and members that are a quorum of the next committee: an epoch that
/// cannot form would be the end of the service. Who accepts says that its state has come to a
/// height near the tip, and that everything which the change asks for is installed: a program that
/// lacks the version of what is executed, here or at the validator that --status names, accepts
/// nothing (exit code 6). Adds the acceptance to the file, in the place of an earlier one of this
/// member.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    change: OfChange,
    /// Key file that this member will use in the next epoch
    #[arg(long, value_name = "KEYFILE")]
    key: PathBuf,
    /// Take the passphrase from the first line of FILE instead of asking
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Height that this member's state has come to: `executed` in its status
    #[arg(long, value_name = "HEIGHT", required_unless_present = "status")]
    executed: Option<u64>,
    /// Ask the validator whose status is at ADDRESS for that height, and for its versions
    #[arg(long, value_name = "ADDRESS", conflicts_with = "executed")]
    status: Option<String>,
    #[command(flatten)]
    keys: Keys,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let mut loaded = self.change.load()?;
        let (executed, versions) = self.validator()?;
        installed::check(&loaded.signed.change.file.settings, versions)?;
        let keys = passphrase::open_keys(&self.key, self.passphrase_file.as_deref())?;
        let member = self.place(&loaded, &keys.public())?;
        accept(&mut loaded, (member, executed), &keys)?;
        change_file::replace(&self.change.change, &mut loaded.signed)?;
        let path = self.change.change.display();
        let said = format!("{member} accepts its place, with the state at {executed}: {path}.");
        loaded.print(Some(&said), self.change.json);
        Ok(())
    }

    /// The member of the next committee that these keys are of.
    fn place(&self, loaded: &Loaded, keys: &PublicKeys) -> Result<ReplicaId, Failure> {
        let key = self.key.display();
        let member = loaded.next.find(&keys.identity).ok_or_else(|| {
            Failure::usage(format!(
                "the identity key in {key} is no member's of the next committee: it has no place to \
                 accept"
            ))
        })?;
        let file = &loaded.signed.change.file;
        let voting = hex::decode(&file.members[member.index()].voting);
        if voting != Ok(keys.voting.0.clone()) || file.scheme != keys.scheme.to_string() {
            return Err(Failure::usage(format!(
                "the voting key in {key} is not the one that the change names for {member}, so that \
                 its votes would be refused: use the key file that was made with that entry, or draft \
                 the change anew"
            )));
        }
        Ok(member)
    }

    /// Height that the member's state has come to, and the versions of what is executed that are
    /// installed there, if its validator is asked.
    fn validator(&self) -> Result<(Height, Option<Versions>), Failure> {
        if let Some(height) = self.executed {
            return Ok((Height(height), None));
        }
        let address = self.status.as_deref().expect("there is one where there is no height");
        let asked = ask(self.keys.door_at(address)?, TIMEOUT);
        let answered = asked
            .map_err(|error| Failure::run(format!("no status came from {address}: {error}")))?;
        let versions = answered.config.execution_versions.unwrap_or(Versions::FIRST);
        Ok((Height(answered.executed), Some(versions)))
    }
}

fn accept(loaded: &mut Loaded, place: (ReplicaId, Height), keys: &KeyFile) -> CommandResult {
    let committees = (loaded.in_force.committee.as_ref(), &loaded.next);
    let change = &loaded.signed.change;
    let acceptance = change.accept(committees, place, (&keys.identity, &keys.voting));
    change.check_acceptance(committees, &acceptance).map_err(Failure::usage)?;
    loaded.signed.acceptances.retain(|other| other.member != place.0);
    loaded.signed.acceptances.push(acceptance);
    Ok(())
}
