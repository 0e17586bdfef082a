//! The likelihood of the replies to one command for many numbers of replies that should come, as a search over actions
//! asks for it.
//!
//! Likelihoods are products of one factor for each component of each interpretation. Factors depend on few numbers, and are
//! computed once: a component of one class has a table by their number. All are multiples of their greatest, so that
//! products are from 0 to 1.

use std::collections::HashMap;

use super::interpretation::Interpretation;
use super::likelihood_bound::peak;
use super::seen_replies::{ClassShares, Component, SeenReplies};

/// The most numbers of replies of joint classes whose factors are kept.
const MAX_KNOWN: usize = 1 << 12;

/// Factors of the interpretations of one command's replies.
#[derive(Debug)]
pub struct LikelihoodTable<'a> {
    seen: &'a SeenReplies,
    ln_unit: f64,
    /// The weight of each interpretation, as a multiple of the unit.
    weights: Vec<f64>,
    factors: Vec<ComponentFactors>,
}

/// Factors of one component.
#[derive(Debug)]
struct ComponentFactors {
    /// For each interpretation which of the patterns it has.
    pattern_of: Vec<usize>,
    /// How many replies of each of the component's types interpretations have, each once.
    patterns: Vec<Pattern>,
    by_numbers: FactorsByNumbers,
}

/// Replies of a component's types.
#[derive(Debug)]
struct Pattern {
    /// An interpretation that has them.
    example: usize,
    places: u32,
    /// The logarithm of the greatest factor.
    ln_greatest: f64,
}

#[derive(Debug)]
enum FactorsByNumbers {
    /// The factors of each pattern, by the number of replies of the only class: of exactly that many, and the greatest of
    /// that many or more.
    OneClass { class: usize, exact: Vec<Vec<f64>>, open: Vec<Vec<f64>> },
    /// Those known so far, by the numbers of replies of each class with whether there may be more; and the last ones asked
    /// for.
    Joint { known: HashMap<Vec<(u32, bool)>, Vec<f64>>, current: Vec<(u32, bool)> },
}

impl<'a> LikelihoodTable<'a> {
    /// A table for up to `most` replies of each class.
    pub fn new(seen: &'a SeenReplies, most: u32) -> Self {
        let factors: Vec<ComponentFactors> =
            seen.components.iter().map(|component| ComponentFactors::new(component, seen, most)).collect();
        let ln_weight = |(index, interpretation): (usize, &Interpretation)| {
            let of_components = factors.iter().filter_map(|factors| factors.pattern(index));
            interpretation.ln_weight + of_components.map(|pattern| pattern.ln_greatest).sum::<f64>()
        };
        let ln_weights: Vec<f64> = seen.interpretations.iter().enumerate().map(ln_weight).collect();
        let ln_unit = ln_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights = ln_weights.into_iter().map(|ln_weight| (ln_weight - ln_unit).exp()).collect();
        Self { seen, ln_unit, weights, factors }
    }

    /// The logarithm of the likelihood that the others are multiples of; −∞ if the replies are impossible.
    pub fn ln_unit(&self) -> f64 {
        self.ln_unit
    }

    /// All interpretations.
    pub fn interpretations(&self) -> Vec<usize> {
        (0..self.weights.len()).collect()
    }

    /// A number of replies of a class from which on further ones only make the replies less likely, whatever the numbers
    /// of other classes.
    pub fn most_helpful(&self, class: usize) -> u32 {
        let of = |(component, factors): (&Component, &ComponentFactors)| {
            component.classes.iter().find(|own| own.class == class)?;
            let missing = component.classes.iter().map(|own| own.missing).fold(0.0, f64::max);
            factors.patterns.iter().map(|pattern| peak(pattern.places, missing)).max()
        };
        self.seen.components.iter().zip(&self.factors).find_map(of).unwrap_or(0)
    }

    /// At least P(replies | numbers of each class) for all numbers that are those given, or more in the classes that are
    /// open, by some of the interpretations; exact if none is open. With it come the interpretations without which it
    /// is less by at most `least`.
    pub fn likely(
        &mut self,
        class_counts: &[u32],
        is_open: &[bool],
        interpretations: &[usize],
        least: f64,
    ) -> (Vec<usize>, f64) {
        for (factors, component) in self.factors.iter_mut().zip(&self.seen.components) {
            factors.prepare(component, self.seen, class_counts, is_open);
        }
        let current: Vec<(&[usize], &[f64])> =
            self.factors.iter().map(|factors| factors.current(class_counts, is_open)).collect();
        let least = least / interpretations.len().max(1) as f64;
        let (mut likely, mut sum) = (Vec::with_capacity(interpretations.len()), 0.0);
        for index in interpretations {
            let mut likelihood = self.weights.get(*index).copied().unwrap_or(0.0);
            for (pattern_of, factors) in &current {
                let pattern = pattern_of.get(*index).copied().unwrap_or(usize::MAX);
                likelihood *= factors.get(pattern).copied().unwrap_or(0.0);
            }
            sum += likelihood;
            if likelihood > least {
                likely.push(*index);
            }
        }
        (likely, sum)
    }
}

