//! Evidence against members as [files with a proof](crate::proof_file), in `data_dir/evidence`.

use crate::durable;
use crate::proof_file::{self, ProofFile, ProofFileError};
use quorate_engine::{ProtocolKind, Settings, SignedEvidence, Verifier};
use quorate_types::{Committee, Epoch, History, Rejected};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Content of an evidence's file, as JSON. The fields beside `proof` are for readers and for
/// whoever looks for the settings under which it was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceFile {
    /// The format: `quorate evidence v3`.
    pub format: String,
    /// The network, in hexadecimal.
    pub network: String,
    /// Epoch in which it was signed, whose committee alone it counts under.
    pub epoch: u64,
    /// Index of the member that signed, in that epoch.
    pub member: u16,
    /// Identity key of that member, in hexadecimal.
    pub identity: String,
    /// Rule that it broke, by its name in metrics.
    pub rule: String,
    /// What it signed, in words.
    pub signed: [String; 2],
    /// Protocol that the committee ran.
    pub protocol: ProtocolKind,
    /// Kind of key that signs proposals: `identity` or `voting`.
    pub proposal_key: String,
    /// Encoded evidence, in hexadecimal.
    pub proof: String,
}

/// Error of a file that proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The file is not what it should be.
    #[error(transparent)]
    File(#[from] ProofFileError),
    /// The epoch is beyond those that the check knows, or before them.
    #[error(
        "the evidence is of epoch {}, and the committees that are known here are those of epochs up to \
         {}: add the hand-overs that lead there", .0.0, .1.0
    )]
    OtherEpoch(Epoch, Epoch),
    /// The proof does not hold.
    #[error("the evidence proves nothing: {0}")]
    Refused(#[from] Rejected),
}

impl ProofFile for EvidenceFile {
    const NAME: &'static str = "evidence";
    const FORMAT: &'static str = "quorate evidence v3";

    fn format(&self) -> &str {
        &self.format
    }

    fn network(&self) -> &str {
        &self.network
    }
}

impl EvidenceFile {
    /// File of evidence that holds under these settings.
    ///
    /// # Errors
    /// [`EvidenceError::Refused`] when it does not.
    pub fn new(
        evidence: &SignedEvidence,
        committee: &Arc<Committee>,
        settings: &Settings,
    ) -> Result<Self, EvidenceError> {
        let verifier = Verifier::new(Arc::clone(committee), settings);
        let rule = evidence.check(verifier.consensus())?;
        let identity = committee.identity(evidence.signer).ok_or(Rejected::NotAMember)?;
        Ok(Self {
            format: Self::FORMAT.to_owned(),
            network: hex::encode(committee.network().0),
            epoch: committee.epoch().0,
            member: evidence.signer.0,
            identity: identity.to_string(),
            rule: rule.name().to_owned(),
            signed: evidence.in_words(),
            protocol: settings.protocol,
            proposal_key: settings.comparison.proposal_key.to_string(),
            proof: proof_file::encode(evidence),
        })
    }

    /// Reads a file. Nothing in it is believed yet.
    ///
    /// # Errors
    /// [`EvidenceError::File`].
    pub fn read(path: &Path) -> Result<Self, EvidenceError> {
        Ok(Self::from_text(&Self::read_text(path)?)?)
    }

    /// Checks everything in it under the committee of its epoch (★): what the keys of another one
    /// signed proves nothing about its members.
    ///
    /// # Errors
    /// What does not hold.
    pub fn verify(&self, history: &History) -> Result<(), EvidenceError> {
        self.check_head(history.committee().network())?;
        let (epoch, last) = (Epoch(self.epoch), history.committee().epoch());
        let unknown = EvidenceError::OtherEpoch(epoch, last);
        let committee = history.committee_of(epoch).ok_or(unknown)?;
        let mut settings = Settings { protocol: self.protocol, ..Settings::default() };
        settings.comparison.proposal_key = self.proposal_key.parse().map_err(Self::malformed)?;
        let evidence: SignedEvidence = Self::decode(&self.proof)?;
        Ok(self.compare(&Self::new(&evidence, committee, &settings)?)?)
    }
}

/// Folder in which a validator keeps the first evidence against each member of an epoch by rule,
/// over all its starts.
#[derive(Clone, Debug)]
pub struct EvidenceFolder {
    path: PathBuf,
    committee: Arc<Committee>,
    settings: Settings,
}

impl EvidenceFolder {
    /// Folder in a validator's data folder; it is made with the first file.
    #[must_use]
    pub fn of(data_dir: &Path, committee: &Arc<Committee>, settings: &Settings) -> Self {
        let (path, settings) = (data_dir.join("evidence"), settings.clone());
        Self { path, committee: Arc::clone(committee), settings }
    }

    /// Keeps evidence, and says so in the log: whoever accuses a member can show it.
    pub(crate) fn keep(&self, evidence: &SignedEvidence) {
        match self.write(evidence) {
            Ok((file, path)) => tracing::warn!(
                member = %evidence.signer,
                rule = file.rule,
                first = file.signed[0],
                second = file.signed[1],
                evidence = %path.display(),
                "a member signed two things of which an honest one signs one: the proof is kept"
            ),
            Err(error) => tracing::warn!(
                member = %evidence.signer,
                %error,
                "cannot keep the proof that a member signed two things of which an honest one \
                 signs one"
            ),
        }
    }

    /// Writes a file, unless there is one of this epoch, member and rule.
    fn write(&self, evidence: &SignedEvidence) -> std::io::Result<(EvidenceFile, PathBuf)> {
        let file = EvidenceFile::new(evidence, &self.committee, &self.settings)
            .map_err(std::io::Error::other)?;
        std::fs::create_dir_all(&self.path)?;
        let (epoch, signer) = (self.committee.epoch(), evidence.signer);
        let path = self.path.join(format!("{epoch}-{signer}-{}.json", file.rule));
        if !path.exists() {
            durable::replace(&path, file.to_text().as_bytes())?;
        }
        Ok((file, path))
    }
}
