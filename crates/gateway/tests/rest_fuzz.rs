//! Requests that are made from the gateway's own description, good and bad, and answers that are
//! held against it.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use quorate_crypto::KeyCache;
use quorate_engine::Settings;
use quorate_gateway::rest::{OPENAPI, RestLimits, router};
use quorate_gateway::{ClientConfig, Connection, KvClient, check_answer};
use quorate_ledger::kv::Kv;
use quorate_node::config::load_committee;
use quorate_node::ports::free_ports;
use quorate_node::{NodeConfig, Testnet, TestnetPlan, Validator};
use quorate_types::ReplicaId;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// A request, and which of the document's operations it is for.
#[derive(Clone, Debug)]
struct Sent {
    path: String,
    method: String,
    address: String,
    body: Vec<u8>,
}

/// Resolves a reference within the document.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(place) => document.pointer(&place[1..]).expect("a reference to something"),
        None => value,
    }
}

/// The types that a schema allows.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Values that a schema allows.
fn values(document: &Value, schema: &Value) -> BoxedStrategy<Value> {
    let schema = resolve(document, schema);
    if let Some(choices) = schema["oneOf"].as_array() {
        let each: Vec<_> = choices.iter().map(|choice| values(document, choice)).collect();
        return proptest::strategy::Union::new(each).boxed();
    }
    if let Some(words) = schema["enum"].as_array() {
        return select(words.clone()).boxed();
    }
    let each = types(schema).into_iter().map(|name| values_of_type(document, schema, name));
    proptest::strategy::Union::new(each).boxed()
}

fn values_of_type(document: &Value, schema: &Value, name: &str) -> BoxedStrategy<Value> {
    match name {
        "null" => Just(Value::Null).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "integer" => {
            let least = schema["minimum"].as_u64().unwrap_or(0);
            let most = schema["maximum"].as_u64().unwrap_or(u64::MAX);
            prop_oneof![Just(least), Just(most), least..=most].prop_map(Value::from).boxed()
        }
        // Few different ones, so that some meet.
        "string" if schema["pattern"].is_string() => {
            vec(0u8..2, 0..3).prop_map(|bytes| hex::encode(bytes).into()).boxed()
        }
        "string" if schema["minLength"] == 1 => "[ab/ü]{1,2}".prop_map(Value::from).boxed(),
        "string" => ".{0,12}".prop_map(Value::from).boxed(),
        "array" => {
            let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
            vec(values(document, &schema["items"]), least..least + 4).prop_map(Value::from).boxed()
        }
        "object" => objects(document, schema),
        other => panic!("a type that is not made yet: {other}"),
    }
}

fn objects(document: &Value, schema: &Value) -> BoxedStrategy<Value> {
    let required = required(schema);
    let properties = schema["properties"].as_object().expect("properties");
    let members: Vec<_> = properties
        .iter()
        .map(|(name, schema)| {
            let name = name.clone();
            let is_required = required.contains(name.as_str());
            let member = values(document, schema).prop_map(move |value| (name.clone(), value));
            if is_required {
                member.prop_map(Some).boxed()
            } else {
                proptest::option::of(member).boxed()
            }
        })
        .collect();
    members.prop_map(|members| members.into_iter().flatten().collect::<Map<_, _>>().into()).boxed()
}

fn required(schema: &Value) -> BTreeSet<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn garbage() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 1..12), ".{1,12}".prop_map(String::into_bytes)]
}

/// Mostly what the schema allows.
fn texts(document: &Value, schema: &Value) -> BoxedStrategy<Vec<u8>> {
    let plain = values(document, schema).prop_map(|value| match value {
        Value::String(text) => text.into_bytes(),
        other => other.to_string().into_bytes(),
    });
    prop_oneof![9 => plain, 1 => garbage()].boxed()
}

fn encoded(bytes: &[u8]) -> String {
    percent_encode(bytes, NON_ALPHANUMERIC).to_string()
}

fn bodies(document: &Value, operation: &Value) -> BoxedStrategy<Vec<u8>> {
    let Some(content) = operation["requestBody"]["content"].as_object() else {
        return Just(Vec::new()).boxed();
    };
    let (kind, described) = content.iter().next().expect("a kind of content");
    if kind != "application/json" {
        return prop_oneof![4 => vec(0u8..2, 0..3), 1 => vec(any::<u8>(), 65_530..65_540)].boxed();
    }
    let whole = values(document, &described["schema"]).prop_map(|value| value.to_string());
    let whole = whole.prop_map(String::into_bytes).boxed();
    let cut = (whole.clone(), any::<prop::sample::Index>()).prop_map(|(mut text, place)| {
        text.truncate(place.index(text.len()));
        text
    });
    prop_oneof![8 => whole, 1 => cut, 1 => garbage()].boxed()
}

