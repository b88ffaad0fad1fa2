//! `quorate committee merge`: the signatures of copies of one change.

use super::{Loaded, OfChange, change_file};
use crate::failure::{CommandResult, Failure};
use clap::Args;
use quorate_types::{ChangeError, SignedChange};
use std::path::{Path, PathBuf};

/// Unite the signatures of copies of one change
///
/// Adds to the first file what the others have besides: operators may sign copies at the same time,
/// or one after the other. A copy of another change is refused, and a signature that does not hold,
/// by name. Of two acceptances of a member the one with the later state stays.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    change: OfChange,
    /// Copies of the same change
    #[arg(required = true, value_name = "OTHER")]
    others: Vec<PathBuf>,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let mut loaded = self.change.load()?;
        for other in &self.others {
            let signed = change_file::read(other)?;
            self.check_same(other, &loaded, &signed)?;
            unite(&mut loaded, signed)
                .map_err(|broken| Failure::usage(format!("{}: {broken}", other.display())))?;
        }
        change_file::replace(&self.change.change, &mut loaded.signed)?;
        let (path, count) = (self.change.change.display(), self.others.len() + 1);
        loaded.print(
            Some(&format!("United the signatures of {count} files: {path}.")),
            self.change.json,
        );
        Ok(())
    }

    fn check_same(&self, path: &Path, own: &Loaded, other: &SignedChange) -> CommandResult {
        let [own, other] = [&own.signed, other].map(|signed| signed.change.digest().to_hex());
        if own == other {
            return Ok(());
        }
        let (first, path) = (self.change.change.display(), path.display());
        Err(Failure::usage(format!(
            "{path} is another change, {other}, than {first}, {own}: signatures of one are worth \
             nothing under the other"
        )))
    }
}

fn unite(loaded: &mut Loaded, other: SignedChange) -> Result<(), ChangeError> {
    let Loaded { in_force, signed: SignedChange { change, approvals, acceptances }, next } = loaded;
    let committees = (in_force.committee.as_ref(), &*next);
    for approval in other.approvals {
        change.check_approval(committees.0, &approval)?;
        if approvals.iter().all(|own| own.member != approval.member) {
            approvals.push(approval);
        }
    }
    for acceptance in other.acceptances {
        change.check_acceptance(committees, &acceptance)?;
        let (member, executed) = (acceptance.member, acceptance.executed);
        if acceptances.iter().all(|own| own.member != member || own.executed < executed) {
            acceptances.retain(|own| own.member != member);
            acceptances.push(acceptance);
        }
    }
    Ok(())
}
