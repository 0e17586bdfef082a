//! Compares how likely a record is as a command and as noise, where its size may be either.
//!
//! The prior of each is how often the size was noise in the labelled captures, and how often a command of it is
//! expected. It is multiplied by the likelihood of the record's time (on the timer of that noise or off it) and of its
//! replies. Replies come later, so the result is a condition on them.

use sizeleak_model::{MIN_OCCURRENCES, ServiceRecords};

use crate::noise_model::{NoiseModel, WELL_KNOWN};
use crate::record_class::CommandCondition;

/// A record is noise only if that is this much more likely than a command.
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
mod tests {
    use sizeleak_model::NoiseStatistics;

    use super::*;
    use crate::testing::model;

    const PHASES: [TimerPhase; 3] = [TimerPhase::OnTimer, TimerPhase::OffTimer, TimerPhase::Unknown];

    /// A gateway that replies to nearly all of 40 commands, with this noise of 110 bytes.
    fn noise_model(records: ServiceRecords) -> NoiseModel {
        let records = ServiceRecords { size: 110, ..records };
        let noise =
            NoiseStatistics { commands: 40, replied: 39, to_gateway: vec![records], ..NoiseStatistics::default() };
        NoiseModel::new(&model(noise)).unwrap()
    }

    fn keep_alive() -> ServiceRecords {
        ServiceRecords { alone: 30, on_beat: 29, every_ms: Some(60_000), ..ServiceRecords::default() }
    }

    fn conditions(noise_model: &NoiseModel) -> [CommandCondition; 3] {
        PHASES.map(|phase| command_condition(noise_model, 110, phase, 0.02))
    }

    #[test]
    fn on_its_timer_a_keep_alive_is_noise_and_off_it_replies_decide() {
        let expected = [CommandCondition::Never, CommandCondition::IfReplied, CommandCondition::IfReplied];
        assert_eq!(conditions(&noise_model(keep_alive())), expected);
    }

    #[test]
    fn the_timer_alone_decides_for_a_gateway_that_never_replies() {
        let mut noise_model = noise_model(ServiceRecords { commands: 2, ..keep_alive() });
        noise_model.noise.replied = 0;
        let expected = [CommandCondition::Never, CommandCondition::Always, CommandCondition::Never];
        assert_eq!(conditions(&noise_model), expected);
    }

    #[test]
    fn noise_that_the_gateway_replies_to_is_no_command_if_replied() {
        let mut noise_model = noise_model(ServiceRecords { alone: 30, replied: 30, ..ServiceRecords::default() });
        noise_model.noise.replied = 1;
        assert_eq!(conditions(&noise_model)[2], CommandCondition::IfSilent);
    }

    #[test]
    fn rare_noise_and_sizes_that_mostly_have_commands_are_commands() {
        let mostly = ServiceRecords { commands: 20, alone: 5, replied: 5, ..ServiceRecords::default() };
        assert_eq!(conditions(&noise_model(mostly)), [CommandCondition::Always; 3]);
        let rare = ServiceRecords { alone: 3, ..ServiceRecords::default() };
        assert_eq!(conditions(&noise_model(rare)), [CommandCondition::Always; 3], "three may be missing labels");
        let mut unlabelled =
            noise_model(ServiceRecords { commands: 1, alone: 9, replied: 9, ..ServiceRecords::default() });
        assert_eq!(conditions(&unlabelled)[2], CommandCondition::Never);
        unlabelled.noise.missing_labels = 400;
        assert_eq!(conditions(&unlabelled)[2], CommandCondition::Always, "four of five labels are missing");
        let other_size = command_condition(&noise_model(keep_alive()), 111, TimerPhase::OnTimer, 0.02);
        assert_eq!(other_size, CommandCondition::Always);
    }

    #[test]
    fn an_answer_without_a_request_is_a_command_only_if_replied() {
        let answers = ServiceRecords { answers: 50, ..ServiceRecords::default() };
        assert_eq!(conditions(&noise_model(answers))[2], CommandCondition::IfReplied);
    }
}
