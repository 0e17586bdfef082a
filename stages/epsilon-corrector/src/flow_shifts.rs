//! The shift of each flow, and its habits: which values of ε its commands may have, and when a change is certain.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sizeleak_frame::{Command, Correction, HabitFactors, RecurringClass, SharedList, Shift, WeightedEpsilon, what};
use sizeleak_inference::{Belief, Beside, HabitBelief, StateBelief};
use sizeleak_model::{Action, Model};
use sizeleak_platform::runtime::TwoGenerationCache;
use sizeleak_text::utc;

use crate::reworded_replies::{CERTAIN, RewordedReplies};
use crate::shift_evidence::{ShiftEvidence, ShiftState};

/// The most states of all flows whose shift is remembered, of 80 bytes each; at least the half of the flows used last is
/// kept.
const MAX_STATES: usize = 1 << 19;

/// Of so many flows it is remembered what classes of commands weigh: some hundred kilobytes each.
const RECENT_FLOWS: usize = 8;

/// Shifts that are less probable after a command are not weighed for it.
const MIN_PROBABILITY: f64 = 0.02;

/// What is less probable beside the learned habits is not weighed for a command.
const MIN_OTHERS: f64 = 0.02;

/// Learned habits that are less probable are said to be others.
const MAX_LEARNED: f64 = 0.1;

/// What is said of a household with other habits.
const OTHER_HABITS: &str = "its commands have other actions, or another number of them, than the labelled ones, and the \
    same sizes: answers follow these habits";

#[derive(Debug)]
pub(crate) struct FlowShifts {
    evidence: ShiftEvidence,
    flows: TwoGenerationCache<u64, FlowShift>,
    recent: VecDeque<u64>,
    /// How many commands were most probably longer or shorter than the model's.
    pub(crate) shifted: u64,
}

#[derive(Debug, Default)]
struct FlowShift {
    belief: Belief,
    reworded: RewordedReplies,
    /// The index of the state that was reported last; that of no shift before.
    reported: usize,
    has_reported_habits: bool,
}

/// A state that a command may have, with its share among those that are weighed.
#[derive(Debug, Clone, Copy)]
struct WeighedState {
    at: usize,
    state: ShiftState,
    share: f64,
    since_ns: Option<i64>,
}

impl FlowShifts {
    /// `None` for a model that cannot tell shifts apart.
    pub(crate) fn new(model: &Model) -> Option<Self> {
        let evidence = ShiftEvidence::new(model)?;
        let flows = TwoGenerationCache::new((MAX_STATES / evidence.states.len()).max(2));
        Some(Self { evidence, flows, recent: VecDeque::new(), shifted: 0 })
    }

