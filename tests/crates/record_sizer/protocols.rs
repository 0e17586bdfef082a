//! Messages of other protocols than TLS: what recognises them, and how large they are.

use std::collections::BTreeMap;

use sizeleak_frame::{Direction, Flow, Frame, Protocol, Record, Transport};
use sizeleak_platform::runtime::Stage;
use sizeleak_record_sizer::{Framing, Options, RecordSizer, SizerInput};

use super::wire::{MILLISECOND, Noise, OwnedSegment, batch, notices, segment, segments, syn};

const TO: Direction = Direction::ToGateway;
const FROM: Direction = Direction::FromGateway;

/// The frames that a sizer emits for these rows of flow 1, which has these ports of gateway and service, and of flow 2,
/// which has the gateway's next port.
fn size(options: &Options, transport: Transport, ports: [u16; 2], rows: &[OwnedSegment]) -> Vec<Frame> {
    sized(options, transport, ports, rows).0
}

/// The frames and the counters for rows of Matter over TCP.
fn counted(rows: &[OwnedSegment]) -> (Vec<Frame>, BTreeMap<&'static str, u64>) {
    sized(&Options::default(), Transport::Tcp, [5540, 40_000], rows)
}

fn sized(
    options: &Options,
    transport: Transport,
    ports: [u16; 2],
    rows: &[OwnedSegment],
) -> (Vec<Frame>, BTreeMap<&'static str, u64>) {
    let (gateway, service) = ("192.0.2.20".parse().unwrap(), format!("192.0.2.7:{}", ports[1]).parse().unwrap());
    let (mut sizer, mut frames) = (RecordSizer::new(options).unwrap(), Vec::new());
    for (flow, port) in [(1, ports[0]), (2, ports[0] + 1)] {
        let (gateway_port, encapsulation, among_several) = (Some(port), None, false);
        let flow = Flow { flow, gateway, gateway_port, service, transport, encapsulation, among_several };
        sizer.process(SizerInput::Flow(Box::new(flow)), &mut frames).unwrap();
    }
    for row in rows {
        sizer.process(batch(std::slice::from_ref(row)).into(), &mut frames).unwrap();
    }
    sizer.finish(&mut frames).unwrap();
    (frames, sizer.counters().into_iter().collect())
}

fn udp(ports: [u16; 2], rows: &[OwnedSegment]) -> Vec<Frame> {
    size(&Options::default(), Transport::Udp, ports, rows)
}

fn datagram(direction: Direction, payload: &[u8]) -> OwnedSegment {
    OwnedSegment { flags: 0, ..segment(direction, 0, payload, 0) }
}

fn records(frames: &[Frame]) -> Vec<Record> {
    let of = |frame: &Frame| if let Frame::Record(record) = frame { Some(record.clone()) } else { None };
    frames.iter().filter_map(of).collect()
}

/// Content type, bytes and plaintext of each record.
fn sizes(frames: &[Frame]) -> Vec<(u8, u32, [u64; 2])> {
    let of = |record: Record| (record.content_type.into(), record.length, record.plaintext.unwrap_or([u64::MAX; 2]));
    records(frames).into_iter().map(of).collect()
}

fn protocols(frames: &[Frame]) -> Vec<String> {
    let of = |frame: &Frame| if let Frame::Session(session) = frame { session.protocol.clone() } else { None };
    frames.iter().filter_map(of).collect()
}

/// A message of Matter with `content` bytes of plaintext, on a session of its own if that is not 0.
fn matter(flags: u8, session: u16, security: u8, counter: u32, more: &[u8], content: usize) -> Vec<u8> {
    let is_group = matches!(security & 3, 1);
    let tag = if session == 0 && !is_group { 0 } else { 16 };
    [&[flags][..], &session.to_le_bytes(), &[security], &counter.to_le_bytes(), more, &vec![7; content + tag]].concat()
}

