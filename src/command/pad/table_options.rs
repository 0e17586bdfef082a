//! The options of the search for the best table.

use std::path::PathBuf;

use clap::Args;
use sizeleak_audit::padding::{Objective, SourceLanguage, TableRules};
use sizeleak_platform::storage::RunFiles;

use super::best::Best;
use super::quantity::{Budget, Demand, Target, share};
use crate::command::failure::Failure;
use crate::command::output_option::write;

/// Which table is looked for, and where it is written.
#[derive(Debug, Args)]
#[group(id = "table", requires = "demand")]
pub(super) struct TableOptions {
    /// Find the best padding table for `--budget` or `--target`
    #[arg(long)]
    best: bool,

    /// The most that padding may add to commands: 20% of their bytes, or 12B a command
    #[arg(long, value_name = "SHARE|BYTES", group = "demand")]
    budget: Option<Budget>,

    /// How often the command may be named at most: in 8% of cases, or 5%-of-guessing above guessing
    #[arg(long, value_name = "SHARE", group = "demand")]
    target: Option<Target>,

    /// What the best table makes small [default: named]
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_default_value = true,
        conflicts_with = "target",
        hide_short_help = true
    )]
    pub(super) objective: Objective,

    /// In each bucket of the table, the most probable command has at most this posterior probability
    #[arg(long, value_name = "SHARE", hide_short_help = true, value_parser = share)]
    most_posterior: Option<f64>,

    /// Each bucket of the table holds at least so many commands
    #[arg(long, value_name = "NUMBER", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    least_set: Option<u32>,

    /// Write the best table as JSON, for `--policy`
    #[arg(long, value_name = "FILE")]
    table_json: Option<PathBuf>,

    /// Write the best table as C
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    table_c: Option<PathBuf>,

    /// Write the best table as Rust
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    table_rust: Option<PathBuf>,
}

impl TableOptions {
    /// Adds the files that are written.
    pub(super) fn add_to(&self, files: &mut RunFiles) {
        let tables = [
            ("`--table-json`", &self.table_json),
            ("`--table-c`", &self.table_c),
            ("`--table-rust`", &self.table_rust),
        ];
        for (role, path) in tables {
            if let Some(path) = path {
                files.writes(role, path);
            }
        }
    }

    /// What the table is the best for; `None` if none is asked for.
    pub(super) fn demand(&self) -> Option<Demand> {
        self.budget.map(Demand::Budget).or(self.target.map(Demand::Target))
    }

    /// What must hold for each bucket.
    pub(super) fn rules(&self) -> TableRules {
        TableRules {
            most_posterior: self.most_posterior.unwrap_or(1.0),
            fewest_commands: f64::from(self.least_set.unwrap_or(1)),
        }
    }

    /// Writes the table to the files that are named.
    pub(super) fn write(&self, best: &Best<'_>) -> Result<(), Failure> {
        if let Some(path) = &self.table_json {
            write(path, best.json()?.as_bytes())?;
        }
        for (path, language) in [(&self.table_c, SourceLanguage::C), (&self.table_rust, SourceLanguage::Rust)] {
            if let Some(path) = path {
                write(path, best.source(language).as_bytes())?;
            }
        }
        Ok(())
    }
}
