//! What was found in a flow's segments: events that make records and sessions, and incidents to tell or count.

use sizeleak_frame::Direction;

use crate::handshake::Hello;
use crate::record::Sized;

/// Something of a TLS session, in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// A hello is complete.
    Hello { time_ns: i64, direction: Direction, hello: Box<Hello> },
    /// A record is.
    Record { direction: Direction, record: Sized },
}

impl Event {
    /// When it happened.
    pub(crate) fn time_ns(&self) -> i64 {
        match self {
            Self::Hello { time_ns, .. } => *time_ns,
            Self::Record { record, .. } => record.time_ns,
        }
    }

    /// Which way it travelled.
    pub(crate) fn direction(&self) -> Direction {
        match self {
            Self::Hello { direction, .. } | Self::Record { direction, .. } => *direction,
        }
    }
}

/// Something that is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Incident {
    /// Bytes are missing; zero where nobody knows how many.
    Gap { bytes: u64 },
    /// Boundaries were found again.
    Resync { skipped: u64 },
    /// Bytes came twice and differ.
    Conflict,
    /// A header is none.
    Malformed,
    /// No TLS as far as can be told.
    NotTls,
}

/// What one segment brought; its memory is used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) events: Vec<Event>,
    pub(crate) incidents: Vec<(i64, Incident)>,
    /// Segments that brought nothing new.
    pub(crate) repeated: u64,
    /// Segments before their turn.
    pub(crate) early: u64,
}

impl Findings {
    /// Takes note of an incident.
    pub(crate) fn tell(&mut self, time_ns: i64, incident: Incident) {
        self.incidents.push((time_ns, incident));
    }
}

/// Puts the events of both directions in the order of their times, and leaves each direction in its own order.
pub(crate) fn merge(events: Vec<Event>) -> Vec<Event> {
    let (mut to_gateway, mut from_gateway) = (i64::MIN, i64::MIN);
    let timed = events.into_iter().map(|event| {
        let latest = if event.direction() == Direction::ToGateway { &mut to_gateway } else { &mut from_gateway };
        *latest = event.time_ns().max(*latest);
        (*latest, event)
    });
    let mut timed: Vec<_> = timed.collect();
    timed.sort_by_key(|(latest, _)| *latest);
    timed.into_iter().map(|(_, event)| event).collect()
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::ContentType;

    use super::*;
    use crate::record::Header;

    #[test]
    fn both_directions_by_time_and_each_in_its_order() {
        let event = |direction, time_ns| {
            let header = Header { content_type: ContentType::ApplicationData, minor: 3, length: 9 };
            Event::Record { direction, record: Sized { header, start_ns: time_ns, time_ns } }
        };
        let (to, from) = (Direction::ToGateway, Direction::FromGateway);
        let events = vec![event(to, 5), event(to, 4), event(to, 9), event(from, 3), event(from, 6)];
        let times: Vec<i64> = merge(events).iter().map(Event::time_ns).collect();
        assert_eq!(times, [3, 5, 4, 6, 9]);
    }
}
