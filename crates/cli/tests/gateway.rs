//! The gateway of real validators, asked over HTTP.

use crate::common::door::{Door, open_gateway, open_gateway_to_all};
use crate::common::{Net, edit, edit_committee, quorate, stderr, wait_for};
use quorate_node::ports::free_ports;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const TOKEN: &str = "a-token-of-some-length";

fn write_token(config: &Path) {
    let file = config.with_file_name("token");
    fs::write(&file, format!("{TOKEN}\n")).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("set");
    edit(config, "# gateway_token_file = \"token\"", "gateway_token_file = \"token\"");
}

/// Four validators; member 0 has a gateway with a token, member 1 one without.
fn start() -> (Net, Door, Door) {
    let base = free_ports(2).expect("free ports");
    let address = |index: u16| format!("127.0.0.1:{}", base + index);
    let net = Net::start_with(4, "ed25519", &["--service", "kv"], |configs| {
        open_gateway(&configs[0], &address(0));
        write_token(&configs[0]);
        open_gateway_to_all(&configs[1], &address(1));
    });
    net.wait_connected();
    let guarded = Door { address: address(0), token: Some(TOKEN) };
    let open = Door { address: address(1), token: None };
    for door in [&guarded, &open] {
        wait_for("the gateway to be open", || TcpStream::connect(&door.address).ok());
        wait_for("the gateway to be connected", || {
            let status = door.get("/v1/status").json(200);
            (status["members_connected"] == 4).then_some(())
        });
    }
    (net, guarded, open)
}

#[test]
fn every_endpoint_works_on_a_committee() {
    let (_net, guarded, open) = start();
    status_and_description(&guarded);
    token(&guarded);
    web_pages(&guarded, &open);
    single_keys(&guarded, &open);
    certified_reads(&guarded, &open);
    batches(&open);
    receipts(&guarded, &open);
    refusals(&open);
}

fn status_and_description(door: &Door) {
    let door = Door { address: door.address.clone(), token: None };
    let status = door.get("/v1/status").json(200);
    assert_eq!((&status["members"], &status["service"]), (&json!(4), &json!("kv")));
    assert_eq!(status["network"].as_str().map(str::len), Some(64));
    assert_eq!(door.get("/openapi.json").json(200)["openapi"], "3.1.0");
}

fn token(door: &Door) {
    for token in [None, Some("another-token-of-that-length")] {
        let door = Door { address: door.address.clone(), token };
        let refused = door.ask("PUT", "/v1/kv/guarded", "x").json(401);
        assert!(refused["error"].as_str().expect("a reason").contains("Bearer"), "{refused}");
    }
    let absent = door.get("/v1/kv/guarded?consistency=linearizable").json(404);
    assert_eq!(absent["age_ms"], Value::Null);
}

/// What a browser on this machine sends for somebody's page, and for one whose own name was made to
/// mean this machine.
fn web_pages(guarded: &Door, open: &Door) {
    for door in [open, guarded] {
        let address = &door.address;
        for lines in [
            format!("Host: {address}\r\nOrigin: https://page.example\r\n"),
            "Host: page.example\r\n".to_owned(),
        ] {
            let answer = door.ask_with(&lines, "PUT", "/v1/kv/page", "x");
            // A page does not know the token: whoever shows it is no page.
            answer.json(if door.token.is_some() { 200 } else { 403 });
        }
        door.ask("DELETE", "/v1/kv/page", "").json(200);
    }
}

fn single_keys(first: &Door, second: &Door) {
    let made = first.ask("PUT", "/v1/kv/a%2Fb%ff", "green").json(200);
    assert_eq!((&made["replaced"], &made["receipt"]), (&json!(false), &Value::Null));
    let linearizable = second.get("/v1/kv/a%2Fb%ff?consistency=linearizable");
    assert_eq!((linearizable.status, &*linearizable.text()), (200, "green"));
    assert!(linearizable.number("quorate-height") > made["height"].as_u64());
    assert_eq!(linearizable.number("quorate-age-ms"), None);

    let path = |expected: &str| format!("/v1/kv/a%2Fb%ff?{expected}");
    let other = second.ask("PUT", &path("expected=00"), "blue").json(409);
    assert_eq!(other["actual"], hex::encode("green"));
    let other = second.ask("PUT", &path("expected_absent=true"), "blue").json(409);
    assert_eq!(other["actual"], hex::encode("green"));
    let swapped = second.ask("PUT", &path(&format!("expected={}", hex::encode("green"))), "blue");
    assert_eq!(swapped.json(200)["replaced"], true);
    assert_eq!(first.ask("DELETE", "/v1/kv/a%2Fb%ff", "").json(200)["replaced"], true);
    assert_eq!(first.ask("DELETE", "/v1/kv/a%2Fb%ff", "").json(200)["replaced"], false);
    let gone = second.ask("PUT", &path("expected=00"), "blue").json(409);
    assert_eq!(gone["actual"], Value::Null);
    let made = second.ask("PUT", &path("expected_absent=true"), "").json(200);
    assert_eq!(made["replaced"], false);
    let empty = first.get("/v1/kv/a%2Fb%ff?consistency=linearizable");
    assert_eq!((empty.status, empty.body.len()), (200, 0));
}

fn certified_reads(first: &Door, second: &Door) {
    let made = first.ask("PUT", "/v1/kv/seen", vec![7; 65_536]).json(200);
    let answer = wait_for("a certified read of what was written", || {
        Some(second.get("/v1/kv/seen")).filter(|answer| answer.status == 200)
    });
    assert_eq!(answer.body, [7; 65_536]);
    assert!(answer.number("quorate-height") >= made["height"].as_u64());
    assert!(answer.number("quorate-age-ms").expect("an age") < 60_000);
    let absent = second.get("/v1/kv/unseen").json(404);
    assert!(absent["height"].is_u64() && absent["age_ms"].is_u64(), "{absent}");
}

