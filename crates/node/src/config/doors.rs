//! Rules of the HTTP doors: where they may be open in clear, and who is let in.
//!
//! On the loopback interface a door may be open to every program. What other machines reach is
//! encrypted, unless the configuration says that their network does it; and whoever can change
//! something there shows a token, but for JSON-RPC where the configuration opens it: a transaction
//! brings its sender's signature.

use super::{ConfigError, NodeConfig};
use crate::http_access::Access;
use quorate_ledger::kv::Kv;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Name of the service whose gateway is JSON-RPC.
const JSON_RPC: &str = "evm";

/// Field that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DoorProblem {
    pub(super) field: &'static str,
    pub(super) problem: String,
    pub(super) hint: &'static str,
}

impl NodeConfig {
    /// Who may read status and metrics.
    #[must_use]
    pub fn http_access(&self) -> Access {
        let files = (&self.http_token_file, &self.http_tokens_file);
        access_of(files).unwrap_or(Access::Open)
    }

    /// Who may use the gateway; `None` for whoever shows a token that is still to be made, since
    /// the configuration says nothing of it.
    #[must_use]
    pub fn gateway_access(&self) -> Option<Access> {
        let files = (&self.gateway_token_file, &self.gateway_tokens_file);
        let needs_none = is_json_rpc(self) && !self.gateway_is_reachable();
        let open = (self.gateway_open || needs_none).then_some(Access::Open);
        access_of(files).or(open)
    }

    fn gateway_is_reachable(&self) -> bool {
        self.gateway.as_deref().is_some_and(is_reachable)
    }

    /// Refuses doors that break a rule.
    pub(super) fn check_doors(&self, path: &Path) -> Result<(), ConfigError> {
        let mut problems = self.door_problems();
        problems.extend(self.service_problems());
        match problems.into_iter().next() {
            None => Ok(()),
            Some(DoorProblem { problem, hint, .. }) => {
                let path = path.to_owned();
                Err(ConfigError::Door { path, problem: format!("{problem}: {hint}") })
            }
        }
    }

    /// Rules that this file alone breaks.
    pub(super) fn door_problems(&self) -> Vec<DoorProblem> {
        let named = self.gateway_fields();
        let rules = [
            self.http_in_clear(),
            both(
                (&self.http_token_file, "http_token_file"),
                (&self.http_tokens_file, "http_tokens_file"),
            ),
            named.first().filter(|_| self.gateway.is_none()).map(|field| DoorProblem {
                field,
                problem: format!("'{field}' without 'gateway'"),
                hint: "name both",
            }),
            named.get(1).map(|other| excluded(named[0], other)),
            self.gateway_in_clear(),
        ];
        rules.into_iter().flatten().collect()
    }

    /// Rules that this file breaks by what the members agreed on.
    pub(super) fn service_problems(&self) -> Vec<DoorProblem> {
        let Some(address) = &self.gateway else { return Vec::new() };
        let problem = |problem: String, hint| DoorProblem { field: "gateway", problem, hint };
        if ![Kv::NAME, JSON_RPC].contains(&&*self.service) {
            let service = &self.service;
            let reason = format!("'gateway' needs service = \"kv\" or \"evm\", not \"{service}\"");
            return vec![problem(reason, "remove it")];
        }
        let mut problems = Vec::new();
        if !self.replica.certifies_execution() {
            let hint = "it is in [settings] of the committee file";
            problems
                .push(problem("'gateway' needs execution_certificates = true".to_owned(), hint));
        }
        if self.gateway_open && !is_json_rpc(self) && is_reachable(address) {
            let reason = format!(
                "'gateway' = \"{address}\" with 'gateway_open' lets everybody write who reaches it"
            );
            problems.push(problem(reason, "name a token file, or listen on 127.0.0.1"));
        }
        problems
    }

    /// Fields in force that say who may use the gateway: at most one may be.
    fn gateway_fields(&self) -> Vec<&'static str> {
        let fields = [
            (self.gateway_token_file.is_some(), "gateway_token_file"),
            (self.gateway_tokens_file.is_some(), "gateway_tokens_file"),
            (self.gateway_open, "gateway_open"),
        ];
        fields.into_iter().filter_map(|(is_set, field)| is_set.then_some(field)).collect()
    }

    fn http_in_clear(&self) -> Option<DoorProblem> {
        let is_safe = self.http_tls || self.http_insecure || !is_reachable(&self.http);
        (!is_safe).then(|| DoorProblem {
            field: "http",
            problem: format!(
                "'http' = \"{}\" would carry status and tokens over a network in clear",
                self.http
            ),
            hint: "set http_tls = true with tls_cert and tls_key, listen on 127.0.0.1, or set \
                   http_insecure = true where the network encrypts by itself",
        })
    }

    fn gateway_in_clear(&self) -> Option<DoorProblem> {
        let address = self.gateway.as_deref().filter(|address| is_reachable(address))?;
        let is_safe = self.tls_cert.is_some() || self.gateway_insecure;
        (!is_safe).then(|| DoorProblem {
            field: "gateway",
            problem: format!(
                "'gateway' = \"{address}\" would carry tokens and data over a network in clear"
            ),
            hint: "set tls_cert and tls_key, listen on 127.0.0.1, or set gateway_insecure = true \
                   where the network encrypts by itself",
        })
    }
}

/// Returns `true` if the gateway is JSON-RPC.
pub(super) fn is_json_rpc(config: &NodeConfig) -> bool {
    config.service == JSON_RPC
}

/// Returns `true` if other machines may reach what listens here. A host's name may come to be any
/// address, and counts as one of them.
pub(crate) fn is_reachable(address: &str) -> bool {
    !address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
}

/// Who is let in by these files, a token's and a list of users; `None` where there is neither.
pub(crate) fn access_of(files: (&Option<PathBuf>, &Option<PathBuf>)) -> Option<Access> {
    match files {
        (_, Some(users)) => Some(Access::Users(users.clone())),
        (Some(token), None) => Some(Access::Token(token.clone())),
        (None, None) => None,
    }
}

fn both(
    (one, first): (&Option<PathBuf>, &'static str),
    (other, second): (&Option<PathBuf>, &'static str),
) -> Option<DoorProblem> {
    (one.is_some() && other.is_some()).then(|| excluded(first, second))
}

fn excluded(one: &str, other: &'static str) -> DoorProblem {
    let problem = format!("'{one}' and '{other}' exclude one another");
    DoorProblem { field: other, problem, hint: "keep one" }
}

#[cfg(test)]
mod tests;
