use super::failure::Failure;
use super::parameters::{Parameters, key};
use super::{
    Gateway, GatewayConfig, OPENAPI, RestLimits, User, guarded_routes, open_routes, router,
};
use crate::{ClientConfig, Connection, KvClient, check_answer};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use axum::response::Response;
use bytes::Bytes;
use quorate_crypto::{KeyCache, KeyFile, SchemeKind};
use quorate_node::http_access::Users;
use quorate_types::{AgreedSettings, Committee, CommitteeFile, Epoch, History, Member, ReplicaId};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

const TOKEN: &str = "a-token-of-some-length";

/// A committee that nobody reaches.
fn committee() -> Committee {
    let mut seed = 0;
    let member = |index: u16| {
        let keys = KeyFile::generate(SchemeKind::Ed25519, &mut |bytes: &mut [u8]| {
            seed += 1;
            bytes.fill(seed);
        })
        .expect("members make their own");
        Member::new(&keys.public(), format!("127.0.0.1:{}", 1 + index))
    };
    let file = CommitteeFile {
        name: "test".into(),
        network: None,
        epoch: Epoch(1),
        scheme: SchemeKind::Ed25519.to_string(),
        redundancy: 0,
        settings: AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: (0..4).map(member).collect(),
    };
    Committee::load(&file, KeyCache::On).expect("a committee")
}

fn pages(token: Option<&str>, limits: RestLimits) -> Router {
    let connection = Connection::open(&ClientConfig {
        call_timeout: Duration::from_millis(20),
        ..Connection::config(Arc::new(committee()), ReplicaId(0), check_answer)
    });
    let users = token.map(|text| Arc::new(owner_of(text)));
    router(KvClient::new(connection.expect("a connection")), users, limits)
}

fn owner_of(token: &str) -> Users<User> {
    let file = tempfile::NamedTempFile::new().expect("a file, readable by its owner");
    fs::write(file.path(), token).expect("written");
    Users::load_token(file.path()).expect("a token")
}

fn request(method: Method, address: &str, body: impl Into<Body>) -> Request<Body> {
    let json = (method == Method::POST).then_some("application/json");
    let mut request = Request::builder().method(method).uri(address);
    if let Some(json) = json {
        request = request.header(header::CONTENT_TYPE, json);
    }
    request.body(body.into()).expect("a request")
}

async fn ask(pages: &Router, request: Request<Body>) -> Response {
    pages.clone().oneshot(request).await.expect("an answer")
}

