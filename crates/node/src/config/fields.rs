//! Meaning of every field of a validator's files: the one place where it is written down.
//!
//! The template that `quorate testnet` and `quorate config template` write, docs/CONFIG.md and the
//! hints of `quorate config check` are made from these tables. Tests compare them with the structs
//! that are read, and the ranges with what [`super::NodeConfig::validate`] accepts, so that a field
//! without a line here, or a line without a field, fails.

use quorate_types::Weights;

/// One section of a file.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Name between brackets; empty for the fields above all sections.
    pub name: &'static str,
    /// Subject of the section, for its heading.
    pub title: &'static str,
    /// Explanation of the section as a whole; for one that may be absent altogether, and not empty
    /// only then.
    pub optional: &'static str,
    /// Fields in the order in which they are written.
    pub fields: &'static [Field],
}

/// One field of a section.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in the file.
    pub name: &'static str,
    /// Kind of the value, with its range.
    pub kind: Kind,
    /// Value that holds when it is left out.
    pub default: FieldDefault,
    /// Meaning, and the consequences of changing it.
    pub meaning: &'static str,
    /// Set of a setting for comparisons with papers, which validators refuse.
    pub for_comparisons: bool,
}

/// Kind of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The path of a file or folder; a relative one is meant from the folder of the file.
    Path,
    /// An `address:port` to listen on or connect to.
    Address,
    /// Any text, as a string.
    Text,
    /// Hexadecimal digits, as a string.
    Hex,
    /// Either `true` or `false`.
    Flag,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A whole number in a range.
    Number {
        /// Unit that is counted.
        unit: &'static str,
        /// Smallest value that is accepted.
        min: u64,
        /// The largest; [`NO_BOUND`] where there is none.
        max: u64,
        /// Dependence on another field; empty when there is none.
        rule: &'static str,
    },
    /// A list of sections.
    List,
    /// A list of identity keys.
    Keys,
}

/// The largest number that a file can hold.
pub const NO_BOUND: u64 = i64::MAX as u64;

/// Value that holds when a field is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldDefault {
    /// No value: the field must be there.
    Required,
    /// Value of the struct's own default.
    OfStruct,
    /// This value, in words.
    Words(&'static str),
}

impl Field {
    /// Unit, range and default in one line, such as `milliseconds, 10 to 600000; default 1000`.
    /// `of_struct` is the struct's own default.
    #[must_use]
    pub fn facts(&self, of_struct: Option<&toml::Value>) -> String {
        let kind = self.kind.to_string();
        match (self.default, of_struct) {
            (FieldDefault::Required, _) => format!("{kind}; required"),
            (FieldDefault::Words(words), _) => format!("{kind}; default: {words}"),
            (FieldDefault::OfStruct, Some(value)) => format!("{kind}; default {value}"),
            (FieldDefault::OfStruct, None) => format!("{kind}; default: none"),
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path => f.write_str("path"),
            Self::Address => f.write_str("address:port"),
            Self::Text => f.write_str("text"),
            Self::Hex => f.write_str("hexadecimal digits"),
            Self::Flag => f.write_str("true or false"),
            Self::List => f.write_str("list"),
            Self::Keys => f.write_str("list of identity keys, 64 hexadecimal digits each"),
            Self::Choice(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                f.write_str(&quoted.join(", "))
            }
            Self::Number { unit, min, max, rule } => {
                match *max {
                    NO_BOUND => write!(f, "{unit}, at least {min}")?,
                    max => write!(f, "{unit}, {min} to {max}")?,
                }
                if rule.is_empty() { Ok(()) } else { write!(f, ", {rule}") }
            }
        }
    }
}

const fn field(
    name: &'static str,
    kind: Kind,
    default: FieldDefault,
    meaning: &'static str,
) -> Field {
    Field { name, kind, default, meaning, for_comparisons: false }
}

/// A field that exists for comparisons with papers alone.
const fn for_comparisons(field: Field) -> Field {
    Field { for_comparisons: true, ..field }
}

