//! The commands of a home and their replies, as they are seen without countermeasures and with them.

use std::convert::Infallible;

use serde::Serialize;
use sizeleak_model::policies::PaddingPolicy;
use sizeleak_model::{Model, SingleReplies};

use crate::padding::countermeasures::{
    CommandTraffic, CountermeasureCost, CountermeasureError, Countermeasures, DAY, RecordTraffic, ReplyForm,
    ReplyTraffic,
};
use crate::padding::padded_home::SeenSizes;
use crate::padding::padded_observation::PaddedOutputs;
use crate::padding::shared_record::SharedRecord;
use sizeleak_inference::channel::{Channel, EpsilonKnowledge, KeyFigures, Observation, Observer};
use sizeleak_inference::space::{CommandSpace, SpaceError};

#[derive(Debug)]
pub struct HomeTraffic {
    sizes: SeenSizes,
    with_replies: Option<Observation>,
    /// Who sees their number, where that follows from the number of actions alone.
    with_reply_count: Option<Observation>,
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
        let sizes = SeenSizes::new(space, model, knowledge)?;
        let observer = if model.single_replies.is_some() { Observer::Replies } else { Observer::ReplyCount };
        let with_replies = see(observer)?;
        let with_reply_count = match &model.single_replies {
            Some(replies) if has_equal_numbers(replies) => see(Observer::ReplyCount)?,
            _ => None,
        };
        let replies =
            with_replies.as_ref().map_or_else(ReplyTraffic::default, |seen| ReplyTraffic::new(model, observer, seen));
        let bytes = sizes.cost(&PaddingPolicy::None).command_bytes;
        let commands = CommandTraffic { bytes, a_day: commands_per_day, replies };
        Ok(Self { sizes, with_replies, with_reply_count, commands })
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
        let shared = SharedRecord::new(&self.sizes.rows, *sending, sent_per_second)?;
        let seen = &self.sizes.observation;
        let (by_size, records) = match &shared {
            None => (
                padded(seen, &self.sizes.padded(policy)),
                RecordTraffic { per_command: 1.0, padding: self.sizes.cost(policy).added_bytes },
            ),
            Some(shared) => (
                MessageLeak::new(seen, |channel| shared.figures(seen, channel, policy))?,
                RecordTraffic { per_command: shared.records_per_command(), padding: shared.added_bytes(policy) },
            ),
        };
        let with_replies = match replies {
            ReplyForm::OneReply | ReplyForm::NoReply => Some(by_size.clone()),
            ReplyForm::AsTheyAre | ReplyForm::OneSize => match shared {
                None => self.with_replies(policy, *replies),
                // Whoever sees each command's replies and size apart sees more than sums of them.
                Some(_) => self.with_replies(&PaddingPolicy::None, *replies).map(MessageLeak::at_most),
            },
        };
        Ok(CountermeasureEffect {
            by_size: by_size.among_dummies(*dummies),
            with_replies: with_replies.map(|leak| leak.among_dummies(*dummies)),
            real_named: dummies.max(1.0 - dummies),
            cost: CountermeasureCost::new(countermeasures, &self.commands, &records),
        })
    }

    /// What is learned from padded commands of records of their own with their replies.
    fn with_replies(&self, policy: &PaddingPolicy, form: ReplyForm) -> Option<MessageLeak> {
        match (&self.with_replies, &self.with_reply_count) {
            (_, Some(counted)) if form == ReplyForm::OneSize => {
                Some(padded(counted, &PaddedOutputs::new(counted, policy)))
            }
            (Some(seen), _) if form == ReplyForm::OneSize => {
                Some(padded(seen, &PaddedOutputs::with_replies_of_one_size(seen, policy)))
            }
            (seen, _) => seen.as_ref().map(|seen| padded(seen, &PaddedOutputs::new(seen, policy))),
        }
    }
}

