//! The best padding table: which one is asked for, the search for it, and the report on it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use sizeleak_audit::padding::{
    CountermeasureError, Goal, NoTable, PaddedHome, PaddingPolicy, PolicyFile, SourceLanguage, TableRules, TableSearch,
    exact_table, table_source,
};
use sizeleak_text::percent;

use super::judged::{NamedWithReplies, Verdict};
use crate::command::document::{Document, paragraph};
use crate::command::failure::{usage, with_code};
use crate::command::output_option::write;
use crate::command::shared_options::{number, share};

const SHOWN: usize = 24;

#[derive(Serialize)]
pub(super) struct Best<'a> {
    #[serde(flatten)]
    verdict: Verdict<'a>,
    /// `None` if replies say nothing, or are not seen apart in a tunnel.
    with_replies: Option<NamedWithReplies>,
}

impl<'a> Best<'a> {
    /// `with_replies` says what a policy leaves to whoever sees replies, too.
    pub(super) fn new(
        home: &'a PaddedHome,
        goal: Goal,
        options: &TableOptions,
        prior: &'a str,
        with_replies: impl Fn(&PaddingPolicy) -> Result<Option<NamedWithReplies>, CountermeasureError>,
    ) -> Result<Self> {
        let search = TableSearch { rows: home.table_rows(), rules: options.rules() };
        let (policy, padded) = exact_table(home, &search, goal).map_err(|why| unmet(goal, home, why))?;
        let with_replies = with_replies(&policy)?;
        Ok(Self { verdict: Verdict::new(home, policy, padded, Some(goal), prior), with_replies })
    }

    pub(super) fn parts(&self) -> Vec<Document> {
        let mut parts = self.verdict.parts();
        parts.push(paragraph(shown(&self.verdict.policy), 2));
        parts.extend(self.with_replies.map(|named| paragraph(named.sentence(), 0)));
        let alone = &self.verdict.padded.by_size.command;
        if alone.alone > 0.0 || alone.worst_posterior > 0.5 {
            let worst = format!(
                "These are averages: some command is still certain by up to {} when its size is seen. \
                 `--most-posterior` and `--least-set` exclude that.",
                percent(alone.worst_posterior)
            );
            parts.push(paragraph(worst, 0));
        }
        parts
    }
}

fn unmet(goal: Goal, home: &PaddedHome, why: NoTable) -> anyhow::Error {
    let guessing = percent(home.unpadded.command.guessing);
    match goal {
        _ if why == NoTable::Rules => usage!(
            "no table is found that obeys `--most-posterior` and `--least-set`: raise the one, or lower the other; all \
             commands in one bucket have a posterior of {guessing}"
        ),
        Goal::Budget(bytes) => usage!("no table is within the budget of {bytes:.1} bytes a command: raise it"),
        Goal::Target(target) => usage!(
            "no table reaches the target of {}: raise it; guessing alone is right in {guessing} of cases",
            percent(target)
        ),
    }
}

fn shown(policy: &PaddingPolicy) -> String {
    let buckets = if let PaddingPolicy::Table { buckets } = policy { buckets.as_slice() } else { &[] };
    let sizes: Vec<String> = buckets.iter().take(SHOWN).map(u64::to_string).collect();
    let more = buckets.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more (`--table FILE` writes all)") } else { String::new() };
    format!("Messages are padded to the next of {}{more} bytes; beyond, to multiples of the last.", sizes.join(" "))
}

/// Which table is looked for, and where it is written.
#[derive(Debug, Args)]
#[group(id = "table", requires = "demand")]
pub(super) struct TableOptions {
    /// Find the best padding table that adds at most so much to commands: 20% of their bytes, or 12B a command
    #[arg(long, value_name = "SHARE|BYTES", value_parser = budget, group = "demand")]
    budget: Option<Amount>,

    /// Find the cheapest padding table with which the command is named at most so often: in 8% of cases, or
    /// 5%-of-guessing above guessing
    #[arg(long, value_name = "SHARE", value_parser = target, group = "demand")]
    target: Option<Amount>,

