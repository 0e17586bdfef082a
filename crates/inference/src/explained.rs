//! The numbers of actions of each group that explain the replies to a command, each with the sums that they have.
//!
//! One walk decides on one group after the other. Given one way to read the replies, how likely they are is a product of a
//! factor for each component of classes; a factor is known once the last group that sends its classes is decided on, and
//! cannot exceed its greatest before. So the sum over all ways to read the replies is bounded at each step, and few numbers
//! are left. How far down it has to go follows from what it found: numbers that are left out are all less likely than a
//! threshold, and their sizes have a known probability together.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sizeleak_model::{Component, Pmf, SeenReplies};

use crate::action_group::{ActionGroup, Groups};
use crate::device_limits::Totals;

/// What is left out of a probability is at most this share of it.
const LEFT_OUT: f64 = 1e-7;

/// By how much, in nats, the first threshold is below the greatest likelihood. A later one is set by what was found.
const FIRST_DEPTH: f64 = 20.0;

/// By how much thresholds go down while nothing is found, and how often.
const FURTHER_DEPTH: f64 = 40.0;
const MAX_DEPTHS: u32 = 8;

/// The most work for one command, in products of two weights: some milliseconds.
const MAX_PRODUCTS: usize = 1 << 24;

/// What a step costs, in products: half a million of them are allowed.
const STEP_PRODUCTS: usize = 32;

/// More work is needed than is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuchWork;

/// A sum that a command's actions may have, with its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedSum {
    /// Σ |aᵢ|·nᵢ in bytes: the command's size without overhead and ε.
    pub bytes: i64,
    /// P(ε) or a multiple of it, above 0.
    pub weight: f64,
}

/// Numbers of actions that explain the replies.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// By group.
    pub(crate) of_groups: Vec<u32>,
    /// How many replies of each class they should have.
    pub(crate) class_counts: Vec<u32>,
    /// P(replies | numbers) as a multiple of the unit.
    pub(crate) likelihood: f64,
    /// The prior without the weights of sums.
    pub(crate) prior: f64,
    /// The sums that they have, with their weights: all of those that were asked for.
    pub(crate) sums: Pmf,
}

impl Numbers {
    /// P(sums, replies) as a multiple of the unit, each sum with its weight.
    pub(crate) fn joint(&self, sums: &[WeightedSum]) -> f64 {
        let of_sums: f64 = sums.iter().map(|sum| sum.weight * self.sums.at(sum.bytes)).sum();
        self.likelihood * self.prior * of_sums
    }
}

/// Sums that are asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) sums: &'a [WeightedSum],
    /// Others in this range can be asked for later.
    pub(crate) range: [i64; 2],
    /// The probability that the sums have together, whatever the replies.
    pub(crate) without_replies: f64,
    /// The logarithm of a probability beside which they have to matter.
    pub(crate) ln_beside: f64,
}

/// All numbers of actions that matter for some sums, and the unit of likelihoods as a logarithm.
pub(crate) fn explained(
    groups: &Groups,
    seen: &SeenReplies,
    asked: Asked<'_>,
) -> Result<(Vec<Numbers>, f64), TooMuchWork> {
    let (mut walk, start, ln_unit) = Walk::new(groups, seen, asked.range);
    let beside = (asked.ln_beside - ln_unit).exp();
    let most = asked.without_replies * start.iter().sum::<f64>();
    if ln_unit == f64::NEG_INFINITY || most <= LEFT_OUT * beside {
        return Ok((Vec::new(), ln_unit));
    }
    // Infinite where nothing has been found.
    let enough = |found: f64| (asked.without_replies / (LEFT_OUT * found.max(beside))).ln();
    let mut depth = FIRST_DEPTH.min(enough(0.0));
    for _ in 0..MAX_DEPTHS {
        walk.least_likely = (-depth).exp();
        walk.found.clear();
        walk.begin(&start)?;
        let enough = enough(walk.found.iter().map(|numbers| numbers.joint(asked.sums)).sum());
        if enough <= depth {
            break;
        }
        depth = if enough.is_finite() { enough } else { depth + FURTHER_DEPTH };
    }
    Ok((walk.found, ln_unit))
}

/// The classes of a component with what is known of its replies.
struct Part<'a> {
    component: &'a Component,
    /// At least the logarithm of the likelihood of each pattern, for any numbers of actions.
    ln_greatest: Vec<f64>,
    /// The group, in the walk's order, behind which the component's numbers are known.
    complete_at: usize,
    /// The most replies of any pattern, and a number of replies of a class beyond which more only are less likely.
    most_seen: u32,
    peak: u32,
    /// How likely each pattern is at most, by how many replies of each class there should be and behind which group.
    known: HashMap<Vec<u32>, Vec<f64>, RandomState>,
    /// Room for a key.
    key: Vec<u32>,
}

