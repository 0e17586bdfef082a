//! Everything that is known of a gateway's leak as one report for people, with sums over commands only: a page of HTML that
//! loads nothing, or Markdown.
//!
//! Parts of a report are made of what other libraries compute ([`leak`], [`judged`], [`Observed`], [`habits`]); what each
//! holds is in [`document`]. A report with the same parts is written as the same bytes.
//!
//! ```
//! use sizeleak_report::{Form, document::{Report, Verdict}, written};
//!
//! let verdict = Verdict { sentence: "An action called <on> leaks.".into(), meaning: String::new() };
//! let report = Report { verdict, tiles: Vec::new(), fix: String::new(), sections: Vec::new() };
//! assert!(written(report.clone(), Form::Page).contains("<h1>An action called &#60;on&#62; leaks.</h1>"));
//! assert!(written(report, Form::Markdown).contains(r"**An action called \<on\> leaks.**"));
//! ```

pub mod document;
pub mod habits;
pub mod judged;
pub mod leak;
pub mod markdown;
mod observed;
mod page;
mod parts;

use document::Report;
pub use observed::Observed;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Page,
    Markdown,
}

/// A report in this form. Sections that it lacks say what to give.
pub fn written(report: Report, form: Form) -> String {
    let report = report.with_all_parts();
    match form {
        Form::Page => page::page(&report),
        Form::Markdown => markdown::markdown(&report),
    }
}
