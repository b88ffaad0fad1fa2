//! Who reads status and metrics of real validators, who calls JSON-RPC, and where either is open in
//! clear.

use crate::common::socket::Socket;
use crate::common::tls::{
    ask_in_clear, ask_over_tls, fixture, hang_up, install_key, request_with, status_of, use_tls,
};
use crate::common::{Net, edit, json, quorate, stderr, stdout, text, wait_for, works};
use alloy::eips::eip2718::Encodable2718;
use alloy::hex;
use alloy::network::{EthereumWallet, NetworkTransactionBuilder, TransactionBuilder};
use alloy::primitives::{Address, U256};
use alloy::rpc::types::TransactionRequest;
use alloy::signers::local::PrivateKeySigner;
use quorate_node::ports::free_ports;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A door of a validator that runs.
struct Door {
    address: String,
    tls: bool,
}

impl Door {
    /// Asks with a token, or with none.
    fn ask(&self, token: Option<&str>, request: (&str, &str, &str)) -> String {
        let lines = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        self.ask_with(&lines.unwrap_or_default(), request)
    }

    fn ask_with(&self, lines: &str, request: (&str, &str, &str)) -> String {
        let request = request_with(lines, request);
        let answer = || match self.tls {
            true => ask_over_tls("first.pem", &self.address, &request).ok(),
            false => ask_in_clear(&self.address, &request).ok(),
        };
        wait_for("an answer", answer)
    }

    fn get(&self, token: Option<&str>, path: &str) -> u16 {
        status_of(&self.ask(token, ("GET", path, "")))
    }

    /// Result or error of a call.
    fn call(&self, token: Option<&str>, method: &str, parameters: &Value) -> Result<Value, Value> {
        let call = call(method, parameters);
        let lines = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let lines = format!("Content-Type: application/json\r\n{}", lines.unwrap_or_default());
        let answer = self.ask_with(&lines, ("POST", "/", &call));
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        match status_of(&answer) {
            200 => outcome(&serde_json::from_str(body).expect("JSON")),
            status => Err(json!(status)),
        }
    }
}

fn call(method: &str, parameters: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": parameters }).to_string()
}

/// Result of an answer, or the code of its error.
fn outcome(answer: &Value) -> Result<Value, Value> {
    match &answer["result"] {
        Value::Null => Err(answer["error"]["code"].clone()),
        result => Ok(result.clone()),
    }
}

/// Takes a field out of its comment, or adds it to the file's first section.
fn set(config: &Path, field: &str, value: &str) {
    let written = fs::read_to_string(config).expect("a file");
    let line = format!("{field} = {value}");
    let is_it = |old: &str| old.trim_start_matches("# ").starts_with(&format!("{field} = "));
    let changed: Vec<&str> =
        written.lines().map(|old| if is_it(old) { line.as_str() } else { old }).collect();
    assert!(changed.contains(&line.as_str()), "there is no field {field}");
    fs::write(config, changed.join("\n") + "\n").expect("written");
}

/// Another address than the loopback interface's, which that one leads to as well.
fn everywhere(address: &str) -> String {
    address.replace("127.0.0.1", "0.0.0.0")
}

fn add_user(file: &Path, name: &str, options: &[&str]) -> String {
    let add = ["token", "add", text(file), name, "--json"];
    let made = json(&[&add[..], options].concat());
    made["token"].as_str().expect("a token").to_owned()
}

