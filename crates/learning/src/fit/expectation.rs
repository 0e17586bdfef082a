//! Expectation maximisation: which distributions of the sizes of actions and of ε make commands most likely.
//!
//! What the actions of a command and ε add up to is a sum of independent numbers, whose distribution is the convolution
//! of theirs. Where a label gives the actions, one sum has to explain the command; where none does, one of several, each
//! with a probability beforehand. A small share of commands has any size (wrong labels, other messages). How often size
//! x of an action is expected among all commands is f(x) · ∂ ln L / ∂ f(x). One pass back through the sums yields these
//! derivatives for all distributions at once, in the time of the pass that computes the likelihood.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use sizeleak_model::{LabelledCommand, Pmf};

/// Sizes rarer than this are given up, relative to the most frequent of their action.
const NEGLIGIBLE: f64 = 1e-5;

/// With a smaller gain in log-likelihood, the distributions hardly change any more.
const MIN_GAIN: f64 = 0.01;

/// Sums less probable than this explain nothing beside the commands of any size.
const IMPOSSIBLE: f64 = 1e-14;

/// An explanation of fewer commands than this changes no expectation.
const FEW_COMMANDS: f64 = 1e-7;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameters {
    /// Of the sizes of each action in bytes. Without labels, of the actions with each class of replies and, last, of
    /// those without a reply; size 0 stands for a reply that belongs to no action.
    pub(crate) sizes: Vec<Pmf>,
    /// Of ε in bytes.
    pub(crate) epsilon: Pmf,
    /// Where actions are not known, for each number of replies: the probabilities of the numbers of actions without one.
    pub(crate) silent: Vec<Vec<f64>>,
    /// The share of commands that are not explained.
    pub(crate) outliers: f64,
    /// Of the actions without a reply, the share whose reply was lost.
    pub(crate) lost: f64,
}

/// What is known before any command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beforehand {
    /// One over the number of sizes that an unexplained command may have.
    pub(crate) outlier_density: f64,
    /// Commands' worth of evidence that a size must have beyond none: the sparsity prior.
    pub(crate) least_evidence: f64,
    /// Of so many commands, how many's worth an ε has beforehand; `None` if ε is not estimated.
    pub(crate) epsilon: Option<fn(i64, f64) -> f64>,
}

/// Commands of one size with the same actions, as far as these are known.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// In bytes.
    pub(crate) size: i64,
    pub(crate) commands: f64,
    /// The list of [`Parameters::silent`] that weighs the sums; `None` if the actions are known.
    weighed_by: Option<usize>,
    /// The sums that may explain it, each with its number of actions without a reply.
    sums: Vec<(usize, usize)>,
}

impl Row {
    /// The probability of a sum beforehand; 0 where the parameters were learned from rows without such a number.
    fn weight(&self, silent: usize, parameters: &Parameters) -> f64 {
        let weight = |list: usize| parameters.silent.get(list)?.get(silent).copied();
        self.weighed_by.map_or(1.0, |list| weight(list).unwrap_or(0.0))
    }

    /// The probability that its actions and ε add up to this, by the distributions of all sums.
    pub(crate) fn explained(&self, found: &[Pmf], total: i64, parameters: &Parameters) -> f64 {
        let weighed = |(silent, sum): &(usize, usize)| self.weight(*silent, parameters) * found[*sum].at(total);
        self.sums.iter().map(weighed).sum()
    }
}

/// The indices of labelled commands by their actions and size.
pub(crate) fn alike(
    commands: &[LabelledCommand],
    indices: impl Iterator<Item = usize>,
) -> BTreeMap<(&[u32], i64), Vec<usize>> {
    let mut alike: BTreeMap<(&[u32], i64), Vec<usize>> = BTreeMap::new();
    for (at, command) in indices.filter_map(|at| Some((at, commands.get(at)?))) {
        alike.entry((&command.counts, command.sizes[0])).or_default().push(at);
    }
    alike
}

/// Rows, and the sums that they need. Sums are numbered: first single actions, then ε, then sums of two of them.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The number of actions, or of classes of replies.
    pub(crate) actions: usize,
    pub(crate) rows: Vec<Row>,
    pub(crate) commands: f64,
    /// What each sum is made of; single actions and ε are not listed.
    pairs: Vec<[usize; 2]>,
    of_pair: BTreeMap<[usize; 2], usize>,
}

