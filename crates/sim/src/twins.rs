//! Twins at scale: protocol machines alone, five of them for four members, in so small a world that
//! a hundred thousand scenarios take minutes.
//!
//! After Bano et al., "Twins: BFT Systems Made Robust" (OPODIS 2021): a Byzantine member is two
//! correct machines with one key, each believing that it is the only one. Everything such a pair
//! can do to the others by reaching some and not others is covered without a line of malicious
//! code: equivocation, double votes, forgetting. A [`Plan`] says for each of the first views who
//! leads, which machine reaches which, and who starts again from its records; after these views
//! everybody reaches everybody, and the committee must go on.
//!
//! A plan may have a [`NextEpoch`]: its stop block, decided, begins another committee, whose
//! members may stay, get other keys, leave or come, under the same protocol or another. Machine by
//! machine goes over, with its records, when it has a quorum's hand-over, while others are still in
//! the epoch before; twins are two in the one, in the other or in both, and may show in each what
//! was said in the other.
//!
//! No engine, disk or client here: bodies are always at hand, a promise is durable at once, missing
//! blocks come in an instant from whoever is reached. The whole replica under twins runs in
//! [`crate::world`].
//!
//! Oracles: agreement, one certified block a view, one statement a slot and member across restarts,
//! certificates that quorums signed, no refusal and no halt among honest members, and in the end
//! two more decisions everywhere, with all honest members together in one view under an honest
//! leader (004's theorem of progress). Over a border each epoch is judged so by itself, and both
//! together: what is handed over is unique and signed by a quorum, the next epoch begins behind it
//! without a gap, nobody acts in it before, whoever decided the stop block signs nothing behind it,
//! and no statement counts in the other epoch.

mod border;
mod campaign;
mod crossing;
mod disk;
mod epoch;
mod ground;
mod plan;
mod replays;
mod run;
mod seat;
mod shrink;
mod world;

pub use campaign::{Campaign, Found, run_plan, run_plans};
pub use ground::Ground;
pub use plan::{
    MACHINES, MEMBERS, NextEpoch, Plan, PlanFile, Reach, Successor, ViewPlan, is_plan_file,
};
pub use run::Outcome;
pub use shrink::{PlanSize, ShrunkPlan, shrink_plan};

#[cfg(test)]
mod tests;
