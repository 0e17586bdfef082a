//! Tests that valid variations keep their meaning and invalid ones are rejected.

use sizeleak_frame::FrameReader;

use super::*;
use crate::conformance::recorded_stream::{ConsumedKind, RecordedStream, decode};

fn read(bytes: &[u8]) -> Vec<Frame> {
    let (frames, fault) = decode(bytes);
    assert!(fault.is_none(), "{fault:?}");
    frames
}

#[test]
fn valid_variations_mean_the_same() {
    for kind in [ConsumedKind::Packets, ConsumedKind::Segments, ConsumedKind::Record, ConsumedKind::Identification] {
        let frames = RecordedStream::simulated(kind).unwrap().frames;
        assert_eq!(read(&bytes(&values(&frames))), frames);
        assert_eq!(read(&bytes(&with_unknown_fields(&frames))), frames, "{kind:?}");
        assert_eq!(read(&reencoded(&frames)), frames, "{kind:?}");
        assert_eq!(read(&reencoded(&without_plaintext(&frames))), without_plaintext(&frames), "{kind:?}");
        assert!(reencoded(&frames).len() > encode(&frames).len());
        let mut enriched = read(&bytes(&with_unknown_kinds(&frames)));
        assert!(matches!(&enriched[1], Frame::Unknown(unknown) if unknown.kind == UNKNOWN));
        assert!(matches!(&enriched[2], Frame::Notice(notice) if notice.stage == "check-stage"));
        enriched.retain(|frame| !matches!(frame, Frame::Unknown(_)));
        enriched.retain(|frame| !matches!(frame, Frame::Notice(notice) if notice.stage == "check-stage"));
        assert_eq!(enriched, frames);
    }
}

#[test]
fn frame_with_wrong_types_is_rejected() {
    let frames = RecordedStream::simulated(ConsumedKind::Segments).unwrap().frames;
    let stream = bytes(&[values(&frames[..1]), vec![mistyped(&frames, "segments").unwrap()]].concat());
    let mut reader = FrameReader::new(&*stream);
    assert!(reader.next_frame().is_ok() && reader.next_frame().is_err());
}
