//! Everything that is known of a gateway's leak as one report for people, with sums over commands only: a page of HTML that
//! loads nothing, or Markdown.
//!
//! Parts of a report are made of what other libraries compute ([`leak`], [`Observed`], [`habits_section`]); what each
//! holds is in [`document`]. A report with the same parts is written as the same bytes.
//!
//! ```
//! use sizeleak_report::document::{Report, Verdict};
//!
//! let verdict = Verdict { sentence: "An action called <on> leaks.".into(), meaning: String::new() };
//! let report = Report { verdict, tiles: Vec::new(), fix: String::new(), sections: Vec::new() };
//! assert!(sizeleak_report::html(report.clone()).contains("<h1>An action called &#60;on&#62; leaks.</h1>"));
//! assert!(sizeleak_report::markdown(report).contains(r"**An action called \<on\> leaks.**"));
//! ```

pub mod document;
pub mod forms;
pub mod leak;
mod observed;

use document::Report;
pub use observed::{Observed, habits_section, habits_verdict, quantiles};

/// The report as a page of HTML. What it lacks, it says how to give.
pub fn html(report: Report) -> String {
    forms::page(&report.with_all_parts())
}

pub fn markdown(report: Report) -> String {
    forms::markdown(&report.with_all_parts())
}
