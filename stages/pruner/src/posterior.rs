//! Whether candidates are within the inventory: a foreign decomposer may not have checked. Their probabilities after the
//! replies: P(candidate | replies) ∝ P(candidate) · P(replies | its actions). How probable each number of actions and each
//! type of device is then, summed over candidates. And whether the model fits the flows, and what that makes of these
//! probabilities.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use sizeleak_frame::{Actions, Candidate, DeviceTypeProbability, Identification, NumberProbability, SharedList};
use sizeleak_model::{
    DeviceTypes, FALSE_ALARMS, FitJudgement, InventoryError, JudgedSize, Limits, MAX_ACTION_CLASSES, MisfitCause,
    Model, PaddingTest, Rank,
};
use sizeleak_platform::runtime::TwoGenerationCache;

use crate::reply_evidence::{ActionEvidence, ReplyEvidence};

/// The limits of the model's inventory, by action names.
#[derive(Debug)]
pub(crate) struct InventoryFilter {
    /// The class of each action. Only looked up, so its order does not matter.
    classes: HashMap<String, usize, RandomState>,
    limits: Limits,
    /// How many actions a command can have; `u32::MAX` without an inventory.
    pub(crate) max_actions: u32,
    /// The names that the last candidate referred to, each with its class; `None` if the model does not have the action. The
    /// candidates of a list share their names, so that each name is looked up once.
    of_names: RefCell<ClassesOfNames>,
}

type ClassesOfNames = (SharedList<Arc<str>>, Vec<Option<usize>>);

impl InventoryFilter {
    pub(crate) fn new(model: &Model) -> Result<Self, InventoryError> {
        let limits = model.limits_of_all()?;
        let names = model.action_names().into_iter().map(str::to_owned);
        let classes = names.zip(0..).map(|(name, action)| (name, limits.class_of(action))).collect();
        Ok(Self { classes, max_actions: limits.max_actions(), limits, of_names: RefCell::default() })
    }

    /// Whether each of the actions finds a device of its own; always true without an inventory.
    pub(crate) fn allows(&self, actions: &Actions) -> bool {
        let limits = &self.limits;
        if limits.is_free() {
            return true;
        }
        let mut of_names = self.of_names.borrow_mut();
        if !of_names.0.is_clone_of(actions.names()) {
            let class = |name: &Arc<str>| self.classes.get(&**name).copied();
            *of_names = (actions.names().clone(), actions.names().iter().map(class).collect());
        }
        let mut totals = [0_u32; MAX_ACTION_CLASSES];
        let totals = totals.get_mut(..limits.classes()).unwrap_or_default();
        for (name_index, count) in actions.indexed_counts().iter().filter(|(_, count)| *count > 0) {
            let class = of_names.1.get(*name_index as usize).copied().flatten();
            let Some(total) = class.and_then(|class| totals.get_mut(class)) else { return false };
            *total = total.saturating_add(*count);
        }
        limits.admits_totals(totals)
    }
}

/// Probabilities with a smaller relative difference are equal: they differ by rounding alone.
const EQUAL: f64 = 1e-9;

/// The distribution over the candidates of a command, with a share for those the list leaves out.
#[derive(Debug)]
pub(crate) struct Posterior<'a> {
    listed: &'a SharedList<Candidate>,
    /// The candidates that are left: in the list's order, or best first after [`Self::keep`].
    left: Vec<LeftCandidate>,
    /// The probability of everything that is not listed.
    pub(crate) unlisted: f64,
}

/// A listed candidate, by its index, its current probability, and its likelihood, with that of the evidence.
#[derive(Debug, Clone, Copy)]
struct LeftCandidate {
    index: usize,
    probability: f64,
    likelihood: Option<f64>,
}

