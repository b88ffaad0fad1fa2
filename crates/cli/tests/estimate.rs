//! `quorate estimate` and `quorate calibrate`.

mod common;

use common::{json, quorate, stderr, stdout};

const SHORT: [&str; 9] = [
    "estimate",
    "--rate",
    "500",
    "--duration",
    "1",
    "--warmup",
    "1",
    "--wan",
    "us-east-1,eu-west-1",
];

#[test]
fn an_estimate_is_the_same_each_time_and_says_what_it_rests_on() {
    let run = || json(&[&SHORT[..], &["--prices", "t3.medium", "--cores", "1", "--json"]].concat());
    let (one, two) = (run(), run());
    assert_eq!(one["outcome"]["trace_hash"], two["outcome"]["trace_hash"]);
    assert_eq!(one["outcome"]["signatures"], "priced");
    assert_eq!(one["prices"]["machine"], "t3.medium (one core at 2.5 GHz)");
    let committed = one["outcome"]["committed_tps"].as_f64().expect("a number");
    assert!((400.0..600.0).contains(&committed), "{committed}");
}

#[test]
fn an_estimate_for_people_names_latencies_stations_and_signatures() {
    let output = quorate(&[&SHORT[..], &["--reference", "--scheme", "bls"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for part in
        ["4 validators · bls (priced signatures)", "Reference profile", "by the slowest", "votes"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("acknowledged"), "its clients are not answered: {text}");
}

#[test]
fn lists_can_be_named_and_read_from_files() {
    let names = quorate(&["estimate", "--prices", "list"]);
    assert!(stdout(&names).lines().any(|name| name == "paper-bls-93ms"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.toml");
    let list = "machine = \"mine\"\ncommit = \"none\"\ndate = \"today\"\nnote = \"slow\"\n\
                base = \"this-machine\"\nscale = 3.0\n";
    std::fs::write(&file, list).expect("written");
    let file = file.to_str().expect("a plain path");
    let result = json(&[&SHORT[..], &["--prices", file, "--json"]].concat());
    assert_eq!(result["prices"]["machine"], "mine");
}
