//! Enumeration of crash points: `quorate sim --crash-points`.

use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use quorate_report::text::thousands;
use quorate_sim::crash_points::{self, Broken, Options, Report, Role};
use quorate_sim::replay;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Looks at every point, or at one alone: of the run without a change, or of those with one in
/// which the hosts of these roles are looked at.
pub(super) fn run(options: &Options, roles: &[Role], as_json: bool) -> CommandResult {
    if roles.is_empty() {
        return run_one(options, as_json);
    }
    roles.iter().try_for_each(|role| run_one(&Options { border: Some(*role), ..*options }, as_json))
}

fn run_one(options: &Options, as_json: bool) -> CommandResult {
    let begun = Instant::now();
    let bar = ProgressBar::new(0);
    let style =
        ProgressStyle::with_template("{bar:30} {pos}/{len} points · {per_sec} · {eta} left");
    bar.set_style(style.expect("a constant that parses"));
    let report = crash_points::run(options, |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    if options.only.is_some_and(|point| point >= report.points) {
        return Err(Failure::usage(format!("there are {} points, from 0", report.points)));
    }
    let took = begun.elapsed();
    if as_json {
        output::json(&to_json(&report, took, options));
    } else {
        output::line(&in_words(&report, took, options));
    }
    if report.broken.is_empty() { Ok(()) } else { Err(Failure::Reported(Code::Run)) }
}

fn in_words(report: &Report, took: Duration, options: &Options) -> String {
    let mut text = String::new();
    for broken in &report.broken {
        text += &format!("{broken}\n  to look at it again: {}\n", replay(broken, options));
    }
    for (mode, count) in &report.cases {
        text += &format!("{:>10}  {mode}\n", thousands(*count));
    }
    let (points, broken) = (thousands(report.points), report.broken.len());
    text += &format!(
        "{points} points of one run{}, {broken} broken; {:.1} s on {} threads",
        options.border.map(|role| format!(" ({role})")).unwrap_or_default(),
        took.as_secs_f64(),
        options.threads,
    );
    text
}

fn replay(broken: &Broken, options: &Options) -> String {
    let (protocol, mutant) = (replay::protocol(options.protocol), replay::mutant(options.mutant));
    let role = options.border.map(|role| format!(" --changes --role {role}")).unwrap_or_default();
    format!("quorate sim --crash-points{role} --point {}{protocol}{mutant}", broken.point)
}

fn to_json(report: &Report, took: Duration, options: &Options) -> Value {
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
        "role": options.border.map(|role| role.to_string()),
        "threads": options.threads,
        "seconds": (took.as_secs_f64() * 10.0).round() / 10.0,
    })
}
