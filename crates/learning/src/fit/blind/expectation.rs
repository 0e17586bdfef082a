//! Expectation and maximisation: which sizes explain the rows best, by the distributions of the sums that rows need.

use std::collections::BTreeMap;

use sizeleak_model::Pmf;

use super::rows::Rows;

/// Sizes rarer than this are given up, relative to the most frequent of their class.
const NEGLIGIBLE: f64 = 1e-5;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameters {
    /// For each class of replies, and last for actions without a reply: sizes in bytes and their probabilities,
    /// ascending. Size 0 stands for a reply that belongs to no action.
    pub(super) sizes: Vec<Vec<(i64, f64)>>,
    /// Values of ε in bytes and their probabilities, ascending.
    pub(super) epsilons: Vec<(i64, f64)>,
    /// For each number of replies: the probabilities of the numbers of actions without a reply.
    pub(super) silent: Vec<Vec<f64>>,
    /// The share of commands that are not explained.
    pub(super) outliers: f64,
    /// Of the actions without a reply, the share whose reply was lost.
    pub(super) lost: f64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// The most sizes that are left when rare ones are given up.
    pub(super) most_sizes: usize,
    /// Commands' worth of evidence that a size must have beyond none: the sparsity prior.
    pub(super) least_evidence: f64,
    /// Lost replies are told from actions that send none.
    pub(super) splits_lost: bool,
    /// ε is estimated, with as many commands' worth of the start distribution.
    pub(super) learns_epsilons: bool,
    /// One over the number of sizes that an unexplained command may have.
    pub(super) outlier_density: f64,
}

/// What the rows say in the light of the parameters before.
pub(super) struct Expected {
    pub(super) log_likelihood: f64,
    /// In commands, for each of the parameters.
    pub(super) sizes: Vec<Vec<f64>>,
    epsilons: Vec<f64>,
    silent: Vec<Vec<f64>>,
    outliers: f64,
}

/// `targets`: for each row, the size that its actions and ε add up to.
pub(super) fn expect(plan: &Plan, targets: &[i64], parameters: &Parameters, density: f64) -> Expected {
    // No greater sum explains a row, whatever its ε.
    let least = parameters.epsilons.first().map_or(0, |(epsilon, _)| *epsilon);
    let most = targets.iter().max().map_or(0, |target| target - least);
    let (sums, varied) = plan.tables(&parameters.sizes, &parameters.epsilons, most);
    let mut expected = Expected {
        log_likelihood: 0.0,
        sizes: parameters.sizes.iter().map(|sizes| vec![0.0; sizes.len()]).collect(),
        epsilons: vec![0.0; parameters.epsilons.len()],
        silent: parameters.silent.iter().map(|silent| vec![0.0; silent.len()]).collect(),
        outliers: 0.0,
    };
    for (row, target) in plan.rows.iter().zip(targets) {
        let weight = |silent: usize| if row.is_known { 1.0 } else { parameters.silent[row.replies][silent] };
        let explained: f64 = row.sums.iter().map(|(silent, sum)| weight(*silent) * varied[*sum].at(*target)).sum();
        let outlier = parameters.outliers * density;
        let total = (1.0 - parameters.outliers) * explained + outlier;
        expected.log_likelihood += row.commands * total.max(1e-300).ln();
        expected.outliers += row.commands * outlier / total.max(1e-300);
        if explained < 1e-14 {
            continue;
        }
        for (silent, sum) in &row.sums {
            let share = row.commands * (1.0 - parameters.outliers) * weight(*silent) / total;
            let whole = share * varied[*sum].at(*target);
            if whole < 1e-7 {
                continue;
            }
            if !row.is_known {
                expected.silent[row.replies][*silent] += whole;
            }
            for (count, (epsilon, probability)) in expected.epsilons.iter_mut().zip(&parameters.epsilons) {
                *count += share * probability * sums[*sum].at(*target - epsilon);
            }
            for (class, times, smaller) in plan.parts(*sum) {
                for (count, (size, probability)) in expected.sizes[class].iter_mut().zip(&parameters.sizes[class]) {
                    *count += times * share * probability * varied[smaller].at(*target - size);
                }
            }
        }
    }
    expected
}

impl Expected {
    pub(super) fn maximise(&self, before: &Parameters, step: Step) -> Parameters {
        let each = before.sizes.iter().zip(&self.sizes);
        let mut sizes: Vec<Vec<(i64, f64)>> =
            each.map(|(old, counts)| new_sizes(old, counts, step.least_evidence)).collect();
        let lost =
            if step.splits_lost { split_lost(before, self, &mut sizes, step.least_evidence) } else { before.lost };
        let commands = self.epsilons.iter().sum::<f64>() + self.outliers;
        let epsilons = if step.learns_epsilons {
            normalised(before.epsilons.iter().zip(&self.epsilons).map(|((epsilon, _), count)| {
                // ε is 0 mostly: without this, |ac| and ε trade off.
                (*epsilon, count + (0.02 * commands + 1.0) * anchor(*epsilon))
            }))
        } else {
            before.epsilons.clone()
        };
        let shares = |counts: &Vec<f64>| {
            let total: f64 = counts.iter().sum::<f64>() + 0.05 * counts.len() as f64;
            counts.iter().map(|count| (count + 0.05) / total).collect()
        };
        Parameters {
            sizes,
            epsilons,
            silent: self.silent.iter().map(shares).collect(),
            outliers: ((self.outliers + 0.5) / (commands + 20.0)).clamp(0.002, 0.5),
            lost,
        }
    }
}

