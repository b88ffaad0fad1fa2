//! Passphrases from a file or from the terminal, never from an argument.

use crate::failure::Failure;
use quorate_crypto::{KeyFile, KeyFileError, Passphrase, SealCost, StoredKeys};
use quorate_node::keys::{Origin, passphrase_file_of_environment, read_passphrase};
use quorate_node::testnet::system_random;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::Path;
use zeroize::Zeroizing;

/// Number of attempts at typing a new passphrase twice.
const ATTEMPTS: usize = 3;

/// The passphrase that opens a file: from `file`, from the environment, or typed.
pub(crate) fn existing(of: &Path, file: Option<&Path>) -> Result<Passphrase, Failure> {
    match from_file(file)? {
        Some(passphrase) => Ok(passphrase),
        None => ask(of)?.ok_or_else(no_terminal),
    }
}

/// Keys of a file, opened with a passphrase from `passphrase_file`, from the environment or typed
/// where it is sealed.
pub(crate) fn open_keys(file: &Path, passphrase_file: Option<&Path>) -> Result<KeyFile, Failure> {
    Ok(open_with_passphrase(file, passphrase_file)?.0)
}

/// As [`open_keys`], with the passphrase where the file is sealed: for a file that follows it.
pub(crate) fn open_with_passphrase(
    file: &Path,
    passphrase_file: Option<&Path>,
) -> Result<(KeyFile, Option<Passphrase>), Failure> {
    match StoredKeys::read(file).map_err(Failure::usage)? {
        StoredKeys::Open(keys) => Ok((keys, None)),
        StoredKeys::Sealed(sealed) => {
            let passphrase = existing(file, passphrase_file)?;
            let keys = sealed.open(&passphrase).map_err(Failure::usage)?;
            Ok((keys, Some(passphrase)))
        }
    }
}

/// Writes keys to a new file, under a passphrase if there is one.
pub(crate) fn write_keys(
    keys: &KeyFile,
    file: &Path,
    passphrase: Option<&Passphrase>,
) -> Result<(), KeyFileError> {
    match passphrase {
        Some(passphrase) => {
            keys.write_sealed(file, passphrase, SealCost::default(), &mut system_random)
        }
        None => keys.write(file),
    }
}

/// A new passphrase: from `file`, from the environment if `environment` says so, or typed twice.
pub(crate) fn new(
    of: &Path,
    file: Option<&Path>,
    environment: bool,
) -> Result<Passphrase, Failure> {
    let named = if file.is_some() || environment { from_file(file)? } else { None };
    let Some(passphrase) = named else { return choose(of) };
    passphrase
        .check_new()
        .map_err(|error| Failure::usage(format!("the new passphrase: {error}")))?;
    Ok(passphrase)
}

/// Asks at the terminal for the passphrase of a file; `None` when there is no terminal.
pub(crate) fn ask(of: &Path) -> Result<Option<Passphrase>, Failure> {
    let Some(text) = prompt(&format!("Passphrase of {}: ", of.display()))? else {
        return Ok(None);
    };
    Passphrase::new(text)
        .map(Some)
        .map_err(|error| Failure::usage(format!("the passphrase is not taken: {error}")))
}

fn from_file(file: Option<&Path>) -> Result<Option<Passphrase>, Failure> {
    let named = match file {
        Some(file) => Some((file.to_owned(), Origin::Configuration)),
        None => passphrase_file_of_environment(),
    };
    let read = |(path, origin): (std::path::PathBuf, Origin)| read_passphrase(&path, origin);
    named.map(read).transpose().map_err(Failure::usage)
}

fn choose(of: &Path) -> Result<Passphrase, Failure> {
    for _ in 0..ATTEMPTS {
        let first = prompt(&format!("New passphrase of {}: ", of.display()))?;
        let first = first.ok_or_else(no_terminal)?;
        let chosen = Passphrase::new(first).and_then(|new| new.check_new().map(|()| new));
        let chosen = match chosen {
            Ok(chosen) => chosen,
            Err(error) => {
                eprintln!("Not taken: {error}.");
                continue;
            }
        };
        let again = prompt("The same again: ")?.ok_or_else(no_terminal)?;
        match Passphrase::new(again) {
            Ok(again) if again.is_same(&chosen) => return Ok(chosen),
            _ => eprintln!("The two differ."),
        }
    }
    Err(Failure::usage("no passphrase was chosen"))
}

/// One line from the terminal, without echo; `None` when there is no terminal. A program whose
/// input comes from elsewhere has nobody to ask, although it may have been started at a terminal.
fn prompt(text: &str) -> Result<Option<Zeroizing<String>>, Failure> {
    if !io::stdin().is_terminal() {
        return Ok(None);
    }
    // Before the prompt is shown: whoever types at once types unseen too.
    let _silence = Silence::begin();
    match rpassword::prompt_password(text) {
        Ok(line) => Ok(Some(Zeroizing::new(line))),
        Err(error) if is_no_terminal(&error) => Ok(None),
        Err(error) => Err(Failure::run(format!("cannot read from the terminal: {error}"))),
    }
}

/// The terminal without echo, until it is dropped.
struct Silence(Option<(File, Termios)>);

impl Silence {
    /// Without a terminal there is nothing to keep silent: whoever reads says so.
    fn begin() -> Self {
        let silence = || {
            let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
            let before = tcgetattr(&terminal).ok()?;
            let mut silent = before.clone();
            silent.local_modes.remove(LocalModes::ECHO);
            tcsetattr(&terminal, OptionalActions::Now, &silent).ok()?;
            Some((terminal, before))
        };
        Self(silence())
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        if let Some((terminal, before)) = &self.0 {
            // A terminal that is gone needs no echo.
            let _ = tcsetattr(terminal, OptionalActions::Now, before);
        }
    }
}

/// Linux: there is no `/dev/tty`, or none that belongs to this process (ENXIO).
fn is_no_terminal(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(6)
}

fn no_terminal() -> Failure {
    Failure::usage(
        "a passphrase is needed and there is no terminal to ask at: name a file that holds it by \
         --passphrase-file or QUORATE_PASSPHRASE_FILE",
    )
}
