//! `quorate man`: manual pages.

use crate::failure::{CommandResult, EXIT_CODES, Failure};
use crate::{Cli, output};
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use std::fs;
use std::path::{Path, PathBuf};

/// Print the manual page, or write a page for every command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate man | man -l -                             read it\n  \
    quorate man --dir ~/.local/share/man/man1          one page a command")]
pub(crate) struct Options {
    /// Write quorate.1, quorate-run.1 and so on into DIR, which is made when it is missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let mut command = Cli::command();
        command.build();
        match &self.dir {
            Some(folder) => {
                fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
                write(&command, "quorate", folder)
            }
            None => {
                output::text(&page(command, "quorate"));
                Ok(())
            }
        }
    }
}

/// Writes the page of a command and of all below it.
fn write(command: &Command, name: &str, folder: &Path) -> CommandResult {
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page(command.clone(), name)).map_err(|error| failed(&path, &error))?;
    output::line(&path.display().to_string());
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        write(below, &format!("{name}-{}", below.get_name()), folder)?;
    }
    Ok(())
}

fn page(command: Command, name: &str) -> String {
    let is_whole = name == "quorate";
    let title = name.to_uppercase();
    let mut page = Vec::new();
    let man = Man::new(command.disable_help_subcommand(true))
        .title(title)
        .manual("Quorate")
        .source(concat!("quorate ", env!("CARGO_PKG_VERSION")));
    man.render(&mut page).expect("memory");
    let mut page = String::from_utf8_lossy(&page).into_owned();
    if !is_whole {
        page.push_str(".SH \"EXIT STATUS\"\n");
        for line in EXIT_CODES.lines().skip(1) {
            let line = line.trim();
            match line.split_once("  ") {
                Some((code, meaning)) => page.push_str(&format!(".TP\n{code}\n{meaning}\n")),
                None => page.push_str(&format!("{line}\n")),
            }
        }
        page.push_str(".SH \"SEE ALSO\"\n\\fBquorate\\fR(1)\n");
    }
    page
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write {}: {error}", path.display()))
}