fn write_token(config: &Path, name: &str, token: &str) -> PathBuf {
    let path = config.with_file_name(name);
    fs::write(&path, format!("{token}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
    path
}

const GATEWAY_TOKEN: &str = "the-gateways-token-of-some-length";

/// A validator alone whose status asks for a token, and whose gateway for another.
fn status_with_token(is_local: bool, tls: bool) -> (Net, Door, String) {
    let mut token = String::new();
    let net = Net::start_with(1, "ed25519", &["--service", "kv"], |configs| {
        let config = &configs[0];
        token = add_user(&config.with_file_name("http-tokens.toml"), "prometheus", &[]);
        set(config, "http_tokens_file", "\"http-tokens.toml\"");
        write_token(config, "token", GATEWAY_TOKEN);
        set(config, "gateway", &format!("\"127.0.0.1:{}\"", free_ports(1).expect("a port")));
        set(config, "gateway_token_file", "\"token\"");
        if !is_local {
            let http = fs::read_to_string(config).expect("a file");
            let http = http.lines().find_map(|line| line.strip_prefix("http = ")).expect("a field");
            set(config, "http", &everywhere(http));
        }
        if tls {
            use_tls(config);
            set(config, "http_tls", "true");
        } else if !is_local {
            set(config, "http_insecure", "true");
        }
    });
    let door = Door { address: net.http[0].clone(), tls };
    (net, door, token)
}

#[test]
fn status_is_for_those_who_show_its_token_wherever_it_is_open() {
    for (is_local, tls) in [(true, false), (true, true), (false, false), (false, true)] {
        let (_net, door, token) = status_with_token(is_local, tls);
        for path in ["/status", "/metrics"] {
            assert_eq!(door.get(Some(&token), path), 200, "{path} {is_local} {tls}");
            for wrong in [None, Some("no-token-of-anybody-here"), Some(GATEWAY_TOKEN)] {
                assert_eq!(door.get(wrong, path), 401, "{path} {wrong:?} {is_local} {tls}");
            }
        }
        for wrong in [None, Some("no-token-of-anybody-here"), Some(GATEWAY_TOKEN)] {
            assert_eq!(door.get(wrong, "/events"), 401, "{wrong:?} {is_local} {tls}");
        }
        for page in ["/", "/dashboard.js", "/base.css"] {
            assert_eq!(door.get(None, page), 200, "{page} tells nothing");
        }
        let refused = door.ask(None, ("GET", "/status", "")).to_lowercase();
        assert!(refused.contains("www-authenticate: bearer"), "{refused}");
        assert!(refused.contains("authorization: bearer token"), "{refused}");
        assert!(!refused.contains("uptime_s"), "{refused}");
        wait_for("it to run", || (door.get(None, "/healthz") == 200).then_some(()));
        wait_for("it to be of use", || (door.get(None, "/readyz") == 200).then_some(()));
    }
}

#[test]
fn users_of_status_are_read_again_and_a_refused_file_changes_nothing() {
    let (net, door, token) = status_with_token(true, false);
    let file = net.configs[0].with_file_name("http-tokens.toml");
    assert_eq!(door.get(Some(&token), "/status"), 200);
    let board = add_user(&file, "board", &[]);
    works(&["token", "remove", text(&file), "prometheus"]);
    assert_eq!(works(&["token", "list", text(&file)]), "board\tread\n");
    wait_for("the board to be let in", || {
        hang_up(&net);
        (door.get(Some(&board), "/status") == 200).then_some(())
    });
    assert_eq!(door.get(Some(&token), "/status"), 401, "it was removed");
    fs::write(&file, "nothing of the kind").expect("written");
    hang_up(&net);
    wait_for("the log to say why", || {
        let log = net.processes.log_tail(0, 50);
        log.contains("users of the status page not read again; the former stays").then_some(())
    });
    assert_eq!(door.get(Some(&board), "/status"), 200, "as before");
}

#[test]
fn a_user_of_status_is_held_to_its_rate() {
    let mut slow = String::new();
    let net = Net::start_with(1, "ed25519", &[], |configs| {
        let file = configs[0].with_file_name("http-tokens.toml");
        slow = add_user(&file, "slow", &["--requests-per-second", "1"]);
        add_user(&file, "other", &[]);
        set(&configs[0], "http_tokens_file", "\"http-tokens.toml\"");
    });
    let door = Door { address: net.http[0].clone(), tls: false };
    let refused = wait_for("the rate to be used up", || {
        let answer = door.ask(Some(&slow), ("GET", "/status", ""));
        (status_of(&answer) == 429).then_some(answer)
    });
    assert!(refused.to_lowercase().contains("retry-after: 1"), "{refused}");
    assert_eq!(door.get(None, "/healthz"), 200, "nobody is counted there");
    wait_for("the rate to come back", || (door.get(Some(&slow), "/status") == 200).then_some(()));
}

/// The reason is in `quorate run`'s error and among `quorate config check`'s findings.
fn refused(config: &Path, reason: &str) {
    let run = quorate(&["run", "--config", text(config)]);
    assert_eq!(run.status.code(), Some(2), "{}", stderr(&run));
    assert!(stderr(&run).contains(reason), "{reason} in {}", stderr(&run));
    let check = quorate(&["config", "check", text(config)]);
    assert_eq!(check.status.code(), Some(2), "{}", stdout(&check));
    let found: Vec<String> = stdout(&check).split_whitespace().map(str::to_owned).collect();
    let head = reason.split([':', '(']).next().expect("a sentence").trim_end();
    assert!(found.join(" ").contains(head), "{reason} in {}", stdout(&check));
}

fn testnet(place: &Path, service: &str) -> PathBuf {
    let folder = place.join(service);
    works(&["testnet", text(&folder), "--service", service]);
    folder.join("validator-0/config.toml")
}

#[test]
fn status_is_not_shown_to_others_in_clear() {
    let place = tempfile::tempdir().expect("a folder");
    let config = testnet(place.path(), "kv");
    set(&config, "http", "\"0.0.0.0:0\"");
    let in_clear = "would carry status and tokens over a network in clear (set http_tls = true";
    refused(&config, in_clear);
    // A certificate alone encrypts nothing here.
    use_tls(&config);
    refused(&config, in_clear);
    set(&config, "http_tls", "true");
    install_key(&config, "second");
    refused(&config, "cert.key are refused");
    install_key(&config, "first");
    write_token(&config, "http.token", "short");
    set(&config, "http_token_file", "\"http.token\"");
    refused(&config, "a token is one line of 16 to 1024");
    let token = write_token(&config, "http.token", GATEWAY_TOKEN);
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).expect("set");
    refused(&config, "is open to others (mode 0644)");
    set(&config, "http_tokens_file", "\"http-tokens.toml\"");
    refused(&config, "'http_token_file' and 'http_tokens_file' exclude one another");
}

#[test]
fn json_rpc_is_not_open_to_others_in_clear() {
    let place = tempfile::tempdir().expect("a folder");
    let config = testnet(place.path(), "evm");
    set(&config, "gateway", "\"0.0.0.0:0\"");
    let in_clear = "would carry tokens and data over a network in clear (set tls_cert and tls_key";
    refused(&config, in_clear);
    set(&config, "gateway_open", "true");
    refused(&config, in_clear);
    set(&config, "gateway_insecure", "true");
    write_token(&config, "token", GATEWAY_TOKEN);
    set(&config, "gateway_token_file", "\"token\"");
    refused(&config, "'gateway_token_file' and 'gateway_open' exclude one another");
}

/// Settings of JSON-RPC under which a validator runs alone.
fn json_rpc(prepare: impl FnOnce(&Path, &str)) -> (Net, Door) {
    let net = Net::start_with(1, "ed25519", &["--service", "evm"], |configs| {
        let written = fs::read_to_string(&configs[0]).expect("a file");
        let field = |line: &str| Some(line.strip_prefix("gateway = \"")?.to_owned());
        let address = written.lines().find_map(field).expect("a field");
        prepare(&configs[0], address.trim_end_matches('"'));
    });
    let door = Door { address: net.gateways[0].clone(), tls: false };
    (net, door)
}

#[test]
fn json_rpc_is_open_on_this_machine_and_asks_others_for_a_token() {
    let (_net, local) = json_rpc(|_, _| {});
    let chain = local.call(None, "eth_chainId", &json!([]));
    assert_eq!(chain, Ok(json!("0x1e5a")));
    let elsewhere = |tls: bool, more: &[(&str, &str)]| {
        json_rpc(|config, address| {
            set(config, "gateway", &format!("\"{}\"", everywhere(address)));
            match tls {
                true => use_tls(config),
                false => set(config, "gateway_insecure", "true"),
            }
            more.iter().for_each(|(field, value)| set(config, field, value));
        })
    };
    for tls in [false, true] {
        let (net, door) = elsewhere(tls, &[]);
        let door = Door { tls, ..door };
        let ask = |token: Option<&str>| door.call(token, "eth_chainId", &json!([]));
        assert_eq!(ask(None), Err(json!(401)), "{tls}");
        assert_eq!(ask(Some(GATEWAY_TOKEN)), Err(json!(401)), "{tls}");
        let made = net.configs[0].with_file_name("gateway.token");
        let made = fs::read_to_string(made).expect("a token that was made");
        assert_eq!(ask(Some(made.trim_end())), chain, "{tls}");
        // The explorer's files are for everybody, and show nothing.
        assert_eq!(door.get(None, "/explorer.js"), 200);
        let (_net, public) = elsewhere(tls, &[("gateway_open", "true")]);
        assert_eq!(Door { tls, ..public }.call(None, "eth_chainId", &json!([])), chain, "{tls}");
    }
}

#[test]
fn users_of_json_rpc_do_what_their_tokens_are_for() {
    let mut tokens = Vec::new();
    let mut file = PathBuf::new();
    let (net, door) = json_rpc(|config, _| {
        file = config.with_file_name("tokens.toml");
        tokens.push(add_user(&file, "reader", &[]));
        tokens.push(add_user(&file, "shop", &["--rights", "write"]));
        tokens.push(add_user(&file, "slow", &["--requests-per-second", "1"]));
        set(config, "gateway_tokens_file", "\"tokens.toml\"");
    });
    let [reader, shop, slow] = [0, 1, 2].map(|index: usize| tokens[index].clone());
    let none = json!([]);
    assert_eq!(door.call(None, "eth_chainId", &none), Err(json!(401)));
    // What is sent is no transaction: who may send is told so.
    let raw = json!(["0x00"]);
    for (token, sending) in [(&reader, 4_100), (&shop, -32_602)] {
        let token = Some(&**token);
        assert_eq!(door.call(token, "eth_chainId", &none), Ok(json!("0x1e5a")));
        let refused = door.call(token, "eth_sendRawTransaction", &raw).expect_err("refused");
        assert_eq!(refused.as_i64().is_some_and(|code| code == 4_100), sending == 4_100);
    }
    let batch = format!(
        "[{}]",
        [call("eth_chainId", &none), call("eth_sendRawTransaction", &raw)].join(",")
    );
    let lines = format!("Content-Type: application/json\r\nAuthorization: Bearer {reader}\r\n");
    let answer = door.ask_with(&lines, ("POST", "/", &batch));
    assert!(answer.contains("0x1e5a") && answer.contains("4100"), "{answer}");
    wait_for("the rate to be used up", || {
        (door.call(Some(&slow), "eth_chainId", &none) == Err(json!(-32_005))).then_some(())
    });

    let authorization = |token: &str| format!("Authorization: Bearer {token}\r\n");
    assert_eq!(Socket::open(&door.address, "").err(), Some(401));
    assert_eq!(Socket::open(&door.address, &authorization(GATEWAY_TOKEN)).err(), Some(401));
    let mut socket = Socket::open(&door.address, &authorization(&reader)).expect("let in");
    assert_eq!(outcome(&socket.call(&call("eth_chainId", &none))), Ok(json!("0x1e5a")));
    let sent = socket.call(&call("eth_sendRawTransaction", &raw));
    assert_eq!(outcome(&sent), Err(json!(4_100)));
    let mut slowly = Socket::open(&door.address, &authorization(&slow)).expect("let in");
    wait_for("the rate to be used up", || {
        let answer = slowly.call(&call("eth_chainId", &none));
        (outcome(&answer) == Err(json!(-32_005))).then_some(())
    });

    works(&["token", "remove", text(&file), "reader"]);
    wait_for("the reader to be shut out", || {
        hang_up(&net);
        (door.call(Some(&reader), "eth_chainId", &none) == Err(json!(401))).then_some(())
    });
    let answer = socket.call(&call("eth_chainId", &none));
    assert_eq!(outcome(&answer), Err(json!(4_100)), "its connection is of no more use");
    assert_eq!(door.call(Some(&shop), "eth_chainId", &none), Ok(json!("0x1e5a")));
}

/// A payment of nothing by an account that has ether, as it is sent.
fn payment(net: &Net, nonce: u64) -> String {
    let signer: PrivateKeySigner = net.accounts[0].parse().expect("a key");
    let request = TransactionRequest::default()
        .with_to(Address::ZERO)
        .with_value(U256::ZERO)
        .with_chain_id(0x1e5a)
        .with_nonce(nonce)
        .with_gas_limit(21_000)
        .with_max_fee_per_gas(1_000_000_000)
        .with_max_priority_fee_per_gas(0);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let signed = runtime.block_on(request.build(&EthereumWallet::from(signer))).expect("signed");
    hex::encode_prefixed(signed.encoded_2718())
}

#[test]
fn a_token_that_is_taken_back_ends_subscriptions() {
    let mut tokens = Vec::new();
    let mut file = PathBuf::new();
    let (net, door) = json_rpc(|config, _| {
        file = config.with_file_name("tokens.toml");
        tokens.push(add_user(&file, "reader", &[]));
        tokens.push(add_user(&file, "shop", &["--rights", "write"]));
        set(config, "gateway_tokens_file", "\"tokens.toml\"");
    });
    let [reader, shop] = [0, 1].map(|index: usize| tokens[index].clone());
    let pay = |nonce: u64| {
        let paid = door.call(Some(&shop), "eth_sendRawTransaction", &json!([payment(&net, nonce)]));
        let hash = json!([paid.expect("taken")]);
        wait_for("a receipt", || door.call(Some(&shop), "eth_getTransactionReceipt", &hash).ok());
    };
    assert_eq!(door.call(Some(&reader), "eth_chainId", &json!([])), Ok(json!("0x1e5a")));
    let authorization = format!("Authorization: Bearer {reader}\r\n");
    let mut socket = Socket::open(&door.address, &authorization).expect("let in");
    outcome(&socket.call(&call("eth_subscribe", &json!(["newHeads"])))).expect("subscribed");
    pay(0);
    assert_eq!(socket.next()["method"], "eth_subscription");
    works(&["token", "remove", text(&file), "reader"]);
    wait_for("the reader to be shut out", || {
        hang_up(&net);
        (door.call(Some(&reader), "eth_chainId", &json!([])) == Err(json!(401))).then_some(())
    });
    (1..4).for_each(pay);
    // What may have been on its way before comes first; of the last payment nothing is told.
    socket.send(&call("eth_chainId", &json!([])));
    let told: Vec<Value> = std::iter::from_fn(|| Some(socket.next()))
        .take_while(|message| message["error"]["code"] != 4_100)
        .collect();
    let last = door.call(Some(&shop), "eth_blockNumber", &json!([])).expect("a number");
    assert!(told.iter().all(|message| message["params"]["result"]["number"] != last), "{told:?}");
}

#[test]
fn wallets_in_browsers_may_send_a_token() {
    let (_net, door) = json_rpc(|config, _| {
        write_token(config, "token", GATEWAY_TOKEN);
        set(config, "gateway_token_file", "\"token\"");
    });
    let origin = "Origin: https://wallet.example\r\n";
    let asks = format!("{origin}Access-Control-Request-Headers: authorization\r\n");
    let leave = door.ask_with(&asks, ("OPTIONS", "/", "")).to_lowercase();
    assert_eq!(status_of(&leave), 204);
    assert!(leave.contains("access-control-allow-headers: authorization, content-type"), "{leave}");
    // The page is told that a token is asked for.
    let refused = door.ask_with(origin, ("POST", "/", "{}")).to_lowercase();
    assert_eq!(status_of(&refused), 401);
    assert!(refused.contains("access-control-allow-origin: *"), "{refused}");
}

#[test]
fn tokens_are_told_nobody() {
    let (net, door, token) = status_with_token(false, true);
    let config = &net.configs[0];
    for shown in [Some(&*token), Some("no-token-of-anybody-here"), None] {
        door.get(shown, "/status");
    }
    let status = door.ask(Some(&token), ("GET", "/status", ""));
    let metrics = door.ask(Some(&token), ("GET", "/metrics", ""));
    let check = quorate(&["config", "check", text(config), "--allow-warnings"]);
    let shown = works(&["config", "show", text(config)]);
    let process = net.processes.id(0).expect("it runs");
    let of_process = |name: &str| {
        let bytes = fs::read(format!("/proc/{process}/{name}")).expect("a process that runs");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let texts = [
        status,
        metrics,
        stdout(&check) + &stderr(&check),
        shown,
        of_process("cmdline"),
        of_process("environ"),
        net.processes.log_tail(0, 10_000),
        fs::read_to_string(config.with_file_name("http-tokens.toml")).expect("a file"),
    ];
    for (index, text) in texts.iter().enumerate() {
        for secret in [&*token, GATEWAY_TOKEN, "no-token-of-anybody-here"] {
            assert!(!text.contains(secret), "text {index} tells a token: {text}");
        }
    }
}

#[test]
fn the_status_command_reaches_doors_with_tls_and_tokens() {
    let (net, door, token) = status_with_token(false, true);
    door.get(None, "/healthz");
    let (folder, address) = (net.folder(), format!("https://{}", door.address));
    let file = write_token(&net.configs[0], "reader.token", &token);
    let file = ["--token-file", text(&file)];
    let ca = fixture("first.pem");
    let ca = ["--ca", text(&ca)];
    let status = |arguments: &[&[&str]]| quorate(&[&["status"][..], &arguments.concat()].concat());
    for arguments in [
        &[&["--http", &address][..], &ca, &file][..],
        &[&[text(&folder)][..], &file],
        &[&["--config", text(&net.configs[0])][..], &file],
        &[&["--config", text(&net.configs[0])][..], &ca, &file],
    ] {
        let look = status(arguments);
        // Its configuration says 0.0.0.0, which no certificate names.
        let is_found = arguments.len() < 3 || arguments[0][0] == "--http";
        assert_eq!(look.status.success(), is_found, "{arguments:?} {}", stdout(&look));
    }
    let silent = |arguments: &[&[&str]], reason: &str| {
        let look = status(arguments);
        assert_eq!(look.status.code(), Some(1), "{}", stdout(&look));
        assert!(stdout(&look).contains(reason), "{}", stdout(&look));
        assert!(!stdout(&look).contains(&token) && !stderr(&look).contains(&token));
    };
    silent(&[&[text(&folder)]], "it asks for a token");
    let other = fixture("second.pem");
    silent(&[&["--http", &address], &["--ca", text(&other)], &file], "certificate");
    // A configuration that names the token itself is enough.
    edit(&net.configs[0], "http_tokens_file = \"http-tokens.toml\"", "");
    set(&net.configs[0], "http_token_file", "\"reader.token\"");
    let look = status(&[&[text(&folder)]]);
    assert!(look.status.success(), "{}", stdout(&look));
}