/// A number with the struct's default.
const fn number(
    name: &'static str,
    unit: &'static str,
    (min, max): (u64, u64),
    meaning: &'static str,
) -> Field {
    field(name, Kind::Number { unit, min, max, rule: "" }, FieldDefault::OfStruct, meaning)
}

/// A number whose range depends on another field.
const fn bound_number(
    name: &'static str,
    unit: &'static str,
    (min, max): (u64, u64),
    rule: &'static str,
    meaning: &'static str,
) -> Field {
    field(name, Kind::Number { unit, min, max, rule }, FieldDefault::OfStruct, meaning)
}

const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    meaning: &'static str,
) -> Field {
    field(name, Kind::Choice(words), FieldDefault::OfStruct, meaning)
}

const fn flag(name: &'static str, meaning: &'static str) -> Field {
    field(name, Kind::Flag, FieldDefault::OfStruct, meaning)
}

/// The sections of a validator's configuration file.
pub const CONFIG: &[Section] = &[
    Section { name: "", title: "The validator", optional: "", fields: NODE },
    Section { name: "log", title: "Logging", optional: "", fields: LOG },
    Section { name: "replica", title: "The replica", optional: "", fields: REPLICA },
    Section {
        name: "emulation",
        title: "An emulated network",
        optional: "A wide-area network to emulate between members that share a host or a room. For \
                   laboratories only: what this validator sends is held back. Every member names the \
                   same one. Without this section nothing is emulated.",
        fields: EMULATION,
    },
];

/// Section of a committee file with what all members have alike.
pub const AGREED: &str = "settings";

/// Returns `true` for the name of a setting that all members have alike.
#[must_use]
pub fn is_agreed(name: &str) -> bool {
    SETTINGS.iter().any(|field| field.name == name)
}

/// The section of the configuration file in which a field stands; empty for those above all
/// sections, `None` if there is no such field.
#[must_use]
pub fn local_section(name: &str) -> Option<&'static str> {
    let has = |section: &&Section| section.fields.iter().any(|field| field.name == name);
    CONFIG.iter().find(has).map(|section| section.name)
}

/// The sections of a committee file.
pub const COMMITTEE: &[Section] = &[
    Section { name: "", title: "The committee", optional: "", fields: COMMITTEE_FIELDS },
    Section {
        name: AGREED,
        title: "Settings that all members agree on",
        optional: "What members would part over if each said its own. They are part of the network's \
                   identity: members whose files differ here turn each other away. What is each member's own \
                   stands in its configuration file, and is refused here, as these are there.",
        fields: SETTINGS,
    },
    Section {
        name: "groups",
        title: "Keys of a committee with threshold keys",
        optional: "Keys that certificates are checked against, whoever signed: made with the members' \
                   keys (`quorate keys dkg`, or a dealer's `quorate testnet --scheme bls-threshold`), \
                   and checked against every member's public shares when the file is read. Other \
                   schemes have no such section.",
        fields: GROUPS,
    },
    Section {
        name: "from_state",
        title: "The state that the network begins with",
        optional: "Written by `quorate committee found`, for a network that goes on where another one lost \
                   more members than it tolerates. Each member imports that very state before its first \
                   start (`quorate state import`). Other networks have no such section.",
        fields: FROM_STATE,
    },
    Section { name: "members", title: "Each member", optional: "", fields: MEMBER },
];

