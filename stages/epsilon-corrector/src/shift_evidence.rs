//! The states of a flow's messages: by how many bytes all of them, or one action in them, are longer than those that the
//! model was learned from. And how well each state explains a command: the likelihood of its size and of its single
//! replies, and the actions that it may have then.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use sizeleak_frame::{Command, WeightedEpsilon};
use sizeleak_inference::{
    Beside, Beyond, ExplainedStates, Hypotheses, PossibleCommands, ReplyInference, StatePrior, WeightedSum, asked_sums,
};
use sizeleak_model::statistics::ln_mean;
use sizeleak_model::{Model, ReplyReader, SeenReplies, SingleReplies, WireSize};
use sizeleak_platform::runtime::TwoGenerationCache;

/// The greatest shift that is looked for beside any habits, in bytes, in either direction.
const MAX_BYTES: i64 = 8;

/// The greatest shift of all messages that is looked for beside the learned habits: a key more in each. With other habits,
/// what is longer by so much looks like one more action, or one fewer.
const MAX_FAR_BYTES: i64 = 64;

/// How probable it is that messages change by so much, against each other kind of change. Habits that become others look
/// like that until they are known: with 10⁻³, 50,000 commands of ten homes in `tests/answers/habits.rs` have 7 false
/// notices, with 10⁻⁶ two, with 10⁻⁹ one; and only with that, none of the homes there whose habits and messages change
/// together is said to have a far shift. True changes are followed a few commands later by it.
const FAR: f64 = 1e-9;

fn far_bytes() -> impl Iterator<Item = i64> {
    (-MAX_FAR_BYTES..=MAX_FAR_BYTES).filter(|bytes| bytes.abs() > MAX_BYTES)
}

/// How probable it is that one action alone changes, against each change of all messages. With 1, coincidences of another
/// gateway's messages are taken for changes (39 of 1,438 answers above 0.9 in `tests/answers/misfit.rs`, 14 with 0.2, 12
/// with 0.1); with 0.1, `toggle` of `tests/answers/habits.rs` is found after 106 commands, else after 97.
const ONE_ACTION: f64 = 0.2;

/// By how many bytes commands, or one action of them, and single replies are longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShiftState {
    pub(crate) bytes: i64,
    pub(crate) reply_bytes: i64,
    /// The only action that is longer, by its index; `None` where whole commands are.
    pub(crate) action: Option<u32>,
}

impl ShiftState {
    /// Whether all messages are longer by what is looked for beside any habits.
    pub(crate) fn is_near(&self) -> bool {
        self.action.is_none() && !self.is_far()
    }

    /// Whether they are longer by more than that.
    fn is_far(&self) -> bool {
        self.bytes.abs().max(self.reply_bytes.abs()) > MAX_BYTES
    }

    pub(crate) fn beside(&self) -> Beside {
        match self.action {
            Some(_) => Beside::LearnedHabits,
            None if self.is_far() => Beside::LearnedHabitsSoFar,
            None => Beside::AnyHabits,
        }
    }

    /// By how many bytes commands are longer, whatever their actions.
    pub(crate) fn of_commands(&self) -> i64 {
        if self.action.is_none() { self.bytes } else { 0 }
    }
}

/// What a gateway or a service may change for all messages: by how many times the bytes of a change commands are longer, and
/// how many times replies. Where these are not told apart by their sizes, commands alone; else both, or replies alone.
const COMMANDS: &[[i64; 2]] = &[[1, 0]];
const COMMANDS_AND_REPLIES: &[[i64; 2]] = &[[1, 0], [1, 1], [0, 1]];

