//! The rights that a door knows.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Things that a user may do at a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// Read, and change nothing.
    Read,
    /// Read, and change or send whatever the door takes.
    Write,
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

impl FromStr for Rights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            other => Err(format!("'{other}' is none of 'read' and 'write'")),
        }
    }
}
