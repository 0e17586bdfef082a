//! The Bayes limit: how well any method can identify a scenario's random commands. It is what an audit finds of the
//! scenario's true model: the distributions that its commands, sizes and replies are drawn from.
//!
//! Framing and authenticated encryption do not matter: they map
//! longer messages to longer ones, so the size on the wire reveals the size of the JSON. Under a block cipher all sizes
//! with the same number of blocks look alike, and padding makes more sizes look alike.

mod true_channel;

use sizeleak_inference::channel::CommandFigures;
use sizeleak_inference::space::{CommandSpace, Home, Premises, PriorName, SpaceError};
use sizeleak_model::statistics::times;
use sizeleak_model::{Action, Device, Inventory};
use thiserror::Error;

use true_channel::{Period, ScenarioTraits, SeenReplies, TrueSizes, reply_noise};

use crate::command_generator::{CapturePart, growing_id, id_widths};
use crate::scenario::{Compression, DeviceIds, DeviceKind, IdDraw, ReplyMode, Scenario};
use crate::schedule::before_change;
use crate::{ScenarioError, SimulateError};

/// The largest probability of all that is left out: half a unit of the last digit that is shown.
const MAX_LEFT_OUT: f64 = 0.002;

#[derive(Debug, Error)]
pub enum BayesLimitError {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error("the limit can be computed only if `command.device-ids` is \"fixed\"")]
    DeviceIds,
    #[error("the limit is not known where {0}")]
    Setting(&'static str),
    #[error(
        "the limit cannot be computed: there are too many different commands and replies; lower `command.most-actions`"
    )]
    TooMany,
    #[error(transparent)]
    Message(#[from] SimulateError),
}

impl From<SpaceError> for BayesLimitError {
    /// A scenario has sizes, devices and a prior.
    fn from(_: SpaceError) -> Self {
        Self::TooMany
    }
}

/// The best result that any method can reach on a scenario's random commands from their sizes and replies.
///
/// Replies are seen apart from all other traffic, and one by one: that several may share a record is not taken into
/// account, so with `replies.coalesce` the limits with replies are upper bounds. Where bodies change in the middle of
/// the test (new firmware, growing ids), the observer knows when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BayesLimit {
    /// The probability that the best first answer is right, from the size of the command alone.
    pub top_1: f64,
    /// The same if the number of its replies is known too.
    pub top_1_with_reply_count: f64,
    /// The same if the size of each reply is known too.
    pub top_1_with_replies: f64,
    /// The entropy of a command's actions before anything is observed, in bits.
    pub prior_bits: f64,
    /// The mutual information of actions and size, in bits.
    pub leaked_bits: f64,
    /// The mutual information of actions and size with the number of replies, in bits.
    pub leaked_bits_with_reply_count: f64,
    /// The mutual information of actions and size with the sizes of replies, in bits.
    pub leaked_bits_with_replies: f64,
    /// The probability of the rare commands and rare losses of replies that were neglected, at most 0.002: no limit is
    /// lower than it should be by more than this.
    pub neglected: f64,
}

/// Computes the limit of a scenario, exact up to rounding and [`BayesLimit::neglected`]. Timestamps are assumed to have
/// as many digits as the scenario's epoch.
pub fn bayes_limit(scenario: &Scenario) -> Result<BayesLimit, BayesLimitError> {
    scenario.check()?;
    check_settings(scenario)?;
    let traits = ScenarioTraits::new(scenario);
    let commands = true_commands(scenario, &traits)?;
    let mut figures = [CommandFigures::default(); 3];
    for period in periods(scenario) {
        for (all, seen) in figures.iter_mut().zip([SeenReplies::None, SeenReplies::Number, SeenReplies::Sizes]) {
            let mut noise = TrueSizes::new(scenario, &traits, &period, seen);
            let replies = reply_noise(scenario, &traits, &period, seen)?;
            let learned = CommandFigures::new(&commands, &mut noise, &replies)?;
            noise.check()?;
            if learned.left_out > MAX_LEFT_OUT {
                return Err(BayesLimitError::TooMany);
            }
            all.named += period.share * learned.named;
            all.prior_bits += period.share * learned.prior_bits;
            all.information_bits += period.share * learned.information_bits;
            all.left_out += period.share * learned.left_out;
        }
    }
    let [alone, count, sizes] = figures;
    Ok(BayesLimit {
        top_1: alone.named,
        top_1_with_reply_count: count.named,
        top_1_with_replies: sizes.named,
        prior_bits: alone.prior_bits,
        leaked_bits: alone.information_bits,
        leaked_bits_with_reply_count: count.information_bits,
        leaked_bits_with_replies: sizes.information_bits,
        neglected: alone.left_out.max(count.left_out).max(sizes.left_out),
    })
}

