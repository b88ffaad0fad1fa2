//! Fetching blocks that this replica missed.
//!
//! One request at a time, to whoever showed the missing block first and then to everybody in turn.
//! A request names what the asker has, by id, and the certified block that it lacks; the answer is
//! checked link by link before the machine sees it.

use crate::message::FetchBlocks;
use quorate_types::{BlockId, Height, ReplicaId, Time};
use std::time::Duration;

/// How long an answer may take before the next member is asked.
const RETRY: Duration = Duration::from_millis(300);

/// What is missing and who was asked.
#[derive(Debug)]
pub(crate) struct BlockSync {
    id: ReplicaId,
    members: u16,
    missing: Option<Missing>,
}

/// What an answer brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing.
    Nothing,
    /// Decided blocks alone.
    Decided,
    /// Undecided blocks too.
    Tail,
}

#[derive(Debug)]
struct Missing {
    target: BlockId,
    source: ReplicaId,
    asked: Option<(ReplicaId, FetchBlocks)>,
    ask_at: Time,
}

impl BlockSync {
    /// Nothing missing.
    #[must_use]
    pub(crate) fn new(id: ReplicaId, members: usize) -> Self {
        let members = u16::try_from(members).expect("committees are limited to 1,024");
        Self { id, members, missing: None }
    }

    /// A certified block is missing. A newer one replaces it as the target; the question under way
    /// stays.
    pub(crate) fn behind(&mut self, now: Time, target: BlockId, source: Option<ReplicaId>) {
        match &mut self.missing {
            Some(missing) => missing.target = target,
            None => {
                let source = source.unwrap_or(ReplicaId((self.id.0 + 1) % self.members));
                let missing = Missing { target, source, asked: None, ask_at: now };
                self.missing = Some(missing);
            }
        }
    }

    /// The question to ask now, if one is due; `has` says whether a block has come by itself.
    pub(crate) fn due(
        &mut self,
        now: Time,
        height: Height,
        tip: BlockId,
        has: impl Fn(BlockId) -> bool,
    ) -> Option<(ReplicaId, FetchBlocks)> {
        let missing = self.missing.as_mut()?;
        if missing.ask_at > now {
            return None;
        }
        if has(missing.target) || self.members == 1 {
            self.missing = None;
            return None;
        }
        if missing.source == self.id {
            missing.source = ReplicaId((missing.source.0 + 1) % self.members);
        }
        let request = FetchBlocks { height, after: tip, target: missing.target };
        let member = missing.source;
        missing.asked = Some((member, request));
        missing.ask_at = now + RETRY;
        missing.source = ReplicaId((member.0 + 1) % self.members);
        Some((member, request))
    }

    /// What of an answer may be taken. Decided blocks prove themselves, so they count even when the
    /// target has changed since; an undecided tail counts only for the very question, whose target is
    /// certified; an empty answer only from the member that was asked.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        from: ReplicaId,
        request: FetchBlocks,
        content: Content,
    ) -> bool {
        let Some(missing) = self.missing.as_mut() else { return false };
        let Some((member, asked)) = missing.asked else { return false };
        let fits = match content {
            Content::Nothing => from == member && request == asked,
            Content::Decided => (request.height, request.after) == (asked.height, asked.after),
            Content::Tail => request == asked,
        };
        if fits {
            missing.asked = None;
        }
        if fits && content != Content::Nothing {
            missing.source = from;
            missing.ask_at = now;
        }
        fits && content != Content::Nothing
    }

    /// When [`BlockSync::due`] has something.
    #[must_use]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.missing.as_ref().map(|missing| missing.ask_at)
    }

    /// Whether something is missing.
    #[must_use]
    pub(crate) fn is_behind(&self) -> bool {
        self.missing.is_some()
    }
}

#[cfg(test)]
mod tests;
