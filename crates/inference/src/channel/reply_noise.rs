//! What is seen of the replies to a command.

use std::collections::BTreeMap;

use serde::Serialize;
use sizeleak_model::{Model, ReplyCountModel, SingleReplies};

use crate::space::SpaceError;

/// What is less probable is left out: of the 10⁴ that a reply distribution has at most, 10⁻⁷ together.
pub(super) const MIN_PROBABILITY: f64 = 1e-11;

/// The most different outcomes of the replies of one class: as many take some seconds.
const MAX_OUTCOMES: usize = 1 << 18;

/// The most replies to a command.
const MAX_REPLIES: u32 = 4096;

/// What an observer sees of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Observer {
    /// Its size.
    Sizes,
    /// Its size, and how many replies it has.
    ReplyCount,
    /// Its size, and the size of each reply.
    Replies,
}

/// How many replies of each look arrive, or their number as the only entry, with their probabilities.
pub(super) type ReplyDistribution = Vec<(Vec<u32>, f64)>;

/// How replies depend on commands.
#[derive(Debug, Clone)]
pub enum ReplyNoise<'a> {
    /// They are not seen.
    Unseen,
    /// By the number of actions.
    Count(&'a ReplyCountModel),
    /// By the number of replies of each class that a command should have.
    Classes(ReplyClasses),
}

/// What is seen of replies of several classes, each by itself.
#[derive(Debug, Clone)]
pub struct ReplyClasses {
    /// How many replies of each class an action sends, by its index.
    pub per_action: Vec<Vec<u32>>,
    /// How many any command has.
    pub per_command: Vec<u32>,
    /// What becomes of one reply of each class: how it looks, or `None` where it is lost, with the probability.
    pub classes: Vec<Vec<(Option<usize>, f64)>>,
    /// How many looks there are.
    pub looks: usize,
    /// Whether an observer sees what is computed, and not less.
    ///
    /// A model's replies are taken to be seen apart from each other and from foreign records, each with its class. An
    /// observer of sizes sees that through noise, so it gives away at most as much.
    pub is_exact: bool,
}

impl From<&SingleReplies> for ReplyClasses {
    fn from(replies: &SingleReplies) -> Self {
        let mut sizes: Vec<i64> =
            replies.classes.iter().flat_map(|class| class.sizes.iter().map(|(size, _)| *size)).collect();
        let all = sizes.len();
        sizes.sort_unstable();
        sizes.dedup();
        let are_apart = sizes.len() == all && replies.classes.iter().all(|class| class.unseen <= 0.0);
        let outcomes = (0..).zip(&replies.classes);
        Self {
            per_action: replies.per_action.clone(),
            per_command: replies.per_command.clone(),
            classes: outcomes.map(|(at, class)| vec![(Some(at), 1.0 - class.missing), (None, class.missing)]).collect(),
            looks: replies.classes.len(),
            is_exact: replies.merged <= 0.0 && replies.foreign <= 0.0 && (are_apart || replies.classes.len() == 1),
        }
    }
}

impl<'a> ReplyNoise<'a> {
    /// How an observer sees replies; `None` if they say nothing about commands.
    pub fn new(model: &'a Model, observer: Observer) -> Option<Self> {
        match observer {
            Observer::Sizes => Some(Self::Unseen),
            Observer::ReplyCount => model.replies.is_informative().then_some(Self::Count(&model.replies)),
            Observer::Replies => model.single_replies.as_ref().map(|replies| Self::Classes(replies.into())),
        }
    }

    /// How many replies of each class an action sends, by its index; empty where classes do not matter.
    pub fn of_action(&self, action: usize) -> &[u32] {
        if let Self::Classes(replies) = self { &replies.per_action[action] } else { &[] }
    }

    /// How many replies of each class any command has; empty where classes do not matter.
    pub fn of_command(&self) -> &[u32] {
        if let Self::Classes(replies) = self { &replies.per_command } else { &[] }
    }

    /// How many replies of each class a command should have, given the counts of its actions.
    pub fn of_counts(&self, counts: &[u32]) -> Vec<u32> {
        let mut classes = self.of_command().to_vec();
        for (action, count) in counts.iter().enumerate() {
            classes.iter_mut().zip(self.of_action(action)).for_each(|(class, sent)| *class += sent * count);
        }
        classes
    }

    /// Whether what an observer sees is what is computed, and not less.
    pub fn is_exact(&self) -> bool {
        if let Self::Classes(replies) = self { replies.is_exact } else { true }
    }

