//! A change as a text file: what is to change, and the signatures so far.

use crate::failure::{CommandResult, Failure};
use quorate_crypto::{Share, Signature};
use quorate_node::durable;
use quorate_types::{
    Acceptance, Approval, Change, CommitteeFile, Epoch, Height, NetworkId, ReplicaId, SignedChange,
};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

const FORMAT: &str = "quorate change v1";

const HEADER: &str = "\
# A change of a Quorate committee: `quorate committee show` says what it changes, and who has signed.
# Signatures cover everything under [next], and the heights: who edits this drafts it anew.
";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeText {
    format: String,
    /// Of everything but the signatures: an edited file is told from a signed one.
    digest: String,
    network: NetworkId,
    epoch: Epoch,
    not_before: Height,
    /// Absent where the change expires with its epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<Height>,
    next: CommitteeFile,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    approvals: Vec<ApprovalText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    acceptances: Vec<AcceptanceText>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalText {
    member: ReplicaId,
    signature: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptanceText {
    member: ReplicaId,
    executed: Height,
    identity: String,
    voting: String,
}

/// Reads a change, of which nothing is believed but that it is as it was written.
pub(in crate::commands) fn read(path: &Path) -> Result<SignedChange, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    parse(&text).map_err(|reason| {
        Failure::usage(format!("{} is no change of a committee: {reason}", path.display()))
    })
}

fn parse(text: &str) -> Result<SignedChange, String> {
    let file: ChangeText = toml::from_str(text).map_err(|error| error.to_string())?;
    if file.format != FORMAT {
        return Err(format!("its format is '{}', not '{FORMAT}'", file.format));
    }
    let ChangeText { network, epoch, not_before, expires, next, .. } = file;
    let expires = expires.unwrap_or(NEVER);
    let change = Change { network, epoch, file: next, not_before, expires };
    let digest = change.digest().to_hex();
    if file.digest != digest {
        return Err(format!(
            "its digest is {}, and what it says has the digest {digest}: it was edited after it was \
             drafted; draft it anew",
            file.digest
        ));
    }
    let approvals = file.approvals.iter().map(ApprovalText::parse).collect::<Result<_, _>>()?;
    let acceptances =
        file.acceptances.iter().map(AcceptanceText::parse).collect::<Result<_, _>>()?;
    Ok(SignedChange { change, approvals, acceptances })
}

/// Height at which a change expires that expires with its epoch.
pub(super) const NEVER: Height = Height(u64::MAX);

impl ApprovalText {
    fn of(Approval { member, signature }: &Approval) -> Self {
        Self { member: *member, signature: hex::encode(signature.0) }
    }

    fn parse(&self) -> Result<Approval, String> {
        let signature = signature(&self.signature, "approval", self.member)?;
        Ok(Approval { member: self.member, signature })
    }
}

impl AcceptanceText {
    fn of(acceptance: &Acceptance) -> Self {
        let Acceptance { member, executed, identity, voting } = acceptance;
        let (identity, voting) = (hex::encode(identity.0), hex::encode(&voting.0));
        Self { member: *member, executed: *executed, identity, voting }
    }

    fn parse(&self) -> Result<Acceptance, String> {
        let Self { member, executed, identity, voting } = self;
        let identity = signature(identity, "acceptance", *member)?;
        let voting = hex::decode(voting).map_err(|_| no_signature("acceptance", *member))?;
        Ok(Acceptance { member: *member, executed: *executed, identity, voting: Share(voting) })
    }
}

fn signature(text: &str, what: &str, member: ReplicaId) -> Result<Signature, String> {
    let mut bytes = [0; 64];
    hex::decode_to_slice(text, &mut bytes).map_err(|_| no_signature(what, member))?;
    Ok(Signature(bytes))
}

fn no_signature(what: &str, member: ReplicaId) -> String {
    format!("the {what} of {member} is no signature in hexadecimal")
}

fn text(signed: &SignedChange) -> String {
    let SignedChange { change, approvals, acceptances } = signed;
    let file = ChangeText {
        format: FORMAT.to_owned(),
        digest: change.digest().to_hex(),
        network: change.network,
        epoch: change.epoch,
        not_before: change.not_before,
        expires: Some(change.expires).filter(|height| *height != NEVER),
        next: change.file.clone(),
        approvals: approvals.iter().map(ApprovalText::of).collect(),
        acceptances: acceptances.iter().map(AcceptanceText::of).collect(),
    };
    format!("{HEADER}{}", toml::to_string(&file).expect("a plain struct is a table"))
}

/// Writes a new change; never overwrites.
pub(super) fn create(path: &Path, signed: &SignedChange) -> CommandResult {
    write_new(path, &text(signed))
}

/// Writes a text that travels between operators; never overwrites.
pub(super) fn write_new(path: &Path, text: &str) -> CommandResult {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}

/// Writes a change with other signatures in its place, sorted by member.
pub(super) fn replace(path: &Path, signed: &mut SignedChange) -> CommandResult {
    signed.approvals.sort_by_key(|approval| approval.member);
    signed.acceptances.sort_by_key(|acceptance| acceptance.member);
    let replaced = durable::replace(path, text(signed).as_bytes());
    replaced.map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}
