//! Sums of actions together with the replies to them.
//!
//! Given one way to read the replies, how likely they are is a product of one factor for each *block*: groups of actions
//! and classes of replies that have to do with each other. So the sums of one block after the other are convolved, for
//! each number of actions of each class of the inventory, since the prior depends on these together. What a block may
//! add is bounded from both sides: its replies must come, and the sum is known. Few numbers are left in between.

use std::borrow::Cow;
use std::collections::BTreeMap;

use sizeleak_model::{Component, Interpretation, Pmf, SeenReplies};

use crate::action_group::{ActionGroup, Groups};
use crate::device_limits::Totals;

/// What is left out of a probability is at most this share of it.
const LEFT_OUT: f64 = 1e-7;

/// By how much, in nats, the first threshold is below the greatest likelihood. Later ones are set by what was found.
const FIRST_DEPTH: f64 = 20.0;

/// By how much thresholds go down while nothing is found, and how often.
const FURTHER_DEPTH: f64 = 40.0;
const MAX_DEPTHS: u32 = 8;

/// The most work for one command, in products of two weights: some milliseconds.
const MAX_PRODUCTS: usize = 1 << 24;

/// What looking at one possibility costs, in products: half a million of them are allowed.
const STEP_PRODUCTS: usize = 32;

/// More work is needed than is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuchWork;

/// The replies to one command, with the blocks of a home that they make.
#[derive(Debug)]
pub(crate) struct JointSums<'a> {
    groups: &'a Groups,
    blocks: Vec<Block<'a>>,
    /// The interpretations with the greatest likelihood that each can have, the likeliest first.
    ranked: Vec<(usize, f64)>,
    /// The least and the greatest sum that matter, in bytes.
    sums: [i64; 2],
    /// The probability that the sums have without replies.
    without_replies: f64,
    work_left: usize,
}

/// Groups of actions and components of replies that have to do with each other.
#[derive(Debug)]
struct Block<'a> {
    groups: Vec<usize>,
    components: Vec<&'a Component>,
    /// Before each of the groups and after the last: which classes of replies a later one sends.
    open: Vec<Vec<bool>>,
    /// The replies that interpretations have, each once.
    patterns: Vec<Pattern<'a>>,
    /// Which of them each interpretation has.
    pattern_of: Vec<usize>,
}

/// Replies of a block, and what its actions may be then.
#[derive(Debug)]
struct Pattern<'a> {
    /// Of each component.
    of_components: Vec<usize>,
    /// At least the logarithm of the likelihood of the replies, for any numbers of actions.
    ln_greatest: f64,
    /// As deep as they were looked for last.
    choices: Vec<Choice<'a>>,
    depth: f64,
}

/// Numbers of actions of a block.
#[derive(Debug, Clone)]
struct Choice<'a> {
    /// By the block's groups.
    numbers: Vec<u32>,
    totals: Totals,
    actions: usize,
    /// How likely the replies are, as a multiple of the greatest likelihood in the block.
    likelihood: f64,
    sums: Cow<'a, Pmf>,
}

/// One way to read the replies, with what the actions of each block may be.
#[derive(Debug)]
struct Reading<'b, 'a> {
    choices: Vec<Vec<&'b Choice<'a>>>,
    /// The least sum of all blocks together, and how far others may be above it.
    base: i64,
    room: i64,
    /// Less likely numbers are left out, as a multiple of the greatest likelihood of this reading.
    least_likely: f64,
    /// That greatest likelihood, as a multiple of the unit.
    greatest: f64,
}

/// Numbers of actions that matter.
#[derive(Debug)]
pub(crate) struct Numbers {
    pub(crate) of_groups: Vec<u32>,
    /// P(replies | numbers) as a multiple of the unit.
    pub(crate) likelihood: f64,
    /// The prior without the sums' weights.
    pub(crate) prior: f64,
}

/// What the blocks so far may be, all with the same totals.
#[derive(Debug)]
struct State {
    actions: usize,
    /// The greatest likelihood in it.
    likelihood: f64,
    /// By the bytes above the least ones of all blocks so far.
    weights: Vec<f64>,
}

impl<'a> JointSums<'a> {
    /// For sums in a range, which without replies have a probability together.
    pub(crate) fn new(groups: &'a Groups, seen: &'a SeenReplies, sums: [i64; 2], without_replies: f64) -> Self {
        let blocks = blocks(groups, seen);
        let ln_greatest = |(at, interpretation): (usize, &Interpretation)| {
            let of_blocks = blocks.iter().map(|block| block.patterns[block.pattern_of[at]].ln_greatest);
            (at, interpretation.ln_weight + of_blocks.sum::<f64>())
        };
        let mut ranked: Vec<(usize, f64)> = seen.interpretations().iter().enumerate().map(ln_greatest).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        Self { groups, blocks, ranked, sums, without_replies, work_left: MAX_PRODUCTS }
    }

