//! The commands of a home and their replies, as they are seen without countermeasures and with them.

use serde::Serialize;
use sizeleak_model::Model;
use sizeleak_model::policies::PaddingPolicy;

use crate::leakage::Learned;
use crate::padding::PaddingCost;
use crate::padding::countermeasures::{
    CommandTraffic, CountermeasureCost, CountermeasureError, Countermeasures, DAY, ReplyForm, ReplyTraffic,
};
use crate::padding::padded_observation::{PaddedOutputs, seen_rows};
use crate::padding::shared_record::SharedRecord;
use sizeleak_inference::channel::{EpsilonKnowledge, KeyFigures, Observation, Observer};
use sizeleak_inference::space::{CommandSpace, SizeRow, SpaceError};

#[derive(Debug)]
pub struct HomeTraffic {
    /// Who sees sizes alone. All commands of which the same is seen are one row here and in the others.
    by_size: Observation,
    /// The commands by the size that is seen.
    rows: Vec<SizeRow>,
    /// Who sees each reply, where the model knows them one by one.
    with_replies: Option<Observation>,
    /// Who sees their number: all that replies of one size show, or those that the model counts.
    with_reply_count: Option<Observation>,
    knows_single_replies: bool,
    commands: CommandTraffic,
}

impl HomeTraffic {
    /// All commands of `space`, which is of this model, so many a day.
    pub fn new(
        space: &CommandSpace,
        model: &Model,
        knowledge: EpsilonKnowledge,
        commands_per_day: f64,
    ) -> Result<Self, SpaceError> {
        let see = |observer| match Observation::new(space, model, observer, knowledge) {
            Err(SpaceError::TooMany) => Ok(None),
            seen => seen,
        };
        let by_size = Observation::new(space, model, Observer::Sizes, knowledge)?.ok_or(SpaceError::TooMany)?;
        let (with_replies, with_reply_count) = (see(Observer::Replies)?, see(Observer::ReplyCount)?);
        let knows_single_replies = model.single_replies.is_some();
        let (observer, seen) = if knows_single_replies {
            (Observer::Replies, &with_replies)
        } else {
            (Observer::ReplyCount, &with_reply_count)
        };
        let replies = seen.as_ref().map(|seen| ReplyTraffic::new(model, observer, seen)).unwrap_or_default();
        let rows = seen_rows(&by_size);
        let bytes = PaddingCost::of(&rows, &PaddingPolicy::None).command_bytes;
        let merged = |mut seen: Observation| {
            seen.command = seen.command.merged();
            seen
        };
        Ok(Self {
            by_size: merged(by_size),
            rows,
            with_replies: with_replies.map(merged),
            with_reply_count: with_reply_count.map(merged),
            knows_single_replies,
            commands: CommandTraffic { bytes, a_day: commands_per_day, replies },
        })
    }

    pub fn replies(&self) -> ReplyTraffic {
        self.commands.replies
    }

    pub fn command_bytes(&self) -> f64 {
        self.commands.bytes
    }

    pub fn effect(&self, countermeasures: &Countermeasures) -> Result<CountermeasureEffect, CountermeasureError> {
        let Countermeasures { policy, sending, dummies, replies } = countermeasures;
        let sent_per_second = self.commands.a_day / DAY / (1.0 - dummies);
        let shared = SharedRecord::new(&self.rows, *sending, sent_per_second)?;
        let seen = &self.by_size;
        let (by_size, [records, padding]) = match &shared {
            None => {
                let added_bytes = PaddingCost::of(&self.rows, policy).added_bytes;
                (padded(seen, &PaddedOutputs::new(seen, policy)), [1.0, added_bytes])
            }
            Some(shared) => {
                let learned = Learned::try_of(seen, |channel| shared.figures(seen, channel, policy))?;
                (learned, [shared.records_per_command(), shared.added_bytes(policy)])
            }
        };
        let with_replies = match replies {
            ReplyForm::OneReply | ReplyForm::NoReply => Some(by_size.clone()),
            ReplyForm::AsTheyAre | ReplyForm::OneSize => match shared {
                None => self.with_replies(policy, *replies),
                // Whoever sees each command's replies and size apart sees more than sums of them.
                Some(_) => self
                    .with_replies(&PaddingPolicy::None, *replies)
                    .map(|learned| Learned { is_exact: false, ..learned }),
            },
        };
        Ok(CountermeasureEffect {
            by_size: among_dummies(&by_size, *dummies),
            with_replies: with_replies.map(|learned| among_dummies(&learned, *dummies)),
            real_named: dummies.max(1.0 - dummies),
            cost: CountermeasureCost::new(countermeasures, &self.commands, records, padding),
        })
    }

    /// What is learned from padded commands of records of their own with their replies.
    fn with_replies(&self, policy: &PaddingPolicy, form: ReplyForm) -> Option<Learned<KeyFigures>> {
        let is_counted = form == ReplyForm::OneSize || !self.knows_single_replies;
        let seen = if is_counted { &self.with_reply_count } else { &self.with_replies };
        seen.as_ref().map(|seen| padded(seen, &PaddedOutputs::new(seen, policy)))
    }
}

fn padded(observation: &Observation, outputs: &PaddedOutputs) -> Learned<KeyFigures> {
    Learned::of(observation, |channel| KeyFigures::of(&outputs.channel(channel)))
}

/// What an observer learns from one message to the gateway about the command in it, or one of them, and what that
/// costs.
///
/// Secrets are: a command was sent that is this one; it has so many actions; it addresses these kinds of device. To
/// name one is to be right in both, that the command is no dummy and what it does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CountermeasureEffect {
    /// What an observer of the size of one message learns.
    pub by_size: Learned<KeyFigures>,
    /// What an observer learns who sees its replies, too; `None` if the model does not know what replies say, or if they
    /// have too many combinations.
    pub with_replies: Option<Learned<KeyFigures>>,
    /// How often it is right that a command is real, or none, by the best guess. Guessing reaches the same.
    pub real_named: f64,
    pub cost: CountermeasureCost,
}

/// The figures of secrets among dummies, a share d of all commands, which are seen with the same probabilities as the
/// others: P(t) = Σ π(A) · C(t | A).
///
/// A message t is seen with the probability (1 − d) · P(t) + d · P(t) = P(t), and a real command A in it with
/// (1 − d) · J(A, t). So the best guess of a real command is right in (1 − d) · V, and the greatest posterior is 1 − d
/// times what it was. With S for the secret or "a dummy", I(S; T) = I(real; T) + (1 − d) · I(A; T), and I(real; T) = 0.
/// Every message may be a dummy, which is one possibility more.
///
/// No other way to draw dummies is better: naming has the same (1 − d) · V in any case, I(real; T) is never below 0, and
/// to tell whether a command is real, a fixed guess reaches max(d, 1 − d) already.
fn among_dummies(learned: &Learned<KeyFigures>, dummies: f64) -> Learned<KeyFigures> {
    let real = 1.0 - dummies;
    let among = |figures: &KeyFigures| KeyFigures {
        guessing: real * figures.guessing,
        named: real * figures.named,
        times_guessing: figures.times_guessing,
        information_bits: real * figures.information_bits,
        worst_posterior: real * figures.worst_posterior,
        smallest_set: figures.smallest_set + if dummies > 0.0 { 1.0 } else { 0.0 },
    };
    Learned {
        is_exact: learned.is_exact,
        command: among(&learned.command),
        number: among(&learned.number),
        kinds: learned.kinds.as_ref().map(among),
    }
}