#[test]
fn messages_of_matter_are_sized_exactly_and_repeated_ones_count_once() {
    let (nodes, group) = ([1; 16], [1; 10]);
    let rows = [
        datagram(TO, &matter(4, 0, 0, 1, &[9; 8], 60)),
        datagram(TO, &matter(0, 77, 0, 10, &[], 35)),
        datagram(TO, &matter(0, 77, 0, 10, &[], 35)),
        datagram(FROM, &matter(0, 78, 0, 10, &[], 10)),
        datagram(TO, &matter(5, 77, 0x80, 11, &nodes, 47)),
        datagram(TO, &matter(6, 5, 1, 3, &group, 33)),
        datagram(TO, &matter(0, 77, 0x20, 12, &[3, 0, 1, 2, 3], 20)),
        // A version that is not assigned, and a message shorter than its tag.
        datagram(TO, &matter(0x10, 77, 0, 13, &[], 35)),
        datagram(TO, &matter(0, 77, 0, 14, &[], 0)),
    ];
    let frames = udp([5540, 40_000], &rows);
    let exact = |bytes: u64| [bytes; 2];
    assert_eq!(
        sizes(&frames),
        [
            (22, 60, exact(60)),
            (23, 51, exact(35)),
            (26, 26, exact(10)),
            (23, 63, exact(47)),
            (23, 49, exact(33)),
            (23, 36, exact(20)),
        ]
    );
    assert_eq!(protocols(&frames), ["matter"], "once");
    assert!(records(&frames).iter().all(|record| record.protocol == Protocol::Matter));
    assert!(records(&udp([9000, 40_000], &rows)).is_empty(), "on another port");
    let told = Options { matter_port: vec![9000], ..Options::default() };
    assert_eq!(records(&size(&told, Transport::Udp, [9000, 40_000], &rows)).len(), 6, "that was declared");
}

#[test]
fn matter_over_tcp_has_lengths_before_its_messages() {
    let message = |counter, content| {
        let message = matter(0, 77, 0, counter, &[], content);
        [&(message.len() as u32).to_le_bytes()[..], &message].concat()
    };
    let stream = [message(1, 35), message(2, 5000), message(3, 10)].concat();
    let rows = [vec![syn(TO, 99, 0)], segments(TO, 100, &stream, 700)].concat();
    let frames = size(&Options::default(), Transport::Tcp, [5540, 40_000], &rows);
    assert_eq!(sizes(&frames), [(23, 51, [35; 2]), (23, 5016, [5000; 2]), (26, 26, [10; 2])]);
    assert_eq!((protocols(&frames), notices(&frames)), (vec!["matter".to_owned()], vec![]));
}

#[test]
fn bytes_that_are_no_new_message_of_matter_over_tcp_are_counted() {
    let message = |message: &[u8]| [&(message.len() as u32).to_le_bytes()[..], message].concat();
    let of = |counter| message(&matter(0, 77, 0, counter, &[], 35));
    // Another version, a message without a whole header of its protocol, and none at all.
    let others =
        [message(&matter(0x10, 77, 0, 13, &[], 35)), message(&matter(0, 77, 0, 14, &[], 0)), message(&[0, 1, 2])];
    let lengths: Vec<u64> = others.iter().map(|other| other.len() as u64).collect();
    for step in [1, 7, 55, 700] {
        // A message again, twice, with others between.
        let again = [of(1), of(2), of(1), of(3), of(3), of(4)].concat();
        let (frames, counters) = counted(&[vec![syn(TO, 99, 0)], segments(TO, 100, &again, step)].concat());
        assert_eq!(sizes(&frames), [(23, 51, [35; 2]); 4], "{step}");
        assert_eq!((counters["retransmitted"], counters["lost_bytes"]), (2, 0), "{step}");
        for (other, length) in others.iter().zip(&lengths) {
            let stream = [of(1), other.clone(), of(2), other.clone(), of(3)].concat();
            let (frames, counters) = counted(&[vec![syn(TO, 99, 0)], segments(TO, 100, &stream, step)].concat());
            assert_eq!(sizes(&frames), [(23, 51, [35; 2]); 3], "{step} {length}");
            assert_eq!((counters["retransmitted"], counters["lost_bytes"]), (0, 2 * length), "{step}");
        }
    }
}

