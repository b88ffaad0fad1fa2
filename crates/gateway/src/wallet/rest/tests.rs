use super::{OPENAPI, guarded_routes, open_routes, router};
use crate::rest::{RestLimits, Token};
use crate::wallet::tests::network::{ISSUER, Local, key, network, secret};
use crate::wallet::{PaymentService, Wallet};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tower::ServiceExt;

const TOKEN: &str = "a-token-of-some-length";
const ANNE: u8 = 1;
const BOB: u8 = 2;

/// A shop's wallet with 100 units, and its authorities.
struct Shop {
    _folder: TempDir,
    authorities: Arc<Local>,
    service: Arc<PaymentService>,
    pages: Router,
}

impl Shop {
    fn new(owner: u8, token: Option<&str>) -> Self {
        Self::with_timeout(Duration::from_secs(60), owner, token)
    }

    fn with_timeout(timeout: Duration, owner: u8, token: Option<&str>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let network = network("test", &[(ANNE, 100)]);
        let authorities = Local::new(&network);
        let path = folder.path().join("wallet");
        Wallet::create(&path, key(owner)).expect("made");
        let mut wallet = Wallet::open(&path, network, secret(owner)).expect("a wallet");
        wallet.receive_genesis().expect("stored");
        let service = PaymentService::new(wallet, Arc::clone(&authorities) as _);
        let token = token.map(|text| Token::new(text).expect("a token"));
        let pages = router(Arc::clone(&service), token, timeout, RestLimits::default());
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
        (status, serde_json::from_slice(&bytes).expect("JSON"))
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
    let shop = Shop::new(ANNE, None);
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
    let shop = Shop::new(ANNE, None);
    let (_, paid) = shop.pay("one", BOB, 30).await;
    assert_eq!(members(&paid), described("Payment"));
    assert_eq!(members(&paid["receipt"]), described("Receipt"));
    assert_eq!(members(&shop.get("/v1/balance").await.1), described("Balance"));
    let history = shop.get("/v1/history").await.1;
    assert_eq!(members(&history), described("History"));
    assert_eq!(members(&history["lines"][0]), described("Line"));
    let request = shop.post("/v1/requests", r#"{"value": 5}"#.into()).await.1;
    assert_eq!(members(&request), described("PaymentRequest"));
    let taken = shop.post("/v1/receipts?check_only=true", paid["receipt"].to_string()).await;
    assert_eq!(members(&taken.1), described("Received"));
}

#[tokio::test]
async fn a_key_pays_once_and_the_payee_takes_the_receipt() {
    let (anne, bob) = (Shop::new(ANNE, None), Shop::new(BOB, None));
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
    let shop = Shop::with_timeout(Duration::from_millis(200), ANNE, None);
    shop.authorities.silence(&[0, 1]);
    let (status, open) = shop.pay("one", BOB, 30).await;
    assert_eq!((status, &open["state"]), (StatusCode::ACCEPTED, &json!("unfinished")));
    assert_eq!(shop.get("/v1/balance").await.1["reserved"], 100);
    let (status, short) = shop.pay("two", BOB, 1).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(short["error"].as_str().expect("a reason").contains("not finished"));

    // Another wallet of the same key: its transaction over the same coin comes to the authorities
    // first.
    let (first, late) = (Shop::new(ANNE, None), Shop::new(ANNE, None));
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
    let shop = Shop::new(ANNE, None);
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
    assert_eq!(shop.service.with(|wallet| wallet.history().len()), 1, "nothing was begun");
}

#[tokio::test]
async fn the_token_guards_all_but_the_description() {
    let shop = Shop::new(ANNE, Some(TOKEN));
    for route in guarded_routes() {
        let path = route.path.replace("{id}", "id");
        let (status, _) = shop.ask(route.method, &path, &[], String::new()).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(shop.get("/openapi.json").await.0, StatusCode::OK);
    let shown: &[(&str, &str)] = &[("Authorization", "Bearer a-token-of-some-length")];
    let (status, _) = shop.ask(Method::GET, "/v1/balance", shown, String::new()).await;
    assert_eq!(status, StatusCode::OK);
}
