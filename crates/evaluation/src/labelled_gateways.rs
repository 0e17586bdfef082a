//! Which of several gateways labels are about. Files of labels do not name one, and a command of another gateway may lie
//! nearer to a label than its own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use sizeleak_frame::{Command, Frame};
use sizeleak_learning::labels::{LabelFile, Tolerance, by_chance, near_by_chance};
use sizeleak_model::Model;
use sizeleak_pipeline::{InputError, Pipeline, PipelineInput};
use sizeleak_text::counted;

use crate::evaluator::before_inference;

const FLOW_FILTER: &str = "flow-filter";

/// Labels are about a gateway if chance gives as many of them a command of it with at most this probability.
const SIGNIFICANT: f64 = 1e-3;

/// The tolerance is halved so often: labels lie closer to their own commands than it allows.
const TRIED: u32 = 8;

/// Where another gateway has commands near at least this share of the labels, too, times do not tell the two apart.
const ALIKE: f64 = 0.9;

/// What the times of labels and commands, and the model, say of where labels belong.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LabelledGateways {
    /// All that sent or were sent commands, or as far as can be told.
    All,
    Some(BTreeSet<IpAddr>),
    Untold,
}

/// A pipeline without the gateways that labels are not about, and what is to be said of that. The pipeline stays as it is
/// where labels are about all gateways, about none that `models` answer for, or where nothing tells.
pub fn with_labelled_gateways(
    input: &PipelineInput,
    pipeline: &Pipeline,
    labels: &LabelFile,
    tolerance: Tolerance,
    models: &[Model],
) -> Result<(Pipeline, Option<String>), InputError> {
    let unchanged = || (pipeline.clone(), None);
    if !names_several_gateways(pipeline) {
        return Ok(unchanged());
    }
    let commands = commands_by_gateway(input, &before_inference(pipeline))?;
    let cannot_change = |labelled: &_| answer_for_others_alone(models, labelled) || !pipeline.has(FLOW_FILTER);
    let (labelled, remark) = said_of(&commands, labels, tolerance, models, cannot_change);
    let mut pipeline = pipeline.clone();
    if let Some(labelled) = labelled {
        let named: Vec<String> = labelled.iter().map(ToString::to_string).collect();
        pipeline.set(FLOW_FILTER, "gateway", named)?;
    }
    Ok((pipeline, remark))
}

/// Which of several gateways labels are about, by when each was sent commands, in nanoseconds since 1970; `None` where the
/// commands of all count. And what is to be said of that.
pub fn gateways_of_labels(
    commands: &BTreeMap<IpAddr, Vec<i64>>,
    labels: &LabelFile,
    tolerance: Tolerance,
    models: &[Model],
) -> (Option<BTreeSet<IpAddr>>, Option<String>) {
    said_of(commands, labels, tolerance, models, |_| false)
}

/// The same, where all count if those that labels are about `cannot_count_alone`.
fn said_of(
    commands: &BTreeMap<IpAddr, Vec<i64>>,
    labels: &LabelFile,
    tolerance: Tolerance,
    models: &[Model],
    cannot_count_alone: impl Fn(&BTreeSet<IpAddr>) -> bool,
) -> (Option<BTreeSet<IpAddr>>, Option<String>) {
    let remedy = "`--gateway` says which";
    let named = |gateways: Vec<&IpAddr>, between: &str| {
        gateways.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
    };
    match labelled_gateways(commands, labels, tolerance, models) {
        LabelledGateways::All => (None, None),
        LabelledGateways::Untold => {
            let all = named(commands.keys().collect(), " or ");
            let remark = "cannot be told: commands of each may count";
            (None, Some(format!("whether the labels are about {all} {remark}; {remedy}")))
        }
        LabelledGateways::Some(labelled) => {
            let others = || commands.iter().filter(|(gateway, _)| !labelled.contains(*gateway));
            let theirs = counted(others().map(|(_, times)| times.len()).sum::<usize>(), "command", "commands");
            let others = named(others().map(|(gateway, _)| gateway).collect(), " and ");
            let about = format!("the labels are about gateway {}", named(labelled.iter().collect(), " and "));
            if cannot_count_alone(&labelled) {
                return (None, Some(format!("{about}, and not about {theirs} of {others}; {remedy}")));
            }
            (Some(labelled), Some(format!("{about}: {theirs} of {others} do not count ({remedy})")))
        }
    }
}

/// Whether the pipeline may find several gateways: where none is named, streams are of one.
fn names_several_gateways(pipeline: &Pipeline) -> bool {
    let named = pipeline.option(FLOW_FILTER, "gateway").and_then(toml::Value::as_array);
    let is_network = |one: &toml::Value| one.as_str().is_some_and(|one| one.contains('/'));
    named.is_some_and(|named| named.len() > 1 || named.iter().any(is_network))
}

