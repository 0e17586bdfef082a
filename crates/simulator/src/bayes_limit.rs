//! The Bayes limit: how well any method can identify a scenario's random commands, computed from the distributions that
//! they are drawn from.
//!
//! The best answer to an observation is the command A with the greatest P(A, observation); it is right with probability
//! Σ over observations of max over A of P(A, observation). Framing and authenticated encryption do not matter: they map
//! longer messages to longer ones, so the size on the wire reveals the size of the JSON. Under a block cipher all sizes
//! with the same number of blocks look alike, and padding makes more sizes look alike.

mod action_traits;
mod command_groups;
mod counting;
mod limit_error;
mod observation;
mod observed_sizes;
mod reply_evidence;
mod totals;

use std::collections::BTreeMap;

use action_traits::ScenarioTraits;
use command_groups::CommandGroups;
pub use limit_error::BayesLimitError;
use observation::{Learned, Observer, Period};
use reply_evidence::SeenReplies;

use crate::command_generator::{CapturePart, growing_id, id_widths};
use crate::scenario::{Compression, DeviceIds, IdDraw, ReplyMode, Scenario};
use crate::schedule::before_change;

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
///
/// # Errors
/// [`BayesLimitError`], which says what to change.
pub fn bayes_limit(scenario: &Scenario) -> Result<BayesLimit, BayesLimitError> {
    scenario.check()?;
    check_settings(scenario)?;
    let traits = ScenarioTraits::new(scenario);
    let commands = CommandGroups::new(scenario, &traits)?;
    let (mut alone, mut count, mut sizes) = (Learned::default(), Learned::default(), Learned::default());
    for period in periods(scenario) {
        let observer = Observer { scenario, traits: &traits, commands: &commands, period: &period };
        for (all, seen) in
            [(&mut alone, SeenReplies::None), (&mut count, SeenReplies::Number), (&mut sizes, SeenReplies::Sizes)]
        {
            let learned = observer.learns(seen)?;
            all.top_1 += period.share * learned.top_1;
            all.leaked_bits += period.share * learned.leaked_bits;
            all.neglected += period.share * learned.neglected;
        }
    }
    Ok(BayesLimit {
        top_1: alone.top_1,
        top_1_with_reply_count: count.top_1,
        top_1_with_replies: sizes.top_1,
        prior_bits: commands.prior_bits,
        leaked_bits: alone.leaked_bits,
        leaked_bits_with_reply_count: count.leaked_bits,
        leaked_bits_with_replies: sizes.leaked_bits,
        neglected: alone.neglected.max(count.neglected).max(sizes.neglected),
    })
}

/// Refuses a scenario where sizes or replies follow distributions that are not computed here.
fn check_settings(scenario: &Scenario) -> Result<(), BayesLimitError> {
    if scenario.command.device_ids != DeviceIds::Fixed {
        return Err(BayesLimitError::DeviceIds);
    }
    if scenario.session.compression != Compression::None {
        let why = "`session.compression` is not \"none\": compressed sizes depend on every byte of a body";
        return Err(BayesLimitError::Setting(why));
    }
    if [&scenario.padding.policy, &scenario.padding.replies].into_iter().any(|policy| policy.draw().is_some()) {
        let why = "`padding` is random: an observer may see several commands with the same actions";
        return Err(BayesLimitError::Setting(why));
    }
    if scenario.command.recurring.share > 0.0 {
        let why = "`command.recurring.share` is not 0: it depends on which commands recur";
        return Err(BayesLimitError::Setting(why));
    }
    if scenario.command.overlap.share > 0.0 && scenario.replies.mode != ReplyMode::None {
        let why = "`command.overlap.share` is not 0: replies may belong to several commands";
        return Err(BayesLimitError::Setting(why));
    }
    Ok(())
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
    let mut commands: BTreeMap<(usize, Option<usize>), u32> = BTreeMap::new();
    for index in 0..count {
        let added_bytes = if index < change_at { 0 } else { change.bytes };
        let width = grows.then(|| growing_id(id, CapturePart::Test, index, count).to_string().len());
        *commands.entry((added_bytes, width)).or_default() += 1;
    }
    let period = |((added_bytes, width), commands): ((usize, Option<usize>), u32)| Period {
        share: f64::from(commands) / count as f64,
        added_bytes,
        id_widths: width.map_or_else(|| widths.clone(), |width| vec![(width as u32, 1.0)]),
    };
    commands.into_iter().map(period).collect()
}

#[cfg(test)]
mod tests;
