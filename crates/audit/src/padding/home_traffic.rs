//! The commands of a home and their replies, as they are seen without countermeasures and with them.

use std::convert::Infallible;

use sizeleak_inference::channel::{Channel, EpsilonKnowledge, KeyFigures, Observation, Observer};
use sizeleak_inference::space::{CommandSpace, SpaceError};
use sizeleak_model::policies::PaddingPolicy;
use sizeleak_model::{Model, SingleReplies};

use crate::padding::countermeasure_effect::{
    CommandTraffic, CountermeasureCost, CountermeasureEffect, DAY, RecordTraffic,
};
use crate::padding::countermeasure_error::CountermeasureError;
use crate::padding::countermeasures::{Countermeasures, ReplyForm};
use crate::padding::message_leak::MessageLeak;
use crate::padding::padded_observation::PaddedOutputs;
use crate::padding::reply_traffic::ReplyTraffic;
use crate::padding::seen_sizes::SeenSizes;
use crate::padding::shared_record::SharedRecord;

/// The commands of a home and their replies.
#[derive(Debug)]
pub struct HomeTraffic {
    sizes: SeenSizes,
    /// Who sees replies, too.
    with_replies: Option<Observation>,
    /// Who sees their number, where that follows from the number of actions alone.
    with_reply_count: Option<Observation>,
    commands: CommandTraffic,
}

impl HomeTraffic {
    /// All commands of `space`, which is of this model, so many a day.
    ///
    /// # Errors
    /// [`SpaceError`].
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

    /// What the model knows of the replies to a command.
    pub fn replies(&self) -> ReplyTraffic {
        self.commands.replies
    }

    /// The expected bytes of a command.
    pub fn command_bytes(&self) -> f64 {
        self.commands.bytes
    }

    /// What countermeasures give away and cost.
    ///
    /// # Errors
    /// [`CountermeasureError`].
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
