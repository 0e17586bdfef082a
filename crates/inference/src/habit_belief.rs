//! Which habits a flow's commands come by, if its messages are like one state: the learned ones or its own, and how much
//! commands come again.
//!
//! Commands that no size and no reply ever tells apart are one *class*: those with the same sum of sizes and the same
//! replies. That commands come again is a Dirichlet process over classes, with habits as its base:
//!
//! ```text
//! P(class) = (α · P_h(class) + how often it was seen) / (α + how many were seen)
//! ```
//!
//! Within a class, actions keep the ratio that they have by habits. So routines are followed, and nothing is learned from
//! what cannot be told. Both kinds of habits are believed with each strength α; α = ∞ means that nothing comes again.

use std::ops::Range;
use std::sync::Arc;

use crate::command_class::CommandClass;
use crate::habits::{Habits, LearnedHabits};
use crate::inference::ReplyInference;
use crate::own_habits::{OwnHabits, Pace};
use crate::possible_commands::{PossibleInState, PossibleInStates};
use crate::symmetric::dot;

/// The share of commands that are odd: their size is that of any state, by chance. So one command speaks against a state
/// by a factor of the number of states over this at most, which is less than the odds against a change.
pub(crate) const ODD: f64 = 3e-3;

/// How probable it is that a household's habits change between two commands.
const CHANGE: f64 = 0.02;

#[derive(Debug, Clone, Copy)]
struct Recurrence {
    /// How many commands the base weighs beside those that were seen; without end where nothing comes again.
    strength: f64,
    memory: Memory,
    at_first: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    All,
    /// The last ones: routines that were replaced are soon forgotten.
    Latest,
}

/// How many commands [`Memory::Latest`] has: an hour to a few days of a home.
const LATEST: f64 = 40.0;

/// From a routine that is hardly one to a few commands that come again and again.
const RECURRENCES: [Recurrence; 6] = [
    Recurrence { strength: f64::INFINITY, memory: Memory::All, at_first: 0.9 },
    Recurrence { strength: 100.0, memory: Memory::All, at_first: 0.02 },
    Recurrence { strength: 30.0, memory: Memory::All, at_first: 0.02 },
    Recurrence { strength: 10.0, memory: Memory::All, at_first: 0.02 },
    Recurrence { strength: 3.0, memory: Memory::All, at_first: 0.02 },
    Recurrence { strength: 10.0, memory: Memory::Latest, at_first: 0.02 },
];

pub(crate) type ByRecurrence = [f64; RECURRENCES.len()];

/// How probable each is where commands come again.
pub(crate) const COMING_AGAIN: ByRecurrence = [0.0, 0.2, 0.2, 0.2, 0.2, 0.2];

/// How often something was seen, by the memory.
pub(crate) type Times = [f64; 2];

/// The most classes that are remembered; beyond, those seen least are forgotten. What is less probable in a command is not
/// counted.
const MAX_CLASSES: usize = 1024;
const LEAST_SHARE: f64 = 1e-6;

const PACES: [Pace; 2] = [Pace::SLOW, Pace::FAST];

/// Something for the learned habits, and then for the own ones of each pace.
pub(crate) type ByHabit<T> = [T; 1 + PACES.len()];

/// The probability of habits other than the learned ones at first.
pub(crate) const OTHERS_AT_FIRST: f64 = 0.1;

const HABIT_AT_FIRST: ByHabit<f64> = [1.0 - OTHERS_AT_FIRST, OTHERS_AT_FIRST / 2.0, OTHERS_AT_FIRST / 2.0];

/// Something for the own habits of each pace.
pub(crate) type ByPace<T> = [T; PACES.len()];

#[derive(Debug, Clone)]
pub struct HabitBelief {
    weights: ByHabit<ByRecurrence>,
    own: ByPace<OwnHabits>,
    pub(crate) seen: SeenClasses,
}

#[derive(Debug, Clone)]
pub(crate) struct SeenClasses {
    /// In the order of their sums.
    classes: Vec<SeenClass>,
    all: Times,
    /// What a command counts for now in each memory: the older ones are not changed as they are forgotten.
    unit: Times,
}