impl<'a> Posterior<'a> {
    /// The probabilities before the replies. If the list is cut, or if a command may be something that no candidate
    /// stands for, what is left to 1 is not listed.
    pub(crate) fn new(listed: &'a SharedList<Candidate>, is_incomplete: bool) -> Self {
        let valid = |given: f64| if given.is_nan() { 0.0 } else { given.clamp(0.0, 1.0) };
        let left = listed.iter().enumerate().map(|(index, &Candidate { probability, likelihood, .. })| LeftCandidate {
            index,
            probability: valid(probability),
            likelihood,
        });
        let left: Vec<LeftCandidate> = left.collect();
        let unlisted = if is_incomplete { (1.0 - sum(&left)).max(0.0) } else { 0.0 };
        Self { listed, left, unlisted }
    }

    pub(crate) fn len(&self) -> usize {
        self.left.len()
    }

    /// Drops the candidates that are not wanted, and scales the probabilities of the rest to sum to 1. Returns how many
    /// were dropped.
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(&Candidate) -> bool) -> u64 {
        let before = self.left.len();
        self.left.retain(|left| self.listed.get(left.index).is_some_and(&mut wanted));
        let dropped = before - self.left.len();
        if dropped > 0 {
            self.normalise();
        }
        dropped as u64
    }

    /// Weighs each candidate by the evidence. Candidates that are not listed have the rest of the evidence's probability
    /// given the size, if that is known (`evidence_probability`). Else they get the greatest likelihood they can have, so
    /// that the probabilities of the listed ones are never too high.
    pub(crate) fn weigh(&mut self, evidence: &impl ActionEvidence, evidence_probability: Option<f64>) {
        let candidates = self.left.iter().filter_map(|left| self.listed.get(left.index));
        let likelihoods: Vec<f64> = candidates.map(|candidate| evidence.ln_likelihood(&candidate.actions)).collect();
        let is_known = |given: &f64| self.unlisted > 0.0 && (f64::MIN_POSITIVE..=1.0).contains(given);
        let known = evidence_probability.filter(is_known).map(f64::ln);
        let of_unlisted = known.unwrap_or_else(|| evidence.ln_greatest());
        let unlisted = if self.unlisted > 0.0 { of_unlisted } else { f64::NEG_INFINITY };
        let greatest = likelihoods.iter().copied().fold(unlisted, f64::max);
        if greatest == f64::NEG_INFINITY {
            return self.normalise();
        }
        // Relative to the greatest: the product with a tiny likelihood would be 0.
        for (left, likelihood) in self.left.iter_mut().zip(likelihoods) {
            let relative = (likelihood - greatest).exp();
            left.probability *= relative;
            left.likelihood = left.likelihood.map(|before| before * relative);
        }
        let relative = (unlisted - greatest).exp();
        self.unlisted = if known.is_some() { (relative - sum(&self.left)).max(0.0) } else { self.unlisted * relative };
        self.normalise();
    }

    /// Takes other probabilities for the listed candidates, in their order; none may have been dropped.
    pub(crate) fn replace(&mut self, probabilities: Vec<f64>) {
        for (left, probability) in self.left.iter_mut().zip(probabilities) {
            left.probability = probability;
        }
    }

    pub(crate) fn left(&self) -> impl Iterator<Item = (&Candidate, f64)> {
        self.left.iter().filter_map(|left| Some((self.listed.get(left.index)?, left.probability)))
    }

    /// The probability of the number of replies before they are used, over all candidates; `None` if it says nothing
    /// about actions or there are no candidates. Those that are not listed have the greatest likelihood.
    pub(crate) fn probability_of_replies(&self, evidence: &ReplyEvidence<'_>) -> Option<f64> {
        let greatest = evidence.greatest_of_number().filter(|_| !self.left.is_empty())?;
        let of = |left: &LeftCandidate| {
            let candidate = self.listed.get(left.index)?;
            Some(left.probability * evidence.likelihood_of_number(&candidate.actions))
        };
        Some(self.left.iter().filter_map(of).sum::<f64>() + self.unlisted * greatest)
    }

    /// Orders the candidates, most probable first and equal ones as listed, and keeps the fewest that have the
    /// probability `share` together. Those as probable as the last one are kept too, since nothing distinguishes them.
    /// Probabilities stay relative to all candidates. Returns whether the kept ones have the share; if not, candidates
    /// that are not listed have to be kept too.
    pub(crate) fn keep(&mut self, share: f64) -> bool {
        let all = std::mem::take(&mut self.left);
        let mut ranks: Vec<Rank> =
            all.iter().zip(0..).map(|(left, index)| Rank::new(left.probability, index)).collect();
        ranks.sort_unstable();
        let (mut kept, mut last) = (0.0, f64::INFINITY);
        for left in ranks.iter().filter_map(|rank| all.get(rank.index())) {
            if share < 1.0 && kept >= share && left.probability < last * (1.0 - EQUAL) {
                break;
            }
            kept += left.probability;
            last = left.probability;
            self.left.push(*left);
        }
        share < 1.0 && kept >= share
    }

    /// The candidates that are left, with their probabilities: the list itself if it is unchanged.
    pub(crate) fn candidates(&self) -> SharedList<Candidate> {
        let given = self.listed.iter().enumerate().map(|(index, candidate)| (index, candidate.probability.to_bits()));
        if given.eq(self.left.iter().map(|left| (left.index, left.probability.to_bits()))) {
            return self.listed.clone();
        }
        let mut candidates = Vec::with_capacity(self.left.len());
        candidates.extend(self.left.iter().filter_map(|left| {
            let given = self.listed.get(left.index)?;
            Some(Candidate { probability: left.probability, likelihood: left.likelihood, ..given.clone() })
        }));
        candidates.into()
    }

    /// Scales probabilities to sum to 1. If all are 0, the listed candidates become equally probable.
    fn normalise(&mut self) {
        let total = sum(&self.left) + self.unlisted;
        let equal = 1.0 / self.left.len() as f64;
        for left in &mut self.left {
            left.probability = if total > 0.0 { left.probability / total } else { equal };
        }
        if total > 0.0 {
            self.unlisted /= total;
        }
    }
}

