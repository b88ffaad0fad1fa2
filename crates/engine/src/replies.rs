//! Recent replies, to answer a repeated request at once instead of ordering it again.

use quorate_types::{ClientId, Reply};
use std::collections::{BTreeMap, VecDeque};

/// Most replies kept.
const KEPT_MAX: usize = 4_096;
/// Most bytes of results kept.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The latest replies, oldest dropped first.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    replies: BTreeMap<(ClientId, u64), Reply>,
    order: VecDeque<(ClientId, u64)>,
    bytes: usize,
}

impl Replies {
    /// Keeps a reply.
    pub(crate) fn keep(&mut self, reply: Reply) {
        let key = (reply.client, reply.sequence);
        self.bytes += size(&reply);
        if let Some(former) = self.replies.insert(key, reply) {
            self.bytes -= size(&former);
        } else {
            self.order.push_back(key);
        }
        while self.order.len() > KEPT_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some(dropped) = self.replies.remove(&oldest) {
                self.bytes -= size(&dropped);
            }
        }
    }

    /// The reply to a request, if it is kept.
    #[must_use]
    pub(crate) fn get(&self, client: ClientId, sequence: u64) -> Option<&Reply> {
        self.replies.get(&(client, sequence))
    }
}

fn size(reply: &Reply) -> usize {
    reply.results.iter().map(|outcome| outcome.bytes().len() + 32).sum::<usize>() + 200
}
