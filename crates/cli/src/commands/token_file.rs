//! Files of users with tokens, as gateways read them: changed by commands, whole or not at all.

use crate::failure::{CommandResult, Failure};
use crate::{output, secret};
use quorate_crypto::hash;
use quorate_node::http_access::{TokensFile, UserEntry};
use serde_json::json;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// A new token, and its hash, which is what a file has of it.
pub(super) fn new_token() -> (String, String) {
    let token = secret::new_token();
    let hash = hash(token.as_bytes()).to_hex();
    (token, hash)
}

/// Prints a new token, this once.
pub(super) fn show(token: &str, as_json: bool) {
    if as_json {
        output::json(&json!({ "token": token }));
    } else {
        output::line(token);
    }
}

/// The most requests a second of a user, as a column of its own; empty for any number.
pub(super) fn rate(requests_per_second: u64) -> String {
    match requests_per_second {
        0 => String::new(),
        rate => format!("\t{rate} a second"),
    }
}

/// Reads the users of a file.
pub(super) fn load<U: UserEntry>(path: &Path) -> Result<Vec<U>, Failure> {
    TokensFile::load(path).map(|file| file.tokens).map_err(Failure::usage)
}

/// Adds a user. The file's first line names the command that writes it.
pub(super) fn add<U: UserEntry>(command: &str, path: &Path, user: U) -> CommandResult {
    let place = Place::locked(path)?;
    let is_new = !place.target.exists();
    let mut file: TokensFile<U> = if is_new { TokensFile::default() } else { place.load()? };
    if file.tokens.iter().any(|other| other.name() == user.name()) {
        let (name, path) = (user.name(), path.display());
        return Err(Failure::usage(format!(
            "{path} has a user '{name}': remove it first, or choose another name"
        )));
    }
    file.tokens.push(user);
    if is_new {
        place.create(&text(command, &file)?)
    } else {
        place.replace(&text(command, &file)?)
    }
}

/// Removes a user.
pub(super) fn remove<U: UserEntry>(command: &str, path: &Path, name: &str) -> CommandResult {
    let place = Place::locked(path)?;
    let mut file: TokensFile<U> = place.load()?;
    let before = file.tokens.len();
    file.tokens.retain(|user| user.name() != name);
    if file.tokens.len() == before {
        return Err(Failure::usage(format!("{} has no user '{name}'", path.display())));
    }
    place.replace(&text(command, &file)?)
}

/// A file of users that nobody else changes meanwhile.
struct Place {
    /// The file itself, where the path that was named is a link.
    target: PathBuf,
    /// Its folder, locked as long as it is open: after each change the file is another one.
    folder: File,
}

impl Place {
    /// Waits until whoever else changes the file has done so.
    fn locked(path: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::usage(format!("cannot lock {}: {error}", path.display()));
        let target = if path.is_symlink() { path.canonicalize() } else { Ok(path.to_owned()) };
        let target = target.map_err(failed)?;
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        folder.lock().map_err(failed)?;
        Ok(Self { target, folder })
    }

    fn load<U: UserEntry>(&self) -> Result<TokensFile<U>, Failure> {
        TokensFile::load(&self.target).map_err(Failure::usage)
    }

    fn create(&self, text: &str) -> CommandResult {
        secret::write_new(&self.target, text)?;
        self.folder.sync_all().map_err(|error| self.failed(&error))
    }

    /// At once or not at all: a gateway that reads it meanwhile finds the one or the other.
    fn replace(&self, text: &str) -> CommandResult {
        let mut beside = self.target.clone().into_os_string();
        beside.push(".new");
        let beside = Path::new(&beside);
        // Left behind by a command that was interrupted.
        let _ = fs::remove_file(beside);
        secret::write_new(beside, text)?;
        let replaced = fs::metadata(&self.target)
            .and_then(|former| keep_access(beside, &former))
            .and_then(|()| fs::rename(beside, &self.target))
            .and_then(|()| self.folder.sync_all());
        replaced.map_err(|error| {
            let _ = fs::remove_file(beside);
            self.failed(&error)
        })
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::usage(format!("cannot write {}: {error}", self.target.display()))
    }
}

/// Gives a file the owner and the mode of another, or fails: a gateway that runs as somebody else
/// would find its users gone.
fn keep_access(path: &Path, former: &Metadata) -> io::Result<()> {
    let file = File::open(path)?;
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (former.uid(), former.gid()) {
        fchown(&file, Some(former.uid()), Some(former.gid())).map_err(|error| {
            let owner = format!("user {} and group {}", former.uid(), former.gid());
            io::Error::new(error.kind(), format!("it belongs to {owner}: run this as them"))
        })?;
    }
    file.set_permissions(Permissions::from_mode(former.mode() & 0o7777))?;
    file.sync_all()
}

fn text<U: UserEntry>(command: &str, file: &TokensFile<U>) -> Result<String, Failure> {
    file.digests().map_err(Failure::usage)?;
    let content = toml::to_string(file).expect("a plain struct is a table");
    let text = format!(
        "# Users of a gateway: `{command}` writes them, and SIGHUP has them read again.\n{content}"
    );
    if text.len() as u64 > TokensFile::<U>::BYTES_MAX {
        return Err(Failure::usage(format!(
            "more than {} MiB of users",
            TokensFile::<U>::BYTES_MAX >> 20
        )));
    }
    Ok(text)
}
