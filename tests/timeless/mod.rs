//! Streams without what no two runs share.
#![allow(dead_code, reason = "not every test needs all of it")]

use sizeleak_frame::{Frame, FrameReader, FrameWriter};

/// A whole stream of several stages with the latency histograms taken out of its summary.
pub(crate) fn timeless(stream: &[u8]) -> Vec<u8> {
    let (timeless, stages) = with_stages(stream);
    assert!(stages >= 2);
    timeless
}

/// The same of any number of stages, and how many these are.
pub(crate) fn with_stages(stream: &[u8]) -> (Vec<u8>, usize) {
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
    let Some(Frame::Summary(summary)) = last else { panic!("a cut stream") };
    writer.flush().unwrap();
    (writer.output().clone(), summary.stages.len())
}
