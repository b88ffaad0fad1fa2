//! Users of a door, each with a token and rights of its own, and the file that lists them.
//!
//! What a user may do is the door's own ([`UserEntry`]). A file of users holds hashes of tokens
//! that are 32 random bytes each: whoever reads it cannot show one.

use super::Refused;
use super::token::{Token, TokenError, refuse_shared};
use crate::quotas::{RateLimit, Used};
use crate::testnet::system_random;
use arc_swap::ArcSwap;
use axum::http::HeaderMap;
use parking_lot::Mutex;
use quorate_crypto::{Digest, hash_keyed};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

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

    /// Most requests a second; 0 for any number.
    fn requests_per_second(&self) -> u64 {
        0
    }

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
        let file: Self = toml::from_str(text).map_err(|error| named(text, &error))?;
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
    fn users(self) -> Vec<(Digest, Arc<Account<U::Grant>>)> {
        let digests = self.digests().expect("it was checked");
        let accounts = self.tokens.into_iter().map(|user| {
            let per_second = user.requests_per_second();
            Account::new(user.grant(), RateLimit { per_second })
        });
        digests.into_iter().zip(accounts).collect()
    }
}

/// Error of a file of users, by its line. Its text is not shown: a file with the one token may have
/// been named in its place.
fn named(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().and_then(|span| Some(text.get(..span.start)?.lines().count().max(1)));
    let place = line.map_or(String::new(), |line| format!("line {line}: "));
    format!("{place}{}", error.message())
}

/// Accounts by the names of their tokens.
type Accounts<G> = BTreeMap<Digest, Arc<Account<G>>>;

/// Somebody who is let in, and how much of its rate is used up.
#[derive(Debug)]
struct Account<G> {
    grant: Arc<G>,
    limit: RateLimit,
    used: Mutex<Used>,
}

impl<G> Account<G> {
    fn new(grant: G, limit: RateLimit) -> Arc<Self> {
        Arc::new(Self { grant: Arc::new(grant), limit, used: Mutex::default() })
    }

    /// Takes a request, or says how long to wait for the next.
    fn take(&self, now: Instant) -> Result<(), Refused> {
        let mut used = self.used.lock();
        let wait = self.limit.wait(now, *used);
        if !wait.is_zero() {
            return Err(Refused::TooMany(wait));
        }
        self.limit.take(now, &mut used, 1);
        Ok(())
    }
}

/// Place that users come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// A file with one token for everything.
    Token(PathBuf),
    /// A file of users.
    File(PathBuf),
}

/// Token that somebody showed, known or not, as [`Users`] look for it. Worth nothing elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown(Digest);

/// Everybody who is let in.
#[derive(Debug)]
pub struct Users<U: UserEntry> {
    source: Source,
    /// Accounts by what [`Users::blinded`] makes of a token's hash.
    accounts: ArcSwap<Accounts<U::Grant>>,
    blind: [u8; 32],
}

/// The one owner of a door's token, which may do everything at any rate.
fn only<G: Granted>(token: Token) -> Vec<(Digest, Arc<Account<G>>)> {
    vec![(token.hash(), Account::new(G::everything(), RateLimit::default()))]
}

impl<U: UserEntry> Users<U> {
    /// Reads a file of users.
    ///
    /// # Errors
    /// When it is refused.
    pub fn load(path: &Path) -> Result<Self, TokenError> {
        Self::of(Source::File(path.to_owned()))
    }

    /// Reads a file with the one token for everything.
    ///
    /// # Errors
    /// When it is refused.
    pub fn load_token(path: &Path) -> Result<Self, TokenError> {
        Self::of(Source::Token(path.to_owned()))
    }

    fn of(source: Source) -> Result<Self, TokenError> {
        let users = Self::nobody(source);
        users.reload()?;
        Ok(users)
    }

    fn nobody(source: Source) -> Self {
        let mut blind = [0; 32];
        system_random(&mut blind);
        Self { source, accounts: ArcSwap::default(), blind }
    }

    /// Puts these in the place of the former. Who was there before goes on with what it has used
    /// up.
    fn replace(&self, accounts: Vec<(Digest, Arc<Account<U::Grant>>)>) {
        let former = self.accounts.load();
        let blinded = accounts.into_iter().map(|(hash, account)| {
            let name = self.blinded(&hash);
            if let Some(former) = former.get(&name) {
                *account.used.lock() = *former.used.lock();
            }
            (name, account)
        });
        self.accounts.store(Arc::new(blinded.collect()));
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
        match &self.source {
            Source::Token(path) => self.replace(only(Token::read(path)?)),
            Source::File(path) => self.replace(TokensFile::<U>::load(path)?.users()),
        }
        Ok(self.accounts.load().len())
    }