const NODE: &[Field] = &[
    field(
        "committee",
        Kind::Path,
        FieldDefault::Required,
        "The committee file: the same bytes for every member. A validator with another file is on \
         another network and is turned away by all others.",
    ),
    field(
        "key",
        Kind::Path,
        FieldDefault::Required,
        "This validator's secret keys, in the clear or sealed under a passphrase; only its owner may \
         read the file. Files beside it with the endings .used and .guard note that the key has \
         signed, and what was last: keep the three together, and on another disk than data_dir if \
         there is one. A file that root owns may be its group's to read with the mode 0440, as \
         mounted secrets are.",
    ),
    field(
        "key_notes",
        Kind::Path,
        FieldDefault::Words("the key file's"),
        "Folder of the files .used and .guard, where the key file's cannot be written in, as that of \
         a mounted secret. It must be there, outlive the process, and be on another volume than \
         data_dir: with both lost or set back together, nothing notices that a log is an old copy.",
    ),
    field(
        "passphrase_file",
        Kind::Path,
        FieldDefault::Words("none"),
        "A file with the passphrase of a sealed key file: one line, readable by its owner or group \
         alone. Without it the passphrase is taken from the file that the environment's \
         QUORATE_PASSPHRASE_FILE names, then from the systemd credential quorate-passphrase, and \
         then asked for at the terminal.",
    ),
    field(
        "data_dir",
        Kind::Path,
        FieldDefault::Required,
        "Folder of the log and the state; made when it is missing. Never share it between \
         validators, and never start an old copy of it: the validator would vote twice. One that \
         lost it must not vote again under its key (see follow_only).",
    ),
    field(
        "listen",
        Kind::Address,
        FieldDefault::Words("the address that the committee file gives for this validator"),
        "Address for peers and clients, as IP address and port. To be set when the committee \
         file's address is not one of this machine, as behind a translating router.",
    ),
    field(
        "http",
        Kind::Address,
        FieldDefault::OfStruct,
        "Status (/status), metrics (/metrics), health (/healthz) and readiness (/readyz), as IP \
         address and port. On any other address than the loopback interface's it needs http_tls, or \
         http_insecure.",
    ),
    field(
        "gateway",
        Kind::Address,
        FieldDefault::Words("none"),
        "Interface for applications without a client of their own, as IP address and port: the \
         key-value store over HTTP, or Ethereum's JSON-RPC and the explorer. It needs service = \"kv\" or \
         \"evm\" and execution_certificates = true. On any other address than the loopback interface's it needs tls_cert.",
    ),
    field(
        "gateway_token_file",
        Kind::Path,
        FieldDefault::Words(
            "gateway.token, made at the first start, unless gateway_tokens_file or gateway_open is set; none for \
             JSON-RPC on the loopback interface",
        ),
        "A file with the token that callers of the gateway show, which may do everything: one line \
         of 16 to 1024 characters, readable by its owner or group alone. Read again on SIGHUP.",
    ),
    field(
        "gateway_tokens_file",
        Kind::Path,
        FieldDefault::Words("none"),
        "A file with users of the gateway, in the place of one token: each has a token of its own and may \
         read or write, within a rate of its own. `quorate kv token` writes it for the key-value store, where \
         rights are to all keys or those of a prefix, and `quorate token` for JSON-RPC, where who may not write \
         sends no transactions. Read at the start and again on SIGHUP.",
    ),
    flag(
        "gateway_open",
        "true: no token. Every program on this machine may read and write through the key-value gateway, but \
         no web page; it must listen on the loopback interface. JSON-RPC is then open to everybody who reaches \
         it, on any address: a public node.",
    ),
    field(
        "tls_cert",
        Kind::Path,
        FieldDefault::Words("none: plain HTTP"),
        "Certificate chain of the gateway in PEM, its own certificate first. Read at the start and again on \
         SIGHUP. Without it the gateway listens on the loopback interface alone, unless gateway_insecure is set.",
    ),
    field(
        "tls_key",
        Kind::Path,
        FieldDefault::Words("none"),
        "Private key of tls_cert in PEM, readable by its owner or group alone.",
    ),
    flag("http_tls", "true: status and metrics over TLS as well, with the same certificate."),
    field(
        "http_token_file",
        Kind::Path,
        FieldDefault::Words("none: everybody reads"),
        "A file with the token that readers of /status and /metrics show: one line of 16 to 1024 characters, \
         readable by its owner or group alone. /healthz and /readyz need none. Read again on SIGHUP.",
    ),
    field(
        "http_tokens_file",
        Kind::Path,
        FieldDefault::Words("none"),
        "A file with users of status and metrics, in the place of one token: each has a token of its own and \
         a rate. `quorate token` writes it. Read at the start and again on SIGHUP.",
    ),
    flag(
        "http_insecure",
        "true: status and metrics are shown to other machines in plain HTTP. What they tell and tokens cross \
         the network in clear: for networks that encrypt by themselves.",
    ),
    flag(
        "gateway_insecure",
        "true: the gateway takes plain HTTP from other machines. Tokens and data cross the network in clear: \
         for networks that encrypt by themselves.",
    ),
    number(
        "http_requests_per_second",
        "requests a second",
        (0, NO_BOUND),
        "Most HTTP requests of one address of another machine (in IPv6 one /64), at the gateway and the \
         status page each. A second's worth may come at once; what exceeds it is answered with 429 and \
         Retry-After. A TLS handshake counts as one, and has no answer beyond; so does each call of JSON-RPC \
         over a WebSocket or in a batch. 0: any number.",
    ),
    choice(
        "durability",
        &["fsync", "os"],
        "Failures that a vote survives. \"fsync\": a power cut; every group of votes costs one disk sync. \
         \"os\": the end of the process only; for measurements, unsafe where the power of several \
         validators can fail together, and a power cut may leave the file .guard beside the key \
         ahead of the log: the validator follows without signing from then on.",
    ),
    number(
        "retention_bytes",
        "bytes",
        (1 << 20, NO_BOUND),
        "Log kept for validators that fell behind: records and bodies together. What is executed \
         durably and covered by the older of the last two snapshots is deleted beyond it. A \
         validator that was away for longer than everybody's log fetches a snapshot.",
    ),
    field(
        "disk_reserve_bytes",
        Kind::Number { unit: "bytes", min: 0, max: NO_BOUND, rule: "" },
        FieldDefault::Words("a 64th of the file system, at most 67108864"),
        "A file of so many zeroes in data_dir, which is deleted when the disk is full so that what was          promised can be finished, and written again when there is room; 0 for none. Before it is          touched clients are refused (docs/OPERATING.md, A full disk).",
    ),
    flag(
        "comparison",
        "true: this validator is part of a bench or an experiment, and takes the replica's settings for \
         comparisons with papers; benches write it. false: it refuses each of them that is not at its \
         default.",
    ),
    field(
        "genesis",
        Kind::Path,
        FieldDefault::Words("none"),
        "The genesis file of the ledger of service = \"evm\", as Ethereum's tools write it, with \
         `historyBlocks` beside `chainId` for how many blocks keep their transactions; of service = \
         \"payments\", the payment network's file. Its digest is what the committee file says as \
         `genesis_digest`.",
    ),
    flag(
        "follow_only",
        "true: never vote, propose or time out; only follow and serve. For a validator that lost \
         its disk, until a committee file names its new key. It counts as faulty meanwhile.",
    ),
    flag(
        "learner",
        "true: the key is no member's. It fetches what was decided from members, executes it, and answers \
         queries of the state; it never votes and takes no requests. Every member that it may ask \
         names its key in `learners`. It needs `listen`.",
    ),
    field(
        "learners",
        Kind::Keys,
        FieldDefault::Words("none"),
        "Learners that may follow this member, at most 64. They get everything that was decided, \
         requests and state. Whom an approved change of committee names may without being listed.",
    ),
    number(
        "verify_threads",
        "threads",
        (1, 64),
        "Threads that check bodies and requests. Votes and proposals have one of their own. More \
         than the machine has cores gains nothing.",
    ),
    number(
        "network_threads",
        "threads",
        (1, 64),
        "Threads that encrypt and move bytes. Two carry several hundred megabytes a second.",
    ),
    field(
        "clients_file",
        Kind::Path,
        FieldDefault::Words("clients.toml beside this file"),
        "The list for clients = \"listed\": a section [[clients]] for each, with its identity `key` \
         (`quorate keys show`) and a `name` for people. Each member has its own copy. Read at the start and \
         again on SIGHUP (`systemctl reload`); whoever was struck off is cut.",
    ),
    number(
        "client_requests_per_second",
        "requests and queries a second",
        (0, NO_BOUND),
        "Most of one client: all sessions of a listed client together, or one session of any other. A \
         second's worth may come at once; what exceeds it is refused with the reason, and sessions slow \
         down. 0: any number. A request carries up to 256 operations.",
    ),
    number(
        "client_bytes_per_second",
        "bytes a second",
        (0, NO_BOUND),
        "Most bytes of requests and queries of one client, counted likewise. 0: any number.",
    ),
    number(
        "clients_max",
        "connections",
        (1, 65_536),
        "Most clients connected at once, three quarters of them from one address of another machine; \
         the least recently used gives way to one more. A listed client has a quarter of them at most. Each may have up to 512 KiB under way in \
         this validator's memory. Fewer are let in where the limit of open files is too low \
         (`quorate config check`).",
    ),
];

