//! The stage: commands with values of ε in, commands with candidates out.

use std::cell::OnceCell;
use std::sync::Arc;

use sizeleak_flow_models::{SectionStage, Subject};
use sizeleak_frame::{
    Actions, Command, Correction, Frame, HabitFactors, Identification, Notice, RecurringClass, SharedList, Shift,
    WeightedEpsilon, what,
};
use sizeleak_inference::search::{
    HeaviestWays, RangeCount, SearchError, SumTooLarge, WalkPrior, WayCounts, WayWeights,
};
use sizeleak_inference::space::{Home, PriorName};
use sizeleak_model::{Action, Kinds, Model, Prior};
use sizeleak_platform::runtime::{Emit, Stage, StageError, TwoGenerationCache};

use crate::decomposition::{
    CandidateList, Decomposition, FoundCandidates, MAX_CANDIDATES, TargetSum, Unexplained, by_habits, learned_share,
    mixture, target_sums, with_recurring_classes,
};
use crate::kind_candidates::KindCandidates;
use crate::recurring_candidates::RecurringCandidates;
use crate::reply_candidates::{CommandReplies, ReplyCandidates};

const MAX_CACHE_BYTES: usize = 16 << 20;

/// What a cached decomposition takes besides its candidates and values of ε, in bytes.
const ENTRY_BYTES: usize = 256;

/// Of so many sizes it is remembered whether their lists are cut.
const MAX_KNOWN_CUTS: usize = 4096;

/// The most models with a longer action that are kept: a few are probable at a time.
const MAX_LONGER: usize = 8;

/// Lists the multisets of actions that explain each command.
#[derive(Debug)]
pub struct Decomposer {
    model: Model,
    names: SharedList<Arc<str>>,
    /// `None` if the model has no sizes of actions.
    counts: Option<WayCounts>,
    /// `None` if every action has a single size.
    ranges: Option<RangeCount>,
    /// `None` if the model has no kinds.
    kinds: Option<KindCandidates>,
    /// The prior's weights, by tables of increasing range; the first with room for a command's sums is used. None without
    /// a prior.
    by_prior: Vec<WayWeights>,
    /// Where the prior has no weights, once they are needed; none without room for a table.
    flat: OnceCell<Option<WayWeights>>,
    /// `None` if the prior has no commands that recur.
    recurring: Option<RecurringCandidates>,
    /// The model and the prior that were given, and the decomposers of models in which one action has another size: by the
    /// action and by how many bytes it is longer. `None` where such a model cannot be solved for.
    given: (Model, PriorName),
    longer_actions: TwoGenerationCache<(Box<str>, i64), Option<Box<Self>>>,
    /// For sizes with more candidates than are listed.
    with_replies: ReplyCandidates,
    limit: usize,
    /// The latest decomposition for each size or range of sizes, with the values of ε it holds for: a home's commands
    /// have the same few sizes.
    cache: TwoGenerationCache<DecompositionKey, (SharedList<WeightedEpsilon>, Decomposition)>,
    /// Whether a size or range of sizes has more candidates than are listed, for these values of ε.
    cuts: TwoGenerationCache<CommandSizes, (SharedList<WeightedEpsilon>, bool)>,
    counters: DecomposerCounters,
}

#[derive(Debug, Default)]
struct DecomposerCounters {
    unexplained: u64,
    too_large: u64,
    cut_lists: u64,
    unused_epsilons: u64,
}

/// The sizes that a command may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CommandSizes {
    /// The least and the greatest, as they were seen.
    seen: [i64; 2],
    /// The least and the greatest before the command was padded; the same where it is not.
    before_padding: [i64; 2],
}

/// What a decomposition depends on, besides the model and the values of ε.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct DecompositionKey {
    sizes: CommandSizes,
    /// The replies, where they choose the candidates to list.
    replies: Option<CommandReplies>,
    /// Whether commands that recur are left out, where there are some.
    by_habit: bool,
}

/// Whether values of ε are the same to the last bit.
fn are_same(one: &SharedList<WeightedEpsilon>, other: &SharedList<WeightedEpsilon>) -> bool {
    let bits = |value: &WeightedEpsilon| (value.epsilon, value.weight.to_bits());
    one.is_clone_of(other) || one.iter().map(bits).eq(other.iter().map(bits))
}

impl Decomposer {
    /// A decomposer that lists at most `limit` candidates of a command.
    pub fn new(model: Model, limit: usize) -> Result<Self, SearchError> {
        Self::with_prior(model, limit, PriorName::Recurring)
    }

