use super::{Run, caption, charts, compare, figures, html, name_runs};
use crate::Report;
use crate::chart::Plot;
use crate::results::beside::{Beside, LeastLatency, Minimum};
use crate::results::{
    Committed, CommittedBy, Counts, FORMAT, FaultEvent, LatencyGrid, LatencyMs, Measurement, Rates,
    Second, Traces, ValidatorReport,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const WARMUP_S: usize = 2;
const DURATION_S: usize = 10;
const RATE: u64 = 1_000;

/// A run of four validators in which the first leader dies after four seconds, for one second of
/// which nothing is decided.
pub(crate) fn report(scheme: &str) -> Report {
    let seconds = WARMUP_S + DURATION_S;
    let stalled = |second: usize| second == WARMUP_S + 4;
    let rate = |second: usize| if stalled(second) { 0.0 } else { RATE as f64 };
    let mut grid = LatencyGrid::default();
    for mark in 0..seconds as u64 * RATE {
        let due_ms = mark * 1_000 / RATE;
        let stall_ms = if stalled((due_ms / 1_000) as usize) { 1_000 - due_ms % 1_000 } else { 0 };
        grid.record(due_ms, 1_000 * (20 + mark % 10 + stall_ms), 1);
    }
    let tenths = |value: fn(f64) -> f64| -> Vec<f64> {
        (0..10 * seconds).map(|tenth| value(rate(tenth / 10))).collect()
    };
    let second = |index: usize| Second {
        second: index as i64 + 1 - WARMUP_S as i64,
        committed: rate(index) as u64,
        p50_ms: 25.0,
        view: 10 * index as u64,
        view_changes: u64::from(stalled(index)),
        client_cpu_cores: 0.1,
    };
    Report {
        format: FORMAT,
        started: "2026-01-31 12:00:00 UTC".to_owned(),
        command: "quorate bench --kill 0@4".to_owned(),
        measurement: Measurement::Bench,
        committed_by: CommittedBy::Validators,
        offered_tps: RATE as f64,
        committed_tps: 998.0,
        goodput_tps: Some(1_000.0),
        stations_us: BTreeMap::new(),
        latency_ms: LatencyMs { mean: 70.0, p50: 25.0, p90: 29.0, p99: 900.0, max: 1_029.0 },
        bytes_per_tx: Some(2_048.0),
        cpu_seconds: Some(5.0),
        client_cpu_seconds: 1.0,
        rss_mb_max: Some(80.0),
        disk_mb: Some(12.0),
        view_changes: Some(1),
        fast_decisions: Some(0),
        slow_decisions: Some(0),
        certificate_bytes: Some(199),
        answered: DURATION_S as u64 * RATE,
        refused: 0,
        dropped: 0,
        unanswered: 0,
        warmup: Counts { done: 2_000, ..Counts::default() },
        validators: (0..4).map(|id| validator(id, seconds)).collect(),
        events: vec![killed_at(4.0)],
        timeline: (0..seconds).map(second).collect(),
        load: Rates {
            interval_ms: 100,
            offered_tps: tenths(|_| RATE as f64),
            answered_tps: tenths(|rate| rate),
        },
        committed: Committed {
            interval_ms: 100,
            slowest_tps: tenths(|rate| rate).into_iter().map(Some).collect(),
            fastest_tps: tenths(|rate| 1.1 * rate).into_iter().map(Some).collect(),
        },
        latency_over_time: grid,
        latency_distribution_us: (20..30).map(|ms| (1_000 * ms, 1_000)).collect(),
        latency_histogram: None,
        beside: Beside { minimum: Some(least_latency()), ..Beside::default() },
        config: config(scheme),
    }
}

fn killed_at(at_s: f64) -> FaultEvent {
    FaultEvent { at_s, kind: "kill".to_owned(), validator: Some(0), link_to: None, change: None }
}

fn least_latency() -> LeastLatency {
    let least = Minimum { p50_ms: 20.0, mean_ms: 21.0, mean_without_wait_ms: 15.0, view_ms: 12.0 };
    LeastLatency { least, p50_ratio: 1.25, mean_ratio: 3.3 }
}

fn config(scheme: &str) -> Value {
    json!({
        "validators": 4, "scheme": scheme, "rate": RATE, "tx_bytes": 512, "seed": 1,
        "duration_s": DURATION_S, "warmup_s": WARMUP_S, "durability": "fsync", "service": "log",
        "kill": ["0@4"], "settings": {"batch_bytes": 500_000, "timeout_ms": 500},
        "machine": {"cores": 2, "cpu": "a processor", "version": "0.1.0", "commit": "abc",
                    "kernel": "Linux 6", "memory_mb": 24_000, "disk": "ext4 on /dev/sda1",
                    "optimised": true},
    })
}

fn validator(id: u16, seconds: usize) -> ValidatorReport {
    let dead = |second: usize| id == 0 && second > WARMUP_S + 4;
    let each = |value: f64| (0..seconds).map(|s| (!dead(s)).then_some(value)).collect();
    ValidatorReport {
        id,
        state: if id == 0 { "killed" } else { "healthy" }.to_owned(),
        since_s: (id == 0).then_some(4.0),
        committed_tps: (id > 0).then_some(998.0),
        height: 12_345,
        view: 12_400,
        cpu_seconds: 1.2,
        rss_mb_max: 80.0,
        bytes_sent: 5 << 20,
        each_second: Traces {
            committed_tps: each(1_000.0),
            height: (0..seconds).map(|s| (!dead(s)).then_some(100 * s as u64)).collect(),
            cpu_cores: each(0.2),
            rss_mb: each(70.0),
        },
    }
}

/// The same run if nothing had ever been answered.
fn empty() -> Report {
    let nothing = vec![None; WARMUP_S + DURATION_S];
    let mut report = report("bls");
    report.committed_tps = 0.0;
    report.latency_ms = LatencyMs::default();
    report.bytes_per_tx = None;
    (report.answered, report.warmup) = (0, Counts::default());
    report.load.answered_tps.clear();
    report.committed.slowest_tps = nothing.clone();
    report.committed.fastest_tps = nothing.clone();
    report.latency_over_time = LatencyGrid::default();
    report.latency_distribution_us.clear();
    for validator in &mut report.validators {
        validator.each_second = Traces {
            committed_tps: nothing.clone(),
            height: vec![None; nothing.len()],
            cpu_cores: nothing.clone(),
            rss_mb: nothing.clone(),
        };
    }
    report
}

fn runs(schemes: &[&str]) -> Vec<Run> {
    name_runs(schemes.iter().map(|scheme| report(scheme)).collect(), &[])
}

/// The page's text outside scripts and styles, as a strict parser finds it.
fn text_of(page: &str) -> String {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(page, options);
    let document = document.unwrap_or_else(|error| panic!("{error}"));
    let shown = document.descendants().filter(|node| {
        node.is_text()
            && !node.ancestors().any(|a| a.has_tag_name("script") || a.has_tag_name("style"))
    });
    shown.filter_map(|node| node.text()).collect::<Vec<_>>().join("\n")
}

fn plot<'a>(plots: &'a [Plot], name: &str) -> &'a Plot {
    plots.iter().find(|plot| plot.name == name).unwrap_or_else(|| panic!("{name} is drawn"))
}

