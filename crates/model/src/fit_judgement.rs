//! Whether a flow's commands fit the model that they are asked of: a sequential test with a bounded rate of false
//! alarms.
//!
//! Three things are tested, each as long as the flow lasts:
//!
//! - **Sizes.** Every size counts once, when it first occurs: a poll that comes again and again says nothing about the
//!   actions. If the model fits, at most half of the sizes that have not occurred before are odd, that is without an
//!   explanation, or with one that the model holds for nearly impossible. If it does
//!   not fit, most are.
//! - **Replies.** If the model fits, the numbers of replies have the probabilities that it gives them for the command's
//!   size, except for at most half of the commands, whose replies are lost or not theirs. If it does not fit, numbers
//!   occur as often as they did before on the flow.
//! - **Padding.** If the model fits, new sizes are sums of actions; where messages are padded, they are what padding
//!   rounds up to ([`PaddingTest`]): all of them powers of two, or alike modulo some bytes. Sums of actions hit some of
//!   these, too, and then a padded message has an answer that means nothing; but sums hit others as well.
//!
//! The evidence against the fit is the ratio of the probabilities of all that was seen, with the share of odd commands
//! that speaks most for the fit. The expectation of such a ratio is at most 1 at any time where the model fits
//! (Wasserman, Ramdas and Balakrishnan: *Universal inference*, PNAS 117, 2020), so that the probability that it ever
//! reaches 1/α is at most α (Ville's inequality). Each is tested apart; the mean of the ratios counts.
//!
//! Beside that, messages that are not the model's may look like it by coincidence. How probable that is, is told with each
//! command: those of a flow whose habits *and* lengths differ from the learned ones since its first command, and those that
//! have become foreign later.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Model;
use crate::statistics::{broad_number, ln_mean, recurring};

/// The greatest probability that the test ever rejects a flow that fits.
pub const FALSE_ALARMS: f64 = 0.001;

/// The fewest commands by which a flow is judged, unless it is rejected: of fewer, too few sizes are new for the test
/// to reach its level.
const ENOUGH_COMMANDS: u64 = 10;

/// A flow is rejected where messages are more probably not the model's at so many commands together. Where they had changed
/// before the first command and habits are the learned ones, that has a probability of at most 0.43 after the twentieth one
/// (42 simulated homes). Where they change by up to 8 bytes later, it has more for a few commands at most.
const STRANGE: f64 = 0.5;
const ENOUGH_TO_REJECT: u64 = 20;

/// The shares of odd commands that a model which fits may have.
const ODD_SHARES: [f64; 8] = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5];

/// The share of odd ones among new sizes where a model does not fit: most, but a wrong model explains some by chance.
const ODD_OF_MISFIT: f64 = 0.8;

/// A size is odd if the model holds it for less probable than this part of the probability that it has where nothing is
/// known. Habits may differ from those of the labels by as much.
const BARELY: f64 = 0.01;

/// The most sizes, and the most numbers of replies, of a flow that are remembered. Later ones are not tested.
const MAX_VALUES: usize = 256;

/// A message is shorter than 2 to this power, in bytes.
const SIZE_BITS: f64 = 24.0;

/// A command as the test sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedSize<'a> {
    /// Smallest and largest possible size, in bytes.
    pub sizes: [i64; 2],
    /// The probability that a command has this size by the model, 0 if nothing explains it; `None` where some actions have it,
    /// and the model does not say how probable that is.
    pub probability: Option<f64>,
    /// How probable it is that the flow's messages are not the model's at all, but look like it by coincidence.
    pub strange: f64,
    /// How many records the gateway sent in reply, and the probability of that given the size; `None` if the model says
    /// nothing about replies.
    pub replies: Option<(u32, f64)>,
    /// What the model says of padded sizes; `None` if it has such itself.
    pub padding: Option<&'a PaddingTest>,
}

/// The evidence of one flow.
#[derive(Debug, Clone, Default)]
pub struct FitJudgement {
    /// How many commands there were, and how many of them nothing explains.
    pub commands: u64,
    pub unexplained: u64,
    of_sizes: LikelihoodRatio,
    of_replies: LikelihoodRatio,
    padded: PaddedSizes,
    ln_padded: f64,
    sizes: BTreeSet<[i64; 2]>,
    replies: Recurrence,
    odd_replies: Recurrence,
    /// It stays so.
    pub(crate) is_rejected: bool,
    /// [`JudgedSize::strange`] of the last command; the greatest since the flow was rejected.
    strange: f64,
    /// For how many commands together it has been above [`STRANGE`].
    strange_for: u64,
    /// The greatest evidence since the flow was rejected.
    ln_worst: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MisfitCause {
    Sizes,
    Replies,
    Padding,
    /// Messages that look like the model's by coincidence.
    Messages,
}

impl FitJudgement {
    /// Adds a command; returns whether it is the one by which the flow is rejected.
    pub fn add(&mut self, command: JudgedSize<'_>) -> bool {
        self.commands += 1;
        self.strange_for = if command.strange > STRANGE { self.strange_for + 1 } else { 0 };
        self.strange = if self.is_rejected { self.strange.max(command.strange) } else { command.strange };
        self.add_size(command);
        if let Some((replies, probability)) = command.replies {
            self.add_replies(replies, probability);
        }
        let ln_evidence = self.ln_evidence();
        if self.is_rejected {
            self.ln_worst = self.ln_worst.max(ln_evidence);
        } else if ln_evidence >= -FALSE_ALARMS.ln() || self.is_improbable() {
            (self.is_rejected, self.ln_worst) = (true, ln_evidence);
            return true;
        }
        false
    }