/// Requests for one operation of the document.
fn requests_of(
    document: &Value,
    path: &str,
    method: &str,
    operation: &Value,
) -> BoxedStrategy<Sent> {
    let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    let (in_path, in_query): (Vec<_>, Vec<_>) =
        parameters.into_iter().partition(|parameter| parameter["in"] == "path");
    let key = match in_path.first() {
        Some(parameter) => texts(document, &parameter["schema"]),
        None => Just(Vec::new()).boxed(),
    };
    let query: Vec<_> = in_query
        .iter()
        .map(|parameter| {
            let name = parameter["name"].as_str().expect("a name").to_owned();
            proptest::option::of(texts(document, &parameter["schema"]))
                .prop_map(move |value| value.map(|value| format!("{name}={}", encoded(&value))))
        })
        .collect();
    let stray = proptest::option::weighted(0.05, garbage().prop_map(|name| encoded(&name)));
    let (path, method) = (path.to_owned(), method.to_owned());
    (key, query, stray, bodies(document, operation))
        .prop_map(move |(key, query, stray, body)| {
            let query: Vec<String> = query.into_iter().flatten().chain(stray).collect();
            let address = format!("{}?{}", path.replace("{key}", &encoded(&key)), query.join("&"));
            Sent { path: path.clone(), method: method.clone(), address, body }
        })
        .boxed()
}

fn requests(document: &Value) -> BoxedStrategy<Sent> {
    let paths = document["paths"].as_object().expect("paths");
    let each = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("methods");
        methods.iter().map(|(method, operation)| requests_of(document, path, method, operation))
    });
    proptest::strategy::Union::new(each).boxed()
}

/// Checks a value against its schema; the error names the part that is not allowed.
fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolve(document, schema);
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|choice| check(document, choice, value).is_ok());
        return match fitting.count() {
            1 => Ok(()),
            count => Err(format!("{value} fits {count} of {}", choices.len())),
        };
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return Err(format!("{value} is none of {}", schema["enum"]));
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !types(schema).contains(&kind) {
        return Err(format!("{value} is not of type {}", schema["type"]));
    }
    let is_hex = schema["pattern"].is_string();
    match value {
        Value::String(text) if is_hex && hex::decode(text).is_err() => {
            Err(format!("{text} is not in hexadecimal"))
        }
        Value::Array(items) => {
            items.iter().try_for_each(|item| check(document, &schema["items"], item))
        }
        Value::Object(members) => check_object(document, schema, members),
        _ => Ok(()),
    }
}

fn check_object(
    document: &Value,
    schema: &Value,
    members: &Map<String, Value>,
) -> Result<(), String> {
    if let Some(missing) = required(schema).into_iter().find(|name| !members.contains_key(*name)) {
        return Err(format!("'{missing}' is missing in {}", Value::from(members.clone())));
    }
    let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
    members.iter().try_for_each(|(name, value)| match properties.get(name) {
        Some(schema) => check(document, schema, value),
        None => Err(format!("'{name}' is not described")),
    })
}

