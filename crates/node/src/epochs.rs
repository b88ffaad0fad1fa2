//! The epochs of a network as far as this host knows them: the founding committee file that its
//! configuration names, and the hand-overs since, one file each in `epochs` of its data folder.
//!
//! They are kept for ever: whoever comes with an earlier epoch is shown the way to this one, and
//! receipts of long ago verify over them. Each is checked against the committee before it whenever
//! they are read, so that a folder from elsewhere is as good as one's own.
//!
//! ★ Nothing is signed in an epoch before the hand-over to it is durable here.

use crate::clock::ms_since_1970;
use crate::config::{ConfigError, load_committee};
use crate::rescue::Founded;
use crate::{NodeConfig, NodeError, durable};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{IdentityKey, KeyCache};
use quorate_engine::EpochStart;
use quorate_storage::Role;
use quorate_types::{
    ClientId, Committee, CommitteeFile, Epoch, HandedOver, HandedOverError, Header, History,
};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the folder in the data folder.
const FOLDER: &str = "epochs";
/// Ending of a hand-over's file.
const ENDING: &str = "handover";

/// Epochs up to the one in force.
#[derive(Clone, Debug)]
pub struct Epochs {
    folder: PathBuf,
    founding: CommitteeFile,
    /// Last header of the state that the network was founded on, if it was.
    founded: Option<Header>,
    history: History,
    cache: KeyCache,
}

impl Epochs {
    /// The epochs that a validator's or learner's files lead through.
    ///
    /// # Errors
    /// When a file is not readable, or breaks a rule; [`NodeError::NotFounded`] when the state that
    /// the network begins with is not here.
    pub fn open(config: &NodeConfig) -> Result<Self, NodeError> {
        let folder = config.data_dir.join(FOLDER);
        let (founding, first) = (config.read_committee_file()?, config.load_committee()?);
        let cache = config.replica.comparison.key_cache;
        let history = History::new(Arc::new(first));
        let founded = Founded::header(config, &founding)?;
        let mut epochs = Self { folder, founding, founded, history, cache };
        while let Some(step) = epochs.read_next()? {
            let appended = epochs.history.append(step, cache);
            appended.map_err(|reason| epochs.refused(reason))?;
        }
        Ok(epochs)
    }

    fn read_next(&self) -> Result<Option<HandedOver>, NodeError> {
        let path = self.path_after(self.epoch());
        path.exists().then(|| read_step(&path)).transpose()
    }

    fn refused(&self, reason: HandedOverError) -> NodeError {
        NodeError::HandOver { path: self.path_after(self.epoch()), reason }
    }

