//! The gateway's replies to a command.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use crate::message_encoder::{self, MessageEncoder};
use crate::random_streams::random_duration;
use crate::scenario::{ReplyMode, ReplyPadding, ReplySettings};
use crate::schedule::PlannedCommand;

/// The replies to a command, in order of time: how long after it, and the bodies of one record.
pub(super) fn replies(
    command: &PlannedCommand,
    settings: ReplySettings,
    encoder: &MessageEncoder,
    random: &mut ChaCha20Rng,
) -> Vec<(i64, Vec<Vec<u8>>)> {
    let mut bodies = match settings.mode {
        ReplyMode::PerAction => statuses(command, encoder, random),
        ReplyMode::PerCommand => vec![message_encoder::done(command.form, command.message_id)],
        ReplyMode::None => Vec::new(),
    };
    bodies.retain(|_| !random.random_bool(settings.loss));
    let mut delays: Vec<i64> = bodies.iter().map(|_| random_duration(settings.delay, random)).collect();
    delays.sort_unstable();
    let mut replies: Vec<(i64, Vec<Vec<u8>>)> = Vec::new();
    for (body, delay_ns) in bodies.into_iter().zip(delays) {
        let is_coalesced = random.random_bool(settings.coalesce);
        match replies.last_mut().filter(|_| is_coalesced) {
            Some((_, bodies)) => bodies.push(body),
            None => replies.push((delay_ns, vec![body])),
        }
    }
    replies
}

fn statuses(command: &PlannedCommand, encoder: &MessageEncoder, random: &mut ChaCha20Rng) -> Vec<Vec<u8>> {
    let mut bodies = Vec::with_capacity(command.actions.len());
    for action in &command.actions {
        for ReplyPadding { min, max } in encoder.replies(action.action).iter().copied() {
            let padding = if min < max { random.random_range(min..=max) } else { min };
            bodies.push(encoder.status(command.form, action.device, padding));
        }
    }
    bodies
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::Scenario;
    use crate::command_generator::DeviceAction;
    use crate::message_encoder::BodyForm;

    fn count(settings: ReplySettings) -> (usize, usize) {
        let encoder = MessageEncoder::new(&Scenario::default());
        let actions = (0..10).map(|device| DeviceAction::new(device, 0)).collect();
        let command = PlannedCommand { time_ns: 0, message_id: 1, form: BodyForm::default(), actions, is_dummy: false };
        let replies = replies(&command, settings, &encoder, &mut ChaCha20Rng::seed_from_u64(1));
        assert!(replies.is_sorted_by_key(|(delay_ns, _)| *delay_ns));
        (replies.len(), replies.iter().map(|(_, bodies)| bodies.len()).sum())
    }

    #[test]
    fn replies_follow_mode_loss_and_coalescing() {
        let lossless = ReplySettings { loss: 0.0, coalesce: 0.0, ..ReplySettings::default() };
        assert_eq!(count(lossless), (10, 10));
        assert_eq!(count(ReplySettings { coalesce: 1.0, ..lossless }), (1, 10));
        assert_eq!(count(ReplySettings { loss: 1.0, ..lossless }), (0, 0));
        assert_eq!(count(ReplySettings { mode: ReplyMode::PerCommand, ..lossless }), (1, 1));
        assert_eq!(count(ReplySettings { mode: ReplyMode::None, ..lossless }), (0, 0));
        let (records, bodies) = count(ReplySettings { loss: 0.5, ..lossless });
        assert_eq!(records, bodies);
        assert!((1..10).contains(&bodies));
    }

    #[test]
    fn each_action_has_its_own_replies() {
        let mut scenario = Scenario::default();
        (scenario.replies.loss, scenario.replies.coalesce) = (0.0, 0.0);
        let padding = |min, max| ReplyPadding { min, max };
        scenario.actions[0].replies = Some(Vec::new());
        scenario.actions[1].replies = Some(vec![padding(4, 4), padding(10, 12)]);
        let encoder = MessageEncoder::new(&scenario);
        let mut random = ChaCha20Rng::seed_from_u64(1);
        let plain = encoder.status(BodyForm::default(), 0, 0).len();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let actions = (0..3).map(|action| DeviceAction::new(action, action as usize)).collect();
            let command =
                PlannedCommand { time_ns: 0, message_id: 1, form: BodyForm::default(), actions, is_dummy: false };
            let replies = replies(&command, scenario.replies, &encoder, &mut random);
            let mut lengths: Vec<usize> = replies.iter().map(|(_, bodies)| bodies[0].len() - plain).collect();
            lengths.sort_unstable();
            assert_eq!((lengths.len(), &lengths[..2]), (3, &[0, 4][..]), "none of `on`, two of `off`, one of `toggle`");
            seen.insert(lengths[2]);
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [10, 11, 12]);
    }
}
