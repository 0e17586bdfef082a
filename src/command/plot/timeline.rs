//! The timeline of a stream: which commands and deviations are drawn, and the labels over them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::Args;
use sizeleak_evaluation::gateways_of_labels;
use sizeleak_frame::FlowId;
use sizeleak_learning::labels::{LabelClock, LabelFile};
use sizeleak_model::{Choice, FlowEnds, GatewaysSeen, Model, ModelSet};
use sizeleak_output::TimeFormat;
use sizeleak_output::plot::{CommandFilter, TimePoint, Timeline, Truth};
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::counted;

use super::content::PictureKind;
use crate::command::failure::usage;
use crate::command::labels::plain_labels;
use crate::command::shared_options::{INPUT, checked};

const LIMIT: usize = 10_000;

/// What to draw of a stream; by default all.
#[derive(Debug, Args)]
pub(super) struct TimelineOptions {
    /// Only what is of this time or later: RFC 3339, or a date (with a time) by the clock of `--time`
    #[arg(long, value_name = "TIME")]
    since: Option<TimePoint>,

    /// Only what is before this time
    #[arg(long, value_name = "TIME")]
    until: Option<TimePoint>,

    /// Only commands, deviations or the home of these gateways; can be repeated
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    pub(super) gateway: Vec<IpAddr>,

    /// Only commands and deviations of these flows, as JSON and CSV name them; can be repeated
    #[arg(long, value_name = "FLOW", value_delimiter = ',')]
    flow: Vec<FlowId>,

    /// The model of the answers: each of its sections has lanes
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    model: Vec<PathBuf>,

    /// Draw the true actions over the commands, as labelled
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    labels: Option<PathBuf>,
}

impl TimelineOptions {
    /// The options that are given, each with the pictures that it is about.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, &'static [PictureKind])> {
        let timeline = &[PictureKind::Timeline][..];
        let options = [
            ("--since", self.since.is_some(), timeline),
            ("--until", self.until.is_some(), timeline),
            ("--gateway", !self.gateway.is_empty(), &[PictureKind::Timeline, PictureKind::Profile]),
            ("--flow", !self.flow.is_empty(), timeline),
            ("--labels", self.labels.is_some(), timeline),
            ("--model", !self.model.is_empty(), timeline),
        ];
        options.into_iter().filter(|(_, is_given, _)| *is_given).map(|(option, _, kinds)| (option, kinds))
    }

    pub(super) fn labels(&self) -> Result<Option<LabelFile>> {
        self.labels.as_deref().map(plain_labels).transpose()
    }

    pub(super) fn model(&self) -> Result<Option<ModelSet>> {
        Ok(if self.model.is_empty() { None } else { Some(ModelSet::read(&self.model)?) })
    }

    pub(super) fn timeline(&self, times: &TimeFormat) -> Result<Timeline> {
        let nanoseconds = |time: TimePoint| {
            let out_of_range = || usage!("times of a capture are between the years 1678 and 2262");
            time.nanoseconds(times).ok_or_else(out_of_range)
        };
        let since_ns = self.since.map(nanoseconds).transpose()?;
        let range = checked(since_ns, self.until.map(nanoseconds).transpose()?)?;
        let flows = self.flow.iter().map(|flow| flow.0).collect();
        let filter = CommandFilter { range, gateways: self.gateway.clone(), flows };
        Ok(Timeline::new(LIMIT, filter))
    }
}

/// Adds to a timeline that was read what a model and labels say of it; reports what is not drawn.
pub(super) fn complete(timeline: &mut Timeline, model: Option<&ModelSet>, labels: Option<&LabelFile>) -> Result<()> {
    report_omissions(timeline)?;
    if let Some(model) = model {
        add_sections(timeline, model);
    }
    if let Some(labels) = labels.filter(|_| timeline.commands().next().is_some()) {
        add_truth(timeline, labels, model.map_or(&[], ModelSet::sections))?;
    }
    Ok(())
}

