//! Experiments, results and figures, without anything that takes long.

mod figures;
mod shards;

use super::figure::{self, lines};
use super::results::{self, FORMAT, Writer};
use super::{
    Absent, Event, Experiment, Job, Kept, Measured, Plan, Record, RunnerKind, Runners, Setup,
    Signatures, built_in, drive, page,
};
use quorate_report::chart::Marker;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;

const FILE: &str = r#"
id = "T1"
title = "A title <with> & signs"
shows = "What it shows."

[base]
how = "certificates"
measure_ms = 1

[[matrix]]
scheme = ["ed25519", "bls"]
validators = [4, 7]

[preset.default]
repeats = 2

[preset.small]
repeats = 1
validators = 10

[[preset.small.matrix]]
scheme = "ed25519"

[[figure]]
name = "bytes"
title = "Bytes"
note = "How."
x = "validators"
y = "certificate_bytes"
series = ["scheme"]

[[figure.paper]]
name = "published"
beside = "BLS"
points = [[7, 100.0]]
bound = "below"
source = "a paper"
"#;

fn experiment() -> Experiment {
    Experiment::parse("t1.toml", FILE).unwrap()
}

fn refusal(change: (&str, &str)) -> String {
    assert!(FILE.contains(change.0), "{} is in the file", change.0);
    let text = FILE.replacen(change.0, change.1, 1);
    Experiment::parse("t1.toml", &text).unwrap_err().to_string()
}

#[test]
fn unknown_fields_are_refused_with_the_nearest_known_name() {
    let cases = [
        (
            ("shows =", "show ="),
            "t1.toml: the file has an unknown field 'show': did you mean 'shows'?",
        ),
        (
            ("measure_ms = 1", "mesure_ms = 1"),
            "[base] has an unknown field 'mesure_ms': did you mean 'measure_ms'?",
        ),
        (
            ("validators = [4, 7]", "validator = [4, 7]"),
            "[[matrix]] has an unknown field 'validator': did you mean 'validators'?",
        ),
        (
            ("repeats = 2", "repeat = 2"),
            "[preset.default] has an unknown field 'repeat': did you mean 'repeats'?",
        ),
        (
            ("note = ", "notes = "),
            "[[figure]] bytes has an unknown field 'notes': did you mean 'note'?",
        ),
        (
            ("beside", "besides"),
            "[[figure]] bytes, paper has an unknown field 'besides': did you mean 'beside'?",
        ),
        (
            ("y = \"certificate_bytes\"", "y = \"certificate_byte\""),
            "nothing is measured as 'certificate_byte': did you mean 'certificate_bytes'?",
        ),
        (
            ("series = [\"scheme\"]", "series = [\"schem\"]"),
            "points have no field 'schem': did you mean 'scheme'?",
        ),
    ];
    for (change, expected) in cases {
        let said = refusal(change);
        assert!(said.contains(expected), "{said}\nis not\n{expected}");
    }
}

#[test]
fn values_that_do_not_fit_are_refused_by_field() {
    let cases = [
        (
            ("validators = [4, 7]", "validators = [4, 0]"),
            "preset 'default', matrix 1: 'validators' is 0; it must be 1 to 1000",
        ),
        (("\"ed25519\", \"bls\"", "\"ed25519\", \"rsa\""), "'scheme' is \"rsa\""),
        (("validators = [4, 7]", "validators = []"), "'validators' is an empty list"),
        (("measure_ms = 1", "measure_ms = \"x\""), "'measure_ms' is \"x\""),
        (("measure_ms = 1", "timeout_ms = 1"), "'timeout_ms' is 1; it must be 10 to 600000"),
        (("measure_ms = 1", "regions = [\"us-east-7\"]"), "there is no region 'us-east-7'"),
        (("[preset.default]", "[preset.usual]"), "there is no [preset.default]"),
    ];
    for (change, expected) in cases {
        let said = refusal(change);
        assert!(said.contains(expected), "{said}\nis not\n{expected}");
    }
}

