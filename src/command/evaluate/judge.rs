//! Where a command's true actions stand among its candidates.
//!
//! A list that the decomposer cut does not show all candidates. Whether the truth is among those it leaves out is still
//! decided wherever that is possible: it is one of them where the inventory allows it and its own sum is one that a
//! listed candidate has, or that the ε of a listed candidate leaves. What cannot be decided so is told as undecided and
//! never counts as found.

use sizeleak_frame::{Actions, Candidate, Identification};
use sizeleak_model::{InventoryError, Limits, Model};

use super::belief::Belief;

/// Where the truth stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::command) enum TruthRank {
    /// It is in the list, at this place (from 1).
    Listed(u64),
    /// It is a candidate that the cut list leaves out.
    Unlisted,
    /// It is no candidate.
    Absent,
    /// The list is cut, and nothing tells whether the truth is among what it leaves out.
    Undecided,
}

impl TruthRank {
    /// Whether the truth is among the candidates, for certain.
    pub(in crate::command) fn is_among(self) -> bool {
        matches!(self, Self::Listed(_) | Self::Unlisted)
    }

    /// Its place in the list.
    pub(in crate::command) fn place(self) -> Option<u64> {
        match self {
            Self::Listed(place) => Some(place),
            _ => None,
        }
    }
}

/// What an identification is worth, given a command's true actions.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::command) struct Judgement {
    pub(in crate::command) standing: TruthRank,
    /// How many candidates there are, listed or not.
    pub(in crate::command) candidates: u64,
    /// Whether some of them are not listed.
    pub(in crate::command) is_cut: bool,
    /// The most probable candidate: how often each action occurs, in the order of the labels' actions.
    pub(in crate::command) first: Option<Vec<u32>>,
    /// How sure it is of itself.
    pub(in crate::command) belief: Belief,
}

impl Judgement {
    /// Whether the truth is in the credible set.
    pub(in crate::command) fn is_credible(&self) -> bool {
        let is_within = self.standing.place().is_some_and(|place| place <= self.belief.credible);
        is_within || (!self.belief.is_credible_listed && self.standing.is_among())
    }

    /// This judgement of what a pruner left, given the one of what it was given: of candidates that are not listed it
    /// drops either all or none, so where they stand is what they stood before.
    pub(in crate::command) fn after(self, before: &Self) -> Self {
        let standing = match (self.standing, before.standing) {
            (TruthRank::Listed(place), _) => TruthRank::Listed(place),
            (_, standing @ (TruthRank::Unlisted | TruthRank::Undecided)) if self.is_cut => standing,
            _ => TruthRank::Absent,
        };
        Self { standing, ..self }
    }
}

/// Judges identifications by true actions.
#[derive(Debug)]
pub(in crate::command) struct Judge<'a> {
    model: &'a Model,
    limits: Limits,
    /// The labels' actions.
    actions: &'a [String],
    /// The probability a credible set holds.
    credible: f64,
}

impl<'a> Judge<'a> {
    /// A judge of candidates made by this model; `actions` are those of the labels, in their order, and `credible` is the
    /// probability a credible set holds.
    pub(in crate::command) fn new(
        model: &'a Model,
        actions: &'a [String],
        credible: f64,
    ) -> Result<Self, InventoryError> {
        Ok(Self { model, limits: model.limits()?, actions, credible })
    }

    /// Where the truth stands in an identification.
    pub(in crate::command) fn judge(&self, identification: &Identification, truth: &[u32]) -> Judgement {
        let candidates = &identification.candidates;
        let place = candidates.iter().zip(1..).find(|(candidate, _)| self.is_same(&candidate.actions, truth));
        let is_cut = identification.candidate_count > candidates.len() as u64;
        let standing = match place {
            Some((_, place)) => TruthRank::Listed(place),
            None if !is_cut => TruthRank::Absent,
            None => self.unlisted(identification, truth),
        };
        let first = candidates.first().map(|first| self.counts(&first.actions));
        let candidates = identification.candidate_count.max(candidates.len() as u64);
        Judgement { standing, candidates, is_cut, first, belief: Belief::new(identification, self.credible) }
    }

    /// Whether these are the true actions, and no others.
    fn is_same(&self, actions: &Actions, truth: &[u32]) -> bool {
        let total: u64 = truth.iter().map(|count| u64::from(*count)).sum();
        actions.total() == total
            && self.actions.iter().zip(truth).all(|(action, count)| actions.count(action) == *count)
    }

    fn counts(&self, actions: &Actions) -> Vec<u32> {
        self.actions.iter().map(|action| actions.count(action)).collect()
    }

    /// Where a truth stands that a cut list does not show.
    fn unlisted(&self, identification: &Identification, truth: &[u32]) -> TruthRank {
        let Some(counts) = self.in_models_order(truth).filter(|counts| self.limits.admits(counts)) else {
            return TruthRank::Absent;
        };
        let command = &identification.command;
        let Ok([least, most]) = self.model.sizes(command.size, command.records, command.plaintext) else {
            return TruthRank::Undecided;
        };
        let sum = self.weigh(counts.iter().copied());
        let rest = |size: i64| size.saturating_sub(self.model.overhead).saturating_sub(sum);
        let epsilons = rest(least)..=rest(most);
        let shows = |candidate: &Candidate| {
            let counts = self.model.actions.iter().map(|action| candidate.actions.count(&action.name));
            epsilons.contains(&candidate.epsilon) || self.weigh(counts) == sum
        };
        if identification.candidates.iter().any(shows) { TruthRank::Unlisted } else { TruthRank::Undecided }
    }

