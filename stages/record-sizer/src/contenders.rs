//! Connections between the same two ends: one after the other, or forged ones beside the one that is genuine. None ends
//! another: each packet is of the connection whose keys, ids or numbers it has, and the others wait for theirs.

use serde::{Deserialize, Serialize};
use sizeleak_frame::Protocol;

use crate::message::{FlowEvent, Found};
use crate::session::{Negotiation, SessionKeys, TlsSession};

/// The most connections; beyond that, the one with the fewest packets makes room, and of several the newest: many forged
/// ones take no place of one that waits for its answer.
const MOST: usize = 4;

/// Connections, the oldest first.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Contenders<C> {
    /// Each, and how many packets were of it.
    all: Vec<(C, u32)>,
    /// The one that the last packet of data was of.
    pub(crate) current: Option<usize>,
}

impl<C> Default for Contenders<C> {
    fn default() -> Self {
        Self { all: Vec::new(), current: None }
    }
}

impl<C> Contenders<C> {
    /// Adds one; returns its place.
    pub(crate) fn begin(&mut self, new: C) -> usize {
        let least = self.with_packets().rev().min_by_key(|(_, packets, _)| *packets).map(|(at, ..)| at);
        if let Some(least) = least.filter(|_| self.all.len() >= MOST) {
            self.all.remove(least);
            self.current = self.current.filter(|at| *at != least).map(|at| at - usize::from(at > least));
        }
        self.all.push((new, 0));
        self.all.len() - 1
    }

    /// The one at a place, which has another packet.
    pub(crate) fn with_packet(&mut self, at: usize) -> Option<&mut C> {
        let (one, packets) = self.all.get_mut(at)?;
        *packets = packets.saturating_add(1);
        Some(one)
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.all.iter_mut().map(|(one, _)| one)
    }

    /// Reports the session of the one at a place. Should another one go on, its session is reported again.
    pub(crate) fn report(
        &mut self,
        place: usize,
        session: impl Fn(&mut C) -> &mut DatagramSession,
        (protocol, time_ns): (Protocol, i64),
        found: &mut Found,
    ) {
        for (at, session) in self.all_mut().map(session).enumerate() {
            session.is_reported = false;
            if at == place {
                session.report(protocol, time_ns, found);
            }
        }
    }

    pub(crate) fn with_packets(&self) -> impl DoubleEndedIterator<Item = (usize, u32, &C)> {
        self.all.iter().enumerate().map(|(at, (one, packets))| (at, *packets, one))
    }

    pub(crate) fn newest(&self, holds: impl Fn(&C) -> bool) -> Option<usize> {
        self.all.iter().rposition(|(one, _)| holds(one))
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct DatagramSession {
    pub(crate) keys: SessionKeys,
    pub(crate) negotiation: Negotiation,
    pub(crate) is_reported: bool,
}

impl DatagramSession {
    pub(crate) fn tls(&mut self) -> TlsSession<'_> {
        TlsSession { keys: &mut self.keys, negotiation: &mut self.negotiation }
    }

    pub(crate) fn report(&mut self, protocol: Protocol, time_ns: i64, found: &mut Found) {
        self.is_reported = true;
        let session = self.tls().frame(0, time_ns, protocol);
        found.events.push(FlowEvent::Session(Box::new(session)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_with_the_fewest_packets_makes_room() {
        let all = |contenders: &Contenders<char>| contenders.with_packets().map(|(.., one)| *one).collect::<String>();
        let mut contenders = Contenders { current: Some(0), ..Contenders::default() };
        assert_eq!(contenders.begin('a'), 0);
        (0..3).for_each(|_| assert_eq!(contenders.with_packet(0), Some(&mut 'a')));
        for (at, new) in ('b'..='z').enumerate() {
            assert_eq!(contenders.begin(new), (at + 1).min(3));
        }
        assert_eq!(all(&contenders), "abcz");
        assert_eq!((contenders.current, contenders.newest(|one| *one < 'c')), (Some(0), Some(1)));
        for at in [1, 1, 1, 2, 2, 2, 3, 3, 3] {
            contenders.with_packet(at);
        }
        contenders.current = Some(3);
        (0..2).for_each(|_| assert_eq!(contenders.with_packet(1), Some(&mut 'b')));
        (0..2).for_each(|_| assert_eq!(contenders.with_packet(0), Some(&mut 'a')));
        (0..2).for_each(|_| assert_eq!(contenders.with_packet(3), Some(&mut 'z')));
        assert_eq!((contenders.begin('!'), contenders.current, all(&contenders).as_str()), (3, Some(2), "abz!"));
    }
}
