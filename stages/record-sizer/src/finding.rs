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
