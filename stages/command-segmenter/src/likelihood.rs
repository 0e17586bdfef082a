//! Compares how likely a record is as a command and as noise, where its size may be either.
//!
//! The prior of each is how often the size was noise in the labelled captures, and how often a command of it is
//! expected. It is multiplied by the likelihood of the record's time (on the timer of that noise or off it) and of its
//! replies. Replies come later, so the result is a condition on them.

use sizeleak_model::{MIN_OCCURRENCES, ServiceRecords};

use crate::noise_model::{NoiseModel, WELL_KNOWN};
use crate::record_class::CommandCondition;

/// A record is noise only if that is this much more likely than a command: of nine at the limit, one is a command.
const LIKELIHOOD_RATIO: f64 = 8.0;

/// Commands without a label may be this much more frequent at one size than expected.
const UNLABELLED_RATIO: f64 = 2.0;

/// When a record comes, compared with the timer of noise of its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimerPhase {
    OnTimer,
    OffTimer,
    /// There is no timer, or its phase is not known.
    Unknown,
}

/// When a record that answers nothing is a command. `chance` is the probability of being on the timer by chance.
pub(crate) fn command_condition(
    noise_model: &NoiseModel,
    size: u32,
    phase: TimerPhase,
    chance: f64,
) -> CommandCondition {
    let Some(records) = noise_model.service(size) else { return CommandCondition::Always };
    let expected = noise_model.expected_commands(size);
    let unlabelled = UNLABELLED_RATIO * expected * noise_model.noise.missing_labels as f64 / 100.0;
    let Some(prior) = noise_prior(records, unlabelled) else { return CommandCondition::Always };
    let (timed_noise, timed_command) = match phase {
        TimerPhase::Unknown => (1.0, 1.0),
        TimerPhase::OnTimer => (share(records.on_beat, records.alone), chance),
        TimerPhase::OffTimer => (1.0 - share(records.on_beat, records.alone), 1.0 - chance),
    };
    let noise = prior * timed_noise;
    let command = LIKELIHOOD_RATIO * expected * timed_command;
    let noise_replied = share(records.replied, records.alone);
    let command_replied = share(noise_model.noise.replied, noise_model.noise.commands);
    let is_noise_if_replied = noise * noise_replied > command * command_replied;
    let is_noise_if_silent = noise * (1.0 - noise_replied) > command * (1.0 - command_replied);
    match (is_noise_if_replied, is_noise_if_silent) {
        (true, true) => CommandCondition::Never,
        (false, false) => CommandCondition::Always,
        (false, true) => CommandCondition::IfReplied,
        (true, false) => CommandCondition::IfSilent,
    }
}

/// How often unsolicited noise of a size came, without the `unlabelled` commands counted with it; `None` if it was so
/// rare that all of it may have been such commands.
fn noise_prior(records: &ServiceRecords, unlabelled: f64) -> Option<f64> {
    let alone = records.alone as f64 - unlabelled;
    if alone >= MIN_OCCURRENCES as f64 {
        return Some(alone);
    }
    // An answer may be late, or its request may be missing from the capture.
    (records.answers >= WELL_KNOWN).then(|| alone.max(0.0) + 0.5)
}

/// The expected probability of an event that was seen `part` times in `whole` trials.
fn share(part: u64, whole: u64) -> f64 {
    (part as f64 + 0.5) / (whole as f64 + 1.0)
}

#[cfg(test)]
mod tests;