#[test]
fn a_connection_waits_no_longer_while_only_datagrams_come() {
    let second = 1000 * MILLISECOND;
    let message = |counter| matter(0, 77, 0, counter, &[], 35);
    let datagrams = (1..20).map(|at| {
        let time_ns = i64::from(at) * second;
        OwnedSegment { time_ns, flow: 2, ..datagram(TO, &message(at as u32)) }
    });
    let record = |length: u16| [&[23, 3, 3][..], &length.to_be_bytes(), &vec![9; length.into()]].concat();
    let missing = record(50).len() as u32;
    let behind = [record(60), record(70), record(80)].concat();
    let rows = [
        vec![syn(TO, 99, 0), segment(TO, 100, &record(40), 0)],
        segments(TO, 100 + 45 + missing, &behind, 65),
        datagrams.collect(),
    ];
    let (mut sizer, mut frames) = (RecordSizer::new(&Options::default()).unwrap(), Vec::new());
    let (gateway, service) = ("192.0.2.20".parse().unwrap(), "192.0.2.7:40000".parse().unwrap());
    let matter = Flow { gateway_port: Some(5540), ..Flow::new(2, gateway, service, Transport::Udp) };
    sizer.process(SizerInput::Flow(Box::new(matter)), &mut frames).unwrap();
    for row in rows.concat() {
        sizer.process(batch(&[row]).into(), &mut frames).unwrap();
    }
    let found = records(&frames);
    assert_eq!(found.len(), 4 + 19, "{frames:?}");
    let latest = found.iter().scan(i64::MIN, |latest, record| {
        *latest = record.time_ns.max(*latest);
        Some(*latest - record.time_ns)
    });
    assert!(latest.max() <= Some(4 * second), "{found:?}");
}

#[test]
fn packets_in_a_tunnel_of_wireguard_are_known_up_to_their_padding() {
    let packet = |receiver: u8, counter: u8, padded: usize| {
        [&[4, 0, 0, 0, receiver, 0, 0, 0, counter, 0, 0, 0, 0, 0, 0, 0][..], &vec![9; padded + 16]].concat()
    };
    let rows = [
        datagram(FROM, &[&[1, 0, 0, 0][..], &[5; 144]].concat()),
        datagram(TO, &[&[2, 0, 0, 0][..], &[5; 88]].concat()),
        datagram(FROM, &packet(1, 0, 0)),
        datagram(TO, &packet(2, 0, 96)),
        datagram(TO, &packet(2, 0, 96)),
        // New keys count anew.
        datagram(TO, &packet(3, 0, 48)),
        datagram(TO, &[4, 0, 0, 0, 1]),
    ];
    // ESP shares its port with others, as which it is then used to pass firewalls, or by chance.
    for ports in [[40_000, 50_000], [40_000, 4500], [4500, 50_000], [4500, 4500]] {
        let frames = udp(ports, &rows);
        assert_eq!(
            sizes(&frames),
            [
                (22, 132, [u64::MAX; 2]),
                (22, 76, [u64::MAX; 2]),
                (24, 16, [0; 2]),
                (23, 112, [81, 96]),
                (23, 64, [33, 48])
            ],
            "{ports:?}"
        );
        assert_eq!(protocols(&frames), ["wireguard"], "{ports:?}");
    }
}

/// Messages of a handshake have no number: their index and key are random.
#[test]
fn handshakes_of_wireguard_that_come_again_count_once() {
    let initiation = |key: u8| (FROM, [&[1, 0, 0, 0][..], &[key; 144]].concat());
    let response = |key: u8| (TO, [&[2, 0, 0, 0][..], &[key; 88]].concat());
    let cookie = |key: u8| (TO, [&[3, 0, 0, 0][..], &[key; 60]].concat());
    let counted = |datagrams: &[(Direction, Vec<u8>)]| {
        let rows: Vec<_> = datagrams.iter().map(|(direction, payload)| datagram(*direction, payload)).collect();
        sizes(&udp([40_000, 51_820], &rows)).len()
    };
    assert_eq!(counted(&[initiation(1), initiation(1), response(2), response(2)]), 2, "each twice");
    assert_eq!(counted(&[initiation(1), cookie(2), initiation(1), cookie(2)]), 2, "together");
    assert_eq!(counted(&[initiation(1), initiation(3), initiation(1), initiation(3)]), 2, "in turn");
    assert_eq!(counted(&[initiation(1), response(2), initiation(3), response(4)]), 4, "the next one");
}

