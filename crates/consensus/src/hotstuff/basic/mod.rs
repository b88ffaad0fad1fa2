//! Basic HotStuff.
use crate::chained::{LaterPhases, Rules};
use quorate_types::Kind;

/// Basic HotStuff's side of what differs within the family.
pub const RULES: Rules = Rules {
    genesis: "quorate v1 hotstuff-basic genesis",
    vote: Kind::HotStuffBasicPrepare,
    later: Some(LaterPhases {
        pre_commit: Kind::HotStuffBasicPreCommit,
        commit: Kind::HotStuffBasicCommit,
    }),
    timeout: Kind::HotStuffBasicComplaint,
    links: 0,
    locks: true,
    timeout_ends_voting: false,
    extends_report: false,
};