async fn content(response: Response) -> Value {
    let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn uri(text: &str) -> Uri {
    text.parse().expect("an address")
}

#[test]
fn a_key_is_a_paths_last_part_as_bytes() {
    for (path, expected) in [
        ("/v1/kv/colour", &b"colour"[..]),
        ("/v1/kv/a%2Fb%20c?receipt=true", b"a/b c"),
        ("/v1/kv/%ff%00", b"\xff\0"),
        ("/v1/kv/100%", b"100%"),
    ] {
        assert_eq!(key(&uri(path)), Bytes::from(expected), "{path}");
    }
}

#[test]
fn parameters_are_taken_once_and_all_of_them() {
    let uri = uri("/?from=6B&limit=7&receipt=true&consistency=linear%69zable");
    let mut parameters = Parameters::of(&uri).expect("parameters");
    assert_eq!(parameters.hex("from"), Ok(Some(Bytes::from("k"))));
    assert_eq!(parameters.hex("to"), Ok(None));
    assert_eq!(parameters.number("limit"), Ok(Some(7)));
    assert_eq!(parameters.flag("receipt"), Ok(true));
    assert_eq!(parameters.is_linearizable(), Ok(true));
    assert_eq!(parameters.finish(), Ok(()));
}

#[test]
fn parameters_that_are_wrong_are_named() {
    let refused = |query: &str, take: &dyn Fn(&mut Parameters) -> Result<(), Failure>| {
        let taken = Parameters::of(&uri(query)).and_then(|mut parameters| {
            take(&mut parameters)?;
            parameters.finish()
        });
        let failure = taken.expect_err(query);
        assert_eq!(failure.status, StatusCode::BAD_REQUEST);
        failure.error
    };
    let none = |_: &mut Parameters| Ok(());
    assert_eq!(refused("/?a=1&a=2", &none), "the parameter 'a' is there twice");
    assert_eq!(refused("/?a=%ff", &none), "a parameter is not text in UTF-8");
    assert!(refused("/?form=6b", &none).starts_with("there is no parameter 'form' here"));
    let hex = |parameters: &mut Parameters| parameters.hex("from").map(drop);
    assert!(refused("/?from=6", &hex).starts_with("'from' is not in hexadecimal digits"));
    let number = |parameters: &mut Parameters| parameters.number("limit").map(drop);
    assert!(refused("/?limit=-1", &number).starts_with("'limit' is a whole number"));
    let flag = |parameters: &mut Parameters| parameters.flag("receipt").map(drop);
    assert_eq!(refused("/?receipt", &flag), "'receipt' is true or false");
    let consistency = |parameters: &mut Parameters| parameters.is_linearizable().map(drop);
    assert!(refused("/?consistency=strong", &consistency).starts_with("'consistency' is"));
}

#[tokio::test]
async fn document_and_router_have_the_same_operations() {
    let document: Value = serde_json::from_str(OPENAPI).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let described: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods");
            methods.keys().map(|method| (path.clone(), method.to_uppercase()))
        })
        .collect();
    let routed: BTreeSet<(String, String)> = guarded_routes()
        .into_iter()
        .chain(open_routes())
        .map(|route| (route.path.to_owned(), route.method.to_string()))
        .collect();
    assert_eq!(described, routed);

    let pages = pages(None, RestLimits::default());
    for (path, method) in described {
        let method: Method = method.parse().expect("a method");
        let address = path.replace("{key}", "key");
        let status = ask(&pages, request(method.clone(), &address, "[]")).await.status();
        let absent = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
        assert!(!absent.contains(&status), "{method} {path}: {status}");
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_refused_in_json() {
    let pages = pages(None, RestLimits::default());
    for (method, path, status) in [
        (Method::GET, "/", StatusCode::NOT_FOUND),
        (Method::GET, "/v1/kv/", StatusCode::NOT_FOUND),
        (Method::GET, "/v1/kv/a/b", StatusCode::NOT_FOUND),
        (Method::POST, "/v1/kv/a", StatusCode::METHOD_NOT_ALLOWED),
        (Method::DELETE, "/v1/status", StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let response = ask(&pages, request(method.clone(), path, "")).await;
        assert_eq!(response.status(), status, "{method} {path}");
        let error = content(response).await["error"].as_str().expect("a reason").to_owned();
        assert!(error.contains(path) && error.contains("/openapi.json"), "{error}");
    }
}

#[tokio::test]
async fn the_token_guards_all_but_status_and_description() {
    let pages = pages(Some(TOKEN), RestLimits::default());
    for route in guarded_routes() {
        let address = route.path.replace("{key}", "key");
        let response = ask(&pages, request(route.method, &address, "")).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{address}");
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
    }
    for route in open_routes() {
        let response = ask(&pages, request(route.method, route.path, "")).await;
        assert_eq!(response.status(), StatusCode::OK, "{}", route.path);
    }
    let mut shown = request(Method::GET, "/v1/kv/key", "");
    let token = format!("Bearer {TOKEN}").parse().expect("a value");
    shown.headers_mut().insert(header::AUTHORIZATION, token);
    assert_eq!(ask(&pages, shown).await.status(), StatusCode::GATEWAY_TIMEOUT);
}

/// A page in a browser on this machine, and one whose name was made to mean this machine.
#[tokio::test]
async fn without_a_token_no_web_page_is_let_in() {
    let asked = |header: header::HeaderName, value: &'static str| {
        let mut request = request(Method::GET, "/v1/kv/a", Body::empty());
        request.headers_mut().insert(header, HeaderValue::from_static(value));
        request.headers_mut().insert(
            header::AUTHORIZATION,
            HeaderValue::from_static("Bearer a-token-of-some-length"),
        );
        request
    };
    let pages_of = [(header::ORIGIN, "https://evil.example"), (header::HOST, "evil.example")];
    let programs = [(header::HOST, "127.0.0.1:9200"), (header::HOST, "localhost:9200")];
    let (open, closed) =
        (pages(None, RestLimits::default()), pages(Some(TOKEN), RestLimits::default()));
    for (header, value) in pages_of {
        let response = ask(&open, asked(header.clone(), value)).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{value}");
        let error = content(response).await["error"].to_string();
        assert!(error.contains("this gateway has no token"), "{error}");
        let response = ask(&closed, asked(header, value)).await;
        assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT, "{value}: the token is enough");
    }
    for (header, value) in programs {
        let response = ask(&open, asked(header, value)).await;
        assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT, "{value}: nobody answers");
    }
}