/// All states, the one without a shift first and those of one action last, each with the probability that a change leads
/// to it: the kinds of change are equally likely but those of one action ([`ONE_ACTION`]) and of many bytes ([`FAR`]), and so
/// are all actions and numbers of bytes.
fn shift_states(changes: &[[i64; 2]], action_sizes: &[i64]) -> (Vec<ShiftState>, Vec<f64>) {
    let bytes = || (-MAX_BYTES..=MAX_BYTES).filter(|bytes| *bytes != 0);
    let state = |bytes, reply_bytes, action| ShiftState { bytes, reply_bytes, action };
    // A shift that is nearer to one more action in each command, or to one fewer, may as well be a habit: nothing tells.
    let shortest = action_sizes.iter().copied().min().unwrap_or(i64::MAX);
    let of_all = |[commands, replies]: &[i64; 2]| {
        let told = bytes().filter(|bytes| *commands == 0 || bytes.abs() < shortest - bytes.abs());
        told.map(|bytes| state(commands * bytes, replies * bytes, None)).collect::<Vec<_>>()
    };
    let mut kinds = vec![(1.0, vec![state(0, 0, None)])];
    kinds.extend(changes.iter().map(|change| (1.0, of_all(change))));
    // Replies that are known one by one show far states: those in which they are longer.
    let are_shown = |[_, replies]: &&[i64; 2]| changes.len() == 1 || *replies > 0;
    let far = |[commands, replies]: &[i64; 2]| {
        far_bytes().map(|bytes| state(commands * bytes, replies * bytes, None)).collect()
    };
    kinds.extend(changes.iter().filter(are_shown).map(|change| (FAR, far(change))));
    let of_one = |(action, size): (u32, &i64)| {
        let size = *size;
        bytes().filter(move |bytes| size + bytes > 0).map(move |bytes| state(bytes, 0, Some(action)))
    };
    kinds.push((ONE_ACTION, (0..).zip(action_sizes).flat_map(of_one).collect()));
    let all: f64 = kinds.iter().map(|(weight, _)| weight).sum();
    let each =
        |(weight, kind): &(f64, Vec<ShiftState>)| std::iter::repeat_n(weight / all / kind.len() as f64, kind.len());
    let arrivals = kinds.iter().flat_map(each).collect();
    (kinds.into_iter().flat_map(|(_, kind)| kind).collect(), arrivals)
}

/// The most commands that are remembered, of about 100 bytes each; most are shared by many sizes.
const MAX_CACHED: usize = 1 << 20;

/// The probabilities of so many states take as much.
const STATES_PER_ENTRY: usize = 4;

/// Shifts whose likelihood is less by this many nats do not matter, and are not computed.
const NEGLIGIBLE: f64 = 16.0;

#[derive(Debug)]
pub(crate) struct ShiftEvidence {
    /// In the order of evidence and probabilities.
    pub(crate) states: Vec<ShiftState>,
    pub(crate) inference: ReplyInference,
    pub(crate) hypotheses: Hypotheses,
    overhead: i64,
    /// The model's replies by how many bytes they are longer; none if they say nothing one by one.
    replies: BTreeMap<i64, ReplyReader>,
    /// Their sizes in ascending order.
    reply_sizes: Vec<i64>,
    /// By the sizes of a command and its replies: the commands of a home recur.
    known: TwoGenerationCache<SeenSizes, Option<Arc<PossibleCommands>>>,
}

/// The sizes of a command and of its replies, each as a range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SeenSizes {
    command: [i64; 2],
    /// In ascending order; `None` if they say nothing one by one.
    replies: Option<Vec<[i64; 2]>>,
}

/// The states with one shift of replies.
#[derive(Debug)]
struct EqualReplies {
    reply_bytes: i64,
    /// At least ln P(size, replies) for any of the states.
    ln_bound: f64,
    /// By their index, each with the sums that a command's actions may have, and their weights.
    states: Vec<(usize, Vec<WeightedSum>)>,
}

struct Explained<'a> {
    /// ln P(size, replies) by the learned habits in each state, and the greatest of them.
    ln_learned: Vec<f64>,
    ln_unit: f64,
    by_replies: Vec<ExplainedStates<'a>>,
    /// Whether the command's actions are not told apart in the state without a shift.
    is_action_unknown: bool,
}

impl Explained<'_> {
    fn of_states(states: usize) -> Self {
        let ln_learned = vec![f64::NEG_INFINITY; states];
        Self { ln_learned, ln_unit: f64::NEG_INFINITY, by_replies: Vec::new(), is_action_unknown: false }
    }

    fn set(&mut self, state: usize, ln_learned: f64) {
        self.ln_learned[state] = ln_learned;
        self.ln_unit = self.ln_unit.max(ln_learned);
    }
}