    /// The logarithm of the likelihood that no way to read the replies exceeds; −∞ if the replies are impossible.
    pub(crate) fn ln_unit(&self) -> f64 {
        self.ranked.first().map_or(f64::NEG_INFINITY, |first| first.1)
    }

    /// The weights of all sums in the range, as multiples of the unit; near enough for those that are asked for.
    pub(crate) fn weights(&mut self, asked: &[(i64, f64)]) -> Result<Vec<f64>, TooMuchWork> {
        let [least, most] = self.sums;
        let mut found = vec![0.0; (most - least + 1) as usize];
        self.search(|joint, reading, is_new, work_left| {
            if is_new {
                found.fill(0.0);
            }
            let Reading { base, greatest, .. } = reading;
            for (totals, State { actions, weights, .. }) in reading.convolved(joint, work_left)? {
                let weight = greatest * joint.prior(actions, totals);
                for (sum, of_sum) in (*base..).zip(weights).skip((least - base).max(0) as usize) {
                    found[(sum - least) as usize] += weight * of_sum;
                }
            }
            Ok(asked.iter().map(|(sum, weight)| weight * found[(sum - least) as usize]).sum())
        })?;
        Ok(found)
    }

    /// The numbers of actions that matter, in their order, where `weight` is that of the sums of some numbers.
    pub(crate) fn numbers(&mut self, weight: impl Fn(&[u32]) -> f64) -> Result<Vec<Numbers>, TooMuchWork> {
        // With the weight of their sums and their prior.
        let mut found: BTreeMap<Vec<u32>, (Numbers, f64)> = BTreeMap::new();
        let mut all = 0.0;
        self.search(|joint, reading, is_new, work_left| {
            if is_new {
                found.clear();
                all = 0.0;
            }
            let visit = |numbers: &[u32], likelihood: f64, actions: usize, totals: Totals| {
                let (numbers, weight) = found.entry(numbers.to_vec()).or_insert_with(|| {
                    let prior = joint.prior(actions, totals);
                    let weight = if prior > 0.0 { prior * weight(numbers) } else { 0.0 };
                    (Numbers { of_groups: numbers.to_vec(), likelihood: 0.0, prior }, weight)
                });
                numbers.likelihood += likelihood;
                all += likelihood * *weight;
            };
            reading.visit(joint, work_left, visit)?;
            Ok(all)
        })?;
        Ok(found.into_values().filter(|(_, weight)| *weight > 0.0).map(|(numbers, _)| numbers).collect())
    }

    /// The prior of some numbers of actions without the sums' weights.
    fn prior(&self, actions: usize, totals: Totals) -> f64 {
        self.groups.number_weights[actions] * self.groups.devices.share_of(totals)
    }

    /// Visits the ways to read the replies that matter, the likeliest first, each with numbers of actions as far as these
    /// matter. `visit` returns what was found so far in all. Whenever the visits begin anew, since the ones before left
    /// out too much, it gets true with the first one.
    fn search(
        &mut self,
        mut visit: impl FnMut(&Self, &Reading<'_, 'a>, bool, &mut usize) -> Result<f64, TooMuchWork>,
    ) -> Result<(), TooMuchWork> {
        let ln_unit = self.ln_unit();
        // Each reading may leave out numbers.
        let left_out = self.without_replies * self.ranked.len() as f64;
        if ln_unit == f64::NEG_INFINITY || left_out <= 0.0 {
            return Ok(());
        }
        let mut depth = FIRST_DEPTH;
        let mut work_left = self.work_left;
        for _ in 0..MAX_DEPTHS {
            let (mut found, mut is_new, mut is_too_low) = (0.0, true, false);
            for (interpretation, ln_greatest) in self.ranked.clone() {
                let left = depth - (ln_unit - ln_greatest);
                if left.is_nan() || left < 0.0 {
                    break;
                }
                self.find_choices(interpretation, left, &mut work_left)?;
                let greatest = (ln_greatest - ln_unit).exp();
                let Some(reading) = self.reading(interpretation, (-left).exp(), greatest) else { continue };
                found = visit(self, &reading, std::mem::take(&mut is_new), &mut work_left)?;
                let enough = (left_out / (LEFT_OUT * found)).ln();
                is_too_low = enough.is_finite() && enough > depth;
                if is_too_low {
                    depth = enough;
                    break;
                }
                depth = if enough.is_finite() { enough } else { depth };
            }
            if found > 0.0 && !is_too_low {
                break;
            }
            if !is_too_low {
                depth += FURTHER_DEPTH;
            }
        }
        self.work_left = work_left;
        Ok(())
    }

