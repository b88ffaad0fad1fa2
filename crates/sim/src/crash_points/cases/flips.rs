//! Bits that rot in what was synced.

use super::{FLIPS, Moment, Verdict, model, storage};
use crate::crash_points::chronicle::Ends;
use crate::crash_points::host::CrashHost;
use crate::crash_points::model::Missing;
use crate::oracles::Violation;
use quorate_storage::StorageError;

impl Moment<'_> {
    /// Flips bits in synced groups: before the last sync it must be noticed; in the last group it
    /// cannot be.
    pub(super) fn flip_synced(&mut self) -> Verdict {
        let before = self.chronicle.synced[0].clone();
        let ends: Vec<(&String, &u64)> = before.iter().filter(|(_, end)| **end > 0).collect();
        let sound = self.fork();
        let clean = CrashHost::open(
            self.shared,
            self.shared.subject,
            &sound,
            &[],
            &self.chronicle.clone().shared(),
        );
        let (_, clean) = clean.map_err(|error| storage("the same without a flip", &error))?;
        for flip in 0..FLIPS {
            let Some((file, end)) = ends.get(self.place(flip, ends.len() as u64).0 as usize) else {
                break;
            };
            let (at, bit) = self.place(flip + FLIPS, **end);
            let disks = self.fork();
            disks.records.flip(file, at, bit);
            let opened = CrashHost::open(
                self.shared,
                self.shared.subject,
                &disks,
                &[],
                &self.chronicle.clone().shared(),
            );
            match opened {
                Err(StorageError::Corrupt { .. } | StorageError::Format { .. }) => {}
                Err(error) => return Err(storage("after a flipped bit", &error)),
                // Between records, or in a file that was deleted.
                Ok((_, recovery)) if recovery == clean => {}
                Ok(_) => {
                    let text = format!("byte {at} of {file} changed, and nobody noticed");
                    return Err(Violation { oracle: "corruption", text });
                }
            }
        }
        self.flip_last_group(&before)
    }

    fn flip_last_group(&mut self, before: &Ends) -> Verdict {
        let now = self.chronicle.synced[1].clone();
        let Some((file, end)) = now.iter().find(|(file, end)| before.get(*file) < Some(end)) else {
            return Ok(());
        };
        let start = before.get(file).copied().unwrap_or(0);
        for flip in 0..FLIPS {
            let (at, bit) = self.place(flip, end - start);
            let disks = self.fork();
            disks.records.flip(file, start + at, bit);
            let chronicle = self.chronicle.clone().shared();
            match CrashHost::open(self.shared, self.shared.subject, &disks, &[], &chronicle) {
                Err(StorageError::Corrupt { .. } | StorageError::Format { .. }) => {}
                Err(error) => return Err(storage("after a flipped bit", &error)),
                Ok((_, found)) => model(&mut chronicle.borrow_mut(), Missing::Anything, &found)?,
            }
        }
        Ok(())
    }
}
