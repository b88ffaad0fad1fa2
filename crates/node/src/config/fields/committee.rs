//! Fields of a committee file, the same bytes for every member.

use super::{
    Field, FieldDefault, Kind, NO_BOUND, Section, choice, field, flag, for_comparisons, number,
};
use quorate_types::Weights;

/// Section of a committee file with what all members have alike.
pub const AGREED: &str = "settings";

/// Returns `true` for the name of a setting that all members have alike.
#[must_use]
pub fn is_agreed(name: &str) -> bool {
    SETTINGS.iter().any(|field| field.name == name)
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
         for one another. Blocks are kept from the last but one on, whatever retention_bytes says; each snapshot reads \
         the whole state, and writes the chunks of it that changed. A state of 256 MiB has one at every \
         second of these heights, and of 512 MiB and more at every fourth.",
    ),
    number(
        "heartbeat_ms",
        "milliseconds",
        (0, 600_000),
        "A height is decided so long after the one before at the latest, though there is nothing to order: \
         clients of a chain of blocks wait for confirmations and for time to pass. 0: a committee with nothing \
         to order decides nothing; otherwise at least 100. quorate testnet --service evm writes 1000.",
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
