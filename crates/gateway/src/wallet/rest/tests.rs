use super::{OPENAPI, guarded_routes, open_routes, router};
use super::{Right, WalletUser};
use crate::rest::{RestLimits, WebPages};
use crate::wallet::tests::network::{ISSUER, Local, key, network, secret};
use crate::wallet::{PaymentService, Wallet};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use quorate_crypto::hash;
use quorate_node::http_access::{TokensFile, Users};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tower::ServiceExt;

const ANNE: u8 = 1;
const BOB: u8 = 2;
/// An origin whose pages may ask.
const PAGE: &str = "https://pages.example";

/// A user whose token is its name and a few letters.
fn user(name: &str, right: Right, limits: Option<(u64, u64)>) -> WalletUser {
    let (payment_max, day_max) = limits.unzip();
    let hash = hash(token(name).as_bytes()).to_hex();
    WalletUser { name: name.to_owned(), hash, right, payment_max, day_max }
}

fn token(name: &str) -> String {
    format!("token-of-{name}")
}

fn bearer(name: &str) -> String {
    format!("Bearer {}", token(name))
}

/// One user of each kind.
fn users() -> Vec<WalletUser> {
    vec![
        user("auditor", Right::Read, None),
        user("till-1", Right::Request, None),
        user("till-2", Right::Request, None),
        user("refunds", Right::Pay, Some((20, 50))),
        user("owner", Right::All, None),
    ]
}

/// A shop's wallet with 100 units, and its authorities.
struct Shop {
    _folder: TempDir,
    authorities: Arc<Local>,
    service: Arc<PaymentService>,
    pages: Router,
}

impl Shop {
    fn new(owner: u8, users: &[WalletUser]) -> Self {
        Self::with_timeout(Duration::from_secs(60), owner, users)
    }

