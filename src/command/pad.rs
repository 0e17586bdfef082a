//! `sizeleak pad`: what hides commands, and what it costs: a padding policy, the best table, the curve of all, and other
//! countermeasures. And that table: which one is asked for, the search for it, and the report on it.

pub(super) mod countermeasures;
#[cfg(feature = "simulator")]
mod guarded;
pub(super) mod judged;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use countermeasures::{COMMANDS_PER_DAY, Comparison, CountermeasureOptions, CountermeasureReport};
use judged::{Curve, NamedWithReplies, PolicyReport, Verdict};
use serde::Serialize;
use sizeleak_audit::padding::{
    Goal, HomeTraffic, NoTable, PaddedHome, PaddingPolicy, PolicyFile, SourceLanguage, TableRules, TableSearch,
    exact_table, table_source,
};
use sizeleak_audit::tunnel::Tunnel;
use sizeleak_inference::channel::EpsilonKnowledge;
use sizeleak_inference::space::{CommandSpace, SpaceError};
use sizeleak_model::{Basis, LearnedPadding, Model};
use sizeleak_text::percent;

use super::audit::{AuditedModel, ObserverOption};
use super::document::{Document, paragraph, spaced};
use super::failure::{usage, with_code};
use super::output_option::{ReportOutput, write};
use super::shared_options::{PADDING, number, share};

#[cfg(feature = "simulator")]
use guarded::GuardOptions;

/// Find the padding that hides commands, and what it costs
#[derive(Debug, Args)]
#[command(mut_arg("tunnel", |tunnel| tunnel.hide_short_help(true)))]
#[command(after_long_help = "Examples:\n  \
    sizeleak pad --model model.toml\n  \
    sizeleak pad --model model.toml -o curve.csv\n  \
    sizeleak pad --model model.toml --detect life.toml --alarms 1/week\n  \
    sizeleak pad --model model.toml --budget 20% --least-set 10 --table padding_table.c\n  \
    sizeleak pad --model model.toml --policy padme --dummies 30% --replies one-size\n  \
    sizeleak pad --model model.toml --tunnel esp-cbc --budget 20%\n\n\
    Without an option that says what is judged, all policies are compared. docs/padding.md explains every \
    figure, docs/reference.md the keys of `--format json`.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    audited: AuditedModel,

    #[command(flatten)]
    observer: ObserverOption,

    #[command(flatten, next_help_heading = PADDING)]
    countermeasures: CountermeasureOptions,

    #[command(flatten, next_help_heading = PADDING)]
    table: TableOptions,

    /// Take every command to have its size without ε
    #[arg(long, help_heading = PADDING)]
    without_epsilon: bool,

    #[cfg(feature = "simulator")]
    #[command(flatten, next_help_heading = PADDING)]
    guard: GuardOptions,

    #[command(flatten)]
    output: ReportOutput,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.table.files.iter().try_for_each(|path| language(path).map(drop))?;
    let policy = arguments.countermeasures.policy()?;
    let given = policy.clone().unwrap_or(PaddingPolicy::None);
    let form = arguments.output.form("sizeleak pad")?;
    let model = arguments.audited.fit_model()?;
    check_sizes(&model).with_context(|| arguments.audited.named())?;
    let space = CommandSpace::new(&model, &arguments.audited.premises())?;
    let prior = arguments.audited.prior(&model).sentence;
    let prior = if arguments.without_epsilon { format!("{prior}; ε is left out") } else { prior };
    let tunnel = arguments.observer.tunnel(&model);
    let named = arguments.countermeasures.named(given.clone());
    if arguments.countermeasures.countermeasures || named.is_some() {
        refuse_tunnel(tunnel.as_ref(), "countermeasures beside padding")?;
        let traffic = arguments.traffic(&space, &model)?;
        return if let Some(named) = &named {
            let report = CountermeasureReport::new(&traffic, &prior, named)?;
            form.write(&report, None, || spaced(report.parts()))
        } else {
            let report = Comparison::new(&traffic, &prior, &given);
            form.write(&report, Some("countermeasures"), || spaced(report.parts()))
        };
    }
    #[cfg(feature = "simulator")]
    if arguments.guard.detect.is_some() {
        refuse_tunnel(tunnel.as_ref(), "the finds of the home's own detector (`--detect`)")?;
    }
    let home = PaddedHome::new(&space, &model, arguments.knowledge(), COMMANDS_PER_DAY)?;
    let home = tunnel.iter().cloned().fold(home, PaddedHome::behind);
    if let Some(goal) = arguments.table.goal(&home) {
        let search = TableSearch { rows: home.table_rows(), rules: arguments.table.rules() };
        let (policy, padded) = exact_table(&home, &search, goal).map_err(|why| unmet(goal, &home, why))?;
        let mut with_replies = None;
        if tunnel.is_none() {
            with_replies = NamedWithReplies::new(&arguments.traffic(&space, &model)?, &policy)?;
        }
        let verdict = Verdict::new(&home, policy, padded, Some(goal), &prior);
        let best = Best { verdict, with_replies, stricter: arguments.table.stricter() };
        arguments.table.write(&best)?;
        return form.write(&best, None, || spaced(best.parts()));
    }
    #[cfg(feature = "simulator")]
    let guarded = arguments.guard.homes(&model)?;
    #[cfg(feature = "simulator")]
    let found = |policy: &_| guarded.as_ref().map(|guarded| guarded.found(policy)).transpose();
    #[cfg(not(feature = "simulator"))]
    let found = |_: &_| Ok(None);
    if let Some(policy) = &policy {
        let found = found(&PaddingPolicy::None)?.zip(found(policy)?);
        let report = PolicyReport::new(&home, policy, &prior, found);
        return form.write(&report, None, || spaced(report.parts()));
    }
    let report = Curve::new(&home, &prior, found)?;
    form.write(&report, Some("points"), || report.document())
}

