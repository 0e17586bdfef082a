//! The stage: identifications in, with fewer and better ordered candidates out.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_flow_models::{SectionStage, Subject};
use sizeleak_frame::{Candidate, Command, Flow, Frame, Identification, Notice, SharedList, what};
use sizeleak_habits::HabitPrior;
use sizeleak_model::{DeviceTypes, InventoryError, Model};
use sizeleak_platform::runtime::{Emit, Stage, StageError, TwoGenerationCache};

use crate::posterior::{CandidateSums, FitJudge, InventoryFilter, Posterior, weighed};
use crate::reply_evidence::{ActionEvidence, ReplyEvidence, ReplyModel};
use crate::shared_evidence::{SharedEvidence, shares_of};
use crate::shared_replies::{OverlapQueue, RepliesKnown, ReplyShare};

/// The most bytes that cached results take, including lists that a decomposer caches too.
const MAX_CACHE_BYTES: usize = 24 << 20;

/// What a cached result takes besides its candidates, in bytes.
const ENTRY_BYTES: usize = 256;

/// Which of a command's candidates are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PruningMode {
    /// The fewest that hold the truth with probability `keep`, given the replies; most probable first
    Learned,
    /// Those with as many actions as the replies show, as in the paper
    Paper,
    /// All, unchanged
    None,
}

/// Drops the candidates that the inventory or the replies contradict.
///
/// Candidates that the decomposer did not list cannot be examined. They still count in `candidate_count`, unless mode
/// [`PruningMode::Learned`] finds the probability to keep among the listed ones. In every other case `candidate_count`
/// is the number of candidates kept.
#[derive(Debug)]
pub struct Pruner {
    mode: PruningMode,
    keep: f64,
    model: ReplyModel,
    /// The model where replies are longer, with the bytes, as a command needed it last.
    longer: Option<(i64, ReplyModel)>,
    /// What waits for commands that may share its replies; only with [`PruningMode::Learned`].
    queue: OverlapQueue,
    /// The group whose replies were shared out last, with the shares of each command.
    shared_out: Option<(Arc<[Identification]>, GroupShares)>,
    inventory: InventoryFilter,
    device_types: Option<DeviceTypes>,
    /// The latest result for each question, with the candidates it holds for: a home's commands have the same few sizes
    /// and replies.
    cache: TwoGenerationCache<PruningKey, (SharedList<Candidate>, PruningResult)>,
    is_cut_reported: bool,
    fit: FitJudge,
    /// What homes usually do, whichever section their commands are of.
    habits: Option<Arc<Mutex<HabitPrior>>>,
    counters: PrunerCounters,
}

/// The shares of each command of a group; `None` where the replies say nothing.
type GroupShares = Option<Vec<Vec<ReplyShare>>>;

#[derive(Debug, Default)]
struct PrunerCounters {
    candidates_in: u64,
    candidates_out: u64,
    beyond_inventory: u64,
    cut_lists: u64,
    emptied: u64,
    /// Commands whose replies are shared out among several, and those whose replies are not known.
    shared: u64,
    unknown_replies: u64,
    by_habits: u64,
}

/// What a result depends on, besides the model and the candidates.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PruningKey {
    size: u64,
    plaintext: Option<[u64; 2]>,
    records: u32,
    replies: u32,
    /// 0 if the model does not use them.
    reply_bytes: u64,
    /// The lengths of the single replies in ascending order; none if the model does not use them.
    single_replies: Vec<u32>,
    /// By how many bytes each reply is longer than the model's.
    longer_replies: i64,
    candidate_count: u64,
    /// The bits of P(single replies | size), if it is given.
    given_probability: Option<u64>,
}

