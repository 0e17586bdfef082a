//! Which connection a packet is of, by its id, and which of several between the same two ends.
//!
//! How many bytes of connection id packets begin with: an end announces the ids that it wants to be sent, and is believed
//! once the other end uses one. Where nobody says so, it is what packets of one direction have in common, since what
//! follows the id is random to whoever has no keys (RFC 9001, section 5.4).
//!
//! Connections between the same two ends come one after the other, or are forged beside the one that is genuine. None ends
//! another: each packet is of the connection whose keys, ids or numbers it has, and the others wait for theirs.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use sizeleak_frame::Protocol;

use crate::message::{FlowEvent, Found};
use crate::session::{Negotiation, SessionKeys, TlsSession};

/// The longest id of QUIC (RFC 9000, section 17.2); longer ones of DTLS are not recognised.
pub(crate) const LONGEST: usize = 20;

/// The most bytes that are read of a packet that begins with one byte and an id.
pub(crate) const SHORT_READ: usize = 1 + LONGEST;

/// So many packets have an id in common: that a random byte is taken for a part of it has a probability of 256⁻⁴.
const ENOUGH: usize = 5;

/// Fewer bytes may be equal by chance: two random packets have so many in common with a probability of 256⁻⁴.
const SURE: usize = 4;

/// The last packets that are compared: forged ones among them change nothing as long as enough are not.
const RECENT: usize = 8;

/// So many of them have an id in common that is too short to be sure of by two: by chance, fewer than one in 10¹².
const MOST_RECENT: usize = 6;

/// Announced ids that are kept; an end may have this many and more, but uses one after the other.
const ANNOUNCED: usize = 8;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConnectionIds {
    /// Their length, as the user has said.
    declared: Option<u8>,
    /// Those that were announced, the newest last, and whether a packet had them.
    announced: Vec<(Vec<u8>, bool)>,
    /// The length of the first one that a packet had.
    pub(crate) used: Option<u8>,
    /// Their length by the packets that had none of these.
    shown: Option<u8>,
    recent: VecDeque<Vec<u8>>,
    /// How many packets came since one had an id in common with another.
    unlike: u8,
}

impl ConnectionIds {
    pub(crate) fn declared(length: u8) -> Self {
        Self { declared: Some(length), ..Self::default() }
    }

    /// Whether these bytes begin as a recent packet did, by more than chance.
    pub(crate) fn is_alike(&self, bytes: &[u8]) -> bool {
        self.recent.iter().any(|recent| bytes.starts_with(recent.get(..SURE).unwrap_or_default()))
    }

    pub(crate) fn length(&self) -> Option<u8> {
        self.declared.or(self.shown).or(self.used)
    }

    pub(crate) fn announce(&mut self, id: &[u8]) {
        if self.has(id) {
            return;
        }
        if self.announced.len() >= ANNOUNCED {
            let unused = self.announced.iter().position(|(_, is_used)| !is_used);
            self.announced.remove(unused.unwrap_or_default());
        }
        self.announced.push((id.to_vec(), false));
    }

    pub(crate) fn has(&self, id: &[u8]) -> bool {
        self.announced.iter().any(|(announced, _)| announced == id)
    }

    /// A packet says that it has this id. True once, if it was announced.
    pub(crate) fn is_first_use(&mut self, id: &[u8]) -> bool {
        let Some((_, is_used)) = self.announced.iter_mut().find(|(announced, is_used)| announced == id && !is_used)
        else {
            return false;
        };
        *is_used = true;
        self.used.get_or_insert(id.len() as u8);
        true
    }

    /// The longest known id that these bytes begin with. One of few bytes counts only if a packet has said that it has it.
    pub(crate) fn carried(&self, bytes: &[u8]) -> Option<&[u8]> {
        let is_carried = |(id, is_used): &&(Vec<u8>, bool)| {
            !id.is_empty() && (*is_used || id.len() >= SURE) && bytes.starts_with(id)
        };
        self.announced.iter().filter(is_carried).map(|(id, _)| &id[..]).max_by_key(|id| id.len())
    }

    /// Takes what follows the first byte of a packet that carries no known id: the least and the most bytes of its id.
    pub(crate) fn unknown(&mut self, bytes: &[u8]) -> [u8; 2] {
        // Where the snaplen cut the id, its end is not seen.
        let alike = if bytes.len() < LONGEST { 0 } else { self.compare(bytes.get(..LONGEST).unwrap_or_default()) };
        let shown = if alike >= SURE { [SURE, alike] } else { [0, LONGEST] };
        self.length().map_or(shown.map(|length| length as u8), |length| [length; 2])
    }

    /// Compares the first bytes of a packet with recent ones; returns how many it has in common with the one most alike.
    fn compare(&mut self, first: &[u8]) -> usize {
        let equal = |other: &Vec<u8>| other.iter().zip(first).take_while(|(one, other)| one == other).count();
        let mut common: Vec<usize> = self.recent.iter().map(equal).collect();
        common.sort_unstable_by(|one, other| other.cmp(one));
        let alike = common.first().copied().unwrap_or_default();
        self.unlike = if alike >= SURE { 0 } else { self.unlike.saturating_add(1) };
        if let Some(length) = common.get(ENOUGH - 2).filter(|length| **length >= SURE) {
            self.shown = Some(*length as u8);
        } else if usize::from(self.unlike) > RECENT {
            self.shown = common.get(MOST_RECENT - 1).map(|length| *length as u8);
        }
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(first.to_vec());
        alike
    }
}

