//! Keys, committee and settings that outlive every restart of a member.

use quorate_crypto::KeyFile;
use quorate_engine::{Settings, Verifier};
use quorate_storage::{ExecutorConfig, LogConfig};
use quorate_types::Committee;
use std::sync::Arc;

/// Settings that all members have in common, and all their keys.
pub(super) struct Shared {
    pub(super) keys: Vec<KeyFile>,
    pub(super) committee: Arc<Committee>,
    pub(super) settings: Settings,
    pub(super) log: LogConfig,
    pub(super) executor: ExecutorConfig,
}

impl Shared {
    pub(super) fn verifier(&self) -> Verifier {
        Verifier::new(Arc::clone(&self.committee), &self.settings)
    }
}