/// What is left of a list of candidates.
#[derive(Debug, Clone, Default)]
struct PruningResult {
    candidates: SharedList<Candidate>,
    /// How many candidates that are not listed must be kept.
    unlisted: u64,
    /// The numbers of actions that the replies allow, up to `u32::MAX` without a bound; `None` if they say nothing.
    bounds: Option<RangeInclusive<u32>>,
    /// How many candidates the inventory did not allow.
    beyond_inventory: u64,
    /// Whether it allowed any.
    is_possible: bool,
    /// The probability of the number of replies given the size; `None` if it says nothing about actions.
    reply_probability: Option<f64>,
    /// How probable numbers of actions and types of devices are, of what is remembered; of mode `none` those of all
    /// candidates.
    sums: CandidateSums,
}

impl Pruner {
    /// A pruner with this model; `keep` is the probability that the truth is kept in mode [`PruningMode::Learned`].
    pub fn new(model: &Model, mode: PruningMode, keep: f64) -> Result<Self, InventoryError> {
        Ok(Self {
            mode,
            keep,
            model: ReplyModel::new(model.clone()),
            longer: None,
            queue: OverlapQueue::default(),
            shared_out: None,
            inventory: InventoryFilter::new(model)?,
            device_types: model.inventory.as_ref().map(DeviceTypes::new),
            cache: TwoGenerationCache::new(MAX_CACHE_BYTES),
            is_cut_reported: false,
            fit: FitJudge::new(model),
            habits: None,
            counters: PrunerCounters::default(),
        })
    }

    /// With habits as a prior beside the model's; only mode [`PruningMode::Learned`] weighs them. The pruners of all
    /// sections share them.
    #[must_use]
    pub fn with_habits(self, habits: Arc<Mutex<HabitPrior>>) -> Self {
        Self { habits: Some(habits), ..self }
    }

    fn prune(
        &mut self,
        identification: &mut Identification,
        result: PruningResult,
        out: &mut dyn Emit,
    ) -> Result<(), StageError> {
        let had_candidates = identification.candidate_count > 0;
        let PruningResult { candidates, unlisted, bounds, beyond_inventory, is_possible, .. } = result;
        self.counters.beyond_inventory += beyond_inventory;
        identification.candidate_count = unlisted.saturating_add(candidates.len() as u64);
        identification.candidates = candidates;
        identification.min_actions = bounds.as_ref().map(|bounds| *bounds.start());
        identification.max_actions = bounds.map(|bounds| *bounds.end()).filter(|most| *most < u32::MAX);
        if unlisted > 0 && !std::mem::replace(&mut self.is_cut_reported, true) {
            let detail =
                "candidates that are not listed cannot be weighed, and still count: raise the decomposer's `limit`";
            out.emit(notice(identification, what::TRUNCATED, detail.to_owned()).into())?;
        }
        if had_candidates && identification.candidate_count == 0 {
            self.counters.emptied += 1;
            let cause = if is_possible { "the replies contradict every" } else { "the inventory allows no" };
            let detail = format!("{cause} candidate: the gateway may have changed, or replies were lost");
            out.emit(notice(identification, what::UNEXPLAINED, detail).into())?;
        }
        Ok(())
    }

    /// The result for an identification: from the cache if its candidates are the same to the last bit.
    fn result(&mut self, identification: &Identification) -> PruningResult {
        let Identification { command, candidates, candidate_count, reply_probability, .. } = identification;
        let key = PruningKey {
            size: command.size,
            plaintext: command.plaintext,
            records: command.records,
            replies: command.replies,
            reply_bytes: if self.model.model.reply_bytes.is_some() || self.model.model.kinds.is_some() {
                command.reply_bytes
            } else {
                0
            },
            single_replies: self.single_replies(command),
            longer_replies: longer_replies(identification),
            candidate_count: *candidate_count,
            given_probability: reply_probability.map(f64::to_bits),
        };
        if let Some((cached, result)) = self.cache.recall(&key)
            && is_same(cached, candidates)
        {
            return result.clone();
        }
        self.prepare_model(longer_replies(identification));
        let mut result = self.compute(identification);
        let summed = if self.mode == PruningMode::None { candidates } else { &result.candidates };
        result.sums = CandidateSums::of(summed, self.device_types.as_mut());
        let own_bytes = if result.candidates.is_clone_of(candidates) { 0 } else { size_of_val(&*result.candidates) };
        let of_replies = size_of_val(&*key.single_replies);
        let bytes = ENTRY_BYTES + of_replies + candidates.memory_bytes() + own_bytes;
        self.cache.remember(key, (candidates.clone(), result.clone()), bytes);
        result
    }