#[test]
fn a_matrix_is_every_combination_and_presets_override() {
    let experiment = experiment();
    let jobs = experiment.jobs("default").unwrap();
    assert_eq!(jobs.len(), 2 * 2 * 2);
    let keys: BTreeSet<&str> = jobs.iter().map(|job| job.key.as_str()).collect();
    assert_eq!(keys.len(), 8, "no two points have one key");
    assert_eq!(jobs, experiment.jobs("default").unwrap(), "the same order each time");
    let sorted = jobs.windows(2).all(|pair| pair[0].key <= pair[1].key);
    assert!(!sorted, "in random order");
    let small = experiment.jobs("small").unwrap();
    assert_eq!(small.len(), 1);
    assert_eq!((small[0].setup.validators, small[0].setup.seed), (10, 1));
    let said = experiment.jobs("fuller").unwrap_err();
    assert_eq!(said, "there is no preset 'fuller'; T1 has default, small");
}

#[test]
fn a_list_of_regions_is_one_value_and_a_list_of_lists_is_several() {
    let with = |regions: &str| {
        let text = FILE.replace("validators = [4, 7]", &format!("regions = {regions}"));
        Experiment::parse("t1.toml", &text).unwrap().jobs("default").unwrap().len()
    };
    assert_eq!(with("[\"us-east-1\", \"eu-central-1\"]"), 4);
    assert_eq!(with("[[\"us-east-1\"], [\"eu-central-1\"], []]"), 12);
}

#[test]
fn what_decides_a_point_decides_its_key() {
    let setup = Setup::default();
    assert_eq!(setup.key(), Setup::default().key());
    let other = Setup { seed: 2, ..setup.clone() };
    assert_ne!(other.key(), setup.key());
    assert_ne!(Setup { keys: 7, ..setup.clone() }.key(), setup.key());
    assert_eq!(other.without_seed(), setup.without_seed());
    assert!(Setup::fields().contains(&"vote_wait_ms".to_owned()), "replicas' settings are fields");
    let back: Setup = serde_json::from_value(setup.to_json()).unwrap();
    assert_eq!(back, setup);
}

#[test]
fn a_quorum_leaves_out_as_many_as_it_can() {
    for (validators, absent) in [(1, 0), (4, 1), (10, 3), (20, 6), (80, 26)] {
        assert_eq!(
            Setup { validators, ..Setup::default() }.absentees(),
            absent,
            "n = {validators}"
        );
    }
    assert_eq!(Setup { absent: Absent::Count(2), ..Setup::default() }.absentees(), 2);
}

/// Every file that comes along is read, each of its presets too, and draws what it names.
#[test]
fn the_built_in_experiments_are_sound() {
    for id in built_in::ids() {
        let experiment = built_in::find(id).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(experiment.id, id);
        assert!(experiment.presets.contains_key("smoke"), "{id} has a preset for tests");
        assert!(!experiment.figures.is_empty(), "{id} draws something");
        for paper in experiment.figures.iter().flat_map(|figure| &figure.paper) {
            assert!(!paper.source.is_empty(), "{id}: {} has a source", paper.name);
        }
    }
    assert!(built_in::find("j3").is_ok(), "ids are known in small letters too");
    let said = built_in::find("J99").unwrap_err().to_string();
    assert!(said.contains("there is no such experiment"), "{said}");
}

fn runners() -> Runners {
    Runners::new(PathBuf::from("/nowhere/quorate"))
}

fn plan(experiment: &Experiment, folder: &Path, resume: bool) -> Plan<'static> {
    let experiment: &'static Experiment = Box::leak(Box::new(experiment.clone()));
    Plan {
        experiment,
        preset: "default",
        jobs: experiment.jobs("default").unwrap(),
        shard: None,
        results: folder.join("results").join("t1.jsonl"),
        resume,
        machine: json!({ "commit": "c0ffee", "cpu": "a cpu", "cores": 2, "optimised": true }),
        threads: 2,
    }
}

fn run(plan: &Plan<'_>) -> (Vec<Record>, usize) {
    let started = AtomicUsize::new(0);
    let count = |event: Event<'_>| {
        if matches!(event, Event::Started(_)) {
            started.fetch_add(1, Ordering::Relaxed);
        }
    };
    let records = drive(plan, &runners(), &count, &AtomicBool::new(false)).unwrap();
    (records, started.into_inner())
}