/// The walk through the numbers of all groups.
struct Walk<'a> {
    groups: &'a Groups,
    /// The groups, those that send the same component side by side.
    order: Vec<usize>,
    parts: Vec<Part<'a>>,
    /// The parts whose classes each group sends, in the walk's order, and those that no group sends.
    sent_parts: Vec<Vec<usize>>,
    unsent_parts: Vec<usize>,
    /// Which classes of replies groups behind each one send, in the walk's order.
    open: Vec<Vec<bool>>,
    range: [i64; 2],
    /// Less likely numbers are left out.
    least_likely: f64,
    work_left: usize,
    class_counts: Vec<u32>,
    numbers: Vec<u32>,
    /// For each group, room for the terms behind it.
    room: Vec<Vec<f64>>,
    found: Vec<Numbers>,
}

/// What the groups decided on so far have.
#[derive(Clone, Copy)]
struct Decided<'b> {
    sums: &'b Pmf,
    totals: Totals,
    actions: usize,
    /// At least the likelihood of the replies in each interpretation, as a multiple of the unit.
    terms: &'b [f64],
}

impl<'a> Walk<'a> {
    /// The walk with the likelihood that each interpretation has at most, and their unit as a logarithm.
    fn new(groups: &'a Groups, seen: &'a SeenReplies, range: [i64; 2]) -> (Self, Vec<f64>, f64) {
        let sends = |group: &ActionGroup, component: &Component| {
            group.sent.iter().any(|(sent, _)| component.classes().any(|class| class == *sent))
        };
        let components = seen.components();
        let first_sent = |group: &usize| components.iter().position(|one| sends(&groups.list[*group], one));
        let mut order: Vec<usize> = (0..groups.list.len()).collect();
        order.sort_by_key(|group| first_sent(group).unwrap_or(usize::MAX));
        let in_order = || order.iter().map(|group| &groups.list[*group]);
        let sent_parts =
            |group: &ActionGroup| (0..components.len()).filter(|at| sends(group, &components[*at])).collect();
        let sent_parts: Vec<Vec<usize>> = in_order().map(sent_parts).collect();
        let unsent_parts =
            (0..components.len()).filter(|at| !sent_parts.iter().flatten().any(|sent| sent == at)).collect();
        let part = |(at, component): (usize, &'a Component)| {
            let complete_at = sent_parts.iter().rposition(|sent| sent.contains(&at)).unwrap_or(0);
            Part::new(component, complete_at, groups.per_command.len())
        };
        let parts: Vec<Part<'_>> = components.iter().enumerate().map(part).collect();
        let mut open = vec![vec![false; groups.per_command.len()]];
        for group in in_order().skip(1).rev() {
            let mut earlier = open.last().cloned().unwrap_or_default();
            group.sent.iter().for_each(|(class, _)| earlier[*class] = true);
            open.push(earlier);
        }
        open.reverse();
        let ln_term = |(at, ln_weight): (usize, f64)| {
            ln_weight + parts.iter().map(|part| part.ln_greatest[part.component.pattern_of(at)]).sum::<f64>()
        };
        let ln_weights = seen.interpretations().iter().map(|one| one.ln_weight);
        let ln_terms: Vec<f64> = ln_weights.enumerate().map(ln_term).collect();
        let ln_unit = ln_terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let terms = ln_terms.into_iter().map(|ln_term| (ln_term - ln_unit).exp()).collect();
        let walk = Self {
            groups,
            parts,
            sent_parts,
            unsent_parts,
            open,
            range,
            least_likely: 0.0,
            work_left: MAX_PRODUCTS,
            class_counts: groups.per_command.clone(),
            numbers: vec![0; order.len()],
            room: vec![Vec::new(); order.len()],
            found: Vec::new(),
            order,
        };
        (walk, terms, ln_unit)
    }

    fn begin(&mut self, terms: &[f64]) -> Result<(), TooMuchWork> {
        let mut terms = terms.to_vec();
        for at in 0..self.unsent_parts.len() {
            self.parts[self.unsent_parts[at]].multiply(&mut terms, 0, &self.class_counts);
        }
        let none = Pmf::one(0, 1.0);
        self.descend(0, Decided { sums: &none, totals: Totals::default(), actions: 0, terms: &terms })
    }

