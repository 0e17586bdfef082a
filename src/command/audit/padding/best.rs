//! The report on the best padding table.

use anyhow::anyhow;
use serde::Serialize;
use sizeleak_leakage::Learned;
use sizeleak_padding::{
    BestTable, Goal, Objective, PaddingPolicy, PolicyFile, SourceLanguage, TableRules, TableSearch, table_source,
};
use sizeleak_telemetry::log::LogFlags;
use sizeleak_text::escaped_lines;

use super::floor_figures::FloorFigures;
use super::home::{FloorChoice, PaddedHome};
use super::judged::Judged;
use crate::command::failure::Failure;
use crate::command::output_option::json_report;
use crate::command::report_format::ReportFormat;
use crate::command::text_table::{paragraph, percent};

/// Text is broken at this many columns.
const COLUMNS: usize = 80;

/// How often the search is repeated, where ε makes sizes vary.
const ROUNDS: usize = 12;

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
    padded: Judged,
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
    /// The search for a table.
    pub(super) fn search<'a>(&self, home: &'a PaddedHome) -> TableSearch<'a> {
        TableSearch { rows: &home.rows, objective: self.objective, rules: self.rules }
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
        let (table, padded) = found(home, &request.search(home), goal)?;
        Ok(Self {
            schema: 1,
            sentence: padded.sentence(home, &format!("the best {}", table.policy)),
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
        let mut parts = vec![
            paragraph(&self.sentence, 0, COLUMNS),
            paragraph(&format!("prior: {}", self.prior), 7, COLUMNS),
            self.padded.table(self.home),
            paragraph(&shown(&self.policy), 2, COLUMNS),
        ];
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

/// The best table for a goal. Where ε makes sizes vary, the search underestimates how often commands are named and
/// overestimates how many share a bucket, so it is repeated with stricter demands until what is asked for is met.
pub(super) fn found(
    home: &PaddedHome,
    search: &TableSearch<'_>,
    goal: BestFor,
) -> Result<(BestTable, Judged), Failure> {
    let wanted = search.rules;
    let (mut rules, mut named_at_most) = (wanted, f64::INFINITY);
    if let BestFor::Named(target) = goal {
        named_at_most = target;
    }
    for _ in 0..ROUNDS {
        let search = TableSearch { rules, ..*search };
        let hull = search.hull();
        let searched = match goal {
            BestFor::AddedBytes(bytes) => Goal::Budget(bytes),
            BestFor::Named(_) => Goal::Target(named_at_most),
        };
        let table = search.best_policy(searched, &hull).ok_or_else(|| goal.unmet(home, hull.is_empty()))?;
        let judged = Judged::new(home, &table.policy);
        let command = &judged.by_size.command;
        let mut is_met = true;
        if let BestFor::Named(target) = goal
            && command.named > target * (1.0 + 1e-9)
        {
            (named_at_most, is_met) = (named_at_most * target / command.named * 0.999, false);
        }
        if command.smallest_set < wanted.fewest_commands * (1.0 - 1e-9) {
            let factor = (wanted.fewest_commands / command.smallest_set.max(1.0)).max(1.05);
            (rules.fewest_commands, is_met) = (rules.fewest_commands * factor, false);
        }
        if command.worst_posterior > wanted.most_posterior * (1.0 + 1e-9) {
            let factor = wanted.most_posterior / command.worst_posterior * 0.999;
            (rules.most_posterior, is_met) = (rules.most_posterior * factor, false);
        }
        if is_met {
            return Ok((table, judged));
        }
    }
    Err(goal.unmet(home, true))
}

impl BestFor {
    /// Why no table is found.
    pub(super) fn unmet(self, home: &PaddedHome, is_by_rules: bool) -> Failure {
        let guessing = percent(home.unpadded.command.guessing);
        Failure::usage(match self {
            _ if is_by_rules => anyhow!(
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
