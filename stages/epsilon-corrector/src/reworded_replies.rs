//! Which replies of a flow are in other words than those that the model was learned from: records of a size that no reply
//! has stand for a kind of reply that comes no more.
//!
//! Alone, such a record is a foreign one, or two replies in one record where sizes add up to it. In a flow, its commands
//! tell: their sizes and other replies say which actions they have, and a merge comes as often as merges do.

use std::sync::Arc;

use sizeleak_frame::{Command, SharedList, SingleReply};
use sizeleak_inference::{PossibleCommands, StateBelief};
use sizeleak_model::{Model, ReplyClass, SingleReplies, WireSize};

/// A change that is as probable is reported, and replies in other words are read.
pub(crate) const CERTAIN: f64 = 0.99;

/// How probable it is before a command that replies of one class come in other words from now on, of one length: messages
/// change once in thousands of commands, and replies have some two thousand lengths.
const REWORDED: f64 = 1e-7;

/// The share of replies that still come as they were where they come in other words.
const AS_BEFORE: f64 = 1e-3;

/// The share of commands whose replies are none of the model's, for whatever reason.
const ODD: f64 = 3e-3;

/// The most lengths of a flow that are followed.
const MAX_LENGTHS: usize = 32;

/// The lengths of a flow that no reply has.
#[derive(Debug, Default)]
pub(crate) struct RewordedReplies {
    lengths: Vec<UnknownLength>,
}

/// What replies of one length may stand for.
#[derive(Debug)]
struct UnknownLength {
    length: u32,
    /// How probable it is that they are replies of each class; that they are none of the model's, which come beside these;
    /// and that they are what the model takes them to be.
    shares: Vec<f64>,
    /// The class that they certainly are of, with the length of such a reply.
    learned: Option<(usize, u32)>,
}

impl RewordedReplies {
    /// Learns from the next command of a flow, whose replies are longer by some bytes than the model's and whose messages are
    /// in these states; `read` says what a command may be. Returns the lengths that stand for others.
    pub(crate) fn follow(
        &mut self,
        model: &Model,
        reply_bytes: i64,
        command: &Command,
        states: &[StateBelief],
        mut read: impl FnMut(&Command) -> Option<Arc<PossibleCommands>>,
    ) -> SharedList<[u32; 2]> {
        let (Some(classes), Some(replies)) = (&model.single_replies, command.all_single_replies()) else {
            return self.learned(None);
        };
        let size = WireSize { wire: command.size, records: command.records, plaintext: command.plaintext };
        let range = |reply: &SingleReply| {
            model.learned.basis.reply_sizes(reply.length, size).map(|size| size.saturating_sub(reply_bytes))
        };
        let mut own = vec![0_u32; classes.classes.len()];
        let mut unknown: Vec<(u32, i64)> = Vec::new();
        for reply in replies {
            match classes.most_probable_class(range(reply)) {
                Some(class) => own[class] += 1,
                None => unknown.push((reply.length, range(reply)[0])),
            }
        }
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.len() as u32 > own.iter().sum() {
            // All replies may be others: messages that have become longer, or another gateway's.
            return self.learned(None);
        }
        for one in &mut self.lengths {
            one.see_as_before(classes, &own);
        }
        unknown.retain(|(length, _)| self.lengths.iter().all(|one| one.length != *length || one.learned.is_none()));
        for (length, size) in &unknown {
            // Others that are unknown say nothing of this one.
            let alone = without(command, |other| other != *length && unknown.iter().any(|one| one.0 == other));
            self.see(*length, *size, classes, &alone, states, &mut read);
        }
        self.learned(None)
    }