#[test]
fn a_page_is_whole_and_needs_nothing_else() {
    let page = html(&runs(&["ed25519"]));
    let text = text_of(&page);
    for wanted in [
        "4 validators, Ed25519, 1,000 tx/s offered",
        "998",
        "quorate bench --kill 0@4",
        "Throughput over time",
        "Latency by percentile",
        "killed at 4 s",
        "settings.batch_bytes",
        "500,000",
        "ext4 on /dev/sda1",
        "validator 0 killed",
        "second with view changes",
        "12,345",
        "least median on this network",
        "p50 20.0 ms on this network",
    ] {
        assert!(text.contains(wanted), "{wanted}");
    }
    for foreign in ["http:", "https:", " src=", "@import", "url(", "<link"] {
        let inside = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!inside.contains(foreign), "{foreign} reaches outside");
    }
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("@media print"));
}

#[test]
fn every_named_chart_exists_with_units_on_both_axes() {
    for schemes in [&["ed25519"][..], &["ed25519", "bls"]] {
        let plots = charts::of(&runs(schemes));
        for name in charts::NAMES {
            let plot = plot(&plots, name);
            for axis in [&plot.x, &plot.y] {
                assert!(axis.label.contains(" (") && axis.label.ends_with(')'), "{}", axis.label);
            }
            assert!(plot.heat.is_some() || !plot.series.is_empty(), "{name}");
        }
        assert!(plots.iter().all(|plot| charts::NAMES.contains(&&*plot.name)));
    }
}