    /// Looks for what the actions of each block may be in an interpretation, as deep as is needed.
    fn find_choices(&mut self, interpretation: usize, depth: f64, work_left: &mut usize) -> Result<(), TooMuchWork> {
        let (groups, most) = (self.groups, self.sums[1]);
        for block in &mut self.blocks {
            let at = block.pattern_of[interpretation];
            if block.patterns[at].depth >= depth {
                continue;
            }
            let class_counts = groups.per_command.clone();
            let mut walk = Walk { groups, block, pattern: at, most, depth, class_counts, work_left, list: Vec::new() };
            let start = Choice {
                numbers: Vec::new(),
                totals: Totals::default(),
                actions: 0,
                likelihood: 1.0,
                sums: Cow::Owned(Pmf::one(0, 1.0)),
            };
            walk.descend(&start)?;
            let choices = walk.list;
            let pattern = &mut block.patterns[at];
            (pattern.choices, pattern.depth) = (choices, depth);
        }
        Ok(())
    }

    /// `None` if the actions that the replies show are longer than any sum that matters.
    fn reading<'b>(&'b self, interpretation: usize, least_likely: f64, greatest: f64) -> Option<Reading<'b, 'a>> {
        let least = |choices: &Vec<&Choice<'a>>| choices.iter().map(|choice| choice.sums.least()).min();
        let likely = |block: &'b Block<'a>| -> Vec<&'b Choice<'a>> {
            let all = &block.patterns[block.pattern_of[interpretation]].choices;
            all.iter().filter(|choice| choice.likelihood >= least_likely).collect()
        };
        let mut choices: Vec<Vec<&Choice<'a>>> = self.blocks.iter().map(likely).collect();
        let base = choices.iter().map(least).try_fold(0_i64, |sum, least| sum.checked_add(least?))?;
        let room = self.sums[1].checked_sub(base).filter(|room| *room >= 0)?;
        for choices in &mut choices {
            let least = least(choices)?;
            choices.retain(|choice| choice.sums.least() - least <= room);
        }
        Some(Reading { choices, base, room, least_likely, greatest })
    }
}

impl State {
    /// Adds the sums of a choice and of what the blocks before may be, as far as there is room. The least of both together
    /// is `above` bytes above the first of the own weights.
    fn add_sums(&mut self, before: &[f64], choice: &Choice<'_>, above: usize, room: usize) {
        let end = (above + choice.sums.len() + before.len() - 1).min(room + 1);
        if self.weights.len() < end {
            self.weights.resize(end, 0.0);
        }
        for (sum, weight) in choice.sums.iter() {
            let at = above + (sum - choice.sums.least()) as usize;
            if at >= end {
                break;
            }
            let weight = choice.likelihood * weight;
            for (own, before) in self.weights[at..].iter_mut().zip(before) {
                *own += weight * before;
            }
        }
    }
}

impl<'a> Reading<'_, 'a> {
    /// The sums of all blocks by the totals of the inventory's classes, as far as there is room.
    fn convolved(&self, joint: &JointSums<'a>, work_left: &mut usize) -> Result<BTreeMap<Totals, State>, TooMuchWork> {
        // Most blocks have one choice.
        let mut start = State { actions: 0, likelihood: 1.0, weights: vec![1.0] };
        let (mut start_totals, mut several) = (Totals::default(), Vec::new());
        for choices in &self.choices {
            match &choices[..] {
                [Choice { totals, actions, likelihood, sums, .. }] if sums.len() == 1 => {
                    start.actions += actions;
                    start.likelihood *= likelihood;
                    start.weights[0] *= likelihood * sums.at(sums.least());
                    start_totals = start_totals + *totals;
                }
                _ => several.push(choices),
            }
        }
        let most_actions = joint.groups.number_weights.len();
        if start.likelihood < self.least_likely || start.actions >= most_actions {
            return Ok(BTreeMap::new());
        }
        let mut states = BTreeMap::from([(start_totals, start)]);
        for choices in several {
            let least = choices.iter().map(|choice| choice.sums.least()).min().unwrap_or(0);
            let mut next: BTreeMap<Totals, State> = BTreeMap::new();
            for (totals, state) in &states {
                for choice in choices {
                    let (actions, above) = (state.actions + choice.actions, choice.sums.least() - least);
                    let likelihood = state.likelihood * choice.likelihood;
                    if likelihood < self.least_likely || actions >= most_actions {
                        continue;
                    }
                    let products = state.weights.len() * choice.sums.len() + STEP_PRODUCTS;
                    *work_left = work_left.checked_sub(products).ok_or(TooMuchWork)?;
                    let joined = next.entry(*totals + choice.totals);
                    let joined = joined.or_insert_with(|| State { actions, likelihood, weights: Vec::new() });
                    joined.likelihood = joined.likelihood.max(likelihood);
                    joined.add_sums(&state.weights, choice, above as usize, self.room as usize);
                }
            }
            states = next;
        }
        Ok(states)
    }

    /// Visits all numbers of actions, given with the likelihood of the replies as a multiple of the unit.
    fn visit(
        &self,
        joint: &JointSums<'a>,
        work_left: &mut usize,
        visit: impl FnMut(&[u32], f64, usize, Totals),
    ) -> Result<(), TooMuchWork> {
        let numbers = vec![0; joint.groups.list.len()];
        let mut descent = Descent { reading: self, joint, work_left, numbers, visit };
        descent.descend(0, self.room, 1.0, 0, Totals::default())
    }
}

