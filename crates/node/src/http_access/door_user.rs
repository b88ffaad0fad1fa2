//! Users of doors that know no more than reading and writing: the status page and JSON-RPC.

use super::{Granted, Rights, UserEntry};
use serde::{Deserialize, Serialize};

/// A user of a door, as its file states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoorUser {
    /// A name for people and limits.
    pub name: String,
    /// BLAKE3 of the token, 64 hexadecimal digits.
    pub hash: String,
    /// Things that it may do.
    pub rights: Rights,
    /// Most requests a second, of which a second's worth may come at once; 0 for any number.
    #[serde(default)]
    pub requests_per_second: u64,
}

impl UserEntry for DoorUser {
    type Grant = DoorGrant;

    fn name(&self) -> &str {
        &self.name
    }

    fn hash(&self) -> &str {
        &self.hash
    }

    fn requests_per_second(&self) -> u64 {
        self.requests_per_second
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn grant(self) -> DoorGrant {
        DoorGrant { name: self.name, rights: self.rights }
    }
}

/// Things that the owner of a token may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorGrant {
    name: String,
    rights: Rights,
}

impl DoorGrant {
    /// Returns `true` if it may do what these rights are for.
    #[must_use]
    pub fn has(&self, rights: Rights) -> bool {
        rights == Rights::Read || self.rights == Rights::Write
    }
}

impl Granted for DoorGrant {
    fn everything() -> Self {
        Self { name: String::new(), rights: Rights::Write }
    }

    fn guest() -> Option<Self> {
        None
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_read_does_not_write_and_who_may_write_reads() {
        for (rights, writes) in [(Rights::Read, false), (Rights::Write, true)] {
            let grant = DoorGrant { name: "one".to_owned(), rights };
            assert_eq!((grant.has(Rights::Read), grant.has(Rights::Write)), (true, writes));
        }
        assert!(DoorGrant::everything().has(Rights::Write));
    }
}
