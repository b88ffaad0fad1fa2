//! Files that are read again when the process gets SIGHUP, without a restart.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Keeps SIGHUP from ending the process, for good. For the first line of a program: whoever manages
/// it may have it read its files again before there is anybody to do so. A program at a terminal
/// goes with it until it has something to read again.
///
/// # Errors
/// When the system gives no signal handler.
pub fn outlive_hangups() -> io::Result<()> {
    if io::stdin().is_terminal() {
        return Ok(());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    // The handler stays when nobody listens any more.
    signal(SignalKind::hangup()).map(drop)
}

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

    /// Reads `what` again each time, for ever. What cannot be read leaves the former in force. It
    /// is read at once too: it may have changed since it was read first, and nobody listened.
    pub async fn reload<T: Display, E: Display>(
        mut self,
        what: &'static str,
        read: impl Fn() -> Result<T, E>,
    ) {
        let mut is_told = false;
        loop {
            match read() {
                Ok(_) if !is_told => {}
                Ok(now) => tracing::info!(%now, "{what} read again"),
                Err(error) => tracing::error!(%error, "{what} not read again; the former stays"),
            }
            is_told = self.0.recv().await.is_some();
            if !is_told {
                return;
            }
        }
    }
}
