//! The numbers of actions of each group that matter beside some evidence, each with the sums that they have; and the
//! replies to a command as such evidence.
//!
//! One walk decides on one group after the other. How likely the evidence is at most, whatever follows, and how much of
//! the prior all that begins alike and ends at a sum that may be asked for has together, is known at each step. A step
//! whose product of both is below a threshold is not taken; what all these products are together is at most left out.
//! Where that may matter beside what was found, the walk is done again with a lower threshold.
//!
//! Given one way to read the replies, how likely they are is a product of a factor for each component of classes; a
//! factor is known once the last group that sends its classes is decided on, and cannot exceed its greatest before. So
//! the sum over all ways to read the replies is bounded at each step.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sizeleak_model::{Component, Pmf, SeenReplies};
use thiserror::Error;

use crate::action_group::{ActionGroup, Groups};

/// What is left out of a probability is at most this share of it.
const LEFT_OUT: f64 = 1e-7;

/// The first threshold, as a share of what there can be at most: mostly low enough. Where nothing is found it falls by as
/// much again, some times.
const FIRST_THRESHOLD: f64 = 1e-12;
const MAX_WALKS: u32 = 32;

/// A threshold that has left out too much falls at least by this factor.
const LEAST_FALL: f64 = 0.25;

/// The most work for one question, in products of two weights: some milliseconds.
const MAX_PRODUCTS: usize = 1 << 24;

/// What a step costs, in products: half a million of them are allowed.
const STEP_PRODUCTS: usize = 32;

/// The question is beyond what is computed; another way to the answer is needed.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    #[error("actions of {0} bytes may be more than are counted")]
    LargeSum(i64),
    #[error("the replies leave too many numbers of actions")]
    TooManyNumbers,
}

/// A sum that a command's actions may have, with its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedSum {
    /// Σ |aᵢ|·nᵢ in bytes: the command's size without overhead and ε.
    pub bytes: i64,
    /// P(ε) or a multiple of it, above 0.
    pub weight: f64,
}

/// Numbers of actions that explain the evidence.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// By group.
    pub(crate) of_groups: Vec<u32>,
    /// How many replies of each class they should have.
    pub(crate) class_counts: Vec<u32>,
    /// P(evidence | numbers) as a multiple of a unit.
    pub(crate) likelihood: f64,
    /// The prior without the weights of sums.
    pub(crate) prior: f64,
    /// The sums that they have, with their weights: all of those that were asked for.
    pub(crate) sums: Pmf,
}

impl Numbers {
    /// P(sums, evidence) as a multiple of the unit, each sum with its weight.
    pub(crate) fn joint(&self, sums: &[WeightedSum]) -> f64 {
        let of_sums: f64 = sums.iter().map(|sum| sum.weight * self.sums.at(sum.bytes)).sum();
        self.likelihood * self.prior * of_sums
    }
}

/// The terms of a likelihood, each times a factor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    each: &'a [f64],
    factor: f64,
    /// Without the factor.
    sum: f64,
}

impl<'a> Terms<'a> {
    pub(crate) fn new(each: &'a [f64]) -> Self {
        Self { each, factor: 1.0, sum: each.iter().sum() }
    }

    pub(crate) fn likelihood(self) -> f64 {
        self.factor * self.sum
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self { factor: self.factor * factor, ..self }
    }
}

/// What is known of a command's replies. Its likelihood is a sum of terms.
pub(crate) trait Evidence {
    /// The terms with what the numbers up to a group tell, and what their sum is at most, whatever follows. There is room for
    /// those that are not the same factor times the terms before.
    fn weigh<'r>(
        &mut self,
        group: usize,
        class_counts: &[u32],
        before: Terms<'r>,
        room: &'r mut Vec<f64>,
    ) -> (Terms<'r>, f64);

    /// Whether more actions of a group only make the evidence less likely.
    fn is_beyond_help(&self, group: usize, class_counts: &[u32]) -> bool;

    /// How many products of two weights all of this took so far, beside a step.
    fn products(&self) -> usize {
        0
    }
}