    fn add_size(&mut self, JudgedSize { sizes, probability, padding, .. }: JudgedSize<'_>) {
        let is_odd = probability.is_some_and(|probability| probability <= BARELY * broad_size(sizes));
        let is_explained = probability.is_none_or(|probability| probability > 0.0);
        self.unexplained += u64::from(!is_explained);
        if self.sizes.len() < MAX_VALUES && self.sizes.insert(sizes) {
            let probability = |odd: f64| if is_odd { odd } else { 1.0 - odd };
            self.of_sizes.add(probability(ODD_OF_MISFIT), probability);
            // Of ranges, as under a block cipher, nothing tells padding.
            if let Some(test) = padding.filter(|_| sizes[0] == sizes[1]) {
                self.padded.add(sizes[0], test);
                self.ln_padded = self.padded.ln_evidence(test);
            }
        }
    }

    fn add_replies(&mut self, replies: u32, probability: f64) {
        let broad = broad_number(replies.into());
        let seen = self.replies.probability(replies, broad);
        let odd_ones = self.odd_replies.probability(replies, broad);
        self.of_replies.add(seen, |odd| (1.0 - odd) * probability + odd * odd_ones);
        self.replies.add(replies);
        if probability <= broad {
            self.odd_replies.add(replies);
        }
    }

    /// The natural logarithm of the evidence that the model does not fit.
    pub fn ln_evidence(&self) -> f64 {
        let all = [self.of_sizes.ln(), self.of_replies.ln(), self.ln_padded];
        ln_mean(&all)
    }

    /// What the probabilities of candidates are multiplied by: how probable it is that messages are the model's, times a weight
    /// that is exactly 1 as long as the evidence E does not speak against the fit, 1 / (1 + (αE)²) otherwise. That is above 0.9999 for one in ten of the flows that fit and rarely
    /// less; one half where the flow is rejected; and soon next to nothing where commands go on not to fit.
    pub fn weight(&self) -> f64 {
        let ln_evidence = self.ln_evidence().max(if self.is_rejected { self.ln_worst } else { f64::NEG_INFINITY });
        let weight = if ln_evidence <= 0.0 { 1.0 } else { 1.0 / (1.0 + (FALSE_ALARMS * ln_evidence.exp_m1()).powi(2)) };
        weight * (1.0 - self.strange)
    }

    pub fn is_judged(&self) -> bool {
        self.is_rejected || self.commands >= ENOUGH_COMMANDS
    }

    /// Whether it is more probable that the messages are not the model's.
    fn is_improbable(&self) -> bool {
        self.strange_for >= ENOUGH_TO_REJECT
    }

    pub fn cause(&self) -> MisfitCause {
        if self.is_improbable() {
            return MisfitCause::Messages;
        }
        let [sizes, replies] = [&self.of_sizes, &self.of_replies].map(LikelihoodRatio::ln);
        if self.ln_padded > sizes.max(replies) {
            return MisfitCause::Padding;
        }
        if replies > sizes { MisfitCause::Replies } else { MisfitCause::Sizes }
    }
}

/// The ratio of the predictions of a misfit and of a fit, in natural logarithms.
#[derive(Debug, Clone, Default)]
struct LikelihoodRatio {
    ln_misfit: f64,
    /// For each of [`ODD_SHARES`].
    ln_fit: [f64; ODD_SHARES.len()],
}

impl LikelihoodRatio {
    fn add(&mut self, misfit: f64, fit: impl Fn(f64) -> f64) {
        self.ln_misfit += misfit.max(f64::MIN_POSITIVE).ln();
        for (ln_fit, odd) in self.ln_fit.iter_mut().zip(ODD_SHARES) {
            *ln_fit += fit(odd).ln();
        }
    }

