//! Tests of `learned`.

use sizeleak_model::NoiseStatistics;

use super::*;
use crate::testing::model;

const PHASES: [Option<bool>; 3] = [Some(true), Some(false), None];

/// A gateway that replies to nearly all of 40 commands, with this noise of 110 bytes.
fn noise_model(records: ServiceRecords) -> NoiseModel {
    let records = ServiceRecords { size: 110, ..records };
    let noise = NoiseStatistics { commands: 40, replied: 39, to_gateway: vec![records], ..NoiseStatistics::default() };
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
fn noise_that_the_gateway_replies_to_is_not_a_command_if_replied() {
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
    let mut unlabelled = noise_model(ServiceRecords { commands: 1, alone: 9, replied: 9, ..ServiceRecords::default() });
    assert_eq!(conditions(&unlabelled)[2], CommandCondition::Never);
    unlabelled.noise.missing_labels = 400;
    assert_eq!(conditions(&unlabelled)[2], CommandCondition::Always, "four of five labels are missing");
    let other_size = command_condition(&noise_model(keep_alive()), 111, Some(true), 0.02);
    assert_eq!(other_size, CommandCondition::Always);
}

#[test]
fn an_answer_without_a_request_is_a_command_only_if_replied() {
    let answers = ServiceRecords { answers: 50, ..ServiceRecords::default() };
    assert_eq!(conditions(&noise_model(answers))[2], CommandCondition::IfReplied);
}