/// When the commands of each gateway were sent, in nanoseconds since 1970; those of reports too.
fn commands_by_gateway(input: &PipelineInput, pipeline: &Pipeline) -> Result<BTreeMap<IpAddr, Vec<i64>>, InputError> {
    let (mut of_flow, mut commands) = (BTreeMap::new(), BTreeMap::<IpAddr, Vec<i64>>::new());
    input.observe(pipeline, &mut |_| {}, |frame| {
        let command: &Command = match &frame {
            Frame::Flow(flow) => {
                of_flow.insert(flow.flow, flow.gateway);
                return;
            }
            Frame::Command(command) => command,
            Frame::Correction(correction) => &correction.command,
            Frame::Identification(identification) => &identification.command,
            _ => return,
        };
        if let Some(gateway) = of_flow.get(&command.flow) {
            commands.entry(*gateway).or_default().push(command.time_ns);
        }
    })?;
    Ok(commands)
}

struct GatewayMatch {
    gateway: IpAddr,
    /// The rows of the labels that are near a command, and how far from it, in nanoseconds.
    distances: BTreeMap<usize, u64>,
    /// How near a label may lie to a command, and the probability that one does by chance; for each distance that is tried.
    chances: Vec<(u64, f64)>,
    /// The sum of all distances, where a label without a command is as far away as is allowed.
    far: u128,
}

impl GatewayMatch {
    fn new(gateway: IpAddr, times: &[i64], labels: &LabelFile, tolerance: Tolerance) -> Self {
        let labels = labels.aligned(times, tolerance);
        let label_times = labels.times();
        let pairs = labels.matching(times, tolerance).map_or_else(|_| Vec::new(), |matching| matching.pairs);
        let distance = |(row, at): (usize, usize)| Some((row, label_times.get(row)?.abs_diff(*times.get(at)?)));
        let distances: BTreeMap<usize, u64> = pairs.into_iter().filter_map(distance).collect();
        let alone = label_times.len().saturating_sub(distances.len()) as u128;
        let far = distances.values().map(|distance| u128::from(*distance)).sum::<u128>()
            + alone * u128::from(tolerance.nanoseconds().unsigned_abs());
        let within = (0..TRIED).map(|tried| tolerance.nanoseconds() >> tried);
        let chances =
            within.map(|within| (within.unsigned_abs(), near_by_chance(&label_times, times, within))).collect();
        Self { gateway, distances, chances, far }
    }

    /// The probability that as many of so many labels, whose rows count, would lie as near to commands by chance.
    fn p_value(&self, labels: usize, counts: impl Fn(usize) -> bool) -> f64 {
        let distances = self.distances.iter().filter(|(row, _)| counts(**row)).map(|(_, distance)| *distance);
        let distances: Vec<u64> = distances.collect();
        let of_chance = |(within, chance): &(u64, f64)| {
            by_chance(distances.iter().filter(|distance| *distance <= within).count(), labels, *chance)
        };
        // Each distance that is tried is another occasion for chance.
        self.chances.iter().map(of_chance).fold(1.0, f64::min) * f64::from(TRIED)
    }

    /// Whether its commands lie nearer to the labels that both match, more often than chance would have it.
    fn is_nearer_than(&self, other: &Self) -> bool {
        let both = self.distances.iter().filter_map(|(row, own)| Some((own, other.distances.get(row)?)));
        let differing: Vec<bool> = both.filter(|(own, other)| own != other).map(|(own, other)| own < other).collect();
        let nearer = differing.iter().filter(|is_nearer| **is_nearer).count();
        by_chance(nearer, differing.len(), 0.5) <= SIGNIFICANT
    }
}

fn labelled_gateways(
    commands: &BTreeMap<IpAddr, Vec<i64>>,
    labels: &LabelFile,
    tolerance: Tolerance,
    models: &[Model],
) -> LabelledGateways {
    if commands.len() < 2 {
        return LabelledGateways::All;
    }
    let labelled = labels.labels().rows.len();
    let matched = commands.iter().map(|(gateway, times)| GatewayMatch::new(*gateway, times, labels, tolerance));
    let matched = matched.map(|own| (own.p_value(labelled, |_| true), own));
    let mut beyond_chance: Vec<(f64, GatewayMatch)> = matched.filter(|(p_value, _)| *p_value <= SIGNIFICANT).collect();
    beyond_chance.sort_by(|(p, one), (other_p, other)| p.total_cmp(other_p).then(one.far.cmp(&other.far)));
    let (mut found, mut rows): (Vec<&GatewayMatch>, BTreeSet<usize>) = (Vec::new(), BTreeSet::new());
    for (_, own) in &beyond_chance {
        let left = labelled.saturating_sub(rows.len());
        if own.p_value(left, |row| !rows.contains(&row)) <= SIGNIFICANT {
            found.push(own);
            rows.extend(own.distances.keys());
        } else if own.distances.len() as f64 >= ALIKE * rows.len() as f64
            && !found.iter().any(|found| found.is_nearer_than(own))
        {
            return by_model(commands, labels, models);
        }
    }
    let found: BTreeSet<IpAddr> = found.iter().map(|found| found.gateway).collect();
    match found.len() {
        0 => by_model(commands, labels, models),
        all if all == commands.len() => LabelledGateways::All,
        _ => LabelledGateways::Some(found),
    }
}