    /// The same, where actions are as probable as a prior says; all are as likely where the model has learned none.
    pub fn with_prior(mut model: Model, limit: usize, prior: PriorName) -> Result<Self, SearchError> {
        let given = (model.clone(), prior);
        let learned = model.prior.take();
        model.prior = match prior {
            PriorName::Learned => learned.clone().map(|learned| Prior { recurring: Vec::new(), ..learned }),
            PriorName::Recurring => learned.clone(),
            PriorName::Devices | PriorName::Flat => None,
        };
        let by_devices = learned.as_ref().filter(|_| prior == PriorName::Devices);
        if by_devices.is_some() && model.inventory.is_none() {
            return Err(SearchError::NoDevices);
        }
        let of_devices = by_devices.map(|numbers| Home { prior: Some(numbers), ..Home::from(&model) });
        let walk_prior = of_devices.map(WalkPrior::Devices).or(model.prior.as_ref().map(WalkPrior::Habit));
        let limits = model.limits()?;
        let has_sums = !model.actions.is_empty();
        let counts = has_sums.then(|| WayCounts::new(&model.actions, &limits)).transpose()?;
        let varies = model.actions.iter().any(Action::varies);
        let ranges = varies.then(|| RangeCount::new(&model.actions, &limits)).transpose()?;
        let tables = walk_prior.filter(|_| has_sums).map(|prior| WayWeights::tables(&model.actions, &limits, prior));
        let by_prior = tables.unwrap_or_default();
        if by_devices.is_some() && has_sums && by_prior.is_empty() {
            return Err(SearchError::TooManyDevices);
        }
        let names: SharedList<Arc<str>> = model.action_names().into_iter().map(Arc::from).collect();
        let kinds = KindCandidates::new(&model, &names);
        let prior = model.prior.as_ref();
        let recurring = prior.and_then(|prior| RecurringCandidates::new(prior, &model.actions, &limits, &names, limit));
        Ok(Self {
            model,
            names,
            counts,
            ranges,
            kinds,
            by_prior,
            flat: OnceCell::new(),
            recurring,
            given,
            longer_actions: TwoGenerationCache::new(MAX_LONGER),
            with_replies: ReplyCandidates::default(),
            limit,
            cache: TwoGenerationCache::new(MAX_CACHE_BYTES),
            cuts: TwoGenerationCache::new(MAX_KNOWN_CUTS),
            counters: DecomposerCounters::default(),
        })
    }

    /// The decomposition of a command's size or range of sizes, by the habits that are given beside the learned ones.
    fn decompose(
        &mut self,
        command: &Command,
        sizes: CommandSizes,
        epsilons: &SharedList<WeightedEpsilon>,
        shifts: &[Shift],
        habits: &[HabitFactors],
        recurring: &[RecurringClass],
    ) -> Decomposition {
        let longer = shifts.first().map_or(0, |shift| shift.reply_bytes);
        let replies = CommandReplies::new(&self.model, command, longer).filter(|_| self.is_cut(sizes, epsilons));
        let by_habit = !habits.is_empty() && self.recurring.is_some();
        let key = DecompositionKey { sizes, replies, by_habit };
        let mut found = self.remembered(&key, epsilons);
        if let Ok(candidates) = &mut found.candidates
            && !habits.is_empty()
            && candidates.probability.is_some()
        {
            *candidates = by_habits(candidates, habits, self.not_recurring());
            if by_habit {
                let (sums, _) = self.target_sums(sizes, epsilons).unwrap_or_default();
                let sums = (&sums[..], heaviest(epsilons));
                let parts = [learned_share(habits), 1.0];
                *candidates = self.with_recurring(candidates.clone(), parts, sums, key.replies.as_ref());
            }
            found.size_probability = candidates.probability;
            let (sum_of, replies_of) = (|own: &Actions| self.sum_of(own), |own: &Actions| self.replies_of(own));
            *candidates = with_recurring_classes(candidates, recurring, heaviest(epsilons), sum_of, replies_of);
        }
        found
    }