    /// Learns from the next command of a flow, whose sizes have these values of ε where nothing is shifted. Returns it with
    /// what the flow's shifts and habits make of it, and notices: what each is about, with its detail.
    pub(crate) fn follow(
        &mut self,
        model: &Model,
        mut command: Command,
        sizes: [i64; 2],
        epsilons: SharedList<WeightedEpsilon>,
    ) -> (Correction, Vec<(&'static str, String)>) {
        self.forget_others(command.flow);
        let flow = self.flows.get_or_default(command.flow);
        self.evidence.hypotheses.predict(&mut flow.belief, command.time_ns, &self.evidence.inference);
        let reply_bytes = self.evidence.states[flow.belief.best].reply_bytes;
        let read = |command: &Command| self.evidence.possible(model, command, sizes, &epsilons);
        command.reworded = flow.reworded.follow(model, reply_bytes, &command, &flow.belief.states, read);
        let possible = self.evidence.possible(model, &command, sizes, &epsilons);
        let ShiftEvidence { states, hypotheses, inference, .. } = &self.evidence;
        // As they were before the command, which the stages to come weigh themselves.
        let before = flow.belief.states.clone();
        let told = |(state, known): (&usize, &HabitBelief)| {
            (*state, ToldHabits::new(known, states[*state], model, sizes, &epsilons))
        };
        let told: BTreeMap<usize, ToldHabits> = flow.belief.followed.iter().map(told).collect();
        let of_best = flow.belief.best;
        // A command that says nothing is not counted.
        if let Some(possible) = &possible {
            hypotheses.observe(&mut flow.belief, possible, inference);
        }
        let (after, fit) = (&flow.belief.states[..], flow.belief.fit());
        let weighed = weighed_states(states, &before, after);
        let told = match weighed.first() {
            Some(first) if first.state.beside() != Beside::AnyHabits => ToldHabits::default(),
            first => first.and_then(|first| told.get(&first.at)).or(told.get(&of_best)).cloned().unwrap_or_default(),
        };
        let mut news = Vec::new();
        news.extend(
            change(model, states, (after, 1.0 - flow.belief.foreign.probability()), &mut flow.reported)
                .map(|detail| (what::SHIFTED, detail)),
        );
        if told.are_others && fit >= CERTAIN && !std::mem::replace(&mut flow.has_reported_habits, true) {
            news.push((what::HABITS, OTHER_HABITS.into()));
        }
        let ToldHabits { habits, recurring, .. } = told;
        let mut followed = Correction { habits, recurring, ..Correction::unshifted(command, epsilons) };
        if let [WeighedState { state: ShiftState { bytes: 0, reply_bytes: 0, .. }, .. }] = &weighed[..]
            && fit > 1.0 - MIN_PROBABILITY
        {
            return (followed, news);
        }
        followed.shifts = weighed.iter().map(|one| shift(model, one.state, one.share * fit, one.since_ns)).collect();
        self.shifted += u64::from(followed.shifts.first().is_some_and(|first| !first.is_none()));
        followed.epsilons = mixture(&followed.epsilons, &weighed);
        (followed, news)
    }

    /// Lets the flow that has been followed longest forget what can be computed again, where a new one comes.
    fn forget_others(&mut self, flow: u64) {
        if self.recent.contains(&flow) {
            return;
        }
        self.recent.push_back(flow);
        let oldest = if self.recent.len() > RECENT_FLOWS { self.recent.pop_front() } else { None };
        if let Some(oldest) = oldest.and_then(|oldest| self.flows.peek(&oldest)) {
            oldest.belief.followed.values().for_each(HabitBelief::forget_known);
        }
    }
}

/// A state as frames have it.
fn shift(model: &Model, state: ShiftState, probability: f64, since_ns: Option<i64>) -> Shift {
    let ShiftState { bytes, reply_bytes, action } = state;
    let action = action.and_then(|action| Some(model.actions.get(action as usize)?.name.as_str().into()));
    Shift { bytes, action, reply_bytes, probability, since_ns }
}

/// What a command is told of a flow's habits in one state.
#[derive(Debug, Clone, Default)]
struct ToldHabits {
    habits: SharedList<HabitFactors>,
    recurring: SharedList<RecurringClass>,
    are_others: bool,
}

impl ToldHabits {
    fn new(
        known: &HabitBelief,
        state: ShiftState,
        model: &Model,
        sizes: [i64; 2],
        epsilons: &[WeightedEpsilon],
    ) -> Self {
        let only_learned = known.only_learned();
        if only_learned > 1.0 - MIN_OTHERS {
            return Self::default();
        }
        let factors = known.own_habits().map(|(weight, habits)| HabitFactors {
            weight,
            actions: Arc::clone(&habits.actions).into(),
            numbers: Arc::clone(&habits.numbers).into(),
        });
        let class = |one: sizeleak_inference::RecurringClass| RecurringClass {
            bytes: one.bytes,
            replies: one.class_counts.into(),
            share: one.share,
        };
        let explained = sizes[0].saturating_sub(model.overhead).saturating_sub(state.of_commands());
        let sums = epsilons.iter().map(|value| explained.saturating_sub(value.epsilon));
        // A command that comes again has other sums where its actions have several sizes, and candidates have no single one.
        let has_one_sum = sizes[0] == sizes[1] && !model.actions.iter().any(Action::varies);
        let recurring = if has_one_sum { known.recurring(sums) } else { Vec::new() };
        Self {
            habits: factors.collect(),
            recurring: recurring.into_iter().map(class).collect(),
            are_others: only_learned < MAX_LEARNED,
        }
    }
}

/// The states to weigh for a command, most probable first: those that it leaves probable, with the same shift of
/// replies, the one that its replies show. They have the shares that were believed before the command, since the stages to
/// come weigh its size and replies themselves.
fn weighed_states(states: &[ShiftState], before: &[StateBelief], after: &[StateBelief]) -> Vec<WeighedState> {
    let mut of_replies: BTreeMap<i64, f64> = BTreeMap::new();
    for (state, after) in states.iter().zip(after) {
        *of_replies.entry(state.reply_bytes).or_default() += after.probability;
    }
    let Some((reply_bytes, all)) = of_replies.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
    let is_probable = |state: &ShiftState, after: &StateBelief| {
        state.reply_bytes == reply_bytes && after.probability >= MIN_PROBABILITY * all
    };
    let beliefs = (0..).zip(states).zip(before.iter().zip(after));
    let beliefs = beliefs.filter(|((_, state), (_, after))| is_probable(state, after));
    let weigh = |((at, state), (before, _)): ((usize, &ShiftState), (&StateBelief, &StateBelief))| WeighedState {
        at,
        state: *state,
        share: before.probability,
        since_ns: before.since_ns.filter(|_| (state.bytes, state.reply_bytes) != (0, 0)),
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

/// The detail of a notice, if a state is certain and was not reported: what changed, and what to do. States are believed as
/// far as messages are the model's at all.
fn change(
    model: &Model,
    states: &[ShiftState],
    (after, own): (&[StateBelief], f64),
    reported: &mut usize,
) -> Option<String> {
    let (at, most) = after.iter().enumerate().max_by(|a, b| a.1.probability.total_cmp(&b.1.probability))?;
    if most.probability * own < CERTAIN || at == *reported {
        return None;
    }
    let since = utc(most.since_ns?);
    *reported = at;
    let changed = shift(model, states[at], most.probability, most.since_ns);
    let learned = "those that the model was learned from";
    if changed.is_none() {
        return Some(format!("since {since} commands and replies are again as long as {learned}"));
    }
    let against = match states[at].action.and_then(|action| model.actions.get(action as usize)) {
        Some(Action { size, .. }) => format!(", {} in place of {size},", size + changed.bytes),
        None => format!(" than {learned}:"),
    };
    Some(format!(
        "since {since} {changed}{against} the service or the gateway changed its messages; answers follow, and \
         `sizeleak adapt` writes a model of it"
    ))
}

#[cfg(test)]
mod tests;
