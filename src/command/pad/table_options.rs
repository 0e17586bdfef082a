//! The options of the search for the best table.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
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
    /// Find the best padding table that adds at most so much to commands: 20% of their bytes, or 12B a command
    #[arg(long, value_name = "SHARE|BYTES", group = "demand")]
    budget: Option<Budget>,

    /// Find the cheapest padding table with which the command is named at most so often: in 8% of cases, or
    /// 5%-of-guessing above guessing
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

    /// Write the table: as JSON for `--policy` (.json), C (.c, .h) or Rust (.rs); can be repeated
    #[arg(id = "table_files", long = "table", value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl TableOptions {
    /// Adds the files that are written.
    pub(super) fn add_to(&self, files: &mut RunFiles) {
        self.files.iter().for_each(|path| files.writes("`--table`", path));
    }

    /// Checks that the names of the files say what to write.
    pub(super) fn check_names(&self) -> Result<(), Failure> {
        self.files.iter().try_for_each(|path| language(path).map(drop))
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
        for path in &self.files {
            let written = language(path)?.map_or_else(|| best.json(), |language| Ok(best.source(language)))?;
            write(path, written.as_bytes())?;
        }
        Ok(())
    }
}

/// The language of the source code in a file; `None` for JSON.
fn language(path: &Path) -> Result<Option<SourceLanguage>, Failure> {
    match path.extension().and_then(OsStr::to_str) {
        Some("json") => Ok(None),
        Some("c" | "h") => Ok(Some(SourceLanguage::C)),
        Some("rs") => Ok(Some(SourceLanguage::Rust)),
        _ => Err(Failure::usage(anyhow!("name the table .json, .c, .h or .rs, and not {}", path.display()))),
    }
}
