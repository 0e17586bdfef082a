//! Learning from labelled commands which replies each action sends.
//!
//! The mean number of replies of each size that an action sends is found by expectation maximisation: a reply of a
//! command is shared out among its actions, and the command as such, in proportion to how often each sends that size.
//! Means become whole numbers of replies with a share missing; replies that are alike become a class.

mod merging;

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_model::{LabelledCommand, ReplyClass, SeenReplies, SingleReplies, statistics};

use self::merging::{OddSizes, Row, split_merged, times};
use crate::fit::evidence::{STRONG, most_frequent, rounded};

/// The most rounds of expectation maximisation, and the change of a mean below which they end: means become whole numbers
/// and shares of some per cent.
const ROUNDS: usize = 300;
const MIN_CHANGE: f64 = 1e-5;

/// An action sends no reply of a size if it seems to send it in fewer than six of a hundred cases, and another action
/// eight times as often. Expectation maximisation converges slowly near 0, so that such means are what is left of it.
const MAX_RARE: f64 = 0.06;
const OFTEN: f64 = 8.0;

/// The least mean number of replies that counts: six decimals show no smaller one.
const MIN_MEAN: f64 = 1e-6;

/// More different sizes than this are not learned, a bound of the memory: there is a mean of each size and action.
const MAX_DISTINCT: usize = 4096;

/// A reply is complete if its sizes make up all but this share: fewer replies are lost in a network that works.
const MAX_SURPLUS: f64 = 0.1;

/// A size that is far from the others of its class, and has a smaller share than this or was seen once, is foreign.
const MIN_OF_CLASS: f64 = 0.03;
const MIN_TIMES: f64 = 1.5;

/// With fewer replies than this a size that was seen once has no small share, and none is taken to be foreign.
const FEW_REPLIES: f64 = 10.0;

/// Two replies are of one class only if the shares of them that are missing differ by less than this, which is about
/// three standard deviations of the share among a hundred replies, whatever it is.
const LOSSES_ALIKE: f64 = 0.15;

/// The fewest commands to learn from: of fewer, one lost reply looks like a loss of more than 5 %.
const MIN_COMMANDS: usize = 20;

/// With fewer commands than this, each action must have [`OWN_COMMANDS`] of its own, where a command of several actions
/// counts in part for each of them. Otherwise it is a guess which replies are its own.
const MANY_COMMANDS: usize = 50;
const OWN_COMMANDS: f64 = 3.0;

/// The most commands that are learned from, a bound of the time.
const MAX_LEARNED: usize = 20_000;

/// The most commands that decide whether replies depend on actions, a bound of the time.
const MAX_COMPARED: usize = 2000;

/// The least logarithm of a command's likelihood, so that no odd command decides alone.
const MIN_LN_LIKELIHOOD: f64 = -50.0;

/// How many replies of each size each action sends in the mean.
struct Means {
    sizes: Vec<i64>,
    /// By action, then by size; the last is the command as such.
    of_action: Vec<Vec<f64>>,
    occurrences: Vec<f64>,
}

/// Learns from labelled commands of `actions` actions. `None` if they are few, or if the sizes of their replies are not
/// known or do not depend on actions.
pub fn learn_single_replies(commands: &[LabelledCommand], actions: usize) -> Option<SingleReplies> {
    if !are_enough(commands, actions) {
        return None;
    }
    let rows = rows(commands, actions);
    let means = Means::fit(&rows, actions)?;
    let odd = OddSizes::new(&times(&rows), |size| means.greatest(size));
    // The model under the assumption that two replies in one record share so many bytes.
    let with_shared = |shared: i64| {
        let (rows, merged, is_seen) = split_merged(&rows, &odd, shared);
        let shared = if is_seen { shared } else { 0 };
        Some(SingleReplies { merged, shared, ..model(&Means::fit(&rows, actions)?, &rows)? })
    };
    let step = (commands.len() / MAX_COMPARED).max(1);
    let compared = commands.iter().step_by(step).filter_map(|one| {
        let replies = one.single_replies.as_ref()?;
        Some((one, replies.iter().map(|size| [*size; 2]).collect()))
    });
    let compared: Vec<SeenCommand<'_>> = compared.collect();
    let model = match (with_shared(0), odd.shared_bytes()) {
        (model, 0) => model?,
        // A foreign record may have the size of two replies that share bytes: then none of them is missing.
        (model, shared) => {
            let both = [model, with_shared(shared)].into_iter().flatten();
            let both = both.map(|model| (compared.iter().map(|one| ln_likelihood(&model, one)).sum::<f64>(), model));
            both.reduce(|none, some| if some.0 > none.0 + STRONG { some } else { none })?.1
        }
    };
    let depends_on_actions = model.per_action.iter().flatten().any(|number| *number > 0);
    (depends_on_actions && model.fault(actions).is_none() && tells_more(&model, &compared)).then_some(model)
}