impl Plan {
    pub(crate) fn new(actions: usize) -> Self {
        Self { actions, rows: Vec::new(), commands: 0.0, pairs: Vec::new(), of_pair: BTreeMap::new() }
    }

    /// Of labelled commands of exact sizes, by their indices; each as often as it is named.
    pub(crate) fn of_labelled(commands: &[LabelledCommand], indices: impl Iterator<Item = usize>) -> Self {
        let mut plan = Self::new(commands.first().map_or(0, |command| command.counts.len()));
        for ((counts, size), alike) in alike(commands, indices) {
            plan.add(size, alike.len() as f64, None, [(0, counts.to_vec())]);
        }
        plan
    }

    /// Adds a row. `sums`: how often each action may be in it, each with its number of actions without a reply, by which
    /// a list of [`Parameters::silent`] weighs them.
    pub(crate) fn add(
        &mut self,
        size: i64,
        commands: f64,
        weighed_by: Option<usize>,
        sums: impl IntoIterator<Item = (usize, Vec<u32>)>,
    ) {
        let sums = sums.into_iter().map(|(silent, counts)| (silent, self.sum_of(&counts))).collect();
        self.commands += commands;
        self.rows.push(Row { size, commands, weighed_by, sums });
    }

    pub(crate) fn sums(&self) -> usize {
        self.pairs.len()
    }

    /// For each list of [`Parameters::silent`] the greatest number of actions without a reply.
    pub(crate) fn most_silent(&self) -> Vec<usize> {
        let mut most = Vec::new();
        for row in &self.rows {
            let (Some(list), Some(number)) = (row.weighed_by, row.sums.iter().map(|(silent, _)| *silent).max()) else {
                continue;
            };
            most.resize(most.len().max(list + 1), 0);
            most[list] = number.max(most[list]);
        }
        most
    }

    /// The sum of so many of each action, and of ε.
    fn sum_of(&mut self, counts: &[u32]) -> usize {
        let mut all = None;
        for (action, count) in counts.iter().enumerate() {
            let mut multiple = None;
            for _ in 0..*count {
                multiple = Some(self.pair(multiple, action));
            }
            all = multiple.map(|multiple| self.pair(all, multiple)).or(all);
        }
        self.pair(all, self.actions)
    }

    /// What the actions of a row, all of which are known, add up to without ε: the number of that sum.
    pub(crate) fn of_actions(&self, row: &Row) -> Option<usize> {
        let (_, sum) = row.sums.first()?;
        self.pairs.get(sum.checked_sub(self.actions + 1)?).map(|[actions, _]| *actions)
    }

    fn pair(&mut self, one: Option<usize>, other: usize) -> usize {
        let Some(one) = one else { return other };
        let next = self.actions + 1 + self.pairs.len();
        let sum = *self.of_pair.entry([one, other]).or_insert(next);
        if sum == next {
            self.pairs.push([one, other]);
        }
        sum
    }

    /// The sums beyond single ones with what each is made of, greater ones after those that they are made of.
    fn pairs(&self) -> impl DoubleEndedIterator<Item = (usize, [usize; 2])> {
        self.pairs.iter().enumerate().map(|(at, pair)| (self.actions + 1 + at, *pair))
    }

    /// The distributions of all sums, as far as rows need them: `asked` are the least and the greatest total that each row
    /// asks for.
    pub(crate) fn distributions(&self, parameters: &Parameters, asked: impl Iterator<Item = [i64; 2]>) -> Vec<Pmf> {
        let mut found: Vec<Pmf> = parameters.sizes.iter().chain([&parameters.epsilon]).cloned().collect();
        let mut spans: Vec<[i64; 2]> = found.iter().map(|one| [one.least(), one.end() - 1]).collect();
        for [one, other] in &self.pairs {
            spans.push([0, 1].map(|end| spans[*one][end] + spans[*other][end]));
        }
        let mut needed = vec![[i64::MAX, i64::MIN]; spans.len()];
        for (row, [least, most]) in self.rows.iter().zip(asked) {
            for (_, sum) in &row.sums {
                needed[*sum] = [needed[*sum][0].min(least), needed[*sum][1].max(most)];
            }
        }
        for (sum, [one, other]) in self.pairs().rev() {
            let [least, most] = needed[sum];
            for (part, rest) in [(one, spans[other]), (other, spans[one])] {
                let [from, to] = [least.saturating_sub(rest[1]), most.saturating_sub(rest[0])];
                needed[part] = [needed[part][0].min(from), needed[part][1].max(to)];
            }
        }
        for (sum, [one, other]) in self.pairs() {
            found.push(convolved(&found[one], &found[other], needed[sum]).trimmed());
        }
        found
    }