#[test]
fn a_stopped_run_goes_on() {
    let folder = TempDir::new().unwrap();
    let whole = plan(&experiment(), folder.path(), false);
    let (records, started) = run(&whole);
    assert_eq!((records.len(), started), (8, 8));
    assert_eq!(results::read(&whole.results).unwrap(), records);
    // Three finished points, and a fourth whose line was cut short.
    let text = std::fs::read_to_string(&whole.results).unwrap();
    let three: String = text.split_inclusive('\n').take(3).collect();
    std::fs::write(&whole.results, format!("{three}{{\"format\":1,\"exper")).unwrap();
    let (records, started) = run(&plan(&experiment(), folder.path(), true));
    assert_eq!((records.len(), started), (8, 5), "what was finished is not measured again");
    assert_eq!(results::read(&whole.results).unwrap().len(), 8);
    let (_, started) = run(&plan(&experiment(), folder.path(), false));
    assert_eq!(started, 8, "without --resume it starts over");
}

#[test]
fn results_of_another_binary_are_measured_again() {
    let folder = TempDir::new().unwrap();
    run(&plan(&experiment(), folder.path(), false));
    let machine = json!({ "commit": "bad", "cpu": "a cpu", "cores": 2, "optimised": true });
    let (records, started) = run(&Plan { machine, ..plan(&experiment(), folder.path(), true) });
    assert_eq!((records.len(), started), (8, 8));
    assert!(records.iter().all(|record| record.commit() == "bad"));
}

#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let folder = TempDir::new().unwrap();
    let plan = plan(&experiment(), folder.path(), false);
    let interrupted = AtomicBool::new(false);
    let after_two = |event: Event<'_>| {
        if matches!(event, Event::Finished { done: 2, .. }) {
            interrupted.store(true, Ordering::Relaxed);
        }
    };
    let error = drive(&plan, &runners(), &after_two, &interrupted).unwrap_err();
    assert_eq!(error.to_string(), "interrupted");
    assert_eq!(results::read(&plan.results).unwrap().len(), 2);
}

#[test]
fn lines_of_another_format_or_none_are_refused() {
    let said = results::parse("{\"format\":7}\n").unwrap_err();
    assert_eq!(said, (1, format!("a result of format 7; this binary reads {FORMAT}")));
    assert_eq!(results::parse("\n{\"format\":1\n").unwrap_err().0, 2);
    assert_eq!(results::parse("{\"format\":1").unwrap(), Vec::new(), "a line that was cut short");
}

#[test]
fn certificates_are_measured() {
    let runners = runners();
    let runner = runners.of(RunnerKind::Certificates);
    let measure = |scheme: &str, keys_inside: bool| -> Measured {
        let scheme = scheme.parse().unwrap();
        let setup = Setup {
            runner: RunnerKind::Certificates,
            scheme,
            keys_inside,
            measure_ms: 1,
            validators: 40,
            ..Setup::default()
        };
        runner.run(&setup, &AtomicBool::new(false)).unwrap()
    };
    let (plain, keyed) = (measure("ed25519", false), measure("ed25519", true));
    let (bls, bls_keyed) = (measure("bls", false), measure("bls", true));
    let bytes = |measured: &Measured| measured.numbers["certificate_bytes"];
    assert_eq!(plain.numbers["signers"], 27.0);
    assert_eq!(plain.numbers["absentees"], 13.0);
    // A length of four bytes before the signatures, and before the bitmap its number of members.
    let bitmap = bytes(&plain) - (27 * 64 + 4) as f64;
    assert_eq!(bytes(&keyed), (27 * 96 + 4) as f64, "the paper's 2.5 KB");
    assert_eq!(bytes(&bls), 48.0 + 4.0 + bitmap);
    assert_eq!(bytes(&bls_keyed), (48 + 4 + 27 * 96) as f64);
    assert!(!plain.numbers.contains_key("aggregate_us"), "Ed25519 adds nothing up");
    assert!(bls.numbers["key_us"] > 0.0 && bls.numbers["check_us"] > bls.numbers["key_us"]);
    assert!(!plain.numbers.contains_key("key_us"), "Ed25519 has no key of all signers");
}

fn record(setup: Setup, numbers: &[(&str, f64)]) -> Record {
    Record {
        format: FORMAT,
        experiment: "T1".to_owned(),
        preset: "default".to_owned(),
        shard: None,
        key: setup.key(),
        setup,
        measured: numbers.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        failed: None,
        signatures: Signatures::Priced,
        started: "2026-01-31 12:00:00 UTC".to_owned(),
        wall_s: 1.0,
        machine: json!({ "commit": "c0ffee", "cpu": "<cpu>", "cores": 2, "optimised": true }),
        details: Value::Null,
    }
}

