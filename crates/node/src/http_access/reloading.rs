//! Files of a door that are read again while it is open.

use super::{UserEntry, Users};
use crate::http_server::DoorRules;
use crate::reload::Hangups;
use std::io;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Has users and certificate of a door read again when the process is told to; the log calls them
/// by these names.
///
/// # Errors
/// When the system gives no signal handler.
pub fn reload_on_hangups<U: UserEntry>(
    runtime: &Runtime,
    [users_name, certificate_name]: [&'static str; 2],
    (users, rules): (Option<Arc<Users<U>>>, &DoorRules),
) -> io::Result<()> {
    let _inside = runtime.enter();
    if let Some(users) = users {
        runtime.spawn(Hangups::listen()?.reload(users_name, move || users.reload()));
    }
    if let Some(tls) = rules.tls.clone() {
        runtime.spawn(Hangups::listen()?.reload(certificate_name, move || tls.reload()));
    }
    Ok(())
}
