//! Data folders that belong to somebody else (exit code 2, and who owns them) or that are damaged.

use crate::common::{Net, edit_committee, json, quorate, stderr, wait_for};
use quorate_node::payments::AuthorityConfig;
use quorate_node::ports::free_ports;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;

/// Parts of a validator's data folder.
const PARTS: [&str; 4] = ["log", "bodies", "state", "snapshots"];

/// A process with its log, killed with the test.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `quorate COMMAND --config CONFIG`, whose log goes beside the configuration.
    fn start(command: &[&str], config: &Path) -> Self {
        let log = config.with_extension("stderr");
        let file = File::create(&log).expect("made");
        let child = Command::new(env!("CARGO_BIN_EXE_quorate"))
            .args(command)
            .arg("--config")
            .arg(config)
            .stdout(Stdio::null())
            .stderr(file)
            .spawn();
        Self { child: child.expect("the binary runs"), log }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    /// How it ended; `None` once it says that it started.
    fn outcome(&mut self) -> Option<ExitStatus> {
        wait_for("it to start or to end", || {
            let exit = self.child.try_wait().expect("a process");
            (exit.is_some() || self.log().contains(" started")).then_some(exit)
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs what must be refused, and returns what it says.
fn refusal(command: &[&str], config: &Path) -> String {
    let mut process = Process::start(command, config);
    let code = process.outcome().and_then(|exit| exit.code());
    let said = process.log();
    assert_eq!(code, Some(2), "{}: {said}", config.display());
    said
}

/// Has what is at two places change its place.
fn swap(one: &Path, other: &Path) {
    let aside = one.with_extension("aside");
    fs::rename(one, &aside).expect("renamed");
    fs::rename(other, one).expect("renamed");
    fs::rename(&aside, other).expect("renamed");
}

fn data(config: &Path) -> PathBuf {
    config.with_file_name("data")
}

/// The first digits of the identity key in a key file: as many as are shown of an owner.
fn key_of(config: &Path) -> String {
    let key = config.with_file_name("key.toml");
    let shown = json(&["keys", "show", key.to_str().expect("a plain path"), "--json"]);
    shown["identity"].as_str().expect("a key")[..16].to_owned()
}

/// Puts until the validators with these configurations have snapshots.
fn load(net: &Net, configs: &[PathBuf]) {
    let folder = net.folder();
    let folder = folder.to_str().expect("a plain path");
    wait_for("snapshots to be taken", || {
        let bench = ["kv", "bench", "--keys", "50", "--duration", "1", "--net", folder];
        let done = quorate(&bench);
        assert!(done.status.success(), "{}", stderr(&done));
        let has_one = |config: &PathBuf| {
            let listed = fs::read_dir(data(config).join("snapshots")).expect("a folder");
            listed.flatten().any(|file| file.file_name().to_string_lossy().starts_with("snapshot-"))
        };
        configs.iter().all(has_one).then_some(())
    });
}

#[test]
fn a_member_refuses_each_part_of_somebody_else_s_folder() {
    let options = ["--service", "kv", "--learners", "1"];
    let mut net = Net::start_with(4, "ed25519", &options, |configs| {
        edit_committee(&configs[0], "snapshot_every = 1024", "snapshot_every = 8");
    });
    let learner = net.learners[0].config.clone();
    net.wait_connected();
    let mut following = Process::start(&["run"], &learner);
    assert_eq!(following.outcome(), None, "{}", following.log());
    let [first, second] = [net.configs[0].clone(), net.configs[1].clone()];
    load(&net, &[first.clone(), second.clone(), learner.clone()]);
    drop(following);
    net.processes.stop();

    for other in [&second, &learner] {
        for part in PARTS {
            let places = [&first, other].map(|config| data(config).join(part));
            swap(&places[0], &places[1]);
            for (config, owner) in [(&first, other), (other, &first)] {
                let said = refusal(&["run"], config);
                let place = data(config).join(part).display().to_string();
                for named in [&place, &key_of(owner), &key_of(config)] {
                    assert!(said.contains(named.as_str()), "{part}: {named} is not in {said}");
                }
            }
            swap(&places[0], &places[1]);
        }
    }

    // With another protocol the promises in the folder would be read as something else.
    edit_committee(&first, "protocol = \"jolteon\"", "protocol = \"hotstuff\"");
    let said = refusal(&["run"], &first);
    assert!(said.contains("jolteon") && said.contains("hotstuff"), "{said}");
    edit_committee(&first, "protocol = \"hotstuff\"", "protocol = \"jolteon\"");

    // No refusal changed anything: all go on, with their votes.
    (0..4).for_each(|index| net.processes.start_one(index).expect("started"));
    net.wait_connected();
    assert!(net.wait_looks().iter().all(|look| look.config.signs));
    let folder = net.folder();
    let put = ["kv", "--timeout", "60", "--net", folder.to_str().expect("a plain path")];
    json(&[&put[..], &["--json", "put", "colour", "green"]].concat());
}

/// Authorities of a payment network that made a payment, and ended.
fn authorities() -> (TempDir, Vec<Vec<PathBuf>>) {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name).display().to_string();
    let (net, bob) = (path("net"), path("bob"));
    let address = json(&["pay", "keys", &bob, "--json"])["address"].clone();
    let port = free_ports(16).expect("free ports").to_string();
    let testnet = ["pay", "testnet", &net, "--base-port", &port, "--shards", "2", "--json"];
    let written = json(&testnet);
    let configs: Vec<Vec<PathBuf>> =
        serde_json::from_value(written["configs"].clone()).expect("paths");
    let running = configs.iter().flatten().map(|config| Process::start(&["pay", "run"], config));
    let mut running: Vec<Process> = running.collect();
    for process in &mut running {
        assert_eq!(process.outcome(), None, "{}", process.log());
    }
    let issuer = path("net/issuer");
    json(&["pay", "keys", &issuer, "--existing", "--json"]);
    let issue = ["pay", "issue", "--to", address.as_str().expect("an address"), "--value", "5"];
    json(&[&issue[..], &["--timeout", "60", "-w", &issuer, "--json"]].concat());
    (place, configs)
}

#[test]
fn an_authority_refuses_the_locks_of_another_and_of_another_shard() {
    let (_place, configs) = authorities();
    let own = &configs[0][0];
    for other in [&configs[1][0], &configs[0][1]] {
        let locks = [own, other].map(|config| {
            AuthorityConfig::load(config).expect("a configuration").data_dir.join("locks")
        });
        swap(&locks[0], &locks[1]);
        let said = refusal(&["pay", "run"], own);
        assert!(said.contains(&locks[0].display().to_string()), "{said}");
        swap(&locks[0], &locks[1]);
    }
    let mut again = Process::start(&["pay", "run"], own);
    assert_eq!(again.outcome(), None, "{}", again.log());
}

/// Whatever byte of a validator's state decays: it goes on, or it ends with exit code 1, sets the
/// state aside and makes another at the next start.
#[test]
fn a_damaged_state_is_made_again() {
    let mut net = Net::start_with(4, "ed25519", &["--service", "kv"], |_| {});
    net.wait_connected();
    let folder = net.folder();
    let folder = folder.to_str().expect("a plain path");
    let bench = ["kv", "bench", "--keys", "500", "--duration", "2", "--net", folder];
    assert!(quorate(&bench).status.success());
    net.processes.stop();
    let config = net.configs[0].clone();
    let state = data(&config).join("state");
    let files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(&state)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.clone(), fs::read(path).expect("a file")))
        .collect();
    let restore = || {
        let _ = fs::remove_dir_all(&state);
        fs::create_dir(&state).expect("made");
        files.iter().for_each(|(path, whole)| fs::write(path, whole).expect("written"));
    };

    let pages: Vec<(&(PathBuf, Vec<u8>), usize)> = files
        .iter()
        .flat_map(|file| (0..file.1.len()).step_by(4_096).map(move |page| (file, page)))
        .filter(|((_, whole), page)| whole[*page..].iter().take(4_096).any(|byte| *byte != 0))
        .collect();
    let mut refused = 0;
    let some = pages.iter().step_by(pages.len().div_ceil(32)).enumerate();
    for (turn, ((path, whole), page)) in some {
        let mut damaged = whole.clone();
        damaged[page + [0, 3, 9, 64][turn % 4]] ^= 0xff;
        restore();
        fs::write(path, &damaged).expect("written");
        let mut process = Process::start(&["run"], &config);
        let Some(exit) = process.outcome() else { continue };
        let said = process.log();
        assert_eq!(exit.code(), Some(1), "page {page} of {}: {said}", path.display());
        assert!(said.contains("set aside") && !said.contains("panicked"), "{said}");
        assert!(!state.exists(), "{said}");
        refused += 1;
    }
    assert!(refused > 0, "no damage was noticed");
    restore();

    (0..4).for_each(|index| net.processes.start_one(index).expect("started"));
    net.wait_connected();
    let level = wait_for("all to be level", || net.level().filter(|look| look.operations > 0));
    assert!(level.config.signs);
}

/// Part of what a validator keeps. The table below, and in docs/OPERATING.md, says what comes of
/// damage to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Log,
    Bodies,
    /// The second copy of the latest promises.
    Promises,
    State,
    Snapshots,
    /// The files `key.used` and `key.guard` beside the key.
    Mark,
    /// The data folder.
    All,
}

