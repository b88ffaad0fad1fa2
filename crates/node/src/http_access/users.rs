//! Users of a door, each with a token and rights of its own, and the file that lists them.
//!
//! What a user may do is the door's own ([`UserEntry`]). A file of users holds hashes of tokens that
//! are 32 random bytes each: whoever reads it cannot show one.

use super::token::{Token, TokenError, refuse_shared};
use crate::testnet::system_random;
use arc_swap::ArcSwap;
use axum::http::HeaderMap;
use quorate_crypto::{Digest, hash_keyed};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Things that the owner of a token may do at a door.
pub trait Granted: fmt::Debug + Send + Sync + Sized + 'static {
    /// Everything: for whoever has a door's one token, or is let in without.
    fn everything() -> Self;

    /// Things that whoever shows no token may do where there are tokens; `None` for nothing.
    fn guest() -> Option<Self>;

    /// The user's name; empty for whoever has none.
    fn name(&self) -> &str;
}

/// A user of a door, as its file states it.
pub trait UserEntry:
    Clone + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Things that the user may do.
    type Grant: Granted;

    /// A name for people and limits.
    fn name(&self) -> &str;

    /// BLAKE3 of the token, 64 hexadecimal digits.
    fn hash(&self) -> &str;

    /// Checks what is this door's own of the entry.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    fn check(&self) -> Result<(), String>;

    /// Rights of whoever shows the token, by an entry that was checked.
    fn grant(self) -> Self::Grant;
}

/// A file of users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokensFile<U> {
    /// The users, each with a name and a token of its own.
    #[serde(default = "Vec::new")]
    pub tokens: Vec<U>,
}

impl<U> Default for TokensFile<U> {
    fn default() -> Self {
        Self { tokens: Vec::new() }
    }
}

impl<U> TokensFile<U> {
    /// Longest file of users that is read, in bytes.
    pub const BYTES_MAX: u64 = 4 << 20;
}

impl<U: UserEntry> TokensFile<U> {
    /// Reads a file of users.
    ///
    /// # Errors
    /// When it cannot be read, is open to others, is too long, or is no list of users.
    pub fn load(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        refuse_shared(&file, path)?;
        let mut bytes = Vec::new();
        file.take(Self::BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        Self::parse(&bytes).map_err(|reason| TokenError::Users { path: path.to_owned(), reason })
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > Self::BYTES_MAX {
            return Err(format!("it is longer than {} MiB", Self::BYTES_MAX >> 20));
        }
        let text = str::from_utf8(bytes).map_err(|error| format!("it is no text: {error}"))?;
        let file: Self =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        file.digests()?;
        Ok(file)
    }

    /// Hashes of the users' tokens, in order.
    ///
    /// # Errors
    /// What is wrong with the list: a name that is empty or another's, a hash that is none or
    /// another's, rights that are none.
    pub fn digests(&self) -> Result<Vec<Digest>, String> {
        let (mut names, mut owners) = (BTreeSet::new(), BTreeMap::new());
        let mut digests = Vec::with_capacity(self.tokens.len());
        for (index, user) in self.tokens.iter().enumerate() {
            let (name, hash) = (user.name(), user.hash());
            if name.trim().is_empty() {
                return Err(format!("user {} has no name", index + 1));
            }
            if !names.insert(name) {
                return Err(format!("two tokens have the name '{name}'"));
            }
            let digest = Digest::from_hex(hash)
                .map_err(|_| format!("the hash of '{name}' is not 64 hexadecimal digits"))?;
            if let Some(other) = owners.insert(digest, name) {
                return Err(format!("'{other}' and '{name}' have the same token"));
            }
            user.check().map_err(|problem| format!("'{name}': {problem}"))?;
            digests.push(digest);
        }
        Ok(digests)
    }

    /// Grants of a file that was checked as it was read.
    fn grants(self) -> Vec<(Digest, Arc<U::Grant>)> {
        let digests = self.digests().expect("it was checked");
        let grants = self.tokens.into_iter().map(|user| Arc::new(user.grant()));
        digests.into_iter().zip(grants).collect()
    }
}

/// Everybody who is let in.
#[derive(Debug)]
pub struct Users<U: UserEntry> {
    /// File that they come from, unless there is one token for everything.
    path: Option<PathBuf>,
    /// Grants by what [`Users::blinded`] makes of a token's hash.
    grants: ArcSwap<BTreeMap<Digest, Arc<U::Grant>>>,
    blind: [u8; 32],
}

impl<U: UserEntry> From<Token> for Users<U> {
    fn from(token: Token) -> Self {
        let users = Self::nobody(None);
        users.replace(vec![(token.hash(), Arc::new(U::Grant::everything()))]);
        users
    }
}

impl<U: UserEntry> Users<U> {
    /// Reads a file of users.
    ///
    /// # Errors
    /// When it is refused.
    pub fn load(path: &Path) -> Result<Self, TokenError> {
        let users = Self::nobody(Some(path.to_owned()));
        users.reload()?;
        Ok(users)
    }