    fn single_replies(&self, command: &Command) -> Vec<u32> {
        if self.model.model.single_replies.is_none() {
            return Vec::new();
        }
        let mut lengths: Vec<u32> = command.single_replies.iter().map(|reply| command.learned_length(reply)).collect();
        lengths.sort_unstable();
        lengths
    }

    fn prepare_model(&mut self, longer: i64) {
        if longer != 0 && self.longer.as_ref().is_none_or(|(bytes, _)| *bytes != longer) {
            let model = self.model.model.clone().with_longer_messages(0, longer);
            self.longer = Some((longer, ReplyModel::new(model)));
        }
    }

    /// The model that was prepared last for these replies.
    fn model(&self, longer: i64) -> &ReplyModel {
        match &self.longer {
            Some((bytes, model)) if *bytes == longer => model,
            _ => &self.model,
        }
    }

    /// The candidates that the inventory allows, with their probabilities before the replies; and what is left of them where
    /// these say nothing, but for the list.
    fn possible<'a>(&self, identification: &'a Identification) -> (Posterior<'a>, PruningResult) {
        let unlisted = unlisted(identification);
        let is_incomplete = unlisted > 0 || self.model.model.kinds.is_some();
        let mut posterior = Posterior::new(&identification.candidates, is_incomplete);
        let beyond_inventory = posterior.retain(|candidate| self.inventory.allows(&candidate.actions));
        let is_possible = posterior.len() > 0;
        (posterior, PruningResult { unlisted, beyond_inventory, is_possible, ..PruningResult::default() })
    }

    /// Weighs candidates by evidence, and keeps those that hold the truth with the probability to keep: where they do, those
    /// that are not listed are not needed.
    fn weigh(
        &self,
        (posterior, result): (&mut Posterior<'_>, &mut PruningResult),
        evidence: &impl ActionEvidence,
        evidence_probability: Option<f64>,
    ) {
        posterior.weigh(evidence, evidence_probability);
        result.bounds = Some(evidence.learned_bounds(self.keep));
        // All are kept before habits are asked, as these may find probable what replies do not.
        if posterior.keep(if self.habits.is_some() { 1.0 } else { self.keep }) {
            result.unlisted = 0;
        }
    }

    /// The result where the replies are those to the command itself.
    fn compute(&self, identification: &Identification) -> PruningResult {
        let (mut posterior, mut result) = self.possible(identification);
        let model = self.model(longer_replies(identification));
        let evidence = ReplyEvidence::new(model, &identification.command, self.inventory.max_actions);
        result.reply_probability = evidence.as_ref().and_then(|evidence| posterior.probability_of_replies(evidence));
        match (evidence, self.mode) {
            (None, _) => {}
            (Some(evidence), PruningMode::Paper) => {
                let bounds = evidence.paper_bounds();
                let total = |candidate: &Candidate| u32::try_from(candidate.actions.total()).unwrap_or(u32::MAX);
                posterior.retain(|candidate| bounds.contains(&total(candidate)));
                result.bounds = Some(bounds);
            }
            (Some(evidence), _) => {
                // Of the decomposer's candidates and replies one by one; so not with candidates dropped, or by other evidence.
                let is_given = result.beyond_inventory == 0 && evidence.only_single().is_some();
                let given = identification.reply_probability.filter(|_| is_given);
                self.weigh((&mut posterior, &mut result), &evidence, given);
            }
        }
        PruningResult { candidates: posterior.candidates(), ..result }
    }

    /// The result of a command whose replies are among those of a group.
    fn of_group(&mut self, group: &Arc<[Identification]>, at: usize, identification: &Identification) -> PruningResult {
        let longer = longer_replies(identification);
        self.prepare_model(longer);
        if self.shared_out.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, group)) {
            let is_alike = group.iter().all(|one| longer_replies(one) == longer);
            let candidates: Vec<Posterior<'_>> = group.iter().map(|one| self.possible(one).0).collect();
            let max_actions = self.inventory.max_actions;
            let shares = if is_alike { shares_of(self.model(longer), group, &candidates, max_actions) } else { None };
            self.shared_out = Some((Arc::clone(group), shares));
        }
        let shares = self.shared_out.as_ref().and_then(|(_, shares)| shares.as_ref()?.get(at));
        self.by_shares(identification, shares.map(Vec::as_slice))
    }

    /// The result where the replies are one of these shares; by the size alone where they are not known.
    fn by_shares(&self, identification: &Identification, shares: Option<&[ReplyShare]>) -> PruningResult {
        let (mut posterior, mut result) = self.possible(identification);
        let (model, command) = (self.model(longer_replies(identification)), &identification.command);
        let max_actions = self.inventory.max_actions;
        let evidence = shares.and_then(|shares| SharedEvidence::new(model, command, shares, max_actions));
        if let Some(evidence) = evidence {
            self.weigh((&mut posterior, &mut result), &evidence, None);
        }
        PruningResult { candidates: posterior.candidates(), ..result }
    }

    fn habits(&self) -> Option<MutexGuard<'_, HabitPrior>> {
        self.habits.as_ref().map(|habits| habits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn by_habits(&mut self, identification: &Identification, result: PruningResult) -> PruningResult {
        let Some(mut habits) = self.habits() else { return result };
        let candidates = &result.candidates;
        let answer = Identification { candidates: candidates.clone(), ..identification.clone() };
        let probabilities = habits.probabilities(&answer);
        drop(habits);
        self.counters.by_habits += u64::from(probabilities.is_some());
        let mut posterior = Posterior::new(candidates, result.unlisted > 0 || self.model.model.kinds.is_some());
        if let Some(probabilities) = probabilities {
            posterior.replace(probabilities);
        }
        // Without replies that say something all remain, as they do without habits.
        let is_enough = result.bounds.is_some() && posterior.keep(self.keep);
        let candidates = posterior.candidates();
        PruningResult { unlisted: if is_enough { 0 } else { result.unlisted }, candidates, ..result }
    }

    fn answer_ready(&mut self, is_end: bool, out: &mut dyn Emit) -> Result<(), StageError> {
        while let Some((identification, replies)) = self.queue.next(is_end) {
            self.answer(identification, &replies, out)?;
        }
        Ok(())
    }

    fn answer(
        &mut self,
        mut identification: Box<Identification>,
        replies: &RepliesKnown,
        out: &mut dyn Emit,
    ) -> Result<(), StageError> {
        self.counters.candidates_in = self.counters.candidates_in.saturating_add(identification.candidate_count);
        let is_cut = identification.candidate_count > identification.candidates.len() as u64;
        self.counters.cut_lists += u64::from(is_cut);
        let result = match replies {
            RepliesKnown::Own => self.result(&identification),
            RepliesKnown::Grouped(group, at) => self.of_group(group, *at, &identification),
            RepliesKnown::Unknown => self.by_shares(&identification, None),
        };
        match replies {
            RepliesKnown::Own => {}
            RepliesKnown::Grouped(..) if result.bounds.is_some() => self.counters.shared += 1,
            RepliesKnown::Grouped(..) | RepliesKnown::Unknown => self.counters.unknown_replies += 1,
        }
        let (weight, misfit) = self.fit.judge(&self.model.model, &identification, result.reply_probability);
        if let Some(detail) = misfit {
            let notice = notice(&identification, what::MISFIT, detail);
            if let Some(mut habits) = self.habits() {
                habits.flows().note(&notice);
            }
            out.emit(notice.into())?;
        }
        let result = self.by_habits(&identification, result);
        let sums = match replies {
            RepliesKnown::Own if self.habits.is_none() => result.sums.clone(),
            _ => CandidateSums::of(&result.candidates, self.device_types.as_mut()),
        };
        if self.mode == PruningMode::None {
            (identification.min_actions, identification.max_actions) = (None, None);
        } else {
            self.prune(&mut identification, result, out)?;
        }
        identification.candidates = weighed(&identification.candidates, weight);
        let CandidateSums { numbers, device_types } = sums.weighed(weight);
        (identification.numbers, identification.device_types) = (numbers, device_types);
        identification.listed = identification.candidates.len() as u64;
        self.counters.candidates_out = self.counters.candidates_out.saturating_add(identification.candidate_count);
        Ok(out.emit(Frame::Identification(identification))?)
    }
}

