//! `sizeleak pad`: what hides commands, and what it costs: a padding policy, the best table, the curve of all, and other
//! countermeasures.

mod best;
pub(super) mod countermeasures;
#[cfg(feature = "simulator")]
mod guarded;
pub(super) mod judged;

use anyhow::Result;
use best::{Best, TableOptions};
use clap::Args;
use countermeasures::{COMMANDS_PER_DAY, Comparison, CountermeasureOptions, CountermeasureReport};
use judged::{Curve, NamedWithReplies, PolicyReport};
use sizeleak_audit::padding::{HomeTraffic, PaddedHome, PaddingPolicy};
use sizeleak_audit::tunnel::Tunnel;
use sizeleak_inference::channel::EpsilonKnowledge;
use sizeleak_inference::space::{CommandSpace, SpaceError};
use sizeleak_model::{Basis, LearnedPadding, Model};

use super::audited_model::{AuditedModel, ObserverOption};
use super::document::spaced;
use super::failure::usage;
use super::report_format::ReportOutput;
use super::shared_options::PADDING;

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
    arguments.table.check_names()?;
    let policy = arguments.countermeasures.policy()?;
    let given = policy.clone().unwrap_or(PaddingPolicy::None);
    let form = arguments.output.form("sizeleak pad")?;
    let model = arguments.audited.fit_model()?;
    check_sizes(&model)?;
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
        let traffic = tunnel.is_none().then(|| arguments.traffic(&space, &model)).transpose()?;
        let with_replies = |policy: &_| match &traffic {
            Some(traffic) => NamedWithReplies::new(traffic, policy),
            None => Ok(None),
        };
        let best = Best::new(&home, goal, &arguments.table, &prior, with_replies)?;
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