#[test]
fn packets_of_esp_are_known_between_bounds() {
    let packet = |number: u8, bytes: usize| [&[1, 2, 3, 4, 0, 0, 0, number][..], &vec![9; bytes]].concat();
    let rows = [datagram(TO, &packet(1, 100)), datagram(TO, &packet(1, 100)), datagram(FROM, &packet(1, 84))];
    let frames = size(&Options::default(), Transport::Esp, [0, 0], &rows);
    assert_eq!(sizes(&frames), [(23, 100, [35, 82]), (23, 84, [19, 66])]);
    let internet_key_exchange = datagram(TO, &[0; 200]);
    let in_udp = [rows[0].clone(), internet_key_exchange, datagram(FROM, &[0xff])];
    assert_eq!(records(&udp([4500, 4500], &in_udp)).len(), 1);
    assert!(records(&udp([4000, 4000], &in_udp)).is_empty(), "on another port");
}

#[test]
fn datagrams_of_other_protocols_on_the_port_of_esp_are_not_taken_for_it() {
    let record = |kind: u8, epoch: u8, number: u8, bytes: usize| {
        let length = (bytes as u16).to_be_bytes();
        [&[kind, 254, 253, 0, epoch, 0, 0, 0, 0, 0, number][..], &length, &vec![number; bytes]].concat()
    };
    let dtls: Vec<_> =
        (1..40).map(|at| datagram(if at % 2 == 0 { TO } else { FROM }, &record(23, 1, at, 60))).collect();
    // What finds a way through routers shares the ports (RFC 7983).
    let stun = datagram(FROM, &[&[0, 1, 0, 20, 0x21, 0x12, 0xa4, 0x42][..], &[3; 32]].concat());
    for every in [usize::MAX, 3, 8] {
        let rows = (1usize..).zip(&dtls).flat_map(|(at, row)| {
            let between = at.is_multiple_of(every).then(|| stun.clone());
            [Some(row.clone()), between].into_iter().flatten()
        });
        let rows: Vec<_> = rows.collect();
        let frames = udp([4500, 40_000], &rows);
        assert_eq!((records(&frames).len(), protocols(&frames)), (39, vec!["dtls".to_owned()]), "{every}");
    }
    // ESP is not lost by a datagram that looks like another protocol, before it or in between.
    let packet = |number: u8| [&[1, 2, 3, 4, 0, 0, 0, number][..], &[9; 100]].concat();
    for odd in [record(23, 1, 1, 60), record(22, 0, 0, 90), [&[1, 0, 0, 0][..], &[5; 144]].concat()] {
        for at in [0, 5] {
            let mut rows: Vec<_> =
                (1..30).map(|number| datagram(if number % 2 == 0 { TO } else { FROM }, &packet(number))).collect();
            rows.insert(at, datagram(FROM, &odd));
            let frames = udp([4500, 4500], &rows);
            let lengths = records(&frames).iter().filter(|record| record.length == 100).count();
            assert_eq!((lengths, protocols(&frames).last().unwrap().as_str()), (29, "esp"), "{odd:?} {at}");
        }
    }
}

/// Packets of QUIC with short headers: ids of 8 bytes from the gateway, none to it.
fn quic(noise: &mut Noise, count: usize) -> Vec<OwnedSegment> {
    let packet = |at: usize| {
        let (direction, id) = if at.is_multiple_of(2) { (FROM, &[7; 8][..]) } else { (TO, &[][..]) };
        let first = 0x40 | noise.below(32) as u8;
        let bytes = noise.bytes(60);
        datagram(direction, &[&[first], id, &bytes].concat())
    };
    (0..count).map(packet).collect()
}

