//! How a report is written: for people, or for programs.

mod csv;

use clap::{Args, ValueEnum};
use serde::Serialize;
use sizeleak_text::{escaped_json, escaped_lines};

use super::document::{COLUMNS, Document, as_markdown, as_text};
use super::failure::Failure;
use super::help::OUTPUT;
use super::output_option::{OutputOption, print};
use super::terminal::stdout_columns;

/// The format of a report.
#[derive(Debug, Args)]
pub(super) struct ReportFormatOption {
    /// The format: text, json, csv or markdown [default: by the name of FILE, else text]
    #[arg(long, value_enum, hide_possible_values = true, help_heading = OUTPUT)]
    format: Option<ReportFormat>,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// Sentences and aligned tables, for people
    #[default]
    #[value(alias = "table")]
    Text,
    /// One JSON value, whose keys docs/json.md describes
    Json,
    /// Comma-separated values: the rows of what is compared, or else a row for each figure, named by its JSON keys
    Csv,
    /// The text with tables for an issue or a wiki
    #[value(alias = "md")]
    Markdown,
}

/// How a report is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportForm {
    format: ReportFormat,
    columns: usize,
}

impl ReportFormatOption {
    /// The form of what goes to an output: as named, or by the name of its file.
    pub(super) fn form(&self, output: &OutputOption, command: &str) -> Result<ReportForm, Failure> {
        let format = output.form(self.format, command)?.unwrap_or_default();
        Ok(ReportForm { format, columns: if output.path().is_some() { COLUMNS } else { stdout_columns() } })
    }

    /// The form of what is printed.
    pub(super) fn printed(&self) -> ReportForm {
        ReportForm { format: self.format.unwrap_or_default(), columns: stdout_columns() }
    }
}

impl ReportForm {
    /// Whether it is CSV, which some reports have a form of their own for.
    pub(super) fn is_csv(self) -> bool {
        self.format == ReportFormat::Csv
    }

    /// A report in this form, with text from outside escaped. `rows` is the key of the list that is the answer, whose
    /// entries are the rows of CSV; `document` is what people read.
    pub(super) fn written(
        self,
        report: &impl Serialize,
        rows: Option<&str>,
        document: impl FnOnce() -> Document,
    ) -> anyhow::Result<Vec<u8>> {
        Ok(match self.format {
            ReportFormat::Text => escaped_lines(&as_text(&document(), self.columns)).into_owned().into_bytes(),
            ReportFormat::Markdown => escaped_lines(&as_markdown(&document())).into_owned().into_bytes(),
            ReportFormat::Json => {
                escaped_json(&(serde_json::to_string_pretty(report)? + "\n")).into_owned().into_bytes()
            }
            ReportFormat::Csv => csv::written(&serde_json::to_value(report)?, rows)?,
        })
    }

    /// Prints a report.
    pub(super) fn print(
        self,
        report: &impl Serialize,
        rows: Option<&str>,
        document: impl FnOnce() -> Document,
    ) -> anyhow::Result<()> {
        print(&self.written(report, rows, document)?)
    }
}
