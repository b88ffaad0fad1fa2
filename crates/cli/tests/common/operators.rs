//! Operators who change a testnet's committee by their commands.

use super::{copy_all, quorate, stderr, stdout, text, works};
use std::path::{Path, PathBuf};

/// Writes what an operator hands out of a key file, for this address, into a file beside it.
pub(crate) fn entry(key: &Path, address: &str) -> PathBuf {
    let entry = key.with_extension("entry");
    let shown = works(&["keys", "show", text(key)]);
    std::fs::write(&entry, shown.replace("host:port", address)).expect("written");
    entry
}

/// Operators of the members in force, with the folder that `quorate testnet` wrote.
pub(crate) struct Operators {
    folder: PathBuf,
    /// Key file of each.
    keys: Vec<PathBuf>,
    /// Hand-overs to the epoch that the last change ends, where there are some.
    history: Option<PathBuf>,
    epoch: u64,
}

impl Operators {
    /// Those of the committee that founded the network, by the members' configurations.
    pub(crate) fn of(folder: PathBuf, configs: &[PathBuf]) -> Self {
        let keys = configs.iter().map(|config| config.with_file_name("key.toml")).collect();
        Self { folder, keys, history: None, epoch: 1 }
    }

    /// Brings a change that is drafted with these options, signed by all members in force, and
    /// accepted by all of the next: those in force, but for the members whose next key is here.
    pub(crate) fn change(&mut self, options: &[&str], next: &[(usize, &Path)]) {
        let mut keys = self.keys.clone();
        for (member, key) in next {
            keys[*member] = key.to_path_buf();
        }
        self.change_to(options, keys);
    }

    /// The same with these key files of all members of the next epoch, in their order.
    pub(crate) fn change_to(&mut self, options: &[&str], next: Vec<PathBuf>) {
        let change = self.folder.join(format!("change-{}.toml", self.epoch));
        self.draft(&change, options);
        for key in &self.keys {
            self.run("sign", &[text(&change), "--key", text(key)]);
        }
        self.keys = next;
        for key in &self.keys {
            self.run("accept", &[text(&change), "--key", text(key), "--executed", "1"]);
        }
        self.run("submit", &[text(&change)]);
        self.epoch += 1;
    }

    /// Drafts a change with these options.
    pub(crate) fn draft(&mut self, out: &Path, options: &[&str]) {
        self.keep_history();
        self.run("draft", &[&["--out", text(out)], options].concat());
    }

    /// The members in force keep their keys in files of this name from now on.
    pub(crate) fn keys_are(&mut self, configs: &[PathBuf], name: &str) {
        self.keys = configs.iter().map(|config| config.with_file_name(name)).collect();
    }

    /// Copies the hand-overs as they are before the next change.
    fn keep_history(&mut self) {
        let kept = self.keys[0].with_file_name("data").join("epochs");
        if self.epoch > 1 {
            let copy = self.folder.join(format!("epochs-to-{}", self.epoch));
            copy_all(&kept, &copy);
            self.history = Some(copy);
        }
    }

    /// Waits until all are in the epoch that the last change begins.
    pub(crate) fn watch(&self) {
        let change = self.folder.join(format!("change-{}.toml", self.epoch - 1));
        let mut watch = vec!["committee", "watch", text(&change), "--net", text(&self.folder)];
        watch.extend(self.history.iter().flat_map(|history| ["--history", text(history)]));
        let watched = quorate(&[&watch[..], &["--timeout", "60"]].concat());
        assert!(watched.status.success(), "{}", stderr(&watched));
        let last = format!("All are in epoch {}.\n", self.epoch);
        assert!(stdout(&watched).ends_with(&last), "{}", stdout(&watched));
    }

    /// Number of the epoch in force, or to come.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    fn run(&self, command: &str, arguments: &[&str]) {
        let mut place = vec!["--net", text(&self.folder)];
        place.extend(self.history.iter().flat_map(|history| ["--history", text(history)]));
        let output = quorate(&[&["committee", command], arguments, &place[..]].concat());
        assert!(output.status.success(), "{command} {arguments:?}: {}", stderr(&output));
    }
}