/// What sections say that know the actions of labels, where times do not tell.
fn by_model(commands: &BTreeMap<IpAddr, Vec<i64>>, labels: &LabelFile, models: &[Model]) -> LabelledGateways {
    let actions = &labels.labels().actions;
    let knowing = models
        .iter()
        .filter(|model| model.action_names().into_iter().any(|name| actions.iter().any(|action| action == name)));
    let gateways: Option<BTreeSet<IpAddr>> = knowing.map(|model| model.scope.gateway).collect();
    match gateways {
        Some(gateways) if gateways.len() == 1 && gateways.iter().all(|gateway| commands.contains_key(gateway)) => {
            LabelledGateways::Some(gateways)
        }
        _ => LabelledGateways::Untold,
    }
}

/// Whether the models are about gateways, and none of these.
fn answer_for_others_alone(models: &[Model], gateways: &BTreeSet<IpAddr>) -> bool {
    let is_other = |model: &Model| model.scope.gateway.is_some_and(|gateway| !gateways.contains(&gateway));
    !models.is_empty() && models.iter().all(is_other)
}

#[cfg(test)]
mod tests {
    use sizeleak_learning::labels::Labels;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Every so many seconds from one on, by a clock that jitters.
    fn times(start: i64, every: i64, count: i64) -> Vec<i64> {
        (0..count).map(|at| (start + at * every) * SECOND + (at * 7_919 % 1_000) * 300_000).collect()
    }

    fn labels(times: &[i64]) -> LabelFile {
        let rows: Vec<String> = times.iter().map(|time| format!("{:.3},1", *time as f64 / SECOND as f64)).collect();
        let text = format!("time,on\n{}\n", rows.join("\n"));
        LabelFile::of_answers("labels", Labels::read(text.as_bytes()).unwrap()).unwrap()
    }

    /// What labels are about, of gateways with commands at these times, the first of which are 192.0.2.1.
    fn found<const N: usize>(labelled: &[i64], commands: [&[i64]; N], models: &[Model]) -> LabelledGateways {
        let gateway = |at: usize| IpAddr::from([192, 0, 2, at as u8 + 1]);
        let commands = commands.iter().enumerate().map(|(at, times)| (gateway(at), times.to_vec())).collect();
        labelled_gateways(&commands, &labels(labelled), Tolerance::USUAL, models)
    }

    fn alone(last: u8) -> LabelledGateways {
        LabelledGateways::Some([IpAddr::from([192, 0, 2, last])].into())
    }

    #[test]
    fn labels_are_about_the_gateway_whose_commands_they_match_beyond_chance() {
        let (slow, busy) = (times(100, 60, 40), times(101, 3, 800));
        assert_eq!(found(&slow, [&slow, &busy], &[]), alone(1));
        assert_eq!(found(&slow, [&busy, &slow], &[]), alone(2));
        // As many of the other's commands as of its own are near.
        assert_eq!(found(&busy, [&slow, &busy], &[]), alone(2));
        assert_eq!(found(&slow, [&slow], &[]), LabelledGateways::All, "there is one");
        // Some commands were lost.
        assert_eq!(found(&slow, [&slow[..36], &busy], &[]), alone(1));
    }

    #[test]
    fn labels_of_several_gateways_are_about_each() {
        let (one, other, third) = (times(100, 60, 40), times(123, 97, 30), times(7, 5, 500));
        let both = [one.clone(), other.clone()].concat();
        assert_eq!(found(&both, [&one, &other], &[]), LabelledGateways::All);
        let [first, second] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        assert_eq!(found(&both, [&one, &other, &third], &[]), LabelledGateways::Some([first, second].into()));
    }

    #[test]
    fn where_times_do_not_tell_a_model_does_or_nothing() {
        let (slow, later) = (times(100, 60, 40), times(5_000, 60, 40));
        let mut model = Model::from_toml(include_str!("../../../examples/home/model.toml")).unwrap();
        model.scope.gateway = Some(IpAddr::from([192, 0, 2, 2]));
        for [one, other] in [[&slow, &slow], [&later, &later], [&slow, &later]] {
            assert_eq!(found(&slow[..1], [one, other], &[]), LabelledGateways::Untold, "one label says nothing");
            assert_eq!(found(&slow[..1], [one, other], std::slice::from_ref(&model)), alone(2));
        }
        assert_eq!(found(&slow, [&slow, &slow], &[]), LabelledGateways::Untold, "both get the same commands");
        assert_eq!(found(&slow, [&slow, &slow], &[model.clone()]), alone(2));
        let elsewhere = Model { scope: sizeleak_model::Scope::default(), ..model.clone() };
        assert_eq!(found(&slow, [&slow, &slow], &[model, elsewhere]), LabelledGateways::Untold, "two know its actions");
    }
}
