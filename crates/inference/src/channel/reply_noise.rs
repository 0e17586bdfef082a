//! What is seen of the replies to a command.

use serde::Serialize;
use sizeleak_model::{Model, ReplyCountModel, SingleReplies, choose};

/// What is less probable is left out.
const LEAST_PROBABILITY: f64 = 1e-11;

/// The most replies to a command.
const MOST_REPLIES: u32 = 4096;

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

/// Replies by class, or their number as the only entry; with their probabilities.
type ReplyDistribution = Vec<(Vec<u32>, f64)>;

/// How replies depend on commands.
#[derive(Debug)]
pub enum ReplyNoise<'a> {
    /// They are not seen.
    Unseen,
    /// By the number of actions.
    Count(&'a ReplyCountModel),
    /// By the number of replies of each class that a command should have.
    Classes(&'a SingleReplies),
    /// The same, and none is missing.
    AllOfClasses(&'a SingleReplies),
}

impl<'a> ReplyNoise<'a> {
    /// How an observer sees replies; `None` if they say nothing about commands.
    pub fn new(model: &'a Model, observer: Observer) -> Option<Self> {
        match observer {
            Observer::Sizes => Some(Self::Unseen),
            Observer::ReplyCount => model.replies.is_informative().then_some(Self::Count(&model.replies)),
            Observer::Replies => model.single_replies.as_ref().map(Self::Classes),
        }
    }

    /// How many replies of each class an action sends, by its index; empty where classes do not matter.
    pub fn of_action(&self, action: usize) -> &'a [u32] {
        match self {
            Self::Classes(replies) | Self::AllOfClasses(replies) => {
                replies.per_action.get(action).map_or(&[][..], Vec::as_slice)
            }
            _ => &[],
        }
    }

    /// How many replies of each class any command has; empty where classes do not matter.
    pub fn of_command(&self) -> &'a [u32] {
        match self {
            Self::Classes(replies) | Self::AllOfClasses(replies) => &replies.per_command,
            _ => &[],
        }
    }

    /// Whether what an observer sees is what is computed, and not less.
    ///
    /// Replies are taken to be seen apart from each other and from foreign records, each with its class. An observer of
    /// sizes sees that through noise, so it gives away at most as much.
    pub fn is_exact(&self) -> bool {
        let replies = match self {
            Self::Classes(replies) => replies,
            Self::AllOfClasses(_) => return false,
            _ => return true,
        };
        let mut sizes: Vec<i64> =
            replies.classes.iter().flat_map(|class| class.sizes.iter().map(|(size, _)| *size)).collect();
        let all = sizes.len();
        sizes.sort_unstable();
        sizes.dedup();
        let are_apart = sizes.len() == all && replies.classes.iter().all(|class| class.unseen <= 0.0);
        replies.merged <= 0.0 && replies.foreign <= 0.0 && (are_apart || replies.classes.len() == 1)
    }

    /// An observer who misses no reply, of whom more is known where there are too many combinations of missing ones;
    /// `None` if this is one.
    pub fn without_loss(&self) -> Option<Self> {
        match self {
            Self::Classes(replies) => Some(Self::AllOfClasses(replies)),
            _ => None,
        }
    }

    /// What is seen, with its probability: of a command of so many actions that should have so many replies of each
    /// class. What is less probable than 10⁻¹¹ is left out.
    pub fn distribution(&self, actions: u32, classes: &[u32]) -> ReplyDistribution {
        let found = match self {
            Self::Unseen => vec![(Vec::new(), 1.0)],
            Self::Count(replies) => counts(replies, actions),
            Self::Classes(replies) => of_classes(replies, classes),
            Self::AllOfClasses(_) => vec![(classes.to_vec(), 1.0)],
        };
        let all: f64 = found.iter().map(|(_, probability)| probability).sum();
        found.into_iter().map(|(seen, probability)| (seen, probability / all)).collect()
    }
}

fn counts(replies: &ReplyCountModel, actions: u32) -> ReplyDistribution {
    let mut found = Vec::new();
    let mut all = 0.0;
    for count in 0..MOST_REPLIES {
        let probability = replies.likelihood(count, actions);
        all += probability;
        if probability > LEAST_PROBABILITY {
            found.push((vec![count], probability));
        } else if all > 0.5 {
            break;
        }
    }
    found
}

/// Each reply is missing with the probability of its class.
fn of_classes(replies: &SingleReplies, classes: &[u32]) -> ReplyDistribution {
    let mut found = vec![(Vec::new(), 1.0)];
    for (class, sent) in replies.classes.iter().zip(classes) {
        let mut more = Vec::new();
        for (seen, probability) in found {
            for left in 0..=*sent {
                let (lost, kept) =
                    (class.missing.powf(f64::from(sent - left)), (1.0 - class.missing).powf(f64::from(left)));
                let probability: f64 = probability * choose(*sent, left) * lost * kept;
                if probability > LEAST_PROBABILITY {
                    let mut seen: Vec<u32> = seen.clone();
                    seen.push(left);
                    more.push((seen, probability));
                }
            }
        }
        found = more;
    }
    found
}
