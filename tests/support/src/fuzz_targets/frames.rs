//! The frame decoder: bytes as a stream of frames.

use sizeleak_frame::{Frame, FrameReader, FrameWriter};

/// Decodes bytes; what was decoded must come out the same when it is encoded and decoded again.
pub fn frame_decoder(bytes: &[u8]) {
    let frames = decode(bytes);
    assert!(frames.len() <= bytes.len(), "more frames than bytes");
    let mut writer = FrameWriter::new(Vec::new());
    for frame in &frames {
        writer.write(frame).expect("what was read can be written");
    }
    writer.flush().expect("memory takes it");
    let again = decode(writer.output());
    // Compared as text, because NaN differs from itself.
    assert_eq!(format!("{frames:?}"), format!("{again:?}"));
}

/// The frames up to the first fault.
fn decode(bytes: &[u8]) -> Vec<Frame> {
    let mut reader = FrameReader::new(bytes);
    let mut frames = Vec::new();
    while let Ok(Some(frame)) = reader.next_frame() {
        frames.push(frame);
    }
    assert!(!matches!(reader.next_frame(), Ok(Some(_))), "a frame behind the end");
    frames
}