/// A class as it was seen. Beliefs are copied whenever another state begins to be followed, so that copies are cheap.
#[derive(Debug, Clone)]
struct SeenClass {
    sum: i64,
    class_counts: Arc<[u32]>,
    times: Times,
}

/// How probable a command is in a state.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    likelihoods: ByHabit<ByRecurrence>,
    /// P(command) by each kind of habits, if it did not come again.
    base: ByHabit<f64>,
    /// Over all.
    pub(crate) likelihood: f64,
    /// By anything but the learned habits alone.
    pub(crate) of_others: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RecurringClass {
    /// The sum of the sizes of its actions in bytes.
    pub bytes: i64,
    /// How many replies of each class it has.
    pub class_counts: Vec<u32>,
    /// How many commands are such ones because they came again, for each command that did not.
    pub share: f64,
}

impl HabitBelief {
    pub(crate) fn new(learned: &LearnedHabits, inference: &ReplyInference) -> Self {
        let own = PACES.map(|pace| OwnHabits::new(pace, learned, inference));
        Self { weights: weights_at_first(), own, seen: SeenClasses::default() }
    }

    /// Habits may change before each command.
    pub(crate) fn predict(&mut self) {
        for (weight, first) in self.weights.iter_mut().flatten().zip(weights_at_first().iter().flatten()) {
            *weight = (1.0 - CHANGE) * *weight + CHANGE * first;
        }
    }

    /// By how much the belief in anything but the learned habits alone becomes less before each command.
    pub(crate) fn others_remain() -> f64 {
        1.0 - CHANGE * weights_at_first()[0][0]
    }

    /// The probability of the learned habits, whether or not commands come again.
    pub(crate) fn as_learned(&self) -> f64 {
        self.weights[0].iter().sum()
    }

    /// The probability that commands come by the learned habits, and none for having come before.
    pub fn only_learned(&self) -> f64 {
        self.weights[0][0]
    }

    /// Habits that stand for the own ones, each with the share of commands that come by it among those that did not come
    /// before.
    pub fn own_habits(&self) -> impl Iterator<Item = (f64, &Habits)> {
        let fresh = self.weights.map(|weights| self.seen.fresh(&weights));
        let all: f64 = fresh.iter().sum();
        self.own.iter().zip(fresh.into_iter().skip(1)).flat_map(move |(own, fresh)| {
            let weight = fresh / all / own.at_step.listed.len() as f64;
            own.at_step.listed.iter().map(move |habits| (weight, habits))
        })
    }

    pub fn recurring(&self, sums: impl IntoIterator<Item = i64>) -> Vec<RecurringClass> {
        let fresh: f64 = self.weights.iter().map(|weights| self.seen.fresh(weights)).sum();
        let again = self.again();
        let class = |SeenClass { sum, class_counts, times }: &SeenClass| RecurringClass {
            bytes: *sum,
            class_counts: class_counts.to_vec(),
            share: dot(times, &again) / fresh,
        };
        sums.into_iter().flat_map(|sum| &self.seen.classes[self.seen.with_sum(sum)]).map(class).collect()
    }

    /// The probability of a command that comes again, for each time that it was seen.
    fn again(&self) -> Times {
        let of_habits = self.weights.map(|weights| self.seen.again(&weights));
        of_habits.into_iter().fold(Times::default(), |[all, latest], own| [all + own[0], latest + own[1]])
    }

    /// P(class) by the own habits, without those that came again.
    pub(crate) fn own_weights(&self, class: &CommandClass) -> ByPace<f64> {
        self.own.each_ref().map(|own| own.at_step.weight(class))
    }

    /// Forgets what can be computed again, which takes most of a belief's memory.
    pub fn forget_known(&self) {
        self.own.iter().for_each(|own| own.at_step.forget());
    }