    /// Token that these headers carry, if any.
    #[must_use]
    pub fn shown_by(&self, headers: &HeaderMap) -> Option<Shown> {
        Token::shown_by(headers).map(|hash| Shown(self.blinded(&hash)))
    }

    /// Grant of whoever showed this, as long as the file has it.
    ///
    /// # Errors
    /// When the token is nobody's.
    pub fn grant(&self, shown: Option<Shown>) -> Result<Arc<U::Grant>, Refused> {
        self.account(shown).map(|account| Arc::clone(&account.grant))
    }

    /// Takes a request of whoever showed this.
    ///
    /// # Errors
    /// When the token is nobody's, or its owner has sent more than its rate.
    pub fn admit(&self, shown: Option<Shown>) -> Result<Arc<U::Grant>, Refused> {
        let account = self.account(shown)?;
        account.take(Instant::now())?;
        Ok(Arc::clone(&account.grant))
    }

    fn account(&self, shown: Option<Shown>) -> Result<Arc<Account<U::Grant>>, Refused> {
        let Shown(blinded) = shown.ok_or(Refused::NoToken)?;
        self.accounts.load().get(&blinded).cloned().ok_or(Refused::NoToken)
    }
}

#[cfg(test)]
mod tests {
    use super::{Refused, Shown, Source, TokensFile, Users};
    use crate::http_access::{DoorUser, Rights};
    use axum::http::HeaderMap;
    use axum::http::header::AUTHORIZATION;
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
        assert_eq!(load(user("a", &digest)).expect("a user").accounts.load().len(), 1);
        let twice = load(user("a", &digest) + &user("a", &digest)).expect_err("twice");
        assert!(twice.contains("two tokens have the name 'a'"), "{twice}");
        let short = load(user("a", "12")).expect_err("short");
        assert!(short.contains("is not 64 hexadecimal digits"), "{short}");
        let other = load("[[tokens]]\nname = \"a\"".to_owned()).expect_err("incomplete");
        assert!(other.contains("missing field"), "{other}");
        let mistaken = load("the-one-token-of-a-door\n".to_owned()).expect_err("no list of users");
        assert!(mistaken.contains("line 1: ") && !mistaken.contains("the-one"), "{mistaken}");
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

    fn user(name: &str, requests_per_second: u64) -> DoorUser {
        let hash = hash(name.as_bytes()).to_hex();
        DoorUser { name: name.to_owned(), hash, rights: Rights::Read, requests_per_second }
    }

    fn shown(users: &Users<DoorUser>, token: &str) -> Option<Shown> {
        let mut headers = HeaderMap::new();
        let value = format!("Bearer {token}").parse().expect("a value");
        headers.insert(AUTHORIZATION, value);
        users.shown_by(&headers)
    }

    #[test]
    fn each_token_has_a_rate_of_its_own_and_looking_at_it_takes_nothing() {
        let users = Users::<DoorUser>::nobody(Source::File("users.toml".into()));
        users.replace(TokensFile { tokens: vec![user("slow", 1), user("any", 0)] }.users());
        let (slow, any) = (shown(&users, "slow"), shown(&users, "any"));
        for _ in 0..100 {
            assert!(users.grant(slow).is_ok() && users.admit(any).is_ok());
        }
        assert!(
            users.admit(slow).is_ok() && users.admit(slow).is_ok(),
            "a second's worth, and one"
        );
        assert!(matches!(users.admit(slow), Err(Refused::TooMany(_))));
        users.replace(TokensFile { tokens: vec![user("slow", 1), user("any", 0)] }.users());
        assert!(matches!(users.admit(slow), Err(Refused::TooMany(_))), "reading renews nothing");
        for nobody in [None, shown(&users, "another")] {
            assert_eq!(users.admit(nobody).expect_err("nobody"), Refused::NoToken);
            assert_eq!(users.grant(nobody).expect_err("nobody"), Refused::NoToken);
        }
        users.replace(Vec::new());
        assert_eq!(users.grant(any).expect_err("removed"), Refused::NoToken);
    }

    #[test]
    fn the_one_token_is_read_again_and_a_refused_file_changes_nothing() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("token");
        let write = |text: &str| {
            std::fs::write(&path, text).expect("written");
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&path, mode).expect("set");
        };
        let (first, second) = ("the-first-token-here", "the-second-token-here");
        write(first);
        let users = Users::<DoorUser>::load_token(&path).expect("a token");
        let lets_in = |token| users.admit(shown(&users, token)).is_ok();
        assert!(lets_in(first) && !lets_in(second));
        write(second);
        assert!(lets_in(first), "it was not read again");
        assert_eq!(users.reload().expect("a token"), 1);
        assert!(lets_in(second) && !lets_in(first));
        write("short");
        assert!(users.reload().is_err() && lets_in(second));
    }
}
