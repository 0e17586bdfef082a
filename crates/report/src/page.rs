//! The report as one HTML page, which loads nothing. It is complete as it is written; its script only sorts tables, and turns
//! between light and dark.

use askama::Template;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use crate::document::{Figure, Report, TileRow};
use crate::markdown::{Piece, pieces};

const SCRIPT: &str = include_str!("../page/page.js");

const STYLE: &str = include_str!("../page/style.css");

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    report: &'a Report,
    version: &'a str,
    style: &'a str,
    script: &'a str,
    /// The only script that may run: one that came with a name would not.
    script_hash: String,
}

pub(crate) fn page(report: &Report) -> String {
    let script_hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    let page = Page { report, version: env!("CARGO_PKG_VERSION"), style: STYLE, script: SCRIPT, script_hash };
    // Writing to a string does not fail.
    page.render().unwrap_or_default()
}

fn prose(text: &str) -> String {
    let escaped = |text: &str| askama::filters::escape(text, askama::filters::Html).map(|text| text.to_string());
    let piece = |piece: Piece<'_>| match piece {
        // A number stays beside its unit.
        Piece::Words(words) => escaped(words).unwrap_or_default().replace(" %", "\u{a0}%"),
        Piece::Code(text) => code(text),
    };
    pieces(&sizeleak_text::escaped(text)).map(piece).collect()
}

/// Code as HTML, whose words are not broken at hyphens.
fn code(text: &str) -> String {
    let word =
        |word: &str| askama::filters::escape(word, askama::filters::Html).map(|word| format!("<span>{word}</span>"));
    let words: Vec<String> = text.split(' ').filter_map(|text| word(text).ok()).collect();
    format!("<code>{}</code>", words.join(" "))
}

impl Figure {
    /// Its chart, to stand in the page: as HTML has it, without the name of its language.
    fn picture(&self) -> Option<String> {
        Some(self.svg()?.replace(" xmlns=\"http://www.w3.org/2000/svg\"", ""))
    }
}

impl TileRow {
    fn width(&self) -> String {
        format!("{:.1}", 100.0 * self.named.number().unwrap_or(0.0).clamp(0.0, 1.0))
    }
}
