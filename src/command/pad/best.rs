//! The report on the best padding table.

use anyhow::{Result, anyhow};
use serde::Serialize;
use sizeleak_audit::leakage::Learned;
use sizeleak_audit::padding::{
    CountermeasureError, Goal, JudgedPolicy, NoTable, Objective, PaddedHome, PaddingPolicy, PolicyFile, SourceLanguage,
    TableRules, TableSearch, exact_table, table_source,
};
use sizeleak_audit::tunnel::Tunnel;
use sizeleak_text::percent;

use super::judged::{NamedWithReplies, opening, sentence, table};
use crate::command::document::{Document, paragraph, spaced};
use crate::command::failure::with_code;
use crate::command::report_format::ReportForm;

const SHOWN: usize = 24;

#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) goal: Goal,
    pub(super) objective: Objective,
    pub(super) rules: TableRules,
}

impl Request {
    pub(super) fn table(&self, home: &PaddedHome) -> Result<(PaddingPolicy, JudgedPolicy)> {
        let search = TableSearch { rows: home.table_rows(), objective: self.objective, rules: self.rules };
        exact_table(home, &search, self.goal).map_err(|why| unmet(self.goal, home, why))
    }
}

/// The best padding table for a goal, with what it gives away and costs.
#[derive(Serialize)]
pub(super) struct Best<'a> {
    schema: u32,
    sentence: String,
    prior: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tunnel: Option<&'a Tunnel>,
    goal: Goal,
    policy: PaddingPolicy,
    commands_per_day: f64,
    command_bytes: f64,
    padded: JudgedPolicy,
    unpadded: &'a Learned,
    /// `None` if replies say nothing, or are not seen apart in a tunnel.
    with_replies: Option<NamedWithReplies>,
    #[serde(skip)]
    home: &'a PaddedHome,
}

impl<'a> Best<'a> {
    /// `with_replies` says what a policy leaves to whoever sees replies, too.
    pub(super) fn new(
        home: &'a PaddedHome,
        request: &Request,
        prior: &'a str,
        with_replies: impl Fn(&PaddingPolicy) -> Result<Option<NamedWithReplies>, CountermeasureError>,
    ) -> Result<Self> {
        let (policy, padded) = request.table(home)?;
        Ok(Self {
            with_replies: with_replies(&policy)?,
            schema: 1,
            sentence: sentence(&padded, home, &format!("the best {policy}")),
            prior,
            tunnel: home.tunnel(),
            goal: request.goal,
            policy,
            commands_per_day: home.commands_per_day,
            command_bytes: home.command_bytes,
            padded,
            unpadded: &home.unpadded,
            home,
        })
    }

    pub(super) fn json(&self) -> Result<String> {
        PolicyFile::new(self.policy.clone(), Some(self.sentence.clone())).to_json().map_err(|error| with_code(2, error))
    }

    pub(super) fn source(&self, language: SourceLanguage) -> String {
        table_source(&self.policy, language, &self.sentence).unwrap_or_default()
    }

    pub(super) fn written(&self, form: ReportForm) -> Result<Vec<u8>> {
        form.written(self, None, || spaced(self.parts()))
    }

    fn parts(&self) -> Vec<Document> {
        let mut parts = opening(&self.sentence, self.prior);
        parts.extend([table(&self.padded, self.home), paragraph(shown(&self.policy), 2)]);
        parts.extend(self.with_replies.map(|named| paragraph(named.sentence(), 0)));
        let alone = &self.padded.by_size.command;
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
    with_code(
        2,
        match goal {
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
        },
    )
}

fn shown(policy: &PaddingPolicy) -> String {
    let buckets = if let PaddingPolicy::Table { buckets } = policy { buckets.as_slice() } else { &[] };
    let sizes: Vec<String> = buckets.iter().take(SHOWN).map(u64::to_string).collect();
    let more = buckets.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more (`--table FILE` writes all)") } else { String::new() };
    format!("Messages are padded to the next of {}{more} bytes; beyond, to multiples of the last.", sizes.join(" "))
}