    /// Learns from a command with a reply of an unknown length.
    fn see(
        &mut self,
        length: u32,
        size: i64,
        classes: &SingleReplies,
        command: &Command,
        states: &[StateBelief],
        read: &mut impl FnMut(&Command) -> Option<Arc<PossibleCommands>>,
    ) {
        let others = self.learned(Some(length));
        let as_before = Command { reworded: others.clone(), ..command.clone() };
        let Some(possible) = read(&as_before) else { return };
        let by_model = likelihood(&possible, states);
        let unlike = possible.unlike_replies.unwrap_or(0.0);
        let at = self.lengths.iter().position(|one| one.length == length);
        // What is well explained speaks against other words, of which nothing speaks yet.
        if at.is_none() && by_model > unlike {
            return;
        }
        let most_frequent = |class: &ReplyClass| {
            let (known, _) = class.sizes.iter().max_by_key(|(_, times)| *times)?;
            u32::try_from(i64::from(length) + known - size).ok()
        };
        let lengths: Vec<Option<u32>> = classes.classes.iter().map(most_frequent).collect();
        let in_words = |learned: u32| Command {
            reworded: others.iter().copied().chain([[length, learned]]).collect(),
            ..command.clone()
        };
        let mut relative = |command: &Command| {
            let of_words = read(command)?;
            Some(likelihood(&of_words, states) * (of_words.ln_unit - possible.ln_unit).exp())
        };
        // Beside replies, as many commands have them as not.
        let beside = relative(&without(&as_before, |other| other == length)).unwrap_or(0.0) / 2.0;
        // Once they are known to come beside replies, they are asked about again where that explains a command badly.
        if at.is_some_and(|at| self.lengths[at].beside() > 1.0 - REWORDED) && beside > unlike {
            return;
        }
        let of_class = |learned: &Option<u32>| learned.and_then(|learned| relative(&in_words(learned))).unwrap_or(0.0);
        let mut likelihoods: Vec<f64> = lengths.iter().map(of_class).collect();
        likelihoods.extend([beside, by_model]);
        let at = at.unwrap_or_else(|| {
            self.forget_one();
            self.lengths.push(UnknownLength::new(length, likelihoods.len()));
            self.lengths.len() - 1
        });
        let one = &mut self.lengths[at];
        one.weigh(likelihoods.iter().map(|likelihood| likelihood + ODD * unlike));
        one.learned = one.class(classes).and_then(|class| Some((class, lengths[class]?)));
        if one.by_model() > 1.0 - REWORDED {
            self.lengths.swap_remove(at);
        }
    }

    /// The lengths that certainly stand for others, but for one.
    fn learned(&self, but: Option<u32>) -> SharedList<[u32; 2]> {
        let others = self.lengths.iter().filter(|one| Some(one.length) != but);
        others.filter_map(|one| Some([one.length, one.learned?.1])).collect()
    }

    /// Makes room for one more length: the one that is least probably in other words gives way.
    fn forget_one(&mut self) {
        if self.lengths.len() < MAX_LENGTHS {
            return;
        }
        let by_model = |one: &UnknownLength| one.by_model();
        let least = self.lengths.iter().enumerate().max_by(|a, b| by_model(a.1).total_cmp(&by_model(b.1)));
        if let Some((at, _)) = least {
            self.lengths.swap_remove(at);
        }
    }
}

impl UnknownLength {
    fn new(length: u32, meanings: usize) -> Self {
        let mut shares = vec![0.0; meanings];
        shares.last_mut().into_iter().for_each(|by_model| *by_model = 1.0);
        Self { length, shares, learned: None }
    }

    /// The probability that they are what the model takes them to be.
    fn by_model(&self) -> f64 {
        self.shares.last().copied().unwrap_or(0.0)
    }

    /// The probability that they come beside replies.
    fn beside(&self) -> f64 {
        self.shares.iter().rev().nth(1).copied().unwrap_or(0.0)
    }

    /// The class that they certainly are of. Of classes that the same actions send, any one says the same.
    fn class(&self, classes: &SingleReplies) -> Option<usize> {
        let shares = || self.shares.iter().take(classes.classes.len()).enumerate();
        let (most, _) = shares().max_by(|a, b| a.1.total_cmp(b.1))?;
        let alike = shares().filter(|(class, _)| classes.are_sent_together([most, *class]));
        (alike.map(|(_, share)| share).sum::<f64>() >= CERTAIN).then_some(most)
    }

    /// Weighs each meaning by the likelihood of a command.
    fn weigh(&mut self, likelihoods: impl IntoIterator<Item = f64>) {
        let each = REWORDED / self.shares.len() as f64;
        let weighed = self.shares.iter().zip(likelihoods).map(|(share, likelihood)| (share + each) * likelihood);
        let weighed: Vec<f64> = weighed.collect();
        let all: f64 = weighed.iter().sum();
        // Of hundreds of replies, likelihoods are more or less than a number can hold.
        if all.is_normal() {
            self.shares = weighed.into_iter().map(|share| share / all).collect();
        }
    }

    /// Weighs that a command has so many replies of each class as they were.
    fn see_as_before(&mut self, classes: &SingleReplies, own: &[u32]) {
        if own.iter().any(|own| *own > 0) {
            self.weigh(own.iter().map(|own| AS_BEFORE.powf(f64::from(*own))).chain([1.0; 2]));
            self.learned = self.learned.filter(|(class, _)| self.class(classes) == Some(*class));
        }
    }
}

/// How probable a command is by what is believed of the flow's messages, as a multiple of its unit.
fn likelihood(possible: &PossibleCommands, states: &[StateBelief]) -> f64 {
    possible.learned.iter().zip(states).map(|(likelihood, state)| likelihood * state.probability).sum()
}

/// A command without its replies of some lengths.
fn without(command: &Command, is_left_out: impl Fn(u32) -> bool) -> Command {
    let left = command.single_replies.iter().filter(|reply| !is_left_out(reply.length));
    let single_replies: SharedList<SingleReply> = left.copied().collect();
    Command { replies: single_replies.len() as u32, single_replies, ..command.clone() }
}