    /// What models in which one action is longer make of a command, each with its shift's share of all; `None` where such a
    /// model has no answer.
    fn with_longer_actions(
        &mut self,
        shifts: &[Shift],
        answer: impl Fn(&mut Self) -> Decomposition,
    ) -> Vec<(f64, Option<Decomposition>)> {
        let all: f64 = shifts.iter().map(|shift| shift.probability).sum();
        let (limit, (model, prior)) = (self.limit, &self.given);
        let mut found = Vec::new();
        for Shift { bytes, action, probability, .. } in shifts {
            let Some(action) = action else { continue };
            let decomposer = self.longer_actions.get_or_default((action.clone(), *bytes));
            if decomposer.is_none() {
                let longer = model.clone().with_longer_action(action, *bytes);
                *decomposer = longer.and_then(|longer| Self::with_prior(longer, limit, *prior).ok()).map(Box::new);
            }
            found.push((probability / all, decomposer.as_deref_mut().map(&answer)));
        }
        found
    }

    /// The sum of the sizes of a candidate's actions in bytes.
    fn sum_of(&self, actions: &Actions) -> i64 {
        let of_action = |(action, count): &(u32, u32)| {
            self.model.actions.get(*action as usize).map_or(0, |own| own.size.saturating_mul(i64::from(*count)))
        };
        actions.indexed_counts().iter().map(of_action).fold(0, i64::saturating_add)
    }

    /// How many replies of each class a candidate should have; none where they say nothing one by one.
    fn replies_of(&self, actions: &Actions) -> Vec<u32> {
        let counts = actions.indexed_counts().iter().map(|(action, count)| (*action as usize, *count));
        self.model.single_replies.as_ref().map(|replies| replies.class_counts(counts)).unwrap_or_default()
    }

    /// The decomposition by the learned habits: from the cache if the values of ε are the same to the last bit.
    fn remembered(&mut self, key: &DecompositionKey, epsilons: &SharedList<WeightedEpsilon>) -> Decomposition {
        let sizes = key.sizes;
        if let Some((cached, decomposition)) = self.cache.recall(key)
            && are_same(cached, epsilons)
        {
            return decomposition.clone();
        }
        let [least, most] = sizes.before_padding;
        let (candidates, unused_epsilons) = match self.target_sums(sizes, epsilons) {
            Some((sums, unused_epsilons)) => (self.candidates(key, sums, heaviest(epsilons)), unused_epsilons),
            None => (Err(Unexplained::InvalidRange(least, most)), 0),
        };
        let size_probability = match &candidates {
            Ok(found) => found.probability,
            Err(Unexplained::NoSolution(_) | Unexplained::NoSolutionInRange(..)) => Some(0.0),
            Err(Unexplained::NoKind(_)) => self.model.kinds.as_ref().and_then(Kinds::probability_of_none),
            Err(_) => None,
        };
        let decomposition = Decomposition { candidates, unused_epsilons, size_probability };
        let list_bytes = decomposition.candidates.as_ref().map_or(0, |found| found.listed.memory_bytes());
        let of_replies = key.replies.as_ref().map_or(0, |replies| size_of_val(&*replies.sizes));
        let bytes = ENTRY_BYTES + size_of_val(&**epsilons) + of_replies + list_bytes;
        self.cache.remember(key.clone(), (epsilons.clone(), decomposition.clone()), bytes);
        decomposition
    }

    fn target_sums(
        &self,
        CommandSizes { seen, before_padding }: CommandSizes,
        epsilons: &[WeightedEpsilon],
    ) -> Option<(Vec<TargetSum>, u64)> {
        let Model { overhead, learned, .. } = &self.model;
        let padding = learned.padding.as_ref();
        target_sums(before_padding, *overhead, epsilons, |size| {
            padding.map_or(1.0, |padding| padding.probability(size, seen))
        })
    }

    /// Whether a size has more candidates than can be listed, all of them sums of single sizes by habit.
    fn is_cut(&mut self, sizes: CommandSizes, epsilons: &SharedList<WeightedEpsilon>) -> bool {
        if self.ranges.is_some() {
            return false;
        }
        if let Some((known, is_cut)) = self.cuts.recall(&sizes)
            && are_same(known, epsilons)
        {
            return *is_cut;
        }
        let sums = self.target_sums(sizes, epsilons);
        let (_, count) = sums.and_then(|(sums, _)| self.explained(sums).ok()).unwrap_or_default();
        let is_cut = count > self.limit as u64;
        self.cuts.remember(sizes, (epsilons.clone(), is_cut), 1);
        is_cut
    }