    /// An observer who misses no reply, of whom more is known where there are too many combinations of missing ones;
    /// `None` without classes.
    pub fn without_loss(&self) -> Option<Self> {
        let Self::Classes(replies) = self else { return None };
        let classes = (0..replies.classes.len()).map(|at| vec![(Some(at), 1.0)]).collect();
        let looks = replies.classes.len();
        Some(Self::Classes(ReplyClasses { classes, looks, is_exact: false, ..replies.clone() }))
    }

    /// What is seen, with its probability: of a command of so many actions that should have so many replies of each
    /// class. What is less probable than 10⁻¹¹ is left out.
    ///
    /// # Errors
    /// [`SpaceError::TooMany`].
    pub fn distribution(&self, actions: u32, classes: &[u32]) -> Result<ReplyDistribution, SpaceError> {
        let found = match self {
            Self::Unseen => vec![(Vec::new(), 1.0)],
            Self::Count(replies) => counts(replies, actions),
            Self::Classes(replies) => SeenClasses::new(replies).above(classes, MIN_PROBABILITY)?,
        };
        let all: f64 = found.iter().map(|(_, probability)| probability).sum();
        Ok(found.into_iter().map(|(seen, probability)| (seen, probability / all)).collect())
    }
}

fn counts(replies: &ReplyCountModel, actions: u32) -> ReplyDistribution {
    let mut found = Vec::new();
    let mut all = 0.0;
    for count in 0..MAX_REPLIES {
        let probability = replies.likelihood(count, actions);
        all += probability;
        if probability > MIN_PROBABILITY {
            found.push((vec![count], probability));
        } else if all > 0.5 {
            break;
        }
    }
    found
}

/// What is seen of so many replies of each class, as far as it was asked for.
#[derive(Debug)]
pub(super) struct SeenClasses<'a> {
    replies: &'a ReplyClasses,
    /// By class and number of replies: what is seen of them, the most probable first.
    of_numbers: Vec<Vec<ReplyDistribution>>,
}

impl<'a> SeenClasses<'a> {
    pub(super) fn new(replies: &'a ReplyClasses) -> Self {
        let nothing = vec![vec![(vec![0; replies.looks], 1.0)]];
        Self { replies, of_numbers: vec![nothing; replies.classes.len()] }
    }

    /// What is seen with at least about this probability, in the order of what it is.
    pub(super) fn above(&mut self, classes: &[u32], least: f64) -> Result<ReplyDistribution, SpaceError> {
        for (class, number) in classes.iter().enumerate() {
            self.prepare(class, *number as usize)?;
        }
        let parts = self.of_numbers.iter().zip(classes).filter(|(_, number)| **number > 0);
        let parts: Vec<&[(Vec<u32>, f64)]> =
            parts.map(|(of_numbers, number)| of_numbers[*number as usize].as_slice()).collect();
        let mut found = BTreeMap::new();
        walk(&parts, &mut vec![0; self.replies.looks], 1.0, least, &mut found);
        Ok(found.into_iter().collect())
    }

    fn prepare(&mut self, class: usize, number: usize) -> Result<(), SpaceError> {
        let of_numbers = &mut self.of_numbers[class];
        while of_numbers.len() <= number {
            let mut more: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
            for (seen, probability) in &of_numbers[of_numbers.len() - 1] {
                for (look, share) in self.replies.classes[class].iter().filter(|(_, share)| *share > 0.0) {
                    let mut seen = seen.clone();
                    if let Some(look) = look {
                        seen[*look] += 1;
                    }
                    *more.entry(seen).or_default() += probability * share;
                }
            }
            if more.len() > MAX_OUTCOMES {
                return Err(SpaceError::TooMany);
            }
            let mut more: ReplyDistribution = more.into_iter().collect();
            more.sort_by(|one, other| other.1.total_cmp(&one.1));
            of_numbers.push(more);
        }
        Ok(())
    }
}

/// All combinations of what is seen of the parts, each of which has its most probable outcome first.
fn walk(
    parts: &[&[(Vec<u32>, f64)]],
    seen: &mut Vec<u32>,
    probability: f64,
    least: f64,
    found: &mut BTreeMap<Vec<u32>, f64>,
) {
    let Some((first, others)) = parts.split_first() else {
        *found.entry(seen.clone()).or_default() += probability;
        return;
    };
    for (own, share) in *first {
        if probability * share < least {
            break;
        }
        seen.iter_mut().zip(own).for_each(|(seen, own)| *seen += own);
        walk(others, seen, probability * share, least, found);
        seen.iter_mut().zip(own).for_each(|(seen, own)| *seen -= own);
    }
}
