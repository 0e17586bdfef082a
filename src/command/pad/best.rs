//! The report on the best padding table.

use anyhow::anyhow;
use serde::Serialize;
use sizeleak_audit::leakage::Learned;
use sizeleak_audit::padding::{
    BestTable, Goal, JudgedPolicy, NoTable, Objective, PaddedHome, PaddingPolicy, PolicyFile, SourceLanguage,
    TableRules, TableSearch, exact_table, table_source,
};
use sizeleak_audit::tunnel::Tunnel;
use sizeleak_platform::telemetry::log::LogFlags;

use super::floor::{FloorChoice, FloorFigures};
use super::judged::{opening, sentence, table};
use crate::command::document::{Document, paragraph, spaced};
use crate::command::failure::Failure;
use crate::command::figures::percent;
use crate::command::report_format::ReportForm;

/// Buckets that are shown.
const SHOWN: usize = 24;

/// The best padding table.
#[derive(Serialize)]
pub(super) struct Best<'a> {
    #[serde(flatten)]
    found: BestPolicy<'a>,
    #[serde(flatten)]
    floor: FloorFigures,
}

/// Which table is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) goal: Goal,
    pub(super) objective: Objective,
    pub(super) rules: TableRules,
    pub(super) floor: FloorChoice,
    /// Whether progress is said.
    pub(super) log: &'a LogFlags,
}

impl Request<'_> {
    /// The best table.
    pub(super) fn table(&self, home: &PaddedHome) -> Result<(BestTable, JudgedPolicy), Failure> {
        let search = TableSearch { rows: home.table_rows(), objective: self.objective, rules: self.rules };
        exact_table(home, &search, self.goal).map_err(|why| unmet(self.goal, home, why))
    }
}

impl<'a> Best<'a> {
    pub(super) fn new(home: &'a PaddedHome, request: &Request<'_>, prior: &'a str) -> Result<Self, Failure> {
        let (BestTable { policy, .. }, padded) = request.table(home)?;
        let floor = FloorFigures::new(home, request.floor, &padded, request.log);
        let named = format!("the best {policy}");
        Ok(Self { found: BestPolicy::new(home, request.goal, (policy, padded), &named, prior), floor })
    }

    /// The table as a policy file.
    pub(super) fn json(&self) -> Result<String, Failure> {
        self.found.json()
    }

    /// The table as source code.
    pub(super) fn source(&self, language: SourceLanguage) -> String {
        table_source(&self.found.policy, language, &self.found.sentence).unwrap_or_default()
    }

    /// In this format.
    pub(super) fn written(&self, form: ReportForm) -> Result<Vec<u8>, Failure> {
        Ok(form.written(self, None, || spaced(self.parts()))?)
    }

    fn parts(&self) -> Vec<Document> {
        let mut parts = self.found.opening();
        parts.push(paragraph(shown(&self.found.policy), 2));
        parts.extend(self.floor.sentence().map(|sentence| paragraph(sentence, 0)));
        let alone = &self.found.padded.by_size.command;
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

/// The best policy for a goal, with what it gives away and costs.
#[derive(Serialize)]
pub(super) struct BestPolicy<'a> {
    schema: u32,
    pub(super) sentence: String,
    prior: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tunnel: Option<&'a Tunnel>,
    pub(super) goal: Goal,
    pub(super) policy: PaddingPolicy,
    commands_per_day: f64,
    command_bytes: f64,
    pub(super) padded: JudgedPolicy,
    unpadded: &'a Learned,
    #[serde(skip)]
    home: &'a PaddedHome,
}

impl<'a> BestPolicy<'a> {
    /// A policy that is `named` so in words.
    pub(super) fn new(
        home: &'a PaddedHome,
        goal: Goal,
        (policy, padded): (PaddingPolicy, JudgedPolicy),
        named: &str,
        prior: &'a str,
    ) -> Self {
        Self {
            schema: 1,
            sentence: sentence(&padded, home, named),
            prior,
            tunnel: home.tunnel(),
            goal,
            policy,
            commands_per_day: home.commands_per_day,
            command_bytes: home.command_bytes,
            padded,
            unpadded: &home.unpadded,
            home,
        }
    }

    /// As a policy file.
    pub(super) fn json(&self) -> Result<String, Failure> {
        PolicyFile::new(self.policy.clone(), Some(self.sentence.clone())).to_json().map_err(Failure::usage)
    }

    /// How the report begins as text.
    pub(super) fn opening(&self) -> Vec<Document> {
        let mut parts = opening(&self.sentence, self.prior);
        parts.push(table(&self.padded, self.home));
        parts
    }
}

/// Why no table is found.
fn unmet(goal: Goal, home: &PaddedHome, why: NoTable) -> Failure {
    let guessing = percent(home.unpadded.command.guessing);
    Failure::usage(match goal {
        _ if why == NoTable::Rules => anyhow!(
            "no table is found that obeys `--most-posterior` and `--least-set`: raise the one, or lower the other; all \
             commands in one bucket have a posterior of {guessing}"
        ),
        Goal::Budget(bytes) => {
            anyhow!("no table is within the budget of {bytes:.1} bytes a command: raise it")
        }
        Goal::Target(target) => anyhow!(
            "no table reaches the target of {}: raise it; guessing alone is right in {guessing} of cases",
            percent(target)
        ),
    })
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
