//! The shift of each flow, and its habits: which values of ε its commands may have, and when a change is certain.

use std::collections::BTreeMap;

use sizeleak_frame::{Command, HabitFactors, SharedList, Shift, WeightedEpsilon};
use sizeleak_inference::{Belief, HabitKind, Habits, StateBelief, beliefs_beside_unknown_habits};
use sizeleak_model::{Action, Model};
use sizeleak_platform::runtime::TwoGenerationCache;
use sizeleak_text::utc;

use crate::shift_evidence::ShiftEvidence;
use crate::shift_states::ShiftState;

/// The most states of all flows whose shift is remembered, of 80 bytes each; at least the half of the flows used last is
/// kept.
const MAX_STATES: usize = 1 << 19;

/// Shifts that are less probable after a command are not weighed for it.
const MIN_PROBABILITY: f64 = 0.02;

/// Learned habits that are less probable are taken to be out of the question. Of the homes of
/// `tests/answers/habits.rs`, those that do not change are answered alike with any limit from a hundredth to a half, within
/// 0.005 of calibration error; with a hundredth, mild changes of habits are hardly answered by.
const MAX_LEARNED: f64 = 0.1;

/// A change that is as probable is reported.
const CERTAIN: f64 = 0.99;

/// What is said of a household with other habits.
const OTHER_HABITS: &str = "its commands have other actions, or another number of them, than the labelled ones, and the \
    same sizes: answers follow these habits";

/// Follows the shift of every flow.
#[derive(Debug)]
pub(crate) struct FlowShifts {
    evidence: ShiftEvidence,
    flows: TwoGenerationCache<u64, FlowShift>,
    /// How many commands were most probably longer or shorter than the model's.
    pub(crate) shifted: u64,
}

#[derive(Debug, Default)]
struct FlowShift {
    belief: Belief,
    /// The index of the state that was reported last; that of no shift before.
    reported: usize,
    /// Whether other habits were reported.
    has_reported_habits: bool,
}

/// What the shifts of a flow make of a command.
#[derive(Debug)]
pub(crate) struct FollowedCommand {
    /// The values of ε, with the shift in them.
    pub(crate) epsilons: SharedList<WeightedEpsilon>,
    /// The shifts that are in them, most probable first; none where there is none.
    pub(crate) shifts: SharedList<Shift>,
    /// Factors of habits other than the learned ones; none while those may hold.
    pub(crate) habits: SharedList<HabitFactors>,
    /// The detail of a notice on a change, as soon as it is certain.
    pub(crate) news: Option<String>,
    /// That of a notice on other habits.
    pub(crate) other_habits: Option<String>,
}

/// A state that a command may have, with its share among those that are weighed.
#[derive(Debug, Clone, Copy)]
struct WeighedState {
    state: ShiftState,
    share: f64,
    since_ns: Option<i64>,
}

impl FlowShifts {
    /// `None` for a model that cannot tell shifts apart.
    pub(crate) fn new(model: &Model) -> Option<Self> {
        let evidence = ShiftEvidence::new(model)?;
        let flows = TwoGenerationCache::new((MAX_STATES / evidence.states().list().len()).max(2));
        Some(Self { evidence, flows, shifted: 0 })
    }

    /// Learns from the next command of a flow, whose sizes have these values of ε where nothing is shifted.
    pub(crate) fn follow(
        &mut self,
        model: &Model,
        command: &Command,
        sizes: [i64; 2],
        epsilons: SharedList<WeightedEpsilon>,
    ) -> FollowedCommand {
        let possible = self.evidence.possible(model, command, sizes, &epsilons);
        let states = self.evidence.states().list();
        let (hypotheses, inference) = self.evidence.hypotheses();
        let flow = self.flows.get_or_default(command.flow);
        let predicted = hypotheses.predicted(&flow.belief, command.time_ns);
        let is_unknown = hypotheses.broad().is_some() && !is_as_learned(&predicted);
        let believed = |states: &[StateBelief]| -> Vec<f64> {
            if is_unknown {
                beliefs_beside_unknown_habits(states)
            } else {
                states.iter().map(StateBelief::probability).collect()
            }
        };
        // As they were before the command, which the stages to come weigh themselves.
        let habits_of = |state: usize| {
            habit_factors(&predicted, flow.belief.shown(state).filter(|_| is_unknown), hypotheses.broad())
        };
        let (of_unchanged, of_best) = (habits_of(0), habits_of(flow.belief.best()));
        // A command that says nothing is not counted.
        let after = match &possible {
            Some(possible) => {
                hypotheses.observe(&mut flow.belief, predicted.clone(), possible, inference);
                flow.belief.states()
            }
            None => &predicted,
        };
        let believed_after = believed(after);
        let is_unchanged = believed_after.iter().skip(1).all(|changed| *changed <= believed_after[0]);
        let habits = if is_unchanged && !of_unchanged.is_empty() { of_unchanged } else { of_best };
        let fit = 1.0 - after.iter().map(StateBelief::strange).sum::<f64>();
        let weighed = weighed_states(states, &predicted, &believed(&predicted), &believed_after);
        let news = news(model, states, after, &believed_after, &mut flow.reported);
        let is_first = !habits.is_empty() && !std::mem::replace(&mut flow.has_reported_habits, true);
        let other_habits = is_first.then(|| OTHER_HABITS.into());
        if let [WeighedState { state: ShiftState { bytes: 0, reply_bytes: 0, .. }, .. }] = &weighed[..]
            && fit > 1.0 - MIN_PROBABILITY
        {
            return FollowedCommand { epsilons, shifts: SharedList::default(), habits, news, other_habits };
        }
        let shifts: SharedList<Shift> =
            weighed.iter().map(|one| shift(model, one.state, one.share * fit, one.since_ns)).collect();
        self.shifted += u64::from(shifts.first().is_some_and(|first| !first.is_none()));
        FollowedCommand { epsilons: mixture(&epsilons, &weighed), shifts, habits, news, other_habits }
    }
}