/// All numbers of actions that matter for some sums, given what the terms of the evidence are at most. Other sums in the range
/// can be asked for later. They have to matter beside a probability, as a multiple of the unit.
pub(crate) fn numbers(
    groups: &Groups,
    evidence: &mut impl Evidence,
    terms: Terms<'_>,
    (sums, range): (&[WeightedSum], [i64; 2]),
    beside: f64,
) -> Result<Vec<Numbers>, Beyond> {
    let none = Pmf::one(0, 1.0);
    let prior = groups.prior_behind(0, 0, &none, range);
    let heaviest = sums.iter().map(|sum| sum.weight).fold(0.0, f64::max);
    let most = prior * terms.likelihood();
    if most * heaviest <= LEFT_OUT * beside {
        return Ok(Vec::new());
    }
    let mut walk = Walk {
        groups,
        evidence,
        range,
        threshold: (FIRST_THRESHOLD * most).max(LEFT_OUT * beside / heaviest),
        left_out: 0.0,
        steps_left_out: 0,
        work_left: MAX_PRODUCTS,
        class_counts: groups.per_command.clone(),
        of_groups: vec![0; groups.list.len()],
        room: vec![Room::default(); groups.list.len()],
        found: Vec::new(),
    };
    for _ in 0..MAX_WALKS {
        walk.found.clear();
        (walk.left_out, walk.steps_left_out) = (0.0, 0);
        walk.descend(0, Decided { sums: &none, totals: 0, actions: 0, prior, terms })?;
        let found: f64 = walk.found.iter().map(|numbers| numbers.joint(sums)).sum();
        let may_be_left_out = LEFT_OUT * found.max(beside) / heaviest;
        if walk.left_out <= may_be_left_out {
            return Ok(walk.found);
        }
        let of_each = may_be_left_out / f64::from(walk.steps_left_out);
        walk.threshold *= if of_each > 0.0 { (of_each / walk.threshold).min(LEAST_FALL) } else { FIRST_THRESHOLD };
    }
    Err(Beyond::TooManyNumbers)
}

struct Walk<'a, E> {
    groups: &'a Groups,
    evidence: &'a mut E,
    range: [i64; 2],
    /// Steps that bring less are not taken.
    threshold: f64,
    /// What they bring together at most, and how many they are.
    left_out: f64,
    steps_left_out: u32,
    work_left: usize,
    class_counts: Vec<u32>,
    of_groups: Vec<u32>,
    /// For each group, room for what is known behind it.
    room: Vec<Room>,
    found: Vec<Numbers>,
}

#[derive(Debug, Clone, Default)]
struct Room {
    terms: Vec<f64>,
    sums: Pmf,
}

/// What the groups decided on so far have.
#[derive(Clone, Copy)]
struct Decided<'b> {
    sums: &'b Pmf,
    /// How many actions there are of each class of the inventory, as the digits of one number.
    totals: u128,
    actions: usize,
    /// What all that begins so has of the prior at most.
    prior: f64,
    /// The terms of the evidence at most.
    terms: Terms<'b>,
}

impl<E: Evidence> Walk<'_, E> {
    fn descend(&mut self, at: usize, before: Decided<'_>) -> Result<(), Beyond> {
        let groups = self.groups;
        let Some(group) = groups.list.get(at) else {
            self.push(before);
            return Ok(());
        };
        let is_last = at + 1 == groups.list.len();
        let Room { terms: mut room, sums: mut joined } = std::mem::take(&mut self.room[at]);
        for (number, own) in (0_u32..).zip(&group.sums) {
            let (least, actions) = (before.sums.least() + own.least(), before.actions + number as usize);
            if own.is_empty() || least > self.range[1] || actions >= groups.number_weights.len() {
                break;
            }
            if number > 0 {
                group.sent.iter().for_each(|(class, sent)| self.class_counts[*class] += sent);
            }
            self.of_groups[at] = number;
            self.work(STEP_PRODUCTS)?;
            if is_last && before.sums.end() + own.end() - 1 <= self.range[0] {
                continue;
            }
            let before_it = self.evidence.products();
            let (terms, likelihood) = self.evidence.weigh(at, &self.class_counts, before.terms, &mut room);
            self.work(self.evidence.products() - before_it)?;
            // This number and all further ones together have no more of the prior.
            let of_further = likelihood * before.prior;
            if of_further < self.threshold {
                self.leave_out(of_further);
                if self.evidence.is_beyond_help(at, &self.class_counts) {
                    break;
                }
                continue;
            }
            let sums = if number == 0 {
                before.sums
            } else {
                // Behind the last group, smaller sums are not asked for.
                let least = if is_last { self.range[0] } else { 0 };
                self.work(before.sums.iter().count() * own.len())?;
                joined.set_convolution([before.sums, own], least, self.range[1]);
                &joined
            };
            let prior = groups.prior_behind(at + 1, actions, sums, self.range);
            if likelihood * prior < self.threshold {
                self.leave_out(likelihood * prior);
                continue;
            }
            let totals = before.totals + groups.devices.totals_of(group.class, number);
            self.descend(at + 1, Decided { sums, totals, actions, prior, terms })?;
        }
        let counted = self.of_groups[at];
        group.sent.iter().for_each(|(class, sent)| self.class_counts[*class] -= sent * counted);
        self.of_groups[at] = 0;
        self.room[at] = Room { terms: room, sums: joined };
        Ok(())
    }

    fn work(&mut self, products: usize) -> Result<(), Beyond> {
        self.work_left = self.work_left.checked_sub(products).ok_or(Beyond::TooManyNumbers)?;
        Ok(())
    }

    fn leave_out(&mut self, joint: f64) {
        if joint > 0.0 {
            self.left_out += joint;
            self.steps_left_out += 1;
        }
    }

    fn push(&mut self, Decided { sums, totals, actions, terms, .. }: Decided<'_>) {
        let prior = self.groups.number_weights[actions] * self.groups.devices.share_of(totals);
        if prior > 0.0 {
            let (of_groups, class_counts) = (self.of_groups.clone(), self.class_counts.clone());
            let likelihood = terms.likelihood();
            self.found.push(Numbers { of_groups, class_counts, likelihood, prior, sums: sums.clone() });
        }
    }
}