const LOG: &[Field] = &[
    choice(
        "level",
        &["error", "warn", "info", "debug", "trace"],
        "The least severe level that is written to standard error. At \"debug\" and \"trace\" a busy \
         validator writes a line for every connection or message.",
    ),
    choice(
        "format",
        &["text", "json"],
        "\"text\" for people, \"json\" for machines: one object a line.",
    ),
];

const REPLICA: &[Field] = &[
    number(
        "batch_bytes",
        "bytes",
        (1 << 10, 3 << 20),
        "A body is sealed when its requests reach this size. Larger: more operations a second, and \
         more time before the first of them moves.",
    ),
    number(
        "batch_delay_ms",
        "milliseconds",
        (0, 10_000),
        "A body that is not full is sealed after this long. Longer: fewer, larger bodies, and a \
         higher latency when load is light.",
    ),
    number(
        "timeout_ms",
        "milliseconds",
        (10, 600_000),
        "Time until a view times out and the next leader follows: at least eight round trips between \
         the farthest members. Too short and honest leaders time out; longer and a dead leader \
         costs more.",
    ),
    number(
        "timeout_growth",
        "per cent",
        (0, 100),
        "Growth of a view's timeout for each view that timed out since the last decision, but for the \
         first of each of so many leaders as may be dead; twelve times at most. 0: none; a committee \
         whose timeout is too short then decides nothing.",
    ),
    bound_number(
        "vote_wait_ms",
        "milliseconds",
        (0, 599_999),
        "less than timeout_ms",
        "Time that the next leader waits for the rest after a quorum of votes, so that certificates \
         name few absentees. 0: none. It is added to every view in which a member is missing.",
    ),
    choice(
        "verify",
        &["aggregate", "batch", "each"],
        "Verification of collected votes: \"aggregate\" (once, at the quorum), \"batch\" (with random \
         weights) or \"each\" (one by one; the dearest).",
    ),
    number(
        "concurrent_slots",
        "slots",
        (1, 256),
        "Slots that a primary has under way at once, in protocols that order in slots; never more than \
         (n-1)/(c+1). More of them hide long ways, and wait for one another's processors where those are \
         short.",
    ),
    flag(
        "shorten_failed_turns",
        "true: views that depend on a member whose last turn decided nothing time out after an eighth of \
         their time.",
    ),
    bound_number(
        "mempool_bytes_max",
        "bytes",
        (2_048, NO_BOUND),
        "at least 2 x batch_bytes",
        "Requests that wait to be ordered, in memory. Beyond it clients are asked to slow down.",
    ),
    number(
        "author_bytes_max",
        "bytes",
        (8 << 20, NO_BOUND),
        "Undecided bodies kept of each member, in memory. Beyond it they are fetched when they are \
         ordered. The most that all members together can make this validator hold is this many \
         times their number.",
    ),
    for_comparisons(number(
        "block_operations_max",
        "operations",
        (0, NO_BOUND),
        "Most operations in a body, and in a block unless its only body has more; 0 for no limit. Bytes \
         are what costs, and batch_bytes bounds them.",
    )),
    for_comparisons(flag(
        "filter_requests",
        "true: requests that another member's body carries are left out of the own ones. What is ordered \
         twice takes effect once either way.",
    )),
    for_comparisons(choice(
        "key_cache",
        &["on", "subtract", "off"],
        "\"on\": certificates are checked against the committee's cached key minus the absentees, or the \
         sum of the signers' keys, whichever is quicker. \"subtract\": always the first. \"off\": always \
         the second.",
    )),
    for_comparisons(flag(
        "vote_salvage",
        "true: timeouts show their sender's last vote, so that a certificate that a collector took with it \
         can be made again. Without it four members of chained HotStuff, one of them dead, may decide \
         nothing.",
    )),
    for_comparisons(flag(
        "signatures",
        "true: everything is signed and checked. false is refused of every validator, with comparison = \
         true as well: only simulated replicas go without signatures.",
    )),
    for_comparisons(choice(
        "flow_control",
        &["delay", "fixed"],
        "Bound on this validator's own data under way: \"delay\" (a window that follows the time that \
         decisions take) or \"fixed\" (half of author_bytes_max, and bodies leave only \
         when they are full or have waited batch_delay_ms).",
    )),
];