#[test]
fn quic_without_its_handshake_is_sized_on_its_port_and_on_declared_ones() {
    let rows = quic(&mut Noise(1), 60);
    let frames = udp([40_000, 443], &rows);
    let found = records(&frames);
    assert_eq!((protocols(&frames), notices(&frames)), (vec!["quic".to_owned()], vec!["assumed".to_owned()]));
    assert_eq!(found.len(), 60, "on the port of HTTP/3");
    // The ids have shown themselves; a packet number has one to four bytes, the tag 16.
    assert_eq!(sizes(&frames)[16..].iter().filter(|size| **size != (23, 60, [40, 43])).count(), 0);
    let first = found[0].plaintext.unwrap();
    assert!(first[0] <= 40 && first[1] >= 43 && first[1] - first[0] > 3, "{first:?}: less is known at first");

    let declared = Options { quic_port: vec![9000], quic_cid: vec![8, 0], ..Options::default() };
    let frames = size(&declared, Transport::Udp, [40_000, 9000], &rows);
    assert_eq!(sizes(&frames), vec![(23, 60, [40, 43]); 60]);

    let frames = udp([40_000, 9000], &rows);
    assert!(records(&frames).is_empty() && notices(&frames).is_empty(), "nothing is guessed on other ports");
}

#[test]
fn another_connection_on_a_port_of_quic_has_ids_of_its_own_lengths() {
    let first = quic(&mut Noise(3), 60);
    let mut noise = Noise(4);
    let second = (0..60).map(|at: usize| {
        let (direction, id) = if at.is_multiple_of(2) { (FROM, &[5; 20][..]) } else { (TO, &[6; 5][..]) };
        let payload = [&[0x41][..], id, &noise.bytes(60)].concat();
        OwnedSegment { flow: 2, ..datagram(direction, &payload) }
    });
    let rows: Vec<_> = first.into_iter().chain(second).collect();
    let declared = Options { quic_port: vec![9000], ..Options::default() };
    let frames = size(&declared, Transport::Udp, [40_000, 9000], &rows);
    let found: Vec<Record> = records(&frames).into_iter().filter(|record| record.flow == 2).collect();
    assert_eq!(found.len(), 60, "it is known as QUIC from its first packet on");
    for (number, record) in found.iter().enumerate() {
        let [least, most] = record.plaintext.unwrap();
        assert!(least <= 40 && most >= 43, "{number}: {record:?}");
        assert!(number < 10 || [least, most] == [40, 43], "{number}: {record:?}");
    }
}

#[test]
fn datagrams_that_begin_alike_are_no_quic() {
    // As CoAP's messages do.
    let mut noise = Noise(2);
    let rows = (0..500).map(|at| datagram(FROM, &[&[0x44 + (at % 3) as u8][..], &noise.bytes(50)].concat()));
    let rows: Vec<_> = rows.collect();
    assert!(records(&udp([40_000, 9000], &rows)).is_empty());
}

fn tuya(content: usize) -> Vec<u8> {
    let length = (content as u32 + 8).to_be_bytes();
    [&[0, 0, 0x55, 0xaa, 0, 0, 0, 1, 0, 0, 0, 7][..], &length, &vec![3; content + 8]].concat()
}