/// The walk through the choices of all blocks.
struct Descent<'c, 'b, 'a, V> {
    reading: &'c Reading<'b, 'a>,
    joint: &'c JointSums<'a>,
    work_left: &'c mut usize,
    numbers: Vec<u32>,
    visit: V,
}

impl<V: FnMut(&[u32], f64, usize, Totals)> Descent<'_, '_, '_, V> {
    fn descend(
        &mut self,
        at: usize,
        room: i64,
        likelihood: f64,
        actions: usize,
        totals: Totals,
    ) -> Result<(), TooMuchWork> {
        let (reading, joint) = (self.reading, self.joint);
        let Some(choices) = reading.choices.get(at) else {
            (self.visit)(&self.numbers, likelihood * reading.greatest, actions, totals);
            return Ok(());
        };
        let least = choices.iter().map(|choice| choice.sums.least()).min().unwrap_or(0);
        for choice in choices {
            *self.work_left = self.work_left.checked_sub(STEP_PRODUCTS).ok_or(TooMuchWork)?;
            let (likelihood, actions) = (likelihood * choice.likelihood, actions + choice.actions);
            let room = room - (choice.sums.least() - least);
            if room < 0 || likelihood < reading.least_likely || actions >= joint.groups.number_weights.len() {
                continue;
            }
            for (group, number) in joint.blocks[at].groups.iter().zip(&choice.numbers) {
                self.numbers[*group] = *number;
            }
            self.descend(at + 1, room, likelihood, actions, totals + choice.totals)?;
        }
        Ok(())
    }
}

/// The walk through the numbers of actions of a block.
struct Walk<'a, 'b> {
    groups: &'a Groups,
    block: &'b Block<'a>,
    pattern: usize,
    /// The greatest sum that matters.
    most: i64,
    /// Numbers whose replies are less likely by more nats are left out.
    depth: f64,
    class_counts: Vec<u32>,
    work_left: &'b mut usize,
    list: Vec<Choice<'a>>,
}

