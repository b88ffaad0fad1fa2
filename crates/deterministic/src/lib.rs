//! Common ground of everything that runs in virtual time: a queue of events, random draws from a
//! seed, and committees whose keys come from one.
//!
//! `quorate-sim`, which looks for what breaks, and `quorate-model`, which estimates how fast it is,
//! both stand on it and know nothing of each other. The same seed gives the same draws and keys on
//! every machine, and events of one moment keep their order: a run repeats itself, event for event.

mod event_queue;
pub mod genesis;
mod rng;

pub use event_queue::EventQueue;
pub use rng::Rng;