#[test]
fn framings_that_are_shipped_show_themselves() {
    let rows = [vec![syn(TO, 99, 0)], segments(TO, 100, &[tuya(32), tuya(1600)].concat(), 700)].concat();
    let frames = size(&Options::default(), Transport::Tcp, [40_000, 6668], &rows);
    assert_eq!((protocols(&frames), notices(&frames)), (vec!["tuya".to_owned()], vec![]));
    let lengths: Vec<u32> = records(&frames).iter().map(|record| record.length).collect();
    assert_eq!(lengths, [40, 1608]);

    let frame = |content: u16| [&content.to_le_bytes()[..], &vec![9; usize::from(content) + 16]].concat();
    let start = segment(FROM, 100, b"POST /pair-verify HTTP/1.1\r\n\r\n", 0);
    let after = 100 + start.length;
    let rows =
        [vec![syn(FROM, 99, 0), start], segments(FROM, after, &[frame(120), frame(1024), frame(30)].concat(), 4000)];
    let frames = size(&Options::default(), Transport::Tcp, [40_000, 51_826], &rows.concat());
    assert_eq!(sizes(&frames), [(23, 136, [120; 2]), (23, 1040, [1024; 2]), (23, 46, [30; 2])]);

    // From the middle, it is told by its port: bytes that look like its lengths are in many files.
    let mut at = 100;
    let mut row = |content: u16| {
        let row = segment(FROM, at, &frame(content), i64::from(at) * MILLISECOND);
        at += row.length;
        row
    };
    let rows: Vec<OwnedSegment> = [60, 70, 80, 90].map(&mut row).into();
    assert!(records(&size(&Options::default(), Transport::Tcp, [40_000, 51_826], &rows)).is_empty());
    let keys = "name = 'homekit', port = [51826], length-bytes = 2, little-endian = true, header = 2, trailer = 16, \
                overhead = [16, 16], longest = 1024";
    let told = Options { framing: vec![keys.parse().unwrap()], ..Options::default() };
    let frames = size(&told, Transport::Tcp, [40_000, 51_826], &rows);
    assert_eq!(protocols(&frames), ["homekit"]);
    assert_eq!(sizes(&frames).len(), 4);
}

#[test]
fn a_framing_shows_itself_wherever_its_first_segment_ends() {
    let stream = [tuya(32), tuya(60), tuya(200), tuya(1), tuya(1600)].concat();
    for step in 16..300 {
        let rows = [vec![syn(TO, 99, 0)], segments(TO, 100, &stream, step)].concat();
        for plain_tcp in [false, true] {
            let options = Options { plain_tcp, ..Options::default() };
            let (frames, counters) = sized(&options, Transport::Tcp, [40_000, 6668], &rows);
            let lengths: Vec<u32> = records(&frames).iter().map(|record| record.length).collect();
            assert_eq!((lengths, notices(&frames)), (vec![40, 68, 208, 9, 1608], vec![]), "{step} {plain_tcp}");
            assert_eq!(counters["lost_bytes"], 0, "{step}");
        }
    }
}

#[test]
fn bytes_before_a_framing_shows_itself_are_lost_or_a_burst() {
    let before = b"hello".len() as u32;
    let rows = [
        syn(TO, 99, 0),
        segment(TO, 100, b"hello", 1),
        segment(TO, 100 + before, &tuya(32), 2),
        segment(TO, 100 + before + 56, &tuya(60), 3000),
    ];
    for rows in [&rows[..], &[&rows[..1], &rows[2..]].concat()] {
        let (frames, counters) = sized(&Options::default(), Transport::Tcp, [40_000, 6668], rows);
        assert_eq!(sizes(&frames), [(23, 40, [u64::MAX; 2]), (23, 68, [u64::MAX; 2])]);
        assert_eq!(counters["lost_bytes"], u64::from(before));
    }
    let options = Options { plain_tcp: true, ..Options::default() };
    let (frames, counters) = sized(&options, Transport::Tcp, [40_000, 6668], &rows);
    assert_eq!(records(&frames).iter().map(|record| record.length).collect::<Vec<_>>(), [before, 40, 68]);
    assert_eq!(counters["lost_bytes"], 0);
}