const EMULATION: &[Field] = &[
    field(
        "regions",
        Kind::List,
        FieldDefault::OfStruct,
        "AWS regions: member 0 is in the first, member 1 in the next, and round again. Delays and \
         jitter between them are those that were measured.",
    ),
    number(
        "delay_ms",
        "milliseconds",
        (0, 10_000),
        "Without regions: the one-way delay between any two members.",
    ),
    number(
        "bandwidth_mbit",
        "megabits a second",
        (0, 100_000),
        "The bandwidth of each link. 0: as many as the host gives.",
    ),
    flag("jitter", "true: delays vary as they were measured to. false: always the median."),
];

const COMMITTEE_FIELDS: &[Field] = &[
    field(
        "name",
        Kind::Text,
        FieldDefault::Required,
        "A name for people; part of the network's identity.",
    ),
    field(
        "network",
        Kind::Hex,
        FieldDefault::Words("the hash of this file, which founds its network"),
        "The network that this file goes on, 64 hexadecimal digits, in files of later epochs. A file \
         without founds a network, which is called by its hash; so two files that differ in more than \
         addresses and proofs of identities are of two networks, whose members turn each other away.",
    ),
    field(
        "epoch",
        Kind::Number { unit: "epoch", min: 0, max: NO_BOUND, rule: "" },
        FieldDefault::Required,
        "The epoch in which this file is in force; part of the network's identity, and of everything \
         that members sign by the hand-over with which the epoch began.",
    ),
    field(
        "scheme",
        Kind::Choice(&["ed25519", "bls", "bls-threshold"]),
        FieldDefault::Required,
        "The voting scheme. \"ed25519\": certificates are lists of signatures, cheap to check in \
         small committees. \"bls\": one signature of 48 bytes however many signed, checked against \
         the sum of the signers' keys. \"bls-threshold\": the same, checked against one key; the \
         members make their keys together (`quorate keys dkg`), or one dealer does, whom the committee \
         trusts to have forgotten them; the chained protocols cannot use it.",
    ),
    field(
        "redundancy",
        Kind::Number {
            unit: "members",
            min: 0,
            max: 341,
            rule: "3f + 2 x redundancy + 1 members of one weight, for an f of at least 1",
        },
        FieldDefault::Words("0"),
        "Members beyond those that faults alone ask for (c of n = 3f + 2c + 1): the fast path of \
         \"linear-pbft-fast\" and \"sbft\" goes on while so many are slow or dead. Other protocols have \
         no use for it. Part of the network's identity.",
    ),
    field(
        "settings",
        Kind::List,
        FieldDefault::Words("the defaults of all"),
        "Settings that all members agree on: see below. Part of the network's identity.",
    ),
    field(
        "groups",
        Kind::List,
        FieldDefault::Words("none, as ed25519 and bls need"),
        "The groups' keys of a committee with threshold keys: see below. Part of the network's identity.",
    ),
    field(
        "from_state",
        Kind::List,
        FieldDefault::Words("none: the network begins empty"),
        "The state of another network that this one goes on from: see below. Part of the network's identity, \
         in the file that founds it and in no other.",
    ),
    field(
        "members",
        Kind::List,
        FieldDefault::Required,
        "The members in index order, 1 to 1024. Fewer than four tolerate no faulty one; f = \
         (n - 1) / 3, rounded down, of n are tolerated.",
    ),
];