impl ComponentFactors {
    fn new(component: &Component, seen: &SeenReplies, most: u32) -> Self {
        let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
        let (mut pattern_of, mut patterns) = (Vec::new(), Vec::new());
        let classes = component.classes.iter().map(|class| class.class + 1).max().unwrap_or(0);
        for (example, interpretation) in seen.interpretations.iter().enumerate() {
            let of_types = component.types.iter().map(|at| interpretation.replies.get(*at).copied().unwrap_or(0));
            let of_types: Vec<u32> = of_types.collect();
            let places = of_types.iter().sum();
            pattern_of.push(*known.entry(of_types).or_insert_with(|| {
                let none = vec![0; classes];
                let ln_greatest = component.ln_bound(&interpretation.replies, &none, &vec![true; classes]);
                patterns.push(Pattern { example, places, ln_greatest });
                patterns.len() - 1
            }));
        }
        let by_numbers = match &component.classes[..] {
            [class] => one_class(class, &patterns, most),
            _ => FactorsByNumbers::Joint { known: HashMap::new(), current: Vec::new() },
        };
        Self { pattern_of, patterns, by_numbers }
    }

    fn pattern(&self, interpretation: usize) -> Option<&Pattern> {
        self.pattern_of.get(interpretation).and_then(|pattern| self.patterns.get(*pattern))
    }

    /// Computes the factors for these numbers, if they are not known.
    fn prepare(&mut self, component: &Component, seen: &SeenReplies, class_counts: &[u32], is_open: &[bool]) {
        let FactorsByNumbers::Joint { known, current } = &mut self.by_numbers else { return };
        current.clear();
        current.extend(component.classes.iter().map(|class| {
            let number = class_counts.get(class.class).copied().unwrap_or(0);
            (number, is_open.get(class.class).copied().unwrap_or(false))
        }));
        if known.contains_key(current) {
            return;
        }
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        let is_any_open = current.iter().any(|(_, is_open)| *is_open);
        let factor = |Pattern { example, ln_greatest, .. }: &Pattern| {
            let replies = seen.interpretations.get(*example).map(|one| one.replies.as_slice()).unwrap_or_default();
            let ln_factor = if is_any_open {
                component.ln_bound(replies, class_counts, is_open)
            } else {
                component.ln_ways(replies, class_counts)
            };
            (ln_factor - ln_greatest).exp()
        };
        known.insert(current.clone(), self.patterns.iter().map(factor).collect());
    }

    /// For each interpretation its pattern, and for each pattern its factor, after [`Self::prepare`].
    fn current(&self, class_counts: &[u32], is_open: &[bool]) -> (&[usize], &[f64]) {
        let factors = match &self.by_numbers {
            FactorsByNumbers::OneClass { class, exact, open } => {
                let is_open = is_open.get(*class).copied().unwrap_or(false);
                let number = class_counts.get(*class).copied().unwrap_or(0) as usize;
                let by_number = if is_open { open } else { exact };
                by_number.get(number).or(by_number.last())
            }
            FactorsByNumbers::Joint { known, current } => known.get(current),
        };
        (&self.pattern_of, factors.map(Vec::as_slice).unwrap_or_default())
    }
}

/// The factors of a component of one class, by the number of its replies.
fn one_class(class: &ClassShares, patterns: &[Pattern], most: u32) -> FactorsByNumbers {
    let exact: Vec<Vec<f64>> = patterns.iter().map(|pattern| by_number(pattern.places, class.missing, most)).collect();
    let open_of = |(pattern, exact): (&Pattern, &Vec<f64>)| -> Vec<f64> {
        let greatest = peak(pattern.places, class.missing) as usize;
        let at_least = |(number, exact): (usize, &f64)| if number < greatest { 1.0 } else { *exact };
        exact.iter().enumerate().map(at_least).collect()
    };
    let open: Vec<Vec<f64>> = patterns.iter().zip(&exact).map(open_of).collect();
    let of_number = |of_patterns: &[Vec<f64>], number: usize| -> Vec<f64> {
        of_patterns.iter().map(|factors| factors.get(number).copied().unwrap_or(0.0)).collect()
    };
    let numbers = 0..=most as usize;
    FactorsByNumbers::OneClass {
        class: class.class,
        exact: numbers.clone().map(|number| of_number(&exact, number)).collect(),
        open: numbers.map(|number| of_number(&open, number)).collect(),
    }
}