    fn nobody(path: Option<PathBuf>) -> Self {
        let mut blind = [0; 32];
        system_random(&mut blind);
        Self { path, grants: ArcSwap::default(), blind }
    }

    fn replace(&self, grants: Vec<(Digest, Arc<U::Grant>)>) {
        let blinded = grants.into_iter().map(|(hash, grant)| (self.blinded(&hash), grant));
        self.grants.store(Arc::new(blinded.collect()));
    }

    /// Hash under a key that nobody knows: how long a comparison of such takes says nothing of what
    /// is behind them.
    fn blinded(&self, hash: &Digest) -> Digest {
        hash_keyed(&self.blind, &hash.0)
    }

    /// Reads the file again; the number of users.
    ///
    /// # Errors
    /// When it is refused: the former users stay.
    pub fn reload(&self) -> Result<usize, TokenError> {
        if let Some(path) = &self.path {
            self.replace(TokensFile::<U>::load(path)?.grants());
        }
        Ok(self.grants.load().len())
    }

    /// Grant of whoever sends these headers.
    #[must_use]
    pub fn shown_by(&self, headers: &HeaderMap) -> Option<Arc<U::Grant>> {
        let shown = Token::shown_by(headers)?;
        self.grants.load().get(&self.blinded(&shown)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::Users;
    use crate::http_access::DoorUser;
    use quorate_crypto::hash;

    #[test]
    fn a_file_of_users_is_refused_where_it_is_wrong() {
        let digest = hash(b"token").to_hex();
        let user = |name: &str, hash: &str| {
            format!("[[tokens]]\nname = \"{name}\"\nhash = \"{hash}\"\nrights = \"read\"\n")
        };
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("tokens.toml");
        let load = |text: String| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::write(&path, text).expect("written");
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&path, mode).expect("set");
            Users::<DoorUser>::load(&path).map_err(|error| error.to_string())
        };
        assert_eq!(load(user("a", &digest)).expect("a user").grants.load().len(), 1);
        let twice = load(user("a", &digest) + &user("a", &digest)).expect_err("twice");
        assert!(twice.contains("two tokens have the name 'a'"), "{twice}");
        let short = load(user("a", "12")).expect_err("short");
        assert!(short.contains("is not 64 hexadecimal digits"), "{short}");
        let other = load("[[tokens]]\nname = \"a\"".to_owned()).expect_err("incomplete");
        assert!(other.contains("missing field"), "{other}");
        let shared = load(user("a", &digest) + &user("b", &digest.to_uppercase()));
        let shared = shared.expect_err("one token for two");
        assert!(shared.contains("'a' and 'b' have the same token"), "{shared}");
        let nameless = load(user("a", &hash(b"another").to_hex()) + &user(" ", &digest));
        let nameless = nameless.expect_err("nobody");
        assert!(nameless.contains("user 2 has no name"), "{nameless}");
        let long = user("a", &digest) + &"# more\n".repeat(600_000);
        let long = load(long).expect_err("its end is not read");
        assert!(long.contains("it is longer than 4 MiB"), "{long}");
    }
}