    /// The log-likelihood of all rows; `targets`: for each, what its actions and ε add up to, in bytes.
    pub(crate) fn log_likelihood(&self, targets: &[i64], parameters: &Parameters, beforehand: Beforehand) -> f64 {
        let found = self.distributions(parameters, targets.iter().map(|target| [*target; 2]));
        let of_row = |(row, target): (&Row, &i64)| {
            row.commands * parameters.likelihood(row.explained(&found, *target, parameters), beforehand).ln()
        };
        self.rows.iter().zip(targets).map(of_row).sum()
    }
}

impl Plan {
    /// Draws what a row consists of, by its probability: each single action, and ε, with its bytes. `None` if it is drawn
    /// that nothing explains the row. `found`: the distributions of all sums.
    pub(crate) fn draw(
        &self,
        (row, target): (&Row, i64),
        found: &[Pmf],
        parameters: &Parameters,
        beforehand: Beforehand,
        random: &mut ChaCha8Rng,
    ) -> Option<Vec<(usize, i64)>> {
        let weights = row.sums.iter().map(|(silent, sum)| row.weight(*silent, parameters) * found[*sum].at(target));
        let explained: f64 = weights.clone().sum();
        let is_explained = random.random::<f64>() * parameters.likelihood(explained, beforehand)
            < (1.0 - parameters.outliers) * explained;
        let (_, sum) = row.sums[drawn(weights, random).filter(|_| is_explained)?];
        let (mut parts, mut left) = (Vec::new(), vec![(sum, target)]);
        while let Some((sum, total)) = left.pop() {
            let Some([one, other]) = sum.checked_sub(self.actions + 1).map(|at| self.pairs[at]) else {
                parts.push((sum, total));
                continue;
            };
            let ways = found[one].iter().map(|(bytes, weight)| (bytes, weight * found[other].at(total - bytes)));
            let (bytes, _) = ways.clone().nth(drawn(ways.map(|(_, weight)| weight), random)?)?;
            left.extend([(one, bytes), (other, total - bytes)]);
        }
        Some(parts)
    }
}

/// An index, drawn by its share of the weights; `None` if all are 0.
pub(crate) fn drawn(weights: impl Iterator<Item = f64> + Clone, random: &mut ChaCha8Rng) -> Option<usize> {
    let mut left = random.random::<f64>() * weights.clone().sum::<f64>();
    let mut possible = weights.enumerate().filter(|(_, weight)| *weight > 0.0);
    let reached = possible.clone().find(|(_, weight)| {
        left -= weight;
        left < 0.0
    });
    reached.or_else(|| possible.next()).map(|(at, _)| at)
}

/// Their convolution between two ends, by the numbers of the one that has fewer.
fn convolved(one: &Pmf, other: &Pmf, [least, most]: [i64; 2]) -> Pmf {
    let [few, many] = if one.iter().count() <= other.iter().count() { [one, other] } else { [other, one] };
    let mut sums = Pmf::default();
    sums.set_convolution([few, many], least, most);
    sums
}

impl Parameters {
    /// The probability of what has this probability if it is explained.
    pub(crate) fn likelihood(&self, explained: f64, beforehand: Beforehand) -> f64 {
        (1.0 - self.outliers) * explained + self.outliers * beforehand.outlier_density
    }
}

/// What the rows say in the light of the parameters before.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) log_likelihood: f64,
    /// How often each size of each action, each ε and each number of actions without a reply occurs.
    pub(crate) sizes: Vec<Pmf>,
    epsilon: Pmf,
    silent: Vec<Vec<f64>>,
    outliers: f64,
}

