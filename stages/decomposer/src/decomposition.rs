//! The sums that a command's actions may have, from its size and the values of ε. The candidates as they are found: as many
//! as a frame has room for, with all their actions in one place. And what a decomposition finds, or why it finds nothing,
//! the mixture of several, and the same by other habits than those that the model was learned from.

use std::collections::BTreeMap;
use std::sync::Arc;

use sizeleak_frame::{Actions, Candidate, HabitFactors, RecurringClass, SharedList, WeightedEpsilon};
use sizeleak_inference::HabitTable;
use sizeleak_inference::search::SumTooLarge;
use sizeleak_model::Rank;
use thiserror::Error;

/// No block cipher leaves a wider range of sizes, in bytes, and no padding a wider one that says anything.
const MAX_WIDTH: i64 = 1 << 16;

/// The most pairs of a size and a value of ε that are looked at; the heaviest values come first.
const MAX_PAIRS: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TargetSum {
    /// Σ |aᵢ|·nbᵢ in bytes.
    pub(crate) bytes: i64,
    /// The ε that leaves it; the heaviest one of several.
    pub(crate) epsilon: i64,
    /// Its weight, as a multiple of the heaviest ε's.
    pub(crate) weight: f64,
}

/// The sums of a command, heaviest first, then smallest first, and how many values of ε were not used (without weight,
/// or too many). Every size of the range with every value of ε leaves a sum: size − |ac| − ε. Weights of equal sums add
/// up. Each size of the range has a weight, such as the probability that it is padded to what was seen. Sums are above 0,
/// since a command has at least one action. `None` if no cipher leaves such a range.
pub(crate) fn target_sums(
    [least, most]: [i64; 2],
    overhead: i64,
    epsilons: &[WeightedEpsilon],
    weight_of_size: impl Fn(i64) -> f64,
) -> Option<(Vec<TargetSum>, u64)> {
    let width = most.checked_sub(least).filter(|width| (0..MAX_WIDTH).contains(width))?;
    let values = weighted(epsilons);
    let used = values.len().min(MAX_PAIRS / (width as usize + 1));
    let heaviest = values.first().map_or(1.0, |(_, weight)| *weight);
    let mut by_bytes: BTreeMap<i64, TargetSum> = BTreeMap::new();
    let sizes: Vec<(i64, f64)> = (least..=most).map(|size| (size, weight_of_size(size))).collect();
    // Heaviest first: a sum keeps the first ε.
    for (epsilon, weight) in values.into_iter().take(used) {
        for (size, of_size) in sizes.iter().filter(|(_, of_size)| *of_size > 0.0) {
            let bytes = size.saturating_sub(overhead).saturating_sub(epsilon);
            if bytes > 0 {
                let sum = by_bytes.entry(bytes).or_insert(TargetSum { bytes, epsilon, weight: 0.0 });
                sum.weight += of_size * weight / heaviest;
            }
        }
    }
    let mut sums: Vec<TargetSum> = by_bytes.into_values().collect();
    sums.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.bytes.cmp(&b.bytes)));
    Some((sums, (epsilons.len() - used) as u64))
}

/// The values of ε that have weight, each once, heaviest first, then those nearest to 0.
fn weighted(epsilons: &[WeightedEpsilon]) -> Vec<(i64, f64)> {
    let mut weights: BTreeMap<i64, f64> = BTreeMap::new();
    for value in epsilons.iter().filter(|value| value.weight.is_finite() && value.weight > 0.0) {
        let weight = weights.entry(value.epsilon).or_default();
        *weight = (*weight + value.weight).min(f64::MAX);
    }
    let mut values: Vec<(i64, f64)> = weights.into_iter().collect();
    values.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.unsigned_abs().cmp(&b.0.unsigned_abs())).then(a.0.cmp(&b.0)));
    values
}

/// What explains a size, for some values of ε.
#[derive(Debug, Clone)]
pub(crate) struct Decomposition {
    pub(crate) candidates: Result<FoundCandidates, Unexplained>,
    pub(crate) unused_epsilons: u64,
    /// The probability of the size, 0 if nothing explains it; `None` where the model does not say.
    pub(crate) size_probability: Option<f64>,
}

/// Why nothing explains a command, as its notice says.
#[derive(Debug, Clone, Copy, Error)]
pub(crate) enum Unexplained {
    #[error("no message of {0} to {1} bytes comes out of this cipher: it is not decomposed")]
    InvalidRange(i64, i64),
    #[error("no actions add up to the {0} bytes of this message: another kind of message, or another gateway")]
    NoSolution(i64),
    #[error("no actions add up to the {0} to {1} bytes of this message: another kind of message, or another gateway")]
    NoSolutionInRange(i64, i64),
    #[error(
        "no labelled kind of command has {0} bytes, and what other commands weigh is not known: another kind of \
         message, another gateway, or a command to label"
    )]
    NoKind(i64),
    #[error(transparent)]
    TooLarge(#[from] SumTooLarge),
}

