use super::{MergeError, join, merge};
use crate::Report;
use crate::page::sample_report;
use crate::results::{
    CommittedBy, Counts, Histogram, LatencyGrid, LatencyMs, LoadOrigin, Measurement, Rates, Share,
};
use serde_json::json;

/// A load of three seconds after one, each tenth of a second at its own rate.
fn load(index: u16, started_ms: u64, counts_us: &[(u64, u64)]) -> Report {
    let histogram = Histogram {
        counts_us: counts_us.to_vec(),
        sum_us: counts_us.iter().map(|(us, count)| us * count).sum(),
    };
    let mut grid = LatencyGrid::default();
    (0..40).for_each(|interval| grid.record(100 * interval, 1_000, u32::from(index)));
    // By a hundred more each second: 100, 200, 300, 400; of the second load twice as many.
    let rate = |interval: u64| f64::from(index) * 100.0 * (1.0 + (interval / 10) as f64);
    let rates = Rates {
        interval_ms: 100,
        offered_tps: (0..40).map(rate).collect(),
        answered_tps: (0..42).map(|interval| rate(interval) - 10.0).collect(),
    };
    let origin = LoadOrigin {
        host: format!("host-{index}"),
        share: Some(Share { index, of: 2 }),
        seed: u64::from(index),
        started_ms,
        network: "0a".repeat(32),
        epochs: (0, 1),
        service: "ordered-log".to_owned(),
    };
    Report {
        measurement: Measurement::Load(origin),
        committed_by: CommittedBy::Answers,
        offered_tps: rates.offered_over(1.0, 3.0),
        committed_tps: rates.answered_over(1.0, 3.0),
        latency_ms: histogram.summary(),
        answered: histogram.total(),
        refused: 1,
        dropped: u64::from(index),
        unanswered: 3,
        warmup: Counts { done: 10, refused: 2, dropped: 1, unanswered: 5 },
        load: rates,
        latency_over_time: grid,
        latency_distribution_us: histogram.distribution_us(),
        latency_histogram: Some(histogram),
        client_cpu_seconds: 0.4,
        validators: Vec::new(),
        timeline: Vec::new(),
        events: Vec::new(),
        beside: crate::results::Beside::default(),
        config: json!({
            "rate": 300, "load": "fixed", "warmup_s": 1, "duration_s": 3, "seed": index,
            "service": "ordered-log", "machine": {"cpu": "a processor", "cores": 2},
        }),
        ..sample_report("ed25519")
    }
}

/// The second begins 1.04 s after the first.
fn both() -> [Report; 2] {
    let first = load(1, 1_000_000, &[(10_000, 90), (20_000, 10)]);
    let second = load(2, 1_001_040, &[(10_000, 5), (500_000, 95)]);
    [first, second]
}

#[test]
fn rates_are_added_over_the_common_window() {
    let merged = merge(&both()).expect("they overlap");
    let Measurement::Merged(loads) = &merged.measurement else { panic!("it is of two") };
    // Windows of 1,001,000 to 1,004,000 and 1,002,040 to 1,005,040.
    assert_eq!(
        (loads.window_from_ms, loads.window_ms, loads.windows_ms),
        (1_002_040, 1_960, 4_040)
    );
    assert_eq!((merged.warmup_s(), merged.duration_s()), (1.0, 1.96));
    // From 1,001,040 on: ten intervals of the first one's second second and of the other's first,
    // and so on; the last second is cut to its first ten tenths, the last of which is not whole.
    let expected: Vec<f64> = (0..30).map(|tenth| [400.0, 700.0, 1_000.0][tenth / 10]).collect();
    assert_eq!(merged.load.offered_tps, expected);
    assert_eq!(merged.load.answered_tps[..10], [380.0; 10]);
    // Ten tenths of 700 and ten of 1,000: the window has 1.96 s, twenty intervals.
    assert_eq!((merged.offered_tps, merged.committed_tps), (850.0, 830.0));
    assert_eq!(merged.committed_by, CommittedBy::Answers);
    let due: Vec<u64> = (0..30).map(|at| merged.latency_over_time.count(at)).collect();
    assert_eq!(due, [3; 30], "one of the first load and two of the second in each interval");
}