/// What a committee file says beside who its members are.
const SETTINGS: &[Field] = &[
    field(
        "service",
        Kind::Text,
        FieldDefault::OfStruct,
        "The replicated service: \"evm\", \"kv\", \"ordered-log\", \"noop\" or, for the releases of a payment \
         network, \"payments\".",
    ),
    field(
        "genesis_digest",
        Kind::Hex,
        FieldDefault::Words("none, as services without a genesis file need"),
        "Digest of the genesis file of service = \"evm\", which each validator names as `genesis`: BLAKE3 of \
         its bytes, 64 hexadecimal digits. Of service = \"payments\": the identity of the payment network. \
         `quorate run` refuses another file, and says what its digest is.",
    ),
    number(
        "execution_version",
        "version",
        (1, NO_BOUND),
        "The version of the rules by which the service executes. A validator whose program lacks it does not \
         start, and one that comes to such an epoch stops at its border (exit code 6). It never goes \
         back.",
    ),
    choice(
        "clients",
        &["open", "listed", "service"],
        "Clients whose requests and queries are taken: \"open\" (any), \"listed\" (those in each member's \
         clients_file, and members' gateways) or \"service\" (any, for what the service admits: it is asked \
         before an operation is ordered).",
    ),
    choice(
        "protocol",
        &[
            "jolteon",
            "hotstuff",
            "hotstuff-basic",
            "pbft",
            "linear-pbft",
            "linear-pbft-fast",
            "sbft",
        ],
        "The protocol that orders: \"jolteon\" (decides after two certificates in a row), \"hotstuff\" \
         (chained; after three), \"hotstuff-basic\" (three phases of votes for each block), \"pbft\" (a \
         steady primary, votes of all to all), \"linear-pbft\" (the same through collectors), \
         \"linear-pbft-fast\" (decided at once when all vote) or \"sbft\" (and \
         always with execution_certificates).",
    ),
    flag(
        "leader_reputation",
        "true: leaders whose last turns decided nothing are passed over, longer each time, as the chain \
         shows it. false: a dead member costs two timeouts each time that its turn comes.",
    ),
    number("leader_tenure", "views", (1, 1_000), "Views in a row that a member leads."),
    flag(
        "inline_bodies",
        "true: leaders carry their own bodies inside proposals instead of sending them ahead. \
         Without it such proposals are refused.",
    ),
    choice(
        "availability",
        &["stored", "certified"],
        "Condition of a vote on the bodies that a block names: \"stored\" (they are on the voter's \
         disk) or \"certified\" (that, or a certificate that members of weak weight store them): \
         votes need not wait for bodies, acknowledgements and certificates cost signatures, and \
         fewer disks are sure to hold a body. Not together with inline_bodies.",
    ),
    flag(
        "execution_certificates",
        "true: members sign the result of each height, and a client gets one answer that proves itself \
         instead of one from each member, two message delays later. Needed for receipts and for \
         queries of the state.",
    ),
    number(
        "snapshot_every",
        "heights",
        (4, 1 << 20),
        "Every so many heights a snapshot of the state is taken. Only snapshots of one height can vouch \
         for one another. Blocks are kept from the last but one on, whatever retention_bytes says; each snapshot writes \
         the whole state.",
    ),
    number(
        "clock_drift_max_ms",
        "milliseconds",
        (0, NO_BOUND),
        "A proposal stamped further ahead of a validator's clock than this gets no vote. Smaller \
         than the clocks really differ: honest leaders time out. Synchronise the clocks.",
    ),
    number(
        "trusting_period_days",
        "days",
        (1, NO_BOUND),
        "Days for which members' keys are trusted after the last time at which a validator, a learner or a \
         client knew their epoch in force. Who slept longer takes no hand-over from members, whose old \
         keys may have leaked: it needs hand-overs from a source that its owner trusts.",
    ),
    for_comparisons(choice(
        "proposal_key",
        &["identity", "voting"],
        "Key that signs proposals: \"identity\" (Ed25519, cheap to check) or \"voting\". \
         Proposals signed otherwise are refused.",
    )),
    for_comparisons(choice(
        "truncation",
        &["ids", "heights", "off"],
        "Part of the chain that travels with messages: \"ids\" (what is missing is fetched), \"heights\" (the \
         blocks above the lowest height that a member is known to have executed) or \"off\" (the newest 3 \
         MiB of all). With ids chains are refused.",
    )),
];