/// `targets`: for each row, what its actions and ε add up to, in bytes.
pub(crate) fn expect(plan: &Plan, targets: &[i64], parameters: &Parameters, beforehand: Beforehand) -> Expected {
    let found = plan.distributions(parameters, targets.iter().map(|target| [*target; 2]));
    let mut derivatives = vec![Pmf::default(); found.len()];
    let mut silent: Vec<Vec<f64>> = parameters.silent.iter().map(|list| vec![0.0; list.len()]).collect();
    let (mut log_likelihood, mut outliers) = (0.0, 0.0);
    for (row, target) in plan.rows.iter().zip(targets) {
        let explained = row.explained(&found, *target, parameters);
        let total = parameters.likelihood(explained, beforehand);
        log_likelihood += row.commands * total.ln();
        outliers += row.commands * parameters.outliers * beforehand.outlier_density / total;
        if explained < IMPOSSIBLE {
            continue;
        }
        for (number, sum) in &row.sums {
            let derivative = row.commands * (1.0 - parameters.outliers) * row.weight(*number, parameters) / total;
            let commands = derivative * found[*sum].at(*target);
            if commands >= FEW_COMMANDS {
                row.weighed_by.into_iter().for_each(|list| silent[list][*number] += commands);
                derivatives[*sum].add_moved(&Pmf::certain(*target), 0, derivative);
            }
        }
    }
    for (sum, [one, other]) in plan.pairs().rev() {
        let of_sum = std::mem::take(&mut derivatives[sum]);
        for (part, rest) in [(one, other), (other, one)] {
            let within = [found[part].least(), found[part].end() - 1];
            derivatives[part].add_moved(&convolved(&of_sum, &found[rest].mirrored(), within), 0, 1.0);
        }
    }
    let expected = |(of, derivatives): (&Pmf, &Pmf)| {
        Pmf::from_values(of.iter().map(|(bytes, probability)| (bytes, probability * derivatives.at(bytes))))
    };
    let mut counts = found.iter().zip(&derivatives).map(expected);
    let sizes = counts.by_ref().take(plan.actions).collect();
    Expected { log_likelihood, sizes, epsilon: counts.next().unwrap_or_default(), silent, outliers }
}

impl Expected {
    fn maximise(&self, before: &Parameters, beforehand: Beforehand) -> Parameters {
        let sizes = before.sizes.iter().zip(&self.sizes);
        let commands = self.epsilon.total() + self.outliers;
        let epsilon = beforehand.epsilon.map(|known| {
            shares(
                before
                    .epsilon
                    .iter()
                    .map(|(epsilon, _)| (epsilon, self.epsilon.at(epsilon) + known(epsilon, commands))),
            )
        });
        let silent = |counts: &Vec<f64>| {
            let total: f64 = counts.iter().sum::<f64>() + 0.05 * counts.len() as f64;
            counts.iter().map(|count| (count + 0.05) / total).collect()
        };
        Parameters {
            sizes: sizes.map(|(old, counts)| frequent(old, counts, beforehand.least_evidence)).collect(),
            epsilon: epsilon.unwrap_or_else(|| before.epsilon.clone()),
            silent: self.silent.iter().map(silent).collect(),
            outliers: ((self.outliers + 0.5) / (commands + 20.0)).clamp(0.002, 0.5),
            lost: before.lost,
        }
    }
}

/// Sizes with their shares of what is left of the counts; the old ones where nothing is left.
fn frequent(old: &Pmf, counts: &Pmf, least: f64) -> Pmf {
    let most = counts.iter().map(|(_, count)| *count).fold(0.0, f64::max);
    let left = counts.iter().map(|(size, count)| (size, if size == 0 { *count } else { count - least }));
    let sizes = shares(left.filter(|(_, count)| *count > NEGLIGIBLE * most && *count > 1e-12));
    if sizes.is_empty() { old.clone() } else { sizes }
}

/// Values with their shares of all counts; none if these have no positive sum.
pub(crate) fn shares(counts: impl Iterator<Item = (i64, f64)>) -> Pmf {
    let counts = Pmf::from_values(counts);
    let total = counts.total();
    if total > 0.0 && total.is_finite() { counts.normalised() } else { Pmf::default() }
}

/// Repeats both steps until the likelihood hardly grows; returns the log-likelihood of the parameters before the last.
/// `adjust` changes the new parameters by those before and what was expected.
pub(crate) fn improve(
    plan: &Plan,
    targets: &[i64],
    parameters: &mut Parameters,
    steps: usize,
    beforehand: Beforehand,
    adjust: impl Fn(&Parameters, &Expected, &mut Parameters),
) -> f64 {
    let mut log_likelihood = f64::NEG_INFINITY;
    for _ in 0..steps {
        let expected = expect(plan, targets, parameters, beforehand);
        let gain = expected.log_likelihood - log_likelihood;
        log_likelihood = expected.log_likelihood;
        let mut next = expected.maximise(parameters, beforehand);
        adjust(parameters, &expected, &mut next);
        *parameters = next;
        if gain.abs() < MIN_GAIN {
            break;
        }
    }
    log_likelihood
}
