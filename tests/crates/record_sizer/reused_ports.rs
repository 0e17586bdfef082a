//! A second connection on the ports of a first one gives the records of the two captured apart, whatever numbers it
//! begins with.

use proptest::prelude::*;
use sizeleak_frame::{Direction, Frame, Record, Segment};

use super::wire::{MILLISECOND, Noise, OwnedSegment, segment, size, stream};

const SERVER: Direction = Direction::ToGateway;
const CLIENT: Direction = Direction::FromGateway;

/// How a connection ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Fin,
    Reset,
    Silence,
}

/// Where the numbers of the second connection begin, from those of the first.
fn offset() -> impl Strategy<Value = u32> {
    prop_oneof![
        3 => Just(0),
        3 => (-3000i32..3000).prop_map(|near| near as u32),
        1 => Just(1 << 31),
        2 => any::<u32>(),
    ]
}

/// A connection as its two sides write it.
struct Connection {
    segments: Vec<OwnedSegment>,
    time_ns: i64,
    next: [u32; 2],
}

impl Connection {
    /// The client's numbers begin at the first of these, the server's at the second.
    fn open(numbers: [u32; 2], time_ns: i64) -> Self {
        let mut opened = Self { segments: Vec::new(), time_ns, next: numbers };
        opened.send(CLIENT, Segment::SYN, &[]);
        opened.segments[0].acknowledgement = None;
        opened.send(SERVER, Segment::SYN | Segment::ACK, &[]);
        opened.send(CLIENT, Segment::ACK, &[]);
        opened
    }

    fn send(&mut self, direction: Direction, flags: u8, payload: &[u8]) {
        let [own, other] = if direction == CLIENT { [0, 1] } else { [1, 0] };
        self.time_ns += MILLISECOND;
        let plain = segment(direction, self.next[own], payload, self.time_ns);
        self.segments.push(OwnedSegment { flags, acknowledgement: Some(self.next[other]), ..plain });
        let occupied = u32::from(flags & (Segment::SYN | Segment::FIN) != 0);
        self.next[own] = self.next[own].wrapping_add(payload.len() as u32 + occupied);
    }

    /// A hello in its record, with a random number of its own.
    fn hello(&mut self, direction: Direction, noise: &mut Noise) {
        let rest = if direction == CLIENT { &[0, 0, 2, 0xc0, 0x2f, 1, 0][..] } else { &[0, 0xc0, 0x2f, 0] };
        let body = [&[3, 3][..], &noise.bytes(32), rest].concat();
        let kind = if direction == CLIENT { 1 } else { 2 };
        let message = [&[kind, 0, 0, body.len() as u8][..], &body].concat();
        self.send(direction, Segment::ACK, &[&[22, 3, 3, 0, message.len() as u8][..], &message].concat());
    }

    /// Records of application data, each in a segment, acknowledged by the next of the other side.
    fn exchange(&mut self, records: &[(bool, u16)], noise: &mut Noise) {
        for (is_client, length) in records {
            let bytes = stream(&[(23, *length)], noise);
            self.send(if *is_client { CLIENT } else { SERVER }, Segment::ACK | Segment::PSH, &bytes);
            self.send(if *is_client { SERVER } else { CLIENT }, Segment::ACK, &[]);
        }
    }

    fn end(&mut self, end: End) {
        match end {
            End::Fin => {
                self.send(CLIENT, Segment::FIN | Segment::ACK, &[]);
                self.send(SERVER, Segment::FIN | Segment::ACK, &[]);
            }
            End::Reset => self.send(CLIENT, Segment::RST, &[]),
            End::Silence => {}
        }
    }

    /// A handshake, if any of its messages are left, and records.
    fn whole(numbers: [u32; 2], time_ns: i64, records: &[(bool, u16)], end: End, noise: &mut Noise) -> Self {
        let mut connection = Self::open(numbers, time_ns);
        connection.hello(CLIENT, noise);
        connection.hello(SERVER, noise);
        connection.exchange(records, noise);
        connection.end(end);
        connection
    }
}

/// The records of both directions, without their times.
fn records(segments: &[OwnedSegment]) -> Vec<Record> {
    let untimed = |frame: Frame| match frame {
        Frame::Record(record) => Some(Record { time_ns: 0, start_ns: 0, ..record }),
        _ => None,
    };
    size(segments).into_iter().filter_map(untimed).collect()
}

/// Of the hellos nothing else is there to tell the two connections by. What is shorter tells nothing.
#[test]
fn beginnings_of_hellos_tell_connections_with_the_same_numbers_apart() {
    let exchanged = [(true, 100), (false, 40), (true, 300)];
    for bytes in 19..44 {
        let mut noise = Noise(bytes as u64);
        let mut whole = |time_ns| {
            let mut connection = Connection::whole([7000, 9000], time_ns, &exchanged, End::Fin, &mut noise);
            for segment in &mut connection.segments {
                segment.payload.truncate(bytes);
            }
            // Their SYNs are not there.
            connection.segments.split_off(3)
        };
        let (first, second) = (whole(0), whole(1_000 * MILLISECOND));
        let apart = [records(&first), records(&second)].concat();
        assert_eq!(apart.len(), 10);
        assert_eq!(records(&[first, second].concat()), apart, "{bytes}");
    }
}