/// What is done to a part while its validator does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// It is another member's.
    Swap,
    /// It is what it was some time ago.
    Old,
    Delete,
    /// Its newest file ends half way.
    Truncate,
    /// Its newest file is nothing but zeroes.
    ZeroNewest,
    /// All its files are.
    Zero,
    /// A bit in the middle of its newest file is another.
    Flip,
    /// A bit at the end of it is: in the record that was written last.
    FlipLast,
}

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It starts, is level with the others, and signs.
    Repairs,
    /// The same, perhaps after an exit with code 1 and "start again".
    RepairsAgain,
    /// It starts, is level with the others, does not sign, and says so.
    Follows(&'static str),
    /// It exits with code 2 and this in its sentence.
    Exits(&'static str),
}

use Damage::{Delete, Flip, FlipLast, Old, Swap, Truncate, Zero, ZeroNewest};
use Outcome::{Exits, Follows, Repairs, RepairsAgain};

const FOREIGN: Outcome = Exits(" belongs to validator ");
const LOST: Outcome = Follows("its log is gone");
const SET_BACK: Outcome = Follows("the log was set back");

/// Of what the others or the log have too.
const HELD_ELSEWHERE: &[(Damage, Outcome)] = &[
    (Swap, FOREIGN),
    (Old, Repairs),
    (Delete, Repairs),
    (Truncate, Repairs),
    (Zero, Repairs),
    (Flip, Repairs),
    (FlipLast, Repairs),
];

/// Every part, every damage, and what is expected.
const MATRIX: [(Part, &[(Damage, Outcome)]); 7] = [
    (
        Part::Log,
        &[
            (Swap, FOREIGN),
            (Old, Repairs),
            (Delete, LOST),
            (Truncate, Repairs),
            // The cut began another segment.
            (ZeroNewest, Repairs),
            (Zero, LOST),
            (Flip, Repairs),
            (FlipLast, Repairs),
        ],
    ),
    (Part::Bodies, HELD_ELSEWHERE),
    (Part::Promises, HELD_ELSEWHERE),
    (
        Part::State,
        &[
            (Swap, FOREIGN),
            (Old, Repairs),
            (Delete, Repairs),
            (Truncate, RepairsAgain),
            (Zero, RepairsAgain),
            (Flip, RepairsAgain),
            (FlipLast, RepairsAgain),
        ],
    ),
    (
        Part::Snapshots,
        &[
            (Swap, FOREIGN),
            (Old, Repairs),
            (Delete, Repairs),
            (Truncate, Repairs),
            (Zero, Repairs),
            (Flip, Repairs),
            (FlipLast, Repairs),
        ],
    ),
    (
        Part::Mark,
        &[
            (Swap, FOREIGN),
            (Old, Repairs),
            (Delete, Repairs),
            (Truncate, Repairs),
            (Zero, Repairs),
            (Flip, Repairs),
        ],
    ),
    (Part::All, &[(Swap, FOREIGN), (Old, SET_BACK), (Delete, LOST)]),
];

impl Part {
    /// Returns `true` if what the member signed is in it.
    fn has_promises(self) -> bool {
        match self {
            Self::Log | Self::Promises | Self::Mark | Self::All => true,
            Self::Bodies | Self::State | Self::Snapshots => false,
        }
    }

    /// Its files and folders in a member's folder.
    fn places(self) -> &'static [&'static str] {
        match self {
            Self::Log => &["data/log"],
            Self::Bodies => &["data/bodies"],
            Self::Promises => &["data/promises"],
            Self::State => &["data/state"],
            Self::Snapshots => &["data/snapshots"],
            Self::Mark => &["key.used", "key.guard"],
            Self::All => &["data"],
        }
    }

    /// The files in each of its places that hold anything, oldest first.
    fn files(self, folder: &Path) -> Vec<Vec<PathBuf>> {
        let has_content =
            |file: &PathBuf| fs::read(file).is_ok_and(|bytes| bytes.iter().any(|byte| *byte != 0));
        let files = |place: &&str| {
            let place = folder.join(place);
            let Ok(listed) = fs::read_dir(&place) else { return vec![place] };
            let files = listed.flatten().map(|file| file.path());
            let mut files: Vec<PathBuf> = files.filter(has_content).collect();
            files.sort();
            files
        };
        self.places().iter().map(files).collect()
    }

    /// All that its files hold.
    fn contents(self, folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        if matches!(self, Self::All) {
            let parts = [Self::Log, Self::Bodies, Self::Promises, Self::State, Self::Snapshots];
            return parts.iter().flat_map(|part| part.contents(folder)).collect();
        }
        let files = self.files(folder).into_iter().flatten();
        let name = |file: &Path| file.strip_prefix(folder).expect("below it").to_owned();
        files.map(|file| (name(&file), fs::read(&file).ok())).collect()
    }
}

