//! The record finder: bytes as segments of eight flows, of TCP and UDP on ports that decide how they are read, through
//! `record-sizer`.
//!
//! A segment is encoded as four numbers of two bytes: its kind (bits, see below), its offset from the end of the one
//! before in its direction, the number of bytes that the snaplen cut off, and its length; then its payload.

use std::net::{IpAddr, Ipv4Addr};

use sizeleak_frame::{Direction, Flow, Frame, Notice, Protocol, Segment, Segments, Transport, what};
use sizeleak_platform::runtime::Stage;
use sizeleak_record_sizer::{Options, RecordSizer};

use super::input::Bytes;

const IS_UDP: u16 = 1 << 8;
const FROM_GATEWAY: u16 = 1 << 9;
const LATER: u16 = 1 << 10;
/// Its time alone is an hour ahead.
const ODD_TIME: u16 = 1 << 11;
/// From here on all times are an hour earlier.
const STEP_BACK: u16 = 1 << 12;
/// Its acknowledgement number is that of another connection.
const FOREIGN_ACKNOWLEDGEMENT: u16 = 1 << 13;
/// The two highest bits are the number of the flow among those of its transport.
const FLOW_SHIFT: u32 = 14;
/// Nanoseconds.
const HOUR: i64 = 3_600_000_000_000;
/// The longest body of a record (RFC 5246, section 6.2.3).
const MAX_BODY: u32 = (1 << 14) + 2048;

/// Sizes the records in bytes as segments.
pub fn record_finder(bytes: &[u8]) {
    // Small limits are reached by small inputs.
    let options = Options { max_flow_bytes: 4_096, max_bytes: 8_192, ..Options::default() };
    let Ok(mut sizer) = RecordSizer::new(&options) else { unreachable!("the options are right") };
    let mut out: Vec<Frame> = Vec::new();
    for frame in flows().into_iter().map(Frame::from).chain([Frame::from(segments(bytes))]) {
        match <RecordSizer as Stage>::Input::try_from(frame) {
            Ok(input) => sizer.process(input, &mut out).expect("nothing closes"),
            Err(other) => out.push(other),
        }
    }
    sizer.finish(&mut out).expect("nothing closes");

    for frame in &out {
        let Frame::Record(record) = frame else { continue };
        let is_record = record.protocol == Protocol::Tls && !stands_for_segments(&out, record.flow);
        assert!(record.length <= MAX_BODY || !is_record, "{record:?}");
        assert!(record.start_ns <= record.time_ns, "{record:?}");
        if let Some([least, most]) = record.plaintext {
            assert!(least <= most && most <= record.length.into(), "{record:?}");
        }
    }
}

/// Whether the records of a flow may stand for segments, which have no longest length.
fn stands_for_segments(frames: &[Frame], flow: u64) -> bool {
    let says_so = |notice: &Notice| notice.what == what::ASSUMED && notice.flow == Some(flow);
    frames.iter().any(|frame| matches!(frame, Frame::Notice(notice) if says_so(notice)))
}

/// The flows that [`segments`] belong to.
pub fn flows() -> Vec<Flow> {
    let flow = |(flow, (transport, port))| Flow {
        gateway_port: Some(50_000),
        ..Flow::new(
            flow,
            IpAddr::V4(Ipv4Addr::new(192, 0, 2, 20)),
            (Ipv4Addr::new(192, 0, 2, 10), port).into(),
            transport,
        )
    };
    let (tcp, udp) = (Transport::Tcp, Transport::Udp);
    let ends = [(tcp, 443), (udp, 5684), (tcp, 5540), (udp, 443), (tcp, 6668), (udp, 5540), (tcp, 9000), (udp, 4500)];
    (0..).zip(ends).map(flow).collect()
}

/// Decodes segments from bytes.
pub fn segments(bytes: &[u8]) -> Segments {
    let (mut bytes, mut segments) = (Bytes::new(bytes), Segments::new());
    let (mut next, mut time_ns) = ([0_u32; 16], 0);
    while let (Some(kind), Some(shift), Some(cut), Some(length)) =
        (bytes.number(), bytes.number(), bytes.number(), bytes.number())
    {
        let flow = 2 * usize::from(kind >> FLOW_SHIFT) + usize::from(kind & IS_UDP != 0);
        let direction = if kind & FROM_GATEWAY == 0 { Direction::ToGateway } else { Direction::FromGateway };
        let at = &mut next[usize::from(direction.number()) + 2 * flow];
        let payload = bytes.take(length.into());
        let (flags, sequence, length) = (
            kind.to_be_bytes()[1],
            at.wrapping_add_signed(shift.cast_signed().into()),
            payload.len() as u32 + u32::from(cut),
        );
        time_ns += if kind & LATER == 0 { 1_000_000 } else { 10_000_000_000 };
        time_ns -= if kind & STEP_BACK == 0 { 0 } else { HOUR };
        *at = sequence.wrapping_add(length).wrapping_add(u32::from(flags & Segment::SYN != 0));
        let expected = next[usize::from(direction.reversed().number()) + 2 * flow];
        let number = if kind & FOREIGN_ACKNOWLEDGEMENT == 0 { expected } else { !expected };
        let acknowledgement = (flags & Segment::ACK != 0).then_some(number);
        let time_ns = time_ns + if kind & ODD_TIME == 0 { 0 } else { HOUR };
        let flow = flow as u64;
        segments.push(Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement });
    }
    segments
}
