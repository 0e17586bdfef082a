//! Streams without what no two runs share.

use sizeleak_frame::{Frame, FrameReader, FrameWriter};

/// A whole stream with the latency histograms taken out of its summary.
pub(crate) fn timeless(stream: &[u8]) -> Vec<u8> {
    let mut reader = FrameReader::new(stream);
    let mut writer = FrameWriter::new(Vec::new());
    let mut last = None;
    while let Some(mut frame) = reader.next_frame().unwrap() {
        if let Frame::Summary(summary) = &mut frame {
            for row in &mut summary.stages {
                row.latency.clear();
                row.queue.clear();
            }
        }
        writer.write(&frame).unwrap();
        last = Some(frame);
    }
    assert!(matches!(last, Some(Frame::Summary(summary)) if !summary.stages.is_empty()));
    writer.flush().unwrap();
    writer.output().clone()
}
