//! Frames as the bytes of a stream.

use sizeleak_frame::{Frame, FrameWriter};

pub(crate) fn encode(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::new(&mut bytes);
    for frame in frames {
        writer.write(frame).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    bytes
}
