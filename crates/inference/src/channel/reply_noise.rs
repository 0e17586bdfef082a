//! What is seen of the replies to a command.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sizeleak_model::{Model, ReplyCountModel, SingleReplies};

use super::measures::entropy_bits;
use crate::space::SpaceError;

/// What is less probable is left out: of the 10⁴ that a reply distribution has at most, 10⁻⁷ together.
pub(super) const MIN_PROBABILITY: f64 = 1e-11;

/// The most different outcomes of the replies of one class: as many take some seconds.
const MAX_OUTCOMES: usize = 1 << 18;

const MAX_REPLIES: u32 = 4096;

/// What an observer sees of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Observer {
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
    pub per_command: Vec<u32>,
    /// What becomes of one reply of each class: how it looks, or `None` where it is lost, with the probability.
    pub classes: Vec<Vec<(Option<usize>, f64)>>,
    pub looks: usize,
    /// Whether an observer sees what is computed, and not less.
    ///
    /// A model's replies are taken to be seen apart from each other and from foreign records, each with its class. An
    /// observer of sizes sees that through noise, so it gives away at most as much.
    pub is_exact: bool,
}

impl ReplyClasses {
    /// Those of a model for an observer who counts replies: all look alike, and only merged and foreign ones are noise.
    fn counted(replies: &SingleReplies) -> Self {
        let mut counted = Self::from(replies);
        counted.classes.iter_mut().flatten().for_each(|(look, _)| *look = look.map(|_| 0));
        Self { looks: 1, is_exact: replies.merged <= 0.0 && replies.foreign <= 0.0, ..counted }
    }

    /// The classes, those together that may look alike.
    fn alike(&self) -> Vec<Vec<usize>> {
        let mut found: Vec<(BTreeSet<usize>, Vec<usize>)> = Vec::new();
        for (class, outcomes) in self.classes.iter().enumerate() {
            let mut own: (BTreeSet<usize>, _) = (outcomes.iter().filter_map(|(look, _)| *look).collect(), vec![class]);
            let (together, apart): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|(looks, _)| !looks.is_disjoint(&own.0));
            found = apart;
            for (looks, classes) in together {
                own.0.extend(looks);
                own.1.extend(classes);
            }
            found.push(own);
        }
        found.into_iter().map(|(_, classes)| classes).collect()
    }
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
        let single = model.single_replies.as_ref();
        match observer {
            Observer::Sizes => Some(Self::Unseen),
            // Where each action sends as many replies as the others, their number follows from that of the actions.
            Observer::ReplyCount
                if model.replies.is_informative() && !single.is_some_and(SingleReplies::differ_in_number) =>
            {
                Some(Self::Count(&model.replies))
            }
            Observer::ReplyCount => single.map(|replies| Self::Classes(ReplyClasses::counted(replies))),
            Observer::Replies => single.map(|replies| Self::Classes(replies.into())),
        }
    }

    /// How many replies of each class an action sends, by its index; empty where classes do not matter.
    pub fn of_action(&self, action: usize) -> &[u32] {
        if let Self::Classes(replies) = self { &replies.per_action[action] } else { &[] }
    }

    /// How many replies of each class a command should have, given the counts of its actions; none where classes do not
    /// matter.
    pub fn of_counts(&self, counts: &[u32]) -> Vec<u32> {
        let mut classes = if let Self::Classes(replies) = self { replies.per_command.clone() } else { Vec::new() };
        for (action, count) in counts.iter().enumerate() {
            classes.iter_mut().zip(self.of_action(action)).for_each(|(class, sent)| *class += sent * count);
        }
        classes
    }

    pub fn is_exact(&self) -> bool {
        if let Self::Classes(replies) = self { replies.is_exact } else { true }
    }

    /// An observer who misses no reply, of whom more is known where there are too many combinations of missing ones;
    /// `None` without classes.
    pub fn without_loss(&self) -> Option<Self> {
        let Self::Classes(replies) = self else { return None };
        // Replies that all look alike still do.
        let looks = if replies.looks == 1 { 1 } else { replies.classes.len() };
        let classes = (0..replies.classes.len()).map(|at| vec![(Some(at % looks), 1.0)]).collect();
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
            Self::Classes(_) => {
                let mut found = Vec::new();
                let mut add = |seen: &[u32], probability: f64| found.push((seen.to_vec(), probability));
                SeenReplies::new(self).visit(actions, classes, MIN_PROBABILITY, &mut add)?;
                found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
                found
            }
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

/// What is seen of the replies to commands, as far as it was asked for.
#[derive(Debug)]
pub(super) struct SeenReplies<'a> {
    noise: &'a ReplyNoise<'a>,
    looks: usize,
    /// By class and number of replies: what is seen of them, the most probable first.
    of_numbers: Vec<Vec<ReplyDistribution>>,
    alike: Vec<Vec<usize>>,
    /// What is seen of classes that may look alike, the most probable first, by how many replies of each there should be,
    /// and of no others. Without classes, all that is seen, by the number of actions.
    together: BTreeMap<Vec<u32>, SeenTogether>,
}

