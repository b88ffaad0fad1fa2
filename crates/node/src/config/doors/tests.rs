use super::{JSON_RPC, NodeConfig};
use crate::http_access::Access;
use std::path::PathBuf;

const LOCAL: [&str; 3] = ["127.0.0.1:9100", "127.9.9.9:9100", "[::1]:9100"];
const ELSEWHERE: [&str; 3] = ["0.0.0.0:9100", "10.0.0.1:9100", "[::]:9100"];

fn config(service: &str) -> NodeConfig {
    let mut config = NodeConfig::new("committee.toml".into(), "key.toml".into(), "data".into());
    config.service = service.to_owned();
    config.replica.execution_certificates = true;
    config
}

/// Fields that break a rule.
fn broken(config: &NodeConfig) -> Vec<&'static str> {
    let problems = config.door_problems().into_iter().chain(config.service_problems());
    problems.map(|problem| problem.field).collect()
}

fn path(name: &str) -> Option<PathBuf> {
    Some(name.into())
}

#[test]
fn status_is_in_clear_on_the_loopback_interface_alone_unless_a_flag_says_so() {
    for address in LOCAL {
        let config = NodeConfig { http: address.to_owned(), ..config("kv") };
        assert_eq!(broken(&config), [""; 0], "{address}");
    }
    for address in ELSEWHERE {
        let config = NodeConfig { http: address.to_owned(), ..config("kv") };
        assert_eq!(broken(&config), ["http"], "{address}");
        // The certificate of the gateway is this door's only where `http_tls` says so.
        let certified = NodeConfig { tls_cert: path("cert.pem"), ..config.clone() };
        assert_eq!(broken(&certified), ["http"], "{address}");
        for ok in [
            NodeConfig { http_tls: true, ..certified },
            NodeConfig { http_insecure: true, ..config.clone() },
        ] {
            assert_eq!(broken(&ok), [""; 0], "{address}");
        }
        let other_flag = NodeConfig { gateway_insecure: true, ..config };
        assert_eq!(broken(&other_flag), ["http"], "{address}");
    }
}

#[test]
fn a_gateway_is_in_clear_on_the_loopback_interface_alone_unless_a_flag_says_so() {
    for service in ["kv", "evm"] {
        for address in LOCAL {
            let config = NodeConfig { gateway: Some(address.to_owned()), ..config(service) };
            assert_eq!(broken(&config), [""; 0], "{service} {address}");
        }
        for address in ELSEWHERE {
            let config = NodeConfig { gateway: Some(address.to_owned()), ..config(service) };
            assert_eq!(broken(&config), ["gateway"], "{service} {address}");
            let other_flag = NodeConfig { http_insecure: true, ..config.clone() };
            assert_eq!(broken(&other_flag), ["gateway"], "{service} {address}");
            for ok in [
                NodeConfig { tls_cert: path("cert.pem"), ..config.clone() },
                NodeConfig { gateway_insecure: true, ..config },
            ] {
                assert_eq!(broken(&ok), [""; 0], "{service} {address}");
                // A public node is one of transactions, which their senders signed.
                let open = NodeConfig { gateway_open: true, ..ok };
                let expected = if service == JSON_RPC { vec![] } else { vec!["gateway"] };
                assert_eq!(broken(&open), expected, "{service} {address}");
            }
        }
    }
}

#[test]
fn who_is_let_in_is_said_once_and_with_the_door() {
    let gateway = || NodeConfig { gateway: Some("127.0.0.1:9200".to_owned()), ..config("kv") };
    let fields: [fn(&mut NodeConfig); 3] = [
        |config| config.gateway_token_file = path("token"),
        |config| config.gateway_tokens_file = path("tokens.toml"),
        |config| config.gateway_open = true,
    ];
    for (index, set) in fields.iter().enumerate() {
        let mut alone = config("kv");
        set(&mut alone);
        assert_eq!(broken(&alone).len(), 1, "without a gateway");
        for (other, set_other) in fields.iter().enumerate() {
            let mut config = gateway();
            set(&mut config);
            set_other(&mut config);
            assert_eq!(broken(&config).is_empty(), index == other, "{index} {other}");
        }
    }
    let tokens = NodeConfig { http_token_file: path("token"), ..config("kv") };
    assert_eq!(broken(&tokens), [""; 0]);
    let both = NodeConfig { http_tokens_file: path("tokens.toml"), ..tokens };
    assert_eq!(broken(&both), ["http_tokens_file"]);
}

#[test]
fn a_gateway_is_of_a_service_that_has_one_and_certifies() {
    let gateway = |service| NodeConfig { gateway: Some(LOCAL[0].to_owned()), ..config(service) };
    assert_eq!(broken(&gateway("ordered-log")), ["gateway"]);
    for service in ["kv", "evm"] {
        let mut config = gateway(service);
        config.replica.execution_certificates = false;
        assert_eq!(broken(&config), ["gateway"]);
    }
}

#[test]
fn what_a_configuration_does_not_say_is_open_or_made() {
    assert_eq!(config("kv").http_access(), Access::Open);
    let named = NodeConfig { http_token_file: path("token"), ..config("kv") };
    assert_eq!(named.http_access(), Access::Token("token".into()));
    let named = NodeConfig { http_tokens_file: path("tokens.toml"), ..config("kv") };
    assert_eq!(named.http_access(), Access::Users("tokens.toml".into()));

    let at = |service, address: &str| NodeConfig {
        gateway: Some(address.to_owned()),
        ..config(service)
    };
    assert_eq!(at("kv", LOCAL[0]).gateway_access(), None);
    assert_eq!(at("kv", ELSEWHERE[0]).gateway_access(), None);
    assert_eq!(at("evm", LOCAL[0]).gateway_access(), Some(Access::Open));
    assert_eq!(at("evm", ELSEWHERE[0]).gateway_access(), None);
    let open = NodeConfig { gateway_open: true, ..at("evm", ELSEWHERE[0]) };
    assert_eq!(open.gateway_access(), Some(Access::Open));
    let named = NodeConfig { gateway_token_file: path("token"), ..at("evm", LOCAL[0]) };
    assert_eq!(named.gateway_access(), Some(Access::Token("token".into())));
}