impl Arguments {
    fn knowledge(&self) -> EpsilonKnowledge {
        if self.without_epsilon { EpsilonKnowledge::Value } else { EpsilonKnowledge::Distribution }
    }

    fn traffic(&self, space: &CommandSpace, model: &Model) -> Result<HomeTraffic, SpaceError> {
        HomeTraffic::new(space, model, self.knowledge(), COMMANDS_PER_DAY)
    }
}

fn refuse_tunnel(tunnel: Option<&Tunnel>, what: &str) -> Result<()> {
    let refused = || usage!("{what} are computed for records alone: `--tunnel` judges policies and tables");
    tunnel.map_or(Ok(()), |_| Err(refused()))
}

pub(crate) fn check_sizes(model: &Model) -> Result<()> {
    let fault = match (&model.learned.basis, &model.learned.padding) {
        (_, Some(LearnedPadding::Modulo(bytes))) => {
            format!("it was learned on messages that are already padded to multiples of {bytes} bytes")
        }
        (_, Some(LearnedPadding::Policy(_))) => "it is of a gateway that pads its commands already".to_owned(),
        (Basis::Wire, None) => "it knows sizes on the wire only".to_owned(),
        (Basis::Plaintext { record_overhead: [least, most], .. }, None) if least < most => {
            "it was learned under a block cipher, which hides the exact sizes".to_owned()
        }
        (Basis::Plaintext { .. }, None) => return Ok(()),
    };
    Err(usage!(
        "padding starts from the plaintext sizes of messages, which this model does not have: {fault}; learn from a \
         capture with a handshake, a stream cipher or AES-GCM, and no padding"
    ))
}

const SHOWN: usize = 24;

#[derive(Serialize)]
struct Best<'a> {
    #[serde(flatten)]
    verdict: Verdict<'a>,
    /// `None` if replies say nothing, or are not seen apart in a tunnel.
    with_replies: Option<NamedWithReplies>,
    /// What would exclude that a command is certain though few are.
    #[serde(skip)]
    stricter: &'static str,
}

impl Best<'_> {
    fn parts(&self) -> Vec<Document> {
        let mut parts = self.verdict.parts();
        parts.push(paragraph(shown(&self.verdict.policy), 2));
        parts.extend(self.with_replies.map(|named| paragraph(named.sentence(), 0)));
        let alone = &self.verdict.padded.by_size.command;
        if alone.alone > 0.0 || alone.worst_posterior > 0.5 {
            let worst = format!(
                "These are averages: some command is still certain by up to {} when its size is seen. {} that.",
                percent(alone.worst_posterior),
                self.stricter
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
struct TableOptions {
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
    /// What the table is the best for, in bytes and probability, for the commands of a home; `None` if none is asked for.
    fn goal(&self, home: &PaddedHome) -> Option<Goal> {
        let budget = self.budget.map(|budget| Goal::Budget(budget.of(home.command_bytes)));
        budget.or(self.target.map(|target| Goal::Target(target.of(home.unpadded.command.guessing))))
    }

    fn rules(&self) -> TableRules {
        TableRules {
            most_posterior: self.most_posterior.unwrap_or(1.0),
            fewest_commands: f64::from(self.least_set.unwrap_or(1)),
        }
    }

    /// The subject and the verb of a sentence on what would make the rules of the table stricter.
    fn stricter(&self) -> &'static str {
        match (self.most_posterior, self.least_set) {
            (Some(_), _) => "A lower `--most-posterior` excludes",
            (None, Some(_)) => "`--most-posterior` excludes",
            (None, None) => "`--most-posterior` and `--least-set` exclude",
        }
    }

    fn write(&self, best: &Best<'_>) -> Result<()> {
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