fn add_sections(timeline: &mut Timeline, model: &ModelSet) {
    let scopes = model.scopes();
    let gateways = if timeline.gateways().len() > 1 { GatewaysSeen::Several } else { GatewaysSeen::One };
    timeline.set_sections(|gateway, service, [server_name, protocol]| {
        match scopes.choose(FlowEnds { gateway, service, server_name, protocol, is_report: false }, gateways) {
            Choice::Covered(section) | Choice::Assumed(section, _) => {
                let scope = &model.sections().get(section)?.scope;
                (!scope.is_empty()).then(|| scope.to_string())
            }
            Choice::Uncovered(_) => None,
        }
    });
}

fn add_truth(timeline: &mut Timeline, labels: &LabelFile, models: &[Model]) -> Result<()> {
    let tolerance = labels.tolerance(None);
    let mut by_gateway = BTreeMap::<IpAddr, Vec<i64>>::new();
    for (time_ns, gateway) in timeline.commands() {
        if let Some(gateway) = gateway {
            by_gateway.entry(gateway).or_default().push(time_ns);
        }
    }
    let (labelled, remark) = gateways_of_labels(&by_gateway, labels, tolerance, models);
    if let Some(remark) = remark {
        say("note", &remark);
    }
    let is_labelled = |gateway: Option<IpAddr>| {
        labelled.as_ref().zip(gateway).is_none_or(|(labelled, gateway)| labelled.contains(&gateway))
    };
    let own = timeline.commands().enumerate().filter(|(_, (_, gateway))| is_labelled(*gateway));
    let (numbers, times): (Vec<usize>, Vec<i64>) = own.map(|(number, (time_ns, _))| (number, time_ns)).unzip();
    let aligned = labels.aligned(&times, tolerance);
    if aligned.clock().is_some_and(|clock| !matches!(clock, LabelClock::Given(_))) && aligned.times() != labels.times()
    {
        say(
            "sizeleak",
            "the clock of the labels is not that of the captures: `sizeleak evaluate` says how they differ",
        );
    }
    let pairs = aligned.matching(&times, tolerance)?.pairs.into_iter();
    let commands: BTreeMap<usize, usize> = pairs.filter_map(|(row, at)| Some((row, *numbers.get(at)?))).collect();
    let (first, last) = (times.iter().min(), times.iter().max());
    let reach = tolerance.nanoseconds();
    let is_near = |time_ns: i64| {
        first.is_some_and(|first| time_ns >= first.saturating_sub(reach))
            && last.is_some_and(|last| time_ns <= last.saturating_add(reach))
    };
    let names: Vec<Arc<str>> = aligned.labels().actions.iter().map(|name| Arc::from(name.as_str())).collect();
    let mut outside = 0;
    for (row, label) in aligned.labels().rows.iter().enumerate() {
        let command = commands.get(&row).copied();
        if command.is_none() && !is_near(label.time_ns) {
            outside += 1;
            continue;
        }
        let actions = names.iter().cloned().zip(label.counts.iter().map(|count| u64::from(*count)));
        let actions = actions.filter(|(_, count)| *count > 0).collect();
        timeline.add_truth(Truth { time_ns: label.time_ns, actions, command });
    }
    if outside > 0 {
        let outside = counted(outside, "label is", "labels are");
        say("sizeleak", &format!("{outside} outside the time of the commands that are drawn"));
    }
    Ok(())
}

/// Reports commands and deviations that the picture does not show.
///
/// # Errors
/// If it would show none of those that there are.
fn report_omissions(timeline: &Timeline) -> Result<()> {
    let (drawn, accepted, rejected) = (timeline.drawn(), timeline.accepted, timeline.rejected);
    if accepted == 0 && rejected > 0 {
        return Err(anyhow!("none of {rejected} commands and deviations has the times, gateways and flows to draw"));
    }
    let words = if accepted == 0 {
        "there is no identification to draw, which the decomposer and the pruner make, and no deviation".to_owned()
    } else if drawn < accepted {
        format!(
            "the first {drawn} of {accepted} commands and deviations are drawn (`--since` and `--until` choose others)"
        )
    } else {
        return Ok(());
    };
    say("sizeleak", &words);
    Ok(())
}
