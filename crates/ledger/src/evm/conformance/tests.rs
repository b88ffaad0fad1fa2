use super::*;
use serde_json::{Value, json};

/// Filled by EthereumJS; see `fill.mjs` beside it.
const OWN: &str = include_str!("../../../state-tests/own.json");

fn changed(test: &str, change: impl FnOnce(&mut Value)) -> Verdict {
    let mut own: Value = serde_json::from_str(OWN).expect("JSON");
    let mut one = own[test].take();
    change(&mut one);
    let cases = run(&json!({ test: one }).to_string(), Fork::Prague).expect("a file of tests");
    let [case] = <[Case; 1]>::try_from(cases).expect("one case");
    case.verdict
}

fn fails(verdict: &Verdict, because: &str) -> bool {
    matches!(verdict, Verdict::Failed(reason) if reason.contains(because))
}

#[test]
fn the_ledger_does_what_another_machine_does() {
    let cases = run(OWN, Fork::Prague).expect("a file of tests");
    let not_passed: Vec<_> = cases.iter().filter(|case| case.verdict != Verdict::Passed).collect();
    assert!(not_passed.is_empty(), "{not_passed:#?}");
    assert_eq!(cases.len(), 20);
}

#[test]
fn other_accounts_other_logs_and_other_ends_are_noticed() {
    let balance = changed("a_transfer", |test| {
        test["pre"]["0x0000000000000000000000000000000000000d0e"] =
            json!({ "balance": "0x01", "nonce": "0x00", "code": "0x", "storage": {} });
    });
    assert!(fails(&balance, "root"), "{balance:?}");
    let logs = changed("logs_of_three_topics", |test| {
        test["post"]["Prague"][0]["logs"] = json!(B256::ZERO);
    });
    assert!(fails(&logs, "logs' hash"), "{logs:?}");
    let refused = changed("a_nonce_too_high", |test| {
        test["post"]["Prague"][0].as_object_mut().expect("fields").remove("expectException");
    });
    assert!(fails(&refused, "refused: "), "{refused:?}");
    let executed = changed("a_transfer", |test| {
        test["post"]["Prague"][0]["expectException"] = json!("TransactionException.NONCE_IS_MAX");
    });
    assert!(fails(&executed, "where TransactionException.NONCE_IS_MAX"), "{executed:?}");
}

#[test]
fn what_the_ledger_has_no_rules_for_is_left_out() {
    let other_rules = changed("a_transfer", |test| {
        test["post"] = json!({ "Osaka": test["post"]["Prague"].take() });
    });
    assert_eq!(other_rules, Verdict::LeftOut(OTHER_RULES));
    let blobs = changed("a_transfer", |test| {
        test["transaction"]["maxFeePerBlobGas"] = json!("0x01");
    });
    assert_eq!(blobs, Verdict::LeftOut(BLOBS));
    let reserved = changed("logs_of_three_topics", |test| {
        test["pre"]["0x00000000000000000000000000000000000c0de0"]["code"] = json!("0xef0100");
    });
    assert_eq!(reserved, Verdict::LeftOut(RESERVED_CODE));
}

#[test]
fn what_is_no_file_of_tests_is_an_error() {
    assert!(run("[]", Fork::Prague).is_err());
    assert!(run(r#"{ "a": { "env": {} } }"#, Fork::Prague).is_err());
}