    /// Decides on one group after the other.
    fn descend(&mut self, level: usize, before: Decided<'_>) -> Result<(), TooMuchWork> {
        let groups = self.groups;
        let Some(at) = self.order.get(level).copied() else {
            self.push(before);
            return Ok(());
        };
        let group = &groups.list[at];
        let is_last = level + 1 == self.order.len();
        let mut terms = std::mem::take(&mut self.room[level]);
        for (number, own) in (0_u32..).zip(&group.sums) {
            let (least, actions) = (before.sums.least() + own.least(), before.actions + number as usize);
            if own.is_empty() || least > self.range[1] || actions >= groups.number_weights.len() {
                break;
            }
            if number > 0 {
                group.sent.iter().for_each(|(class, sent)| self.class_counts[*class] += sent);
            }
            self.numbers[at] = number;
            let products = STEP_PRODUCTS + before.sums.len() * own.len();
            self.work_left = self.work_left.checked_sub(products).ok_or(TooMuchWork)?;
            if is_last && before.sums.end() + own.end() - 1 <= self.range[0] {
                continue;
            }
            terms.clear();
            terms.extend_from_slice(before.terms);
            if self.weigh(level, &mut terms) < self.least_likely {
                if self.is_beyond_help(level, group) {
                    break;
                }
                continue;
            }
            let totals = before.totals + groups.devices.totals_of(group.class, number);
            let joined;
            let sums = if number == 0 {
                before.sums
            } else {
                // Behind the last group, smaller sums are not asked for.
                let least = if is_last { self.range[0] } else { 0 };
                joined = before.sums.convolve_between(own, least, self.range[1]);
                &joined
            };
            self.descend(level + 1, Decided { sums, totals, actions, terms: &terms })?;
        }
        let counted = self.numbers[at];
        group.sent.iter().for_each(|(class, sent)| self.class_counts[*class] -= sent * counted);
        self.numbers[at] = 0;
        self.room[level] = terms;
        Ok(())
    }

    fn push(&mut self, Decided { sums, totals, actions, terms }: Decided<'_>) {
        let prior = self.groups.number_weights[actions] * self.groups.devices.share_of(totals);
        if prior > 0.0 {
            let (of_groups, class_counts) = (self.numbers.clone(), self.class_counts.clone());
            let likelihood = terms.iter().sum();
            self.found.push(Numbers { of_groups, class_counts, likelihood, prior, sums: sums.clone() });
        }
    }

    /// Multiplies terms with what is known of the replies behind a group; returns what their sum is at most, whatever follows.
    fn weigh(&mut self, level: usize, terms: &mut [f64]) -> f64 {
        let mut least_sum = f64::INFINITY;
        for part in &self.sent_parts[level] {
            let part = &mut self.parts[*part];
            let is_complete = part.complete_at == level;
            let sent = || part.component.classes().map(|class| self.class_counts[class]).sum::<u32>();
            if !is_complete && sent() <= part.most_seen {
                continue;
            }
            if is_complete {
                part.multiply(terms, level, &self.class_counts);
                continue;
            }
            let component = part.component;
            let likelihoods = part.likelihoods(level, &self.class_counts, &self.open[level]);
            let bound = terms.iter().enumerate().map(|(at, term)| term * likelihoods[component.pattern_of(at)]).sum();
            least_sum = least_sum.min(bound);
        }
        least_sum.min(terms.iter().sum())
    }

    /// Whether more actions of a group only make the replies less likely.
    fn is_beyond_help(&self, level: usize, group: &ActionGroup) -> bool {
        let is_beyond = |(class, _): &(usize, u32)| {
            let of_class = |part: &&usize| self.parts[**part].component.classes().any(|own| own == *class);
            let part = self.sent_parts[level].iter().find(of_class);
            part.is_none_or(|part| self.class_counts[*class] >= self.parts[*part].peak)
        };
        group.sent.iter().all(is_beyond)
    }
}

impl<'a> Part<'a> {
    fn new(component: &'a Component, complete_at: usize, classes: usize) -> Self {
        let patterns = 0..component.patterns();
        let ln_greatest = patterns.clone().map(|pattern| ln_greatest_of(component, pattern, classes)).collect();
        let peak = patterns.clone().map(|pattern| component.peak(pattern)).max().unwrap_or(0);
        let most_seen = patterns.map(|pattern| component.replies(pattern)).max().unwrap_or(0);
        Self { component, ln_greatest, complete_at, most_seen, peak, known: HashMap::default(), key: Vec::new() }
    }

    /// Multiplies the terms of interpretations with how likely their patterns are, behind the last group that matters.
    fn multiply(&mut self, terms: &mut [f64], level: usize, class_counts: &[u32]) {
        let component = self.component;
        let likelihoods = self.likelihoods(level, class_counts, &[]);
        terms.iter_mut().enumerate().for_each(|(at, term)| *term *= likelihoods[component.pattern_of(at)]);
    }

    /// How likely each pattern is at most behind a group, as a multiple of its greatest; exact where the numbers are known.
    fn likelihoods(&mut self, level: usize, class_counts: &[u32], is_open: &[bool]) -> &[f64] {
        let component = self.component;
        self.key.clear();
        self.key.extend(component.classes().map(|class| class_counts[class]));
        self.key.push(level as u32);
        if !self.known.contains_key(&self.key) {
            let ln_likelihood = |pattern| {
                if level < self.complete_at {
                    component.ln_bound(pattern, class_counts, is_open)
                } else {
                    component.ln_ways(pattern, class_counts)
                }
            };
            let multiple = |(pattern, ln_greatest): (usize, &f64)| {
                if *ln_greatest > f64::NEG_INFINITY { (ln_likelihood(pattern) - ln_greatest).exp() } else { 0.0 }
            };
            let computed = self.ln_greatest.iter().enumerate().map(multiple).collect();
            self.known.insert(self.key.clone(), computed);
        }
        &self.known[&self.key]
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