pub(super) fn anchor(epsilon: i64) -> f64 {
    match epsilon {
        0 => 0.85,
        -1 => 0.1,
        -2 => 0.03,
        _ => 0.01,
    }
}

fn new_sizes(old: &[(i64, f64)], counts: &[f64], least: f64) -> Vec<(i64, f64)> {
    let most = counts.iter().copied().fold(0.0, f64::max);
    let left = |size: i64, count: f64| if size == 0 { count } else { count - least };
    let kept = old.iter().zip(counts).map(|((size, _), count)| (*size, left(*size, *count)));
    let sizes = normalised(kept.filter(|(_, count)| *count > NEGLIGIBLE * most && *count > 1e-12));
    if sizes.is_empty() { old.to_vec() } else { sizes }
}

/// Values in ascending order, each once, with their shares of all counts; none if these have no positive sum.
pub(super) fn normalised(values: impl Iterator<Item = (i64, f64)>) -> Vec<(i64, f64)> {
    let mut values: Vec<(i64, f64)> = values.collect();
    values.sort_by_key(|(value, _)| *value);
    values.dedup_by(|next, own| {
        own.1 += if next.0 == own.0 { next.1 } else { 0.0 };
        next.0 == own.0
    });
    let total: f64 = values.iter().map(|(_, count)| count).sum();
    if !(total > 0.0 && total.is_finite()) {
        return Vec::new();
    }
    values.into_iter().map(|(value, count)| (value, count / total)).collect()
}

/// Repeats both steps; the log-likelihood is that of the parameters before the last.
pub(super) fn repeat(
    plan: &Plan,
    targets: &[i64],
    mut parameters: Parameters,
    steps: usize,
    step: Step,
) -> (Parameters, f64) {
    let mut log_likelihood = f64::NEG_INFINITY;
    for _ in 0..steps {
        let expected = expect(plan, targets, &parameters, step.outlier_density);
        let gain = expected.log_likelihood - log_likelihood;
        log_likelihood = expected.log_likelihood;
        parameters = expected.maximise(&parameters, step);
        if gain.abs() < 1e-4 {
            break;
        }
    }
    (parameters, log_likelihood)
}

/// Tells lost replies from actions without one: those come in the proportions of the actions that have replies.
/// Gives the last class of sizes both parts, and returns the share of the lost.
fn split_lost(before: &Parameters, expected: &Expected, sizes: &mut [Vec<(i64, f64)>], least: f64) -> f64 {
    let (Some(old), Some(counts)) = (before.sizes.last(), expected.sizes.last()) else { return before.lost };
    let old_lost = all_replying(&before.sizes, expected);
    let (mut lost, mut own) = (0.0, Vec::new());
    for ((size, probability), count) in old.iter().zip(counts) {
        let of_lost = (before.lost * share_at(&old_lost, *size)).min(*probability);
        let lost_count = if *probability > 0.0 { count * of_lost / probability } else { 0.0 };
        lost += lost_count;
        own.push((*size, (count - lost_count - least).max(0.0)));
    }
    let own_total: f64 = own.iter().map(|(_, count)| count).sum();
    let share = (lost + 0.5) / (lost + own_total + 0.5);
    let replying = all_replying(sizes, expected).into_iter().map(|(size, probability)| (size, share * probability));
    let own = own.into_iter().filter(|(_, count)| *count > 1e-9);
    let own = own.map(|(size, count)| (size, (1.0 - share) * count / own_total));
    let together = normalised(replying.chain(own));
    if let Some(last) = sizes.last_mut().filter(|_| !together.is_empty()) {
        *last = together;
    }
    share
}

/// The sizes of all actions that have replies, in their proportions.
pub(super) fn all_replying(sizes: &[Vec<(i64, f64)>], expected: &Expected) -> Vec<(i64, f64)> {
    let replying = sizes.iter().zip(&expected.sizes).take(sizes.len().saturating_sub(1));
    normalised(replying.flat_map(|(sizes, counts)| {
        let total: f64 = counts.iter().sum();
        sizes.iter().filter(|(size, _)| *size > 0).map(move |(size, probability)| (*size, total * probability))
    }))
}

pub(super) fn share_at(shares: &[(i64, f64)], value: i64) -> f64 {
    shares.binary_search_by_key(&value, |(size, _)| *size).map_or(0.0, |at| shares[at].1)
}

/// For each number of replies: how many actions have none, if each of a command has none with this probability.
pub(super) fn silent_start(plan: &Plan, probability: f64) -> Vec<Vec<f64>> {
    let shares = |replies: usize| {
        let mut weights = vec![1.0];
        for silent in 1..=plan.most_silent {
            weights.push(weights[silent - 1] * (probability * (replies + silent) as f64 / silent as f64));
        }
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    };
    (0..=plan.most_replies).map(shares).collect()
}

