//! A TCP connection as captured in the home: handshake, segments, delayed acknowledgements, and its end.
//!
//! All times are those at the capture point, near the client. A segment is answered there after the *turnaround* of its
//! receiver: less than a millisecond for the client, a round trip for the server.

use std::collections::VecDeque;

use etherparse::{TcpHeader, TcpOptionElement};
use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::{Host, SimulatedPacket, failed};
use crate::SimulateError;
use crate::random_streams::{MICROSECOND, MILLISECOND, nanoseconds};
use crate::scenario::{InitialSequence, NetworkSettings};
use crate::tls::Side;

/// From the capture point to the client and back.
const CLIENT_TURNAROUND: i64 = 600 * MICROSECOND;
/// How long an end waits for a second segment, or for data to send, before it acknowledges (RFC 9293 section 3.8.6.3).
const DELAYED_ACK: i64 = 40 * MILLISECOND;
/// Between two segments of one message.
const SEGMENT_SPACING: i64 = 40 * MICROSECOND;
/// Time until a segment is retransmitted.
const RETRANSMISSION_TIMEOUT: i64 = 230 * MILLISECOND;
/// The receive window, and its scale after the handshake (RFC 7323 section 2).
const WINDOW: u16 = 64_240;
const WINDOW_SHIFT: u8 = 7;

/// The ends of a connection and the network between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TcpRoute<'a> {
    /// The client and the server.
    pub(crate) hosts: [Host; 2],
    pub(crate) ports: [u16; 2],
    pub(crate) network: &'a NetworkSettings,
}

impl TcpRoute<'_> {
    /// Time from a segment to the answer of `side`, at the capture point.
    pub(crate) fn turnaround(&self, side: Side) -> i64 {
        match side {
            Side::Client => CLIENT_TURNAROUND,
            Side::Server => nanoseconds(self.network.round_trip),
        }
    }
}

#[derive(Debug)]
struct Endpoint {
    /// Its next sequence number.
    next: u32,
    /// The sequence number it expects from its peer.
    expected: u32,
    /// Segments received and not acknowledged: the earliest time of their acknowledgement at the capture point, and the
    /// sequence number after them.
    received: VecDeque<(i64, u32)>,
    /// The IPv4 identification of its next packet.
    identification: u16,
}

impl Endpoint {
    /// The time of its next pure acknowledgement: at every second segment, or after a delay.
    fn next_acknowledgement_ns(&self) -> Option<i64> {
        let second = self.received.get(1).map(|(time_ns, _)| *time_ns);
        let alone = self.received.front().map(|(time_ns, _)| time_ns + DELAYED_ACK);
        second.into_iter().chain(alone).min()
    }

    fn receive_until(&mut self, time_ns: i64) {
        while let Some((_, end)) = self.received.pop_front_if(|(received_ns, _)| *received_ns <= time_ns) {
            let ahead = end.wrapping_sub(self.expected);
            if ahead < 1 << 31 {
                self.expected = end;
            }
        }
    }
}

#[derive(Debug)]
struct Segment {
    time_ns: i64,
    side: Side,
    sequence: u32,
    payload: Vec<u8>,
    /// Whether it is the last one of its message, which has the PSH flag; so has each that is retransmitted.
    is_last: bool,
}

#[derive(Debug)]
pub(crate) struct TcpConnection<'a> {
    route: TcpRoute<'a>,
    random: ChaCha20Rng,
    /// The client and the server.
    ends: [Endpoint; 2],
    /// The end of the last transmission of data.
    busy_ns: i64,
    retransmissions: VecDeque<Segment>,
    packets: Vec<SimulatedPacket>,
}

impl<'a> TcpConnection<'a> {
    /// Opens a connection by the three-way handshake. Returns it with the earliest time of data.
    pub(crate) fn open(
        route: TcpRoute<'a>,
        time_ns: i64,
        mut random: ChaCha20Rng,
    ) -> Result<(Self, i64), SimulateError> {
        let mut start = || match route.network.initial_sequence {
            InitialSequence::Random => random.random::<u32>(),
            InitialSequence::NearWrap => u32::MAX - random.random_range(300..3_000),
        };
        let starts: [u32; 2] = std::array::from_fn(|_| start());
        let ends = [Side::Client, Side::Server].map(|side| {
            let [next, of_peer] = side.own_first(starts);
            let expected = of_peer.wrapping_add(1);
            Endpoint { next, expected, received: VecDeque::new(), identification: random.random() }
        });
        let (retransmissions, packets) = (VecDeque::new(), Vec::new());
        let mut connection = Self { route, random, ends, busy_ns: 0, retransmissions, packets };

        let answered_ns = time_ns + route.turnaround(Side::Server);
        let opened_ns = answered_ns + route.turnaround(Side::Client);
        connection.synchronise(time_ns, Side::Client)?;
        connection.synchronise(answered_ns, Side::Server)?;
        connection.acknowledge(opened_ns, Side::Client)?;
        Ok((connection, opened_ns + 100 * MICROSECOND))
    }

