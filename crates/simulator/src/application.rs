//! The application protocols on the gateway's connection: plaintext messages in order of time.

mod long_poll;
mod padding;
mod push;
mod push_protocol;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use crate::message_encoder::{self, MessageEncoder};
use crate::random_streams::random_duration;
use crate::scenario::{Framing, ReplyMode, ReplyPadding, ReplySettings, Scenario};
use crate::schedule::{PlannedCommand, PlannedConnection};
use crate::tls::Side;

pub(crate) use long_poll::poll_messages;
pub(crate) use padding::{MessagePadding, padded_length};
pub(crate) use push::PushSession;

/// What one end writes at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) time_ns: i64,
    pub(crate) side: Side,
    pub(crate) bytes: Vec<u8>,
    /// The bytes that pad each of its records; none where it is empty.
    pub(crate) record_padding: Vec<usize>,
    pub(crate) role: MessageRole,
}

impl Message {
    /// A message whose records are not padded.
    pub(crate) fn new(time_ns: i64, side: Side, bytes: Vec<u8>, role: MessageRole) -> Self {
        Self { time_ns, side, bytes, record_padding: Vec::new(), role }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageRole {
    /// A command, by its index in its connection.
    Command(usize),
    /// The gateway's reply to that command.
    Reply(usize),
    Other,
}

/// What the messages of a connection are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageInput<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) encoder: &'a MessageEncoder,
    pub(crate) connection: &'a PlannedConnection,
    /// When the handshakes are done.
    pub(crate) ready_ns: i64,
}

pub(crate) fn alpn_protocol(framing: Framing) -> &'static str {
    match framing {
        Framing::Websocket | Framing::Http => "http/1.1",
        Framing::Mqtt => "mqtt",
    }
}

/// The replies to a command, in order of time: how long after it, and the bodies of one record.
fn replies(
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
