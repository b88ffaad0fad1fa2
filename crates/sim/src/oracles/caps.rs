//! Memory stays within the settings, collections within their bounds, and frames within the caps of
//! their type.

use super::{Observation, Oracle};
use quorate_consensus::Occupancy;
use quorate_engine::{FrameTag, Settings, Status};

/// Compares sizes with limits.
#[derive(Debug)]
pub struct Caps {
    mempool_bytes_max: u64,
    bodies_bytes_max: u64,
}

impl Caps {
    /// The limits that `settings` set for a committee of `members`.
    #[must_use]
    pub fn new(settings: &Settings, members: usize) -> Self {
        // Each author may have its share, and one more body that was asked for by name.
        let author = (settings.author_bytes_max + quorate_types::Body::BYTES_MAX) as u64;
        Self {
            mempool_bytes_max: settings.mempool_bytes_max as u64,
            bodies_bytes_max: author * members as u64,
        }
    }

    fn check_status(&self, status: &Status) -> Result<(), String> {
        let check = |what, id, bytes, limit| {
            let within = bytes <= limit;
            within
                .then_some(())
                .ok_or_else(|| format!("{id} has {bytes} bytes in its {what}, of {limit}"))
        };
        check("mempool", status.id, status.mempool_bytes, self.mempool_bytes_max)?;
        check("bodies", status.id, status.bodies_bytes, self.bodies_bytes_max)
    }
}

impl Oracle for Caps {
    fn name(&self) -> &'static str {
        "caps"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Shown { status } => self.check_status(status),
            Observation::Released { replica, tag, bytes, .. } => {
                let limit = FrameTag::parse(*tag).map_or(0, |tag| tag.rules().bytes_max);
                let within = *bytes <= limit;
                within.then_some(()).ok_or_else(|| {
                    format!("{replica} sent a frame with tag {tag} of {bytes} bytes, of {limit}")
                })
            }
            Observation::Occupied { replica, collections } => {
                let exceeded = collections.iter().find(|collection| collection.is_exceeded());
                exceeded.map_or(Ok(()), |of| {
                    let Occupancy { field, entries, bound } = of;
                    Err(format!("{replica} has {entries} entries in '{field}', of {bound}"))
                })
            }
            _ => Ok(()),
        }
    }
}