/// A state as frames have it.
fn shift(model: &Model, state: ShiftState, probability: f64, since_ns: Option<i64>) -> Shift {
    let ShiftState { bytes, reply_bytes, action } = state;
    let action = action.and_then(|action| Some(model.actions.get(action as usize)?.name.as_str().into()));
    Shift { bytes, action, reply_bytes, probability, since_ns }
}

/// Whether the learned habits may hold. While they may, answers stay what they were learned to be.
fn is_as_learned(beliefs: &[StateBelief]) -> bool {
    let all: f64 = beliefs.iter().map(StateBelief::probability).sum();
    of_kind(beliefs, HabitKind::Learned) >= MAX_LEARNED * all
}

fn of_kind(beliefs: &[StateBelief], kind: HabitKind) -> f64 {
    beliefs.iter().map(|belief| belief.with(kind)).sum()
}

/// The factors of habits that are not the learned ones; none while no others are shown.
fn habit_factors(beliefs: &[StateBelief], shown: Option<&Habits>, broad: Option<&Habits>) -> SharedList<HabitFactors> {
    let (Some(shown), Some(broad)) = (shown, broad) else { return SharedList::default() };
    let all: f64 = beliefs.iter().map(StateBelief::probability).sum();
    let factors = |weight: f64, habits: &Habits| HabitFactors {
        weight,
        actions: habits.actions.clone().into(),
        numbers: habits.numbers.clone().into(),
    };
    let by_shown = of_kind(beliefs, HabitKind::Shown) + of_kind(beliefs, HabitKind::AnySums);
    [factors(by_shown / all, shown), factors(of_kind(beliefs, HabitKind::Broad) / all, broad)].into()
}

/// The states to weigh for a command, most probable first: those that it leaves probable, with the same shift of
/// replies, the one that its replies show. They have the shares that were believed before the command, since the stages to
/// come weigh its size and replies themselves.
fn weighed_states(
    states: &[ShiftState],
    predicted: &[StateBelief],
    before: &[f64],
    after: &[f64],
) -> Vec<WeighedState> {
    let mut of_replies: BTreeMap<i64, f64> = BTreeMap::new();
    for (state, after) in states.iter().zip(after) {
        *of_replies.entry(state.reply_bytes).or_default() += after;
    }
    let Some((reply_bytes, all)) = of_replies.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
    let is_probable =
        |state: &ShiftState, after: f64| state.reply_bytes == reply_bytes && after >= MIN_PROBABILITY * all;
    let beliefs = states.iter().zip(predicted.iter().zip(before)).zip(after);
    let beliefs = beliefs.filter(|((state, _), after)| is_probable(state, **after));
    let weigh = |((state, (predicted, share)), _): ((&ShiftState, (&StateBelief, &f64)), &f64)| WeighedState {
        state: *state,
        share: *share,
        since_ns: predicted.since_ns.filter(|_| (state.bytes, state.reply_bytes) != (0, 0)),
    };
    let mut weighed: Vec<WeighedState> = beliefs.map(weigh).collect();
    let all: f64 = weighed.iter().map(|one| one.share).sum();
    for one in &mut weighed {
        one.share /= all;
    }
    weighed.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.state.cmp(&b.state)));
    weighed
}

/// The values of ε of a command whose shift is one of these, heaviest first.
fn mixture(epsilons: &[WeightedEpsilon], weighed: &[WeighedState]) -> SharedList<WeightedEpsilon> {
    let mut weights: BTreeMap<i64, f64> = BTreeMap::new();
    for WeighedState { state, share, .. } in weighed {
        for WeightedEpsilon { epsilon, weight } in epsilons {
            *weights.entry(epsilon.saturating_add(state.of_commands())).or_default() += share * weight;
        }
    }
    let mut mixed: Vec<WeightedEpsilon> =
        weights.into_iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight }).collect();
    // Lower ones first among equals, as they are.
    mixed.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    mixed.into()
}

/// The detail of a notice, if a state is certain and was not reported.
fn news(
    model: &Model,
    states: &[ShiftState],
    after: &[StateBelief],
    believed: &[f64],
    reported: &mut usize,
) -> Option<String> {
    let (at, most) = believed.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    if *most < CERTAIN || at == *reported {
        return None;
    }
    let news = describe(model, &shift(model, states[at], *most, after[at].since_ns))?;
    *reported = at;
    Some(news)
}

/// What changed, and what to do.
fn describe(model: &Model, changed: &Shift) -> Option<String> {
    let since = format!("since {}", utc(changed.since_ns?));
    let learned = "those that the model was learned from";
    if changed.is_none() {
        return Some(format!("{since} commands and replies are again as long as {learned}"));
    }
    let of_action = |name| model.actions.iter().find(|action| action.name == name);
    let against = match changed.action.as_deref().and_then(of_action) {
        Some(Action { size, .. }) => format!(", {} in place of {size},", size + changed.bytes),
        None => format!(" than {learned}:"),
    };
    Some(format!(
        "{since} {changed}{against} the service or the gateway changed its messages; answers follow, and `sizeleak \
         adapt` writes a model of it"
    ))
}

#[cfg(test)]
mod tests;