    fn with_timeout(timeout: Duration, owner: u8, users: &[WalletUser]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let network = network("test", &[(ANNE, 100)]);
        let authorities = Local::new(&network);
        let path = folder.path().join("wallet");
        Wallet::create(&path, key(owner)).expect("made");
        let mut wallet = Wallet::open(&path, network, secret(owner)).expect("a wallet");
        wallet.receive_genesis().expect("stored");
        let service = PaymentService::new(wallet, Arc::clone(&authorities) as _, None);
        let file = folder.path().join("tokens.toml");
        let content = TokensFile { tokens: users.to_vec() };
        fs::write(&file, toml::to_string(&content).expect("a table")).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("set");
        let users = (!users.is_empty()).then(|| Users::load(&file).expect("users"));
        let web_pages = WebPages::served(Vec::new(), &[PAGE.to_owned()]).expect("an origin");
        let users = users.map(Arc::new);
        let limits = RestLimits::default();
        let pages = router(Arc::clone(&service), users, web_pages, timeout, limits);
        Self { _folder: folder, authorities, service, pages }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> (StatusCode, Value) {
        let json = (method == Method::POST).then_some(("Content-Type", "application/json"));
        let mut request = Request::builder().method(method).uri(path);
        if let Some((name, value)) = json {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).expect("a request");
        let response = self.pages.clone().oneshot(request).await.expect("an answer");
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        let text = || Value::from(String::from_utf8_lossy(&bytes));
        (status, serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
    }

    async fn ask_as(
        &self,
        user: &str,
        method: Method,
        path: &str,
        body: String,
    ) -> (StatusCode, Value) {
        self.ask(method, path, &[("Authorization", &bearer(user)[..])], body).await
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.ask(Method::GET, path, &[], String::new()).await
    }

    async fn post(&self, path: &str, body: String) -> (StatusCode, Value) {
        self.ask(Method::POST, path, &[], body).await
    }

    async fn pay(&self, key: &str, to: u8, value: u64) -> (StatusCode, Value) {
        let body = json!({ "to": self::key(to).to_string(), "value": value, "memo": "cup" });
        self.ask(Method::POST, "/v1/payments", &[("Idempotency-Key", key)], body.to_string()).await
    }
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
    let shop = Shop::new(ANNE, &[]);
    for (path, method) in described {
        let (status, _) = shop
            .ask(method.parse().expect("a method"), &path.replace("{id}", "id"), &[], String::new())
            .await;
        let absent = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
        assert!(!absent.contains(&status), "{method} {path}: {status}");
    }
    assert_eq!(shop.get("/v1/nothing").await.0, StatusCode::NOT_FOUND);
}

/// Every member that answers have is described, and the other way round.
#[tokio::test]
async fn answers_have_the_members_that_are_described() {
    let document: Value = serde_json::from_str(OPENAPI).expect("JSON");
    let members = |value: &Value| -> BTreeSet<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    };
    let described = |name: &str| members(&document["components"]["schemas"][name]["properties"]);
    let shop = Shop::new(ANNE, &[]);
    let (_, paid) = shop.pay("one", BOB, 30).await;
    assert_eq!(members(&paid), described("Payment"));
    assert_eq!(members(&paid["receipt"]), described("Receipt"));
    assert_eq!(members(&shop.get("/v1/balance").await.1), described("Balance"));
    let history = shop.get("/v1/history").await.1;
    assert_eq!(members(&history), described("History"));
    assert_eq!(members(&history["lines"][0]), described("Line"));
    let request = shop.post("/v1/requests", r#"{"value": 5}"#.into()).await.1;
    assert_eq!(members(&request), described("Request"));
    assert_eq!(members(&request["request"]), described("PaymentRequest"));
    let list = shop.get("/v1/requests").await.1;
    assert_eq!(members(&list), described("Requests"));
    let taken = shop.post("/v1/receipts?check_only=true", paid["receipt"].to_string()).await;
    assert_eq!(members(&taken.1), described("Received"));
}

#[tokio::test]
async fn a_key_pays_once_and_the_payee_takes_the_receipt() {
    let (anne, bob) = (Shop::new(ANNE, &[]), Shop::new(BOB, &[]));
    let (status, paid) = anne.pay("order 1", BOB, 30).await;
    assert_eq!((status, &paid["state"]), (StatusCode::OK, &json!("certified")));
    let (status, again) = anne.pay("order 1", BOB, 30).await;
    assert_eq!((status, &again["id"]), (StatusCode::OK, &paid["id"]));
    let (status, other) = anne.pay("order 1", BOB, 31).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(other["error"].as_str().expect("a reason").contains("use a new key"));
    let path = format!("/v1/payments/{}", paid["id"].as_str().expect("a name"));
    assert_eq!(anne.get(&path).await, (StatusCode::OK, paid.clone()));

    let receipt = paid["receipt"].to_string();
    let (status, taken) = bob.post("/v1/receipts", receipt.clone()).await;
    assert_eq!(
        (status, &taken["added"], &taken["memo"]),
        (StatusCode::OK, &json!(30), &json!("cup"))
    );
    assert_eq!(bob.post("/v1/receipts", receipt.clone()).await.1["added"], 0);
    assert_eq!(bob.get("/v1/balance").await.1["free"], 30);
    assert_eq!(anne.get("/v1/balance").await.1["free"], 70);
    let (status, refused) = anne.post("/v1/receipts", receipt.clone()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused["error"].as_str().expect("a reason").contains("not this wallet"));
    let forged = receipt.replacen("\"value\":30", "\"value\":31", 1);
    let (status, refused) = bob.post("/v1/receipts", forged).await;
    assert_eq!((status, &refused["valid"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!(false)));
    let lines = anne.get("/v1/history?from=1&limit=1").await.1;
    assert_eq!((&lines["lines"][0]["kind"], &lines["next"]), (&json!("pay"), &Value::Null));
}

#[tokio::test]
async fn a_payment_without_a_quorum_is_accepted_and_a_copys_is_lost() {
    let shop = Shop::with_timeout(Duration::from_millis(200), ANNE, &[]);
    shop.authorities.silence(&[0, 1]);
    let (status, open) = shop.pay("one", BOB, 30).await;
    assert_eq!((status, &open["state"]), (StatusCode::ACCEPTED, &json!("unfinished")));
    assert_eq!(shop.get("/v1/balance").await.1["reserved"], 100);
    let (status, short) = shop.pay("two", BOB, 1).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(short["error"].as_str().expect("a reason").contains("not finished"));

    // Another wallet of the same key: its transaction over the same coin comes to the authorities
    // first.
    let (first, late) = (Shop::new(ANNE, &[]), Shop::new(ANNE, &[]));
    let elsewhere = first.pay("a", BOB, 30).await.1;
    for shown in first.authorities.shown() {
        assert!(late.authorities.outcome(&shown).is_some());
    }
    let (status, lost) = late.pay("b", ISSUER, 40).await;
    assert_eq!((status, &lost["payment"]["state"]), (StatusCode::CONFLICT, &json!("conflicting")));
    assert!(lost["error"].as_str().expect("a reason").contains("double spend"));
    assert_eq!(lost["payment"]["evidence"]["first"], elsewhere["id"]);
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let shop = Shop::new(ANNE, &[]);
    let bob = key(BOB).to_string();
    let pay = |to: &str, value: u64| json!({ "to": to, "value": value }).to_string();
    let keyed: &[(&str, &str)] = &[("Idempotency-Key", "k")];
    for (headers, path, body, status, reason) in [
        (&[][..], "/v1/payments", pay(&bob, 1), 400, "Idempotency-Key"),
        (keyed, "/v1/payments", pay("77", 1), 400, "64 hexadecimal digits"),
        (keyed, "/v1/payments", pay(&bob, 0), 400, "at least 1"),
        (keyed, "/v1/payments", pay(&bob, 101), 409, "101 are needed"),
        (keyed, "/v1/payments", "{}".into(), 400, "missing field `to`"),
        (keyed, "/v1/payments?fast=true", pay(&bob, 1), 400, "no parameter 'fast'"),
        (keyed, "/v1/payments", " ".repeat(20_000), 413, "at most 16384 bytes"),
        (keyed, "/v1/requests", r#"{"value": 0}"#.into(), 400, "at least 1"),
        (keyed, "/v1/receipts", "{}".into(), 400, "this is no quorate payment receipt v1"),
    ] {
        let (found, answer) = shop.ask(Method::POST, path, headers, body).await;
        let error = answer["error"].as_str().expect("a reason");
        assert!(found == status && error.contains(reason), "{path}: {found} {error}");
    }
    assert_eq!(shop.get("/v1/payments/77").await.0, StatusCode::BAD_REQUEST);
    let unknown = format!("/v1/payments/{}", "7".repeat(64));
    assert_eq!(shop.get(&unknown).await.0, StatusCode::NOT_FOUND);
    assert_eq!(shop.get("/v1/history?limit=0").await.0, StatusCode::BAD_REQUEST);
    assert_eq!(
        shop.service.with(|wallet| wallet.history().expect("read").len()),
        1,
        "nothing was begun"
    );
}

/// Each route with each token: what it may not do is refused before anything else is looked at.
#[tokio::test]
async fn a_token_is_for_its_purpose_and_nothing_else() {
    let shop = Shop::new(ANNE, &users());
    for (user, method, path, status) in [
        ("auditor", Method::GET, "/v1/balance", StatusCode::OK),
        ("auditor", Method::GET, "/v1/requests", StatusCode::OK),
        ("auditor", Method::POST, "/v1/requests", StatusCode::FORBIDDEN),
        ("auditor", Method::POST, "/v1/payments", StatusCode::FORBIDDEN),
        ("auditor", Method::DELETE, "/v1/requests/0123456789abcdef", StatusCode::FORBIDDEN),
        ("till-1", Method::GET, "/v1/balance", StatusCode::FORBIDDEN),
        ("till-1", Method::GET, "/v1/history", StatusCode::FORBIDDEN),
        ("till-1", Method::POST, "/v1/payments", StatusCode::FORBIDDEN),
        ("till-1", Method::GET, "/v1/payments/id", StatusCode::FORBIDDEN),
        ("till-1", Method::GET, "/v1/requests", StatusCode::OK),
        ("refunds", Method::GET, "/v1/balance", StatusCode::FORBIDDEN),
        ("refunds", Method::GET, "/v1/requests/id/code", StatusCode::FORBIDDEN),
        ("refunds", Method::POST, "/v1/payments", StatusCode::BAD_REQUEST),
        ("owner", Method::POST, "/v1/payments", StatusCode::BAD_REQUEST),
        ("owner", Method::GET, "/v1/history", StatusCode::OK),
        ("nobody", Method::GET, "/v1/balance", StatusCode::UNAUTHORIZED),
        ("nobody", Method::POST, "/v1/receipts", StatusCode::UNAUTHORIZED),
    ] {
        let (found, _) = shop.ask_as(user, method.clone(), path, String::new()).await;
        assert_eq!(found, status, "{user} {method} {path}");
    }
    for route in guarded_routes() {
        let path = route.path.replace("{id}", "id");
        let (status, _) = shop.ask(route.method, &path, &[], String::new()).await;
        // A stranger brings receipts: this body is none.
        let is_open = path == "/v1/receipts";
        let expected = if is_open { StatusCode::BAD_REQUEST } else { StatusCode::UNAUTHORIZED };
        assert_eq!(status, expected, "{path}");
    }
    for path in ["/", "/openapi.json"] {
        assert_eq!(shop.get(path).await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn who_may_pay_has_limits_and_sees_their_own_payments() {
    let shop = Shop::new(ANNE, &users());
    let pay = async |user: &str, key: &str, value: u64| {
        let body = json!({ "to": self::key(BOB).to_string(), "value": value }).to_string();
        let headers = [("Idempotency-Key", key), ("Authorization", &bearer(user)[..])];
        shop.ask(Method::POST, "/v1/payments", &headers, body).await
    };
    let (status, refused) = pay("refunds", "a", 21).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(refused["error"].as_str().expect("a reason").contains("at most 20 at once"));
    let (_, first) = pay("refunds", "b", 20).await;
    assert_eq!((&first["state"], &first["by"]), (&json!("certified"), &json!("refunds")));
    pay("refunds", "c", 20).await;
    let (status, refused) = pay("refunds", "d", 11).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(refused["error"].as_str().expect("a reason").contains("has paid 40"));
    assert_eq!(pay("refunds", "b", 20).await.1["id"], first["id"], "the same payment");
    assert_eq!(pay("refunds", "d", 10).await.0, StatusCode::OK);
    let (status, other) = pay("owner", "e", 30).await;
    assert_eq!((status, &other["by"]), (StatusCode::OK, &json!("owner")));
    for (payment, status) in [(&first, StatusCode::OK), (&other, StatusCode::NOT_FOUND)] {
        let path = format!("/v1/payments/{}", payment["id"].as_str().expect("a name"));
        let (found, _) = shop.ask_as("refunds", Method::GET, &path, String::new()).await;
        assert_eq!(found, status);
        assert_eq!(shop.ask_as("auditor", Method::GET, &path, String::new()).await.0, 200);
    }
}

/// A stranger brings a receipt: it is taken in where it pays what a till asked for, once.
#[tokio::test]
async fn a_request_is_paid_by_whoever_brings_its_receipt() {
    let (anne, bob) = (Shop::new(ANNE, &[]), Shop::new(BOB, &users()));
    let make = async |value: u64| {
        let body = json!({ "value": value, "memo": "table 4" }).to_string();
        bob.ask_as("till-1", Method::POST, "/v1/requests", body).await
    };
    let (status, first) = make(30).await;
    assert_eq!(
        (status, &first["state"], &first["by"]),
        (StatusCode::CREATED, &json!("open"), &json!("till-1"))
    );
    let (_, second) = make(30).await;
    let pay = async |key: &str, value: u64, memo: &Value| {
        let body = json!({ "to": self::key(BOB).to_string(), "value": value, "memo": memo });
        let named = [("Idempotency-Key", key)];
        let paid = anne.ask(Method::POST, "/v1/payments", &named, body.to_string()).await.1;
        paid["receipt"].to_string()
    };
    let state = async |user: &str, request: &Value| {
        let path = format!("/v1/requests/{}", request["id"].as_str().expect("a name"));
        let (status, request) = bob.ask_as(user, Method::GET, &path, String::new()).await;
        (status.as_u16(), request["state"].as_str().map(str::to_owned))
    };
    let shown = |status: u16, state: &str| (status, Some(state.to_owned()));

    // Too little, and what names no request, is not stored for a stranger.
    let little = pay("a", 29, &first["request"]["memo"]).await;
    let (status, refused) = bob.post("/v1/receipts", little).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused["error"].as_str().expect("a reason").contains("brings 29"));
    let other = pay("b", 1, &json!("table 4")).await;
    let (status, refused) = bob.post("/v1/receipts", other.clone()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused["error"].as_str().expect("a reason").contains("pays no request"));
    assert_eq!(bob.post("/v1/receipts?check_only=true", other.clone()).await.0, StatusCode::OK);
    assert_eq!(
        bob.service.with(|wallet| wallet.history().expect("read").len()),
        0,
        "nothing was stored"
    );
    let taken = bob.ask_as("till-1", Method::POST, "/v1/receipts", other).await.1;
    assert_eq!((&taken["added"], &taken["request"]), (&json!(1), &Value::Null));

    let receipt = pay("c", 30, &first["request"]["memo"]).await;
    for added in [30, 0] {
        let (status, taken) = bob.post("/v1/receipts", receipt.clone()).await;
        assert_eq!((status, &taken["added"]), (StatusCode::OK, &json!(added)));
        assert_eq!(taken["request"], first["id"]);
    }
    assert_eq!(state("till-1", &first).await, shown(200, "paid"));
    assert_eq!(state("auditor", &second).await, shown(200, "open"));
    assert_eq!(state("till-2", &first).await, (404, None), "another till's");
    let open = bob.ask_as("till-1", Method::GET, "/v1/requests?open=true", String::new()).await.1;
    assert_eq!(open["requests"].as_array().expect("a list").len(), 1);

    // What is cancelled is paid by nobody but whoever a till lets.
    let path = format!("/v1/requests/{}", second["id"].as_str().expect("a name"));
    assert_eq!(bob.ask_as("till-2", Method::DELETE, &path, String::new()).await.0, 404);
    assert_eq!(bob.ask_as("till-1", Method::DELETE, &path, String::new()).await.0, 200);
    let late = pay("d", 30, &second["request"]["memo"]).await;
    let (status, refused) = bob.post("/v1/receipts", late.clone()).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(refused["error"].as_str().expect("a reason").contains("is cancelled"));
    let taken = bob.ask_as("till-1", Method::POST, "/v1/receipts", late).await.1;
    assert_eq!(taken["request"], second["id"]);
    assert_eq!(state("till-1", &second).await, shown(200, "paid"));
    let path = format!("/v1/requests/{}", first["id"].as_str().expect("a name"));
    assert_eq!(bob.ask_as("till-1", Method::DELETE, &path, String::new()).await.0, 409);
}

#[tokio::test]
async fn a_requests_code_is_a_picture_of_what_the_payer_takes() {
    let shop = Shop::new(ANNE, &[]);
    let request = shop.post("/v1/requests", r#"{"value": 5}"#.into()).await.1;
    let path = format!("/v1/requests/{}/code", request["id"].as_str().expect("a name"));
    let (status, code) = shop.get(&path).await;
    let code = code.as_str().expect("text");
    assert!(status == StatusCode::OK && code.contains("<svg"), "{status} {code}");
    let long = json!({ "value": 5, "memo": "\u{1}".repeat(1_000) }).to_string();
    let request = shop.post("/v1/requests", long).await.1;
    let path = format!("/v1/requests/{}/code", request["id"].as_str().expect("a name"));
    assert_eq!(shop.get(&path).await.0, StatusCode::PAYLOAD_TOO_LARGE);
}

/// A token does not help whoever comes by another name, or from another page.
#[tokio::test]
async fn pages_are_the_wallets_own_or_of_an_origin_that_was_allowed() {
    let shop = Shop::new(ANNE, &users());
    let (own, token) = ("http://127.0.0.1:7500", bearer("owner"));
    for (host, origin, status) in [
        ("127.0.0.1:7500", None, StatusCode::OK),
        ("127.0.0.1:7500", Some(own), StatusCode::OK),
        ("127.0.0.1:7500", Some(PAGE), StatusCode::OK),
        ("127.0.0.1:7500", Some("https://evil.example"), StatusCode::FORBIDDEN),
        ("evil.example", None, StatusCode::FORBIDDEN),
        ("evil.example", Some("http://evil.example"), StatusCode::FORBIDDEN),
    ] {
        for path in ["/v1/balance", "/openapi.json", "/", "/v1/nothing"] {
            let mut headers = vec![("Host", host), ("Authorization", &token[..])];
            headers.extend(origin.map(|origin| ("Origin", origin)));
            let (found, _) = shop.ask(Method::GET, path, &headers, String::new()).await;
            let is_let_in = found != StatusCode::FORBIDDEN;
            assert_eq!(is_let_in, status == StatusCode::OK, "{host} {origin:?} {path}: {found}");
        }
    }
    let ask = async |method: Method, origin: &str| {
        let request = Request::builder().method(method).uri("/v1/balance").header("Origin", origin);
        let request = request.body(Body::empty()).expect("a request");
        shop.pages.clone().oneshot(request).await.expect("an answer")
    };
    let leave = ask(Method::OPTIONS, PAGE).await;
    assert_eq!(leave.status(), StatusCode::NO_CONTENT);
    assert_eq!(leave.headers()["access-control-allow-origin"], PAGE);
    assert!(!leave.headers()["access-control-allow-headers"].is_empty());
    let refused = ask(Method::GET, PAGE).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(refused.headers()["access-control-allow-origin"], PAGE, "its page reads why");
    let stranger = ask(Method::OPTIONS, "https://evil.example").await;
    assert_eq!(stranger.status(), StatusCode::FORBIDDEN);
    assert!(!stranger.headers().contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn the_page_runs_its_own_script_alone_and_names_no_other_place() {
    let shop = Shop::new(ANNE, &users());
    let ask = async || {
        let request = Request::builder().uri("/").body(Body::empty()).expect("a request");
        let response = shop.pages.clone().oneshot(request).await.expect("an answer");
        let policy = response.headers()["content-security-policy"].to_str().expect("text");
        let policy = policy.to_owned();
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        (policy, String::from_utf8(body.into()).expect("text"))
    };
    let ((policy, page), (other, _)) = (ask().await, ask().await);
    assert_ne!(policy, other, "each answer has its own");
    let nonce = policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next());
    let nonce = format!("nonce=\"{}\"", nonce.expect("a nonce"));
    assert_eq!(page.matches(&nonce).count(), 2, "the style and the script");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let links = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!links.contains("http://") && !links.contains("https://"));
}
