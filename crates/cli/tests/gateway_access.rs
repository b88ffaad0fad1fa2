//! Who gets in at the HTTP doors of real validators, and whether it can be read on the way.

use crate::common::door::{Answer, Door, open_gateway, open_gateway_to_all};
use crate::common::tls::{ask_over_tls, hang_up, install, install_key, request, use_tls};
use crate::common::{Net, TIMEOUT, edit, json, quorate, stderr, stdout, wait_for};
use quorate_node::ports::free_ports;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn address() -> String {
    format!("127.0.0.1:{}", free_ports(1).expect("a free port"))
}

#[test]
fn doors_speak_tls_and_take_a_new_certificate_without_a_restart() {
    let gateway = address();
    let net = Net::start_with(1, "ed25519", &["--service", "kv"], |configs| {
        open_gateway_to_all(&configs[0], &gateway);
        use_tls(&configs[0]);
        edit(&configs[0], "http_tls = false", "http_tls = true");
    });
    let put = request("PUT", "/v1/kv/colour", "green");
    let get = request("GET", "/v1/kv/colour?consistency=linearizable", "");
    let written = wait_for("the gateway to write", || {
        ask_over_tls("first.pem", &gateway, &put).ok().filter(|it| it.contains("200 OK"))
    });
    assert!(written.contains("\"height\":"), "{written}");
    let read = ask_over_tls("first.pem", &gateway, &get).expect("an answer");
    assert!(read.ends_with("green"), "{read}");
    let status = ask_over_tls("first.pem", &net.http[0], &request("GET", "/status", ""));
    assert!(status.expect("an answer").contains("\"uptime_s\""));
    assert!(ask_over_tls("second.pem", &gateway, &get).is_err(), "another certificate");
    for door in [&gateway, &net.http[0]] {
        let mut plain = TcpStream::connect(door).expect("a door");
        plain.set_read_timeout(Some(TIMEOUT)).expect("set");
        plain.write_all(get.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        // It may also be reset.
        let _ = plain.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/"), "plain HTTP is answered");
    }
    let config = &net.configs[0];
    install(config, "second");
    hang_up(&net);
    for door in [&gateway, &net.http[0]] {
        wait_for("the new certificate", || ask_over_tls("second.pem", door, &get).ok());
    }
    fs::write(config.with_file_name("cert.pem"), "no certificate").expect("written");
    hang_up(&net);
    wait_for("the refusal in the log", || {
        net.processes.log_tail(0, 50).contains("holds no certificate in PEM").then_some(())
    });
    let read = ask_over_tls("second.pem", &gateway, &get).expect("the former stays");
    assert!(read.ends_with("green"), "{read}");
}

/// One shard of an authority, killed with the test.
struct Authority(Child);

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_status_page_of_an_authority_speaks_tls_too() {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name).display().to_string();
    let owner = json(&["pay", "keys", &path("anne"), "--json"]);
    let genesis = format!("{}=1000", owner["address"].as_str().expect("an address"));
    let base = free_ports(8).expect("free ports").to_string();
    let net = path("net");
    let made = ["pay", "testnet", &net, "--base-port", &base, "--genesis", &genesis, "--json"];
    let config = json(&made)["configs"][0][0].as_str().expect("a path").to_owned();
    let config = Path::new(&config);
    install(config, "first");
    edit(config, "durability = ", "tls_cert = \"cert.pem\"\ndurability = ");
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.args(["pay", "run", "--config"]).arg(config);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("started")
    };
    let refused = start().wait_with_output().expect("it ends");
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("(tls_key) together"), "{}", stderr(&refused));

    edit(config, "durability = ", "tls_key = \"cert.key\"\ndurability = ");
    let authority = Authority(start());
    let text = fs::read_to_string(config).expect("a file");
    let http = text.lines().find_map(|line| line.strip_prefix("http = \"")).expect("a field");
    let http = http.trim_end_matches('"');
    let get = request("GET", "/status", "");
    let status = wait_for("an answer", || ask_over_tls("first.pem", http, &get).ok());
    assert!(status.contains("\"locked_inputs\""), "{status}");
    install(config, "second");
    let process = Pid::from_raw(authority.0.id().cast_signed()).expect("a process");
    kill_process(process, Signal::HUP).expect("told");
    wait_for("the new certificate", || ask_over_tls("second.pem", http, &get).ok());
}