    /// Checks that this is how the epoch in force ends.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self, step: &HandedOver) -> Result<(), HandedOverError> {
        step.check(self.committee(), self.cache).map(drop)
    }

    /// ★ Begins the next epoch: durably, and before anything else is done in it.
    ///
    /// # Errors
    /// When it breaks a rule, or cannot be written.
    pub fn begin(&mut self, step: HandedOver) -> Result<(), NodeError> {
        let (path, bytes) = (self.path_after(self.epoch()), step.encode());
        self.history.append(step, self.cache).map_err(|error| self.refused(error))?;
        if mutants::active(Mutant::EpochUnrecorded) {
            return Ok(());
        }
        let failed = |path: &Path, source| {
            let path = path.to_owned();
            NodeError::HandOverFile { action: "write", path, source }
        };
        std::fs::create_dir_all(&self.folder).map_err(|source| failed(&self.folder, source))?;
        durable::sync_folder_of(&self.folder).map_err(|source| failed(&self.folder, source))?;
        durable::replace(&path, &bytes).map_err(|source| failed(&path, source))
    }

    fn path_after(&self, epoch: Epoch) -> PathBuf {
        self.folder.join(format!("{:08}.{ENDING}", epoch.0))
    }

    /// Number of the epoch in force.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.committee().epoch()
    }

    /// The committees since the founding one, and whose heights are whose.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Committee whose epoch has begun and not ended here.
    #[must_use]
    pub fn committee(&self) -> &Arc<Committee> {
        self.history.committee()
    }

    /// Committee file in force.
    #[must_use]
    pub fn file(&self) -> &CommitteeFile {
        self.steps().last().map_or(&self.founding, |step| &step.file)
    }

    /// Hand-overs since the beginning.
    #[must_use]
    pub fn steps(&self) -> &[HandedOver] {
        self.history.steps()
    }

    /// How this epoch of the network ended, if it has.
    #[must_use]
    pub fn step_after(&self, epoch: Epoch) -> Option<&HandedOver> {
        let first = self.history.committees().first().expect("the first is there").epoch();
        let index = usize::try_from(epoch.0.checked_sub(first.0)?).ok()?;
        self.steps().get(index)
    }

    /// How the epoch in force began.
    #[must_use]
    pub fn start(&self) -> EpochStart {
        let start = EpochStart::after(self.committee().network(), self.steps());
        match self.history.committees() {
            [.., ended, _] => start.of(ended),
            _ => self.founded.map_or(start, EpochStart::from_state),
        }
    }

    /// The configuration as the file in force has it: its settings, and whether the owner of this
    /// key is a member. In the founding epoch that is for the configuration to say.
    ///
    /// # Errors
    /// When this program does not know the file's settings.
    pub fn configure(
        &self,
        config: &NodeConfig,
        key: &IdentityKey,
    ) -> Result<NodeConfig, NodeError> {
        let mut config = config.clone();
        if self.steps().is_empty() {
            return Ok(config);
        }
        let unknown = |source| {
            let path = self.path_after(Epoch(self.epoch().0.saturating_sub(1)));
            NodeError::Config(ConfigError::Unknown { path, source })
        };
        config.agree(&self.file().settings).map_err(unknown)?;
        config.learner = self.committee().find(key).is_none();
        if config.listen.is_none() {
            config.listen = self.last_address(key).filter(|_| config.learner);
        }
        Ok(config)
    }

    /// Address of this key's owner when it was a member last.
    fn last_address(&self, key: &IdentityKey) -> Option<String> {
        let places = self.history.committees().iter().rev();
        let mut found = places.filter_map(|committee| committee.address(committee.find(key)?));
        found.next().map(ToOwned::to_owned)
    }

    /// Members of earlier epochs that are none now: they follow as learners.
    #[must_use]
    pub fn former_members(&self) -> BTreeSet<ClientId> {
        let former = self.history.committees().iter().flat_map(|committee| {
            committee.members().filter_map(|member| committee.identity(member))
        });
        former
            .filter(|key| self.committee().find(key).is_none())
            .map(|key| ClientId(*key))
            .collect()
    }

    /// Parts that the owner of this key had in the epochs before this one, and their protocols:
    /// what the files in its folder may say.
    pub(crate) fn former_parts(&self, key: &IdentityKey) -> Vec<(Role, String)> {
        let files = std::iter::once(&self.founding).chain(self.steps().iter().map(|s| &s.file));
        let earlier = self.history.committees().iter().zip(files).take(self.steps().len());
        let part = |(committee, file): (&Arc<Committee>, &CommitteeFile)| {
            let is_member = committee.find(key).is_some();
            let role = if is_member { Role::Validator } else { Role::Learner };
            (role, file.settings.protocol.clone())
        };
        earlier.map(part).collect()
    }
}

/// Reads a client's history of a network: the committee file that founded it and, in the folder
/// `epochs` beside that, the hand-overs since, as many as there are. Both come from a source that
/// their owner trusts, so that they lead on however old they are.
///
/// # Errors
/// When a file is not readable, or breaks a rule.
pub fn read_history(committee: &Path, cache: KeyCache) -> Result<History, NodeError> {
    let history = History::new(Arc::new(load_committee(committee, cache)?));
    let history = known_as_written(history, committee);
    let folder = committee.with_file_name(FOLDER);
    if folder.is_dir() { go_on(history, read_steps(&folder)?, &folder) } else { Ok(history) }
}

/// Goes on over hand-overs from a source that is trusted. Where they lead to the epoch in force,
/// that was so when they were written here, as far as anybody can tell.
///
/// # Errors
/// When one breaks a rule, or is another than the one that is known.
pub fn go_on(
    mut history: History,
    steps: Vec<HandedOver>,
    from: &Path,
) -> Result<History, NodeError> {
    let last = steps.last().map(|step| step.file.epoch);
    let appended = history.append_all(steps, KeyCache::On);
    appended.map_err(|reason| NodeError::HandOver { path: from.to_owned(), reason })?;
    let leads_here = last == Some(history.committee().epoch());
    Ok(if leads_here { known_as_written(history, from) } else { history })
}

fn known_as_written(history: History, file: &Path) -> History {
    let written = std::fs::metadata(file).and_then(|file| file.modified());
    written.into_iter().map(ms_since_1970).fold(history, History::known_at)
}

/// Reads all hand-overs of a folder in the order of their epochs, and checks none.
///
/// # Errors
/// When one cannot be read.
pub fn read_steps(folder: &Path) -> Result<Vec<HandedOver>, NodeError> {
    let failed = |source| {
        let path = folder.to_owned();
        NodeError::HandOverFile { action: "read", path, source }
    };
    let entries: io::Result<Vec<PathBuf>> = std::fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut paths = entries.map_err(failed)?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    paths.sort_unstable();
    paths.iter().map(|path| read_step(path)).collect()
}

fn read_step(path: &Path) -> Result<HandedOver, NodeError> {
    let failed = |source| {
        let path = path.to_owned();
        NodeError::HandOverFile { action: "read", path, source }
    };
    let bytes = std::fs::read(path).map_err(failed)?;
    let refused = |reason| NodeError::HandOver { path: path.to_owned(), reason };
    HandedOver::decode(&bytes).map_err(refused)
}

#[cfg(test)]
pub(crate) mod tests;