/// The replies, with one term for each way to read them.
pub(crate) struct ReplyEvidence<'a> {
    groups: &'a Groups,
    parts: Vec<Part<'a>>,
    /// The parts whose classes each group sends.
    sent_parts: Vec<Vec<usize>>,
    /// What each term is at most, as a multiple of a unit.
    pub(crate) greatest: Vec<f64>,
    /// The logarithm of the unit; −∞ where nothing explains the replies.
    pub(crate) ln_unit: f64,
    /// How many products it took to say how likely patterns are.
    products: usize,
}

/// A group, and behind it: how many replies of each class there should be, and which classes may have more.
type Behind<'a> = (usize, &'a [u32], &'a [bool]);

/// The classes of a component with what is known of its replies.
struct Part<'a> {
    component: &'a Component,
    /// At least the logarithm of the likelihood of each pattern, for any numbers of actions.
    ln_greatest: Vec<f64>,
    /// The group behind which the component's numbers are known; the first one if none sends its classes.
    complete_at: usize,
    /// A number of replies of a class beyond which more only are less likely.
    peak: u32,
    /// Where it stands how likely each pattern is at most, as a multiple of its greatest: for the replies of the only class that
    /// there should be, before it is complete and behind the group; or by those of each class, and behind which group.
    known_of_one: [Vec<Option<usize>>; 2],
    known: HashMap<Vec<u32>, usize, RandomState>,
    computed: Vec<f64>,
    key: Vec<u32>,
}