fn batches(door: &Door) {
    let steps = json!([
        {"op": "compare_and_swap", "key": "7a30", "expected": null, "new": "01"},
        {"op": "put", "key": "7a31", "value": "02"},
        {"op": "put", "key": "7a32", "value": "03"},
        {"op": "get", "key": "7a31"},
        {"op": "delete", "key": "7a32"},
    ]);
    let done = door.ask("POST", "/v1/batch", steps.to_string()).json(200);
    let results = json!([
        {"swapped": true}, {"replaced": false}, {"replaced": false}, {"value": "02"},
        {"replaced": true},
    ]);
    assert_eq!(done["results"], results);
    wait_for("a refusal with its receipt", || {
        let again = door.ask("POST", "/v1/batch?receipt=true", steps.to_string()).json(409);
        assert_eq!((&again["step"], &again["actual"]), (&json!(0), &json!("01")));
        again["receipt"].is_object().then_some(())
    });

    let entries = json!([{"key": "7a30", "value": "01"}, {"key": "7a31", "value": "02"}]);
    let listed = door.get("/v1/kv?from=7a30&to=7a40&consistency=linearizable").json(200);
    assert_eq!((&listed["entries"], &listed["more"]), (&entries, &json!(false)));
    let certified = wait_for("a certified scan of what was written", || {
        let listed = door.get("/v1/kv?from=7a30&to=7a40").json(200);
        (listed["entries"] == entries).then_some(listed)
    });
    assert!(certified["age_ms"].is_u64(), "{certified}");
    let cut = door.get("/v1/kv?from=7a30&limit=1").json(200);
    assert_eq!((&cut["entries"][0]["key"], &cut["more"]), (&json!("7a30"), &json!(true)));
}

fn receipts(first: &Door, second: &Door) {
    // What had to be sent again has none.
    let made = wait_for("a write with its receipt", || {
        let made = first.ask("PUT", "/v1/kv/proven?receipt=true", "x").json(200);
        made["receipt"].is_object().then_some(made)
    });
    let (receipt, index) = (&made["receipt"], &made["receipt_index"]);
    assert_eq!(receipt["height"], made["height"]);
    let operation = &receipt["operations"][index.as_u64().expect("a place") as usize];
    let key = hex::encode("proven");
    assert!(operation.as_str().expect("hexadecimal").contains(&key), "{operation}");

    let verified = second.ask("POST", "/v1/receipts/verify", receipt.to_string()).json(200);
    assert_eq!((&verified["valid"], &verified["height"]), (&json!(true), &made["height"]));

    let tampered = |edit: &dyn Fn(&mut Value)| {
        let mut receipt = receipt.clone();
        edit(&mut receipt);
        let answer = second.ask("POST", "/v1/receipts/verify", receipt.to_string()).json(422);
        assert_eq!(answer["valid"], false);
        answer["error"].as_str().expect("a reason").to_owned()
    };
    let error = tampered(&|receipt| receipt["height"] = json!(1_000_000));
    assert!(error.contains("'height' is not what its proof shows"), "{error}");
    let error = tampered(&|receipt| receipt["network"] = json!("00"));
    assert!(error.contains("the receipt is of network 00"), "{error}");
    let error = tampered(&|receipt| {
        let mut proof = hex::decode(receipt["proof"].as_str().expect("a proof")).expect("digits");
        let middle = proof.len() / 2;
        proof[middle] ^= 1;
        receipt["proof"] = json!(hex::encode(proof));
    });
    assert!(error.contains("receipt"), "{error}");
}

fn refusals(door: &Door) {
    let too_large = door.ask("PUT", "/v1/kv/large", vec![0; 65_537]).json(413);
    assert!(too_large["error"].as_str().expect("a reason").contains("65536"), "{too_large}");
    let long = door.ask("PUT", &format!("/v1/kv/{}", "k".repeat(1_025)), "").json(400);
    assert!(long["error"].as_str().expect("a reason").contains("1 to 1024 bytes"), "{long}");
    door.ask("POST", "/v1/batch", "{}").json(400);
    door.ask("POST", "/v1/receipts/verify", "[]").json(400);
    door.get("/v1/kv?limit=1001").json(400);
    door.get("/v2").json(404);
    door.ask("POST", "/v1/kv/a", "").json(405);
}

#[test]
fn a_gateway_that_could_answer_nothing_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let testnet = |name: &str, service: &str| {
        let folder = place.path().join(name);
        let made = quorate(&["testnet", folder.to_str().expect("a path"), "--service", service]);
        assert!(made.status.success(), "{}", stderr(&made));
        folder.join("validator-0/config.toml")
    };
    let refused = |config: &Path, reason: &str| {
        let output = quorate(&["run", "--config", config.to_str().expect("a path")]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    };
    let config = testnet("log", "log");
    open_gateway(&config, "127.0.0.1:0");
    refused(&config, "'gateway' needs service = \"kv\"");

    let config = testnet("open", "kv");
    open_gateway(&config, "0.0.0.0:0");
    refused(&config, "would carry tokens and data over a network in clear");

    let config = testnet("kv", "kv");
    write_token(&config);
    refused(&config, "'gateway_token_file' without 'gateway'");
    open_gateway(&config, "127.0.0.1:0");
    fs::write(config.with_file_name("token"), "short").expect("written");
    refused(&config, "a token is one line of 16 to 1024");
    edit_committee(&config, "execution_certificates = true", "execution_certificates = false");
    refused(&config, "execution_certificates = true");
}
