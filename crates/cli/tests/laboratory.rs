//! `quorate reproduce` and `quorate compare`, small.

use crate::common::{json, quorate, stderr, stdout, works};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_experiment_is_listed_with_its_time() {
    let output = quorate(&["reproduce", "--list"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for id in ["A1", "H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "J1", "J2", "J3", "J4", "J5"] {
        let row = text.lines().find(|line| line.trim_start().starts_with(id));
        let row = row.unwrap_or_else(|| panic!("{id} is listed in\n{text}"));
        assert!(row.ends_with(" s") || row.ends_with("min"), "{row}");
    }
}

#[test]
fn a_simulated_experiment_leaves_results_a_page_and_figures() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let result = json(&["reproduce", "J1", "--preset", "smoke", "--out", out, "--quiet", "--json"]);
    let records = result["records"].as_array().unwrap();
    assert_eq!(records.len(), 4);
    for record in records {
        assert_eq!(record["failed"], Value::Null);
        assert_eq!(record["signatures"], "priced");
        assert!(record["measured"]["committed_tps"].as_f64().unwrap() > 500.0, "{record:#}");
        assert!(record["machine"]["commit"].is_string());
        assert_eq!(record["setup"]["timeout_ms"], 5_000);
    }
    let names = files(folder.path());
    for name in ["J1.smoke.html", "J1.smoke.jsonl", "J1.smoke.paper.svg", "J1.smoke.client.svg"] {
        assert!(names.iter().any(|other| other == name), "{name} among {names:?}");
    }
    let lines = fs::read_to_string(folder.path().join("J1.smoke.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 4);
}

#[test]
fn a_run_goes_on_with_what_is_there() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let command = ["reproduce", "J3", "--preset", "smoke", "--out", out];
    let output = quorate(&command);
    assert!(output.status.success(), "{}", stderr(&output));
    let path = folder.path().join("J3.smoke.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let five: String = text.split_inclusive('\n').take(5).collect();
    fs::write(&path, &five).unwrap();
    let output = quorate(&[&command[..], &["--resume"]].concat());
    assert!(stderr(&output).contains("5 of 8 points are there already"), "{}", stderr(&output));
    let resumed = fs::read_to_string(&path).unwrap();
    assert!(resumed.starts_with(&five), "what was there stays");
    assert_eq!(resumed.lines().count(), 8);
    let drawn = quorate(&[&command[..], &["--draw"]].concat());
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    assert_eq!(fs::read_to_string(&path).unwrap(), resumed, "drawing measures nothing");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(
        &file,
        "id = \"m\"\ntitle = \"t\"\nshows = \"s\"\n[preset.default]\nvaldiators = 4\n",
    )
    .unwrap();
    let cases = [
        (vec!["reproduce", "J9"], "there is no such experiment"),
        (vec!["reproduce", file.to_str().unwrap()], "'valdiators': did you mean 'validators'?"),
        (vec!["reproduce", "J3", "--preset", "huge"], "there is no preset 'huge'"),
        (
            vec!["reproduce", "J3", "--draw", "--out", "/nonexistent"],
            "has no results of this preset",
        ),
        (vec!["reproduce", "J3", "--shard", "3/3"], "of 3 parts the last is 2/3"),
        (vec!["reproduce", "J3", "--join", "/nonexistent"], "there is no file /nonexistent"),
        (
            vec!["reproduce", "J3", "--join", folder.path().to_str().unwrap()],
            "has no files J3.default.shard-I-of-N.jsonl",
        ),
        (vec!["compare", "-n", "4", "--machine", "abacus"], "there is no price list 'abacus'"),
        (vec!["compare", "-n", "4", "--wan", "us-east-7"], "there is no region 'us-east-7'"),
    ];
    for (arguments, reason) in cases {
        let output = quorate(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_comparison_ends_with_a_line_for_each_size() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let command = [
        "compare",
        "-n",
        "4",
        "--wan",
        "us-east-1,eu-central-1",
        "--policies",
        "aggregate",
        "--rate",
        "1000",
        "--seconds",
        "2",
        "--out",
        out,
        "--quiet",
        "--json",
    ];
    let result = json(&command);
    assert_eq!(result["findings"].as_array().unwrap().len(), 2, "Ed25519 and BLS");
    for finding in result["findings"].as_array().unwrap() {
        assert!(finding["knee_tps"].as_f64().unwrap() >= 1_000.0, "{finding:#}");
        assert!(finding["latency_ms"].as_f64().unwrap() > 0.0, "{finding:#}");
    }
    let advice = &result["advice"][0];
    assert!(advice["line"].as_str().unwrap().starts_with("n = 4: "), "{advice:#}");
    assert!(["ed25519", "bls"].contains(&advice["candidate"]["scheme"].as_str().unwrap()));
    assert!(files(folder.path()).contains(&"compare.points.html".to_owned()));
}

/// One point of real processes and of the model, kept as lines and shown again from them.
#[test]
fn the_model_is_held_against_a_real_committee() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let point = ["-n", "4", "--durability", "os", "--delay", "0", "--rate", "500"];
    let short = ["--seconds", "2", "--prices", "this-machine", "--out", out, "--quiet", "--json"];
    let result = json(&[&["validate"][..], &point, &short].concat());
    let points = result["points"].as_array().unwrap();
    assert_eq!(points.len(), 1);
    for whose in ["real", "model"] {
        for number in ["committed_tps", "latency_client_p50_ms", "cpu_cores"] {
            let found = points[0][whose][number].as_f64();
            assert!(found.is_some_and(|found| found > 0.0), "{whose} {number}: {:#}", points[0]);
        }
    }
    assert!(points[0]["ratios"]["throughput"].is_f64(), "{:#}", points[0]);
    let lines = folder.path().join("validate.jsonl");
    let lines = lines.to_str().unwrap();
    let page = works(&["validate", "--from", lines, "--markdown"]);
    assert!(page.contains("| 4 | os | 0 ms | 500 | "), "{page}");

    let kept = fs::read_to_string(lines).unwrap();
    let turned: Vec<&str> = kept.lines().rev().collect();
    fs::write(lines, turned.join("\n") + "\n").unwrap();
    let refused = quorate(&["validate", "--from", lines]);
    assert_eq!(refused.status.code(), Some(2));
    let said = stderr(&refused);
    assert!(said.contains("is not followed by its model"), "{said}");
    fs::write(lines, kept.lines().next().unwrap().to_owned() + "\n").unwrap();
    let refused = quorate(&["validate", "--from", lines]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("no point is whole"), "{}", stderr(&refused));
}

/// A text without what tells one run from another: dates, the seconds that a point took, and the
/// command on a page.
fn timeless(text: &str) -> String {
    let after = |text: &str, from: &str, to: char| -> String {
        let mut parts = text.split(from);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + from + &part[part.find(to).unwrap_or(0)..])
    };
    let text = after(text, "\"started\":\"", '"');
    let text = after(&text, "\"wall_s\":", ',');
    let text = after(&text, "<code>quorate ", '<');
    // Captions may break between the date and the time.
    ["0000-00-00", "00:00:00"].iter().fold(text, |text, shape| without(&text, shape))
}

/// A text without what has a shape, in which 0 stands for any digit.
fn without(text: &str, shape: &str) -> String {
    let is_like = |(letter, wanted): (char, char)| {
        if wanted == '0' { letter.is_ascii_digit() } else { letter == wanted }
    };
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(letter) = rest.chars().next() {
        let matches = rest.len() >= shape.len() && rest.chars().zip(shape.chars()).all(is_like);
        if !matches {
            kept.push(letter);
        }
        rest = &rest[if matches { shape.len() } else { letter.len_utf8() }..];
    }
    kept
}

/// All files of a folder by name, but for those of parts and for results, which are in the order
/// in which points were finished; pages have them in the order of the points.
fn drawn(folder: &Path) -> Vec<(String, String)> {
    let names = files(folder).into_iter().filter(|name| !name.ends_with(".jsonl"));
    names.map(|name| (timeless(&fs::read_to_string(folder.join(&name)).unwrap()), name)).collect()
}

#[test]
fn parts_of_an_experiment_draw_what_one_machine_draws() {
    let folder = TempDir::new().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (whole, parts, joined) = (out("whole"), out("parts"), out("joined"));
    let preset = ["reproduce", "J1", "--preset", "smoke", "--quiet"];
    let run = |more: &[&str]| works(&[&preset[..], more].concat());
    run(&["--out", &whole]);
    for shard in ["2/3", "0/3"] {
        let said = run(&["--shard", shard, "--out", &parts]);
        assert!(said.contains(&format!("part {shard}: ")), "{said}");
    }
    let join = [&preset[..], &["--out", &joined, "--join", &parts]].concat();
    let refused = quorate(&join);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    let said = stderr(&refused);
    assert!(said.contains("not all parts are there: part 1 has none of its 1 points"), "{said}");
    let lines = run(&["--shard", "1/3", "--out", &parts, "--json"]);
    let file = Path::new(&parts).join("J1.smoke.shard-1-of-3.jsonl");
    assert_eq!(lines, fs::read_to_string(&file).unwrap(), "a part prints the lines of its file");
    works(&join);
    assert_eq!(drawn(Path::new(&joined)), drawn(Path::new(&whole)));
    assert!(files(Path::new(&parts)).iter().all(|name| name.ends_with(".jsonl")), "nothing drawn");
    let lines = fs::read_to_string(Path::new(&joined).join("J1.smoke.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 4);
    assert!(!lines.contains("\"shard\""), "as one machine would have left it");
}

#[test]
fn parts_of_a_comparison_recommend_what_one_machine_does() {
    let folder = TempDir::new().unwrap();
    let parts = folder.path().to_str().unwrap();
    let compare = ["compare", "-n", "4", "--policies", "aggregate", "--seconds", "2", "--quiet"];
    let options = ["--rate", "1000", "--out", parts];
    let compare = [&compare[..], &options].concat();
    for shard in ["0/2", "1/2"] {
        works(&[&compare[..], &["--shard", shard]].concat());
    }
    let whole = json(&[&compare[..], &["--json", "--no-page"]].concat());
    let joined = json(&[&compare[..], &["--json", "--join", parts]].concat());
    assert_eq!(joined, whole);
    assert_eq!(joined["advice"].as_array().unwrap().len(), 1);
    assert!(files(folder.path()).contains(&"compare.points.html".to_owned()));
    let other = quorate(&[&compare[..], &["--seed", "9", "--join", parts]].concat());
    assert_eq!(other.status.code(), Some(2), "{}", stderr(&other));
    assert!(stderr(&other).contains("'seed' = 1, and here it is 9"), "{}", stderr(&other));
}