/// Checks an answer against the document; the error names the part that is not described.
fn check_answer_to(
    document: &Value,
    sent: &Sent,
    (status, headers, content): (StatusCode, &HeaderMap, &[u8]),
) -> Result<(), String> {
    let own =
        [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
    if status.is_server_error() && !own.contains(&status) {
        return Err(format!("{status}"));
    }
    let responses = &document["paths"][&sent.path][&sent.method]["responses"];
    let described = resolve(document, &responses[status.as_str()]);
    if described.is_null() {
        return Err(format!("{status} is not described: {}", String::from_utf8_lossy(content)));
    }
    for (name, header) in described["headers"].as_object().into_iter().flatten() {
        if header["required"] == true && !headers.contains_key(name) {
            return Err(format!("{status} comes without {name}"));
        }
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default();
    let schema = &described["content"][kind]["schema"];
    if schema.is_null() {
        return Err(format!("{status} comes as '{kind}', which is not described"));
    }
    if kind != "application/json" {
        return Ok(());
    }
    let content = serde_json::from_slice(content).map_err(|error| error.to_string())?;
    check(document, schema, &content)
}

async fn answer(pages: &Router, sent: &Sent) -> (StatusCode, HeaderMap, Vec<u8>) {
    let request = Request::builder()
        .method(sent.method.to_uppercase().as_str())
        .uri(&sent.address)
        .header("Content-Type", "application/json")
        .body(Body::from(sent.body.clone()))
        .expect("a request");
    let (head, body) = pages.clone().oneshot(request).await.expect("an answer").into_parts();
    let content = to_bytes(body, usize::MAX).await.expect("a body");
    (head.status, head.headers, content.to_vec())
}

/// Sends a request and holds the answer against the document; its status.
fn send(
    runtime: &Runtime,
    pages: &Router,
    document: &Value,
    sent: &Sent,
) -> Result<StatusCode, String> {
    let (status, headers, content) = runtime.block_on(answer(pages, sent));
    check_answer_to(document, sent, (status, &headers, &content)).map(|()| status)
}

fn document() -> Value {
    serde_json::from_str(OPENAPI).expect("JSON")
}

/// Sends `cases` requests and holds the answers against the document.
fn fuzz(pages: &Router, cases: u32) {
    let document = document();
    let runtime = Runtime::new().expect("a runtime");
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&requests(&document), |sent| {
        send(&runtime, pages, &document, &sent).map(drop).map_err(TestCaseError::fail)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Requests with their answers' statuses: what luck may leave out.
fn check_named(pages: &Router, named: &[(&str, &str, &str, &[u8], u16)]) {
    let document = document();
    let runtime = Runtime::new().expect("a runtime");
    for (method, path, query, body, expected) in named {
        let address = format!("{}?{query}", path.replace("{key}", "named"));
        let (path, method, body) = ((*path).into(), (*method).into(), body.to_vec());
        let sent = Sent { path, method, address, body };
        let status = send(&runtime, pages, &document, &sent).expect("a described answer");
        assert_eq!(status, *expected, "{} {}", sent.method, sent.address);
    }
}

/// A committee of one with the files of its validator, which does not run yet.
fn committee_of_one() -> (TempDir, Testnet) {
    let place = tempfile::tempdir().expect("a folder");
    let plan = TestnetPlan {
        members: 1,
        base_port: free_ports(2).expect("free ports"),
        service: Kv::NAME.into(),
        settings: Settings { execution_certificates: true, ..Settings::default() },
        ..TestnetPlan::default()
    };
    let testnet = Testnet::create(&place.path().join("net"), &plan).expect("written");
    (place, testnet)
}

fn pages(testnet: &Testnet, call_timeout: Duration) -> Router {
    let committee = load_committee(&testnet.committee, KeyCache::On).expect("a committee");
    let config = ClientConfig {
        call_timeout,
        ..Connection::config(Arc::new(committee), ReplicaId(0), check_answer)
    };
    let connection = Connection::open(&config).expect("a connection");
    router(KvClient::new(connection), None, RestLimits::default())
}

#[test]
fn without_a_committee_every_answer_is_one_that_is_described() {
    let (_place, testnet) = committee_of_one();
    let pages = pages(&testnet, Duration::from_millis(10));
    fuzz(&pages, 512);
    check_named(&pages, &[("get", "/v1/kv/{key}", "", b"", 504)]);
}

#[test]
fn with_a_committee_every_answer_is_one_that_is_described() {
    let (_place, testnet) = committee_of_one();
    let mut config = NodeConfig::load(&testnet.configs[0]).expect("a configuration");
    config.http = "127.0.0.1:0".into();
    let validator = Validator::start(&config, Box::new(Kv::default())).expect("a validator");
    let pages = pages(&testnet, Duration::from_secs(30));
    fuzz(&pages, 1_024);
    let foreign = br#"{"format": "quorate receipt v3", "network": "", "epoch": 1, "client": "", "sequence": 0,
        "height": 0, "proposed_at_ms": 0, "operations": [], "results": [], "signers": [], "proof": ""}"#;
    let get = br#"[{"op": "get", "key": "00"}]"#;
    let swap =
        br#"[{"op": "put", "key": "00", "value": "01"}, {"op": "compare_and_swap", "key": "00"}]"#;
    check_named(
        &pages,
        &[
            ("delete", "/v1/kv/{key}", "", b"", 200),
            ("get", "/v1/kv/{key}", "", b"", 404),
            ("put", "/v1/kv/{key}", "expected_absent=true", b"one", 200),
            ("put", "/v1/kv/{key}", "expected_absent=true", b"two", 409),
            ("put", "/v1/kv/{key}", "", &[7; 65_537], 413),
            ("get", "/v1/kv/{key}", "", b"", 200),
            ("get", "/v1/kv", "", b"", 200),
            ("get", "/v1/kv", "limit=none", b"", 400),
            ("post", "/v1/batch", "", get, 200),
            ("post", "/v1/batch", "", swap, 409),
            ("post", "/v1/receipts/verify", "", foreign, 422),
            ("get", "/v1/status", "", b"", 200),
        ],
    );
    validator.stop().expect("stopped");
}
