//! `quorate sim --crash-points`.

use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use quorate_lab::text::thousands;
use quorate_sim::crash_points::{self, Broken, Report};
use quorate_sim::mutants::Mutant;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Looks at every point, or at one alone.
pub(super) fn run(
    threads: usize,
    only: Option<u64>,
    mutant: Option<Mutant>,
    as_json: bool,
) -> CommandResult {
    let options = crash_points::Options { threads, only, every: 1, mutant };
    let begun = Instant::now();
    let bar = ProgressBar::new(0);
    let style =
        ProgressStyle::with_template("{bar:30} {pos}/{len} points · {per_sec} · {eta} left");
    bar.set_style(style.expect("a constant that parses"));
    let report = crash_points::run(&options, |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    if only.is_some_and(|point| point >= report.points) {
        return Err(Failure::usage(format!("there are {} points, from 0", report.points)));
    }
    let took = begun.elapsed();
    if as_json {
        output::json(&to_json(&report, took, threads));
    } else {
        output::line(&in_words(&report, took, threads, mutant));
    }
    if report.broken.is_empty() { Ok(()) } else { Err(Failure::Reported(Code::Run)) }
}

fn in_words(report: &Report, took: Duration, threads: usize, mutant: Option<Mutant>) -> String {
    let mut text = String::new();
    for broken in &report.broken {
        text += &format!("{broken}\n  to look at it again: {}\n", replay(broken, mutant));
    }
    for (mode, count) in &report.cases {
        text += &format!("{:>10}  {mode}\n", thousands(*count));
    }
    let (points, broken) = (thousands(report.points), report.broken.len());
    text += &format!(
        "{points} points of one run, {broken} broken; {:.1} s on {threads} threads",
        took.as_secs_f64()
    );
    text
}

fn replay(broken: &Broken, mutant: Option<Mutant>) -> String {
    let mutant = mutant.map_or(String::new(), |mutant| format!(" --mutant {mutant:?}"));
    format!("quorate sim --crash-points --point {}{mutant}", broken.point)
}

fn to_json(report: &Report, took: Duration, threads: usize) -> Value {
    let broken = report.broken.iter().map(|broken| {
        json!({
            "point": broken.point,
            "after": broken.after,
            "mode": broken.mode,
            "oracle": broken.violation.oracle,
            "text": broken.violation.text,
        })
    });
    json!({
        "points": report.points,
        "cases": report.cases,
        "broken": broken.collect::<Vec<_>>(),
        "threads": threads,
        "seconds": (took.as_secs_f64() * 10.0).round() / 10.0,
    })
}
