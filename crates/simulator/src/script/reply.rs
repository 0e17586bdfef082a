//! What the gateway says after a command.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use crate::SimulateError;
use crate::message::{self, Writer};
use crate::plan::Planned;
use crate::random::within;
use crate::scenario::{Replies, ReplyMode};

/// Bodies that go into one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) delay_ns: i64,
    pub(super) bodies: Vec<Vec<u8>>,
}

/// The replies to a command, in order.
pub(super) fn replies(
    command: &Planned,
    replies: Replies,
    writer: &Writer,
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
    use crate::plan::Order;

    fn count(settings: Replies) -> (usize, usize) {
        let writer = Writer::new(&Scenario::default());
        let orders = (0..10).map(|device| Order { device, action: 0 }).collect();
        let command = Planned { time_ns: 0, message_id: 1, orders };
        let records = replies(&command, settings, &writer, &mut ChaCha20Rng::seed_from_u64(1)).unwrap();
        assert!(records.is_sorted_by_key(|reply| reply.delay_ns));
        (records.len(), records.iter().map(|reply| reply.bodies.len()).sum())
    }

    #[test]
    fn modes() {
        let sure = Replies { loss: 0.0, coalesce: 0.0, ..Replies::default() };
        assert_eq!(count(sure), (10, 10));
        assert_eq!(count(Replies { coalesce: 1.0, ..sure }), (1, 10));
        assert_eq!(count(Replies { loss: 1.0, ..sure }), (0, 0));
        assert_eq!(count(Replies { mode: ReplyMode::PerCommand, ..sure }), (1, 1));
        assert_eq!(count(Replies { mode: ReplyMode::None, ..sure }), (0, 0));
        let (records, bodies) = count(Replies { loss: 0.5, ..sure });
        assert_eq!(records, bodies);
        assert!((1..10).contains(&bodies));
    }
}