    /// The kinds and the sums that explain a command; the weights of sums are multiples of `heaviest`.
    fn candidates(
        &mut self,
        key: &DecompositionKey,
        sums: Vec<TargetSum>,
        heaviest: f64,
    ) -> Result<FoundCandidates, Unexplained> {
        let sizes = key.sizes.before_padding;
        let additive = if self.counts.is_some() {
            self.sums_of_actions(key, sums, heaviest)
        } else {
            Err(Unexplained::NoKind(sizes[1]))
        };
        let Some((own, kinds)) = self.kinds.as_ref().zip(self.model.kinds.as_ref()) else { return additive };
        // A sum too large to look at leaves the kinds.
        let found = own.join(kinds, sizes[1], &additive.unwrap_or_default(), self.limit);
        found.ok_or(Unexplained::NoKind(sizes[1]))
    }

    /// The multisets of actions that explain a command, for sums whose weights are multiples of `heaviest`.
    fn sums_of_actions(
        &mut self,
        key: &DecompositionKey,
        sums: Vec<TargetSum>,
        heaviest: f64,
    ) -> Result<FoundCandidates, Unexplained> {
        let [least, most] = &key.sizes.before_padding;
        let (replies, parts) = (key.replies.as_ref(), [if key.by_habit { 0.0 } else { 1.0 }, self.not_recurring()]);
        let is_range = least != most;
        let no_solution = || {
            if is_range { Unexplained::NoSolutionInRange(*least, *most) } else { Unexplained::NoSolution(*least) }
        };
        if let Some(ranges) = &mut self.ranges {
            let bytes = || sums.iter().map(|sum| sum.bytes);
            let range = bytes().min().zip(bytes().max());
            let count = range.map_or(Ok(0), |(least, most)| ranges.count([least, most]))?;
            let found =
                if count > 0 { self.most_probable(&sums, count, heaviest)? } else { FoundCandidates::default() };
            if found.listed.is_empty() {
                return Err(no_solution());
            }
            return Ok(self.with_recurring(found, parts, (&sums, heaviest), replies));
        }
        let (sums, count) = self.explained(sums)?;
        if sums.is_empty() {
            return Err(no_solution());
        }
        let (model, names, limit) = (&self.model, &self.names, self.limit);
        let by_replies =
            replies.and_then(|replies| self.with_replies.most_probable(model, names, replies, &sums, heaviest, limit));
        let found = match by_replies {
            Some(found) => FoundCandidates { count, ..found },
            None => self.most_probable(&sums, count, heaviest)?,
        };
        Ok(self.with_recurring(found, parts, (&sums, heaviest), replies))
    }

    fn not_recurring(&self) -> f64 {
        self.recurring.as_ref().map_or(1.0, RecurringCandidates::not_recurring)
    }

    /// The candidates by habit, with those that recur: how probable the learned habits are, and what part of theirs the
    /// candidates by habit have.
    fn with_recurring(
        &mut self,
        found: FoundCandidates,
        [learned, others]: [f64; 2],
        sums: (&[TargetSum], f64),
        replies: Option<&CommandReplies>,
    ) -> FoundCandidates {
        let Some(recurring) = self.recurring.as_ref().filter(|_| learned > 0.0) else { return found };
        let seen = replies.and_then(|replies| self.with_replies.read(&self.model, replies));
        recurring.join(&found, [learned, others], sums, |actions| {
            seen.as_ref().map_or(1.0, |seen| seen.ln_likelihood(&self.replies_of(actions)).exp())
        })
    }

    /// The sums that some multisets of actions have, heaviest first; and how many multisets, `u64::MAX` for that many or more.
    fn explained(&mut self, mut sums: Vec<TargetSum>) -> Result<(Vec<TargetSum>, u64), SumTooLarge> {
        let Some(counts) = &mut self.counts else { return Ok((Vec::new(), 0)) };
        let of_sums: Vec<u64> = sums.iter().map(|sum| counts.count(sum.bytes)).collect::<Result<_, _>>()?;
        let mut own = of_sums.iter();
        sums.retain(|_| own.next().is_some_and(|count| *count > 0));
        Ok((sums, of_sums.into_iter().fold(0, u64::saturating_add)))
    }

