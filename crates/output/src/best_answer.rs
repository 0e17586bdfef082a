//! The best answer to a command, as people read it.

use std::collections::BTreeMap;

use sizeleak_frame::{Actions, Candidate, Identification};

/// How uncertain habits are before anything is seen: the standard deviation of the logarithm by which a home uses an
/// action more or less than its labels say, as answers take it (`docs/method.md`).
const HABITS: f64 = 0.7;

/// Habits that are further from the learned ones than so many standard deviations are not reckoned with.
const DEVIATIONS: f64 = 2.0;

/// Two likelihoods that differ by a smaller part differ by rounding.
const ROUNDING: f64 = 1e-9;

/// The most probable actions, with their twin: what explains the command as well, to the last byte, and would be as
/// probable by other habits. What is seen of a home never tells twins apart, so neither is the answer, but both.
pub(crate) struct BestAnswer<'a> {
    pub(crate) first: &'a Candidate,
    /// `None` where there are several: then the probability of the first says how little is known.
    pub(crate) twin: Option<&'a Candidate>,
}

impl<'a> BestAnswer<'a> {
    /// `None` if nothing explains the command.
    pub(crate) fn new(identification: &'a Identification) -> Option<Self> {
        let (first, others) = identification.candidates.split_first()?;
        let mut twins = others.iter().filter(|other| are_twins(first, other));
        let twin = twins.next().filter(|_| twins.next().is_none());
        Some(Self { first, twin })
    }

    /// How probable it is that the command carried one of these, from 0 to 1.
    pub(crate) fn probability(&self) -> f64 {
        self.first.probability + self.twin.map_or(0.0, |twin| twin.probability)
    }

    /// The actions of both, in the words of `name`, as `1 colour, 1 off or 1 timer, 1 white`.
    pub(crate) fn words(&self, name: impl Fn(&Actions) -> String) -> String {
        let first = name(&self.first.actions);
        self.twin.map_or_else(|| first.clone(), |twin| format!("{first} or {}", name(&twin.actions)))
    }
}

fn are_twins(one: &Candidate, other: &Candidate) -> bool {
    let (Some(seen), Some(of_other)) = (one.likelihood, other.likelihood) else { return false };
    if (seen - of_other).abs() > ROUNDING * seen {
        return false;
    }
    // As the likelihoods are equal, the ratio of the probabilities is that of the priors. Its logarithm is uncertain by that
    // of each action by which they differ.
    let mut apart: BTreeMap<&str, i64> = BTreeMap::new();
    for (actions, sign) in [(&one.actions, 1), (&other.actions, -1)] {
        for (name, count) in actions.iter() {
            *apart.entry(name).or_default() += sign * i64::from(count);
        }
    }
    let squares: f64 = apart.values().map(|count| (*count as f64).powi(2)).sum();
    (one.probability / other.probability).ln().abs() <= DEVIATIONS * HABITS * squares.sqrt()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::Command;

    use super::*;

    fn candidate(actions: &[(&str, u32)], probability: f64, likelihood: Option<f64>) -> Candidate {
        let actions = actions.iter().map(|(name, count)| (Arc::from(*name), *count)).collect();
        Candidate { actions, epsilon: 0, probability, likelihood }
    }

    fn words(candidates: &[Candidate]) -> String {
        let candidates = candidates.iter().cloned().collect();
        let answer = Identification { candidates, ..Identification::unanswered(Command::default()) };
        let best = BestAnswer::new(&answer).unwrap();
        let named = |actions: &Actions| {
            let each: Vec<String> = actions.iter().map(|(name, count)| format!("{count} {name}")).collect();
            each.join(", ")
        };
        format!("{:.2} {}", best.probability(), best.words(named))
    }

    #[test]
    fn a_twin_is_named_beside_the_most_probable_actions() {
        let off = candidate(&[("colour", 1), ("off", 1)], 0.5, Some(0.25));
        let timer = candidate(&[("timer", 1), ("white", 1)], 0.3, Some(0.25 * (1.0 + 1e-13)));
        let less = candidate(&[("on", 2)], 0.2, Some(0.2));
        let pair = "0.80 1 colour, 1 off or 1 timer, 1 white";
        assert_eq!(words(&[off.clone(), timer.clone(), less.clone()]), pair);
        assert_eq!(words(&[off.clone(), less.clone(), timer.clone()]), pair, "wherever it stands");
        assert_eq!(words(&[off.clone(), less]), "0.50 1 colour, 1 off", "another likelihood");
        let third = candidate(&[("toggle", 2)], 0.1, Some(0.25));
        assert_eq!(words(&[off, timer, third]), "0.50 1 colour, 1 off", "several are as likely");
        let unknown = [0.6, 0.4].map(|probability| candidate(&[("on", 1)], probability, None));
        assert_eq!(words(&unknown), "0.60 1 on", "likelihoods that are not known");
    }

    /// Two actions that differ by one each are uncertain by 0.7 √2 = 0.99, so twice that is a ratio of 7.2.
    #[test]
    fn a_ratio_beyond_what_habits_can_turn_round_is_an_answer() {
        let pair = |ratio: f64| {
            let shares = [ratio / (1.0 + ratio), 1.0 / (1.0 + ratio)];
            [("on", shares[0]), ("off", shares[1])].map(|(name, share)| candidate(&[(name, 1)], share, Some(1.0)))
        };
        assert_eq!(words(&pair(7.2)), "1.00 1 on or 1 off");
        assert_eq!(words(&pair(7.3)), "0.88 1 on");
    }
}