/// The most sums that a fit tables, a bound of memory and time.
const MAX_SUMS: usize = 2000;

/// How many actions of each class are added; the last entry is for actions without a reply.
type Key = Vec<u8>;

/// A row's choices: the actions that may be in it.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    /// Actions without a reply, and the sum that they make with the others.
    sums: Vec<(usize, usize)>,
    replies: usize,
    /// The number of actions without a reply is known.
    is_known: bool,
    commands: f64,
    /// The size of the commands in bytes.
    pub(super) size: i64,
}

/// The sums that rows need, each made of a smaller one.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    keys: Vec<Key>,
    /// For each key and class: the key with one action of it less.
    smaller: Vec<Vec<Option<usize>>>,
    pub(super) rows: Vec<Choices>,
    /// Classes of replies and, last, none.
    pub(super) classes: usize,
    most_replies: usize,
    /// The most actions without a reply in a command.
    pub(super) most_silent: usize,
    pub(super) commands: f64,
}

impl Plan {
    /// With up to `most_silent` actions without a reply, and `most_alone` in commands without any reply. `None` if there are
    /// too many different sums.
    pub(super) fn of(rows: &Rows, classes: usize, most_silent: usize, most_alone: usize) -> Option<Self> {
        let mut plan = Self {
            keys: Vec::new(),
            smaller: Vec::new(),
            rows: Vec::new(),
            classes: classes + 1,
            most_replies: 0,
            most_silent: most_silent.max(most_alone),
            commands: 0.0,
        };
        let mut index = BTreeMap::new();
        plan.key(vec![0; classes + 1], &mut index);
        for row in &rows.rows {
            let is_mute = row.replies() == 0;
            plan.most_replies = plan.most_replies.max(row.replies());
            let most = if is_mute { most_alone } else { most_silent };
            let range = match row.silent {
                Some(known) if usize::from(known) <= most => usize::from(known)..=usize::from(known),
                _ => usize::from(is_mute)..=most,
            };
            let sums: Vec<(usize, usize)> = range
                .filter(|silent| !is_mute || *silent > 0)
                .map(|silent| {
                    let mut key = row.replies.clone();
                    key.push(silent as u8);
                    (silent, plan.key(key, &mut index))
                })
                .collect();
            let commands = row.commands as f64;
            plan.commands += commands;
            plan.rows.push(Choices {
                sums,
                replies: row.replies(),
                is_known: row.silent.is_some(),
                commands,
                size: row.size,
            });
            if plan.keys.len() > MAX_SUMS {
                return None;
            }
        }
        Some(plan)
    }

    /// The index of a key, which is after those of all smaller keys.
    fn key(&mut self, key: Key, index: &mut BTreeMap<Key, usize>) -> usize {
        if let Some(found) = index.get(&key) {
            return *found;
        }
        let smaller: Vec<Option<usize>> = (0..key.len())
            .map(|class| {
                let mut less = key.clone();
                let count = less.get_mut(class)?;
                *count = count.checked_sub(1)?;
                Some(self.key(less, index))
            })
            .collect();
        let found = self.keys.len();
        self.keys.push(key.clone());
        self.smaller.push(smaller);
        index.insert(key, found);
        found
    }

    /// How often a class is in a sum, and the sum without one of it.
    pub(super) fn parts(&self, sum: usize) -> impl Iterator<Item = (usize, f64, usize)> {
        let parts = self.keys[sum].iter().zip(&self.smaller[sum]).enumerate();
        parts.filter_map(|(class, (count, smaller))| smaller.map(|smaller| (class, f64::from(*count), smaller)))
    }

    /// The distributions of all sums up to `most` bytes, without and with ε.
    fn tables(&self, sizes: &[Vec<(i64, f64)>], epsilons: &[(i64, f64)], most: i64) -> (Vec<Pmf>, Vec<Pmf>) {
        let distribution = |values: &[(i64, f64)]| Pmf::from_values(values.iter().copied());
        let each: Vec<Pmf> = sizes.iter().map(|sizes| distribution(sizes)).collect();
        let mut sums: Vec<Pmf> = Vec::with_capacity(self.keys.len());
        for smaller in &self.smaller {
            // Of the ways to make a sum, the cheapest: by the class of the fewest sizes.
            let ways = smaller.iter().zip(sizes).zip(&each);
            let ways = ways.filter_map(|((smaller, sizes), one)| Some((sizes.len(), (*smaller)?, one)));
            sums.push(match ways.min_by_key(|(length, ..)| *length) {
                None => Pmf::certain(0),
                Some((_, smaller, one)) => one.convolve_between(&sums[smaller], i64::MIN, most).trimmed(),
            });
        }
        let epsilon = distribution(epsilons);
        let varied = sums.iter().map(|sum| sum.convolve(&epsilon).trimmed()).collect();
        (sums, varied)
    }
}