impl Stage for Pruner {
    const NAME: &'static str = "pruner";
    /// Emitted in the same box.
    type Input = Box<Identification>;

    fn process(&mut self, identification: Box<Identification>, out: &mut dyn Emit) -> Result<(), StageError> {
        if self.mode != PruningMode::Learned {
            return self.answer(identification, &RepliesKnown::Own, out);
        }
        self.queue.push(identification);
        self.answer_ready(false, out)
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        self.answer_ready(true, out)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = vec![
            ("candidates_in", self.counters.candidates_in),
            ("candidates_out", self.counters.candidates_out),
            ("beyond_inventory", self.counters.beyond_inventory),
            ("cut_lists", self.counters.cut_lists),
            ("emptied", self.counters.emptied),
        ];
        let rare = [
            ("shared_replies", self.counters.shared),
            ("unknown_replies", self.counters.unknown_replies),
            ("by_habits", self.counters.by_habits),
        ];
        counters.extend(rare.into_iter().filter(|(_, count)| *count > 0));
        counters.extend(self.fit.counters());
        counters
    }
}

impl SectionStage for Pruner {
    fn subject(identification: &Box<Identification>) -> Subject {
        (&identification.command).into()
    }

    fn without_model(identification: Box<Identification>) -> Frame {
        Frame::Identification(identification)
    }

