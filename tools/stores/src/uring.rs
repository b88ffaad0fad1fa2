//! `io_uring` beside the system calls of the log and of the transport.

mod log;
mod ring;
mod sockets;

pub(crate) use log::LogRow;
pub(crate) use sockets::SocketsRow;

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum What {
    /// Appends of groups to a file of zeroes, with and without a sync
    Log {
        /// Folder on the disk that is measured
        #[arg(long, default_value = ".")]
        folder: PathBuf,
    },
    /// One frame to several peers on loopback
    Sockets,
    /// Takes all that comes on so many connections
    #[command(hide = true)]
    Drain { connections: usize },
}

impl What {
    pub(crate) fn measure(&self) {
        match self {
            Self::Log { folder } => log::measure(folder),
            Self::Sockets => sockets::measure(),
            Self::Drain { connections } => sockets::drain(*connections),
        }
    }
}
