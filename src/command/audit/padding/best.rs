//! The report on the best padding table.

use anyhow::anyhow;
use serde::Serialize;
use sizeleak_leakage::Learned;
use sizeleak_padding::{
    BestTable, Goal, JudgedPolicy, NoTable, Objective, PaddedHome, PaddingPolicy, PolicyFile, SourceLanguage,
    TableRules, TableSearch, exact_table, table_source,
};
use sizeleak_telemetry::log::LogFlags;
use sizeleak_text::escaped_lines;

use super::floor_figures::{FloorChoice, FloorFigures};
use super::judged::{COLUMNS, opening, sentence, table};
use crate::command::failure::Failure;
use crate::command::output_option::json_report;
use crate::command::report_format::ReportFormat;
use crate::command::text_table::{paragraph, percent};

/// Buckets that are shown.
const SHOWN: usize = 24;

/// The best padding table.
#[derive(Serialize)]
pub(super) struct Best<'a> {
    schema: u32,
    sentence: String,
    prior: &'a str,
    goal: BestFor,
    policy: PaddingPolicy,
    commands_per_day: f64,
    command_bytes: f64,
    padded: JudgedPolicy,
    unpadded: &'a Learned,
    #[serde(flatten)]
    floor: FloorFigures,
    #[serde(skip)]
    home: &'a PaddedHome,
}

/// Which table is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) goal: BestFor,
    pub(super) objective: Objective,
    pub(super) rules: TableRules,
    pub(super) floor: FloorChoice,
    /// Whether progress is said.
    pub(super) log: &'a LogFlags,
}

impl Request<'_> {
    /// The best table.
    pub(super) fn table(&self, home: &PaddedHome) -> Result<(BestTable, JudgedPolicy), Failure> {
        let search = TableSearch { rows: home.rows(), objective: self.objective, rules: self.rules };
        exact_table(home, &search, self.goal.into()).map_err(|why| self.goal.unmet(home, why))
    }
}

/// What a table is the best for.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BestFor {
    /// At most so many expected bytes are added to a command.
    AddedBytes(f64),
    /// The command is named at most so often.
    Named(f64),
}

impl<'a> Best<'a> {
    pub(super) fn new(home: &'a PaddedHome, request: &Request<'_>, prior: &'a str) -> Result<Self, Failure> {
        let goal = request.goal;
        let (table, padded) = request.table(home)?;
        Ok(Self {
            schema: 1,
            sentence: sentence(&padded, home, &format!("the best {}", table.policy)),
            prior,
            goal,
            policy: table.policy,
            commands_per_day: home.commands_per_day,
            command_bytes: home.command_bytes,
            unpadded: &home.unpadded,
            floor: FloorFigures::new(home, request.floor, &padded, request.log),
            padded,
            home,
        })
    }

    /// The table as a policy file.
    pub(super) fn json(&self) -> Result<String, Failure> {
        Ok(PolicyFile::new(self.policy.clone(), Some(self.sentence.clone())).to_json()?)
    }

    /// The table as source code.
    pub(super) fn source(&self, language: SourceLanguage) -> String {
        table_source(&self.policy, language, &self.sentence).unwrap_or_default()
    }

    /// As text or JSON.
    pub(super) fn written(&self, format: ReportFormat) -> Result<Vec<u8>, Failure> {
        if format == ReportFormat::Json {
            return Ok(json_report(self)?.into_bytes());
        }
        let mut parts = opening(&self.sentence, self.prior);
        parts.extend([table(&self.padded, self.home), paragraph(&shown(&self.policy), 2, COLUMNS)]);
        parts.extend(self.floor.sentence().map(|sentence| paragraph(&sentence, 0, COLUMNS)));
        let alone = &self.padded.by_size.command;
        if alone.alone > 0.0 || alone.worst_posterior > 0.5 {
            let worst = format!(
                "These are averages: some command is still certain by up to {} when its size is seen. \
                 `--most-posterior` and `--least-set` exclude that.",
                percent(alone.worst_posterior)
            );
            parts.push(paragraph(&worst, 0, COLUMNS));
        }
        Ok(escaped_lines(&parts.join("\n")).as_bytes().to_vec())
    }
}

impl From<BestFor> for Goal {
    fn from(best: BestFor) -> Self {
        match best {
            BestFor::AddedBytes(bytes) => Self::Budget(bytes),
            BestFor::Named(named) => Self::Target(named),
        }
    }
}

impl BestFor {
    /// Why no table is found.
    fn unmet(self, home: &PaddedHome, why: NoTable) -> Failure {
        let guessing = percent(home.unpadded.command.guessing);
        Failure::usage(match self {
            _ if why == NoTable::Rules => anyhow!(
                "no table is found that obeys `--most-posterior` and `--least-set`: raise the one, or lower the other; all \
                 commands in one bucket have a posterior of {guessing}"
            ),
            Self::AddedBytes(bytes) => {
                anyhow!("no table is within the budget of {bytes:.1} bytes a command: raise it")
            }
            Self::Named(target) => anyhow!(
                "no table reaches the target of {}: raise it; guessing alone is right in {guessing} of cases",
                percent(target)
            ),
        })
    }
}

/// What is in a table.
fn shown(policy: &PaddingPolicy) -> String {
    match policy {
        PaddingPolicy::Table { buckets } => {
            let sizes: Vec<String> = buckets.iter().take(SHOWN).map(u64::to_string).collect();
            let more = buckets.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more (see `--table-json`)") } else { String::new() };
            format!(
                "Messages are padded to the next of {}{more} bytes; beyond, to multiples of the last.",
                sizes.join(" ")
            )
        }
        policy => format!("Each size is padded to one of its own: a {policy} (see `--table-json`)."),
    }
}