const MOST: usize = 8192;

/// What shows a connection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Sign {
    Id(Vec<u8>),
    Service(SocketAddr),
}

/// Signs with the flows that had them last, the oldest forgotten first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct KnownConnections {
    flows: BTreeMap<Sign, u64>,
    order: VecDeque<Sign>,
}

impl KnownConnections {
    pub(crate) fn insert(&mut self, sign: Sign, flow: u64) {
        let is_short = matches!(&sign, Sign::Id(id) if !(SURE..SHORT_READ).contains(&id.len()));
        if is_short || self.flows.insert(sign.clone(), flow).is_some() {
            return;
        }
        self.order.push_back(sign);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.flows.remove(&oldest);
        }
    }

    /// The flow with the connection that a packet with a short header is of, and what shows it: its id, or else its
    /// service and the fixed bit.
    pub(crate) fn flow(&self, packet: &[u8], service: Option<SocketAddr>) -> Option<(&Sign, u64)> {
        let first = packet.first()?;
        if self.flows.is_empty() || first & 0x80 != 0 {
            return None;
        }
        let known = |sign: Sign| self.flows.get_key_value(&sign).map(|(sign, flow)| (sign, *flow));
        let by_id = (SURE..SHORT_READ).find_map(|length| known(Sign::Id(packet.get(1..=length)?.to_vec())));
        by_id.or_else(|| known(Sign::Service(service.filter(|_| first & 0x40 != 0)?)))
    }
}

/// The most connections; beyond that, the one with the fewest packets makes room, and of several the newest: many forged
/// ones take no place of one that waits for its answer.
const MOST_CONTENDERS: usize = 4;

/// Connections, the oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Contenders<C> {
    /// Each, and how many packets were of it.
    all: Vec<(C, u32)>,
    /// The one that the last packet of data was of.
    pub(crate) current: Option<usize>,
}

impl<C> Contenders<C> {
    pub(crate) fn begin(&mut self, new: C) -> usize {
        let least = self.with_packets().rev().min_by_key(|(_, packets, _)| *packets).map(|(at, ..)| at);
        if let Some(least) = least.filter(|_| self.all.len() >= MOST_CONTENDERS) {
            self.all.remove(least);
            self.current = self.current.filter(|at| *at != least).map(|at| at - usize::from(at > least));
        }
        self.all.push((new, 0));
        self.all.len() - 1
    }

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

    /// Twenty bytes that begin like this and go on as no other packet does.
    fn packet(id: &[u8], number: u8) -> Vec<u8> {
        let mut bytes = id.to_vec();
        bytes.extend((bytes.len()..LONGEST).map(|at| number.wrapping_mul(37).wrapping_add(at as u8)));
        bytes
    }

    #[test]
    fn length_is_what_most_of_the_last_packets_have_in_common() {
        let mut ids = ConnectionIds::default();
        assert_eq!(ids.unknown(&packet(b"connect", 1)), [0, 20]);
        assert_eq!(ids.unknown(&packet(b"connect", 2)), [4, 7]);
        assert_eq!(ids.unknown(&packet(b"forged", 3)), [0, 20]);
        (4..6).for_each(|number| assert_eq!(ids.unknown(&packet(b"connect", number)), [4, 7]));
        assert_eq!(ids.unknown(&packet(b"connect", 6)), [7; 2]);
        (7..10).for_each(|number| assert_eq!(ids.unknown(&packet(b"forged", number)), [7; 2]));
        assert_eq!(ids.unknown(&packet(b"another", 10)), [7; 2], "a new id has the length of the old one");
        (11..15).for_each(|number| assert_eq!(ids.unknown(&packet(b"of nine b", number)), [7; 2]));
        assert_eq!(ids.unknown(&packet(b"of nine b", 15)), [9; 2], "or one that shows itself");
    }

    #[test]
    fn packets_that_are_all_unlike_have_no_id_or_a_short_one() {
        for (id, length) in [(&b""[..], 0), (b"ab", 2)] {
            let mut ids = ConnectionIds::default();
            let bounds: Vec<[u8; 2]> = (1..15).map(|number| ids.unknown(&packet(id, number))).collect();
            assert_eq!(bounds[7..9], [[0, 20], [length; 2]], "{id:?}");
        }
    }

    #[test]
    fn announced_ids_are_believed_once_they_are_used() {
        let mut ids = ConnectionIds::default();
        ids.announce(b"genuine1");
        ids.announce(b"forge");
        ids.announce(b"");
        assert!(ids.length().is_none() && ids.carried(b"forger").is_some() && ids.carried(b"other").is_none());
        assert!(ids.is_first_use(b"genuine1") && !ids.is_first_use(b"genuine1") && !ids.is_first_use(b"none"));
        assert_eq!(ids.unknown(&packet(b"rotated1", 1)), [8; 2]);
        assert!(ids.is_first_use(b"forge"));
        assert_eq!(ids.unknown(&packet(b"rotated1", 1)), [8; 2], "the first use tells the length of unknown ones");
        (0..20).for_each(|number| ids.announce(&[number; 3]));
        assert_eq!(ids.carried(b"genuine1..."), Some(&b"genuine1"[..]), "what is used is not forgotten for others");
        assert!(ids.carried(&[19; 8]).is_none(), "three bytes are equal by chance");
    }

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
