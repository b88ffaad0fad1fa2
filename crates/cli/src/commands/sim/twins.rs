//! `quorate sim --twins-scenarios`.

use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use quorate_engine::ProtocolKind;
use quorate_lab::text::thousands;
use quorate_sim::mutants::Mutant;
use quorate_sim::twins::{Campaign, Found, Ground, Plan, run_plans};
use serde_json::{Value, json};
use std::time::Instant;

/// Broken plans shown in full.
const SHOWN_MAX: usize = 3;

/// Runs so many plans from this number on.
///
/// # Errors
/// When there are none to run, or a property was broken.
pub(super) fn run(
    protocol: ProtocolKind,
    from: u64,
    count: u64,
    threads: usize,
    mutant: Option<Mutant>,
    as_json: bool,
) -> CommandResult {
    if count == 0 {
        return Err(Failure::usage("--twins-scenarios must be at least 1"));
    }
    let end = from.checked_add(count).ok_or_else(|| Failure::usage("numbers end at 2^64"))?;
    let begun = Instant::now();
    let bar = ProgressBar::new(count);
    let template = "{bar:30} {pos}/{len} scenarios · {per_sec} · {eta} left {msg}";
    bar.set_style(ProgressStyle::with_template(template).expect("a constant that parses"));
    let mut broken = 0;
    let campaign = run_plans(
        from..end,
        threads,
        mutant,
        || Ground::of(protocol),
        |part| {
            bar.inc(part.plans);
            broken += part.broken;
            if broken > 0 {
                bar.set_message(format!("· {broken} broken"));
            }
        },
    );
    bar.finish_and_clear();
    let seconds = begun.elapsed().as_secs_f64();
    if as_json {
        output::json(&to_json(&campaign, from, threads, seconds, mutant));
    } else {
        output::line(&to_text(&campaign, threads, seconds, mutant));
    }
    if campaign.broken > 0 { Err(Failure::Reported(Code::Run)) } else { Ok(()) }
}

fn to_json(
    campaign: &Campaign,
    from: u64,
    threads: usize,
    seconds: f64,
    mutant: Option<Mutant>,
) -> Value {
    let failure = |found: &Found| {
        json!({
            "number": found.number,
            "oracle": found.violation.oracle,
            "text": found.violation.text,
            "replay": found.replay(mutant),
        })
    };
    json!({
        "from": from,
        "scenarios": campaign.plans,
        "threads": threads,
        "seconds": (seconds * 10.0).round() / 10.0,
        "held": campaign.plans - campaign.broken,
        "broken": campaign.broken,
        "failures": campaign.found.iter().map(failure).collect::<Vec<_>>(),
        "commits": campaign.heights,
        "views": campaign.views,
        "timers": campaign.rings,
        "messages": campaign.messages,
        "combined_hash": hex::encode(campaign.hash().0),
    })
}

fn to_text(campaign: &Campaign, threads: usize, seconds: f64, mutant: Option<Mutant>) -> String {
    let mut text = String::new();
    for found in campaign.found.iter().take(SHOWN_MAX) {
        let Found { number, violation, .. } = found;
        text.push_str(&format!(
            "scenario {number} breaks {}: {}\n{}to run it again: {}\n\n",
            violation.oracle,
            violation.text,
            Plan::draw(*number),
            found.replay(mutant),
        ));
    }
    text.push_str(&format!(
        "{} scenarios of Twins: {} held, {} broken; {seconds:.1} s on {threads} threads\n  \
         {} commits, {} views, {} timers, {} messages\n  trace of all: {}",
        thousands(campaign.plans),
        thousands(campaign.plans - campaign.broken),
        thousands(campaign.broken),
        thousands(campaign.heights),
        thousands(campaign.views),
        thousands(campaign.rings),
        thousands(campaign.messages),
        hex::encode(campaign.hash().0),
    ));
    text
}