/// The answer by several models, each with its share; the first one's reason where none has an answer.
pub(crate) fn mixture(own: Decomposition, others: Vec<(f64, Option<Decomposition>)>, limit: usize) -> Decomposition {
    let rest = 1.0 - others.iter().map(|(share, _)| share).sum::<f64>();
    let unused_epsilons = own.unused_epsilons;
    let reason = own.candidates.as_ref().err().copied();
    let answers =
        std::iter::once((rest.max(0.0), own)).chain(others.into_iter().filter_map(|(share, own)| Some((share, own?))));
    let (mut size_probability, mut parts) = (0.0, Vec::new());
    for (share, answer) in answers {
        let joint = share * answer.size_probability.unwrap_or(0.0);
        size_probability += joint;
        parts.extend(answer.candidates.ok().filter(|_| joint > 0.0).map(|found| (joint, found)));
    }
    let candidates = match reason {
        Some(reason) if parts.is_empty() => Err(reason),
        _ => Ok(joined(&parts, limit)),
    };
    Decomposition { candidates, unused_epsilons, size_probability: Some(size_probability) }
}

/// The candidates of several answers, with the probability of each together with the size.
fn joined(parts: &[(f64, FoundCandidates)], limit: usize) -> FoundCandidates {
    let all: f64 = parts.iter().map(|(joint, _)| joint).sum();
    let mut places: BTreeMap<_, usize> = BTreeMap::new();
    let mut listed: Vec<Candidate> = Vec::new();
    for (joint, found) in parts {
        for candidate in &*found.listed {
            let key = (candidate.actions.indexed_counts(), candidate.epsilon);
            let at = *places.entry(key).or_insert_with(|| {
                listed.push(Candidate { probability: 0.0, ..candidate.clone() });
                listed.len() - 1
            });
            listed[at].probability += joint / all * candidate.probability;
        }
    }
    // Equal ones stay in their order.
    listed.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let most = parts.iter().map(|(_, found)| found.count).max().unwrap_or(0);
    let count = most.max(listed.len() as u64);
    listed.truncate(limit);
    let of_replies = |(joint, found): &(f64, FoundCandidates)| Some(joint / all * found.reply_probability?);
    FoundCandidates {
        listed: listed.into(),
        count,
        probability: Some(all),
        reply_probability: parts.iter().map(of_replies).sum(),
        with_replies: None,
    }
}

/// The most bytes that the candidates of a command take in a frame, which may have 16 MiB; the list is cut there, as it
/// is at the user's limit.
const MAX_LIST_BYTES: usize = 12 << 20;

/// The bytes that a candidate without actions takes at most.
const CANDIDATE_BYTES: usize = 80;

pub(crate) const MAX_CANDIDATES: usize = MAX_LIST_BYTES / CANDIDATE_BYTES;

/// The candidates of a command, listed or not.
#[derive(Debug, Clone, Default)]
pub(crate) struct FoundCandidates {
    pub(crate) listed: SharedList<Candidate>,
    /// How many there are, listed or not; `u64::MAX` stands for that many or more.
    pub(crate) count: u64,
    /// The probability of the size; `None` where the model has no prior.
    pub(crate) probability: Option<f64>,
    /// P(replies | size), where the replies chose the candidates to list.
    pub(crate) reply_probability: Option<f64>,
    /// P(actions | size, replies) of each listed candidate, in that case.
    pub(crate) with_replies: Option<SharedList<f64>>,
}

pub(crate) struct CandidateList<'a> {
    names: &'a SharedList<Arc<str>>,
    limit: usize,
    /// The bytes that are left; `None` once a candidate did not fit.
    room: Option<usize>,
    /// The actions of all candidates, by the indexes of their names, with their counts.
    counts: Vec<(u32, u32)>,
    listed: Vec<ListedCandidate>,
}

struct ListedCandidate {
    /// Where its actions end.
    end: u32,
    epsilon: i64,
    probability: f64,
    likelihood: Option<f64>,
}

impl<'a> CandidateList<'a> {
    pub(crate) fn new(names: &'a SharedList<Arc<str>>, limit: usize) -> Self {
        Self { names, limit, room: Some(MAX_LIST_BYTES), counts: Vec::new(), listed: Vec::new() }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.room.is_some() && self.listed.len() < self.limit
    }

    /// Lists a candidate with these actions, by the indexes of their names, if there is room for it. The weight of its sum
    /// is its likelihood, where actions have single sizes.
    pub(crate) fn push(
        &mut self,
        actions: impl Iterator<Item = (u32, u32)>,
        epsilon: i64,
        probability: f64,
        likelihood: Option<f64>,
    ) {
        let begin = self.counts.len();
        self.counts.extend(actions);
        let actions = self.counts.get(begin..).unwrap_or_default();
        // The most bytes that it takes in a frame: four fields, and a name and a count for each action.
        let of_name = |(action, _): &(u32, u32)| self.names.get(*action as usize).map_or(0, |name| name.len() + 10);
        let bytes = CANDIDATE_BYTES + actions.iter().map(of_name).sum::<usize>();
        self.room = self.room.and_then(|room| room.checked_sub(bytes));
        if self.room.is_some() {
            let end = self.counts.len() as u32;
            self.listed.push(ListedCandidate { end, epsilon, probability, likelihood });
        }
    }

