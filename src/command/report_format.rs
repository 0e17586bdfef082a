//! Whether a report is for people or for programs, as several subcommands name it.

use clap::{Args, ValueEnum};

use super::help::OUTPUT;

/// The format of a report.
#[derive(Debug, Args)]
pub(super) struct ReportFormatOption {
    /// The format of what is printed: table or json [default: table]
    #[arg(long, value_enum, hide_possible_values = true, help_heading = OUTPUT)]
    format: Option<ReportFormat>,

    /// Print JSON: `--format json`
    #[arg(long, conflicts_with = "format", hide_short_help = true, help_heading = OUTPUT)]
    json: bool,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// Text, for people
    #[default]
    Table,
    /// One JSON value
    Json,
}

impl ReportFormatOption {
    /// The format that is named.
    pub(super) fn named(&self) -> Option<ReportFormat> {
        if self.json { Some(ReportFormat::Json) } else { self.format }
    }

    /// Whether JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
        self.named() == Some(ReportFormat::Json)
    }
}