    fn see_flow(&mut self, flow: &Flow) {
        if let Some(mut habits) = self.habits() {
            habits.flows().name_gateway(flow.flow, &flow.gateway.to_string());
        }
    }
}

/// How many candidates are not listed; `u64::MAX` stands for that many or more.
fn unlisted(identification: &Identification) -> u64 {
    match identification.candidate_count {
        u64::MAX => u64::MAX,
        count => count.saturating_sub(identification.candidates.len() as u64),
    }
}

/// By how many bytes each reply is most probably longer than those that the model was learned from.
fn longer_replies(identification: &Identification) -> i64 {
    identification.shifts.first().map_or(0, |shift| shift.reply_bytes)
}

/// Whether lists are the same to the last bit. A decomposer with a cache passes on the very same list.
fn is_same(one: &SharedList<Candidate>, other: &SharedList<Candidate>) -> bool {
    let bits = |candidate: &Candidate| (candidate.epsilon, candidate.probability.to_bits());
    let is_alike = |(one, other): (&Candidate, &Candidate)| bits(one) == bits(other) && one.actions == other.actions;
    one.is_clone_of(other) || (one.len() == other.len() && one.iter().zip(other).all(is_alike))
}

fn notice(identification: &Identification, what: &'static str, detail: String) -> Notice {
    let Command { time_ns, flow, .. } = identification.command;
    Notice { time_ns: Some(time_ns), flow: Some(flow), ..Notice::new(Pruner::NAME, what, detail) }
}
