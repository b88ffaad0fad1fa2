//! Who is let in at a door, as a configuration says it.

use super::{TokenError, UserEntry, Users};
use std::path::PathBuf;
use std::sync::Arc;

/// Who is let in at a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody whom nothing else keeps out.
    Open,
    /// Whoever shows the token in this file, read again on SIGHUP.
    Token(PathBuf),
    /// The users in this file, read again on SIGHUP.
    Users(PathBuf),
}

impl Access {
    /// Reads the file; `None` where everybody is let in.
    ///
    /// # Errors
    /// When it is refused.
    pub fn load<U: UserEntry>(&self) -> Result<Option<Arc<Users<U>>>, TokenError> {
        match self {
            Self::Open => Ok(None),
            Self::Token(path) => Users::load_token(path).map(|users| Some(Arc::new(users))),
            Self::Users(path) => Users::load(path).map(|users| Some(Arc::new(users))),
        }
    }
}