/// What is seen, with its entropy in bits.
#[derive(Debug)]
struct SeenTogether {
    seen: ReplyDistribution,
    bits: f64,
}

impl From<ReplyDistribution> for SeenTogether {
    fn from(seen: ReplyDistribution) -> Self {
        let bits = entropy_bits(seen.iter().map(|(_, share)| *share));
        Self { seen, bits }
    }
}

impl<'a> SeenReplies<'a> {
    pub(super) fn new(noise: &'a ReplyNoise<'a>) -> Self {
        let (classes, looks, alike) = match noise {
            ReplyNoise::Classes(replies) => (replies.classes.len(), replies.looks, replies.alike()),
            ReplyNoise::Count(_) => (0, 1, Vec::new()),
            ReplyNoise::Unseen => (0, 0, Vec::new()),
        };
        let nothing = vec![vec![(vec![0; looks], 1.0)]];
        Self { noise, looks, of_numbers: vec![nothing; classes], alike, together: BTreeMap::new() }
    }

    /// The entropy of what is seen of the replies to a command of so many actions that should have so many of each class, in
    /// bits. Classes that never look alike are independent.
    pub(super) fn bits(&mut self, actions: u32, classes: &[u32]) -> Result<f64, SpaceError> {
        Ok(self.parts(actions, classes)?.iter().map(|part| part.bits).sum())
    }

    /// What is seen of them, each once; of classes, with at least about this probability.
    pub(super) fn visit(
        &mut self,
        actions: u32,
        classes: &[u32],
        least: f64,
        visit: &mut impl FnMut(&[u32], f64),
    ) -> Result<(), SpaceError> {
        let (looks, least) = (self.looks, if self.alike.is_empty() { 0.0 } else { least });
        let parts = self.parts(actions, classes)?;
        let parts: Vec<&[(Vec<u32>, f64)]> = parts.into_iter().map(|part| &part.seen[..]).collect();
        walk(&parts, &mut vec![0; looks], 1.0, least, visit);
        Ok(())
    }

    /// The parts of these classes that never look alike, where there should be replies.
    fn parts(&mut self, actions: u32, classes: &[u32]) -> Result<Vec<&SeenTogether>, SpaceError> {
        let ReplyNoise::Classes(replies) = self.noise else {
            let own = vec![actions];
            if !self.together.contains_key(&own) {
                self.together.insert(own.clone(), self.noise.distribution(actions, &[])?.into());
            }
            return Ok(vec![&self.together[&own]]);
        };
        let mut keys = Vec::new();
        for at in 0..self.alike.len() {
            let mut own = vec![0; classes.len()];
            self.alike[at].iter().for_each(|class| own[*class] = classes[*class]);
            if own.iter().all(|number| *number == 0) {
                continue;
            }
            if !self.together.contains_key(&own) {
                let seen = self.see_together(replies, &self.alike[at].clone(), classes)?;
                self.together.insert(own.clone(), seen.into());
            }
            keys.push(own);
        }
        Ok(keys.iter().map(|key| &self.together[key]).collect())
    }