impl Damage {
    /// Does it to a part of `folder`; `other` is another member's folder, `old` an older one.
    fn harm(self, part: Part, folder: &Path, other: &Path, old: &Path) {
        match self {
            Swap | Old => {
                let from = if self == Swap { other } else { old };
                for place in part.places() {
                    replace(&from.join(place), &folder.join(place));
                }
            }
            Delete => part.places().iter().for_each(|place| remove(&folder.join(place))),
            Zero => part.files(folder).iter().flatten().for_each(|file| self.harm_file(file)),
            Truncate | ZeroNewest | Flip | FlipLast => {
                let files = part.files(folder);
                files.iter().filter_map(|files| files.last()).for_each(|file| self.harm_file(file));
            }
        }
    }

    fn harm_file(self, path: &Path) {
        let mut bytes = fs::read(path).expect("a file");
        let used = 1 + bytes.iter().rposition(|byte| *byte != 0).expect("it holds something");
        match self {
            Truncate => bytes.truncate(used / 2),
            Zero | ZeroNewest => bytes.fill(0),
            Flip => bytes[used / 2] ^= 1,
            FlipLast => bytes[used - 1] ^= 1,
            Swap | Old | Delete => {}
        }
        fs::write(path, bytes).expect("written");
    }
}

fn remove(place: &Path) {
    if place.is_dir() {
        fs::remove_dir_all(place).expect("removed");
    } else if place.exists() {
        fs::remove_file(place).expect("removed");
    }
}

