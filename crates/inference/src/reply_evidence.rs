//! The replies to a command as evidence of numbers of actions.
//!
//! Given one way to read the replies, how likely they are is a product of a factor for each component of classes; a factor
//! is known once the last group that sends its classes is decided on, and cannot exceed its greatest before. So the sum
//! over all ways to read the replies is bounded at each step.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sizeleak_model::{Component, SeenReplies};

use crate::action_group::{ActionGroup, Groups};
use crate::number_walk::Evidence;

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
}

/// The classes of a component with what is known of its replies.
struct Part<'a> {
    component: &'a Component,
    /// At least the logarithm of the likelihood of each pattern, for any numbers of actions.
    ln_greatest: Vec<f64>,
    /// The group behind which the component's numbers are known; the first one if none sends its classes.
    complete_at: usize,
    /// A number of replies of a class beyond which more only are less likely.
    peak: u32,
    /// Where it stands how likely each pattern is at most, as a multiple of its greatest, by how many replies of each class
    /// there should be and behind which group.
    known: HashMap<Vec<u32>, usize, RandomState>,
    computed: Vec<f64>,
    /// Room for a key.
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
        let mut evidence = Self { groups, parts, sent_parts, greatest: Vec::new(), ln_unit };
        for part in unsent {
            evidence.parts[part].multiply(&mut greatest, 0, &groups.per_command, &groups.open[0]);
        }
        Self { greatest, ..evidence }
    }
}

impl Evidence for ReplyEvidence<'_> {
    fn weigh(&mut self, group: usize, class_counts: &[u32], terms: &mut [f64]) -> f64 {
        let (open, mut least_sum) = (&self.groups.open[group], f64::INFINITY);
        for part in &self.sent_parts[group] {
            let part = &mut self.parts[*part];
            if part.complete_at == group {
                part.multiply(terms, group, class_counts, open);
                continue;
            }
            let component = part.component;
            let likelihoods = part.likelihoods(group, class_counts, open);
            let bound = terms.iter().enumerate().map(|(at, term)| term * likelihoods[component.pattern_of(at)]).sum();
            least_sum = least_sum.min(bound);
        }
        least_sum.min(terms.iter().sum())
    }

    fn is_beyond_help(&self, group: usize, class_counts: &[u32]) -> bool {
        let is_beyond = |(class, _): &(usize, u32)| {
            let has_class = |part: &&usize| self.parts[**part].component.classes().any(|own| own == *class);
            let part = self.sent_parts[group].iter().find(has_class);
            part.is_none_or(|part| class_counts[*class] >= self.parts[*part].peak)
        };
        self.groups.list[group].sent.iter().all(is_beyond)
    }
}

impl<'a> Part<'a> {
    fn new(component: &'a Component, complete_at: usize) -> Self {
        let patterns = 0..component.patterns();
        let ln_greatest = patterns.clone().map(|pattern| component.ln_greatest(pattern)).collect();
        let peak = patterns.map(|pattern| component.peak(pattern)).max().unwrap_or(0);
        let (known, computed, key) = (HashMap::default(), Vec::new(), Vec::new());
        Self { component, ln_greatest, complete_at, peak, known, computed, key }
    }

    /// Multiplies the terms of interpretations with how likely their patterns are, behind the last group that matters.
    fn multiply(&mut self, terms: &mut [f64], group: usize, class_counts: &[u32], is_open: &[bool]) {
        let component = self.component;
        let likelihoods = self.likelihoods(group, class_counts, is_open);
        terms.iter_mut().enumerate().for_each(|(at, term)| *term *= likelihoods[component.pattern_of(at)]);
    }

    /// How likely each pattern is at most behind a group, as a multiple of its greatest; exact where the numbers are known.
    fn likelihoods(&mut self, group: usize, class_counts: &[u32], is_open: &[bool]) -> &[f64] {
        let Self { component, ln_greatest, known, computed, key, .. } = self;
        key.clear();
        key.extend(component.classes().map(|class| class_counts[class]));
        key.push(group as u32);
        let place = known.get(&*key).copied().unwrap_or_else(|| {
            let place = computed.len();
            computed.extend(component.likelihoods(class_counts, is_open, ln_greatest));
            known.insert(key.clone(), place);
            place
        });
        &self.computed[place..place + self.ln_greatest.len()]
    }
}