/// What is learned from padded outputs of an observation.
fn padded(observation: &Observation, outputs: &PaddedOutputs) -> MessageLeak {
    let figures = |channel: &Channel| Ok::<_, Infallible>(KeyFigures::of(&outputs.channel(channel)));
    let Ok(leak) = MessageLeak::new(observation, figures);
    leak
}

/// Whether each action sends as many replies as the others, so that their number says how many actions there are.
fn has_equal_numbers(replies: &SingleReplies) -> bool {
    let mut sums = replies.per_action.iter().map(|sent| sent.iter().map(|sent| u64::from(*sent)).sum::<u64>());
    sums.next().is_none_or(|first| sums.all(|sum| sum == first))
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CountermeasureEffect {
    /// What an observer of the size of one message learns.
    pub by_size: MessageLeak,
    /// What an observer learns who sees its replies, too; `None` if the model does not know what replies say, or if they
    /// have too many combinations.
    pub with_replies: Option<MessageLeak>,
    /// How often it is right that a command is real, or none, by the best guess. Guessing reaches the same.
    pub real_named: f64,
    pub cost: CountermeasureCost,
}

/// What an observer learns from one message to the gateway about the command in it, or one of them.
///
/// Secrets are: a command was sent that is this one; it has so many actions; it addresses these kinds of device. To name
/// one is to be right in both, that the command is no dummy and what it does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageLeak {
    /// Whether the figures are exact; else those of leakage are upper bounds.
    pub is_exact: bool,
    pub command: KeyFigures,
    pub number: KeyFigures,
    /// About which kinds of device it addresses; `None` without an inventory.
    pub kinds: Option<KeyFigures>,
}

impl MessageLeak {
    /// What is learned where each channel of an observation has these `figures`.
    pub(crate) fn new<E>(
        observation: &Observation,
        figures: impl Fn(&Channel) -> Result<KeyFigures, E>,
    ) -> Result<Self, E> {
        Ok(Self {
            is_exact: observation.is_exact,
            command: figures(&observation.command.merged())?,
            number: figures(&observation.number)?,
            kinds: observation.kinds.as_ref().map(figures).transpose()?,
        })
    }

    /// The same where a share of all commands sent are dummies that are drawn and sent like the others.
    pub(crate) fn among_dummies(&self, dummies: f64) -> Self {
        let among = |figures: &KeyFigures| among_dummies(figures, dummies);
        Self {
            is_exact: self.is_exact,
            command: among(&self.command),
            number: among(&self.number),
            kinds: self.kinds.as_ref().map(among),
        }
    }

    /// The same as an upper bound.
    pub(crate) fn at_most(self) -> Self {
        Self { is_exact: false, ..self }
    }
}

/// The figures of a secret among dummies, a share d of all commands, which are seen with the same probabilities as the
/// others: P(t) = Σ π(A) · C(t | A).
///
/// A message t is seen with the probability (1 − d) · P(t) + d · P(t) = P(t), and a real command A in it with
/// (1 − d) · J(A, t). So the best guess of a real command is right in (1 − d) · V, and the greatest posterior is 1 − d
/// times what it was. With S for the secret or "a dummy", I(S; T) = I(real; T) + (1 − d) · I(A; T), and I(real; T) = 0.
/// Every message may be a dummy, which is one possibility more.
///
/// No other way to draw dummies is better: naming has the same (1 − d) · V in any case, I(real; T) is never below 0, and
/// to tell whether a command is real, a fixed guess reaches max(d, 1 − d) already.
fn among_dummies(figures: &KeyFigures, dummies: f64) -> KeyFigures {
    let real = 1.0 - dummies;
    KeyFigures {
        guessing: real * figures.guessing,
        named: real * figures.named,
        times_guessing: figures.times_guessing,
        information_bits: real * figures.information_bits,
        worst_posterior: real * figures.worst_posterior,
        smallest_set: figures.smallest_set + if dummies > 0.0 { 1.0 } else { 0.0 },
    }
}