/// Puts a copy of a file or folder in the place of another.
fn replace(from: &Path, to: &Path) {
    remove(to);
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("cp runs").success(), "{}", from.display());
}

/// A member that is damaged and started again and again while the others go on.
struct Patient {
    config: PathBuf,
    /// Its folder as it was before the last damage.
    saved: PathBuf,
    other: PathBuf,
    old: PathBuf,
}

impl Patient {
    fn folder(&self) -> &Path {
        self.config.parent().expect("a folder")
    }

    fn save(&self) {
        replace(self.folder(), &self.saved);
    }

    /// Puts back what was saved of these places.
    fn restore(&self, places: &[&str]) {
        for place in places {
            replace(&self.saved.join(place), &self.folder().join(place));
        }
    }

    /// Damages a part and starts; leaves a folder behind that signs. Says what was not as expected.
    fn suffer(&self, net: &Net, part: Part, damage: Damage, expected: Outcome) -> Option<String> {
        let what = format!("{part:?}, {damage:?}");
        self.save();
        damage.harm(part, self.folder(), &self.other, &self.old);
        let is_harmed = part.contents(self.folder()) != part.contents(&self.saved);
        assert!(is_harmed, "{what}: nothing was damaged");
        let mut process = Process::start(&["run"], &self.config);
        let mut exit = process.outcome();
        if let (RepairsAgain, Some(1)) = (expected, exit.and_then(|exit| exit.code())) {
            if !process.log().contains("start again") {
                return Some(format!("{what}: {}", process.log()));
            }
            process = Process::start(&["run"], &self.config);
            exit = process.outcome();
        }
        let code = exit.map(|exit| exit.code());
        let signs = exit.is_none().then(|| self.level(net, part, &what));
        let said = process.log();
        if exit.is_none() {
            process.stop();
        }
        let is_expected = match expected {
            Exits(sentence) => code == Some(Some(2)) && said.contains(sentence),
            Follows(sentence) => signs == Some(false) && said.contains(sentence),
            Repairs | RepairsAgain => signs == Some(true),
        };
        match expected {
            // Byte for byte, and without the guard: that one stays as it is.
            Follows(_) if is_expected => self.restore(&["data", "key.used"]),
            Repairs | RepairsAgain if is_expected => {}
            _ => self.restore(&["data", "key.used", "key.guard"]),
        }
        (!is_expected).then(|| format!("{what}, not {expected:?}: {code:?} {signs:?} {said}"))
    }