const GROUPS: &[Field] = &[
    field(
        "fast",
        Kind::Hex,
        FieldDefault::Required,
        "Checks what all but the redundant members signed: 192 hexadecimal digits.",
    ),
    field(
        "slow",
        Kind::Hex,
        FieldDefault::Required,
        "Checks what a quorum signed: 192 hexadecimal digits.",
    ),
    field(
        "execution",
        Kind::Hex,
        FieldDefault::Required,
        "Checks what f + 1 members signed, one of whom is honest: 192 hexadecimal digits.",
    ),
];

const FROM_STATE: &[Field] = &[
    field(
        "network",
        Kind::Hex,
        FieldDefault::Required,
        "The network whose state it is, 64 hexadecimal digits. Receipts of it verify under its own committee \
         file.",
    ),
    field(
        "height",
        Kind::Number { unit: "height", min: 1, max: NO_BOUND, rule: "" },
        FieldDefault::Required,
        "The last height of that network whose effects are in it. This network's first is the next one.",
    ),
    field(
        "root",
        Kind::Hex,
        FieldDefault::Required,
        "What members of that network certified of this height, 64 hexadecimal digits.",
    ),
    field(
        "snapshot",
        Kind::Hex,
        FieldDefault::Required,
        "Digest of the snapshot, 64 hexadecimal digits: it names every byte, the sessions of clients too.",
    ),
];

