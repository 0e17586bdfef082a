//! All figures of an audit.

use std::convert::Infallible;

use serde::Serialize;
use sizeleak_model::Model;

use crate::leakage::collisions::{Collision, NumberRow, collisions, number_rows};
use sizeleak_inference::channel::{Channel, EpsilonKnowledge, Measures, Observation, Observer, block_bytes};
use sizeleak_inference::space::{CommandSpace, Premises, SpaceError};

/// Sizes of the same command are seen so often.
const OBSERVATIONS: [u32; 2] = [2, 3];

/// Collisions of commands of up to so many actions are listed.
const LISTED_ACTIONS: u32 = 2;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    pub commands: f64,
    /// How many different sizes they have, without ε.
    pub sizes: usize,
    pub most_actions: u32,
    /// The probability of commands of more actions, which are left out.
    pub left_out: f64,
    /// The bytes that sizes are multiples of on the wire, under a block cipher or with padding.
    pub block_bytes: Option<u64>,
    pub by_size: Learned,
    /// The same if ε is known; where sizes are seen in blocks, the same if ε were always 0.
    pub with_known_epsilon: Learned,
    /// The same with the number of replies; `None` if it says nothing, or is among `too_many`.
    pub with_reply_count: Option<Learned>,
    /// The same with the size of each reply; `None` if that says nothing, or is among `too_many`.
    pub with_replies: Option<Learned>,
    /// The observers who see too many combinations to sum over.
    pub too_many: Vec<Observer>,
    /// V of the command after several sizes of the same command.
    pub repeated: Vec<Repeated>,
    /// V of the command after any number of them.
    pub in_the_end: f64,
    pub by_number: Vec<NumberRow>,
    /// Commands of one or two actions that have the same size.
    pub collisions: Vec<Collision>,
}

/// What an observer learns about each secret.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Learned<F = Measures> {
    /// Whether the figures are exact; else they are those of an observer who sees more, and measures of leakage are upper bounds.
    pub is_exact: bool,
    pub command: F,
    /// About the number of actions, which is the number of devices.
    pub number: F,
    /// About which kinds of device are addressed; `None` without an inventory.
    pub kinds: Option<F>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Repeated {
    pub observations: u32,
    /// The probability that the best guess is right; `None` if there are too many combinations.
    pub named: Option<f64>,
}

impl Audit {
    pub fn new(model: &Model, premises: &Premises) -> Result<Self, SpaceError> {
        let space = CommandSpace::new(model, premises)?;
        let see = |observer, knowledge| Observation::new(&space, model, observer, knowledge);
        let of_sizes = |knowledge| see(Observer::Sizes, knowledge)?.ok_or(SpaceError::TooMany);
        let by_size = of_sizes(EpsilonKnowledge::Distribution)?;
        let without_epsilon = of_sizes(EpsilonKnowledge::Value)?;
        let mut too_many = Vec::new();
        let mut with_replies = |observer| match see(observer, EpsilonKnowledge::Distribution) {
            Err(SpaceError::TooMany) => {
                too_many.push(observer);
                Ok(None)
            }
            found => found.map(|found| found.as_ref().map(Learned::from)),
        };
        let (with_reply_count, with_replies) = (with_replies(Observer::ReplyCount)?, with_replies(Observer::Replies)?);
        let with_known_epsilon = Learned::from(&without_epsilon);
        let after = |observations| Repeated { observations, named: by_size.command.named_after(observations) };
        Ok(Self {
            commands: with_known_epsilon.command.secrets,
            sizes: with_known_epsilon.command.outputs,
            most_actions: space.most_actions(),
            left_out: space.left_out(),
            block_bytes: block_bytes(model),
            by_size: Learned::from(&by_size),
            with_reply_count,
            with_replies,
            too_many,
            repeated: OBSERVATIONS.iter().map(|observations| after(*observations)).collect(),
            in_the_end: by_size.command.named_in_the_end(),
            by_number: number_rows(&by_size, &without_epsilon),
            collisions: collisions(&space, LISTED_ACTIONS),
            with_known_epsilon,
        })
    }

    /// The figure that matters most, as a sentence.
    pub fn sentence(&self) -> String {
        let Measures { named, guessing, .. } = self.by_size.command;
        format!(
            "An observer who sees only sizes names the exact command in {} of cases (guessing: {}).",
            share_in_words(named),
            share_in_words(guessing)
        )
    }
}

impl From<&Observation> for Learned {
    fn from(observation: &Observation) -> Self {
        Self::of(observation, Channel::measures)
    }
}

impl<F> Learned<F> {
    /// What is learned about each secret of an observation, whose channel has these `figures`.
    pub(crate) fn of(observation: &Observation, figures: impl Fn(&Channel) -> F) -> Self {
        let Ok(learned) = Self::try_of(observation, |channel| Ok::<_, Infallible>(figures(channel)));
        learned
    }

    pub(crate) fn try_of<E>(observation: &Observation, figures: impl Fn(&Channel) -> Result<F, E>) -> Result<Self, E> {
        Ok(Self {
            is_exact: observation.is_exact,
            command: figures(&observation.command)?,
            number: figures(&observation.number)?,
            kinds: observation.kinds.as_ref().map(figures).transpose()?,
        })
    }
}

/// A share in whole percents, as long as that is neither nothing nor everything.
pub fn share_in_words(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        percent if percent >= 100.0 - 1e-9 => "100 %".to_owned(),
        percent if percent > 99.0 => format!("{:.1} %", percent.min(99.9)),
        percent if percent >= 1.0 => format!("{percent:.0} %"),
        percent if percent >= 0.1 => format!("{percent:.1} %"),
        _ => "less than 0.1 %".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_never_rounded_to_nothing_or_everything() {
        let shown = [1.0, 0.9996, 0.98, 0.056, 0.0023, 0.0002].map(share_in_words);
        assert_eq!(shown, ["100 %", "99.9 %", "98 %", "6 %", "0.2 %", "less than 0.1 %"]);
    }
}