#[test]
fn series_have_as_many_points_as_there_is_data() {
    let plots = charts::of(&runs(&["ed25519"]));
    let seconds = WARMUP_S + DURATION_S;
    for (name, count) in [
        ("throughput", 10 * seconds),
        ("validators-committed", seconds),
        ("validators-cpu", seconds),
        ("validators-memory", seconds),
        ("validators-height", seconds),
        ("latency-percentiles", 10),
    ] {
        for series in &plot(&plots, name).series {
            assert_eq!(series.points.len(), count, "{} in {name}", series.name);
        }
    }
    let latency = plot(&plots, "latency");
    // A hundred operations an interval are too few for a 99th percentile: two intervals make one.
    let lengths: Vec<_> = latency.series.iter().map(|series| series.points.len()).collect();
    assert_eq!(lengths, [2, 5 * seconds, 5 * seconds, 5 * seconds], "the least, and quantiles");
    let counted: u64 = plot(&plots, "latency-heat")
        .heat
        .as_ref()
        .map_or(0, |heat| heat.cells.iter().map(|cell| cell.count).sum());
    assert_eq!(counted, seconds as u64 * RATE);
}

#[test]
fn the_stall_is_seen_where_it_was() {
    let plots = charts::of(&runs(&["ed25519"]));
    let at = |name: &str, series: &str, x: f64| {
        let series = plot(&plots, name).series.iter().find(|s| s.name.starts_with(series));
        let points = &series.expect("a series").points;
        points.iter().find(|point| (point.0 - x).abs() < 0.11).and_then(|point| point.1)
    };
    assert_eq!(at("throughput", "committed, slowest", 4.5), Some(0.0));
    assert_eq!(at("throughput", "committed, slowest", 3.5), Some(1_000.0));
    let median = |x| at("latency", "median", x).expect("operations were due");
    assert!(median(3.5) < 30.0 && median(4.1) > 850.0 && median(4.9) < 200.0);
    let silence = figures::all().into_iter().find(|f| f.name == "longest time without an answer");
    assert_eq!(silence.and_then(|f| (f.value)(&report("bls"))), Some(1_000.0));
    assert_eq!(plot(&plots, "throughput").notches.as_ref().map(|n| n.at[0].0), Some(4.5));
}

#[test]
fn shares_of_the_distribution_sum_to_all() {
    let plots = charts::of(&runs(&["ed25519"]));
    let bars = &plot(&plots, "latency-distribution").series[0].points;
    let sum: f64 = bars.iter().filter_map(|bar| bar.1).sum();
    assert!((sum - 100.0).abs() < 1e-9, "{sum}");
    let tail = &plot(&plots, "latency-percentiles").series[0].points;
    let quickest_within = tail.iter().rfind(|point| point.0 <= 0.5).and_then(|point| point.1);
    assert_eq!(quickest_within, Some(25.0), "the median of ten equal steps from 20 ms");
}

#[test]
fn a_comparison_names_runs_by_what_differs_and_marks_it() {
    let mut reports = vec![report("ed25519"), report("bls")];
    reports[1].config["settings"]["timeout_ms"] = json!(250);
    reports[1].latency_ms.p50 = 50.0;
    let runs = name_runs(reports, &[]);
    assert_eq!(runs[0].label, "Ed25519, timeout ms 500");
    let page = html(&runs);
    let text = text_of(&page);
    assert!(text.contains("×2.00 worse"), "the median doubled");
    assert_eq!(page.matches("<tr class=\"differs\">").count(), 2);
    let table = compare::table(&runs);
    assert!(table.contains("×2.00") && table.contains("settings.timeout_ms"), "{table}");
    assert!(!table.contains("NaN") && !table.contains("inf"), "{table}");
}