#[test]
fn a_door_to_other_machines_is_not_opened_in_clear() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("net");
    let made = quorate(&["testnet", folder.to_str().expect("plain"), "--service", "kv"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let config = folder.join("validator-0/config.toml");
    open_gateway(&config, "0.0.0.0:0");
    let refused = |reason: &str| {
        let output = quorate(&["run", "--config", config.to_str().expect("plain")]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    };
    refused("would carry tokens and data over a network in clear (set tls_cert and tls_key");
    use_tls(&config);
    edit(&config, "gateway_open = false", "gateway_open = true");
    refused("lets everybody write who reaches it");
    edit(&config, "gateway_open = true", "gateway_open = false");
    install_key(&config, "second");
    refused("cert.key are refused");
    edit(&config, "tls_cert = \"cert.pem\"", "# tls_cert = \"cert.pem\"");
    refused("name a certificate (tls_cert) and its key (tls_key) together");
    let token = place.path().join("tokens.toml");
    let token = token.to_str().expect("plain");
    json(&["pay", "token", "add", token, "owner", "--right", "all", "--json"]);
    let serve =
        ["pay", "serve", "-w", "no-wallet", "--tokens-file", token, "--listen", "0.0.0.0:0"];
    let said = stderr(&quorate(&serve));
    assert!(said.contains("--insecure-http") && said.contains("--tls-cert"), "{said}");
    let said = stderr(&quorate(&[&serve[..], &["--insecure-http"]].concat()));
    assert!(!said.contains("--tls-cert"), "{said}");
}

fn ask_as(door: &Door, token: &str, method: &str, path: &str, body: &str) -> Answer {
    let lines = format!("Host: {}\r\nAuthorization: Bearer {token}\r\n", door.address);
    door.ask_with(&lines, method, path, body)
}

fn add_user(file: &str, name: &str, rights: &str, prefix: &str) -> String {
    let options = ["--rights", rights, "--prefix", prefix];
    let made = json(&[&["kv", "--json", "token", "add", file, name], &options[..]].concat());
    made["token"].as_str().expect("a token").to_owned()
}

/// A validator alone, with a gateway that asks for tokens.
fn alone(prepare: impl FnOnce(&Path)) -> (Net, Door) {
    let door = Door { address: address(), token: None };
    let net = Net::start_with(1, "ed25519", &["--service", "kv"], |configs| {
        open_gateway(&configs[0], &door.address);
        prepare(&configs[0]);
    });
    wait_for("the gateway to be open", || TcpStream::connect(&door.address).ok());
    wait_for("the gateway to be connected", || {
        (door.get("/v1/status").json(200)["members_connected"] == 1).then_some(())
    });
    (net, door)
}

#[test]
fn users_do_what_their_tokens_are_for() {
    let mut tokens = Vec::new();
    let mut file = String::new();
    let (net, door) = alone(|config| {
        file = config.with_file_name("tokens.toml").to_str().expect("plain").to_owned();
        tokens.push(add_user(&file, "till", "write", "till/"));
        tokens.push(add_user(&file, "auditor", "read", ""));
        let line = "gateway_tokens_file = \"tokens.toml\"";
        edit(config, &format!("# {line}"), line);
    });
    let [till, auditor] = [&tokens[0], &tokens[1]];
    let listed = stdout(&quorate(&["kv", "token", "list", &file]));
    assert_eq!(listed, "till\twrite\ttill/\nauditor\tread\t\n");
    assert!(!fs::read_to_string(&file).expect("a file").contains(&**till), "hashes alone");
    assert_eq!(door.ask("PUT", "/v1/kv/till%2Fa", "1").status, 401);
    assert_eq!(ask_as(&door, &"0".repeat(64), "GET", "/v1/kv/till%2Fa", "").status, 401);
    rights_of_a_till(&door, till);
    rights_of_an_auditor(&door, auditor);
    let removed = quorate(&["kv", "token", "remove", &file, "till"]);
    assert!(removed.status.success(), "{}", stderr(&removed));
    hang_up(&net);
    wait_for("the till to be shut out", || {
        (ask_as(&door, till, "GET", "/v1/kv/till%2Fa", "").status == 401).then_some(())
    });
    let reads = || ask_as(&door, auditor, "GET", "/v1/kv?consistency=linearizable", "").status;
    assert_eq!(reads(), 200);
    // A file that is refused says why, and whoever was let in before still is.
    let listed = fs::read_to_string(&file).expect("a file");
    let user = listed.split("[[tokens]]").nth(1).expect("the auditor");
    let twice = user.replace("auditor", "somebody");
    fs::write(&file, format!("{listed}\n[[tokens]]{twice}")).expect("written");
    hang_up(&net);
    wait_for("the log to say why", || {
        let log = net.processes.log_tail(0, 20);
        let why = "'auditor' and 'somebody' have the same token";
        (log.contains("users of the gateway not read again; the former stays") && log.contains(why))
            .then_some(())
    });
    assert_eq!(reads(), 200);
    assert_eq!(ask_as(&door, till, "GET", "/v1/kv/till%2Fa", "").status, 401, "as before");
}

fn rights_of_a_till(door: &Door, till: &str) {
    let ask = |method, path, body| ask_as(door, till, method, path, body);
    ask("PUT", "/v1/kv/till%2Fa", "1").json(200);
    let read = ask("GET", "/v1/kv/till%2Fa?consistency=linearizable", "");
    assert_eq!((read.status, &*read.text()), (200, "1"));
    let within = "[{\"op\":\"put\",\"key\":\"74696c6c2f62\",\"value\":\"32\"}]";
    ask("POST", "/v1/batch", within).json(200);
    let reason = |answer: Value| answer["error"].as_str().expect("a reason").to_owned();
    let beyond = "[{\"op\":\"put\",\"key\":\"74696c6c2f62\",\"value\":\"32\"},\
                   {\"op\":\"get\",\"key\":\"6f74686572\"}]";
    for (method, path, body) in [
        ("PUT", "/v1/kv/other", "1"),
        ("DELETE", "/v1/kv/other", ""),
        ("GET", "/v1/kv/other", ""),
        ("GET", "/v1/kv/other?consistency=linearizable", ""),
        ("POST", "/v1/batch", beyond),
        ("GET", "/v1/kv", ""),
        ("GET", "/v1/kv?consistency=linearizable&from=74", ""),
        ("PUT", "/v1/kv/till%2Fa?receipt=true", "2"),
    ] {
        let said = reason(ask(method, path, body).json(403));
        assert!(said.contains("the token of 'till' is for 'write' on keys"), "{said}");
    }
    let said = reason(ask("GET", "/v1/kv", "").json(403));
    let range = said.split("within ").nth(1).expect("what to ask for");
    let listed = ask("GET", &format!("/v1/kv?consistency=linearizable&{range}"), "").json(200);
    assert_eq!(listed["entries"].as_array().map(Vec::len), Some(2), "{listed}");
}

fn rights_of_an_auditor(door: &Door, auditor: &str) {
    let ask = |method, path, body| ask_as(door, auditor, method, path, body);
    let read = ask("GET", "/v1/kv/till%2Fa?consistency=linearizable", "");
    assert_eq!((read.status, &*read.text()), (200, "1"), "as it was");
    for (method, path, body) in [
        ("PUT", "/v1/kv/till%2Fa", "9"),
        ("PUT", "/v1/kv/till%2Fa?expected=31", "9"),
        ("DELETE", "/v1/kv/till%2Fa", ""),
        ("POST", "/v1/batch", "[{\"op\":\"delete\",\"key\":\"6b\"}]"),
    ] {
        let said = ask(method, path, body).json(403)["error"].to_string();
        assert!(said.contains("nothing may be changed with it"), "{said}");
    }
    ask("POST", "/v1/batch", "[{\"op\":\"get\",\"key\":\"6b\"}]").json(200);
}

#[test]
fn a_gateway_of_which_nothing_is_said_asks_for_a_token_that_it_makes() {
    let mut file = PathBuf::new();
    let (_net, door) = alone(|config| file = config.with_file_name("gateway.token"));
    assert_eq!(door.ask("PUT", "/v1/kv/a", "1").status, 401);
    let mode = fs::metadata(&file).expect("a token").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = fs::read_to_string(&file).expect("a token");
    ask_as(&door, token.trim_end(), "PUT", "/v1/kv/a", "1").json(200);
}

/// A page can send a form or text without asking; tools of Ethereum send JSON.
#[test]
fn json_rpc_takes_json_alone() {
    let net = Net::start_with(1, "ed25519", &["--service", "evm"], |_| {});
    let door = Door { address: net.gateways[0].clone(), token: None };
    wait_for("JSON-RPC to be open", || TcpStream::connect(&door.address).ok());
    let call = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\",\"params\":[]}";
    let host = format!("Host: {}\r\n", door.address);
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let lines = format!("{host}Content-Type: {kind}\r\n");
        assert_eq!(door.ask_plainly(&lines, "POST", "/", call).status, 415, "{kind}");
    }
    assert_eq!(door.ask("POST", "/", call).json(200)["result"], "0x1e5a");
}
