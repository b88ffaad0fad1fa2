//! Parts of experiments, measured apart and joined.

use super::super::{JoinError, Parts, Shard, join, owners};
use super::*;

const SIMULATED: &str = r#"
id = "T2"
title = "Small committees in virtual time"
shows = "What it shows."

[base]
how = "simulated"
regions = ["us-east-1", "eu-central-1"]
warmup_s = 1
duration_s = 1

[[matrix]]
scheme = ["ed25519", "bls"]
rate = [300, 500, 700]

[preset.default]
repeats = 1

[[figure]]
name = "latency"
title = "Latency"
note = "How."
x = "committed_tps"
y = "latency_one_mean_ms"
series = ["scheme"]
"#;

fn shard(index: u32, count: u32) -> Shard {
    Shard::new(index, count).expect("a part")
}

/// Files of a folder by name, with their bytes.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Draws results as if all of them had begun at one moment and taken one second: nothing else tells
/// one run from another.
fn draw(experiment: &Experiment, records: &[Record]) -> Vec<(String, Vec<u8>)> {
    let folder = TempDir::new().unwrap();
    let mut records = records.to_vec();
    for record in &mut records {
        "2026-01-31 12:00:00 UTC".clone_into(&mut record.started);
        record.wall_s = 1.0;
    }
    let origin = page::Origin { preset: "default".into(), command: "quorate".into() };
    page::write(folder.path(), experiment, &records, &origin).unwrap();
    Writer::create(&folder.path().join("T2.default.jsonl"), &records).unwrap();
    contents(folder.path())
}

#[test]
fn three_parts_draw_what_one_machine_draws() {
    let experiment = Experiment::parse("t2.toml", SIMULATED).unwrap();
    let folder = TempDir::new().unwrap();
    let (whole, _) = run(&plan(&experiment, folder.path(), false));
    let jobs = experiment.jobs("default").unwrap();
    let owners = owners(&jobs, &runners(), 3);
    // Measured and joined in another order than they are counted in.
    let part = |index: u32| {
        let shard = shard(index, 3);
        let results = folder.path().join(shard.file_name("T2.default"));
        let own: Vec<Job> = shard.take(&jobs, &owners).cloned().collect();
        assert_eq!(own.len(), 2, "six points, all alike");
        let plan = plan(&experiment, folder.path(), false);
        let (records, _) =
            run(&Plan { jobs: own, shard: Some(shard), results: results.clone(), ..plan });
        assert!(records.iter().all(|record| record.shard == Some(shard)));
        results
    };
    let files = [2, 0, 1].map(part);
    let joined = join("T2", &jobs, &runners(), &Parts::read(&files).unwrap()).unwrap();
    assert_eq!(draw(&experiment, &joined), draw(&experiment, &whole));
    let names: Vec<String> = draw(&experiment, &joined).into_iter().map(|file| file.0).collect();
    assert_eq!(names, ["T2.default.html", "T2.default.jsonl", "T2.default.latency.svg"]);
}

/// Every point belongs to one part, and parts take about as long, of each kind of points.
#[test]
fn points_are_divided_by_the_time_that_they_take() {
    let jobs = built_in::find("J5").unwrap().jobs("default").unwrap();
    for count in [1, 3, 7] {
        let owners = owners(&jobs, &runners(), count);
        let mut seen = BTreeSet::new();
        for kind in [RunnerKind::Simulated, RunnerKind::Certificates] {
            let of_kind = |job: &&Job| job.setup.runner == kind;
            let runners = runners();
            let cost = |job: &Job| runners.of(kind).estimate_s(&job.setup);
            let longest = jobs.iter().filter(of_kind).map(cost).fold(0.0, f64::max);
            let mut loads = Vec::new();
            for index in 0..count {
                let own: Vec<&Job> = shard(index, count).take(&jobs, &owners).collect();
                seen.extend(own.iter().map(|job| job.key.clone()));
                loads.push(own.into_iter().filter(of_kind).map(cost).sum::<f64>());
            }
            let (least, most) = (
                loads.iter().copied().fold(f64::MAX, f64::min),
                loads.iter().copied().fold(0.0, f64::max),
            );
            assert!(most - least <= longest + 0.1, "{count} parts, {kind:?}: {loads:?}");
        }
        assert_eq!(seen.len(), jobs.len(), "{count} parts have all points");
        assert_eq!(owners.len(), jobs.len());
    }
    // Those of another kind are divided apart.
    let is_alike = |job: &&Job| job.setup.runner == jobs[0].setup.runner;
    let alike: Vec<Job> = jobs.iter().filter(is_alike).take(2).cloned().collect();
    let many = owners(&alike, &runners(), 5);
    assert_eq!(many.iter().collect::<BTreeSet<_>>().len(), 2, "and some may have none");
}

#[test]
fn parts_are_written_as_a_number_of_a_number() {
    assert_eq!("2/3".parse(), Ok(shard(2, 3)));
    assert_eq!(shard(0, 40).file_name("J5.full"), Path::new("J5.full.shard-0-of-40.jsonl"));
    let cases = [
        ("3/3", "of 3 parts the last is 2/3"),
        ("0/0", "there are 1 to 10000 parts"),
        ("1", "a part is written I/N, such as 0/3: the first of three"),
        ("-1/3", "a part is written I/N, such as 0/3: the first of three"),
    ];
    for (text, said) in cases {
        assert_eq!(text.parse::<Shard>(), Err(said.to_owned()), "{text}");
    }
}

