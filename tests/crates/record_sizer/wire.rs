//! Generated streams of TLS records, cut into segments, and runs of the sizer on them.

use sizeleak_frame::{Direction, Frame, Segment, Segments};
use sizeleak_platform::runtime::Stage;
use sizeleak_record_sizer::{Options, RecordSizer};

pub(crate) const MILLISECOND: i64 = 1_000_000;

/// A segment that owns its payload.
#[derive(Debug, Clone)]
pub(crate) struct OwnedSegment {
    pub(crate) time_ns: i64,
    pub(crate) flow: u64,
    pub(crate) direction: Direction,
    pub(crate) sequence: u32,
    pub(crate) flags: u8,
    pub(crate) length: u32,
    pub(crate) payload: Vec<u8>,
    pub(crate) acknowledgement: Option<u32>,
}

/// Pseudo-random numbers, the same in every run.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}

/// Records of these types and lengths, with noise for bodies.
pub(crate) fn stream(records: &[(u8, u16)], noise: &mut Noise) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (content_type, length) in records {
        bytes.extend([*content_type, 3, 3]);
        bytes.extend(length.to_be_bytes());
        bytes.extend(noise.bytes((*length).into()));
    }
    bytes
}

/// A segment of flow 1 whose payload is whole.
pub(crate) fn segment(direction: Direction, sequence: u32, payload: &[u8], time_ns: i64) -> OwnedSegment {
    let length = payload.len() as u32;
    OwnedSegment {
        time_ns,
        flow: 1,
        direction,
        sequence,
        flags: Segment::ACK,
        length,
        payload: payload.to_vec(),
        acknowledgement: None,
    }
}

pub(crate) fn syn(direction: Direction, sequence: u32, time_ns: i64) -> OwnedSegment {
    OwnedSegment { flags: Segment::SYN, ..segment(direction, sequence, &[], time_ns) }
}

/// A segment without payload.
pub(crate) fn empty(
    direction: Direction,
    flags: u8,
    sequence: u32,
    acknowledgement: u32,
    time_ns: i64,
) -> OwnedSegment {
    let acknowledgement = Some(acknowledgement);
    OwnedSegment { flags: flags | Segment::ACK, acknowledgement, ..segment(direction, sequence, &[], time_ns) }
}

/// A stream in segments of at most `size` bytes, from sequence number `first` on, a millisecond apart.
pub(crate) fn segments(direction: Direction, first: u32, bytes: &[u8], size: usize) -> Vec<OwnedSegment> {
    let chunks = (0u32..).zip(bytes.chunks(size));
    let rows = chunks.map(|(at, chunk)| {
        let sequence = first.wrapping_add(at * size as u32);
        segment(direction, sequence, chunk, i64::from(at) * MILLISECOND)
    });
    rows.collect()
}

pub(crate) fn batch(segments: &[OwnedSegment]) -> Segments {
    let mut batch = Segments::new();
    for segment in segments {
        let OwnedSegment { time_ns, flow, direction, sequence, flags, length, ref payload, acknowledgement } = *segment;
        batch.push(Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement });
    }
    batch
}

/// The frames that a sizer emits for these segments.
pub(crate) fn size(segments: &[OwnedSegment]) -> Vec<Frame> {
    size_with(&Options::default(), segments).0
}

/// The frames that a sizer emits for these segments, and its counters.
pub(crate) fn size_with(options: &Options, segments: &[OwnedSegment]) -> (Vec<Frame>, Vec<(&'static str, u64)>) {
    let mut sizer = RecordSizer::new(options).unwrap();
    let mut frames = Vec::new();
    for some in segments.chunks(100) {
        sizer.process(batch(some).into(), &mut frames).unwrap();
    }
    sizer.finish(&mut frames).unwrap();
    assert_eq!(sizer.held_bytes(), 0, "bytes are held after the end");
    (frames, sizer.counters())
}

/// Types and lengths of the records of one direction.
pub(crate) fn records(frames: &[Frame], direction: Direction) -> Vec<(u8, u16)> {
    let of = |frame: &Frame| match frame {
        Frame::Record(record) if record.direction == direction => {
            Some((record.content_type.into(), record.length as u16))
        }
        _ => None,
    };
    frames.iter().filter_map(of).collect()
}

/// The words (`what`) of all notices.
pub(crate) fn notices(frames: &[Frame]) -> Vec<String> {
    let of = |frame: &Frame| if let Frame::Notice(notice) = frame { Some(notice.what.to_string()) } else { None };
    frames.iter().filter_map(of).collect()
}
