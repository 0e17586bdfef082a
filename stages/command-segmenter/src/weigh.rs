//! Weighs what speaks for a command against what speaks for noise, where a record's size could be either's.
//!
//! How often the size was noise in the labelled captures and how often a command is to be expected of it are multiplied
//! by how probable each is to come when the record does (on the beat of that noise or off it), and to be followed by
//! replies or by none. Whether replies follow shows only later; until then the record is in doubt.

use sizeleak_model::{MIN_OCCURRENCES, ServiceRecords};

use crate::knowledge::{Knowledge, WELL_KNOWN};

/// Noise has to be so many times as probable as a command before a record is taken for it.
const CAUTION: f64 = 8.0;

/// Of one size there may be so many times as many commands without a label as are to be expected.
const MORE_UNLABELLED: f64 = 2.0;

/// When a record comes, seen from the beat that noise of its size keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    /// On it.
    On,
    /// Off it.
    Off,
    /// There is none, or its phase is not known.
    Unknown,
}

/// What a record of the service's own is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belief {
    /// A command.
    Command,
    /// None.
    Noise,
    /// A command if the gateway replies, else none.
    IfReplied,
    /// A command unless the gateway replies.
    IfSilent,
}

/// Weighs a record that answers nothing, and whose size a command may have. `chance` is the probability to be on the beat
/// by chance.
pub(crate) fn weigh(knowledge: &Knowledge, size: u32, timing: Timing, chance: f64) -> Belief {
    let Some(kind) = knowledge.service(size) else { return Belief::Command };
    let expected = knowledge.expected(size);
    let unlabelled = MORE_UNLABELLED * expected * knowledge.noise.missing_labels as f64 / 100.0;
    let Some(noise) = times_alone(kind, unlabelled) else { return Belief::Command };
    let (for_noise, for_command) = match timing {
        Timing::Unknown => (1.0, 1.0),
        Timing::On => (share(kind.on_beat, kind.alone), chance),
        Timing::Off => (1.0 - share(kind.on_beat, kind.alone), 1.0 - chance),
    };
    let noise = noise * for_noise;
    let command = CAUTION * expected * for_command;
    let noise_replied = share(kind.replied, kind.alone);
    let command_replied = share(knowledge.noise.replied, knowledge.noise.commands);
    let if_replied = noise * noise_replied > command * command_replied;
    let if_silent = noise * (1.0 - noise_replied) > command * (1.0 - command_replied);
    match (if_replied, if_silent) {
        (true, true) => Belief::Noise,
        (false, false) => Belief::Command,
        (false, true) => Belief::IfReplied,
        (true, false) => Belief::IfSilent,
    }
}

/// How often noise of a size came alone, `unlabelled` commands not counted; `None` where that was so rare that it may have
/// been more of these.
fn times_alone(kind: &ServiceRecords, unlabelled: f64) -> Option<f64> {
    let alone = kind.alone as f64 - unlabelled;
    if alone >= MIN_OCCURRENCES as f64 {
        return Some(alone);
    }
    // An answer may come late, or to what the capture does not hold.
    (kind.answers >= WELL_KNOWN).then(|| alone.max(0.0) + 0.5)
}

/// A part of a whole, as probable as it is after having been seen so often.
fn share(part: u64, whole: u64) -> f64 {
    (part as f64 + 0.5) / (whole as f64 + 1.0)
}

#[cfg(test)]
mod tests {
    use sizeleak_model::NoiseStatistics;

    use super::*;
    use crate::testing::model;

    /// A gateway that replies to nearly all of 40 commands, with this noise of 110 bytes.
    fn knowledge(kind: ServiceRecords) -> Knowledge {
        let kind = ServiceRecords { size: 110, ..kind };
        let noise = NoiseStatistics { commands: 40, replied: 39, to_gateway: vec![kind], ..NoiseStatistics::default() };
        Knowledge::of(&model(noise)).unwrap()
    }

    fn beat() -> ServiceRecords {
        ServiceRecords { alone: 30, on_beat: 29, every_ms: Some(60_000), ..ServiceRecords::default() }
    }

    fn all(kind: ServiceRecords) -> [Belief; 3] {
        let knowledge = knowledge(kind);
        [Timing::On, Timing::Off, Timing::Unknown].map(|timing| weigh(&knowledge, 110, timing, 0.02))
    }

    #[test]
    fn a_keep_alive_is_told_by_its_beat_and_then_by_replies() {
        assert_eq!(all(beat()), [Belief::Noise, Belief::IfReplied, Belief::IfReplied]);
    }

    #[test]
    fn of_a_gateway_that_never_replies_the_beat_decides() {
        let mut knowledge = knowledge(ServiceRecords { commands: 2, ..beat() });
        knowledge.noise.replied = 0;
        let timings = [Timing::On, Timing::Off, Timing::Unknown];
        let beliefs = timings.map(|timing| weigh(&knowledge, 110, timing, 0.02));
        assert_eq!(beliefs, [Belief::Noise, Belief::Command, Belief::Noise]);
    }

    #[test]
    fn what_the_gateway_replies_to_need_not_be_a_command() {
        let mut knowledge = knowledge(ServiceRecords { alone: 30, replied: 30, ..ServiceRecords::default() });
        knowledge.noise.replied = 1;
        assert_eq!(weigh(&knowledge, 110, Timing::Unknown, 0.02), Belief::IfSilent);
    }

    #[test]
    fn what_is_mostly_a_command_is_one() {
        let unlabelled = ServiceRecords { commands: 20, alone: 5, replied: 5, ..ServiceRecords::default() };
        assert_eq!(all(unlabelled), [Belief::Command; 3]);
        let rare = ServiceRecords { alone: 3, ..ServiceRecords::default() };
        assert_eq!(all(rare), [Belief::Command; 3], "three may be labels that are missing");
        let mut careless = knowledge(ServiceRecords { commands: 1, alone: 9, replied: 9, ..ServiceRecords::default() });
        assert_eq!(weigh(&careless, 110, Timing::Unknown, 0.02), Belief::Noise);
        careless.noise.missing_labels = 400;
        assert_eq!(weigh(&careless, 110, Timing::Unknown, 0.02), Belief::Command, "four of five labels are missing");
        assert_eq!(weigh(&knowledge(beat()), 111, Timing::On, 0.02), Belief::Command, "another size");
    }

    #[test]
    fn an_answer_that_nobody_asked_for_is_no_command_without_replies() {
        let answer = ServiceRecords { answers: 50, ..ServiceRecords::default() };
        assert_eq!(weigh(&knowledge(answer), 110, Timing::Unknown, 0.02), Belief::IfReplied);
    }
}