#[test]
fn histograms_and_counts_are_added() {
    let merged = merge(&both()).expect("they overlap");
    let histogram = merged.latency_histogram.as_ref().expect("a histogram");
    assert_eq!(histogram.counts_us, [(10_000, 95), (20_000, 10), (500_000, 95)]);
    // The hundredth of 200 took 20 ms; the medians of the two are 10 ms and 500 ms.
    // Sum: 95 × 10 + 10 × 20 + 95 × 500 ms = 48,650 ms, of 200.
    let expected = LatencyMs { mean: 243.25, p50: 20.0, p90: 500.0, p99: 500.0, max: 500.0 };
    assert_eq!(merged.latency_ms, expected);
    assert_eq!(merged.latency_distribution_us, histogram.counts_us);
    assert_eq!((merged.answered, merged.refused, merged.dropped), (200, 2, 3));
    // Of 1.96 s of 3 s of each.
    assert_eq!((merged.unanswered, merged.client_cpu_seconds), (6, 0.5));
    let warmup = Counts { done: 20, refused: 4, dropped: 2, unanswered: 10 };
    assert_eq!(merged.warmup, warmup);
}

#[test]
fn cores_of_the_loads_are_those_of_the_common_window() {
    // Windows of 3 s each, 2 s of which are common; a core is busy here and two there.
    let busy = |index, started_ms, client_cpu_seconds| Report {
        client_cpu_seconds,
        ..load(index, started_ms, &[(10_000, 1)])
    };
    let merged = merge(&[busy(1, 1_000_000, 3.0), busy(2, 1_001_000, 6.0)]).expect("they overlap");
    assert_eq!((merged.duration_s(), merged.client_cpu_seconds), (2.0, 6.0));
    let figures = crate::page::figures::all();
    let cores = figures.iter().find(|figure| figure.name == "cores kept busy by the load");
    assert_eq!(cores.expect("a figure").text(&merged), "3.00");
}

#[test]
fn what_only_validators_know_is_absent() {
    let json = serde_json::to_value(merge(&both()).expect("they overlap")).expect("plain data");
    for absent in ["cpu_seconds", "rss_mb_max", "disk_mb", "view_changes", "certificate_bytes"] {
        assert!(json.get(absent).is_none(), "{absent}");
    }
    assert_eq!(json["measurement"]["kind"], "merged");
    assert_eq!(json["committed_by"], "answers");
    assert_eq!(json["config"]["rate"], 600);
    assert_eq!(json["config"]["seed"], serde_json::Value::Null, "they have none in common");
    let read: Report = serde_json::from_value(json).expect("its own form");
    assert_eq!(read, merge(&both()).expect("they overlap"));
}

#[test]
fn one_alone_is_itself() {
    let [first, _] = both();
    assert_eq!(merge(std::slice::from_ref(&first)), Ok(first.clone()));
    // The sum over one has the same figures, but for the course after its end.
    let alone = super::Load::of(&first).expect("a load");
    let sum = join(&[alone]).expect("one");
    assert_eq!((sum.offered_tps, sum.committed_tps), (first.offered_tps, first.committed_tps));
    assert_eq!(sum.latency_ms, first.latency_ms);
    assert_eq!(sum.latency_histogram, first.latency_histogram);
    assert_eq!(sum.latency_over_time, first.latency_over_time);
    assert_eq!(sum.load.offered_tps, first.load.offered_tps);
    assert_eq!(sum.load.answered_tps[..], first.load.answered_tps[..40]);
    assert_eq!((sum.answered, sum.unanswered), (first.answered, first.unanswered));
}

#[test]
fn the_order_does_not_matter() {
    let third = load(3, 1_000_500, &[(7_000, 3)]);
    let [first, second] = both();
    let forwards = merge(&[first.clone(), second.clone(), third.clone()]).expect("they overlap");
    for order in [[&third, &first, &second], [&second, &third, &first], [&third, &second, &first]] {
        assert_eq!(merge(&order.map(Clone::clone)).as_ref(), Ok(&forwards));
    }
}