/// How likely it is that exactly `places` replies come, by the number of those that should, from 0 up to `most` or more;
/// as multiples of the greatest.
fn by_number(places: u32, missing: f64, most: u32) -> Vec<f64> {
    // One more makes it as much likelier as there are more orders, and one more is missing.
    let more = |number: u32| f64::from(number + 1) / f64::from(number + 1 - places) * missing;
    let greatest = peak(places, missing);
    let below = (places..greatest).rev().scan(1.0, |factor: &mut f64, number| {
        *factor /= more(number);
        Some(*factor)
    });
    let mut factors: Vec<f64> = below.chain((0..places).map(|_| 0.0)).collect();
    factors.reverse();
    factors.push(1.0);
    factors.extend((greatest..most.max(greatest)).scan(1.0, |factor: &mut f64, number| {
        *factor *= more(number);
        Some(*factor)
    }));
    factors
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::single_replies::{ReplyClass, SingleReplies};

    fn home(missing: f64, unseen: f64) -> SingleReplies {
        let class = |sizes: &[(i64, u64)]| ReplyClass { missing, unseen, sizes: sizes.to_vec() };
        SingleReplies {
            merged: 0.02,
            shared: 0,
            foreign: 0.01,
            foreign_sizes: vec![(160, 3)],
            per_command: vec![0; 3],
            per_action: Vec::new(),
            classes: vec![class(&[(90, 50)]), class(&[(95, 30), (96, 10)]), class(&[(94, 8)])],
        }
    }

    proptest! {
        #[test]
        fn no_numbers_are_likelier_than_the_bound(
            least in prop::collection::vec(0u32..4, 3),
            more in prop::collection::vec(0u32..6, 3),
            is_open in prop::collection::vec(any::<bool>(), 3),
            missing in prop::sample::select(vec![0.0, 0.02, 0.4]),
            unseen in prop::sample::select(vec![0.0, 0.01]),
            records in prop::collection::vec(prop::sample::select(vec![90, 94, 95, 96, 160, 185]), 0..6),
        ) {
            let ranges: Vec<[i64; 2]> = records.iter().map(|size| [*size; 2]).collect();
            let seen = SeenReplies::new(&home(missing, unseen), &ranges);
            let counts: Vec<u32> = least.iter().zip(&more).zip(&is_open)
                .map(|((least, more), is_open)| least + if *is_open { *more } else { 0 }).collect();
            let mut table = LikelihoodTable::new(&seen, 40);
            let all = table.interpretations();
            let bound = table.likely(&least, &is_open, &all, 0.0).1.ln() + table.ln_unit();
            let ln_likelihood = seen.ln_likelihood(&counts);
            prop_assert!(ln_likelihood <= bound + 1e-9, "{ln_likelihood} {bound}");
            let exact = table.likely(&counts, &[false; 3], &all, 0.0).1.ln() + table.ln_unit();
            prop_assert!((exact.exp() - ln_likelihood.exp()).abs() <= 1e-9 * ln_likelihood.exp(), "{exact} {ln_likelihood}");
            let likely = table.likely(&least, &is_open, &all, 1e-3).0;
            let of_likely = table.likely(&counts, &[false; 3], &likely, 0.0).1.ln() + table.ln_unit();
            let left_out = ln_likelihood.exp() - of_likely.exp();
            prop_assert!(left_out <= 1.001e-3 * table.ln_unit().exp(), "{left_out}");
        }

        #[test]
        fn beyond_the_most_helpful_number_replies_only_become_less_likely(
            counts in prop::collection::vec(0u32..4, 3),
            class in 0usize..3,
            is_open in prop::collection::vec(any::<bool>(), 3),
            missing in prop::sample::select(vec![0.02, 0.4, 0.9]),
            unseen in prop::sample::select(vec![0.0, 0.01]),
            records in prop::collection::vec(prop::sample::select(vec![90, 94, 95, 96, 160, 185]), 0..6),
        ) {
            let ranges: Vec<[i64; 2]> = records.iter().map(|size| [*size; 2]).collect();
            let seen = SeenReplies::new(&home(missing, unseen), &ranges);
            let mut table = LikelihoodTable::new(&seen, 40);
            let all = table.interpretations();
            let from = table.most_helpful(class);
            let mut before = f64::INFINITY;
            for number in from..from + 6 {
                let mut counts = counts.clone();
                counts[class] = number;
                let bound = table.likely(&counts, &is_open, &all, 0.0).1;
                prop_assert!(bound <= before * (1.0 + 1e-9), "{bound} {before}");
                before = bound;
            }
        }
    }
}
