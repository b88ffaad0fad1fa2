//! Evidence against members as files: one JSON object each, for people above and for machines
//! below, in `data_dir/evidence`.
//!
//! `proof` is the evidence itself (borsh, in hexadecimal); everything else in the file is there to
//! be read, and is compared with it: a file that says anything else than its proof is refused.

use crate::durable;
use quorate_engine::{ProtocolKind, Settings, SignedEvidence, Verifier};
use quorate_types::{Committee, Rejected};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FORMAT: &str = "quorate evidence v1";

/// Content of an evidence's file, as JSON. The fields beside `proof` are for readers and for
/// whoever looks for the settings under which it was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceFile {
    /// The format: `quorate evidence v1`.
    pub format: String,
    /// The chain, in hexadecimal.
    pub chain: String,
    /// Index of the member that signed.
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
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is no evidence.
    #[error("this is no evidence: {0}")]
    Form(String),
    /// The evidence is of another committee's chain.
    #[error("the evidence is of chain {found}; the committee's is {expected}")]
    OtherChain {
        /// Chain that the evidence names.
        found: String,
        /// Chain of the committee.
        expected: String,
    },
    /// The proof does not hold.
    #[error("the evidence proves nothing: {0}")]
    Refused(#[from] Rejected),
    /// The text is not what the proof shows.
    #[error("the evidence's '{0}' is not what its proof shows")]
    OtherText(&'static str),
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
        let proof = borsh::to_vec(evidence).expect("encoding into memory cannot fail");
        Ok(Self {
            format: FORMAT.to_owned(),
            chain: hex::encode(committee.chain().0),
            member: evidence.signer.0,
            identity: identity.to_string(),
            rule: rule.name().to_owned(),
            signed: evidence.in_words(),
            protocol: settings.protocol,
            proposal_key: settings.comparison.proposal_key.to_string(),
            proof: hex::encode(proof),
        })
    }

    /// Reads a file. Nothing in it is believed yet.
    ///
    /// # Errors
    /// [`EvidenceError::Read`] and [`EvidenceError::Form`].
    pub fn read(path: &Path) -> Result<Self, EvidenceError> {
        let failed = |source| EvidenceError::Read { path: path.display().to_string(), source };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        serde_json::from_str(&text).map_err(|error| EvidenceError::Form(error.to_string()))
    }

    /// Checks everything in it under a committee.
    ///
    /// # Errors
    /// What does not hold.
    pub fn verify(&self, committee: &Arc<Committee>) -> Result<(), EvidenceError> {
        let form = |what: String| EvidenceError::Form(what);
        if self.format != FORMAT {
            return Err(form(format!("its format is '{}'", self.format)));
        }
        let expected = hex::encode(committee.chain().0);
        if self.chain != expected {
            return Err(EvidenceError::OtherChain { found: self.chain.clone(), expected });
        }
        let mut settings = Settings { protocol: self.protocol, ..Settings::default() };
        settings.comparison.proposal_key = self.proposal_key.parse().map_err(form)?;
        let bytes = hex::decode(&self.proof).map_err(|error| form(format!("proof: {error}")))?;
        let evidence: SignedEvidence =
            borsh::from_slice(&bytes).map_err(|error| form(format!("proof: {error}")))?;
        self.compare(&Self::new(&evidence, committee, &settings)?)
    }

    fn compare(&self, shown: &Self) -> Result<(), EvidenceError> {
        let same = [
            ("member", self.member == shown.member),
            ("identity", self.identity == shown.identity),
            ("rule", self.rule == shown.rule),
            ("signed", self.signed == shown.signed),
            ("proof", self.proof == shown.proof),
        ];
        match same.into_iter().find(|(_, same)| !same) {
            Some((name, _)) => Err(EvidenceError::OtherText(name)),
            None => Ok(()),
        }
    }

    /// Encodes the file as indented JSON, with a newline at the end.
    #[must_use]
    pub fn to_text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("plain fields have a JSON form");
        text + "\n"
    }
}

/// Folder in which a validator keeps the first evidence against each member by rule, over all its
/// starts.
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

    /// Writes a file, unless there is one of this member and rule.
    fn write(&self, evidence: &SignedEvidence) -> std::io::Result<(EvidenceFile, PathBuf)> {
        let file = EvidenceFile::new(evidence, &self.committee, &self.settings)
            .map_err(std::io::Error::other)?;
        std::fs::create_dir_all(&self.path)?;
        let path = self.path.join(format!("{}-{}.json", evidence.signer, file.rule));
        if !path.exists() {
            durable::replace(&path, file.to_text().as_bytes())?;
        }
        Ok((file, path))
    }
}
