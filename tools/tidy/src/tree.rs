//! The working tree: its Rust files scanned, its Markdown and its packages' manifests as text, and
//! the names of all others.

use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

/// Everything that the checks look at.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) sources: Vec<Source>,
    /// Markdown by its path from the root.
    pub(crate) pages: BTreeMap<String, String>,
    /// `Cargo.toml` by its folder's path from the root.
    pub(crate) manifests: BTreeMap<String, String>,
    /// Paths of all files and folders, from the root.
    pub(crate) paths: BTreeSet<String>,
}

impl Tree {
    /// Reads the tree under a folder. Builds, hidden folders and packages of others are left out.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.add(root, "")?;
        Ok(tree)
    }

    fn add(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().into_string().unwrap_or_default();
            if name.starts_with('.') || ["target", "node_modules", "venv"].contains(&name.as_str())
            {
                continue;
            }
            let path = format!("{prefix}{name}");
            self.paths.insert(path.clone());
            if entry.file_type()?.is_dir() {
                self.add(&entry.path(), &format!("{path}/"))?;
            } else if name.ends_with(".rs") {
                self.sources.push(Source::new(path, fs::read_to_string(entry.path())?));
            } else if name.ends_with(".md") {
                self.pages.insert(path, fs::read_to_string(entry.path())?);
            } else if let Some(package) = path.strip_suffix("/Cargo.toml") {
                self.manifests.insert(package.to_owned(), fs::read_to_string(entry.path())?);
            }
        }
        Ok(())
    }

    /// Text of a page; empty if there is none.
    pub(crate) fn page(&self, path: &str) -> &str {
        self.pages.get(path).map_or("", String::as_str)
    }
}