/// Two parts of the experiment of eight timed points, as files.
struct Two {
    folder: TempDir,
    jobs: Vec<Job>,
    parts: [Vec<Record>; 2],
}

impl Two {
    fn new() -> Self {
        let jobs = experiment().jobs("default").unwrap();
        let owners = owners(&jobs, &runners(), 2);
        let part = |index| {
            let measured = |job: &Job| Record {
                shard: Some(shard(index, 2)),
                ..record(job.setup.clone(), &[("certificate_bytes", 300.0)])
            };
            shard(index, 2).take(&jobs, &owners).map(measured).collect()
        };
        Self { folder: TempDir::new().unwrap(), parts: [part(0), part(1)], jobs }
    }

    fn files(&self) -> [PathBuf; 2] {
        [0, 1].map(|index| {
            let path = self.folder.path().join(shard(index, 2).file_name("T1.default"));
            Writer::create(&path, &self.parts[index as usize]).unwrap();
            path
        })
    }

    fn join(&self, files: &[PathBuf]) -> Result<Vec<Record>, JoinError> {
        join("T1.default", &self.jobs, &runners(), &Parts::read(files)?)
    }

    /// Words of the refusal after a change to the first result of part 1.
    fn refused_after(change: impl FnOnce(&mut Record)) -> String {
        let mut two = Self::new();
        change(&mut two.parts[1][0]);
        two.join(&two.files()).unwrap_err().to_string()
    }
}

#[test]
fn parts_join_in_any_order_and_twice() {
    let two = Two::new();
    let [a, b] = two.files();
    let joined = two.join(&[b.clone(), a.clone(), b.clone()]).unwrap();
    assert_eq!(joined, two.join(&[a, b]).unwrap());
    let keys: Vec<&str> = joined.iter().map(|record| record.key.as_str()).collect();
    let wanted: Vec<&str> = two.jobs.iter().map(|job| job.key.as_str()).collect();
    assert_eq!(keys, wanted, "in the order of the points");
    assert!(joined.iter().all(|record| record.shard.is_none()), "as results of one machine");
}

#[test]
fn missing_points_are_named_by_part() {
    let mut two = Two::new();
    let [a, _] = two.files();
    let said = two.join(&[a]).unwrap_err().to_string();
    assert!(said.contains("not all parts are there: part 1 has none of its 4 points."), "{said}");
    assert!(said.contains("--shard I/2"), "{said}");
    two.parts[0].pop();
    let said = two.join(&two.files()).unwrap_err().to_string();
    assert!(said.contains("part 0 lacks 1 of its 4 points."), "{said}");
    two.parts[1].truncate(1);
    let said = two.join(&two.files()).unwrap_err().to_string();
    assert!(said.contains("part 0 lacks 1 of its 4 points, part 1 lacks 3"), "{said}");
}

/// Something done to a result.
type Change = fn(&mut Record);

#[test]
fn what_does_not_belong_together_is_refused() {
    let cases: [(Change, &str); 9] = [
        (|one| one.experiment = "T9".into(), "the experiment is T1 in "),
        (|one| one.preset = "full".into(), "the preset is default in "),
        (|one| one.shard = Shard::new(1, 3), "the number of parts is 2 in "),
        (|one| one.shard = None, "holds results that are no part of anything"),
        (|one| one.machine["commit"] = "bad".into(), "the commit is c0ffee in "),
        (|one| one.machine["version"] = "9".into(), "the version is unknown in "),
        (|one| one.machine["optimised"] = false.into(), "the program was optimised in "),
        (|one| one.machine["cores"] = 64.into(), "<cpu>, 64 cores in "),
        (|one| one.key = "0123".into(), "holds point 0123, which T1.default does not have"),
    ];
    for (change, expected) in cases {
        let said = Two::refused_after(change);
        assert!(said.contains(expected), "{said}\nlacks\n{expected}");
    }
    let two = Two::new();
    let nowhere = two.folder.path().join("none.jsonl");
    let error = two.join(std::slice::from_ref(&nowhere)).unwrap_err();
    assert!(matches!(&error, JoinError::Absent(path) if *path == nowhere), "{error}");
    let empty = two.folder.path().join("empty.jsonl");
    std::fs::write(&empty, "").unwrap();
    assert!(matches!(two.join(&[empty]), Err(JoinError::Empty)));
}

#[test]
fn a_commit_that_may_be_of_two_programs_is_said() {
    let doubt = |commit: &str, count: usize| {
        let mut two = Two::new();
        for record in two.parts.iter_mut().flatten() {
            record.machine["commit"] = commit.into();
        }
        Parts::read(&two.files()[..count]).unwrap().doubt()
    };
    assert_eq!(doubt("c0ffee", 2), None);
    for vague in ["c0ffee-dirty", "unknown"] {
        let said = doubt(vague, 2).expect("a doubt");
        assert!(said.contains(&format!("the commit is {vague} in ")), "{said}");
        assert_eq!(doubt(vague, 1), None, "one part is of one program");
    }
}

#[test]
fn a_point_with_two_results_that_differ_is_refused() {
    let two = Two::new();
    let [a, b] = two.files();
    let other = two.folder.path().join("other.jsonl");
    let mut again = two.parts[1].clone();
    again[2].measured.insert("certificate_bytes".into(), 301.0);
    Writer::create(&other, &again).unwrap();
    let error = two.join(&[a, b.clone(), other.clone()]).unwrap_err();
    let JoinError::Twice { key, a: one, b: another } = &error else { panic!("{error}") };
    assert_eq!((key, one, another), (&again[2].key, &b, &other));
}
