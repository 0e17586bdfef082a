//! How probable it is that messages are *foreign*: not the model's at all, so that what they look like is a coincidence.
//!
//! The model's messages are all as in one state, and their commands come by habits. Those of another gateway or app, or of
//! one whose messages have changed as no state has it, look like those of any state, each command anew, and their commands
//! like those of a home of which nothing is known. That they come again is a Dirichlet process as in
//! [`crate::habit_belief`], with that as its base; its classes have the sum of a command as the size shows it, with what its
//! actions take and what it may be longer together.
//!
//! A flow of the model's may have a few of them too, such as those of an action without a label ([`SHARE`]).
//!
//! Beside that, commands may have the model's sizes, and replies that are none of the model's, as of a gateway whose software
//! words its answers anew. What the model makes of such replies is a coincidence too.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::habit_belief::{ByRecurrence, COMING_AGAIN, SeenClasses, Times};
use crate::possible_commands::PossibleCommands;
use crate::symmetric::dot;

/// The probability that messages change between two commands: firmware and the digits of ids change once in thousands of
/// commands. Two commands that show a change clearly are just enough to believe it.
pub(crate) const CHANGE: f64 = 2e-4;

/// The probability that messages become foreign before a command: that another gateway or app is named is as probable as a
/// change that a state has, and so is a change that none has.
const BECOME: f64 = CHANGE;

/// The share of foreign commands in a flow of the model's. With a tenth, 31 of 32 homes whose messages become 12 to 40 bytes
/// longer are found, after 6 to 38 commands; with three tenths 27. With none, all are, but in a home of one lamp every tenth
/// command of another kind would be enough.
const SHARE: f64 = 0.1;

/// The share of commands whose replies are none of the model's where replies have become others: most, but some look like
/// them by chance.
const UNLIKE: f64 = 0.8;

/// None is less probable: numbers do not end.
const LEAST: f64 = 1e-12;

#[derive(Debug, Clone)]
pub struct ForeignBelief {
    /// That commands and replies are foreign, and that replies alone are.
    all: f64,
    replies: f64,
    /// What they have shown since they most probably became foreign. `None` where that is not yet.
    shown: Option<ForeignMessages>,
}

#[derive(Debug, Clone)]
struct ForeignMessages {
    weights: ByRecurrence,
    seen: SeenClasses,
}

/// What a command may be if its messages are foreign: by its sum in bytes, and by how many replies of each class it has.
type ForeignClasses<'a> = BTreeMap<(i64, &'a Arc<[u32]>), ForeignClass>;

#[derive(Debug, Clone, Copy, Default)]
struct ForeignClass {
    /// P(size, replies | class), as a multiple of the unit, in the state that explains replies best.
    likelihood: f64,
    /// P(class) in a home of which nothing is known, on average over all states.
    broad: f64,
}

/// How probable a command is if its messages are foreign.
struct ForeignJudgement<'a> {
    classes: ForeignClasses<'a>,
    likelihoods: ByRecurrence,
    /// Over all.
    likelihood: f64,
}

/// In states in which commands are longer by so many bytes.
fn classes<'a>(command: &'a PossibleCommands, longer: &[i64]) -> ForeignClasses<'a> {
    let mut found = ForeignClasses::new();
    for possible in &command.in_states {
        for in_state in possible.states.iter().filter(|one| one.state < longer.len()) {
            for (at, likelihood) in &in_state.classes {
                let class = &possible.classes[*at].class;
                let whole = found.entry((class.sum + longer[in_state.state], &class.class_counts)).or_default();
                whole.likelihood = whole.likelihood.max(*likelihood);
                whole.broad += class.broad / longer.len() as f64;
            }
        }
    }
    found
}

impl Default for ForeignBelief {
    fn default() -> Self {
        Self { all: LEAST, replies: LEAST, shown: None }
    }
}

impl ForeignBelief {
    pub fn probability(&self) -> f64 {
        self.all + self.replies
    }

    /// Before a command, at which they keep this share of their probability, as habits other than the learned ones do.
    pub(crate) fn predict(&mut self, remains: f64) {
        let own = 1.0 - self.probability();
        let whole = remains * self.probability() + own;
        self.all = (remains * self.all + BECOME * own) / whole;
        self.replies *= remains / whole;
    }

    /// Learns from a command with these probabilities if it is the model's, and on average over all states in a home of which
    /// nothing is known. States of all messages are given by how many bytes commands are longer in them.
    pub(crate) fn observe(&mut self, command: &PossibleCommands, longer: &[i64], known: f64, broad: f64) {
        let judge = |shown: &ForeignMessages| shown.judge(classes(command, longer), broad);
        let judged = self.shown.as_ref().map(judge);
        let of_all = judged.as_ref().map_or(broad, |judged| judged.likelihood);
        let of_replies = command.unlike_replies.map(|unlike| UNLIKE * unlike + (1.0 - UNLIKE) * of_all);
        let of_own = (1.0 - SHARE) * known + SHARE * of_replies.map_or(of_all, |of_replies| of_replies.max(of_all));
        // That they are others is only told, and only matters, where replies are known.
        if of_replies.is_some() {
            self.replies += BECOME * (1.0 - self.probability());
        }
        let of_replies = of_replies.unwrap_or(of_own);
        let own = (1.0 - self.probability()) * of_own;
        let whole = self.all * of_all + self.replies * of_replies + own;
        self.all = (self.all * of_all / whole).max(LEAST);
        self.replies = (self.replies * of_replies / whole).max(LEAST);
        let most = self.probability() / (1.0 - LEAST);
        if most > 1.0 {
            (self.all, self.replies) = (self.all / most, self.replies / most);
        }
        // Where they more probably become foreign before the next command, what was seen does not matter.
        if self.all > BECOME {
            let shown = self.shown.get_or_insert_default();
            let judged = judged.unwrap_or_else(|| judge(shown));
            shown.learn(judged);
        } else {
            self.shown = None;
        }
    }
}

impl Default for ForeignMessages {
    fn default() -> Self {
        Self { weights: COMING_AGAIN, seen: SeenClasses::default() }
    }
}

impl ForeignMessages {
    fn judge<'a>(&self, classes: ForeignClasses<'a>, broad: f64) -> ForeignJudgement<'a> {
        let mut again = Times::default();
        for ((sum, replies), class) in &classes {
            let times = self.seen.times(*sum, replies);
            again.iter_mut().zip(times).for_each(|(all, times)| *all += class.likelihood * times);
        }
        let likelihoods = self.seen.likelihoods(broad, again);
        ForeignJudgement { classes, likelihoods, likelihood: dot(&likelihoods, &self.weights) }
    }

    fn learn(&mut self, ForeignJudgement { classes, likelihoods, likelihood }: ForeignJudgement<'_>) {
        let (fresh, again) = (self.seen.fresh(&self.weights), self.seen.again(&self.weights));
        let joint = |((sum, replies), class): (&(i64, &Arc<[u32]>), &ForeignClass)| {
            class.likelihood * (fresh * class.broad + dot(&self.seen.times(*sum, replies), &again))
        };
        let joint: Vec<f64> = classes.iter().map(joint).collect();
        let whole: f64 = joint.iter().sum();
        if !(likelihood > 0.0 && whole > 0.0) {
            return;
        }
        self.weights.iter_mut().zip(likelihoods).for_each(|(weight, own)| *weight *= own / likelihood);
        self.seen.age();
        for ((sum, replies), joint) in classes.into_keys().zip(joint) {
            self.seen.add(sum, replies, joint / whole);
        }
    }
}
