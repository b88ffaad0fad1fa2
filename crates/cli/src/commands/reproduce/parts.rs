//! An experiment divided among machines: `quorate reproduce --shard` and `--join`.

use super::Options;
use crate::failure::{CommandResult, Failure};
use crate::{commands, output};
use quorate_lab::experiment::results::{self, Writer};
use quorate_lab::experiment::{Experiment, Job, JoinError, Record, Runners, Shard, join, owners};
use std::path::Path;

impl Options {
    /// Measures one part, and leaves its results for whoever joins them.
    pub(super) fn measure_part(
        &self,
        shard: Shard,
        experiment: &Experiment,
        jobs: &[Job],
        runners: &Runners,
    ) -> CommandResult {
        let whole = self.whole(experiment);
        let results = self.out.join(shard.file_name(&whole));
        let owners = owners(jobs, runners, shard.count());
        let own: Vec<Job> = shard.take(jobs, &owners).cloned().collect();
        let records = self.measure(experiment, own, &results, runners)?;
        if self.json {
            output::text(&results::lines(&records));
            return Ok(());
        }
        output::line(&format!("part {shard}: {} of {} points", records.len(), jobs.len()));
        output::line(&format!("results: {}", results.display()));
        output::line("with those of all parts: quorate reproduce … --join FILE…");
        Ok(())
    }

    /// Puts the results of all parts together, in a file as one machine would have left it.
    pub(super) fn join_parts(
        &self,
        experiment: &Experiment,
        jobs: &[Job],
        results: &Path,
        runners: &Runners,
    ) -> Result<Vec<Record>, Failure> {
        let whole = self.whole(experiment);
        let parts = commands::part_files::read(&self.join, &whole)?;
        let records = join(&whole, jobs, runners, &parts).map_err(|error| match error {
            // Somebody still has to measure: no mistake in the command.
            missing @ JoinError::Missing { .. } => Failure::run(missing),
            other => Failure::usage(other),
        })?;
        Writer::create(results, &records).map_err(Failure::run)?;
        Ok(records)
    }
}
