//! Places of a test network: its files on disk, and the addresses of its members.

use super::{CLIENTS, NETWORK};
use std::path::{Path, PathBuf};

/// The genesis file's name, beside the committee's.
pub(super) const GENESIS: &str = "genesis.json";

/// Folders of a committee's members, and the file that their service begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// A folder of its own for each: `validator-0`.
    #[default]
    Alone,
    /// A folder in that of each authority of a payment network, whose network file is there:
    /// `authority-0/validator`.
    BesideAuthorities,
    /// A folder for each volume that a container mounts, so that paths are the same on disk and in
    /// the container: `validator-0/config`, `validator-0/secret` and, for all, `committee`.
    Volumes,
}

impl Layout {
    /// The committee file's name.
    pub const COMMITTEE: &str = "committee.toml";

    /// Folder in a container of what a validator writes, when its files are in
    /// [`Layout::Volumes`]; the volume is mounted above it, and may hold other things.
    pub const DATA: &str = "/var/lib/quorate/data/validator";

    /// Folder in a container of what a validator notes of its key.
    pub const NOTES: &str = "/var/lib/quorate/notes";

    /// Passphrase of all sealed keys, in the folder of a network in [`Layout::Volumes`].
    pub const PASSPHRASE: &str = "passphrase/passphrase";

    /// Token of the gateways' callers, in the same folder.
    pub const TOKEN: &str = "gateway/token";

    /// The layout of a network's folder, as it lies there.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        if folder.join(Self::Volumes.shared(Self::COMMITTEE)).exists() {
            Self::Volumes
        } else if folder.join(Self::BesideAuthorities.member(0)).exists() {
            Self::BesideAuthorities
        } else {
            Self::Alone
        }
    }

    /// The folder of the network whose committee file this is.
    #[must_use]
    pub fn folder_of(committee: &Path) -> PathBuf {
        let beside = committee.parent().unwrap_or(Path::new(""));
        match beside.parent().filter(|above| Self::of(above) == Self::Volumes) {
            Some(above) => above.to_owned(),
            None => beside.to_owned(),
        }
    }

    /// Folder of a member.
    #[must_use]
    pub fn member(self, index: usize) -> PathBuf {
        match self {
            Self::Alone | Self::Volumes => format!("validator-{index}").into(),
            Self::BesideAuthorities => Path::new(&format!("authority-{index}")).join("validator"),
        }
    }

    /// Folder of a learner.
    #[must_use]
    pub fn learner(index: usize) -> PathBuf {
        format!("learner-{index}").into()
    }

    /// The configuration file in the folder of a member or learner.
    #[must_use]
    pub fn config(self) -> &'static Path {
        Path::new(if self == Self::Volumes { "config/config.toml" } else { "config.toml" })
    }

    /// The list of clients, beside the configuration.
    pub(super) fn clients(self) -> PathBuf {
        self.config().with_file_name(CLIENTS)
    }

    /// The key file in the folder of a member or learner.
    pub(super) fn key(self) -> &'static Path {
        Path::new(if self == Self::Volumes { "secret/key.toml" } else { "key.toml" })
    }

    /// The key file as the configuration names it.
    pub(super) fn named_key(self) -> PathBuf {
        match self {
            Self::Volumes => Path::new("..").join(self.key()),
            _ => self.key().to_owned(),
        }
    }

    /// A file that all share, in the network's folder.
    #[must_use]
    pub fn shared(self, file: &str) -> PathBuf {
        Path::new(if self == Self::Volumes { "committee" } else { "" }).join(file)
    }

    /// The same file as a member's configuration names it.
    pub(super) fn named_shared(self, file: &str) -> PathBuf {
        self.named(&self.shared(file))
    }

    /// A file of the network's folder as a member's configuration names it.
    pub(super) fn named(self, file: &Path) -> PathBuf {
        match self {
            Self::Alone => Path::new("..").join(file),
            Self::BesideAuthorities | Self::Volumes => Path::new("../..").join(file),
        }
    }

    /// The layout of learners beside members of this one.
    pub(super) fn of_learners(self) -> Self {
        if self == Self::Volumes { self } else { Self::Alone }
    }

    pub(super) fn genesis(self) -> &'static str {
        match self {
            Self::Alone | Self::Volumes => GENESIS,
            Self::BesideAuthorities => NETWORK,
        }
    }
}

/// Names of hosts, one for each member and learner. All listen on the same ports, on all
/// interfaces of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNames {
    /// Names of the members' hosts, in index order.
    pub members: Vec<String>,
    /// Names of the learners' hosts, in index order.
    pub learners: Vec<String>,
}

impl HostNames {
    /// Port of status and metrics.
    pub const HTTP_PORT: u16 = 9_100;

    /// Port of the gateway.
    pub const GATEWAY_PORT: u16 = 9_200;
}