    /// The candidates by the prior, most probable first, of so many there are; the weights of sums are multiples of
    /// `heaviest`. Without weights of a prior every multiset of actions is as likely before the size is seen, and how probable
    /// the size is is not known.
    fn most_probable(&mut self, sums: &[TargetSum], count: u64, heaviest: f64) -> Result<FoundCandidates, SumTooLarge> {
        let most = sums.iter().map(|sum| sum.bytes).max().unwrap_or(0);
        let largest = self.ranges.as_ref().map_or(usize::MAX, RangeCount::largest_sum);
        let largest = largest.min(usize::try_from(most).unwrap_or(usize::MAX));
        let weighted: Vec<(i64, f64)> = sums.iter().map(|sum| (sum.bytes, sum.weight)).collect();
        let limit = self.limit.min(MAX_CANDIDATES);
        let mut find =
            |table: &mut WayWeights| table.prepare(largest).then(|| HeaviestWays::find(table, &weighted, count, limit));
        let by_prior = self.by_prior.iter_mut().find_map(&mut find).filter(|ways| ways.ln_total().is_finite());
        let probability = by_prior.as_ref().map(|ways| (ways.ln_total() + heaviest.ln()).exp().min(1.0));
        let flat = || self.model.limits().ok().and_then(|limits| WayWeights::flat(&self.model.actions, &limits));
        let by_any = by_prior.or_else(|| {
            self.flat.get_or_init(flat);
            self.flat.get_mut()?.as_mut().and_then(find)
        });
        let Some(ways) = by_any else {
            let flat = self.flat.get().into_iter().flatten();
            let reach = self.by_prior.iter().chain(flat).map(WayWeights::reach).max().unwrap_or(0);
            return Err(SumTooLarge { sum: most, reach });
        };
        let mut list = CandidateList::new(&self.names, self.limit);
        for way in ways.iter() {
            if !list.has_room() {
                break;
            }
            let TargetSum { epsilon, weight, .. } = sums[way.sum];
            // Where sizes vary, the weight of a sum is only a part of it.
            let likelihood = self.ranges.is_none().then_some(weight);
            list.push(way.actions.iter().copied(), epsilon, way.probability, likelihood);
        }
        Ok(FoundCandidates { listed: list.into_candidates(), count, probability, ..FoundCandidates::default() })
    }
}

impl Stage for Decomposer {
    const NAME: &'static str = "decomposer";
    type Input = Correction;

    fn process(
        &mut self,
        Correction { command, epsilons, shifts, habits, recurring }: Correction,
        out: &mut dyn Emit,
    ) -> Result<(), StageError> {
        let Ok(seen) = self.model.padded_sizes(command.size, command.records, command.plaintext) else {
            // The corrector has said why.
            return Ok(out.emit(unanswered(command))?);
        };
        if epsilons.is_empty() {
            return Ok(out.emit(unanswered(command))?);
        }
        let before_padding = self.model.sizes(command.size, command.records, command.plaintext).unwrap_or(seen);
        let sizes = CommandSizes { seen, before_padding };
        let mut found = self.decompose(&command, sizes, &epsilons, &shifts, &habits, &recurring);
        let longer = self
            .with_longer_actions(&shifts, |other| other.decompose(&command, sizes, &epsilons, &shifts, &habits, &[]));
        if !longer.is_empty() {
            found = mixture(found, longer, self.limit);
        }
        let Decomposition { candidates, unused_epsilons, size_probability } = found;
        self.counters.unused_epsilons += unused_epsilons;
        if let Err(reason) = &candidates {
            self.counters.unexplained += 1;
            self.counters.too_large += u64::from(matches!(reason, Unexplained::TooLarge(_)));
            let notice = Notice {
                time_ns: Some(command.time_ns),
                flow: Some(command.flow),
                bytes: Some(command.size),
                ..Notice::new(Self::NAME, what::UNEXPLAINED, reason.to_string())
            };
            out.emit(notice.into())?;
        }
        let FoundCandidates { listed: candidates, count: candidate_count, reply_probability, .. } =
            candidates.unwrap_or_default();
        let listed = candidates.len() as u64;
        self.counters.cut_lists += u64::from(listed < candidate_count);
        let identification = Identification {
            candidates,
            candidate_count,
            listed,
            size_probability,
            reply_probability,
            shifts,
            ..Identification::unanswered(command)
        };
        Ok(out.emit(identification.into())?)
    }

    fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("unexplained", self.counters.unexplained),
            ("too_large", self.counters.too_large),
            ("cut_lists", self.counters.cut_lists),
            ("unused_epsilons", self.counters.unused_epsilons),
        ]
    }
}

fn unanswered(command: Command) -> Frame {
    Identification::unanswered(command).into()
}

impl SectionStage for Decomposer {
    fn subject(Correction { command, .. }: &Correction) -> Subject {
        command.into()
    }

    fn without_model(Correction { command, .. }: Correction) -> Frame {
        unanswered(command)
    }
}

fn heaviest(epsilons: &[WeightedEpsilon]) -> f64 {
    epsilons.iter().map(|value| value.weight).filter(|weight| weight.is_finite()).fold(0.0, f64::max)
}
