//! Users of the key-value gateway: whose token may read or write which keys.
//!
//! Every operation and every read passes [`Grant::allows`], which is the one place where rights are
//! decided. A file of users holds hashes of tokens that are 32 random bytes each: whoever reads it
//! cannot show one.

use super::failure::Failure;
use super::token::{Token, TokenError, refuse_shared};
use arc_swap::ArcSwap;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use quorate_crypto::{Digest, hash_keyed};
use quorate_ledger::kv::{Operation, Scan, Step};
use quorate_node::testnet::system_random;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// Things that a user may do with the keys of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// Read values and scan keys, and change nothing.
    Read,
    /// Read and change them.
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

/// A file of users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokensFile {
    /// The users, each with a name and a token of its own.
    #[serde(default)]
    pub tokens: Vec<User>,
}

/// A user, as the file states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// A name for people and limits.
    pub name: String,
    /// BLAKE3 of the token, 64 hexadecimal digits.
    pub hash: String,
    /// Things that it may do.
    pub rights: Rights,
    /// Beginning of every key that it may touch, as text; empty for all keys.
    #[serde(default)]
    pub prefix: String,
}

impl TokensFile {
    /// Longest file of users that is read, in bytes.
    pub const BYTES_MAX: u64 = 4 << 20;

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
    /// another's.
    pub fn digests(&self) -> Result<Vec<Digest>, String> {
        let (mut names, mut owners) = (BTreeSet::new(), BTreeMap::new());
        let mut digests = Vec::with_capacity(self.tokens.len());
        for (index, User { name, hash, .. }) in self.tokens.iter().enumerate() {
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
            digests.push(digest);
        }
        Ok(digests)
    }

    /// Grants of a file that was checked as it was read.
    fn grants(self) -> Vec<(Digest, Arc<Grant>)> {
        let digests = self.digests().expect("it was checked");
        let grant = |User { name, rights, prefix, .. }| Arc::new(Grant { name, rights, prefix });
        digests.into_iter().zip(self.tokens.into_iter().map(grant)).collect()
    }
}

/// Things that the owner of a token may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    name: String,
    rights: Rights,
    prefix: String,
}

impl Grant {
    /// Of whoever has a gateway's one token, or is let in without.
    #[must_use]
    pub fn everything() -> Self {
        Self { name: String::new(), rights: Rights::Write, prefix: String::new() }
    }

    /// The user's name; empty for whoever may do everything without one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Decides whether the user may do this.
    pub(super) fn allows(&self, operation: &Operation) -> Result<(), Failure> {
        match operation {
            Operation::Step(step) => self.allows_step(step),
            Operation::Batch(steps) => steps.iter().try_for_each(|step| self.allows_step(step)),
            Operation::Scan(scan) => self.allows_scan(scan),
        }
    }

    /// Decides whether the user may be shown a receipt: it has operations of others that shared the
    /// request, and so keys and values of all of them.
    pub(super) fn allows_receipt(&self, is_wanted: bool) -> Result<(), Failure> {
        if is_wanted && !self.prefix.is_empty() {
            return Err(self.refusal("a receipt shows operations of others: ask without it"));
        }
        Ok(())
    }

    fn allows_step(&self, step: &Step) -> Result<(), Failure> {
        let (key, changes) = match step {
            Step::Get { key } => (key, false),
            Step::Put { key, .. } | Step::Delete { key } | Step::CompareAndSwap { key, .. } => {
                (key, true)
            }
        };
        if !key.starts_with(self.prefix.as_bytes()) {
            return Err(self.refusal("this key does not begin with it"));
        }
        if changes && self.rights == Rights::Read {
            return Err(self.refusal("nothing may be changed with it"));
        }
        Ok(())
    }

    fn allows_scan(&self, scan: &Scan) -> Result<(), Failure> {
        if self.prefix.is_empty() {
            return Ok(());
        }
        let end = end_of(&self.prefix);
        let ends = scan.to.as_ref().is_some_and(|to| *to <= end);
        if scan.from.starts_with(self.prefix.as_bytes()) && ends {
            return Ok(());
        }
        let (from, to) = (hex::encode(&self.prefix), hex::encode(&end));
        Err(self.refusal(&format!("ask for keys within from={from}&to={to}")))
    }