/// All commands that a scenario may draw: as many devices as the decay says, each as likely, with each of its actions.
fn true_commands(scenario: &Scenario, traits: &ScenarioTraits) -> Result<CommandSpace, SpaceError> {
    let names = scenario.action_names().into_iter();
    let actions: Vec<Action> =
        names.zip(&traits.actions).map(|(name, action)| Action::new(name, action.bytes.cast_signed() as i64)).collect();
    let device = |kind: &DeviceKind| Device {
        name: kind.name.clone(),
        count: kind.count,
        actions: kind.actions.clone(),
        safe: true,
    };
    let inventory = Inventory { devices: scenario.devices.iter().map(device).collect() };
    let home = Home {
        overhead: 0,
        actions: &actions,
        inventory: Some(&inventory),
        prior: None,
        max_actions: scenario.command.most_actions,
    };
    CommandSpace::new(home, &Premises { prior: PriorName::Devices, decay: Some(scenario.command.decay) })
}

/// Refuses a scenario where sizes or replies follow distributions that are not computed here.
fn check_settings(scenario: &Scenario) -> Result<(), BayesLimitError> {
    if scenario.command.device_ids != DeviceIds::Fixed {
        return Err(BayesLimitError::DeviceIds);
    }
    let refuse = |holds, why| if holds { Err(BayesLimitError::Setting(why)) } else { Ok(()) };
    let why = "`session.compression` is not \"none\": compressed sizes depend on every byte of a body";
    refuse(scenario.session.compression != Compression::None, why)?;
    let policies = [&scenario.padding.policy, &scenario.padding.replies];
    let why = "`padding` is random: an observer may see several commands with the same actions";
    refuse(policies.into_iter().any(|policy| policy.draw().is_some()), why)?;
    let why = "`command.recurring.share` is not 0: it depends on which commands recur";
    refuse(scenario.command.recurring.share > 0.0, why)?;
    let why = "`habits.days` is not 0: commands follow routines, which an observer learns over the days";
    refuse(scenario.habits.days > 0, why)?;
    let why = "`command.overlap.share` is not 0: replies may belong to several commands";
    refuse(scenario.command.overlap.share > 0.0 && scenario.replies.mode != ReplyMode::None, why)
}

/// The periods of the test whose bodies have different forms. The observer knows which period it is.
fn periods(scenario: &Scenario) -> Vec<Period> {
    let (change, id) = (scenario.firmware_change, scenario.command.message_id);
    let grows = id.draw == IdDraw::Growing;
    let widths = id_widths(id);
    if !scenario.rounds_sizes() {
        // A known number of bytes more in each body makes no difference, unless there are blocks or buckets to fill.
        let id_widths = if grows { vec![(id.min_digits, 1.0)] } else { widths };
        return vec![Period { share: 1.0, added_bytes: 0, id_widths }];
    }
    let count = scenario.test.commands as usize;
    let change_at = if change.bytes > 0 { before_change(change, count) } else { count };
    let commands = times((0..count).map(|index| {
        let added_bytes = if index < change_at { 0 } else { change.bytes };
        (added_bytes, grows.then(|| growing_id(id, CapturePart::Test, index, count).to_string().len()))
    }));
    let period = |((added_bytes, width), commands): ((usize, Option<usize>), u32)| Period {
        share: f64::from(commands) / count as f64,
        added_bytes,
        id_widths: width.map_or_else(|| widths.clone(), |width| vec![(width as u32, 1.0)]),
    };
    commands.into_iter().map(period).collect()
}

#[cfg(test)]
mod tests;
