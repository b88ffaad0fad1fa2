//! The HTTP doors: where they are open in clear, to whom, and the files that they name.

use super::Notes;
use super::source::Source;
use crate::config::NodeConfig;
use crate::config::doors::{DoorProblem, is_json_rpc, is_reachable};
use crate::http_access::{Access, DoorUser};
use crate::http_tls::HttpTls;

/// Checks everything of the doors; rules that depend on what members agreed on only where that is
/// known.
pub(super) fn check(source: &Source, (config, is_agreed): (&NodeConfig, bool), notes: &mut Notes) {
    rules(source, config.door_problems(), notes);
    if is_agreed {
        rules(source, config.service_problems(), notes);
    }
    if let Some(Err(error)) = config.tls_files().map(HttpTls::load) {
        notes.error(source.at("", "tls_cert"), error.to_string(), "");
    }
    let http = ["http_token_file", "http_tokens_file"];
    tokens(source, (config.http_access(), http), notes);
    let is_elsewhere = |access: &Access| matches!(access, Access::Users(_)) && !is_json_rpc(config);
    if let Some(access) = config.gateway_access().filter(|access| !is_elsewhere(access)) {
        let gateway = ["gateway_token_file", "gateway_tokens_file"];
        tokens(source, (access, gateway), notes);
    }
    advise(source, config, notes);
}

/// Notes rules that are broken.
pub(super) fn rules(source: &Source, problems: Vec<DoorProblem>, notes: &mut Notes) {
    for DoorProblem { field, problem, hint } in problems {
        notes.error(source.at("", field), problem, hint);
    }
}

/// Reads what a door's field names. Users of the key-value store, who have prefixes too, are its
/// gateway's to read.
fn tokens(
    source: &Source,
    (access, [token, users]): (Access, [&'static str; 2]),
    notes: &mut Notes,
) {
    let field = if matches!(access, Access::Users(_)) { users } else { token };
    if let Err(error) = access.load::<DoorUser>() {
        notes.error(source.at("", field), error.to_string(), "");
    }
}

/// Warns of what is let be and may not be meant.
fn advise(source: &Source, config: &NodeConfig, notes: &mut Notes) {
    let http = &config.http;
    if is_reachable(http) && config.http_insecure && !config.http_tls {
        let problem = format!("http is {http}: status and metrics are shown there in clear");
        let hint = "fine where the network encrypts by itself; if not, set http_tls = true";
        notes.warning(source.at("", "http_insecure"), problem, hint);
    }
    if is_reachable(http) && config.http_access() == Access::Open {
        let problem = format!("http is {http}: status and metrics are open to others");
        let hint = "name an http_token_file, keep it on 127.0.0.1 or [::1], or see that a firewall \
                    guards it";
        notes.warning(source.at("", "http"), problem, hint);
    }
    let in_clear = config.gateway_insecure && config.tls_cert.is_none();
    if let Some(gateway) = config.gateway.as_deref().filter(|it| in_clear && is_reachable(it)) {
        let problem = format!("gateway is {gateway}: what is asked there is not encrypted");
        let hint = "fine where the network encrypts by itself; if not, set tls_cert and tls_key";
        notes.warning(source.at("", "gateway_insecure"), problem, hint);
    }
}