/// Throughput falls beyond the knee: the line bends back, in the order of the load.
fn overloaded() -> Vec<Record> {
    let mut records = Vec::new();
    for (rate, committed, latency) in
        [(30_000, 20_000.0, 900.0), (10_000, 10_000.0, 100.0), (20_000, 25_000.0, 400.0)]
    {
        for (seed, off) in [(1, -1.0), (2, 1.0)] {
            let setup = Setup { rate, seed, ..Setup::default() };
            let numbers = [("committed_tps", committed + off), ("latency_one_mean_ms", latency)];
            records.push(record(setup, &numbers));
        }
    }
    records
}

fn throughput() -> figure::Figure {
    let text = "name = \"l\"\ntitle = \"t\"\nnote = \"n\"\nx = \"committed_tps\"\n\
                y = \"latency_one_mean_ms\"\nseries = [\"validators\"]\n";
    toml::from_str(text).unwrap()
}

#[test]
fn repeats_become_a_point_with_a_deviation() {
    let lines = lines(&throughput(), &overloaded());
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].name, "n = 4");
    let means: Vec<f64> = lines[0].points.iter().map(|point| point.x.mean).collect();
    assert_eq!(means, [10_000.0, 25_000.0, 20_000.0], "in the order of the load");
    let first = &lines[0].points[0];
    assert_eq!((first.x.count, first.y.count), (2, 2));
    assert!((first.x.deviation - 2.0_f64.sqrt()).abs() < 1e-9);
    assert_eq!(first.y.deviation, 0.0);
}

#[test]
fn only_points_that_a_figure_asks_for_are_on_it() {
    let with = |only: &str| {
        let figure = figure::Figure { only: only.parse().unwrap(), ..throughput() };
        lines(&figure, &overloaded()).iter().map(|line| line.points.len()).sum::<usize>()
    };
    assert_eq!(with(""), 3);
    assert_eq!(with("rate = 10000"), 1);
    assert_eq!(with("rate = [10000, 20000]"), 2);
    assert_eq!(with("scheme = \"bls\""), 0);
    let mut failed = overloaded();
    failed.iter_mut().for_each(|record| record.measured.clear());
    assert!(lines(&throughput(), &failed).is_empty(), "nothing is drawn of what failed");
}

#[test]
fn points_at_which_nothing_was_committed_are_named() {
    let said = |records: &[Record]| figure::plots(&throughput(), records)[0].note.clone();
    let mut records = overloaded();
    assert_eq!(said(&records), "n");
    for (rate, validators) in [(40_000, 4), (50_000, 4), (40_000, 10)] {
        let setup = Setup { rate, validators, ..Setup::default() };
        records.push(record(setup, &[("committed_tps", 0.0)]));
    }
    let missing = "n = 10 (of 40,000 tx/s); n = 4 (of 40,000 and of 50,000 tx/s)";
    let note = format!("n Nothing was committed, so nothing is drawn: {missing}.");
    assert_eq!(said(&records), note);
}

#[test]
fn published_points_stand_beside_ours_in_their_colour() {
    let experiment = experiment();
    let folder = TempDir::new().unwrap();
    let (records, _) = run(&plan(&experiment, folder.path(), false));
    let plot = figure::plots(&experiment.figures[0], &records).remove(0);
    let names: Vec<&str> = plot.dots.iter().map(|dots| dots.name.as_str()).collect();
    assert_eq!(names, ["Ed25519", "BLS", "published"]);
    assert_eq!(plot.dots[2].marker, Marker::PaperBelow);
    assert_eq!(plot.dots[2].colour, plot.dots[1].colour);
    assert_ne!(plot.dots[0].colour, plot.dots[1].colour);
    assert!(plot.dots[2].dashes.is_none(), "nothing joins published points");
}