#[test]
fn only_loads_on_the_same_network_are_joined() {
    let refusal = |change: fn(&mut LoadOrigin)| {
        let [first, mut second] = both();
        let Measurement::Load(origin) = &mut second.measurement else { unreachable!() };
        change(origin);
        merge(&[first, second]).map(drop).expect_err("they differ").to_string()
    };
    assert!(refusal(|load| load.network = "0b".repeat(32)).contains("of different networks"));
    assert!(refusal(|load| load.service = "kv".to_owned()).contains("ordered-log and kv"));
    assert!(refusal(|load| load.epochs = (1, 1)).contains("different epochs: 0 to 1 and 1 to 1"));
    assert!(refusal(|load| load.seed = 1).contains("have the same seed 1"));
    let twice = refusal(|load| load.share = Some(Share { index: 1, of: 2 }));
    assert!(twice.contains("load 1/2 on host-1 and the load 1/2 on host-2 are of one share"));
    let divided = refusal(|load| load.share = Some(Share { index: 2, of: 3 }));
    assert!(divided.contains("different divisions: shares of 2 and shares of 3"), "{divided}");
    let apart = refusal(|load| load.started_ms = 1_010_000);
    assert!(
        apart.contains("load 1/2 on host-1 ended 7 s before the load 2/2 on host-2"),
        "{apart}"
    );

    let [first, second] = both();
    let merged = merge(&[first.clone(), second]).expect("they overlap");
    let bench = sample_report("ed25519");
    for other in [merged, bench] {
        let refused = merge(&[first.clone(), other]).expect_err("not of one load");
        assert!(matches!(refused, MergeError::NotALoad { .. }), "{refused}");
    }
    let bare = Report { latency_histogram: None, ..first };
    assert!(matches!(merge(&[bare]), Err(MergeError::NoHistogram(_))));
    assert_eq!(merge(&[]), Err(MergeError::Nothing));
}

#[test]
fn little_in_common_is_said() {
    let merged = merge(&both()).expect("they overlap");
    let Measurement::Merged(loads) = merged.measurement else { panic!("it is of two") };
    let warning = loads.warning().expect("half");
    assert!(warning.contains("only 49 % of their time in common"), "{warning}");
    assert!(loads.describe().contains("2.0 s in common of 4.0 s"), "{}", loads.describe());
    assert_eq!(loads.loads[1].cells()[..4], ["2/2", "host-2", "600", "590"]);
}

#[test]
fn shares_that_are_not_here_are_said() {
    let of_three = |index: u16| {
        let mut report = load(index, 1_000_000, &[(10_000, 1)]);
        let Measurement::Load(origin) = &mut report.measurement else { unreachable!() };
        origin.share = Some(Share { index, of: 3 });
        report
    };
    let warning = |reports: &[Report]| {
        let merged = merge(reports).expect("they overlap");
        let Measurement::Merged(loads) = merged.measurement else { panic!("it is of several") };
        loads.warning()
    };
    let few = warning(&[of_three(1), of_three(3)]).expect("a part");
    assert!(few.contains("1 of 3 shares of the load are not here"), "{few}");
    assert!(!few.contains("in common"), "{few}");
    assert_eq!(warning(&[of_three(1), of_three(2), of_three(3)]), None);
}

#[test]
fn the_page_of_several_loads_has_a_row_for_each() {
    let merged = merge(&both()).expect("they overlap");
    let page = crate::page::html(&crate::page::name_runs(vec![merged], &[]));
    for shown in [
        "2 loads on",
        "host-1",
        "host-2",
        "Several loads.",
        "By the load's clock.",
        "Mind: the windows",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
    for absent in ["<h2>Validators</h2>", "The slowest counts", "memory of one validator"] {
        assert!(!page.contains(absent), "{absent}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("merged.html");
    std::fs::write(&path, page).expect("written");
    let read = crate::page::file::read(&path).expect("it holds its result");
    assert!(matches!(&read[..], [one] if matches!(one.measurement, Measurement::Merged(_))));
}
