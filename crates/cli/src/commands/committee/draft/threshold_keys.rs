//! Threshold keys that the members of the next epoch generated, in the file of that epoch.

use crate::commands::committee::in_force::InForce;
use crate::commands::keys::dkg::transcript;
use crate::failure::{CommandResult, Failure};
use quorate_ledger::keygen::{Generated, Transcript};
use quorate_types::{CommitteeError, CommitteeFile, Member};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Keys of a generation for the epoch after the one in force, each of its steps checked.
pub(super) struct ThresholdKeys {
    path: PathBuf,
    transcript: Transcript,
    generated: Arc<Generated>,
}

impl ThresholdKeys {
    pub(super) fn read(path: &Path, in_force: &InForce) -> Result<Self, Failure> {
        let refused = |reason: String| {
            let path = path.display();
            Failure::usage(format!("the keys of {path} are not for the next epoch: {reason}"))
        };
        let transcript = transcript::read(path)?;
        let follows = in_force.committee.check_next(&transcript.generators);
        follows.map_err(|reason| refused(why_not(&reason)))?;
        let ceremony = transcript.replay().map_err(|broken| refused(broken.to_string()))?;
        let Some(Ok(generated)) = ceremony.result() else {
            return Err(refused("the generation was not finished".to_owned()));
        };
        let generated = Arc::clone(generated);
        Ok(Self { path: path.to_owned(), transcript, generated })
    }

    /// Committee file that the members generated for.
    pub(super) fn generators(&self) -> &CommitteeFile {
        &self.transcript.generators
    }

    /// Gives the members of a file their keys, if they are those that generated them.
    pub(super) fn put_into(&self, file: &mut CommitteeFile) -> CommandResult {
        let made = self.generated.committee(self.generators());
        self.check_members(&file.members, &made.members)?;
        file.scheme.clone_from(&made.scheme);
        file.groups.clone_from(&made.groups);
        for (member, made) in file.members.iter_mut().zip(&made.members) {
            member.voting.clone_from(&made.voting);
            member.possession.clone_from(&made.possession);
        }
        self.generated.check(self.generators(), file).map_err(|_| {
            Failure::usage(format!(
                "the keys of {} were generated for members of other weights or another redundancy: \
                 generate them anew for these",
                self.path.display()
            ))
        })
    }

    fn check_members(&self, members: &[Member], made: &[Member]) -> CommandResult {
        let path = self.path.display();
        if members.len() != made.len() {
            return Err(Failure::usage(format!(
                "the keys of {path} are of {} members, and the draft has {}: it begins with those that \
                 generated; generate them anew for others",
                made.len(),
                members.len()
            )));
        }
        let mut places = members.iter().zip(made).enumerate();
        match places.find(|(_, (member, made))| member.identity != made.identity) {
            Some((index, (member, made))) => Err(Failure::usage(format!(
                "the keys of {path} were generated with {} as member {index}, and the draft has {} \
                 there: members and their order are those that generated; generate them anew for others",
                made.identity, member.identity
            ))),
            None => Ok(()),
        }
    }
}

/// Reason for which a committee that generated keys is not the next one.
fn why_not(broken: &CommitteeError) -> String {
    match broken {
        CommitteeError::Founds => "a founding committee generated them, without --next".to_owned(),
        other => other.to_string(),
    }
}
