//! Candidates weighed by the replies: P(candidate | replies) ∝ probability · P(replies | its number of actions).

use sizeleak_frame::Candidate;

use crate::evidence::Evidence;

/// Probabilities that differ by less than this share are equal: they differ by rounding alone.
const EQUAL: f64 = 1e-9;

/// The candidates of a command with what the list leaves out.
#[derive(Debug, PartialEq)]
pub(crate) struct Distribution {
    pub(crate) candidates: Vec<Candidate>,
    /// The probability of all candidates that are not listed.
    pub(crate) unlisted: f64,
}

impl Distribution {
    /// The candidates as they came. Of a cut list, what the probabilities leave to 1 is that of the candidates not listed.
    pub(crate) fn new(mut candidates: Vec<Candidate>, unlisted_count: u64) -> Self {
        for candidate in &mut candidates {
            let probability = candidate.probability;
            candidate.probability = if probability.is_nan() { 0.0 } else { probability.clamp(0.0, 1.0) };
        }
        let listed: f64 = candidates.iter().map(|candidate| candidate.probability).sum();
        let unlisted = if unlisted_count > 0 { (1.0 - listed).max(0.0) } else { 0.0 };
        Self { candidates, unlisted }
    }

    /// Leaves out what is not wanted, and scales the probabilities of the rest to sum to 1.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&Candidate) -> bool) -> u64 {
        let before = self.candidates.len();
        self.candidates.retain(wanted);
        let dropped = before - self.candidates.len();
        if dropped > 0 {
            self.normalise();
        }
        dropped as u64
    }

    /// Weighs each candidate by the evidence and puts the most probable first; equal ones stay in the decomposer's order.
    /// What is not listed cannot be looked at: it weighs as much as `greatest`, the greatest likelihood it can have, so
    /// that what is said of the listed ones is never too much.
    pub(crate) fn weigh(&mut self, evidence: &mut Evidence<'_>, greatest: f64) {
        let mut top = if self.unlisted > 0.0 { greatest } else { 0.0 };
        let mut likelihood = |candidate: &Candidate| evidence.likelihood(&candidate.actions);
        for candidate in &self.candidates {
            top = top.max(likelihood(candidate));
        }
        // Relative to the greatest: the least likelihoods would vanish in a product.
        for candidate in &mut self.candidates {
            candidate.probability *= likelihood(candidate) / top;
        }
        if top > 0.0 {
            self.unlisted *= greatest / top;
        }
        self.normalise();
        self.candidates.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    }

    /// Keeps the fewest candidates, most probable first, that hold `keep` of the probability; those as probable as the
    /// last one kept are kept too, since nothing tells them apart. Their probabilities stay what they are among all
    /// candidates. Says whether the kept ones hold that much; if not, all that are listed are kept.
    pub(crate) fn keep(&mut self, keep: f64) -> Held {
        let (mut held, mut last) = (0.0, f64::INFINITY);
        let kept = self.candidates.iter().take_while(|candidate| {
            let wanted = keep >= 1.0 || held < keep || candidate.probability >= last * (1.0 - EQUAL);
            if wanted {
                held += candidate.probability;
                last = candidate.probability;
            }
            wanted
        });
        let kept = kept.count();
        self.candidates.truncate(kept);
        if keep < 1.0 && held >= keep { Held::Enough } else { Held::AllThereIs }
    }

    /// Scales probabilities to sum to 1; where none is above 0, the listed ones share it.
    fn normalise(&mut self) {
        let listed: f64 = self.candidates.iter().map(|candidate| candidate.probability).sum();
        let total = listed + self.unlisted;
        let equal = 1.0 / self.candidates.len() as f64;
        for candidate in &mut self.candidates {
            candidate.probability = if total > 0.0 { candidate.probability / total } else { equal };
        }
        if total > 0.0 {
            self.unlisted /= total;
        }
    }
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

    fn distribution(candidates: &[(u32, f64)], unlisted_count: u64) -> Distribution {
        let candidate = |(actions, probability): &(u32, f64)| Candidate {
            actions: Actions(vec![(Arc::from("on"), *actions)]),
            epsilon: 0,
            probability: *probability,
        };
        Distribution::new(candidates.iter().map(candidate).collect(), unlisted_count)
    }

    fn weighed(candidates: &[(u32, f64)], unlisted_count: u64, replies: u32) -> Distribution {
        let mut distribution = distribution(candidates, unlisted_count);
        let model = model("[replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.01\n");
        let command = command(replies, 0);
        let mut evidence = Evidence::new(&model, &command).unwrap();
        let greatest = evidence.greatest(16);
        distribution.weigh(&mut evidence, greatest);
        distribution
    }

    fn totals(distribution: &Distribution) -> Vec<u32> {
        distribution.candidates.iter().map(|candidate| candidate.actions.count("on")).collect()
    }

    fn kept(candidates: &[(u32, f64)], replies: u32, keep: f64) -> Vec<u32> {
        let mut distribution = weighed(candidates, 0, replies);
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
        assert_eq!(totals(&weighed(&[(1, 0.5), (5, 0.5)], 0, 100)), [5, 1]);
        let beyond = weighed(&[(1, 0.75), (5, 0.25)], 0, 4_000_000);
        assert_eq!((totals(&beyond), beyond.candidates[0].probability), (vec![1, 5], 0.75), "as they came");
    }

    #[test]
    fn equals_stay_together_and_in_order() {
        assert_eq!(kept(&[(4, 0.2); 5], 4, 0.3).len(), 5);
        assert_eq!(kept(&[], 4, 0.9), [0_u32; 0]);
        assert_eq!(kept(&[(4, 0.0), (5, 0.0)], 4, 0.9).len(), 2);
    }

    #[test]
    fn what_is_not_listed_keeps_its_share() {
        let mut cut = weighed(&[(4, 0.3), (5, 0.2)], 70, 4);
        assert!(cut.unlisted >= 0.5, "no evidence speaks against it");
        let listed: f64 = cut.candidates.iter().map(|candidate| candidate.probability).sum();
        assert!((listed + cut.unlisted - 1.0).abs() < 1e-12);
        assert_eq!((cut.keep(0.9), cut.candidates.len()), (Held::AllThereIs, 2));
        let mut nearly_whole = weighed(&[(4, 0.9999), (5, 0.000_01)], 1, 4);
        assert_eq!((nearly_whole.keep(0.9), nearly_whole.candidates.len()), (Held::Enough, 1));
    }

    #[test]
    fn strange_probabilities_do_no_harm() {
        let strange = [(4, f64::NAN), (4, f64::INFINITY), (4, -1.0), (4, f64::NEG_INFINITY)];
        let total: f64 = weighed(&strange, 0, 4).candidates.iter().map(|candidate| candidate.probability).sum();
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
            let whole = weighed(&candidates, 0, replies);
            let mut kept = weighed(&candidates, 0, replies);
            prop_assert_eq!(kept.keep(keep), Held::Enough);
            let number = kept.candidates.len();
            prop_assert_eq!(&kept.candidates[..], &whole.candidates[..number]);
            let held: f64 = kept.candidates.iter().map(|candidate| candidate.probability).sum();
            prop_assert!(held >= keep);
            let least = kept.candidates[number - 1].probability;
            let above: f64 = kept.candidates.iter().map(|candidate| candidate.probability)
                .filter(|probability| *probability > least * (1.0 + 1e-6)).sum();
            prop_assert!(above < keep);
            if let Some(next) = whole.candidates.get(number) {
                prop_assert!(next.probability < least);
            }
        }
    }
}
