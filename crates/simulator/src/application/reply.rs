//! What the gateway says after a command.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use crate::SimulateError;
use crate::message::{self, MessageEncoder};
use crate::plan::PlannedCommand;
use crate::random::within;
use crate::scenario::{ReplyMode, ReplySettings};

/// Bodies that go into one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) delay_ns: i64,
    pub(super) bodies: Vec<Vec<u8>>,
}

/// The replies to a command, in order.
pub(super) fn replies(
    command: &PlannedCommand,
    replies: ReplySettings,
    writer: &MessageEncoder,
    random: &mut ChaCha20Rng,
) -> Result<Vec<Reply>, SimulateError> {
    let mut bodies = match replies.mode {
        ReplyMode::PerAction => {
            command.orders.iter().map(|order| writer.status(order.device)).collect::<Result<Vec<_>, _>>()?
        }
        ReplyMode::PerCommand => vec![message::done(command.message_id)?],
        ReplyMode::None => Vec::new(),
    };
    bodies.retain(|_| !random.random_bool(replies.loss));
    let mut delays: Vec<i64> = bodies.iter().map(|_| within(replies.delay, random)).collect();
    delays.sort_unstable();
    let mut records: Vec<Reply> = Vec::new();
    for (body, delay_ns) in bodies.into_iter().zip(delays) {
        let joins = random.random_bool(replies.coalesce);
        match records.last_mut().filter(|_| joins) {
            Some(before) => before.bodies.push(body),
            None => records.push(Reply { delay_ns, bodies: vec![body] }),
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::Scenario;
    use crate::plan::DeviceAction;

    fn count(settings: ReplySettings) -> (usize, usize) {
        let writer = MessageEncoder::new(&Scenario::default());
        let orders = (0..10).map(|device| DeviceAction { device, action: 0 }).collect();
        let command = PlannedCommand { time_ns: 0, message_id: 1, orders };
        let records = replies(&command, settings, &writer, &mut ChaCha20Rng::seed_from_u64(1)).unwrap();
        assert!(records.is_sorted_by_key(|reply| reply.delay_ns));
        (records.len(), records.iter().map(|reply| reply.bodies.len()).sum())
    }

    #[test]
    fn modes() {
        let sure = ReplySettings { loss: 0.0, coalesce: 0.0, ..ReplySettings::default() };
        assert_eq!(count(sure), (10, 10));
        assert_eq!(count(ReplySettings { coalesce: 1.0, ..sure }), (1, 10));
        assert_eq!(count(ReplySettings { loss: 1.0, ..sure }), (0, 0));
        assert_eq!(count(ReplySettings { mode: ReplyMode::PerCommand, ..sure }), (1, 1));
        assert_eq!(count(ReplySettings { mode: ReplyMode::None, ..sure }), (0, 0));
        let (records, bodies) = count(ReplySettings { loss: 0.5, ..sure });
        assert_eq!(records, bodies);
        assert!((1..10).contains(&bodies));
    }
}
