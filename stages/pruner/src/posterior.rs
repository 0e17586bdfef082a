//! Candidates weighed by the replies: P(candidate | replies) ∝ probability · P(replies | its number of actions).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sizeleak_frame::{Candidate, SharedList};
use sizeleak_model::Rank;

use crate::evidence::Evidence;

/// Probabilities that differ by less than this share are equal: they differ by rounding alone.
const EQUAL: f64 = 1e-9;

/// The candidates of a command with what the list leaves out.
#[derive(Debug)]
pub(crate) struct Distribution<'a> {
    listed: &'a SharedList<Candidate>,
    /// Those not left out yet: as they came, or once it was said which to keep, best first.
    weighed: Vec<Weighed>,
    /// The probability of all candidates that are not listed.
    unlisted: f64,
}

/// A listed candidate, by its place, and what its probability has become.
#[derive(Debug, Clone, Copy)]
struct Weighed {
    at: usize,
    probability: f64,
}

impl<'a> Distribution<'a> {
    /// The candidates as they came. Of a cut list, what the probabilities leave to 1 is that of the candidates not listed.
    pub(crate) fn new(listed: &'a SharedList<Candidate>, unlisted_count: u64) -> Self {
        let probabilities = listed.iter().map(|candidate| candidate.probability);
        let sound = probabilities.map(|given| if given.is_nan() { 0.0 } else { given.clamp(0.0, 1.0) });
        let weighed: Vec<Weighed> = sound.enumerate().map(|(at, probability)| Weighed { at, probability }).collect();
        let sum = sum(&weighed);
        let unlisted = if unlisted_count > 0 { (1.0 - sum).max(0.0) } else { 0.0 };
        Self { listed, weighed, unlisted }
    }

    /// How many candidates there still are.
    pub(crate) fn len(&self) -> usize {
        self.weighed.len()
    }

    /// Leaves out what is not wanted, and scales the probabilities of the rest to sum to 1.
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(&Candidate) -> bool) -> u64 {
        let before = self.weighed.len();
        self.weighed.retain(|weighed| self.listed.get(weighed.at).is_some_and(&mut wanted));
        let dropped = before - self.weighed.len();
        if dropped > 0 {
            self.normalise();
        }
        dropped as u64
    }

    /// Weighs each candidate by the evidence. What is not listed cannot be looked at: it weighs as much as `greatest`, the
    /// greatest likelihood it can have, so that what is said of the listed ones is never too much.
    pub(crate) fn weigh(&mut self, evidence: &mut Evidence<'_>, greatest: f64) {
        let candidates = self.weighed.iter().filter_map(|weighed| self.listed.get(weighed.at));
        let likelihoods: Vec<f64> = candidates.map(|candidate| evidence.likelihood(&candidate.actions)).collect();
        let unlisted = if self.unlisted > 0.0 { greatest } else { 0.0 };
        let top = likelihoods.iter().copied().fold(unlisted, f64::max);
        // Relative to the greatest: the least likelihoods would vanish in a product.
        for (weighed, likelihood) in self.weighed.iter_mut().zip(likelihoods) {
            weighed.probability *= likelihood / top;
        }
        if top > 0.0 {
            self.unlisted *= greatest / top;
        }
        self.normalise();
    }

    /// Puts the most probable candidates first, equal ones in the decomposer's order, and keeps the fewest that hold `keep`
    /// of the probability; those as probable as the last one kept are kept too, since nothing tells them apart. Their
    /// probabilities stay what they are among all candidates. Says whether the kept ones hold that much; if not, all that
    /// are listed are kept.
    pub(crate) fn keep(&mut self, keep: f64) -> Held {
        // Often a few of many are kept: no more are put in order than that.
        let all = std::mem::take(&mut self.weighed);
        let ranks = all.iter().zip(0..).map(|(weighed, place)| Reverse(Rank::new(weighed.probability, place)));
        let mut rest: BinaryHeap<Reverse<Rank>> = ranks.collect();
        let (mut held, mut last) = (0.0, f64::INFINITY);
        while let Some(weighed) = rest.pop().and_then(|Reverse(rank)| all.get(rank.place()))
            && (keep >= 1.0 || held < keep || weighed.probability >= last * (1.0 - EQUAL))
        {
            held += weighed.probability;
            last = weighed.probability;
            self.weighed.push(*weighed);
        }
        if keep < 1.0 && held >= keep { Held::Enough } else { Held::AllThereIs }
    }

    /// The candidates there still are, with their probabilities: the list itself where it is unchanged.
    pub(crate) fn candidates(&self) -> SharedList<Candidate> {
        let given = self.listed.iter().enumerate().map(|(at, candidate)| (at, candidate.probability.to_bits()));
        if given.eq(self.weighed.iter().map(|weighed| (weighed.at, weighed.probability.to_bits()))) {
            return self.listed.clone();
        }
        let reweighed = |weighed: &Weighed| {
            let Candidate { actions, epsilon, .. } = self.listed.get(weighed.at)?;
            Some(Candidate { actions: actions.clone(), epsilon: *epsilon, probability: weighed.probability })
        };
        let mut candidates = Vec::with_capacity(self.weighed.len());
        candidates.extend(self.weighed.iter().filter_map(reweighed));
        candidates.into()
    }

    /// Scales probabilities to sum to 1; where none is above 0, the listed ones share it.
    fn normalise(&mut self) {
        let total = sum(&self.weighed) + self.unlisted;
        let equal = 1.0 / self.weighed.len() as f64;
        for weighed in &mut self.weighed {
            weighed.probability = if total > 0.0 { weighed.probability / total } else { equal };
        }
        if total > 0.0 {
            self.unlisted /= total;
        }
    }
}

