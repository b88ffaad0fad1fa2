//! Charts of every validator, or of whole committees where several runs are compared.

use super::super::Run;
use super::super::lines::{self, Points};
use super::{each_run, new, over_time, values};
use crate::Report;
use crate::chart::{Axis, Look, Plot, Series};
use std::collections::BTreeMap;

/// Most validators that get a colour of their own.
const COLOURED_MAX: usize = 8;

/// One chart of samples of validators: its name, title, note, label and unit, and the functions
/// that read a sample and sum a committee up.
struct Trace {
    name: &'static str,
    title: &'static str,
    note: &'static str,
    label: &'static str,
    unit: &'static str,
    values: fn(&Report, usize) -> Vec<Option<f64>>,
    together: fn(&[f64]) -> f64,
    summary: &'static str,
}

fn traces() -> [Trace; 4] {
    let (least, most) = (
        |values: &[f64]| values.iter().copied().fold(f64::MAX, f64::min),
        |values: &[f64]| values.iter().copied().fold(0.0, f64::max),
    );
    [
        Trace {
            name: "validators-committed",
            title: "Executed by each validator",
            note: "Operations that each validator executed in each second.",
            label: "operations per second (tx/s)",
            unit: "tx/s",
            values: |report, id| report.validators[id].each_second.committed_tps.clone(),
            together: least,
            summary: "Executed by the slowest validator that answers",
        },
        Trace {
            name: "validators-cpu",
            title: "CPU of each validator",
            note: "Cores that each validator kept busy in each second.",
            label: "cores kept busy (cores)",
            unit: "cores",
            values: |report, id| report.validators[id].each_second.cpu_cores.clone(),
            together: |values| values.iter().sum(),
            summary: "CPU of all validators together",
        },
        Trace {
            name: "validators-memory",
            title: "Memory of each validator",
            note: "Resident memory at the end of each second.",
            label: "memory (MiB)",
            unit: "MiB",
            values: |report, id| report.validators[id].each_second.rss_mb.clone(),
            together: most,
            summary: "Memory of the largest validator",
        },
        Trace {
            name: "validators-height",
            title: "Height of each validator",
            note: "The last height that each validator had executed at the end of each second.",
            label: "executed height (blocks)",
            unit: "blocks",
            values: |report, id| {
                let heights = &report.validators[id].each_second.height;
                heights.iter().map(|height| height.map(|height| height as f64)).collect()
            },
            together: most,
            summary: "Height of the furthest validator",
        },
    ]
}

/// One chart for each thing that is known.
pub(super) fn of(runs: &[Run]) -> Vec<Plot> {
    let plot = |trace: Trace| {
        let (title, series) = match runs {
            [run] => (trace.title, each_validator(&run.report, &trace)),
            _ => {
                let sum = |report: &Report| summed_up(report, &trace);
                (trace.summary, each_run(runs, Look::Strong, sum))
            }
        };
        let y = Axis::from_zero(trace.label, trace.unit, values(&series));
        over_time(trace.name, title, trace.note, y, series, runs)
    };
    traces().into_iter().map(plot).collect()
}

/// A line each; where there are too many to tell apart, only those that something happened to.
fn each_validator(report: &Report, trace: &Trace) -> Vec<Series> {
    let count = report.validators.len();
    let first_healthy = report.validators.iter().position(|v| v.state == "healthy");
    let line = |id: usize| {
        let points = lines::each_second(report, &(trace.values)(report, id));
        let validator = &report.validators[id];
        let healthy = validator.state == "healthy";
        let name = match healthy {
            true => format!("validator {id}"),
            false => format!("validator {id} ({})", validator.state),
        };
        if count <= COLOURED_MAX {
            return new(&name, id, Look::Plain, points);
        }
        match healthy {
            true => new(
                if first_healthy == Some(id) { "healthy validators" } else { "" },
                0,
                Look::Faint,
                points,
            ),
            false => new(&name, id % COLOURED_MAX, Look::Strong, points),
        }
    };
    (0..count).map(line).collect()
}

fn summed_up(report: &Report, trace: &Trace) -> Points {
    let mut seconds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for id in 0..report.validators.len() {
        for (second, value) in (trace.values)(report, id).into_iter().enumerate() {
            seconds.entry(second).or_default().extend(value);
        }
    }
    let together = |values: &Vec<f64>| (!values.is_empty()).then(|| (trace.together)(values));
    let values: Vec<_> = seconds.values().map(together).collect();
    lines::each_second(report, &values)
}
