//! `quorate kv token`: users of a gateway.

use crate::failure::{CommandResult, Failure};
use crate::{output, secret};
use clap::Subcommand;
use quorate_crypto::hash;
use quorate_gateway::rest::{Rights, TokensFile, User};
use serde_json::json;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Add, list or remove users of a gateway: each has a token, rights and a prefix of keys.
///
/// The file is the one that `gateway_tokens_file` in a validator's configuration names. It holds
/// hashes: a token is shown once, when it is made. A validator reads the file again on SIGHUP.
/// Whoever changes it keeps its owner and mode; where it is a link, the file behind it is changed.
#[derive(Debug, Subcommand)]
pub(super) enum Token {
    /// Make a token for a new user and print it: it is shown this once
    Add {
        /// File of users; it is made if it is not there
        file: PathBuf,
        /// Name of the user, which no other has
        name: String,
        /// Things that the user may do: read, or write (and read)
        #[arg(long, default_value = "read")]
        rights: Rights,
        /// Beginning of every key that the user may touch; by default all keys
        #[arg(long, value_name = "TEXT", default_value = "")]
        prefix: String,
    },
    /// Show the users and what they may do
    List {
        /// File of users
        file: PathBuf,
    },
    /// Remove a user; its token is worth nothing once the gateway has read the file again
    Remove {
        /// File of users
        file: PathBuf,
        /// Name of the user
        name: String,
    },
}

impl Token {
    pub(super) fn run(&self, as_json: bool) -> CommandResult {
        match self {
            Self::Add { file, name, rights, prefix } => {
                let token = secret::new_token();
                let hash = hash(token.as_bytes()).to_hex();
                let (name, prefix) = (name.clone(), prefix.clone());
                add(file, User { name, hash, rights: *rights, prefix })?;
                if as_json {
                    output::json(&json!({ "token": token }));
                } else {
                    output::line(&token);
                }
                Ok(())
            }
            Self::List { file } => {
                let TokensFile { tokens } = TokensFile::load(file).map_err(Failure::usage)?;
                list(&tokens, as_json);
                Ok(())
            }
            Self::Remove { file, name } => remove(file, name),
        }
    }
}

fn add(path: &Path, user: User) -> CommandResult {
    let place = Place::locked(path)?;
    let is_new = !place.target.exists();
    let mut file = if is_new { TokensFile::default() } else { place.load()? };
    if file.tokens.iter().any(|other| other.name == user.name) {
        let (name, path) = (&user.name, path.display());
        return Err(Failure::usage(format!(
            "{path} has a user '{name}': remove it first, or choose another name"
        )));
    }
    file.tokens.push(user);
    if is_new { place.create(&file) } else { place.replace(&file) }
}

fn remove(path: &Path, name: &str) -> CommandResult {
    let place = Place::locked(path)?;
    let mut file = place.load()?;
    let before = file.tokens.len();
    file.tokens.retain(|user| user.name != name);
    if file.tokens.len() == before {
        return Err(Failure::usage(format!("{} has no user '{name}'", path.display())));
    }
    place.replace(&file)
}

fn list(users: &[User], as_json: bool) {
    if as_json {
        let line = |user: &User| json!({ "name": user.name, "rights": user.rights, "prefix": user.prefix });
        output::json(&json!({ "tokens": users.iter().map(line).collect::<Vec<_>>() }));
        return;
    }
    for User { name, rights, prefix, .. } in users {
        output::line(&format!("{name}\t{rights}\t{prefix}"));
    }
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

    fn load(&self) -> Result<TokensFile, Failure> {
        TokensFile::load(&self.target).map_err(Failure::usage)
    }

    fn create(&self, file: &TokensFile) -> CommandResult {
        secret::write_new(&self.target, &text(file)?)?;
        self.folder.sync_all().map_err(|error| self.failed(&error))
    }

    /// At once or not at all: a gateway that reads it meanwhile finds the one or the other.
    fn replace(&self, file: &TokensFile) -> CommandResult {
        let mut beside = self.target.clone().into_os_string();
        beside.push(".new");
        let beside = Path::new(&beside);
        // Left behind by a command that was interrupted.
        let _ = fs::remove_file(beside);
        secret::write_new(beside, &text(file)?)?;
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

fn text(file: &TokensFile) -> Result<String, Failure> {
    file.digests().map_err(Failure::usage)?;
    let content = toml::to_string(file).expect("a plain struct is a table");
    let text = format!(
        "# Users of a gateway: `quorate kv token` writes them, and SIGHUP has them read again.\n{content}"
    );
    if text.len() as u64 > TokensFile::BYTES_MAX {
        return Err(Failure::usage(format!(
            "more than {} MiB of users",
            TokensFile::BYTES_MAX >> 20
        )));
    }
    Ok(text)
}