fn sum(weighed: &[Weighed]) -> f64 {
    weighed.iter().map(|weighed| weighed.probability).sum()
}

/// Whether the candidates that were kept hold what was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// They do: any other, listed or not, can be left out.
    Enough,
    /// They do not, though none was left out: candidates that are not listed have to be kept too.
    AllThereIs,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use sizeleak_frame::Actions;

    use super::*;
    use crate::testing::{command, model};

    fn listed(candidates: &[(u32, f64)]) -> SharedList<Candidate> {
        let candidate = |(actions, probability): &(u32, f64)| Candidate {
            actions: Actions::from(vec![(Arc::from("on"), *actions)]),
            epsilon: 0,
            probability: *probability,
        };
        candidates.iter().map(candidate).collect()
    }

    /// All candidates, best first.
    fn weighed(listed: &SharedList<Candidate>, unlisted_count: u64, replies: u32) -> Distribution<'_> {
        let mut distribution = Distribution::new(listed, unlisted_count);
        let model = model("[replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.01\n");
        let command = command(replies, 0);
        let mut evidence = Evidence::new(&model, &command).unwrap();
        let greatest = evidence.greatest(16);
        distribution.weigh(&mut evidence, greatest);
        assert_eq!(distribution.keep(1.0), Held::AllThereIs);
        distribution
    }

    fn totals(distribution: &Distribution<'_>) -> Vec<u32> {
        distribution.candidates().iter().map(|candidate| candidate.actions.count("on")).collect()
    }

    fn kept(candidates: &[(u32, f64)], replies: u32, keep: f64) -> Vec<u32> {
        let listed = listed(candidates);
        let mut distribution = weighed(&listed, 0, replies);
        distribution.keep(keep);
        totals(&distribution)
    }

    #[test]
    fn replies_change_the_order_and_the_unlikely_go() {
        let candidates = [(9, 0.5), (5, 0.25), (4, 0.25)];
        assert_eq!(kept(&candidates, 4, 0.5), [4]);
        assert_eq!(kept(&candidates, 4, 0.99), [4, 5]);
        assert_eq!(kept(&candidates, 4, 1.0), [4, 5, 9]);
    }

    #[test]
    fn the_least_likelihoods_do_not_vanish() {
        assert_eq!(totals(&weighed(&listed(&[(1, 0.5), (5, 0.5)]), 0, 100)), [5, 1]);
        let listed = listed(&[(1, 0.75), (5, 0.25)]);
        let beyond = weighed(&listed, 0, 4_000_000);
        assert_eq!((totals(&beyond), beyond.candidates()[0].probability), (vec![1, 5], 0.75), "as they came");
    }

    #[test]
    fn equals_stay_together_and_in_order() {
        assert_eq!(kept(&[(4, 0.2); 5], 4, 0.3).len(), 5);
        assert_eq!(kept(&[], 4, 0.9), [0_u32; 0]);
        assert_eq!(kept(&[(4, 0.0), (5, 0.0)], 4, 0.9).len(), 2);
    }

    #[test]
    fn what_is_not_listed_keeps_its_share() {
        let (half, nearly_all) = (listed(&[(4, 0.3), (5, 0.2)]), listed(&[(4, 0.9999), (5, 0.000_01)]));
        let mut cut = weighed(&half, 70, 4);
        assert!(cut.unlisted >= 0.5, "no evidence speaks against it");
        let listed: f64 = cut.candidates().iter().map(|candidate| candidate.probability).sum();
        assert!((listed + cut.unlisted - 1.0).abs() < 1e-12);
        assert_eq!((cut.keep(0.9), cut.len()), (Held::AllThereIs, 2));
        let mut nearly_whole = weighed(&nearly_all, 1, 4);
        assert_eq!((nearly_whole.keep(0.9), nearly_whole.len()), (Held::Enough, 1));
    }

    #[test]
    fn strange_probabilities_do_no_harm() {
        let strange = [(4, f64::NAN), (4, f64::INFINITY), (4, -1.0), (4, f64::NEG_INFINITY)];
        let total: f64 =
            weighed(&listed(&strange), 0, 4).candidates().iter().map(|candidate| candidate.probability).sum();
        assert!((total - 1.0).abs() < 1e-12);
        assert_eq!(kept(&strange, 4, 0.9).len(), 1);
    }

    proptest! {
        /// Fewest: no set with one candidate fewer holds as much, ties aside.
        #[test]
        fn the_kept_set_is_the_smallest_that_holds_enough(
            candidates in prop::collection::vec((1u32..8, 0.01f64..1.0), 1..30),
            replies in 0u32..8,
            keep in 0.01f64..0.9999,
        ) {
            let total: f64 = candidates.iter().map(|(_, weight)| weight).sum();
            let candidates: Vec<(u32, f64)> = candidates.iter().map(|(actions, weight)| (*actions, weight / total)).collect();
            let listed = listed(&candidates);
            let whole = weighed(&listed, 0, replies).candidates();
            let mut kept = weighed(&listed, 0, replies);
            prop_assert_eq!(kept.keep(keep), Held::Enough);
            let (number, kept) = (kept.len(), kept.candidates());
            prop_assert_eq!(&kept[..], &whole[..number]);
            let held: f64 = kept.iter().map(|candidate| candidate.probability).sum();
            prop_assert!(held >= keep);
            let least = kept[number - 1].probability;
            let above: f64 = kept.iter().map(|candidate| candidate.probability)
                .filter(|probability| *probability > least * (1.0 + 1e-6)).sum();
            prop_assert!(above < keep);
            if let Some(next) = whole.get(number) {
                prop_assert!(next.probability < least);
            }
        }
    }
}
