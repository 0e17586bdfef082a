//! `sizeleak pad`: what hides commands, and what it costs: a padding policy, the best table, the curve of all, and other
//! countermeasures.

mod best;
pub(super) mod countermeasures;
#[cfg(feature = "simulator")]
mod guarded;
pub(super) mod judged;

use anyhow::Result;
use best::{Best, Demand, Request, TableOptions};
use clap::Args;
use countermeasures::{Comparison, CountermeasureOptions, CountermeasureReport, JudgedHome};
use judged::{Curve, NamedWithReplies, PolicyReport};
use sizeleak_audit::padding::{Countermeasures, HomeTraffic, PaddedHome, PaddingPolicy};
use sizeleak_inference::channel::EpsilonKnowledge;
use sizeleak_inference::space::{CommandSpace, SpaceError};
use sizeleak_model::{Basis, LearnedPadding, Model};

use super::audited_model::{AuditedModel, ObserverOption};
use super::document::spaced;
use super::failure::usage;
use super::help::PADDING;
use super::report_format::ReportOutput;
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
    figure, and lists the keys of `--format json`.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    audited: AuditedModel,

    #[command(flatten)]
    observer: ObserverOption,

    #[command(flatten, next_help_heading = PADDING)]
    countermeasures: CountermeasureOptions,

    #[command(flatten, next_help_heading = PADDING)]
    table: TableOptions,

    #[command(flatten, next_help_heading = PADDING)]
    home: HomeOptions,

    #[cfg(feature = "simulator")]
    #[command(flatten, next_help_heading = PADDING)]
    guard: GuardOptions,

    #[command(flatten)]
    output: ReportOutput,
}

#[derive(Debug)]
enum Question {
    /// What a policy gives away and costs.
    Policy(PaddingPolicy),
    /// The same of what else is done, beside padding or without.
    Countermeasures(Countermeasures),
    /// All countermeasures on top of a policy.
    Comparison(PaddingPolicy),
    Table(Demand),
    /// What all policies give away and cost.
    Curve,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.table.check_names()?;
    arguments.report()
}

impl Arguments {
    fn question(&self) -> Result<Question> {
        let policy = self.countermeasures.policy()?;
        if let Some(demand) = self.table.demand() {
            return Ok(Question::Table(demand));
        }
        let given = policy.clone().unwrap_or(PaddingPolicy::None);
        if self.countermeasures.countermeasures {
            return Ok(Question::Comparison(given));
        }
        Ok(match (self.countermeasures.named(given), policy) {
            (Some(named), _) => Question::Countermeasures(named),
            (None, Some(policy)) => Question::Policy(policy),
            (None, None) => Question::Curve,
        })
    }

    /// Writes the report, and tables to their files.
    fn report(&self) -> Result<()> {
        let question = self.question()?;
        let form = self.output.form("sizeleak pad")?;
        let model = self.audited.fit_model()?;
        check_sizes(&model)?;
        let space = CommandSpace::new(&model, &self.audited.premises())?;
        let prior = self.audited.prior(&model).sentence;
        let prior = if self.home.without_epsilon { format!("{prior}; ε is left out") } else { prior };
        let tunnel = self.observer.tunnel(&model);
        if tunnel.is_some() {
            self.check_tunnel(&question)?;
        }
        let home = || {
            let home = PaddedHome::new(&space, &model, self.home.knowledge(), self.home.commands_per_day())?;
            Ok::<_, SpaceError>(tunnel.iter().cloned().fold(home, PaddedHome::behind))
        };
        match question {
            Question::Policy(policy) => {
                let home = home()?;
                #[cfg(feature = "simulator")]
                let found = self.guard.homes(&model)?.map(|guarded| guarded.found_with(&policy)).transpose()?;
                #[cfg(not(feature = "simulator"))]
                let found = None;
                let report = PolicyReport::new(&home, &policy, &prior, found);
                form.write(&report, None, || spaced(report.parts()))
            }
            Question::Countermeasures(named) => {
                let traffic = self.traffic(&space, &model)?;
                let report = CountermeasureReport::new(&self.judged(&traffic, &prior), &named)?;
                form.write(&report, None, || spaced(report.parts()))
            }
            Question::Comparison(policy) => {
                let traffic = self.traffic(&space, &model)?;
                let report = Comparison::new(&self.judged(&traffic, &prior), &policy);
                form.write(&report, Some("countermeasures"), || spaced(report.parts()))
            }
            Question::Curve => {
                #[cfg(feature = "simulator")]
                let guarded = self.guard.homes(&model)?;
                #[cfg(feature = "simulator")]
                let found = |policy: &_| guarded.as_ref().map(|guarded| guarded.found(policy)).transpose();
                #[cfg(not(feature = "simulator"))]
                let found = |_: &_| Ok(None);
                let home = home()?;
                let report = Curve::new(&home, &prior, found)?;
                form.write(&report, Some("points"), || report.document())
            }
            Question::Table(demand) => {
                let home = home()?;
                let traffic = tunnel.is_none().then(|| self.traffic(&space, &model)).transpose()?;
                let with_replies = |policy: &_| match &traffic {
                    Some(traffic) => NamedWithReplies::new(traffic, policy),
                    None => Ok(None),
                };
                let TableOptions { objective, .. } = self.table;
                let request = Request { goal: demand.goal(&home), objective, rules: self.table.rules() };
                let best = Best::new(&home, &request, &prior, with_replies)?;
                self.table.write(&best)?;
                form.write(&best, None, || spaced(best.parts()))
            }
        }
    }

    fn check_tunnel(&self, question: &Question) -> Result<()> {
        let what = match question {
            Question::Countermeasures(_) | Question::Comparison(_) => "countermeasures beside padding",
            #[cfg(feature = "simulator")]
            Question::Policy(_) | Question::Curve if self.guard.is_asked_for() => {
                "the finds of the home's own detector (`--detect`)"
            }
            Question::Policy(_) | Question::Table(_) | Question::Curve => return Ok(()),
        };
        Err(usage!("{what} are computed for records alone: `--tunnel` judges policies and tables"))
    }

    fn traffic(&self, space: &CommandSpace, model: &Model) -> Result<HomeTraffic, SpaceError> {
        HomeTraffic::new(space, model, self.home.knowledge(), self.home.commands_per_day())
    }

    fn judged<'a>(&self, traffic: &'a HomeTraffic, prior: &'a str) -> JudgedHome<'a> {
        JudgedHome { traffic, commands_per_day: self.home.commands_per_day(), prior }
    }
}

/// Commands a day, unless others are named.
pub(crate) const COMMANDS_PER_DAY: u32 = 1000;

#[derive(Debug, Args)]
struct HomeOptions {
    /// Commands a day, for the cost, and for how many share a record [default: 1000]
    #[arg(long, value_name = "NUMBER", default_value_t = COMMANDS_PER_DAY, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    commands_per_day: u32,

    /// Take every command to have its size without ε
    #[arg(long)]
    without_epsilon: bool,
}

impl HomeOptions {
    fn knowledge(&self) -> EpsilonKnowledge {
        if self.without_epsilon { EpsilonKnowledge::Value } else { EpsilonKnowledge::Distribution }
    }

    fn commands_per_day(&self) -> f64 {
        f64::from(self.commands_per_day)
    }
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