    /// How probable a command is whose classes have these weights by the learned and by the own habits, and by how often
    /// they were seen.
    pub(crate) fn judge(&self, base: ByHabit<f64>, again: Times) -> Judgement {
        let likelihoods = base.map(|base| self.seen.likelihoods(base, again));
        let sum = |weights: &ByHabit<ByRecurrence>| -> f64 {
            weights.iter().flatten().zip(likelihoods.iter().flatten()).map(|(weight, own)| weight * own).sum()
        };
        let mut others = self.weights;
        others[0][0] = 0.0;
        let of_others = sum(&others) / others.iter().flatten().sum::<f64>().max(f64::MIN_POSITIVE);
        Judgement { likelihoods, base, likelihood: sum(&self.weights), of_others }
    }

    /// Learns from what a command may be in the state.
    pub(crate) fn learn(
        &mut self,
        judgement: &Judgement,
        odd: f64,
        possible: &PossibleInStates,
        in_state: &PossibleInState,
        learned: &LearnedHabits,
        inference: &ReplyInference,
    ) {
        let all = judgement.likelihood;
        let is_true = (1.0 - ODD) * all / ((1.0 - ODD) * all + odd);
        if !(is_true > 0.0 && all > 0.0) {
            return;
        }
        let found = self.classes(possible, in_state, inference.not_recurring);
        let before = self.weights;
        for (weights, likelihoods) in self.weights.iter_mut().zip(&judgement.likelihoods) {
            for (weight, likelihood) in weights.iter_mut().zip(likelihoods) {
                *weight *= (1.0 - ODD) * likelihood + odd;
            }
        }
        let sum: f64 = self.weights.iter().flatten().sum();
        self.weights = self.weights.map(|weights| weights.map(|weight| weight / sum));
        let listed: Vec<(&CommandClass, f64)> = found.iter().map(|(class, weight, _)| (*class, *weight)).collect();
        let fresh = before.map(|weights| self.seen.fresh(&weights));
        for (at, own) in self.own.iter_mut().enumerate() {
            let habit = at + 1;
            let likelihoods = before[habit].iter().zip(&judgement.likelihoods[habit]);
            let whole: f64 = likelihoods.map(|(weight, likelihood)| weight * likelihood).sum();
            let share = is_true * fresh[habit] * judgement.base[habit] / whole.max(f64::MIN_POSITIVE);
            own.learn(&listed, share, learned, inference);
        }
        let whole: f64 = found.iter().map(|(_, _, joint)| joint).sum();
        self.seen.age();
        for (class, _, joint) in &found {
            self.seen.add(class.sum, &class.class_counts, is_true * joint / whole.max(f64::MIN_POSITIVE));
        }
    }

    /// The classes that a command may be of in a state, each with P(size, replies | class), and that times P(class), whatever
    /// the habits.
    fn classes<'a>(
        &self,
        possible: &'a PossibleInStates,
        in_state: &PossibleInState,
        not_recurring: f64,
    ) -> Vec<(&'a CommandClass, f64, f64)> {
        let (fresh, again) = (self.weights.map(|weights| self.seen.fresh(&weights)), self.again());
        let found = |(at, weight): &(usize, f64)| {
            let class = &*possible.classes[*at].class;
            let times = self.seen.times(class.sum, &class.class_counts);
            let again = dot(&times, &again);
            let by_own: f64 = self.own_weights(class).iter().zip(&fresh[1..]).map(|(own, fresh)| fresh * own).sum();
            let learned = not_recurring * class.prior + class.recurring;
            (class, *weight, weight * (fresh[0] * learned + by_own + again))
        };
        in_state.classes.iter().map(found).collect()
    }
}

fn weights_at_first() -> ByHabit<ByRecurrence> {
    HABIT_AT_FIRST.map(|habit| RECURRENCES.map(|one| habit * one.at_first))
}

impl Default for SeenClasses {
    fn default() -> Self {
        Self { classes: Vec::new(), all: Times::default(), unit: [1.0; 2] }
    }
}

