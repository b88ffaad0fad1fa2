//! Who has signed a change, and what it lacks.

use super::in_force::InForce;
use quorate_crypto::Bitmap;
use quorate_types::change::newcomers;
use quorate_types::{ChangeError, Committee, ReplicaId, SignedChange};
use serde::Serialize;
use std::fmt;

/// Signatures under a change, each checked.
#[derive(Debug, Serialize)]
pub(super) struct Signatures {
    approvals: Count,
    acceptances: Count,
    /// Newcomers that have not accepted.
    silent: Vec<u16>,
    /// Signatures that are worth nothing, with the reason.
    wrong: Vec<String>,
    /// `true` if members take the change as it is.
    complete: bool,
}

/// Members that signed, with what they weigh.
#[derive(Debug, Serialize)]
struct Count {
    members: Vec<u16>,
    weight: u64,
    needed: u64,
}

impl Signatures {
    pub(super) fn of(ends: &InForce, next: &Committee, signed: &SignedChange) -> Self {
        let (present, change) = (ends.committee.as_ref(), &signed.change);
        let mut wrong = Vec::new();
        let approvals = signed.approvals.iter();
        let checked = approvals.map(|one| (one.member, change.check_approval(present, one)));
        let approvals = Count::of(present, checked, &mut wrong);
        let acceptances = signed.acceptances.iter();
        let checked =
            acceptances.map(|one| (one.member, change.check_acceptance((present, next), one)));
        let acceptances = Count::of(next, checked, &mut wrong);
        let asked = newcomers(present, next).into_iter().map(|member| member.0);
        let silent = asked.filter(|member| !acceptances.members.contains(member)).collect();
        let complete = signed.check(present).is_ok();
        Self { approvals, acceptances, silent, wrong, complete }
    }
}

impl Count {
    /// Counts the members whose signatures hold; why others do not goes to `wrong`.
    fn of(
        committee: &Committee,
        checked: impl Iterator<Item = (ReplicaId, Result<(), ChangeError>)>,
        wrong: &mut Vec<String>,
    ) -> Self {
        let mut each = Bitmap::new(committee.size());
        for (member, checked) in checked {
            match checked {
                Ok(()) => {
                    each.insert(member.index());
                }
                Err(reason) => wrong.push(reason.to_string()),
            }
        }
        let members = each.iter().filter_map(|index| u16::try_from(index).ok()).collect();
        Self { members, weight: committee.weight_of(&each), needed: committee.quorum() }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, verb: &str) -> fmt::Result {
        let Self { members, weight, needed } = self;
        write!(f, "{verb} by {}: weight {weight} of {needed} needed", names(members))
    }
}

fn names(members: &[u16]) -> String {
    if members.is_empty() {
        return "nobody".to_owned();
    }
    members.iter().map(|member| format!("r{member}")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Signatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.approvals.write(f, "Approved")?;
        self.acceptances.write(f, "\nAccepted")?;
        if !self.silent.is_empty() {
            write!(f, "\nNew, and to accept yet: {}", names(&self.silent))?;
        }
        self.wrong.iter().try_for_each(|reason| write!(f, "\nWorth nothing: {reason}"))?;
        let verdict = if self.complete { "Complete" } else { "Not complete" };
        write!(f, "\n{verdict}.")
    }
}
