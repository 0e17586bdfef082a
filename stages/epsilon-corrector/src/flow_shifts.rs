//! The shift of each flow: which values of ε its commands may have, and when a change is certain.

use std::collections::BTreeMap;

use sizeleak_frame::{Command, SharedList, Shift, WeightedEpsilon};
use sizeleak_model::Model;
use sizeleak_platform::runtime::TwoGenerationCache;
use sizeleak_text::utc;

use crate::shift_evidence::ShiftEvidence;
use crate::shift_filter::{ShiftBelief, ShiftFilter, ShiftState};

/// The most flows whose shift is remembered; at least the half used last is kept. Each takes about 1 kB.
const MAX_FLOWS: usize = 8192;

/// Shifts that are less probable after a command are not weighed for it.
const LEAST_PROBABILITY: f64 = 0.02;

/// A change that is as probable is reported.
const CERTAIN: f64 = 0.99;

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
    filter: ShiftFilter,
    /// The index of the state that was reported last; that of no shift before.
    reported: usize,
}

/// What the shifts of a flow make of a command.
#[derive(Debug)]
pub(crate) struct FollowedCommand {
    /// The values of ε, with the shift in them.
    pub(crate) epsilons: SharedList<WeightedEpsilon>,
    /// The shifts that are in them, most probable first; none where there is none.
    pub(crate) shifts: SharedList<Shift>,
    /// The detail of a notice on a change, as soon as it is certain.
    pub(crate) news: Option<String>,
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
        let flows = TwoGenerationCache::new(MAX_FLOWS);
        Some(Self { evidence: ShiftEvidence::new(model)?, flows, shifted: 0 })
    }

    /// Learns from the next command of a flow, whose sizes have these values of ε where nothing is shifted.
    pub(crate) fn follow(
        &mut self,
        model: &Model,
        command: &Command,
        sizes: [i64; 2],
        epsilons: SharedList<WeightedEpsilon>,
    ) -> FollowedCommand {
        let ln_likelihoods = self.evidence.ln_likelihoods(model, command, sizes, &epsilons);
        let states = self.evidence.states();
        let flow = self.flows.get_or_default(command.flow);
        let predicted = flow.filter.predicted(states, command.time_ns);
        // A command that says nothing is not counted.
        let after = match &ln_likelihoods {
            Some(ln_likelihoods) => flow.filter.observe(predicted.clone(), ln_likelihoods),
            None => &predicted,
        };
        let weighed = weighed_states(states.list(), &predicted, after);
        let news = news(states.list(), after, &mut flow.reported);
        if let [WeighedState { state: ShiftState { bytes: 0, reply_bytes: 0 }, .. }] = &weighed[..] {
            return FollowedCommand { epsilons, shifts: SharedList::default(), news };
        }
        let shift = |one: &WeighedState| Shift {
            bytes: one.state.bytes,
            reply_bytes: one.state.reply_bytes,
            probability: one.share,
            since_ns: one.since_ns,
        };
        let shifts: SharedList<Shift> = weighed.iter().map(shift).collect();
        self.shifted += u64::from(shifts.first().is_some_and(|first| !first.is_none()));
        FollowedCommand { epsilons: mixture(&epsilons, &weighed), shifts, news }
    }
}

/// The states to weigh for a command, most probable first: those that it leaves probable, with the same shift of
/// replies, the one that its replies show. They have the shares that were believed before the command, since the stages to
/// come weigh its size and replies themselves.
fn weighed_states(states: &[ShiftState], predicted: &[ShiftBelief], after: &[ShiftBelief]) -> Vec<WeighedState> {
    let mut of_replies: BTreeMap<i64, f64> = BTreeMap::new();
    for (state, belief) in states.iter().zip(after) {
        *of_replies.entry(state.reply_bytes).or_default() += belief.probability;
    }
    let Some((reply_bytes, all)) = of_replies.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
    let is_probable = |state: &ShiftState, after: &ShiftBelief| {
        state.reply_bytes == reply_bytes && after.probability >= LEAST_PROBABILITY * all
    };
    let beliefs = states.iter().zip(predicted).zip(after).filter(|((state, _), after)| is_probable(state, after));
    let weigh = |((state, before), _): ((&ShiftState, &ShiftBelief), &ShiftBelief)| WeighedState {
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
            *weights.entry(epsilon.saturating_add(state.bytes)).or_default() += share * weight;
        }
    }
    let mut mixed: Vec<WeightedEpsilon> =
        weights.into_iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight }).collect();
    // Lower ones first among equals, as they are.
    mixed.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    mixed.into()
}

/// The detail of a notice, if a state is certain and was not reported.
fn news(states: &[ShiftState], after: &[ShiftBelief], reported: &mut usize) -> Option<String> {
    let (at, belief) = after.iter().enumerate().max_by(|a, b| a.1.probability.total_cmp(&b.1.probability))?;
    if belief.probability < CERTAIN || at == *reported {
        return None;
    }
    *reported = at;
    Some(describe(*states.get(at)?, belief.since_ns?))
}

/// What changed, and what to do.
fn describe(ShiftState { bytes, reply_bytes }: ShiftState, since_ns: i64) -> String {
    let since = format!("since {}", utc(since_ns));
    let learned = "those that the model was learned from";
    let changed = match (bytes, reply_bytes) {
        (0, 0) => return format!("{since} commands and replies are again as long as {learned}"),
        (bytes, 0) => format!("commands are {}", longer(bytes)),
        (0, bytes) => format!("replies are {}", longer(bytes)),
        (bytes, _) => format!("commands and replies are {}", longer(bytes)),
    };
    format!(
        "{since} {changed} than {learned}: the service or the gateway changed its messages; answers follow, and \
         `sizeleak adapt` writes a model of it"
    )
}

/// `6 bytes longer`.
fn longer(bytes: i64) -> String {
    let number = bytes.unsigned_abs();
    let unit = if number == 1 { "byte" } else { "bytes" };
    format!("{number} {unit} {}", if bytes > 0 { "longer" } else { "shorter" })
}

#[cfg(test)]
mod tests;