const MEMBER: &[Field] = &[
    field(
        "identity",
        Kind::Hex,
        FieldDefault::Required,
        "Ed25519 identity key, 64 hexadecimal digits (`quorate keys show`): proves the member's \
         channels, signs its proposals and replies. No other member's, and nobody's voting key.",
    ),
    field(
        "identity_proof",
        Kind::Hex,
        FieldDefault::Required,
        "Proof that the member holds the identity's secret, 128 hexadecimal digits (`quorate keys show`). \
         Adding it to a file that has none does not change the network's identity.",
    ),
    field(
        "voting",
        Kind::Hex,
        FieldDefault::Required,
        "Voting key: 64 hexadecimal digits for ed25519, 192 for bls, 576 for bls-threshold (public \
         shares for the fast, slow and execution thresholds).",
    ),
    field(
        "possession",
        Kind::Hex,
        FieldDefault::Words("empty, as ed25519 and bls-threshold need"),
        "Proof that the member holds the voting key's secret: 96 hexadecimal digits for bls.",
    ),
    field(
        "address",
        Kind::Address,
        FieldDefault::Required,
        "Address at which peers and clients reach it, as host and port. It may change without changing the \
         network's identity; members pick it up when they are started again.",
    ),
    field(
        "weight",
        Kind::Number {
            unit: "votes",
            min: 1,
            max: Weights::TOTAL_MAX,
            rule: "all members together at most 65536, and none a quorum by itself",
        },
        FieldDefault::Words("1"),
        "Weight of the member's vote, and its share of the turns to lead. A quorum is more \
         than two thirds of the whole weight; members of less than a third of it may be faulty. Part \
         of the network's identity.",
    ),
];