impl<'a> ReplyEvidence<'a> {
    pub(crate) fn new(groups: &'a Groups, seen: &'a SeenReplies) -> Self {
        let sends = |group: &ActionGroup, component: &Component| {
            group.sent.iter().any(|(sent, _)| component.classes().any(|class| class == *sent))
        };
        let components = &seen.components;
        let sent_parts =
            |group: &ActionGroup| (0..components.len()).filter(|at| sends(group, &components[*at])).collect();
        let sent_parts: Vec<Vec<usize>> = groups.list.iter().map(sent_parts).collect();
        let last_sent = |part: &usize| sent_parts.iter().rposition(|sent| sent.contains(part));
        let part = |(at, component): (usize, &'a Component)| Part::new(component, last_sent(&at).unwrap_or(0));
        let parts: Vec<Part<'_>> = components.iter().enumerate().map(part).collect();
        let ln_term = |(at, ln_weight): (usize, f64)| {
            ln_weight + parts.iter().map(|part| part.ln_greatest[part.component.pattern_of(at)]).sum::<f64>()
        };
        let ln_weights = seen.interpretations.iter().map(|one| one.ln_weight);
        let ln_terms: Vec<f64> = ln_weights.enumerate().map(ln_term).collect();
        let ln_unit = ln_terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut greatest: Vec<f64> = ln_terms.into_iter().map(|ln_term| (ln_term - ln_unit).exp()).collect();
        let unsent: Vec<usize> = (0..components.len()).filter(|at| last_sent(at).is_none()).collect();
        let mut evidence = Self { groups, parts, sent_parts, greatest: Vec::new(), ln_unit, products: 0 };
        for part in unsent {
            evidence.parts[part].multiply(&mut greatest, (0, &groups.per_command, &groups.open[0]), &mut 0);
        }
        Self { greatest, ..evidence }
    }
}

impl Evidence for ReplyEvidence<'_> {
    fn weigh<'r>(
        &mut self,
        group: usize,
        class_counts: &[u32],
        before: Terms<'r>,
        room: &'r mut Vec<f64>,
    ) -> (Terms<'r>, f64) {
        let behind = (group, class_counts, &self.groups.open[group][..]);
        let (mut factor, mut sum, mut least) = (before.factor, before.sum, f64::INFINITY);
        let mut is_changed = false;
        for part in &self.sent_parts[group] {
            let part = &mut self.parts[*part];
            let (component, is_complete) = (part.component, part.complete_at == group);
            let likelihoods = part.likelihoods(behind, &mut self.products);
            // Most parts have one pattern only: no replies.
            if let [of_all] = likelihoods {
                if is_complete {
                    factor *= of_all;
                } else {
                    least = least.min(factor * of_all * sum);
                }
                continue;
            }
            let weigh = |(at, term): (usize, &f64)| term * likelihoods[component.pattern_of(at)];
            if !is_complete {
                let each = if is_changed { &room[..] } else { before.each };
                least = least.min(factor * each.iter().enumerate().map(weigh).sum::<f64>());
                continue;
            }
            if is_changed {
                room.iter_mut().enumerate().for_each(|(at, term)| *term = weigh((at, &*term)));
            } else {
                room.clear();
                room.extend(before.each.iter().enumerate().map(weigh));
                is_changed = true;
            }
            sum = room.iter().sum();
        }
        let terms = Terms { each: if is_changed { room } else { before.each }, factor, sum };
        (terms, least.min(terms.likelihood()))
    }

    fn is_beyond_help(&self, group: usize, class_counts: &[u32]) -> bool {
        let is_beyond = |(class, _): &(usize, u32)| {
            let has_class = |part: &&usize| self.parts[**part].component.classes().any(|own| own == *class);
            let part = self.sent_parts[group].iter().find(has_class);
            part.is_none_or(|part| class_counts[*class] >= self.parts[*part].peak)
        };
        self.groups.list[group].sent.iter().all(is_beyond)
    }

    fn products(&self) -> usize {
        self.products
    }
}

impl<'a> Part<'a> {
    fn new(component: &'a Component, complete_at: usize) -> Self {
        let patterns = 0..component.patterns();
        let ln_greatest = patterns.clone().map(|pattern| component.ln_greatest(pattern)).collect();
        let peak = patterns.map(|pattern| component.peak(pattern)).max().unwrap_or(0);
        let (known_of_one, known) = ([Vec::new(), Vec::new()], HashMap::default());
        Self { component, ln_greatest, complete_at, peak, known_of_one, known, computed: Vec::new(), key: Vec::new() }
    }

    /// Multiplies the terms of interpretations with how likely their patterns are, behind the last group that matters.
    fn multiply(&mut self, terms: &mut [f64], behind: Behind<'_>, products: &mut usize) {
        let component = self.component;
        let likelihoods = self.likelihoods(behind, products);
        terms.iter_mut().enumerate().for_each(|(at, term)| *term *= likelihoods[component.pattern_of(at)]);
    }

    /// How likely each pattern is at most behind a group, as a multiple of its greatest; exact where the numbers are known.
    fn likelihoods(&mut self, (group, class_counts, is_open): Behind<'_>, products: &mut usize) -> &[f64] {
        let Self { component, ln_greatest, known_of_one, known, computed, key, .. } = self;
        let mut compute = || {
            let (place, before) = (computed.len(), component.products());
            component.add_likelihoods(class_counts, is_open, ln_greatest, computed);
            *products += component.products() - before;
            place
        };
        let mut classes = component.classes();
        let place = if let (Some(class), None) = (classes.next(), classes.next()) {
            let (known, sent) = (&mut known_of_one[usize::from(is_open[class])], class_counts[class] as usize);
            known.resize(known.len().max(sent + 1), None);
            *known[sent].get_or_insert_with(compute)
        } else {
            key.clear();
            key.extend(component.classes().map(|class| class_counts[class]));
            key.push(group as u32);
            known.get(&*key).copied().unwrap_or_else(|| {
                let place = compute();
                known.insert(key.clone(), place);
                place
            })
        };
        &self.computed[place..place + self.ln_greatest.len()]
    }
}
