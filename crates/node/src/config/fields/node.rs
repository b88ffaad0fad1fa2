//! Fields of a validator's own configuration file.

use super::{
    Field, FieldDefault, Kind, NO_BOUND, Section, bound_number, choice, field, flag,
    for_comparisons, number,
};

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

/// The section of the configuration file in which a field stands; empty for those above all
/// sections, `None` if there is no such field.
#[must_use]
pub fn local_section(name: &str) -> Option<&'static str> {
    let has = |section: &&Section| section.fields.iter().any(|field| field.name == name);
    CONFIG.iter().find(has).map(|section| section.name)
}

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
    number(
        "state_cache_bytes",
        "bytes",
        (1 << 20, NO_BOUND),
        "Most memory for hashes of the leaves of the state's tree, 52 bytes a key, so that they are \
         not made again. It is taken as it is used: a small state takes little, whatever this says. \
         Beside it the state's store takes 15 bytes a key and the keys themselves, and the kernel \
         keeps what was read of its files.",
    ),
    choice(
        "archive",
        &["recent", "all", "off"],
        "States of earlier heights that are kept, where the service is asked of them: of service = \"evm\", for \
         balances, calls and traces at past blocks, with the index of what accounts and tokens did there. \"recent\": as many as archive_bytes and archive_heights \
         let be, and 128 in any case. \"all\": all since the archive began, which is when the validator did, or \
         took a snapshot over. \"off\": none but the last 16.",
    ),
    number(
        "archive_bytes",
        "bytes",
        (1 << 20, NO_BOUND),
        "Most disk for an archive of recent states, some hundred bytes for each account or slot that a height \
         changed, and some two hundred for a transaction in the index. The oldest eighth goes when it is full.",
    ),
    number(
        "archive_heights",
        "heights",
        (0, NO_BOUND),
        "Most heights before the newest whose states an archive of recent states keeps, and up to an eighth more. \
         0: as many as fit.",
    ),
    number(
        "archive_proof_bytes",
        "bytes",
        (0, NO_BOUND),
        "Most memory for proofs of states before the newest, beside an archive: of service = \"evm\", for \
         eth_getProof at past blocks. As many of the last 256 heights as fit, each some hundred bytes for each \
         account or slot that it changed, and as many for each node above those. Empty after a start. 0: proofs of the newest state alone.",
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
        &["delay", "warm", "fixed"],
        "Bound on this validator's own data under way: \"delay\" (a window that follows the time that \
         decisions take), \"warm\" (the same, as wide as it gets at first) or \"fixed\" \
         (half of author_bytes_max, and bodies leave only \
         when they are full or have waited batch_delay_ms).",
    )),
    for_comparisons(choice(
        "sealing",
        &["delay", "demand"],
        "\"delay\": a body is sealed when it is full or has waited batch_delay_ms. \"demand\": when it is \
         full, at most one in batch_delay_ms, or when this validator leads and has nothing to propose.",
    )),
    for_comparisons(number(
        "block_bodies_max",
        "bodies",
        (0, NO_BOUND),
        "Most bodies that a block names; 0 for as many as fit.",
    )),
    for_comparisons(flag(
        "fetch_grace",
        "true: a body that a proposal names and that is not here is asked for once its author is later than \
         usual. false: at once.",
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
