//! `quorate pay serve`: a wallet over HTTP.

use super::place::{CommitteePlace, Place, connect, explain};
use crate::commands::is_loopback;
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_gateway::rest::{RestLimits, WebPages};
use quorate_gateway::wallet::Wallet;
use quorate_gateway::wallet::rest::{WalletUser, router, serve};
use quorate_node::config::LogSettings;
use quorate_node::descriptors::{Demand, Descriptors, raise_limit};
use quorate_node::http_access::Users;
use quorate_node::http_server::DoorRules;
use quorate_node::http_tls::{HttpTls, HttpTlsFiles};
use quorate_node::init_logging;
use quorate_node::quotas::{AddressRates, RateLimit};
use quorate_node::reload::{Hangups, outlive_hangups};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Time within which a payment that was sent again at the start is known to have lost.
const FINISH_WITHIN: Duration = Duration::from_secs(3_600);

/// Serve a wallet over HTTP, for tills and shops.
///
/// Whoever shows a token does what it is for: `quorate pay token` makes them. Plain HTTP is for the
/// loopback interface; on any other address it needs --tls-cert and --tls-key. Tokens and
/// certificate are read again on SIGHUP. GET / is the page of a till, and GET /openapi.json
/// describes everything for programs.
///
/// Whoever has a receipt brings it without a token, where it pays an open request of this wallet.
///
/// Payments that are not finished are sent again at the start. Coins that neither a payment nor
/// another can have are released, where a committee that orders releases is known. When the
/// network's authorities change, it goes on with the new ones by itself. It may be killed at any
/// time.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate pay serve -w shop --tokens-file tokens.toml")]
pub(super) struct Serve {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    committee: CommitteePlace,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7500")]
    listen: String,
    /// File of users, each with a token and its purpose, chmod 600: `quorate pay token` writes it
    #[arg(long, value_name = "FILE", required_unless_present = "no_token")]
    tokens_file: Option<PathBuf>,
    /// Let in everybody who reaches the address, which must be this machine's own (loopback)
    #[arg(long, conflicts_with = "tokens_file")]
    no_token: bool,
    /// Name under which browsers find the address, besides localhost; may be repeated
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Origin of web pages that may ask, besides the till's own; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Certificate chain in PEM, to serve TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate in PEM, chmod 600
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Take plain HTTP from other machines: for networks that encrypt by themselves
    #[arg(long, conflicts_with = "tls_cert")]
    insecure_http: bool,
    /// Most requests a second from one address of another machine; 0 for any number
    #[arg(long, default_value_t = 0, value_name = "REQUESTS")]
    rate: u64,
    /// Time after which a payment is answered as unfinished, in seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    timeout: u64,
    /// Print the address as one JSON object once it listens
    #[arg(long)]
    json: bool,
}

impl Serve {
    pub(super) fn run(&self) -> CommandResult {
        outlive_hangups().map_err(Failure::run)?;
        init_logging(LogSettings::default());
        let users = self.tokens_file.as_deref().map(Users::load).transpose();
        let users = users.map_err(Failure::usage)?.map(Arc::new);
        let web_pages = WebPages::served(self.host.clone(), &self.allow_origin);
        let web_pages = web_pages.map_err(Failure::usage)?;
        self.check_listen()?;
        let rules = self.rules()?;
        let wallet = self.place.open()?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.map_err(Failure::run)?.block_on(self.serve(wallet, (users, web_pages), rules))
    }

    /// Refuses to let everybody in whom a network carries here.
    fn check_listen(&self) -> CommandResult {
        let is_loopback = is_loopback(&self.listen).map_err(|error| {
            Failure::usage(format!("cannot listen on {}: {error}", self.listen))
        })?;
        if is_loopback {
            return Ok(());
        }
        if self.no_token {
            return Err(Failure::usage(format!(
                "--no-token lets everybody spend who reaches {}: listen on 127.0.0.1, or name a \
                 --tokens-file",
                self.listen
            )));
        }
        if self.tls_cert.is_none() && !self.insecure_http {
            return Err(Failure::usage(format!(
                "--listen {} would carry tokens over a network in clear: name --tls-cert and \
                 --tls-key, listen on 127.0.0.1, or say --insecure-http where the network encrypts by \
                 itself",
                self.listen
            )));
        }
        Ok(())
    }

    fn rules(&self) -> Result<DoorRules, Failure> {
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        let files = files.map(|(cert, key)| HttpTlsFiles { cert, key });
        Ok(DoorRules {
            tls: files.map(HttpTls::load).transpose().map_err(Failure::usage)?,
            rates: AddressRates::new(RateLimit { per_second: self.rate }),
            ..DoorRules::default()
        })
    }

    async fn serve(
        &self,
        wallet: Wallet,
        (users, web_pages): (Option<Arc<Users<WalletUser>>>, WebPages),
        rules: DoorRules,
    ) -> CommandResult {
        let network = wallet.network();
        let authorities = network.committee().size() * usize::from(network.shards());
        let demand = Demand::of_gateway(authorities);
        let shares = Descriptors::divide(raise_limit(), &demand).map_err(Failure::usage)?;
        let limits = RestLimits::default().with_connections(shares.gateway);
        let failed = |error| Failure::run(format!("cannot listen on {}: {error}", self.listen));
        let listener = TcpListener::bind(&self.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?.to_string();
        let service = connect(wallet, &self.place, &self.committee)?;
        let is_released = service.releases();
        let unfinished = service.resume().map_err(explain)?;
        let timeout = Duration::from_secs(self.timeout);
        if is_released {
            for payment in &unfinished {
                let (service, payment) = (Arc::clone(&service), *payment);
                tokio::spawn(async move { service.finish(payment, FINISH_WITHIN).await });
            }
            tokio::spawn(Arc::clone(&service).follow_releases_for_ever(timeout));
        }
        let unfinished = unfinished.len();
        tokio::spawn(Arc::clone(&service).recover_at_last(timeout));
        let pages = router(service, users.clone(), web_pages, timeout, limits);
        if self.json {
            output::json(&json!({ "address": address, "unfinished": unfinished }));
        } else {
            let scheme = if rules.tls.is_some() { "https" } else { "http" };
            output::line(&format!(
                "{scheme}://{address}; {unfinished} unfinished payments sent again"
            ));
        }
        if let Some(users) = users {
            let hangups = Hangups::listen().map_err(Failure::run)?;
            tokio::spawn(hangups.reload("users of the wallet", move || users.reload()));
        }
        if let Some(tls) = rules.tls.clone() {
            let hangups = Hangups::listen().map_err(Failure::run)?;
            tokio::spawn(hangups.reload("certificate", move || tls.reload()));
        }
        serve(listener, pages, limits, rules).await;
        Ok(())
    }
}