    /// Σ |aᵢ|·nbᵢ of counts in the model's order.
    fn weigh(&self, counts: impl Iterator<Item = u32>) -> i64 {
        let sizes = self.model.actions.iter().zip(counts);
        sizes.fold(0, |sum, (action, count)| sum.saturating_add(action.size.saturating_mul(count.into())))
    }

    /// The counts in the order of the model's actions; `None` where it does not know one of them.
    fn in_models_order(&self, truth: &[u32]) -> Option<Vec<u32>> {
        let named = || self.actions.iter().zip(truth);
        let is_known = |name: &str| self.model.actions.iter().any(|action| action.name == name);
        let count = |name: &str| named().find(|(action, _)| *action == name).map_or(0, |(_, count)| *count);
        named()
            .all(|(action, count)| *count == 0 || is_known(action))
            .then(|| self.model.actions.iter().map(|action| count(&action.name)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::Command;

    use super::TruthRank::{Absent, Listed, Undecided, Unlisted};
    use super::*;

    /// |ac| = 60, on = 40, off = 41; three plugs.
    fn model() -> Model {
        Model::from_toml(
            "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n[[action]]\nname = \"off\"\nsize = 41\n\
             [[action]]\nname = \"on\"\nsize = 40\n[[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
             [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n[learned]\nmethod = \"robust\"\n\
             commands = 1\nversion = \"0\"\nbasis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n",
        )
        .unwrap()
    }

    fn identification(plaintext: u64, candidates: &[(u32, u32, i64)], candidate_count: u64) -> Identification {
        let candidate = |(on, off, epsilon): &(u32, u32, i64)| Candidate {
            actions: Actions::from(vec![(Arc::from("off"), *off), (Arc::from("on"), *on)]),
            epsilon: *epsilon,
            probability: 0.5,
        };
        let command = Command {
            time_ns: 0,
            end_ns: 0,
            flow: 1,
            size: plaintext + 24,
            plaintext: Some([plaintext; 2]),
            records: 1,
            replies: 0,
            reply_bytes: 0,
        };
        Identification {
            command,
            candidates: candidates.iter().map(candidate).collect(),
            candidate_count,
            listed: candidates.len() as u64,
            min_actions: None,
            max_actions: None,
        }
    }

    fn standing(identification: &Identification, truth: [u32; 2]) -> TruthRank {
        let (model, actions) = (model(), ["on".to_owned(), "off".to_owned()]);
        Judge::new(&model, &actions, 0.95).unwrap().judge(identification, &truth).standing
    }

    #[test]
    fn a_whole_list_decides() {
        let two = identification(141, &[(1, 1, 0), (2, 0, 1)], 2);
        assert_eq!(standing(&two, [1, 1]), Listed(1));
        assert_eq!(standing(&two, [2, 0]), Listed(2));
        assert_eq!(standing(&two, [0, 1]), Absent);
        assert_eq!(standing(&two, [1, 0]), Absent, "part of a candidate is not the candidate");
    }

    #[test]
    fn a_cut_list_decides_by_the_sums_it_shows() {
        let cut = identification(141, &[(1, 1, 0)], 9);
        assert_eq!(standing(&cut, [1, 1]), Listed(1));
        assert_eq!(standing(&cut, [2, 0]), Undecided, "ε = 1 is not shown to be offered");
        assert_eq!(standing(&cut, [2, 2]), Absent, "four actions, three plugs");
        let other_epsilon = identification(141, &[(0, 1, 1)], 9);
        assert_eq!(standing(&other_epsilon, [2, 0]), Unlisted, "ε = 1 is offered");
        let mut range = identification(141, &[(1, 1, 5)], 9);
        range.command.plaintext = Some([130, 145]);
        assert_eq!(standing(&range, [2, 0]), Unlisted, "a size of 145 leaves the ε = 5");
        assert_eq!(standing(&range, [0, 1]), Undecided);
    }

    #[test]
    fn what_is_no_action_of_the_model_is_no_candidate() {
        let (model, actions) = (model(), ["on".to_owned(), "dance".to_owned()]);
        let judge = Judge::new(&model, &actions, 0.95).unwrap();
        let cut = identification(141, &[(1, 1, 0)], 9);
        assert_eq!(judge.judge(&cut, &[0, 1]).standing, Absent);
        assert_eq!(judge.judge(&cut, &[1, 0]).first, Some(vec![1, 0]));
    }

    #[test]
    fn what_a_pruner_left_of_a_cut_list_stands_as_before() {
        let judgement =
            |standing, is_cut| Judgement { standing, candidates: 5, is_cut, first: None, belief: Belief::default() };
        let after = |after, is_cut, before| judgement(after, is_cut).after(&judgement(before, true)).standing;
        assert_eq!(after(Listed(1), true, Listed(4)), Listed(1));
        assert_eq!(after(Unlisted, true, Listed(4)), Absent, "the pruner dropped it");
        assert_eq!(after(Undecided, true, Unlisted), Unlisted);
        assert_eq!(after(Unlisted, true, Undecided), Undecided);
        assert_eq!(after(Absent, false, Unlisted), Absent, "it dropped all that are not listed");
        assert_eq!(after(Unlisted, true, Absent), Absent);
    }
}