impl ShiftEvidence {
    /// `None` for a model that does not say how probable sizes are, or that has kinds of commands beside sums.
    pub(crate) fn new(model: &Model) -> Option<Self> {
        let inference = ReplyInference::new(model)?;
        let changes = if model.single_replies.is_some() { COMMANDS_AND_REPLIES } else { COMMANDS };
        let sizes: Vec<i64> = model.actions.iter().map(|action| action.size).collect();
        let (states, arrivals) = shift_states(changes, &sizes);
        let prior = |(state, arrival): (&ShiftState, f64)| {
            let ShiftState { bytes, action, .. } = *state;
            StatePrior { arrival, bytes, action, beside: state.beside() }
        };
        let priors: Vec<StatePrior> = states.iter().zip(arrivals).map(prior).collect();
        let hypotheses = Hypotheses::new(&priors, &inference);
        let longer = |state: &ShiftState| {
            let replies = model.single_replies.clone()?;
            Some((state.reply_bytes, ReplyReader::new(replies.longer_by(state.reply_bytes))))
        };
        let (replies, overhead) = (states.iter().filter_map(longer).collect(), model.overhead);
        let classes = model.single_replies.iter().flat_map(|replies| &replies.classes);
        let mut reply_sizes: Vec<i64> = classes.flat_map(|class| &class.sizes).map(|(size, _)| *size).collect();
        reply_sizes.sort_unstable();
        let known = TwoGenerationCache::new(MAX_CACHED);
        Some(Self { states, inference, hypotheses, overhead, replies, reply_sizes, known })
    }

    /// What a command may be in each state. `None` where it says nothing: if its size is known as a range only, where
    /// neighbouring shifts look alike, if no state explains it, or if that is beyond what can be computed.
    ///
    /// What length fields add depends on the whole size of a message, so ε is that of the size as it is.
    pub(crate) fn possible(
        &mut self,
        model: &Model,
        command: &Command,
        sizes: [i64; 2],
        epsilons: &[WeightedEpsilon],
    ) -> Option<Arc<PossibleCommands>> {
        let seen = SeenSizes { command: sizes, replies: reply_sizes(model, command) };
        if let Some(known) = self.known.recall(&seen) {
            return known.clone();
        }
        let found = self.compute(&seen, epsilons).ok().flatten().map(Arc::new);
        let of_states = self.states.len() / STATES_PER_ENTRY;
        let weight = 1 + of_states + found.as_ref().map_or(0, |found| found.listed());
        self.known.remember(seen, found.clone(), weight);
        found
    }

    fn compute(&self, seen: &SeenSizes, epsilons: &[WeightedEpsilon]) -> Result<Option<PossibleCommands>, Beyond> {
        let [least, most] = seen.command;
        if least != most {
            return Ok(None);
        }
        let far = seen.replies.as_ref().map(|replies| self.telling_far_bytes(replies));
        let mut found = Explained::of_states(self.states.len());
        for equal in self.by_replies(seen, epsilons, far.as_ref()) {
            if equal.ln_bound < found.ln_unit - NEGLIGIBLE {
                break;
            }
            self.explain(equal, seen, &mut found)?;
        }
        let near = self.states.iter().zip(&found.ln_learned).filter(|(state, _)| state.is_near());
        let near: Vec<f64> = near.map(|(_, own)| *own).collect();
        let ln_near = ln_mean(&near);
        let Explained { mut ln_learned, ln_unit, by_replies, is_action_unknown } = found;
        // A size alone that no near state explains is one of a model that is not exact, not of a far state.
        if !ln_unit.is_finite() || far.is_none() && !ln_near.is_finite() {
            return Ok(None);
        }
        let far = far.unwrap_or_default();
        for (state, ln_learned) in self.states.iter().zip(&mut ln_learned) {
            if state.is_far() && far.get(&state.reply_bytes) == Some(&Ordering::Equal) {
                // The replies speak neither for it nor against it, and the size alone says little.
                *ln_learned = ln_near;
            }
        }
        let by_habit = ln_learned.iter().map(|ln_likelihood| (ln_likelihood - ln_unit).exp()).collect();
        let mut possible = self.hypotheses.possible(by_habit, ln_unit, &by_replies, &self.inference)?;
        possible.are_actions_unknown = is_action_unknown;
        possible.unlike_replies = self.ln_unlike(seen, epsilons).map(|ln_unlike| (ln_unlike - ln_unit).exp());
        Ok(Some(possible))
    }