/// What a page can send without asking first: a form, or text.
#[tokio::test]
async fn json_is_taken_where_it_says_so_alone() {
    let pages = pages(Some(TOKEN), RestLimits::default());
    for (kind, status) in [
        (None, StatusCode::UNSUPPORTED_MEDIA_TYPE),
        (Some("text/plain"), StatusCode::UNSUPPORTED_MEDIA_TYPE),
        (Some("application/x-www-form-urlencoded"), StatusCode::UNSUPPORTED_MEDIA_TYPE),
        (Some("application/json"), StatusCode::GATEWAY_TIMEOUT),
        (Some("Application/JSON; charset=utf-8"), StatusCode::GATEWAY_TIMEOUT),
    ] {
        let body = r#"[{"op": "get", "key": "6b"}]"#;
        let mut request = request(Method::POST, "/v1/batch", body);
        let bearer = HeaderValue::from_static("Bearer a-token-of-some-length");
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
        request.headers_mut().remove(header::CONTENT_TYPE);
        let kind = kind.map(HeaderValue::from_static);
        request.headers_mut().extend(kind.map(|kind| (header::CONTENT_TYPE, kind)));
        let response = ask(&pages, request).await;
        assert_eq!(response.status(), status);
        let error = content(response).await["error"].to_string();
        assert!(
            status != 415 || error.contains("send 'Content-Type: application/json'"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_it_is_sent() {
    let pages = pages(None, RestLimits::default());
    let long_key = format!("/v1/kv/{}", "k".repeat(1_025));
    let batch = |value_bytes: usize| {
        let step = format!(r#"{{"op":"put","key":"6b","value":"{}"}}"#, "00".repeat(value_bytes));
        format!("[{step},{step},{step}]")
    };
    for (method, path, body, status, reason) in [
        (Method::PUT, "/v1/kv/a", "x".repeat(65_537), 413, "at most 65536 bytes"),
        (Method::PUT, "/v1/kv/a", "x".repeat(65_536), 504, "no answer"),
        (Method::PUT, &long_key, String::new(), 400, "a key has 1 to 1024 bytes"),
        (Method::POST, "/v1/batch", " ".repeat((1 << 20) + 1), 413, "at most 1048576 bytes"),
        (Method::POST, "/v1/batch", batch(65_537), 413, "a value has at most 65536 bytes"),
        (Method::POST, "/v1/batch", batch(65_536), 413, "at most 131072 bytes"),
        (Method::POST, "/v1/batch", "[]".into(), 400, "1 to 256 steps"),
        (Method::POST, "/v1/receipts/verify", "x".repeat(5 << 20), 413, "at most 4194304 bytes"),
        (Method::GET, "/v1/kv?limit=0", String::new(), 400, "1 to 1000 entries"),
        (Method::GET, "/v1/kv?from=62&to=61", String::new(), 400, "above its start"),
        (Method::PUT, "/v1/kv/a?expected=&expected_absent=true", String::new(), 400, "exclude"),
    ] {
        let response = ask(&pages, request(method.clone(), path, body)).await;
        assert_eq!(response.status(), status, "{method} {path}");
        let error = content(response).await["error"].as_str().expect("a reason").to_owned();
        assert!(error.contains(reason), "{method} {path}: {error}");
    }
}

fn gateway(limits: RestLimits) -> Gateway {
    let history = History::new(Arc::new(committee()));
    let config = GatewayConfig {
        call_timeout: Duration::from_millis(20),
        limits,
        ..GatewayConfig::new("127.0.0.1:0".into(), history, ReplicaId(0))
    };
    Gateway::start(&config).expect("a gateway")
}

fn connect(gateway: &Gateway, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.address()).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
    stream.write_all(sent.as_bytes()).expect("sent");
    stream
}

/// Reads until the gateway closes the connection.
fn read_all(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn converse(gateway: &Gateway, sent: &str) -> String {
    read_all(connect(gateway, sent))
}

const GET: &str = "GET /v1/kv/a HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";

/// A request whose body is still to come. The gateway says that it waits for it once it has let the
/// request in.
const PUT: &str = "PUT /v1/kv/a HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
                   Content-Length: 5\r\nExpect: 100-continue\r\n\r\n";
const GO_ON: &str = "HTTP/1.1 100 Continue\r\n\r\n";

#[test]
fn a_request_too_many_is_refused_and_there_is_room_again() {
    let gateway = gateway(RestLimits { requests_max: 1, ..RestLimits::default() });
    let mut first = connect(&gateway, PUT);
    let mut go_on = [0; GO_ON.len()];
    first.read_exact(&mut go_on).expect("let in");
    assert_eq!(go_on, GO_ON.as_bytes());
    let busy = converse(&gateway, GET);
    assert!(busy.starts_with("HTTP/1.1 503") && busy.contains("retry-after: 1\r\n"), "{busy}");
    first.write_all(b"value").expect("sent");
    assert!(read_all(first).starts_with("HTTP/1.1 504"), "nobody answers the gateway");
    assert!(converse(&gateway, GET).starts_with("HTTP/1.1 504"), "there is room again");
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    let body_timeout = Duration::from_millis(100);
    let gateway = gateway(RestLimits { body_timeout, ..RestLimits::default() });
    let answer = converse(&gateway, PUT);
    let given_up = answer.strip_prefix(GO_ON).expect("let in");
    assert!(given_up.starts_with("HTTP/1.1 408"), "{given_up}");
}

#[test]
fn a_connection_without_a_whole_head_is_closed_and_makes_room() {
    let head_timeout = Duration::from_millis(200);
    let limits = RestLimits { head_timeout, ..RestLimits::default() }.with_connections(1);
    let gateway = gateway(limits);
    let answer = converse(&gateway, "GET /v1/status HTTP/1.1\r\n");
    assert!(!answer.contains("200 OK"), "{answer}");
    assert!(converse(&gateway, GET).starts_with("HTTP/1.1 504"));
}