    /// In each bucket of the table, the most probable command has at most this posterior probability
    #[arg(long, value_name = "SHARE", value_parser = share)]
    most_posterior: Option<f64>,

    /// Each bucket of the table holds at least so many commands
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    least_set: Option<u32>,

    /// Write the table: as JSON for `--policy` (.json), C (.c, .h) or Rust (.rs); can be repeated
    #[arg(id = "table_files", long = "table", value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl TableOptions {
    pub(super) fn check_names(&self) -> Result<()> {
        self.files.iter().try_for_each(|path| language(path).map(drop))
    }

    /// What the table is the best for, in bytes and probability, for the commands of a home; `None` if none is asked for.
    pub(super) fn goal(&self, home: &PaddedHome) -> Option<Goal> {
        let budget = self.budget.map(|budget| Goal::Budget(budget.of(home.command_bytes)));
        budget.or(self.target.map(|target| Goal::Target(target.of(home.unpadded.command.guessing))))
    }

    fn rules(&self) -> TableRules {
        TableRules {
            most_posterior: self.most_posterior.unwrap_or(1.0),
            fewest_commands: f64::from(self.least_set.unwrap_or(1)),
        }
    }

    pub(super) fn write(&self, best: &Best<'_>) -> Result<()> {
        let Verdict { policy, sentence, .. } = &best.verdict;
        for path in &self.files {
            let written = match language(path)? {
                Some(language) => table_source(policy, language, sentence).unwrap_or_default(),
                None => {
                    PolicyFile::new(policy.clone(), Some(sentence.clone())).to_json().map_err(|it| with_code(2, it))?
                }
            };
            write(path, written.as_bytes())?;
        }
        Ok(())
    }
}

/// The language of the source code in a file; `None` for JSON.
fn language(path: &Path) -> Result<Option<SourceLanguage>> {
    match path.extension().and_then(OsStr::to_str) {
        Some("json") => Ok(None),
        Some("c" | "h") => Ok(Some(SourceLanguage::C)),
        Some("rs") => Ok(Some(SourceLanguage::Rust)),
        _ => Err(usage!("name the table .json, .c, .h or .rs, and not {}", path.display())),
    }
}

/// The most bytes that padding may add to a command, as is expected.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Amount {
    share: f64,
    fixed: f64,
}

impl Amount {
    fn of(self, whole: f64) -> f64 {
        self.share * whole + self.fixed
    }
}

fn percent_of(text: &str) -> Option<f64> {
    text.strip_suffix('%').and_then(number).map(|percent| percent / 100.0)
}

/// The bytes that padding may add to a command of so many, as is expected.
fn budget(text: &str) -> Result<Amount, String> {
    let bytes = || text.strip_suffix('B').and_then(number).map(|fixed| Amount { share: 0.0, fixed });
    let share = percent_of(text).map(|share| Amount { share, fixed: 0.0 });
    share.or_else(bytes).ok_or_else(|| "write it like 20% or 12B".to_owned())
}

/// How often a command may be named, given how often it is by guessing.
fn target(text: &str) -> Result<Amount, String> {
    let above = text.strip_suffix("-of-guessing").and_then(percent_of);
    let above = above.map(|above| Amount { share: 1.0 + above, fixed: 0.0 });
    let share = || percent_of(text).filter(|share| *share <= 1.0).map(|fixed| Amount { share: 0.0, fixed });
    above.or_else(share).ok_or_else(|| "write it like 8% or 5%-of-guessing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        let of = |amount: Result<Amount, String>, whole: f64| amount.unwrap().of(whole).to_string();
        assert_eq!(["20%", "12B", "0%"].map(|text| of(budget(text), 50.0)), ["10", "12", "0"]);
        assert_eq!(["50%", "50%-of-guessing"].map(|text| of(target(text), 0.5)), ["0.5", "0.75"]);
        for wrong in ["", "20", "%", "-1%", "nan%", "inf%", "1e999%", "B"] {
            assert!(budget(wrong).is_err() && target(wrong).is_err(), "{wrong}");
        }
        assert!(target("101%").is_err());
    }
}
