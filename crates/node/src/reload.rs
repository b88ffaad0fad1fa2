//! Files that are read again when the process gets SIGHUP, without a restart.

use std::fmt::Display;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The wish to read a file again, as it comes. While there is one, SIGHUP ends the process no more.
#[derive(Debug)]
pub struct Hangups(Signal);

impl Hangups {
    /// Begins to listen. To be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the system gives no signal handler.
    pub fn listen() -> io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }

    /// Reads `what` again each time, for ever. What cannot be read leaves the former in force.
    pub async fn reload<T: Display, E: Display>(
        mut self,
        what: &'static str,
        read: impl Fn() -> Result<T, E>,
    ) {
        while self.0.recv().await.is_some() {
            match read() {
                Ok(now) => tracing::info!(%now, "{what} read again"),
                Err(error) => tracing::error!(%error, "{what} not read again; the former stays"),
            }
        }
    }
}