    fn ln(&self) -> f64 {
        self.ln_misfit - self.ln_fit.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

/// How often numbers of replies occurred.
#[derive(Debug, Clone, Default)]
struct Recurrence {
    times: BTreeMap<u32, u64>,
    total: u64,
}

impl Recurrence {
    /// The probability that the next value is this one, which has the probability `new` if it recurs by chance alone.
    fn probability(&self, value: u32, new: f64) -> f64 {
        let times = self.times.get(&value).copied().unwrap_or(0) as f64;
        recurring(times, self.total as f64, new)
    }

    fn add(&mut self, value: u32) {
        if self.times.len() < MAX_VALUES || self.times.contains_key(&value) {
            *self.times.entry(value).or_default() += 1;
            self.total += 1;
        }
    }
}

/// The probability of a range of sizes of which nothing is known: every order of magnitude is as likely.
fn broad_size([least, most]: [i64; 2]) -> f64 {
    let bits = |size: i64| (size.max(1) as f64).log2().min(SIZE_BITS);
    let width = bits(most.max(least).saturating_add(1)) - bits(least);
    (width / SIZE_BITS).clamp(f64::MIN_POSITIVE, 1.0)
}

/// What padding rounds up to, in bytes, beside powers of two.
const MULTIPLES: [i64; 4] = [8, 16, 32, 64];

const WAYS: usize = MULTIPLES.len() + 1;

/// The share of new sizes that are padded ones where messages are padded: some are another app's.
const PADDED: f64 = 0.98;

/// A share of new sizes that sums of actions never exceed, if not nearly all actions are of a size that is such a multiple
/// itself.
const OF_SUMS: f64 = 0.5;

/// What a model says of sizes that padding leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct PaddingTest {
    /// The share of them among new sizes that are sums of actions, by the way to pad; powers of two are the last.
    of_sums: [f64; WAYS],
    /// The natural logarithm of how many sets of actions there are: as probable is it before that only those are used
    /// whose sizes are multiples.
    ln_sets: f64,
}

impl PaddingTest {
    /// `None` if labelled commands were padded themselves: what is left of their sizes then, `model` knows.
    pub fn of(model: &Model) -> Option<Self> {
        let sizes: BTreeSet<i64> = model.neighbours.tuples().iter().map(|tuple| tuple.size).collect();
        let test = Self::of_sizes(&sizes, model.actions.len())?;
        model.learned.padding.is_none().then_some(test)
    }

    fn of_sizes(sizes: &BTreeSet<i64>, actions: usize) -> Option<Self> {
        let (first, last) = (*sizes.first()?, *sizes.last()?);
        let share = |times: usize, all: f64| (times as f64 + 1.0) / (all + 2.0);
        let seen = sizes.len() as f64;
        let mut of_sums = [0.0; WAYS];
        for (of_sums, bytes) in of_sums.iter_mut().zip(MULTIPLES) {
            let alike = |rest: i64| sizes.iter().filter(|size| size.rem_euclid(bytes) == rest).count();
            *of_sums = share((0..bytes).map(alike).max()?, seen).max(OF_SUMS);
        }
        let powers = (0..62).filter(|power| (first..=last).contains(&(1_i64 << power))).count();
        let seen_powers = sizes.iter().filter(|size| is_power(**size)).count();
        // Any size between the least and the greatest may be a sum that nobody labelled.
        let by_chance = share(powers, (last - first) as f64 + 1.0);
        *of_sums.last_mut()? = if seen_powers > 2 { share(seen_powers, seen) } else { by_chance };
        Some(Self { of_sums, ln_sets: actions as f64 * 2_f64.ln() })
    }
}

fn is_power(size: i64) -> bool {
    u64::try_from(size).is_ok_and(u64::is_power_of_two)
}

/// The evidence of the sizes of one flow that they are padded.
#[derive(Debug, Clone, Default)]
struct PaddedSizes {
    first: Option<i64>,
    ln_ratios: [f64; WAYS],
}

impl PaddedSizes {
    /// Adds a size that did not occur before.
    fn add(&mut self, size: i64, test: &PaddingTest) {
        let first = *self.first.get_or_insert(size);
        let mut add = |way: usize, is_padded: bool| {
            let of_sums = test.of_sums[way];
            let [padded, sums] = if is_padded { [PADDED, of_sums] } else { [1.0 - PADDED, 1.0 - of_sums] };
            self.ln_ratios[way] += (padded / sums).ln();
        };
        add(MULTIPLES.len(), is_power(size));
        for (way, bytes) in MULTIPLES.into_iter().enumerate() {
            // The first size is what the others are compared with.
            if size != first {
                add(way, (size - first) % bytes == 0);
            }
        }
    }

    /// The natural logarithm of the evidence: the mean over all ways to pad.
    fn ln_evidence(&self, test: &PaddingTest) -> f64 {
        let ln_ratios = self.ln_ratios.iter().enumerate();
        let prior = |way: usize| if way < MULTIPLES.len() { test.ln_sets } else { 0.0 };
        let evidence: f64 = ln_ratios.map(|(way, ln_ratio)| (ln_ratio - prior(way)).exp()).sum();
        (evidence / WAYS as f64).ln()
    }
}
