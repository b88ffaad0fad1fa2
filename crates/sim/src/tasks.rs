//! What a machine asks of its execution, in its order, and what waits for records with it.

use quorate_crypto::Digest;
use quorate_engine::Message;
use quorate_types::machine::{AskJob, Block, Install, StagedChunk};
use quorate_types::{Effect, Recipients};

/// Something that the execution does.
pub(crate) enum Task {
    Execute(Box<Block>),
    Snapshot,
    Stage(StagedChunk),
    Unstage(Vec<Digest>),
    Install(Box<Install>),
    Ask(AskJob),
}

/// What waits for records to be durable.
pub(crate) enum Held {
    Send(Recipients, Box<Message>),
    Task(Task),
}

impl Task {
    /// What an effect asks for.
    ///
    /// # Panics
    /// When it asks for nothing of the execution.
    pub(crate) fn of(effect: Effect<Message>) -> Self {
        match effect {
            Effect::Execute(block) => Self::Execute(block),
            Effect::Snapshot(_) => Self::Snapshot,
            Effect::Stage(chunk) => Self::Stage(chunk),
            Effect::Unstage(chunks) => Self::Unstage(chunks),
            Effect::Install(install) => Self::Install(install),
            Effect::Ask(job) => Self::Ask(job),
            _ => unreachable!("no task"),
        }
    }
}