    pub(crate) fn into_candidates(self) -> SharedList<Candidate> {
        let ends: Vec<u32> = self.listed.iter().map(|listed| listed.end).collect();
        let actions = Actions::of_many(self.names.clone(), self.counts, ends);
        let candidate = |(actions, ListedCandidate { epsilon, probability, likelihood, .. })| Candidate {
            actions,
            epsilon,
            probability,
            likelihood,
        };
        actions.zip(self.listed).map(candidate).collect()
    }
}

/// The weight of the learned habits beside others.
pub(crate) fn learned_share(habits: &[HabitFactors]) -> f64 {
    (1.0 - habits.iter().map(|own| own.weight).sum::<f64>()).max(0.0)
}

/// The candidates of a size by habits, which are factors on the learned prior without commands that recur; what these leave
/// of the learned habits is `not_recurring`. What is not listed is taken to have the mean factor of what is.
pub(crate) fn by_habits(found: &FoundCandidates, habits: &[HabitFactors], not_recurring: f64) -> FoundCandidates {
    let learned = not_recurring * learned_share(habits);
    let table = HabitTable::new(habits.iter().map(|own| (own.weight, &*own.actions, &*own.numbers)));
    let factor = |one: &Candidate| learned + table.factor(one.actions.indexed_counts());
    weighed(found, &found.listed.iter().map(factor).collect::<Vec<f64>>())
}

/// The candidates of a size with those that came before. What is not listed is taken to have the mean factor of what is.
/// `heaviest` is the weight that likelihoods of sizes are multiples of.
pub(crate) fn with_recurring_classes(
    found: &FoundCandidates,
    recurring: &[RecurringClass],
    heaviest: f64,
    sum_of: impl Fn(&Actions) -> i64,
    replies_of: impl Fn(&Actions) -> Vec<u32>,
) -> FoundCandidates {
    let Some(of_size) = found.probability.filter(|_| !recurring.is_empty()) else { return found.clone() };
    let class_of = |Candidate { actions, .. }: &Candidate| {
        let sum = sum_of(actions);
        let with_sum = |class: &RecurringClass| class.bytes == sum && class.share > 0.0;
        let replies = recurring.iter().any(with_sum).then(|| replies_of(actions))?;
        recurring.iter().position(|class| with_sum(class) && *class.replies == *replies)
    };
    let classes: Vec<Option<usize>> = found.listed.iter().map(class_of).collect();
    // P(A) of all candidates of each class.
    let mut by_habit = vec![0.0; recurring.len()];
    for (candidate, class) in found.listed.iter().zip(&classes) {
        let of_epsilon = candidate.likelihood.unwrap_or(1.0) * heaviest;
        if let Some(class) = class {
            by_habit[*class] += candidate.probability * of_size / of_epsilon;
        }
    }
    let factor = |class: &Option<usize>| match class {
        Some(class) if by_habit[*class] > 0.0 => 1.0 + recurring[*class].share / by_habit[*class],
        _ => 1.0,
    };
    FoundCandidates {
        probability: found.probability,
        ..weighed(found, &classes.iter().map(factor).collect::<Vec<f64>>())
    }
}

/// The candidates with a factor for each that is listed.
fn weighed(found: &FoundCandidates, factors: &[f64]) -> FoundCandidates {
    // Where the replies chose the list, it has nearly all that matters with them, and next to nothing without.
    let weights = |(at, candidate): (usize, &Candidate)| {
        found.with_replies.as_ref().map_or(candidate.probability, |joint| joint.get(at).copied().unwrap_or(0.0))
    };
    let weights: Vec<f64> = found.listed.iter().enumerate().map(weights).collect();
    let all: f64 = weights.iter().sum();
    let of_joint = weights.iter().zip(factors).map(|(weight, factor)| weight * factor).sum::<f64>() / all;
    // Where the replies chose the list, it may have nearly all of the size by these habits: no more than that.
    let of_listed: f64 = found.listed.iter().zip(factors).map(|(one, factor)| one.probability * factor).sum();
    let mean = of_joint.max(of_listed);
    if !(mean.is_finite() && of_joint > 0.0) {
        return found.clone();
    }
    let probability = |at: usize| (found.listed[at].probability * factors[at] / mean).min(1.0);
    let mut order: Vec<Rank> = (0..factors.len()).map(|at| Rank::new(probability(at), at)).collect();
    order.sort_unstable();
    let order = || order.iter().map(|rank| rank.index());
    let joint = |at: usize| weights[at] * factors[at] / of_joint;
    FoundCandidates {
        with_replies: found.with_replies.as_ref().map(|_| order().map(joint).collect()),
        reply_probability: found.reply_probability.map(|own| own * of_joint / mean),
        listed: order().map(|at| Candidate { probability: probability(at), ..found.listed[at].clone() }).collect(),
        probability: found.probability.map(|own| (own * mean).min(1.0)),
        count: found.count,
    }
}