    fn see_together(
        &mut self,
        replies: &ReplyClasses,
        alike: &[usize],
        classes: &[u32],
    ) -> Result<ReplyDistribution, SpaceError> {
        for class in alike {
            prepare(&mut self.of_numbers[*class], &replies.classes[*class], classes[*class] as usize)?;
        }
        let of_class = |class: &usize| &self.of_numbers[*class][classes[*class] as usize];
        if let [class] = alike {
            return Ok(of_class(class).clone());
        }
        let parts: Vec<&[(Vec<u32>, f64)]> = alike.iter().map(|class| &of_class(class)[..]).collect();
        let mut found: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
        let mut add = |seen: &[u32], probability: f64| *found.entry(seen.to_vec()).or_default() += probability;
        walk(&parts, &mut vec![0; self.looks], 1.0, MIN_PROBABILITY, &mut add);
        Ok(most_probable_first(found))
    }
}

/// Adds what is seen of more replies of a class, up to this number, given what becomes of one.
fn prepare(
    of_numbers: &mut Vec<ReplyDistribution>,
    outcomes: &[(Option<usize>, f64)],
    number: usize,
) -> Result<(), SpaceError> {
    while of_numbers.len() <= number {
        let mut more: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
        for (seen, probability) in &of_numbers[of_numbers.len() - 1] {
            for (look, share) in outcomes.iter().filter(|(_, share)| *share > 0.0) {
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
        of_numbers.push(most_probable_first(more));
    }
    Ok(())
}

fn most_probable_first(seen: BTreeMap<Vec<u32>, f64>) -> ReplyDistribution {
    let mut seen: ReplyDistribution = seen.into_iter().collect();
    seen.sort_by(|one, other| other.1.total_cmp(&one.1));
    seen
}

/// All combinations of what is seen of the parts, each of which has its most probable outcome first.
fn walk(
    parts: &[&[(Vec<u32>, f64)]],
    seen: &mut [u32],
    probability: f64,
    least: f64,
    visit: &mut impl FnMut(&[u32], f64),
) {
    let Some((first, others)) = parts.split_first() else {
        visit(seen, probability);
        return;
    };
    for (own, share) in *first {
        if probability * share < least {
            break;
        }
        seen.iter_mut().zip(own).for_each(|(seen, own)| *seen += own);
        walk(others, seen, probability * share, least, visit);
        seen.iter_mut().zip(own).for_each(|(seen, own)| *seen -= own);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is seen of all replies together, one reply after the other.
    fn all_together(replies: &ReplyClasses, classes: &[u32]) -> BTreeMap<Vec<u32>, f64> {
        let mut found = BTreeMap::from([(vec![0; replies.looks], 1.0)]);
        for (outcomes, number) in replies.classes.iter().zip(classes) {
            for _ in 0..*number {
                let mut more = BTreeMap::new();
                for (seen, probability) in &found {
                    for (look, share) in outcomes {
                        let mut seen: Vec<u32> = seen.clone();
                        if let Some(look) = look {
                            seen[*look] += 1;
                        }
                        *more.entry(seen).or_insert(0.0) += probability * share;
                    }
                }
                found = more;
            }
        }
        found
    }

    proptest! {
        #[test]
        fn classes_that_look_alike_or_not_are_seen_as_reply_by_reply(
            looks in prop::collection::vec((0..6_usize, 0..6_usize, 0.1..0.9_f64), 1..5),
            numbers in [0..3_u32, 0..3_u32, 0..3_u32, 0..3_u32],
        ) {
            let class = |(one, other, share): &(usize, usize, f64)| {
                vec![(Some(*one), 0.9 * share), (Some(*other), 0.9 * (1.0 - share)), (None, 0.1)]
            };
            let replies = ReplyClasses {
                per_action: Vec::new(),
                per_command: vec![0; looks.len()],
                classes: looks.iter().map(class).collect(),
                looks: 6,
                is_exact: true,
            };
            let classes = &numbers[..looks.len()];
            let expected = all_together(&replies, classes);
            let noise = ReplyNoise::Classes(replies);
            let mut seen = SeenReplies::new(&noise);
            let mut found = BTreeMap::new();
            let mut is_new = true;
            let mut add = |seen: &[u32], share: f64| is_new &= found.insert(seen.to_vec(), share).is_none();
            seen.visit(0, classes, 0.0, &mut add).unwrap();
            prop_assert!(is_new && found.keys().eq(expected.keys()));
            prop_assert!(found.values().zip(expected.values()).all(|(one, other)| (one - other).abs() < 1e-12));
            let bits = entropy_bits(expected.into_values());
            prop_assert!((seen.bits(0, classes).unwrap() - bits).abs() < 1e-9);
        }
    }
}