#[test]
fn a_page_is_whole_and_holds_its_results() {
    let experiment = experiment();
    let folder = TempDir::new().unwrap();
    let (mut records, _) = run(&plan(&experiment, folder.path(), false));
    records.push(Record {
        measured: Default::default(),
        failed: Some("too <slow>".to_owned()),
        ..records[0].clone()
    });
    let origin = page::Origin { preset: "default".into(), command: "quorate reproduce T1".into() };
    let written = page::write(folder.path(), &experiment, &records, &origin).unwrap();
    let names: Vec<_> = written.iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["T1.default.html", "T1.default.bytes.svg"]);
    let html = std::fs::read_to_string(&written[0]).unwrap();
    let text = html.strip_prefix("<!DOCTYPE html>\n").unwrap();
    // Scripts may hold what XML may not.
    let (before, rest) = text.split_once("<script>").unwrap();
    let after = rest.split_once("</script>").unwrap().1;
    let whole = format!("{before}{after}");
    let document = roxmltree::Document::parse(&whole).unwrap_or_else(|error| panic!("{error}"));
    let has = |words: &str| {
        document.descendants().any(|node| node.text().is_some_and(|t| t.contains(words)))
    };
    for words in ["A title <with> & signs", "too <slow>", "below 100", "a paper", "real signatures"]
    {
        assert!(has(words), "{words}");
    }
    assert!(!html.contains("prefers-color-scheme"), "light for everybody");
    let inside = html.split_once("id=\"quorate-experiment\">\n").unwrap().1;
    let inside = inside.split_once("</script>").unwrap().0;
    assert_eq!(results::parse(inside).unwrap(), records);
    let svg = std::fs::read_to_string(&written[1]).unwrap();
    roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}"));
    assert!(svg.contains("aria-label") || svg.contains("<title>"), "labelled as an image");
}

#[test]
fn a_writer_replaces_whole_files() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("deep").join("r.jsonl");
    let records = overloaded();
    let mut writer = Writer::create(&path, &records[..1]).unwrap();
    writer.add(&records[1]).unwrap();
    drop(writer);
    assert_eq!(results::read(&path).unwrap(), records[..2]);
    assert!(matches!(results::read(&folder.path().join("none")), Ok(none) if none.is_empty()));
}

/// A runner is asked whether it may run beside others; what is timed may not.
#[test]
fn what_is_timed_runs_alone() {
    let runners = runners();
    for kind in [RunnerKind::Certificates, RunnerKind::Processes, RunnerKind::Transport] {
        assert!(!runners.of(kind).is_parallel(), "{kind:?}");
    }
    let job = Job { key: String::new(), setup: Setup::default() };
    let estimate = runners.of(RunnerKind::Processes).estimate_s(&job.setup);
    assert!(estimate > job.setup.load_span().as_secs_f64());
}

/// The paper's figures are drawn with the profile that is fixed elsewhere, and not with another.
#[test]
fn what_stands_for_the_paper_is_the_reference_profile() {
    for id in ["J1", "J2"] {
        for job in built_in::find(id).unwrap().jobs("default").unwrap() {
            let scene = super::runner::scene(&job.setup).unwrap();
            if job.setup.profile == quorate_model::Profile::Reference {
                assert_eq!(scene, scene.clone().as_reference(), "{id}");
            }
        }
    }
}

/// A point in virtual time, small: everything that figures of committees are drawn from.
#[test]
fn simulated_points_have_what_figures_show() {
    let setup = Setup {
        regions: vec!["us-east-1".to_owned(), "eu-central-1".to_owned()],
        warmup_s: 1,
        duration_s: 2,
        rate: 500,
        keep_latencies: true,
        ..Setup::default()
    };
    let runners = runners();
    let run = || runners.of(RunnerKind::Simulated).run(&setup, &AtomicBool::new(false)).unwrap();
    let measured = run();
    assert_eq!(measured.signatures, Signatures::Priced);
    for name in [
        "committed_tps",
        "goodput_tps",
        "machine_us_per_tx",
        "log_us_per_tx",
        "latency_one_mean_ms",
        "latency_slowest_p50_ms",
        "latency_client_p99_ms",
        "busiest_share",
        "certificate_bytes",
        "bytes_per_tx",
    ] {
        assert!(measured.numbers.get(name).is_some_and(|n| *n > 0.0), "{name}: {measured:?}");
    }
    let goodput = measured.numbers["goodput_tps"];
    assert!((450.0..=550.0).contains(&goodput), "all is answered while it is offered: {goodput}");
    let kept: Kept = serde_json::from_value(measured.details[Kept::NAME].clone()).unwrap();
    assert_eq!(kept.percentiles_ms.len(), 101);
    let intervals = kept.over_time.intervals.len();
    assert!((28..=30).contains(&intervals), "three seconds, the warm-up included: {intervals}");
    let known = |name: &String| super::metrics::find(name).is_some();
    assert!(measured.numbers.keys().all(known), "every number has a name that figures know");
    assert_eq!(run(), measured, "the same again");
}