    /// Waits until all are at one point after another operation; `true` if this one signs.
    fn level(&self, net: &Net, part: Part, what: &str) -> bool {
        let folder = net.folder();
        let folder = folder.to_str().expect("a plain path");
        json(&["kv", "--timeout", "60", "--net", folder, "--json", "put", "case", what]);
        let signs = wait_for(&format!("all to be level: {what}"), || net.level()).config.signs;
        if part == Part::Snapshots {
            // The next damage must find one: an operation is not enough for it.
            load(net, std::slice::from_ref(&self.config));
        }
        signs
    }
}

impl Process {
    /// Asks it to end, and waits until it did.
    fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().expect("kill runs").success());
        let exit = self.child.wait().expect("a process");
        assert!(exit.success(), "{}", self.log());
    }
}

#[test]
fn what_a_member_promised_survives_every_damage_or_it_says_what_to_do() {
    suffer_every_damage(Part::has_promises);
}

#[test]
fn what_others_have_too_survives_every_damage_or_it_says_what_to_do() {
    suffer_every_damage(|part| !part.has_promises());
}

/// Nothing that is done to these parts of a folder is a panic, costs more than it must, or has a
/// member sign against what it signed.
fn suffer_every_damage(is_chosen: impl Fn(Part) -> bool) {
    let mut net = Net::start_with(4, "ed25519", &["--service", "kv"], |configs| {
        edit_committee(&configs[0], "snapshot_every = 1024", "snapshot_every = 8");
    });
    net.wait_connected();
    let configs = net.configs.clone();
    load(&net, &configs[..2]);
    net.processes.stop();
    let place = tempfile::tempdir().expect("a folder");
    let [saved, other, old] = ["saved", "other", "old"].map(|name| place.path().join(name));
    replace(configs[1].parent().expect("a folder"), &other);
    replace(configs[0].parent().expect("a folder"), &old);
    let patient = Patient { config: configs[0].clone(), saved, other, old };
    (1..4).for_each(|index| net.processes.start_one(index).expect("started"));
    let mut first = Process::start(&["run"], &patient.config);
    assert_eq!(first.outcome(), None, "{}", first.log());
    net.wait_connected();
    load(&net, &configs[..1]);
    first.stop();

    let mut wrong = Vec::new();
    for (part, rows) in MATRIX.into_iter().filter(|(part, _)| is_chosen(*part)) {
        let suffer =
            |(damage, expected): &(Damage, Outcome)| patient.suffer(&net, part, *damage, *expected);
        wrong.extend(rows.iter().filter_map(suffer));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check_that_nothing_contradicts(&net, &configs);
}

/// What the member signed before, between and after: whoever gets a statement of it compares it
/// with the newest of its kind, and both votes of one view go to one collector. Each has heard it.
fn check_that_nothing_contradicts(net: &Net, configs: &[PathBuf]) {
    let others = || net.looks().into_iter().skip(1).collect::<Option<Vec<_>>>();
    for (look, config) in wait_for("the others to answer", others).iter().zip(&configs[1..]) {
        assert_eq!(look.faults, 0, "{look:?}");
        let of_it = &look.members[0];
        assert!(of_it.turns > of_it.turns_failed, "what it proposed was heard: {of_it:?}");
        let evidence = data(config).join("evidence");
        assert!(!evidence.exists(), "{}", evidence.display());
    }
}