fn sum(left: &[LeftCandidate]) -> f64 {
    left.iter().map(|left| left.probability).sum()
}

#[derive(Debug, Clone, Default)]
pub(crate) struct CandidateSums {
    pub(crate) numbers: SharedList<NumberProbability>,
    /// Empty if it is not known of some candidate.
    pub(crate) device_types: SharedList<DeviceTypeProbability>,
}

impl CandidateSums {
    /// Sums over candidates; `types` are those of the inventory, if there is one.
    pub(crate) fn of(candidates: &[Candidate], types: Option<&mut DeviceTypes>) -> Self {
        let mut numbers: BTreeMap<u64, f64> = BTreeMap::new();
        for candidate in candidates {
            *numbers.entry(candidate.actions.total()).or_default() += candidate.probability;
        }
        let number = |(actions, probability)| NumberProbability { actions, probability };
        let device_types = types.filter(|_| !candidates.is_empty()).and_then(|types| of_types(candidates, types));
        Self { numbers: numbers.into_iter().map(number).collect(), device_types: device_types.unwrap_or_default() }
    }

    /// The sums where each candidate has this share of its probability.
    pub(crate) fn weighed(self, weight: f64) -> Self {
        if weight >= 1.0 {
            return self;
        }
        let numbers =
            self.numbers.iter().map(|number| NumberProbability { probability: number.probability * weight, ..*number });
        let device_types = self.device_types.iter().map(|of_type| DeviceTypeProbability {
            probability: of_type.probability * weight,
            device: of_type.device.clone(),
        });
        Self { numbers: numbers.collect(), device_types: device_types.collect() }
    }
}

fn of_types(candidates: &[Candidate], types: &mut DeviceTypes) -> Option<SharedList<DeviceTypeProbability>> {
    let mut sums = vec![0.0; types.names.len()];
    for candidate in candidates {
        let shares = types.addressed(candidate.actions.iter().map(|(name, count)| (&**name, count)))?;
        for (sum, share) in sums.iter_mut().zip(shares.iter()) {
            *sum += candidate.probability * share;
        }
    }
    let of_type =
        |(device, probability): (&String, f64)| DeviceTypeProbability { device: device.as_str().into(), probability };
    Some(types.names.iter().zip(sums).map(of_type).collect())
}

