//! Admission of requests: whose token they show, or that no web page sends them; their form; and
//! the limits of concurrency.
//!
//! A browser sends what any page asks for, to this machine too. A page does not know the token, so
//! where there is one it is enough. Where there is none, requests of pages are told by their
//! `Origin`, and those of a page whose own name was made to mean this address (DNS rebinding) by a
//! `Host` that is a name: nobody but a browser sends the first, and an address cannot be rebound.

use super::RestLimits;
use super::failure::Failure;
use super::tokens::{Grant, Users};
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use parking_lot::Mutex;
use quorate_crypto::{Digest, hash, shared_mode};
use quorate_engine::{is_beyond_share, must_leave_room};
use quorate_node::http_server::Caller;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bearer token that callers show. Only its hash is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(Digest);

/// Error of a token file.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token file {path}: {source}; check the path, and who may read it", path = path.display())]
    Read {
        /// Path of the token file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Others may read or write the file.
    #[error("the token file {path} is open to others (mode {mode:04o}): run `chmod 600` on it, and change the token if somebody may have read it", path = path.display())]
    Shared {
        /// Path of the token file.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
    /// The file is no list of users.
    #[error("the tokens file {path} is refused: {reason}", path = path.display())]
    Users {
        /// Path of the tokens file.
        path: PathBuf,
        /// Reason, for people.
        reason: String,
    },
    /// The file holds no token.
    #[error("the token file {path} is not taken: a token is one line of {least} to {most} letters, digits and signs, without spaces", path = path.display(), least = Token::BYTES_MIN, most = Token::BYTES_MAX)]
    Content {
        /// Path of the token file.
        path: PathBuf,
    },
}

impl Token {
    /// Fewest bytes: what is shorter can be guessed.
    pub const BYTES_MIN: usize = 16;
    /// Most bytes of a token.
    pub const BYTES_MAX: usize = 1_024;

    /// A token of printable ASCII without spaces, or `None` when it is not that, too short or too
    /// long.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = (Self::BYTES_MIN..=Self::BYTES_MAX).contains(&text.len());
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        (fits && is_plain).then(|| Self(hash(text.as_bytes())))
    }

    /// Reads a file of one line.
    ///
    /// # Errors
    /// When it cannot be read, is open to others, or holds no token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        refuse_shared(&file, path)?;
        let mut text = String::new();
        // A little more than a token and its line's end: more is not read.
        file.take(Self::BYTES_MAX as u64 + 3).read_to_string(&mut text).map_err(failed)?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        Self::new(line).ok_or_else(|| TokenError::Content { path: path.to_owned() })
    }

    /// Hash of the token, by which it is known.
    #[must_use]
    pub fn hash(&self) -> Digest {
        self.0
    }

    /// Hash of the token that these headers carry, whichever it is.
    pub(super) fn shown_by(headers: &HeaderMap) -> Option<Digest> {
        let shown = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        shown.and_then(bearer).map(hash)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Token behind the word `Bearer`, whose case does not matter (RFC 7235 §2.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

pub(super) fn refuse_shared(file: &File, path: &Path) -> Result<(), TokenError> {
    let failed = |source| TokenError::Read { path: path.to_owned(), source };
    match shared_mode(file, 0o027).map_err(failed)? {
        Some(mode) => Err(TokenError::Shared { path: path.to_owned(), mode }),
        None => Ok(()),
    }
}

/// Refuses a request that a web page may have sent.
fn refuse_pages(headers: &HeaderMap) -> Result<(), Failure> {
    if headers.contains_key(header::ORIGIN) {
        return Err(Failure::of_a_page());
    }
    // Programs may leave it out; a browser never does.
    match headers.get(header::HOST) {
        Some(host) if !is_own_address(host) => Err(Failure::other_host()),
        _ => Ok(()),
    }
}

/// Tells whether a `Host` is an address, or the name that every system keeps for itself.
fn is_own_address(host: &HeaderValue) -> bool {
    let authority = Authority::try_from(host.as_bytes());
    authority.is_ok_and(|authority| {
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
    })
}

/// Refuses a body that does not say it is JSON where JSON is taken: a web page can send any other
/// kind without asking first (a "simple" request). Values of keys are not JSON, and come by PUT,
/// for which a page must ask.
fn require_json(request: &Request) -> Result<(), Failure> {
    let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let kind = kind.unwrap_or_default().split(|byte| *byte == b';').next().unwrap_or_default();
    let is_json = kind.trim_ascii().eq_ignore_ascii_case(b"application/json");
    if request.method() != Method::POST || is_json {
        return Ok(());
    }
    Err(Failure::no_json())
}

/// Whoever sends a request, as far as its share of the places goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sender {
    User(String),
    Address(IpAddr),
}

/// Admission control: who is let in, and the number of requests under way.
pub(crate) struct Admission {
    users: Option<Arc<Users>>,
    requests_max: usize,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    taken: usize,
    shares: BTreeMap<Sender, usize>,
}

/// Place of a request; given back when dropped.
struct Place<'a> {
    admission: &'a Admission,
    sender: Option<Sender>,
}

impl Admission {
    pub(crate) fn new(users: Option<Arc<Users>>, limits: &RestLimits) -> Arc<Self> {
        let requests_max = limits.requests_max.max(1);
        Arc::new(Self { users, requests_max, places: Mutex::default() })
    }

    fn grant(&self, headers: &HeaderMap) -> Result<Arc<Grant>, Failure> {
        match &self.users {
            Some(users) => users.shown_by(headers).ok_or_else(Failure::no_token),
            None => refuse_pages(headers).map(|()| Arc::new(Grant::everything())),
        }
    }