impl<'a> Walk<'a, '_> {
    /// Decides on one group of the block after the other, given the numbers before.
    fn descend(&mut self, before: &Choice<'a>) -> Result<(), TooMuchWork> {
        let at = before.numbers.len();
        let Some(group) = self.block.groups.get(at) else {
            let likelihood = self.ln_likelihood(at).exp();
            self.list.push(Choice { likelihood, ..before.clone() });
            return Ok(());
        };
        let group: &'a ActionGroup = &self.groups.list[*group];
        let start = self.class_counts.clone();
        for (number, own) in (0_u32..).zip(&group.sums) {
            let (least, actions) = (before.sums.least() + own.least(), before.actions + number as usize);
            if least > self.most || actions >= self.groups.number_weights.len() || own.is_empty() {
                break;
            }
            *self.work_left = self.work_left.checked_sub(STEP_PRODUCTS).ok_or(TooMuchWork)?;
            for (class, sent) in &group.sent {
                self.class_counts[*class] = start[*class] + sent * number;
            }
            let ln_likelihood = self.ln_likelihood(at + 1);
            if ln_likelihood < -self.depth {
                if self.is_beyond_help(group) {
                    break;
                }
                continue;
            }
            let is_alone = before.actions == 0;
            let choice = Choice {
                numbers: [&before.numbers[..], &[number]].concat(),
                totals: before.totals + self.groups.devices.totals_of(group.class, number),
                actions,
                likelihood: ln_likelihood.exp(),
                sums: if is_alone { Cow::Borrowed(own) } else { Cow::Owned(before.sums.convolve(own)) },
            };
            if at + 1 == self.block.groups.len() {
                self.list.push(choice);
            } else {
                self.descend(&choice)?;
            }
        }
        self.class_counts = start;
        Ok(())
    }

    /// At least the likelihood of the replies for the numbers so far and any numbers of the groups from `at` on, as the
    /// logarithm of a multiple of the greatest; exact where no group follows.
    fn ln_likelihood(&self, at: usize) -> f64 {
        let Walk { block, class_counts, .. } = self;
        let pattern = &block.patterns[self.pattern];
        let of_component = |(component, pattern): (&&Component, &usize)| {
            if at < block.groups.len() {
                component.ln_bound(*pattern, class_counts, &block.open[at])
            } else {
                component.ln_ways(*pattern, class_counts)
            }
        };
        block.components.iter().zip(&pattern.of_components).map(of_component).sum::<f64>() - pattern.ln_greatest
    }

    /// Whether more actions of a group only make the replies less likely.
    fn is_beyond_help(&self, group: &ActionGroup) -> bool {
        let is_beyond = |(component, pattern): (&&Component, &usize)| {
            let peak = component.peak(*pattern);
            let sends = |class: &usize| group.sent.iter().any(|(sent, _)| sent == class);
            component.classes().filter(sends).all(|class| self.class_counts[class] >= peak)
        };
        self.block.components.iter().zip(&self.block.patterns[self.pattern].of_components).all(is_beyond)
    }
}

/// The blocks of a home, given the classes of replies that have types in common.
fn blocks<'a>(groups: &Groups, seen: &'a SeenReplies) -> Vec<Block<'a>> {
    let sends = |group: &ActionGroup, component: &Component| {
        group.sent.iter().any(|(sent, _)| component.classes().any(|class| class == *sent))
    };
    let mut found: Vec<(Vec<usize>, Vec<&Component>)> =
        (0..groups.list.len()).map(|group| (vec![group], Vec::new())).collect();
    for component in seen.components() {
        let is_joined =
            |(own, _): &(Vec<usize>, Vec<&Component>)| own.iter().any(|at| sends(&groups.list[*at], component));
        let (joined, apart): (Vec<_>, Vec<_>) = found.into_iter().partition(is_joined);
        found = apart;
        let (own, mut also): (Vec<Vec<usize>>, Vec<Vec<&Component>>) = joined.into_iter().unzip();
        also.push(vec![component]);
        found.push((own.concat(), also.concat()));
    }
    let interpretations = seen.interpretations().len();
    found.into_iter().map(|(own, components)| Block::new(own, components, groups, interpretations)).collect()
}

impl<'a> Block<'a> {
    fn new(mut own: Vec<usize>, components: Vec<&'a Component>, groups: &Groups, interpretations: usize) -> Self {
        own.sort_unstable();
        let classes = groups.per_command.len();
        let mut open = vec![vec![false; classes]];
        for group in own.iter().rev() {
            let mut earlier = open.last().cloned().unwrap_or_default();
            for (class, _) in &groups.list[*group].sent {
                earlier[*class] = true;
            }
            open.push(earlier);
        }
        open.reverse();
        let (mut patterns, mut pattern_of): (Vec<Pattern<'a>>, Vec<usize>) = (Vec::new(), Vec::new());
        for interpretation in 0..interpretations {
            let of_components = || components.iter().map(|one| one.pattern_of(interpretation));
            let known = patterns.iter().position(|known| known.of_components.iter().copied().eq(of_components()));
            pattern_of.push(known.unwrap_or(patterns.len()));
            if known.is_none() {
                let of_components: Vec<usize> = of_components().collect();
                let ln_greatest = components.iter().zip(&of_components);
                let ln_greatest = ln_greatest.map(|(one, pattern)| ln_greatest_of(one, *pattern, classes)).sum();
                let (choices, depth) = (Vec::new(), f64::NEG_INFINITY);
                patterns.push(Pattern { of_components, ln_greatest, choices, depth });
            }
        }
        Self { groups: own, components, open, patterns, pattern_of }
    }
}

/// At least the logarithm of how likely some replies of a component are, whatever the actions.
fn ln_greatest_of(component: &Component, pattern: usize, classes: usize) -> f64 {
    let mut class_counts = vec![0; classes];
    let mut own = component.classes();
    let (Some(only), None) = (own.next(), own.next()) else {
        return component.ln_bound(pattern, &class_counts, &vec![true; classes]);
    };
    class_counts[only] = component.peak(pattern);
    component.ln_ways(pattern, &class_counts)
}
