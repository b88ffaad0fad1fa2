//! A committee of processes on this machine.
//!
//! Every validator holds the reading end of a pipe from us as its standard input and ends when that
//! pipe closes. So none survives us, whatever happens to us: not even SIGKILL leaves an orphan.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time that validators have to end by themselves.
const FAREWELL: Duration = Duration::from_secs(5);

/// Part of a log that is read for its last lines, in bytes.
const LOG_TAIL_BYTES: u64 = 16 * 1024;

/// Programs to start, with a configuration each.
#[derive(Clone, Debug)]
pub enum Program {
    /// `quorate run`, at this path. Logs to `validator.log` beside the configuration.
    Validator(PathBuf),
    /// `quorate pay run`, at this path; on these processors alone, if some are named. Logs beside
    /// the configuration, under its name.
    Authority(PathBuf, Vec<usize>),
}

impl Program {
    fn command(&self, descriptors: Option<u64>) -> Command {
        let (executable, arguments, cores) = match self {
            Self::Validator(executable) => (executable, &["run"][..], &[][..]),
            Self::Authority(executable, cores) => (executable, &["pay", "run"][..], &cores[..]),
        };
        let mut command = match descriptors {
            Some(most) => limited(executable, most),
            None => Command::new(executable),
        };
        command.args(arguments).arg("--exit-with-parent");
        for core in cores {
            command.args(["--core", &core.to_string()]);
        }
        command.arg("--config");
        command
    }

    fn log_path(&self, config: &Path) -> PathBuf {
        match self {
            Self::Validator(_) => config.with_file_name("validator.log"),
            Self::Authority(..) => config.with_extension("log"),
        }
    }
}

/// A command of this executable in a process that may have so many descriptors open.
fn limited(executable: &Path, descriptors: u64) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -n {descriptors} && exec \"$0\" \"$@\""));
    command.arg(executable);
    command
}

/// Differences from processes that are all there, honest and without a limit of their own.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// Members that are not started: they are as if killed.
    pub absent: Vec<u16>,
    /// Behaviours of validators that will lie once they are told to.
    pub liars: BTreeMap<u16, String>,
    /// File that will name the links that are cut.
    pub cut_links: Option<PathBuf>,
    /// Descriptors that each process may have open; `None` for as many as this one may.
    pub descriptors: Option<u64>,
}

/// The processes. Dropping it ends them.
#[derive(Debug)]
pub struct Processes {
    program: Program,
    configs: Vec<PathBuf>,
    children: Vec<Option<Child>>,
    options: StartOptions,
}

impl Processes {
    /// Starts a validator for every configuration.
    ///
    /// # Errors
    /// When a process or its log cannot be made; those already started are ended.
    pub fn start(executable: &Path, configs: &[PathBuf]) -> io::Result<Self> {
        let program = Program::Validator(executable.to_owned());
        Self::start_with(program, configs, StartOptions::default())
    }

    /// Starts a program for every configuration but those that are to be absent.
    ///
    /// # Errors
    /// As [`Processes::start`].
    pub fn start_with(
        program: Program,
        configs: &[PathBuf],
        options: StartOptions,
    ) -> io::Result<Self> {
        let children = configs.iter().map(|_| None).collect();
        let mut processes = Self { program, configs: configs.to_vec(), children, options };
        let absent = processes.options.absent.clone();
        let starts = |index: &usize| !absent.iter().any(|id| usize::from(*id) == *index);
        for index in (0..configs.len()).filter(starts) {
            processes.start_one(index)?;
        }
        Ok(processes)
    }

    /// Starts a validator that was killed.
    ///
    /// # Errors
    /// When the process or its log cannot be made.
    pub fn start_one(&mut self, index: usize) -> io::Result<()> {
        let log = File::options().create(true).append(true).open(self.log_path(index))?;
        let child = self
            .program
            .command(self.options.descriptors)
            .arg(&self.configs[index])
            .args(self.special_options(index))
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        self.children[index] = Some(child);
        Ok(())
    }

    /// Has a validator begin to lie that was started for it, with SIGUSR1.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn begin_to_lie(&mut self, index: usize) -> io::Result<()> {
        self.signal(index, Signal::USR1)
    }

    /// Ends a validator with SIGKILL and waits until it is gone.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill(&mut self, index: usize) -> io::Result<()> {
        let Some(mut child) = self.children[index].take() else { return Ok(()) };
        child.kill()?;
        child.wait().map(drop)
    }

    /// Stops a validator with SIGSTOP: it keeps its connections and its memory, and does nothing.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn pause(&mut self, index: usize) -> io::Result<()> {
        self.signal(index, Signal::STOP)
    }

    /// Lets a stopped validator go on, with SIGCONT.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn resume(&mut self, index: usize) -> io::Result<()> {
        self.signal(index, Signal::CONT)
    }

    /// Options of a validator that a laboratory does something to.
    fn special_options(&self, index: usize) -> Vec<&OsStr> {
        let behaviour = u16::try_from(index).ok().and_then(|id| self.options.liars.get(&id));
        let lie = behaviour.map(|behaviour| ["--lie".as_ref(), behaviour.as_ref()]);
        let file = self.options.cut_links.as_deref();
        let cut = file.map(|file| ["--cut-links".as_ref(), file.as_os_str()]);
        lie.into_iter().chain(cut).flatten().collect()
    }

    fn signal(&mut self, index: usize, signal: Signal) -> io::Result<()> {
        let Some(child) = &self.children[index] else { return Ok(()) };
        Ok(kill_process(Pid::from_child(child), signal)?)
    }

    /// The first validator that ended by itself, and how.
    pub fn find_exited(&mut self) -> Option<(usize, ExitStatus)> {
        self.children.iter_mut().enumerate().find_map(|(index, child)| {
            let status = child.as_mut()?.try_wait().ok()??;
            Some((index, status))
        })
    }

    /// The process id of a validator that runs.
    #[must_use]
    pub fn id(&self, index: usize) -> Option<u32> {
        self.children[index].as_ref().map(Child::id)
    }

    /// The last `count` lines that a validator logged.
    #[must_use]
    pub fn log_tail(&self, index: usize, count: usize) -> String {
        let text = read_tail(&self.log_path(index)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }

    /// Bytes on disk under a validator's folder, its log for people left out.
    #[must_use]
    pub fn disk_bytes(&self, index: usize) -> u64 {
        let folder = self.configs[index].parent().unwrap_or(Path::new("."));
        allocated(&folder.join("data"))
    }

    /// Asks all validators to end, and ends those that do not.
    pub fn stop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            drop(child.stdin.take());
        }
        let deadline = Instant::now() + FAREWELL;
        for child in self.children.iter_mut().filter_map(Option::take) {
            end(child, deadline);
        }
    }

    fn log_path(&self, index: usize) -> PathBuf {
        self.program.log_path(&self.configs[index])
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.stop();
    }
}

fn end(mut child: Child, deadline: Instant) {
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn read_tail(path: &Path) -> io::Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Disk space of a folder, as far as it can be read.
fn allocated(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size_of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => allocated(&entry.path()),
        Ok(data) => blocks(&data),
        Err(_) => 0,
    };
    entries.flatten().map(size_of).sum()
}

#[cfg(unix)]
fn blocks(data: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    data.blocks() * 512
}

#[cfg(not(unix))]
fn blocks(data: &fs::Metadata) -> u64 {
    data.len()
}

#[cfg(test)]
mod tests;
