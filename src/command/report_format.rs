//! How a report is written: for people, or for programs.

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use sizeleak_text::{escaped_json, escaped_lines};

use super::document::{COLUMNS, Document, as_markdown, as_text, stdout_columns};
use super::output_option::OutputOption;
use super::shared_options::OUTPUT;

#[derive(Debug, Args)]
pub(super) struct ReportFormatOption {
    /// The format: text, json, csv or markdown [default: by the name of FILE, else text]
    #[arg(long, value_enum, hide_possible_values = true, help_heading = OUTPUT)]
    format: Option<ReportFormat>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// Sentences and aligned tables, for people
    #[default]
    #[value(alias = "table")]
    Text,
    /// One JSON value, whose keys docs/reference.md describes
    Json,
    /// Comma-separated values: the rows of what is compared, or else a row for each figure, named by its JSON keys
    Csv,
    /// The text with tables for an issue or a wiki
    #[value(alias = "md")]
    Markdown,
}

impl ReportFormatOption {
    pub(super) fn printed(&self) -> ReportForm<'static> {
        ReportForm { format: self.format.unwrap_or_default(), output: &OutputOption::STDOUT }
    }
}

/// Where a report goes, and in which format.
#[derive(Debug, Args)]
pub(super) struct ReportOutput {
    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    output: OutputOption,
}

impl ReportOutput {
    /// The form of what `command` writes: as named, or by the name of its file. Asked for before anything is computed.
    pub(super) fn form(&self, command: &str) -> Result<ReportForm<'_>> {
        let Self { format, output } = self;
        let format = output.form(format.format, ReportFormat::value_variants(), command)?.unwrap_or_default();
        Ok(ReportForm { format, output })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ReportForm<'a> {
    format: ReportFormat,
    output: &'a OutputOption,
}

impl ReportForm<'_> {
    pub(super) fn is_csv(self) -> bool {
        self.format == ReportFormat::Csv
    }

    /// Writes a report in this form, with text from outside escaped. `rows` is the key of the list that is the answer,
    /// whose entries are the rows of CSV; `document` is what people read.
    pub(super) fn write(
        self,
        report: &impl Serialize,
        rows: Option<&str>,
        document: impl FnOnce() -> Document,
    ) -> Result<()> {
        let columns = || self.output.path().map_or_else(stdout_columns, |_| COLUMNS);
        let written = match self.format {
            ReportFormat::Text => escaped_lines(&as_text(&document(), columns())).into_owned(),
            ReportFormat::Markdown => escaped_lines(&as_markdown(&document())).into_owned(),
            ReportFormat::Json => escaped_json(&(serde_json::to_string_pretty(report)? + "\n")).into_owned(),
            ReportFormat::Csv => return self.output.write(&csv_of(&serde_json::to_value(report)?, rows)?),
        };
        self.output.write(written.as_bytes())
    }
}

/// The entries of the list at `rows` as rows, with a column for each of their figures. Without such a list, a row for each
/// figure of the report.
pub(super) fn csv_of(report: &Value, rows: Option<&str>) -> Result<Vec<u8>> {
    let list = rows.map_or(Some(report), |key| report.get(key)).and_then(Value::as_array);
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let Some(rows) = list else {
        writer.write_record(["figure", "value"])?;
        figures(report).iter().try_for_each(|(name, value)| writer.write_record([name, value]))?;
        return Ok(writer.into_inner()?);
    };
    let rows: Vec<Vec<(String, String)>> = rows.iter().map(figures).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    writer.write_record(&columns)?;
    for row in &rows {
        let cell = |column: &&str| row.iter().find(|(name, _)| name == column).map_or("", |(_, value)| value);
        writer.write_record(columns.iter().map(cell))?;
    }
    Ok(writer.into_inner()?)
}

fn figures(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    add_figures(value, &mut String::new(), &mut found);
    found
}

fn add_figures(value: &Value, path: &mut String, found: &mut Vec<(String, String)>) {
    let mut below = |key: &str, value: &Value| {
        let length = path.len();
        if length > 0 {
            path.push('.');
        }
        path.push_str(key);
        add_figures(value, path, found);
        path.truncate(length);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(entries) => (0..).zip(entries).for_each(|(at, entry): (usize, _)| below(&at.to_string(), entry)),
        Value::Null => found.push((path.clone(), String::new())),
        // Anything can be in a text, such as a formula in the name of an action.
        Value::String(text) => found.push((path.clone(), sizeleak_text::cell(text).into_owned())),
        Value::Bool(_) | Value::Number(_) => found.push((path.clone(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(report: &Value, rows: Option<&str>) -> String {
        String::from_utf8(csv_of(report, rows).unwrap()).unwrap()
    }

    #[test]
    fn a_list_has_a_row_for_each_entry_and_a_column_for_each_figure() {
        let report = json!({ "schema": 1, "points": [
            { "policy": "none", "bytes": 0.5, "floor": null },
            { "policy": "=a,b", "bytes": 2, "interval": { "low": 0.25 }, "sets": [3, 4] },
        ] });
        let expected = "policy,bytes,floor,interval.low,sets.0,sets.1\nnone,0.5,,,,\n\"'=a,b\",2,,0.25,3,4\n";
        assert_eq!(text(&report, Some("points")), expected);
        assert_eq!(text(&json!([{ "a": 1 }]), None), "a\n1\n");
    }

    #[test]
    fn figures_without_a_list_have_a_row_each() {
        let report =
            json!({ "sentence": "It is.", "by_size": { "command": { "named": 0.25 } }, "tries": [{ "named": 1 }] });
        let expected = "figure,value\nsentence,It is.\nby_size.command.named,0.25\ntries.0.named,1\n";
        assert_eq!(text(&report, None), expected);
    }
}