    fn refusal(&self, reason: &str) -> Failure {
        let Self { name, rights, prefix } = self;
        let error = format!(
            "the token of '{name}' is for '{rights}' on keys that begin with '{prefix}': {reason}"
        );
        Failure::new(StatusCode::FORBIDDEN, error)
    }
}

/// First key beyond all that begin with a prefix. No byte of a text is the highest.
fn end_of(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    end.last_mut().into_iter().for_each(|last| *last += 1);
    end.into()
}

/// Everybody who is let in.
#[derive(Debug)]
pub struct Users {
    /// File that they come from, unless there is one token for everything.
    path: Option<PathBuf>,
    /// Grants by what [`Users::blinded`] makes of a token's hash.
    grants: ArcSwap<BTreeMap<Digest, Arc<Grant>>>,
    blind: [u8; 32],
}

impl From<Token> for Users {
    fn from(token: Token) -> Self {
        let users = Self::nobody(None);
        users.replace(vec![(token.hash(), Arc::new(Grant::everything()))]);
        users
    }
}

impl Users {
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

    fn replace(&self, grants: Vec<(Digest, Arc<Grant>)>) {
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
            self.replace(TokensFile::load(path)?.grants());
        }
        Ok(self.grants.load().len())
    }

    /// Grant of whoever sends these headers.
    pub(super) fn shown_by(&self, headers: &HeaderMap) -> Option<Arc<Grant>> {
        let shown = Token::shown_by(headers)?;
        self.grants.load().get(&self.blinded(&shown)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_crypto::hash;

    fn grant(rights: Rights, prefix: &'static str) -> Grant {
        Grant { name: "till".to_owned(), rights, prefix: prefix.to_owned() }
    }

    fn scan(from: &'static str, to: Option<&'static str>) -> Operation {
        Operation::Scan(Scan { from: from.into(), to: to.map(Bytes::from), limit: 1 })
    }

    #[test]
    fn who_may_read_changes_nothing_and_both_stay_within_their_prefix() {
        let steps = [
            (Step::get("a/1"), true),
            (Step::put("a/1", "v"), false),
            (Step::delete("a/1"), false),
            (Step::compare_and_swap("a/1", None, Some("v".into())), false),
        ];
        for (step, reads) in steps {
            let one = Operation::Step(step.clone());
            let both = Operation::batch([Step::get("a/0"), step]);
            for operation in [one, both] {
                assert_eq!(grant(Rights::Read, "a/").allows(&operation).is_ok(), reads);
                assert!(grant(Rights::Write, "a/").allows(&operation).is_ok());
                assert!(Grant::everything().allows(&operation).is_ok());
                let refused = grant(Rights::Write, "b/").allows(&operation).expect_err("another's");
                assert_eq!(refused.status, StatusCode::FORBIDDEN);
            }
        }
        let mixed = Operation::batch([Step::get("a/1"), Step::get("b/1")]);
        assert!(grant(Rights::Write, "a/").allows(&mixed).is_err());
    }

    #[test]
    fn a_scan_stays_within_the_prefix() {
        let user = grant(Rights::Read, "a/");
        for (operation, allowed) in [
            (scan("a/", Some("a0")), true),
            (scan("a/5", Some("a/7")), true),
            (scan("a/", None), false),
            (scan("", Some("a0")), false),
            (scan("a/", Some("a1")), false),
        ] {
            assert_eq!(user.allows(&operation).is_ok(), allowed, "{operation:?}");
        }
        let refused = user.allows(&scan("", None)).expect_err("too wide");
        assert!(refused.error.contains("from=612f&to=6130"), "{}", refused.error);
        assert!(grant(Rights::Read, "").allows(&scan("", None)).is_ok());
        assert_eq!(end_of("ä"), Bytes::from_static(&[0xc3, 0xa5]));
    }

    #[test]
    fn a_receipt_is_for_whoever_may_see_all_keys() {
        assert!(grant(Rights::Write, "a/").allows_receipt(true).is_err());
        assert!(grant(Rights::Write, "a/").allows_receipt(false).is_ok());
        assert!(grant(Rights::Read, "").allows_receipt(true).is_ok());
    }

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
            Users::load(&path).map_err(|error| error.to_string())
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