    /// Adds how well the states with one shift of replies explain a command.
    fn explain<'a>(
        &'a self,
        EqualReplies { reply_bytes, mut states, .. }: EqualReplies,
        seen: &SeenSizes,
        found: &mut Explained<'a>,
    ) -> Result<(), Beyond> {
        let replies = self.replies.get(&reply_bytes).zip(seen.replies.as_ref());
        let replies = replies.map(|(reader, sizes)| reader.read(sizes));
        if replies.is_none() {
            // Of far states, the size alone is asked for.
            for (at, sums) in states.extract_if(.., |(at, _)| self.states[*at].is_far()) {
                found.set(at, self.inference.ln_learned_size(&sums)?);
            }
        }
        let asked = asked_sums(&states);
        let [own, all] = &asked;
        let range = [all.first().copied().unwrap_or(0), all.last().copied().unwrap_or(0)];
        let own: Vec<WeightedSum> = own.iter().map(|bytes| WeightedSum { bytes: *bytes, weight: 1.0 }).collect();
        let explain = |replies: &SeenReplies| self.inference.explain(replies, &own, range, found.ln_unit);
        let explained = match &replies {
            Some(replies) => Some(explain(replies)?),
            // Sizes alone say how probable states are, also where that is beyond what can be computed.
            None if self.replies.is_empty() => explain(&SeenReplies::new(&SingleReplies::none(), &[])).ok(),
            // The actions that a model with replies counts are not told apart without.
            None => None,
        };
        for (at, sums) in &states {
            let ln_learned = match (&replies, &explained) {
                (Some(_), Some(explained)) => explained.ln_joint(sums),
                _ => self.inference.ln_size(sums)?,
            };
            found.set(*at, ln_learned);
            found.is_action_unknown |= *at == 0 && explained.is_none();
        }
        let by_replies = explained.map(|explained| ExplainedStates { explained, replies, states, asked });
        found.by_replies.extend(by_replies);
        Ok(())
    }

    /// The logarithm of the probability of a command with replies that are none of the model's; `None` where there are none,
    /// which are lost rather than others.
    fn ln_unlike(&self, seen: &SeenSizes, epsilons: &[WeightedEpsilon]) -> Option<f64> {
        let replies = seen.replies.as_ref().filter(|replies| !replies.is_empty())?;
        Some(self.ln_near_sizes(seen, epsilons).ok()? + SingleReplies::ln_unlike(replies))
    }

    /// The logarithm of P(size) by the learned habits, whatever the replies, on average over the near states.
    fn ln_near_sizes(&self, seen: &SeenSizes, epsilons: &[WeightedEpsilon]) -> Result<f64, Beyond> {
        let near = self.states.iter().filter(|state| state.is_near());
        let of_sizes = near.map(|state| self.inference.ln_learned_size(&self.sums(seen, epsilons, state)));
        let of_sizes: Vec<f64> = of_sizes.collect::<Result<_, _>>()?;
        Ok(ln_mean(&of_sizes))
    }

    /// What replies say of each far shift, by how many of them have a size that the model knows then: more than by any near
    /// shift; as many as by any shift at all, near ones included; or less. Of a flow whose messages are longer by so much, most
    /// commands speak for it.
    fn telling_far_bytes(&self, replies: &[[i64; 2]]) -> BTreeMap<i64, Ordering> {
        let is_known = |[least, most]: &[i64; 2], bytes: i64| {
            let next = self.reply_sizes.partition_point(|size| *size < least - bytes);
            self.reply_sizes.get(next).is_some_and(|size| *size <= most - bytes)
        };
        let known = |bytes: i64| replies.iter().filter(|reply| is_known(reply, bytes)).count();
        let by_near = (-MAX_BYTES..=MAX_BYTES).map(known).max().unwrap_or(0);
        let far: Vec<(i64, usize)> = far_bytes().map(|bytes| (bytes, known(bytes))).collect();
        let by_any = far.iter().map(|(_, known)| *known).fold(by_near, usize::max);
        let told = |(bytes, known): (i64, usize)| match known.cmp(&by_near) {
            Ordering::Equal if known < by_any => (bytes, Ordering::Less),
            than_near => (bytes, than_near),
        };
        far.into_iter().map(told).collect()
    }

    /// The sums that the command's actions may have in a state.
    fn sums(&self, seen: &SeenSizes, epsilons: &[WeightedEpsilon], state: &ShiftState) -> Vec<WeightedSum> {
        let explained = seen.command[1].saturating_sub(self.overhead).saturating_sub(state.bytes);
        let sum = |value: &WeightedEpsilon| WeightedSum {
            bytes: explained.saturating_sub(value.epsilon),
            weight: value.weight,
        };
        epsilons.iter().map(sum).collect()
    }

    /// The states by their shift of replies, those first that may be most likely; those that are far where replies speak for
    /// them, or are not known.
    fn by_replies(
        &self,
        seen: &SeenSizes,
        epsilons: &[WeightedEpsilon],
        far: Option<&BTreeMap<i64, Ordering>>,
    ) -> Vec<EqualReplies> {
        let is_far_asked = |bytes: &i64| far.is_none_or(|far| far.get(bytes) == Some(&Ordering::Greater));
        // Those of one action follow from what commands may be in the first state.
        let is_asked =
            |state: &ShiftState| state.action.is_none() && (!state.is_far() || is_far_asked(&state.reply_bytes));
        let (places, states): (Vec<usize>, Vec<&ShiftState>) =
            self.states.iter().enumerate().filter(|(_, state)| is_asked(state)).unzip();
        let alternatives: Vec<Vec<WeightedSum>> = states.iter().map(|state| self.sums(seen, epsilons, state)).collect();
        // Where they are not known, replies alone bound it.
        let of_sizes: Result<Vec<f64>, Beyond> = alternatives.iter().map(|sums| self.inference.ln_size(sums)).collect();
        let of_sizes = of_sizes.unwrap_or_else(|_| vec![0.0; states.len()]);
        let mut by_replies: BTreeMap<i64, EqualReplies> = BTreeMap::new();
        for ((at, alternative), (state, of_size)) in
            places.into_iter().zip(alternatives).zip(states.iter().zip(of_sizes))
        {
            let reply_bytes = if seen.replies.is_some() { state.reply_bytes } else { 0 };
            let none = || EqualReplies { reply_bytes, ln_bound: f64::NEG_INFINITY, states: Vec::new() };
            let equal = by_replies.entry(reply_bytes).or_insert_with(none);
            equal.ln_bound = equal.ln_bound.max(of_size);
            equal.states.push((at, alternative));
        }
        let mut all: Vec<EqualReplies> = by_replies.into_values().collect();
        for EqualReplies { reply_bytes, ln_bound, .. } in &mut all {
            let of_replies = self.replies.get(reply_bytes).zip(seen.replies.as_ref());
            *ln_bound += of_replies.map_or(0.0, |(reader, sizes)| reader.ln_bound(sizes));
        }
        all.sort_by(|a, b| b.ln_bound.total_cmp(&a.ln_bound));
        all
    }
}

/// The ranges of the sizes of single replies, in ascending order; `None` where they say nothing, or are not all known.
fn reply_sizes(model: &Model, command: &Command) -> Option<Vec<[i64; 2]>> {
    let replies = command.all_single_replies().filter(|_| model.single_replies.is_some())?;
    let size = WireSize { wire: command.size, records: command.records, plaintext: command.plaintext };
    let range = |reply| model.learned.basis.reply_sizes(command.learned_length(reply), size);
    let mut ranges: Vec<[i64; 2]> = replies.iter().map(range).collect();
    ranges.sort_unstable();
    Some(ranges)
}

#[cfg(test)]
mod tests;
