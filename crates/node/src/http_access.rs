//! Whoever is let in at an HTTP door: bearer tokens, the files that hold them or list their owners,
//! and the rights that go with one.
//!
//! A token travels in the `Authorization` header alone, never in an address, which logs and
//! histories keep. Doors know it by its hash.

mod access;
mod door_user;
mod guard;
mod refused;
mod reloading;
mod rights;
mod token;
mod users;

pub use access::Access;
pub use door_user::{DoorGrant, DoorUser};
pub use guard::guard;
pub use refused::Refused;
pub use reloading::reload_on_hangups;
pub use rights::Rights;
pub use token::{Token, TokenError};
pub use users::{Granted, Shown, TokensFile, UserEntry, Users};