/// The most flows with a judgement; at least the half used last is kept. Each takes up to 20 kB, most of them far less.
const MAX_FLOWS: usize = 8192;

#[derive(Debug)]
pub(crate) struct FitJudge {
    flows: TwoGenerationCache<u64, FitJudgement>,
    /// How many flows had enough commands to be judged.
    judged: u64,
    /// How many of them the model does not fit.
    misfits: u64,
    padding: Option<PaddingTest>,
}

impl FitJudge {
    pub(crate) fn new(model: &Model) -> Self {
        Self { flows: TwoGenerationCache::new(MAX_FLOWS), judged: 0, misfits: 0, padding: PaddingTest::of(model) }
    }

    /// Judges the flow of an identification that has come in, and whose replies have a probability if the model says
    /// anything about them. Returns what its candidates' probabilities are to be multiplied by, and what is wrong where
    /// the flow is rejected.
    pub(crate) fn judge(
        &mut self,
        model: &Model,
        Identification { command, size_probability, candidate_count, shifts, .. }: &Identification,
        reply_probability: Option<f64>,
    ) -> (f64, Option<String>) {
        // What is left to 1 is for messages that are not the model's.
        let fit = if shifts.is_empty() { 1.0 } else { shifts.iter().map(|shift| shift.probability).sum() };
        if size_probability.is_none() && *candidate_count == 0 {
            return (1.0, None);
        }
        let probability = size_probability.map(|probability| probability.clamp(0.0, 1.0));
        let Ok(sizes) = model.sizes(command.size, command.records, command.plaintext) else { return (1.0, None) };
        let replies = reply_probability.map(|probability| (command.replies, probability));
        let flow = self.flows.get_or_default(command.flow);
        let was_judged = flow.is_judged();
        let padding = self.padding.as_ref();
        let is_rejected = flow.add(JudgedSize { sizes, probability, strange: 1.0 - fit, replies, padding });
        self.judged += u64::from(flow.is_judged() && !was_judged);
        self.misfits += u64::from(is_rejected);
        (flow.weight(), is_rejected.then(|| describe(flow, model.single_replies.is_some())))
    }

    /// How many flows were judged and how many of them the model does not fit; nothing where it fits all.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counters = [("judged_flows", self.judged), ("misfit_flows", self.misfits)];
        counters.into_iter().filter(|_| self.misfits > 0)
    }
}

/// What is wrong, and what to do. Where single replies are known, messages that are not the model's may be so by them alone.
fn describe(flow: &FitJudgement, has_single_replies: bool) -> String {
    let FitJudgement { commands, unexplained, .. } = flow;
    let cause = match flow.cause() {
        MisfitCause::Sizes => "their sizes are not those of its actions",
        MisfitCause::Replies => "their replies are not those of the actions that their sizes show",
        MisfitCause::Padding => "their sizes are those that padding leaves, which are sums of actions by coincidence",
        MisfitCause::Messages if has_single_replies => {
            "their sizes or their replies are those of its actions by coincidence only"
        }
        MisfitCause::Messages => "their sizes are those of its actions by coincidence only",
    };
    format!(
        "this model does not fit this gateway: {unexplained} of {commands} commands unexplained, and {cause} (false \
         alarms: {FALSE_ALARMS} of flows); probabilities are lowered from here on: learn a model of this gateway and \
         service"
    )
}

/// Candidates whose probabilities are multiplied by a weight: the list itself where that is 1.
pub(crate) fn weighed(candidates: &SharedList<Candidate>, weight: f64) -> SharedList<Candidate> {
    if weight >= 1.0 {
        return candidates.clone();
    }
    let weigh = |candidate: &Candidate| Candidate { probability: candidate.probability * weight, ..candidate.clone() };
    candidates.iter().map(weigh).collect()
}
