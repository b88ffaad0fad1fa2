//! The execution thread: one height after the other, and everything durable at the end.

use crossbeam_channel::Receiver;
use quorate_storage::{Executor, StorageError};
use quorate_types::machine::{Block, Executed};
use std::sync::atomic::{AtomicBool, Ordering};

/// Executes until the queue's other end is dropped or the validator stops, then makes the state
/// durable, so that the next start replays nothing.
pub(crate) fn run(
    mut executor: Executor,
    blocks: &Receiver<Box<Block>>,
    stopping: &AtomicBool,
    answer: &dyn Fn(Executed) -> bool,
) -> Result<(), StorageError> {
    while let Ok(block) = blocks.recv() {
        if stopping.load(Ordering::Relaxed) || !answer(executor.execute(&block)?) {
            break;
        }
    }
    executor.make_durable()
}
