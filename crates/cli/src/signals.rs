//! Ctrl-C and SIGTERM, for work that cleans up behind itself.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// A flag that the first Ctrl-C or SIGTERM sets. A second one ends the process at once.
pub(crate) fn interrupted() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let setter = Arc::clone(&flag);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                if setter.swap(true, Ordering::Relaxed) {
                    std::process::exit(1);
                }
            }
        });
    })?;
    Ok(flag)
}
