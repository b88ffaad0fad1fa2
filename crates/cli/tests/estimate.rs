//! `quorate estimate` and `quorate calibrate`.

use crate::common::{json, quorate, stderr, stdout};

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

#[test]
fn a_machine_has_a_price_list_that_can_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("here.toml");
    let file = file.to_str().expect("a plain path");
    let list = json(&["calibrate", "-o", file, "--json"]);
    for price in [
        "/ed25519/sign_us",
        "/ed25519/verify_us",
        "/ed25519/batch_item_us",
        "/bls/pairing_us",
        "/bls/sign_us",
        "/hash/byte_ns",
        "/net/send_byte_ns",
        "/net/receive_frame_us",
        "/log/byte_ns",
        "/log/disk_mb_s",
        "/machine_thread/proposal_us",
        "/execution/block_us",
    ] {
        let value = list.pointer(price).and_then(serde_json::Value::as_f64);
        assert!(value.is_some_and(|value| value > 0.0), "{price}: {list:#}");
    }
    let wakes = list["wake_us"].as_object().expect("a table");
    let wakes = wakes.values().filter_map(serde_json::Value::as_f64);
    assert!(wakes.sum::<f64>() > 0.0, "some thread costs something to wake: {list:#}");
    let result = json(&[&SHORT[..], &["--prices", file, "--json"]].concat());
    assert_eq!(result["prices"], list);
}