/// The records of two connections of which the capture lacks the first segments and these SYNs, as one and apart, by
/// direction: where a SYN is missing, directions may come in another order.
fn seen_from_the_middle(
    seed: u64,
    (numbers, back): ([u32; 2], [u32; 2]),
    pause_ms: i64,
    (seen_from, lost_syns): (usize, usize),
    first: &[(bool, u16)],
    second: &[(bool, u16)],
) -> (Vec<Record>, Vec<Record>) {
    let mut noise = Noise(seed);
    let mut first = Connection::whole(numbers, 0, first, End::Silence, &mut noise);
    first.segments.drain(..seen_from);
    let time_ns = first.time_ns + pause_ms * MILLISECOND;
    let again = [0, 1].map(|side| numbers[side].wrapping_sub(back[side]));
    let mut second = Connection::whole(again, time_ns, second, End::Silence, &mut noise);
    for lost in (0..3).rev().filter(|bit| lost_syns >> bit & 1 == 1) {
        second.segments.remove(lost);
    }
    let mut apart = [records(&first.segments), records(&second.segments)].concat();
    let mut found = records(&[first.segments, second.segments].concat());
    found.sort_by_key(|record| record.direction == CLIENT);
    apart.sort_by_key(|record| record.direction == CLIENT);
    (found, apart)
}

/// The second connection brings the byte that would come next of the first one, or ends where that does: its hello, and
/// other bytes where those of the first one stood, tell that it is of its own.
#[test]
fn a_hello_and_its_data_cover_what_was_seen_of_the_connection_before() {
    let [to, from] = [false, true];
    for (name, back, seen_from, first, second) in [
        ("a byte more", [0, 1], 8, [(to, 20), (from, 20), (to, 20)], [(to, 47), (to, 20)]),
        ("as far", [0, 0], 8, [(to, 20), (to, 20), (to, 20)], [(to, 70), (to, 20)]),
        ("as far, of other numbers", [0, 1], 8, [(to, 20), (to, 20), (to, 20)], [(to, 71), (to, 20)]),
        ("much more", [9, 40], 8, [(to, 20), (from, 20), (to, 20)], [(to, 900), (to, 20)]),
        (
            "all that was seen, from the client",
            [0, 0],
            6,
            [(from, 20), (from, 20), (from, 20)],
            [(from, 71), (from, 20)],
        ),
    ] {
        let (found, apart) = seen_from_the_middle(0, ([0, 0], back), 200, (seen_from, 3), &first, &second);
        assert_eq!(found, apart, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn two_connections_on_the_same_ports_are_sized_like_each_alone(
        seed: u64, numbers: [u32; 2], offsets in [offset(), offset()], pause_ms in 1i64..20_000,
        first in prop::collection::vec((any::<bool>(), 20u16..900), 0..8),
        second in prop::collection::vec((any::<bool>(), 20u16..900), 0..8),
        end in prop_oneof![Just(End::Fin), Just(End::Reset), Just(End::Silence)],
    ) {
        let mut noise = Noise(seed);
        let first = Connection::whole(numbers, 0, &first, end, &mut noise);
        let time_ns = first.time_ns + pause_ms * MILLISECOND;
        let again = [0, 1].map(|side| numbers[side].wrapping_add(offsets[side]));
        let second = Connection::whole(again, time_ns, &second, End::Silence, &mut noise);
        let apart = [records(&first.segments), records(&second.segments)].concat();
        prop_assert_eq!(records(&[first.segments, second.segments].concat()), apart);
    }

    /// Also where the capture began in the middle of the first one, and lacks SYNs of the second, whose numbers begin at
    /// those of the first or before.
    #[test]
    fn a_hello_before_what_was_seen_of_a_connection_begins_another(
        seed: u64, numbers: [u32; 2], back in [0u32..3000, 0u32..3000], pause_ms in 200i64..20_000,
        seen_from in 3usize..9, lost_syns in 0usize..8,
        first in prop::collection::vec((any::<bool>(), 20u16..900), 3..8),
        second in prop::collection::vec((any::<bool>(), 20u16..900), 2..8),
    ) {
        let (found, apart) =
            seen_from_the_middle(seed, (numbers, back), pause_ms, (seen_from, lost_syns), &first, &second);
        prop_assert_eq!(found, apart);
    }

    /// Also where they come after data: the stream's own SYNs, and all that was captured twice.
    #[test]
    fn a_late_or_repeated_handshake_of_tcp_begins_nothing(
        seed: u64, numbers: [u32; 2], all in prop::collection::vec((any::<bool>(), 20u16..900), 1..8),
        late in 1usize..12, copied in prop::option::of(1i64..200),
    ) {
        let connection = Connection::whole(numbers, 0, &all, End::Fin, &mut Noise(seed));
        let expected = records(&connection.segments);
        let mut segments = connection.segments;
        if let Some(delay_ms) = copied {
            let delayed = |row: &OwnedSegment| {
                OwnedSegment { time_ns: row.time_ns + delay_ms * MILLISECOND / 4, ..row.clone() }
            };
            segments.extend(segments.iter().map(delayed).collect::<Vec<_>>());
            segments.sort_by_key(|row| row.time_ns);
        } else {
            let to = late.min(segments.len() - 1);
            segments[..=to].rotate_left(1);
        }
        let mut found = records(&segments);
        let mut expected = expected;
        // Directions may come in another order where segments do.
        found.sort_by_key(|record| record.direction == CLIENT);
        expected.sort_by_key(|record| record.direction == CLIENT);
        prop_assert_eq!(found, expected);
    }
}