    /// Sends bytes as segments. Returns the times of the first and the last.
    pub(crate) fn write(&mut self, time_ns: i64, side: Side, bytes: &[u8]) -> Result<(i64, i64), SimulateError> {
        let first_ns = time_ns.max(self.busy_ns);
        let mut last_ns = first_ns;
        let most = usize::from(self.route.network.segment_size);
        let mut segments = bytes.chunks(most).peekable();
        while let Some(payload) = segments.next() {
            last_ns = last_ns.max(self.busy_ns);
            self.catch_up(last_ns)?;
            let sequence = self.end(side).next;
            self.end(side).next = sequence.wrapping_add(payload.len() as u32);
            let (payload, is_last) = (payload.to_vec(), segments.peek().is_none());
            let segment = Segment { time_ns: last_ns, side, sequence, payload, is_last };
            self.data(&segment)?;
            if self.random.random_bool(self.route.network.retransmission) {
                let time_ns = last_ns + RETRANSMISSION_TIMEOUT;
                let at = self.retransmissions.partition_point(|again| again.time_ns <= time_ns);
                self.retransmissions.insert(at, Segment { time_ns, is_last: true, ..segment });
            }
            self.busy_ns = last_ns + SEGMENT_SPACING;
        }
        Ok((first_ns, last_ns))
    }

    /// Closes one direction of the connection.
    pub(crate) fn finish(&mut self, time_ns: i64, side: Side) -> Result<(), SimulateError> {
        let time_ns = time_ns.max(self.busy_ns);
        self.busy_ns = time_ns + SEGMENT_SPACING;
        self.catch_up(time_ns)?;
        let mut header = self.header(time_ns, side);
        header.fin = true;
        let next = header.sequence_number.wrapping_add(1);
        self.end(side).next = next;
        self.send(time_ns, side, header, &[])?;
        self.deliver_to_peer(time_ns, side, next);
        Ok(())
    }

    /// The packets until a time that were not yet taken, in order of time, with all acknowledgements that are due.
    pub(crate) fn take_packets(&mut self, until_ns: i64) -> Result<Vec<SimulatedPacket>, SimulateError> {
        self.catch_up(until_ns)?;
        self.packets.sort_by_key(|packet| packet.time_ns);
        let later = self.packets.split_off(self.packets.partition_point(|packet| packet.time_ns <= until_ns));
        Ok(std::mem::replace(&mut self.packets, later))
    }

    /// Sends the acknowledgements and retransmissions that are due until a time.
    fn catch_up(&mut self, until_ns: i64) -> Result<(), SimulateError> {
        loop {
            let acknowledgements = [Side::Client, Side::Server]
                .into_iter()
                .filter_map(|side| Some((self.ends[side as usize].next_acknowledgement_ns()?, side)));
            let acknowledgement = acknowledgements.min_by_key(|(time_ns, _)| *time_ns);
            let due = acknowledgement.filter(|(time_ns, _)| *time_ns <= until_ns);
            let before = due.map_or(until_ns, |(time_ns, _)| time_ns);
            if let Some(again) = self.retransmissions.pop_front_if(|again| again.time_ns <= before) {
                self.data(&again)?;
            } else if let Some((time_ns, side)) = due {
                self.acknowledge(time_ns, side)?;
            } else {
                return Ok(());
            }
        }
    }

    fn synchronise(&mut self, time_ns: i64, side: Side) -> Result<(), SimulateError> {
        let mut header = self.header(time_ns, side);
        header.syn = true;
        header.window_size = WINDOW;
        header.ack = side == Side::Server;
        if !header.ack {
            header.acknowledgment_number = 0;
        }
        let options = [
            TcpOptionElement::MaximumSegmentSize(self.route.network.segment_size),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(WINDOW_SHIFT),
        ];
        header.set_options(&options).map_err(failed)?;
        let end = self.end(side);
        end.next = end.next.wrapping_add(1);
        self.send(time_ns, side, header, &[])
    }

    fn acknowledge(&mut self, time_ns: i64, side: Side) -> Result<(), SimulateError> {
        let header = self.header(time_ns, side);
        self.send(time_ns, side, header, &[])
    }

    fn data(&mut self, segment: &Segment) -> Result<(), SimulateError> {
        let Segment { time_ns, side, sequence, ref payload, is_last } = *segment;
        let mut header = self.header(time_ns, side);
        header.sequence_number = sequence;
        header.psh = is_last;
        self.send(time_ns, side, header, payload)?;
        self.deliver_to_peer(time_ns, side, sequence.wrapping_add(payload.len() as u32));
        Ok(())
    }

    fn deliver_to_peer(&mut self, time_ns: i64, side: Side, sequence_end: u32) {
        let received_ns = time_ns + self.route.turnaround(side.peer());
        self.end(side.peer()).received.push_back((received_ns, sequence_end));
    }

    /// A header that acknowledges everything received by then.
    fn header(&mut self, time_ns: i64, side: Side) -> TcpHeader {
        let [source, destination] = side.own_first(self.route.ports);
        let end = self.end(side);
        end.receive_until(time_ns);
        let mut header = TcpHeader::new(source, destination, end.next, WINDOW >> WINDOW_SHIFT);
        header.ack = true;
        header.acknowledgment_number = end.expected;
        header
    }

    fn send(&mut self, time_ns: i64, side: Side, header: TcpHeader, payload: &[u8]) -> Result<(), SimulateError> {
        let hosts = side.own_first(self.route.hosts);
        let identification = self.end(side).identification;
        self.end(side).identification = identification.wrapping_add(1);
        self.packets.push(SimulatedPacket::tcp(time_ns, hosts, header, identification, payload)?);
        Ok(())
    }

    fn end(&mut self, side: Side) -> &mut Endpoint {
        &mut self.ends[side as usize]
    }
}