impl SeenClasses {
    /// By each recurrence, how probable a command is that has this probability if it does not come again, and whose classes
    /// were seen this often.
    pub(crate) fn likelihoods(&self, base: f64, again: Times) -> ByRecurrence {
        RECURRENCES.map(|one| self.share_of_new(one) * base + self.share_of_each(one) * again[one.memory as usize])
    }

    /// Of some weights, what is for commands that did not come again.
    pub(crate) fn fresh(&self, weights: &ByRecurrence) -> f64 {
        weights.iter().zip(RECURRENCES).map(|(weight, one)| weight * self.share_of_new(one)).sum()
    }

    /// Of some weights, what is for a command that comes again, for each time that it was seen.
    pub(crate) fn again(&self, weights: &ByRecurrence) -> Times {
        let mut again = Times::default();
        for (weight, one) in weights.iter().zip(RECURRENCES) {
            again[one.memory as usize] += weight * self.share_of_each(one);
        }
        again
    }

    fn share_of_new(&self, Recurrence { strength, memory, .. }: Recurrence) -> f64 {
        let strength = strength * self.unit[memory as usize];
        if strength.is_finite() { strength / (strength + self.all[memory as usize]) } else { 1.0 }
    }

    /// The probability of a command for each time that it was seen, in the memory's units.
    fn share_of_each(&self, Recurrence { strength, memory, .. }: Recurrence) -> f64 {
        1.0 / (strength * self.unit[memory as usize] + self.all[memory as usize])
    }

    fn with_sum(&self, sum: i64) -> Range<usize> {
        let begin = self.classes.partition_point(|class| class.sum < sum);
        begin..begin + self.classes[begin..].iter().take_while(|class| class.sum == sum).count()
    }

    pub(crate) fn times(&self, sum: i64, class_counts: &[u32]) -> Times {
        let mut of_sum = self.classes[self.with_sum(sum)].iter();
        of_sum.find(|seen| *seen.class_counts == *class_counts).map(|seen| seen.times).unwrap_or_default()
    }

    /// Forgets a little, before the next command.
    pub(crate) fn age(&mut self) {
        let latest = Memory::Latest as usize;
        self.unit[latest] /= 1.0 - 1.0 / LATEST;
        // Long before numbers end.
        if self.unit[latest] > 1e100 {
            let unit = std::mem::replace(&mut self.unit[latest], 1.0);
            let of_classes = self.classes.iter_mut().map(|seen| &mut seen.times);
            of_classes.chain([&mut self.all]).for_each(|times| times[latest] /= unit);
        }
    }

    pub(crate) fn add(&mut self, sum: i64, class_counts: &Arc<[u32]>, share: f64) {
        let added = self.unit.map(|unit| unit * share);
        let count = |times: &mut Times| times.iter_mut().zip(added).for_each(|(own, added)| *own += added);
        count(&mut self.all);
        if share < LEAST_SHARE {
            return;
        }
        let of_sum = self.with_sum(sum);
        let end = of_sum.end;
        if let Some(seen) = self.classes[of_sum].iter_mut().find(|seen| seen.class_counts == *class_counts) {
            count(&mut seen.times);
        } else {
            let class_counts = Arc::clone(class_counts);
            self.classes.insert(end, SeenClass { sum, class_counts, times: added });
        }
        if self.classes.len() > MAX_CLASSES {
            self.forget();
        }
    }

    /// Forgets the half that was seen least.
    fn forget(&mut self) {
        let all = |seen: &SeenClass| seen.times[Memory::All as usize];
        let mut order: Vec<usize> = (0..self.classes.len()).collect();
        order.sort_by(|a, b| all(&self.classes[*a]).total_cmp(&all(&self.classes[*b])));
        let mut is_kept = vec![true; order.len()];
        order[..order.len() / 2].iter().for_each(|at| is_kept[*at] = false);
        let mut is_kept = is_kept.into_iter();
        self.classes.retain(|_| is_kept.next().unwrap_or(true));
        let kept = self.classes.iter().map(|seen| seen.times);
        self.all = kept.fold(Times::default(), |[all, latest], times| [all + times[0], latest + times[1]]);
    }
}