/// A command with the sizes of its replies, each as a range.
type SeenCommand<'a> = (&'a LabelledCommand, Vec<[i64; 2]>);

fn ln_likelihood(model: &SingleReplies, (command, records): &SeenCommand<'_>) -> f64 {
    let counts = model.class_counts(command.counts.iter().copied().enumerate());
    SeenReplies::new(model, records).ln_likelihood(&counts).max(MIN_LN_LIKELIHOOD)
}

/// Whether the replies depend on the actions: they are clearly more likely than if they were foreign.
fn tells_more(model: &SingleReplies, commands: &[SeenCommand<'_>]) -> bool {
    let independent = independent(model, commands);
    let gain = |one: &SeenCommand<'_>| ln_likelihood(model, one) - ln_likelihood(&independent, one);
    let parameters = model.per_action.len().max(model.classes.len()) as f64;
    let by_chance = parameters * (commands.len().max(1) as f64).ln() / 2.0;
    commands.iter().map(gain).sum::<f64>() > STRONG + by_chance
}

/// The same sizes, as replies that no action sends.
fn independent(model: &SingleReplies, commands: &[SeenCommand<'_>]) -> SingleReplies {
    let of_commands: u32 = model.per_command.iter().sum();
    let replies: usize = commands.iter().map(|(_, records)| records.len()).sum();
    let mean = replies as f64 / commands.len().max(1) as f64;
    let mut sizes: BTreeMap<i64, u64> = model.foreign_sizes.iter().copied().collect();
    for (size, times) in model.classes.iter().flat_map(|class| &class.sizes) {
        let sum = sizes.entry(*size).or_default();
        *sum = sum.saturating_add(*times);
    }
    SingleReplies {
        foreign: (mean - f64::from(of_commands)).max(model.foreign),
        foreign_sizes: sizes.into_iter().collect(),
        per_action: vec![vec![0; model.classes.len()]; model.per_action.len()],
        ..model.clone()
    }
}

/// Whether commands show which replies each action sends.
fn are_enough(commands: &[LabelledCommand], actions: usize) -> bool {
    let known = || commands.iter().filter(|command| command.single_replies.is_some());
    let own_commands = |action: usize| -> f64 {
        let count = |command: &LabelledCommand| command.counts.get(action).copied().unwrap_or(0);
        known().map(|command| f64::from(count(command)) / command.total().max(1) as f64).sum()
    };
    match known().count() {
        0..MIN_COMMANDS => false,
        MIN_COMMANDS..MANY_COMMANDS => (0..actions).all(|action| own_commands(action) >= OWN_COMMANDS),
        _ => true,
    }
}

/// The commands whose replies are known one by one, equal ones together; of very many, as many as are enough.
fn rows(commands: &[LabelledCommand], actions: usize) -> Vec<Row> {
    let mut times: BTreeMap<(Vec<u32>, Vec<i64>), u64> = BTreeMap::new();
    let step = commands.len().div_ceil(MAX_LEARNED).max(1);
    for command in commands.iter().step_by(step).filter(|command| command.counts.len() == actions) {
        let Some(replies) = &command.single_replies else { continue };
        let mut replies = replies.clone();
        replies.sort_unstable();
        *times.entry((command.counts.iter().copied().chain([1]).collect(), replies)).or_default() += 1;
    }
    let row = |((counts, replies), times): ((Vec<u32>, Vec<i64>), u64)| Row {
        counts,
        replies: statistics::times(replies),
        times,
    };
    times.into_iter().map(row).collect()
}

impl Means {
    /// `None` without replies, or with too many different sizes.
    fn fit(rows: &[Row], actions: usize) -> Option<Self> {
        let sizes: BTreeSet<i64> = rows.iter().flat_map(|row| row.replies.keys().copied()).collect();
        if sizes.is_empty() || sizes.len() > MAX_DISTINCT {
            return None;
        }
        let sizes: Vec<i64> = sizes.into_iter().collect();
        let mut occurrences = vec![0.0; actions + 1];
        for row in rows {
            for (sum, count) in occurrences.iter_mut().zip(&row.counts) {
                *sum += f64::from(*count) * row.times as f64;
            }
        }
        // Replies belong to actions, unless actions do not explain them.
        let start = |action: usize| if action == actions { 0.05 } else { 1.0 } / sizes.len() as f64;
        let of_action = (0..=actions).map(|action| vec![start(action); sizes.len()]).collect();
        let mut means = Self { sizes, of_action, occurrences };
        means.converge(rows);
        means.drop_rare();
        means.converge(rows);
        Some(means)
    }

    fn converge(&mut self, rows: &[Row]) {
        for _ in 0..ROUNDS {
            if self.improve(rows) < MIN_CHANGE {
                break;
            }
        }
    }

    /// A reply that an action seems to send rarely, and another often, is the other's: means near 0 converge slowly.
    fn drop_rare(&mut self) {
        let greatest: Vec<f64> = self.sizes.iter().map(|size| self.greatest(*size)).collect();
        // The command as such keeps its own: something has to explain what the others do not.
        let actions = self.of_action.len().saturating_sub(1);
        for means in self.of_action.iter_mut().take(actions) {
            for (mean, greatest) in means.iter_mut().zip(&greatest) {
                if *mean < MAX_RARE && *mean < greatest / OFTEN {
                    *mean = 0.0;
                }
            }
        }
    }

    /// One round; returns the greatest change of a mean.
    fn improve(&mut self, rows: &[Row]) -> f64 {
        let mut sums: Vec<Vec<f64>> = self.of_action.iter().map(|means| vec![0.0; means.len()]).collect();
        for row in rows {
            for (size, number) in &row.replies {
                let Ok(at) = self.sizes.binary_search(size) else { continue };
                let weights = || {
                    let occurring = row.counts.iter().enumerate().filter(|(_, count)| **count > 0);
                    occurring.map(|(action, count)| (action, f64::from(*count) * self.of_action[action][at]))
                };
                let all: f64 = weights().map(|(_, weight)| weight).sum();
                for (action, weight) in weights().filter(|_| all > 0.0) {
                    sums[action][at] += row.times as f64 * f64::from(*number) * weight / all;
                }
            }
        }
        let mut change: f64 = 0.0;
        for ((means, sums), occurrences) in self.of_action.iter_mut().zip(sums).zip(&self.occurrences) {
            for (mean, sum) in means.iter_mut().zip(sums) {
                let improved = if *occurrences > 0.0 { sum / occurrences } else { 0.0 };
                change = change.max((improved - *mean).abs());
                *mean = improved;
            }
        }
        change
    }

    /// The greatest mean of a size, over all actions and the command as such.
    fn greatest(&self, size: i64) -> f64 {
        let Ok(at) = self.sizes.binary_search(&size) else { return 0.0 };
        self.of_action.iter().filter_map(|means| means.get(at)).copied().fold(0.0, f64::max)
    }
}

/// One reply of an action, while classes are formed: sizes with the mean number sent.
type Reply = BTreeMap<i64, f64>;

/// Replies of several actions that are alike.
#[derive(Debug, Clone, Default)]
struct Pool {
    /// How many should have been sent.
    expected: f64,
    /// How many were seen, by size.
    seen: BTreeMap<i64, f64>,
}

/// Whole numbers of replies out of means, none of them merged.
fn model(means: &Means, rows: &[Row]) -> Option<SingleReplies> {
    let mut pools: Vec<Pool> = Vec::new();
    let mut sent: Vec<Vec<usize>> = Vec::new();
    let mut foreign: BTreeMap<i64, f64> = BTreeMap::new();
    let commands: f64 = rows.iter().map(|row| row.times as f64).sum();
    for (action, of_size) in means.of_action.iter().enumerate() {
        let occurrences = means.occurrences[action];
        let mut own = Vec::new();
        for reply in single(of_size, &means.sizes) {
            let seen: BTreeMap<i64, f64> = reply.iter().map(|(size, mean)| (*size, mean * occurrences)).collect();
            own.push(pools.len());
            pools.push(Pool { expected: occurrences, seen });
        }
        // What is sent now and then is foreign.
        let is_own = |size: &i64| own.iter().any(|at: &usize| pools[*at].seen.contains_key(size));
        for (size, mean) in means.sizes.iter().zip(of_size).filter(|(size, mean)| **mean > 0.0 && !is_own(size)) {
            *foreign.entry(*size).or_default() += mean * occurrences;
        }
        sent.push(own);
    }
    let (mut pools, class_of) = alike(pools);
    for (size, seen) in pools.iter_mut().flat_map(Pool::take_foreign) {
        *foreign.entry(size).or_default() += seen;
    }
    if pools.is_empty() || pools.len() > SingleReplies::MAX_CLASSES {
        return None;
    }
    let numbers = |own: &Vec<usize>| {
        let mut numbers = vec![0_u32; pools.len()];
        for class in own.iter().map(|at| class_of[*at]) {
            numbers[class] = (numbers[class] + 1).min(SingleReplies::MAX_PER_ACTION);
        }
        numbers
    };
    let mut per_action: Vec<Vec<u32>> = sent.iter().map(numbers).collect();
    let per_command = per_action.pop()?;
    let lost: f64 = pools.iter().map(|pool| (pool.expected - pool.all_seen()).max(0.0)).sum();
    let expected: f64 = pools.iter().map(|pool| pool.expected).sum();
    let classes: Vec<ReplyClass> = pools.iter().map(|pool| pool.class((lost + 0.5) / (expected + 1.0))).collect();
    let rate = foreign.values().sum::<f64>() / commands.max(1.0);
    let mut foreign_sizes: Vec<(i64, u64)> =
        foreign.into_iter().map(|(size, seen)| (size, seen.round() as u64)).filter(|(_, seen)| *seen > 0).collect();
    most_frequent(&mut foreign_sizes, SingleReplies::MAX_SIZES);
    Some(SingleReplies {
        merged: 0.0,
        shared: 0,
        foreign: rounded(rate + 0.5 / (commands + 1.0)),
        foreign_sizes,
        per_command,
        per_action,
        classes,
    })
}

/// The replies that an action sends, each with its sizes and how often it has them.
fn single(of_size: &[f64], sizes: &[i64]) -> Vec<Reply> {
    let mut means: Vec<(f64, i64)> = of_size.iter().copied().zip(sizes.iter().copied()).collect();
    means.retain(|(mean, _)| *mean > MIN_MEAN);
    means.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let all: f64 = means.iter().map(|(mean, _)| mean).sum();
    let number = all.round().clamp(0.0, SingleReplies::MAX_PER_ACTION.into()) as usize;
    let mut replies: Vec<Reply> = vec![Reply::new(); number];
    let mut at = 0;
    for (mut mean, size) in means {
        while mean > 0.0
            && let Some(reply) = replies.get_mut(at)
        {
            let filled: f64 = reply.values().sum();
            // What goes beyond by more is another reply of the same size.
            let is_the_last = mean <= 1.0 + MAX_SURPLUS - filled;
            let part = if is_the_last { mean } else { 1.0 - filled };
            *reply.entry(size).or_default() += part;
            mean -= part;
            // What is missing in a reply that is nearly full is lost, not another size.
            if filled + part >= 1.0 - MAX_SURPLUS {
                at += 1;
                mean = if mean < MAX_SURPLUS { 0.0 } else { mean };
            }
        }
    }
    replies.retain(|reply| !reply.is_empty());
    replies
}

/// Joins replies that are alike: the classes, and the class of each reply.
fn alike(replies: Vec<Pool>) -> (Vec<Pool>, Vec<usize>) {
    let mut classes: Vec<Pool> = Vec::new();
    let mut class_of = Vec::new();
    for reply in replies {
        let same = classes.iter().position(|class| class.is_like(&reply));
        match same {
            Some(at) => classes[at].add(&reply),
            None => classes.push(reply),
        }
        class_of.push(same.unwrap_or(classes.len() - 1));
    }
    (classes, class_of)
}

impl Pool {
    fn all_seen(&self) -> f64 {
        self.seen.values().sum()
    }

    fn add(&mut self, other: &Self) {
        self.expected += other.expected;
        for (size, seen) in &other.seen {
            *self.seen.entry(*size).or_default() += seen;
        }
    }

    /// Takes out the sizes that are rare and far from the others.
    fn take_foreign(&mut self) -> BTreeMap<i64, f64> {
        let all = self.all_seen();
        let least = if all < FEW_REPLIES { 0.0 } else { (all * MIN_OF_CLASS).max(MIN_TIMES) };
        let usual: Vec<i64> = self.seen.iter().filter(|(_, seen)| **seen >= least).map(|(size, _)| *size).collect();
        let (Some(shortest), Some(longest)) = (usual.first(), usual.last()) else { return BTreeMap::new() };
        let near = 2 + longest.abs_diff(*shortest);
        let is_near = |size: &i64| usual.iter().any(|usual| usual.abs_diff(*size) <= near);
        let (usual, foreign) = std::mem::take(&mut self.seen).into_iter().partition(|(size, _)| is_near(size));
        self.seen = usual;
        foreign
    }

    /// Whether both have the same distribution of sizes, as far as what was seen tells (Bayesian information
    /// criterion), and about as many are missing: which of two actions has lost a reply is hard to tell.
    fn is_like(&self, other: &Self) -> bool {
        let mut both = self.clone();
        both.add(other);
        let loss = self.ln_likelihood() + other.ln_likelihood() - both.ln_likelihood();
        let parameters = both.seen.values().filter(|seen| **seen >= 0.5).count().max(1) as f64;
        let missing = |pool: &Self| 1.0 - pool.all_seen() / pool.expected.max(1.0);
        (missing(self) - missing(other)).abs() < LOSSES_ALIKE && loss < parameters * (both.expected + 2.0).ln() / 2.0
    }

    /// Of the sizes, by the best distribution.
    fn ln_likelihood(&self) -> f64 {
        let all = self.all_seen();
        self.seen.values().filter(|seen| **seen > 0.0).map(|seen| seen * (seen / all).ln()).sum()
    }

    /// As a class; `lost` is the share missing of all classes, which counts as much as 20 replies do.
    fn class(&self, lost: f64) -> ReplyClass {
        let seen = self.all_seen();
        let missing = ((self.expected - seen).max(0.0) + 20.0 * lost) / (self.expected + 20.0);
        let mut sizes: Vec<(i64, u64)> =
            self.seen.iter().map(|(size, seen)| (*size, seen.round() as u64)).filter(|(_, seen)| *seen > 0).collect();
        if sizes.is_empty() {
            // Seen less than half a time: the most frequent size stands for all.
            let most = self.seen.iter().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(size, _)| *size);
            sizes = vec![(most, 1)];
        }
        most_frequent(&mut sizes, SingleReplies::MAX_SIZES);
        // Good and Turing: as rare as what was seen once. Replies that always had one size have no other.
        let once = sizes.iter().filter(|(_, seen)| *seen == 1).count() as f64;
        let unseen = if sizes.len() > 1 { (once + 0.5) / (seen + 1.0) } else { 0.0 };
        ReplyClass { missing: rounded(missing).min(0.99), unseen: rounded(unseen).min(0.9), sizes }
    }
}

#[cfg(test)]
mod tests;