#[test]
fn runs_that_do_not_differ_get_letters() {
    let labels =
        |runs: Vec<Run>| -> Vec<String> { runs.into_iter().map(|run| run.label).collect() };
    assert_eq!(labels(runs(&["bls", "bls"])), ["run A", "run B"]);
    assert_eq!(labels(runs(&["bls", "bls", "ed25519"])), ["BLS (A)", "BLS (B)", "Ed25519"]);
    let wanted = ["mine".to_owned()];
    assert_eq!(
        labels(name_runs(vec![report("bls"), report("ed25519")], &wanted)),
        ["mine", "Ed25519"]
    );
    assert!(compare::table(&runs(&["bls", "bls"])).contains("same settings on the same machine"));
}

#[test]
fn events_that_are_the_same_everywhere_are_marked_once() {
    let mut reports = vec![report("ed25519"), report("bls")];
    let event = FaultEvent {
        at_s: 7.0,
        kind: "restart".to_owned(),
        validator: Some(0),
        link_to: None,
        change: None,
    };
    reports[1].events.push(event);
    let plots = charts::of(&name_runs(reports, &[]));
    let marks: Vec<_> = plot(&plots, "latency").marks.iter().map(|m| m.text.as_str()).collect();
    assert_eq!(marks, ["validator 0 killed", "validator 0 started again (BLS)"]);
}

#[test]
fn a_run_in_which_nothing_was_committed_is_still_a_page() {
    for runs in [
        name_runs(vec![empty()], &[]),
        name_runs(vec![empty(), report("ed25519")], &[]),
        name_runs(vec![report("ed25519"), empty()], &[]),
    ] {
        let page = html(&runs);
        let text = text_of(&page);
        assert!(!page.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(text.contains("Throughput over time"));
        let table = compare::table(&runs);
        assert!(!table.contains("NaN") && !table.contains("inf"), "{table}");
    }
}

#[test]
fn hostile_settings_stay_text() {
    let hostile = "</script><script>alert(1)</script><!--&amp;\"'";
    let mut report = report("ed25519");
    report.config["service"] = json!(hostile);
    report.config[hostile] = json!([hostile]);
    report.config["machine"]["cpu"] = json!(hostile);
    report.command = hostile.to_owned();
    report.events[0].kind = hostile.to_owned();
    report.validators[0].state = hostile.to_owned();
    report.started = hostile.to_owned();
    let runs = name_runs(vec![report.clone()], &[hostile.to_owned()]);
    let page = html(&runs);
    assert!(text_of(&page).contains(hostile));
    assert_eq!(page.matches("<script").count(), 2, "the results' and the readout's");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.html");
    super::file::write(&path, &runs).expect("written");
    assert_eq!(super::file::read(&path).expect("read back"), [report]);
}

#[test]
fn a_large_committee_is_drawn_without_a_colour_for_each() {
    let mut report = report("bls");
    report.validators = (0..100).map(|id| validator(id, WARMUP_S + DURATION_S)).collect();
    let plots = charts::of(&name_runs(vec![report], &[]));
    let series = &plot(&plots, "validators-cpu").series;
    let named: Vec<_> = series.iter().map(|s| s.name.as_str()).filter(|n| !n.is_empty()).collect();
    assert_eq!(series.len(), 100);
    assert_eq!(named, ["validator 0 (killed)", "healthy validators"]);
}

#[test]
fn a_caption_says_what_the_runs_have_in_common() {
    let caption = caption(&runs(&["ed25519", "bls"]));
    assert_eq!(
        caption,
        "4 validators · 1,000 tx/s · 512 bytes · fsync · 2 cores, shared with the load · quorate abc"
    );
    let mut reports = vec![report("bls"), report("bls")];
    reports[1].config["rate"] = json!(5);
    reports[1].config["machine"]["optimised"] = json!(false);
    let caption = super::caption(&name_runs(reports, &[]));
    assert!(!caption.contains("tx/s") && caption.ends_with("not optimised"), "{caption}");
}