    /// Takes a place for a request of this sender. This machine's, without a name, are not counted
    /// by address: a proxy speaks for many.
    fn enter(&self, sender: Option<Sender>) -> Result<Place<'_>, Failure> {
        let mut places = self.places.lock();
        let Places { taken, shares } = &mut *places;
        if *taken >= self.requests_max {
            return Err(Failure::busy());
        }
        if let Some(sender) = &sender {
            let room = (*taken, self.requests_max);
            if is_beyond_share(shares, sender, 1, room) || must_leave_room(shares, sender, room) {
                return Err(Failure::share_taken());
            }
            *shares.entry(sender.clone()).or_default() += 1;
        }
        *taken += 1;
        drop(places);
        Ok(Place { admission: self, sender })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut places = self.admission.places.lock();
        places.taken -= 1;
        if let Some(sender) = self.sender.take()
            && let Entry::Occupied(mut share) = places.shares.entry(sender)
        {
            *share.get_mut() -= 1;
            if *share.get() == 0 {
                share.remove();
            }
        }
    }
}

/// Lets a request through that shows a token, or where there is none that no web page sent, while
/// there are not too many; its handler finds what its sender may do.
pub(crate) async fn guard(
    State(admission): State<Arc<Admission>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let grant = admission.grant(request.headers())?;
    require_json(&request)?;
    let address = request.extensions().get::<Caller>().map(|caller| caller.0);
    let sender = match grant.name() {
        "" => address.filter(|address| !address.is_loopback()).map(Sender::Address),
        name => Some(Sender::User(name.to_owned())),
    };
    let _place = admission.enter(sender)?;
    request.extensions_mut().insert(grant);
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::{Admission, Sender, Token, TokenError, bearer, is_own_address};
    use crate::rest::RestLimits;
    use axum::http::{HeaderMap, HeaderValue, header};
    use std::fs;
    use std::path::PathBuf;

    const TEXT: &str = "0123456789abcdef";

    #[test]
    fn a_token_is_a_line_of_plain_characters() {
        let long = "x".repeat(1_024);
        assert!(Token::new(TEXT).is_some() && Token::new(&long).is_some());
        let too_long = "x".repeat(1_025);
        for refused in ["", "0123456789abcde", "0123456789abcde f", "0123456789abcdeü", &too_long]
        {
            assert_eq!(Token::new(refused), None, "{refused}");
        }
    }

    #[test]
    fn only_the_token_itself_opens() {
        let token = Token::new(TEXT).expect("a token");
        let shows = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).expect("a value"));
            Token::shown_by(&headers) == Some(token.hash())
        };
        assert!(shows("Bearer 0123456789abcdef") && shows("bearer 0123456789abcdef"));
        for refused in ["", "Bearer ", "Bearer 0123456789abcdeF", "Basic 0123456789abcdef", TEXT] {
            assert!(!shows(refused), "{refused}");
        }
        assert_eq!(Token::shown_by(&HeaderMap::new()), None);
        assert_eq!(bearer(b"Bearer a b"), Some(&b"a b"[..]));
    }

    #[test]
    fn a_host_is_an_address_or_this_machine() {
        let is_own = |host: &str| is_own_address(&HeaderValue::from_str(host).expect("a value"));
        for own in ["127.0.0.1", "127.0.0.1:9200", "[::1]:9200", "10.1.2.3", "localhost:80"] {
            assert!(is_own(own), "{own}");
        }
        for other in
            ["", "kv.example", "127.0.0.1.example:9200", "localhost.example", "[::1", "a@b"]
        {
            assert!(!is_own(other), "{other}");
        }
    }

    #[test]
    fn one_sender_leaves_places_for_others() {
        let limits = RestLimits { requests_max: 16, ..RestLimits::default() };
        let admission = Admission::new(None, &limits);
        let user = |name: &str| Some(Sender::User(name.to_owned()));
        let mut places = Vec::new();
        let refused = loop {
            match admission.enter(user("a")) {
                Ok(place) => places.push(place),
                Err(failure) => break failure,
            }
        };
        assert_eq!((places.len(), refused.status.as_u16()), (14, 429));
        places.push(admission.enter(user("b")).expect("a place is left"));
        assert!(admission.enter(user("a")).is_err());
        places.push(admission.enter(None).expect("this machine's are not counted"));
        assert_eq!(admission.enter(user("c")).err().expect("all taken").status.as_u16(), 503);
        drop(places);
        assert!(admission.places.lock().shares.is_empty());
        assert!(admission.enter(user("a")).is_ok());
    }

    fn file(content: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        fs::write(&path, content).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        (folder, path)
    }

    #[test]
    fn a_token_file_is_one_line_and_not_open_to_others() {
        for content in [TEXT.to_owned(), format!("{TEXT}\n"), format!("{TEXT}\r\n")] {
            let (_folder, path) = file(&content, 0o600);
            assert_eq!(Token::read(&path).expect("a token"), Token::new(TEXT).expect("a token"));
        }
        let (_folder, path) = file(&format!("{TEXT}\n{TEXT}\n"), 0o600);
        assert!(matches!(Token::read(&path), Err(TokenError::Content { .. })));
        let (_folder, path) = file(TEXT, 0o644);
        assert!(matches!(Token::read(&path), Err(TokenError::Shared { mode: 0o644, .. })));
        let absent = path.with_file_name("absent");
        assert!(matches!(Token::read(&absent), Err(TokenError::Read { .. })));
    }
}
