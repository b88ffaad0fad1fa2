//! The commented form of a configuration.
//!
//! Values come from the struct itself, comments from the tables below; a test asserts that every
//! field has one and that nothing else has.

use super::NodeConfig;
use std::fmt::Write as _;

type Comments = &'static [(&'static str, &'static str)];

const OPENING: &str = "\
# Configuration of one Quorate validator.
# Relative paths are meant from the folder of this file. A field that is left out has the value
# shown here, unless its comment says otherwise.
";

pub(super) const NODE: Comments = &[
    ("committee", "The committee file: the same bytes for every member. Required."),
    ("key", "This validator's secret keys; only its owner may read the file. Required."),
    (
        "data_dir",
        "Where the log and the state are kept. Required.\n\
         Never share it between validators, and never start an old copy of it: the validator would\n\
         vote twice. One that lost it must not vote again under its key (see follow_only).",
    ),
    (
        "listen",
        "Where peers and clients connect, as IP address and port.\n\
         Absent: the address that the committee file gives for this validator.",
    ),
    (
        "http",
        "Status (/status), metrics (/metrics) and health (/healthz), as IP address and port.\n\
         Plain HTTP without authentication: keep it on the loopback interface or behind a firewall.",
    ),
    (
        "durability",
        "What a vote survives. \"fsync\": a power cut; every group of votes costs one disk sync.\n\
         \"os\": the end of the process only; for measurements, unsafe where the power of several\n\
         validators can fail together.",
    ),
    ("service", "What the committee replicates; every member names the same one."),
    (
        "follow_only",
        "true: never vote, propose or time out; only follow and serve. For a validator that lost\n\
         its disk, until a committee file names its new key.",
    ),
    (
        "verify_threads",
        "Threads that check bodies and requests, 1 to 64. Votes and proposals have one of their own.\n\
         More than the machine has cores gains nothing.",
    ),
    ("network_threads", "Threads that encrypt and move bytes, 1 to 64."),
    (
        "clients_max",
        "Most clients connected at once, 1 to 65536; others are turned away.\n\
         Each may have up to 512 KiB under way in this validator's memory.",
    ),
];

pub(super) const LOG: Comments = &[
    ("level", "The least severe level that is written: error, warn, info, debug or trace."),
    ("format", "\"text\" for people, \"json\" for machines (one object a line)."),
];

pub(super) const REPLICA: Comments = &[
    ("protocol", "The protocol that orders. Every member names the same one."),
    (
        "batch_bytes",
        "A body is sealed when its requests reach this many bytes, 1024 to 3145728.\n\
         Larger: more operations a second, and more time before the first of them moves.",
    ),
    (
        "batch_delay_ms",
        "A body that is not full is sealed after this many milliseconds, 0 to 10000.\n\
         Longer: fewer, larger bodies, and a higher latency when load is light.",
    ),
    (
        "timeout_ms",
        "How long a view may take before its leader is given up, 10 to 600000 milliseconds.\n\
         Several round trips of the slowest link; too short and honest leaders are given up, longer\n\
         and a dead leader costs more. It grows by half for each view in a row that decides nothing.",
    ),
    (
        "vote_wait_ms",
        "After a quorum of votes, how many milliseconds the next leader waits for the rest, so that\n\
         certificates name few absentees. 0: not at all. Less than timeout_ms.",
    ),
    (
        "verify",
        "How collected votes are checked: \"aggregate\" (once, at the quorum), \"batch\" (with random\n\
         weights) or \"each\" (one by one; the dearest).",
    ),
    (
        "key_cache",
        "\"on\": certificates are checked against the committee's cached key minus the absentees.\n\
         \"off\": the signers' keys are added up every time.",
    ),
    (
        "proposal_key",
        "Which key signs proposals: \"identity\" (Ed25519, cheap to check) or \"voting\".\n\
         Every member must say the same.",
    ),
    (
        "inline_bodies",
        "true: leaders carry their own bodies inside proposals instead of sending them ahead.\n\
         Every member should say the same.",
    ),
    (
        "clock_drift_max_ms",
        "A proposal stamped further ahead of this validator's clock gets no vote, in milliseconds.",
    ),
    (
        "mempool_bytes_max",
        "Requests that wait to be ordered, in bytes, at least 2 x batch_bytes. Beyond it clients are\n\
         told to slow down.",
    ),
    (
        "author_bytes_max",
        "Undecided bodies kept of each member, in bytes, at least 8388608. Beyond it they are fetched\n\
         when they are ordered.",
    ),
];

pub(super) const EMULATION: Comments = &[
    (
        "regions",
        "AWS regions: member 0 is in the first, member 1 in the next, and round again.\n\
         Delays and jitter between them are those that were measured.",
    ),
    ("delay_ms", "Without regions: the one-way delay between any two members, in milliseconds."),
    ("bandwidth_mbit", "Megabits a second on each link, 0 to 100000. 0: as many as there are."),
    ("jitter", "true: delays vary as they were measured to. false: always the median."),
];

const EMULATION_OPENING: &str = "
# A wide-area network to emulate between members that share a host or a room. For laboratories only:
# what this validator sends is held back. Every member names the same one.
[emulation]
";

pub(super) fn annotate(config: &NodeConfig) -> String {
    let table = toml::Table::try_from(config).expect("a plain struct is a table");
    let mut text = String::from(OPENING);
    section(&mut text, &table, NODE);
    for (name, comments) in [("log", LOG), ("replica", REPLICA)] {
        let table = table[name].as_table().expect("a section is a table");
        write!(text, "\n[{name}]\n").expect("memory");
        section(&mut text, table, comments);
    }
    if let Some(table) = table.get("emulation").and_then(toml::Value::as_table) {
        text.push_str(EMULATION_OPENING);
        section(&mut text, table, EMULATION);
    }
    text
}

fn section(text: &mut String, values: &toml::Table, comments: Comments) {
    let unexplained = values.keys().filter(|key| !comments.iter().any(|(name, _)| name == key));
    let explained = comments.iter().map(|(name, comment)| (*name, *comment));
    for (key, comment) in explained.chain(unexplained.map(|key| (key.as_str(), ""))) {
        let value = values.get(key);
        if value.is_some_and(toml::Value::is_table) {
            continue;
        }
        if !comment.is_empty() {
            text.push('\n');
        }
        for line in comment.lines() {
            writeln!(text, "# {line}").expect("memory");
        }
        match value {
            Some(value) => writeln!(text, "{key} = {value}").expect("memory"),
            None => writeln!(text, "# {key} = \"0.0.0.0:7000\"").expect("memory"),
        }
    }
}