#[test]
fn random_bytes_are_hardly_taken_for_messages_without_a_prefix() {
    let keys = "name = 'bare', port = [9000], length-bytes = 2, header = 2";
    let options = Options { framing: vec![keys.parse().unwrap()], ..Options::default() };
    let invented = (0..300).filter(|seed| {
        // From the middle of a connection.
        let rows = segments(TO, 100, &Noise(*seed).bytes(14_480), 1448);
        !records(&size(&options, Transport::Tcp, [40_000, 9000], &rows)).is_empty()
    });
    assert!(invented.count() <= 5, "of 300 connections with ten segments");
    // Messages are found all the same: by segments that they fill, or by several in a segment.
    let message = |content: u16| [&content.to_be_bytes()[..], &vec![9; usize::from(content)]].concat();
    for (messages, expected) in [(vec![message(300)], 1), (vec![message(30), message(20), message(900)], 3)] {
        let rows = segments(TO, 100, &messages.concat(), 500);
        assert_eq!(records(&size(&options, Transport::Tcp, [40_000, 9000], &rows)).len(), expected);
    }
}

#[test]
fn framings_are_declared_by_keys() {
    let keys = "name = 'hub', port = [9000], prefix = 'aa55', length-at = 2, length-bytes = 2, header = 4, trailer = 2, \
                overhead = [10, 25]";
    let framing: Framing = keys.parse().unwrap();
    let options = Options { framing: vec![framing], ..Options::default() };
    let message = |content: u8| [&[0xaa, 0x55, 0, content][..], &vec![1; usize::from(content) + 2]].concat();
    let rows = [
        syn(TO, 99, 0),
        segment(TO, 100, &message(50), 1),
        // A message of 64 bytes of which 30 are missing, and one that is whole.
        segment(TO, 156, &message(58)[..20], 2),
        segment(TO, 206, &message(58)[50..], 3),
        segment(TO, 220, &message(40), 4),
        segment(TO, 266, b"no message", 5),
        segment(TO, 276, &message(30), 6),
    ];
    let frames = size(&options, Transport::Tcp, [40_000, 9000], &rows);
    assert_eq!(sizes(&frames), [(23, 52, [27, 42]), (23, 60, [35, 50]), (23, 42, [17, 32]), (23, 32, [7, 22])]);
    let found = notices(&frames);
    assert!(found.contains(&"gap".to_owned()) && found.contains(&"malformed".to_owned()), "{found:?}");
    for wrong in ["name = 3", "nam = 'x'", "prefix = 'aa5'", "prefix = '+a'", "prefix = 'aa-5'", "prefix = 'é5'"] {
        assert!(wrong.parse::<Framing>().is_err(), "{wrong}");
    }
    for wrong in ["port = [1]", "name = 'x'", "name = 'x', port = [1], length-bytes = 5, header = 8"] {
        let options = Options { framing: vec![wrong.parse().unwrap()], ..Options::default() };
        assert!(RecordSizer::new(&options).is_err(), "{wrong}");
    }
}

#[test]
fn a_second_dtls_connection_on_the_same_ports_loses_nothing() {
    let record = |kind: u8, epoch: u8, number: u8, body: &[u8]| {
        [&[kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, number, 0, body.len() as u8][..], body].concat()
    };
    let hello = |random: u8| {
        let body = [&[0xfe, 0xfd][..], &[random; 32], &[0, 0, 0, 2, 0xc0, 0xae, 1, 0]].concat();
        record(22, 0, 0, &[&[1, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0, 42][..], &body].concat())
    };
    let connection = |random: u8| {
        let data = (0..20).map(move |number| datagram(FROM, &record(23, 1, number, &[7; 40])));
        [datagram(FROM, &hello(random))].into_iter().chain(data)
    };
    let rows: Vec<_> = connection(1).chain(connection(2)).collect();
    assert_eq!(records(&udp([40_000, 5684], &rows)).len(), 42);
    let twice: Vec<_> = connection(1).chain(connection(1).skip(1)).collect();
    assert_eq!(records(&udp([40_000, 5684], &twice)).len(), 21, "what is captured twice counts once");
}

#[test]
fn one_datagram_of_another_protocol_ends_no_session() {
    let forged = [&[23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 7, 0, 40][..], &[5; 40]].concat();
    let message = |counter| datagram(TO, &matter(0, 77, 0, counter, &[], 35));
    let rows = [message(1), datagram(TO, &forged), message(1), message(2)];
    assert_eq!(records(&udp([5540, 40_000], &rows)).len(), 2, "and its messages are still known");
}
