//! A comparison divided among machines: `quorate compare --shard` and `--join`.

use super::Options;
use crate::commands::part_files;
use crate::failure::{CommandResult, Failure};
use crate::output;
use quorate_lab::compare::{self, Comparison, ComparisonSpec, FailedJoin, Means};
use quorate_lab::experiment::{JoinError, Shard, results};

/// Name that the files of parts begin with.
const WHOLE: &str = "compare.points";

impl Options {
    /// Searches for one part of the candidates, and leaves the results for whoever joins them.
    pub(super) fn measure_part(
        &self,
        shard: Shard,
        spec: &ComparisonSpec,
        means: &Means<'_>,
    ) -> CommandResult {
        let path = self.out.join(shard.file_name(WHOLE));
        let measured = compare::measure_part(spec, shard, &path, self.resume, means);
        let records = measured?;
        if self.json {
            output::text(&results::lines(&records));
            return Ok(());
        }
        let (own, all) = (compare::candidates_of(spec, shard).len(), spec.candidates.len());
        output::line(&format!("part {shard}: {own} of {all} ways of voting"));
        output::line(&format!("results: {}", path.display()));
        output::line("with those of all parts: quorate compare … --join FILE…");
        Ok(())
    }

    /// Answers with the searches of all parts.
    pub(super) fn join_parts(
        &self,
        spec: &ComparisonSpec,
        means: &Means<'_>,
    ) -> Result<Comparison, Failure> {
        let parts = part_files::read(&self.join, WHOLE)?;
        compare::join(spec, &parts, means).map_err(|error| match error {
            FailedJoin::Run(error) => error.into(),
            // Somebody still has to measure: no mistake in the command.
            missing @ FailedJoin::Parts(JoinError::Missing { .. }) => Failure::run(missing),
            other => Failure::usage(other),
        })
    }
}
