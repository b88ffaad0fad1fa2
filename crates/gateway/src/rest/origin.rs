//! Web pages that may ask: by the name under which a gateway is spoken to, and by their origin.
//!
//! A browser sends what any page asks for, to this machine too. A page is told by its `Origin`,
//! which nobody but a browser sends. A page whose own name was made to mean this address (DNS
//! rebinding) is told by a `Host` that is a name: an address cannot be rebound.

use super::failure::Failure;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::Arc;

/// Methods and headers of requests that pages of other origins may send.
const LEAVE: [(header::HeaderName, HeaderValue); 3] = [
    (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE")),
    (
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("authorization, content-type, idempotency-key"),
    ),
    (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600")),
];

/// Web pages that a gateway answers.
#[derive(Clone, Debug)]
pub enum WebPages {
    /// None: it is spoken to by its address, by programs.
    Refused,
    /// Its own, under its addresses and these names, and those of these origins.
    Served {
        /// Names that `Host` may have, without a port; localhost and addresses need no mention.
        hosts: Vec<String>,
        /// Origins of other pages, such as `https://shop.example`.
        origins: Vec<HeaderValue>,
    },
}

impl WebPages {
    /// Its own pages under these names, and pages of these origins.
    ///
    /// # Errors
    /// The name or origin that is none.
    pub fn served(hosts: Vec<String>, origins: &[String]) -> Result<Self, String> {
        if let Some(host) = hosts.iter().find(|host| authority(host).as_deref() != Some(host)) {
            return Err(format!("'{host}' is no name of a host: write it without a port, small"));
        }
        let origins = origins.iter().map(|origin| {
            let is_one = authority_of_origin(origin).is_some();
            let value = HeaderValue::from_str(origin).ok().filter(|_| is_one);
            value.ok_or_else(|| {
                format!("'{origin}' is no origin: write it as https://shop.example, with its port if it has one")
            })
        });
        Ok(Self::Served { hosts, origins: origins.collect::<Result<_, _>>()? })
    }

    /// Refuses a request that another page may have sent.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let host = headers.get(header::HOST);
        if let Some(origin) = headers.get(header::ORIGIN)
            && !self.allows(origin)
            && !self.is_own(origin, host)
        {
            return Err(self.refuse_page());
        }
        // Programs may leave it out; a browser never does.
        match host {
            Some(host) if !self.is_own_host(host) => Err(self.refuse_host()),
            _ => Ok(()),
        }
    }

    fn allows(&self, origin: &HeaderValue) -> bool {
        matches!(self, Self::Served { origins, .. } if origins.contains(origin))
    }

    /// Tells whether a page came from here. A proxy that ends TLS may stand in between: so the
    /// scheme is not compared.
    fn is_own(&self, origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
        let Self::Served { .. } = self else { return false };
        let origin = origin.to_str().ok().and_then(authority_of_origin);
        origin.is_some_and(|origin| host.is_some_and(|host| host.as_bytes() == origin.as_bytes()))
    }

    /// Tells whether a `Host` is an address, the name that every system keeps for itself, or one
    /// that the gateway was given.
    fn is_own_host(&self, host: &HeaderValue) -> bool {
        let Some(host) = host.to_str().ok().and_then(authority) else { return false };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
        let is_given = matches!(self, Self::Served { hosts, .. } if hosts.contains(&host));
        host == "localhost" || bare.parse::<IpAddr>().is_ok() || is_given
    }

    fn refuse_page(&self) -> Failure {
        let error = match self {
            Self::Refused => {
                "this gateway has no token, so it takes nothing from web pages: give it one, or leave \
                 out 'Origin'"
            }
            Self::Served { .. } => {
                "this comes from a page of another origin: let it in by --allow-origin, or leave out \
                 'Origin'"
            }
        };
        Failure::new(StatusCode::FORBIDDEN, error)
    }

    /// A request to a name, which whoever owns the name can make mean any address.
    fn refuse_host(&self) -> Failure {
        let error = match self {
            Self::Refused => {
                "this gateway has no token, so it is spoken to by its address: 'Host' must be an IP \
                 address or localhost, or give it a token"
            }
            Self::Served { .. } => {
                "this is spoken to by its address: 'Host' must be an IP address, localhost or a name \
                 that --host gives it"
            }
        };
        Failure::new(StatusCode::FORBIDDEN, error)
    }
}

/// Name or address without a port, in small letters.
fn authority(text: &str) -> Option<String> {
    let authority = Authority::try_from(text).ok()?;
    (!authority.host().is_empty() && !text.contains('@'))
        .then(|| authority.host().to_ascii_lowercase())
}

/// Name and port of an origin, which is a scheme with these and nothing behind them.
fn authority_of_origin(origin: &str) -> Option<&str> {
    let name = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"))?;
    Authority::try_from(name).is_ok().then_some(name)
}

/// Lets a request through that is no other page's, and tells browsers whose pages may ask.
pub(crate) async fn guard(
    State(pages): State<Arc<WebPages>>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    pages.check(request.headers())?;
    let origin = request.headers().get(header::ORIGIN).filter(|origin| pages.allows(origin));
    let Some(origin) = origin.cloned() else { return Ok(next.run(request).await) };
    let mut response = if request.method() == Method::OPTIONS {
        let mut leave = StatusCode::NO_CONTENT.into_response();
        leave.headers_mut().extend(LEAVE);
        leave
    } else {
        next.run(request).await
    };
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Origin"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::WebPages;
    use axum::http::{HeaderMap, HeaderValue, header};

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let value = |text: &str| HeaderValue::from_str(text).expect("a value");
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, value(host));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, value(origin));
        }
        headers
    }

    fn shop() -> WebPages {
        let origins = ["https://pages.example".to_owned()];
        WebPages::served(vec!["till.example".to_owned()], &origins).expect("names")
    }

    #[test]
    fn a_host_is_an_address_or_this_machine_or_a_given_name() {
        let own = ["127.0.0.1", "127.0.0.1:9200", "[::1]:9200", "10.1.2.3", "LocalHost:80"];
        for host in own {
            assert!(WebPages::Refused.check(&headers(host, None)).is_ok(), "{host}");
            assert!(shop().check(&headers(host, None)).is_ok(), "{host}");
        }
        for host in ["", "kv.example", "127.0.0.1.example:9200", "localhost.example", "[::1", "a@b"]
        {
            assert!(WebPages::Refused.check(&headers(host, None)).is_err(), "{host}");
            assert!(shop().check(&headers(host, None)).is_err(), "{host}");
        }
        assert!(shop().check(&headers("Till.example:443", None)).is_ok());
        assert!(WebPages::Refused.check(&headers("till.example", None)).is_err());
        assert!(shop().check(&HeaderMap::new()).is_ok(), "a program may leave it out");
    }

    #[test]
    fn a_page_is_the_gateways_own_or_of_an_origin_that_was_allowed() {
        let local = "127.0.0.1:7500";
        for (host, origin, is_let_in) in [
            (local, "http://127.0.0.1:7500", true),
            ("till.example", "https://till.example", true),
            (local, "https://pages.example", true),
            (local, "http://127.0.0.1:7501", false),
            (local, "http://pages.example", false),
            (local, "https://pages.example:8443", false),
            (local, "https://evil.example", false),
            ("evil.example", "http://evil.example", false),
            (local, "null", false),
            (local, "127.0.0.1:7500", false),
        ] {
            let found = shop().check(&headers(host, Some(origin)));
            assert_eq!(found.is_ok(), is_let_in, "{host} {origin}");
            assert!(WebPages::Refused.check(&headers(host, Some(origin))).is_err(), "{origin}");
        }
    }

    #[test]
    fn names_and_origins_that_are_none_are_refused() {
        for host in ["till.example:80", "https://till.example", "Till.example", ""] {
            assert!(WebPages::served(vec![host.to_owned()], &[]).is_err(), "{host}");
        }
        for origin in ["pages.example", "https://pages.example/", "*", "null", "ftp://a"] {
            assert!(WebPages::served(Vec::new(), &[origin.to_owned()]).is_err(), "{origin}");
        }
    }
}
