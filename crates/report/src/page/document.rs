//! A whole page: its head, what it shows, and the results that it holds.
//!
//! It can be parsed as XML as well as HTML: every element is closed, every attribute quoted. So a
//! test can read it with a strict parser.

use crate::chart;
use crate::text::printable;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Elements of the head without an end of their own, closed as XML wants it.
const META: &str = "<meta charset=\"utf-8\"/>\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n";

const DARK_STYLE: &str = include_str!("dark.css");
const STYLE: &str = include_str!("style.css");

/// The values of a line under the pointer.
const READOUT: &str = include_str!("readout.js");

/// Colours of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Light or dark, as its reader prefers.
    LightAndDark,
    /// Light whatever its reader prefers: for pages whose figures go into documents.
    Light,
}

/// Results inside a page, in an element that no browser runs or shows.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    /// Media type of the text.
    pub media_type: &'a str,
    /// Identifier of the element.
    pub id: &'a str,
    /// JSON, or JSON lines.
    pub text: &'a str,
}

/// The page as a file that needs nothing but itself.
#[must_use]
pub fn document(title: &str, colours: Colours, shown: &Markup, results: &Results<'_>) -> String {
    let (scheme, styles) = match colours {
        Colours::LightAndDark => ("light dark", [chart::STYLE, STYLE, DARK_STYLE]),
        Colours::Light => ("light", [chart::LIGHT_STYLE, STYLE, ""]),
    };
    // No tag can begin inside the results, nor an entity.
    let text = results.text.replace('<', "\\u003c").replace('&', "\\u0026");
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                (PreEscaped(META))
                (PreEscaped(format!("<meta name=\"color-scheme\" content=\"{scheme}\"/>\n")))
                title { (printable(title.to_owned())) } "\n"
                style { "\n" @for style in styles { (PreEscaped(style)) } } "\n"
            }
            body {
                main { (PreEscaped(printable(shown.0.clone()))) }
                "\n"
                script type=(results.media_type) id=(results.id) { (PreEscaped(text)) }
                "\n"
                script { "\n" (PreEscaped(READOUT)) }
            }
        }
    };
    page.0 + "\n"
}
