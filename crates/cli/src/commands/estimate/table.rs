//! An estimate as text.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use quorate_model::{Arrivals, Estimate, Percentiles, Scene};
use quorate_report::text::thousands;
use std::num::NonZeroUsize;

/// Draws the table of an estimate.
pub(super) fn render(scene: &Scene, outcome: &Estimate) -> String {
    let mut text = heading(scene, outcome);
    let committed = thousands(outcome.committed_tps.round() as u64);
    let of_what = match scene.load.arrivals {
        Arrivals::Closed(operations) => {
            let clients = scene.load.sessions.map_or(1, NonZeroUsize::get);
            format!("by {clients} clients, {operations} a request, one after the other")
        }
        Arrivals::Fixed | Arrivals::Poisson => {
            format!("of {}/s offered", thousands(scene.load.rate.round() as u64))
        }
    };
    text.push_str(&format!("  committed     {committed}/s {of_what}\n"));
    let slots = outcome.fast_decisions + outcome.slow_decisions;
    if slots > 0 {
        let share = 100.0 * outcome.fast_decisions as f64 / slots as f64;
        text.push_str(&format!("  fast path     {share:.0} % of {} heights\n", thousands(slots)));
    }
    let (views, timeouts) = (thousands(outcome.views), thousands(outcome.timeouts));
    text.push_str(&format!(
        "  views         {views}, {timeouts} timed out · {} heights · certificates of {} bytes\n",
        thousands(outcome.heights),
        thousands(outcome.certificate_bytes),
    ));
    text.push_str(&format!(
        "  host          {:.0} % of the cores, {:.0} % of the uplink at work (busiest)\n",
        100.0 * outcome.cores_busiest,
        100.0 * outcome.uplink_busiest,
    ));
    if outcome.refused + outcome.dropped > 0 {
        text.push_str(&format!(
            "  lost          {} operations refused for want of room, {} bulk frames dropped\n",
            thousands(outcome.refused),
            thousands(outcome.dropped),
        ));
    }
    for doubt in &outcome.doubts {
        text.push_str(&format!("  in doubt      {doubt}\n"));
    }
    text.push_str(&indented(&latencies(outcome)));
    text.push_str(&indented(&stations(outcome)));
    text.push_str(&format!(
        "\n{:.1} s for {:.0} s of virtual time, {} events · trace {}",
        outcome.wall_s,
        outcome.virtual_s,
        thousands(outcome.events),
        outcome.trace_hash,
    ));
    text
}

fn heading(scene: &Scene, outcome: &Estimate) -> String {
    format!(
        "{} validators · {} ({} signatures) · {}-byte operations · {} · {:?} profile\n\
         prices of {} ({}, {}) · {} cores a host\n\n",
        scene.validators,
        scene.scheme,
        outcome.signatures,
        scene.load.tx_bytes,
        scene.durability,
        scene.profile,
        scene.prices.machine,
        scene.prices.commit,
        scene.prices.date,
        scene.host.cores,
    )
}

fn latencies(outcome: &Estimate) -> Table {
    let mut table = table(&["latency in ms", "p50", "p90", "p99", "mean"]);
    let rows: [(&str, &Percentiles); 4] = [
        ("committed by the first validator", &outcome.first_validator),
        ("… by the one beside the client", &outcome.one_validator),
        ("… by the slowest", &outcome.slowest_validator),
        ("acknowledged to the client", &outcome.acknowledged),
    ];
    for (name, one) in rows.into_iter().filter(|(_, one)| one.operations > 0) {
        let ms = |value: f64| format!("{value:.0}");
        table.add_row([
            name.to_owned(),
            ms(one.p50_ms),
            ms(one.p90_ms),
            ms(one.p99_ms),
            ms(one.mean_ms),
        ]);
    }
    align(table)
}

fn stations(outcome: &Estimate) -> Table {
    let mut table = table(&["station, % of a core", "mean", "busiest"]);
    for one in &outcome.utilisation {
        let percent = |value: f64| format!("{:.1}", 100.0 * value);
        table.add_row([one.station.clone(), percent(one.mean), percent(one.busiest)]);
    }
    align(table)
}

fn table(heading: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(heading);
    table
}

fn align(mut table: Table) -> Table {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn indented(table: &Table) -> String {
    let lines = table.to_string();
    let lines = lines.lines().map(|line| format!(" {}\n", line.trim_end()));
    std::iter::once("\n".to_owned()).chain(lines).collect()
}
