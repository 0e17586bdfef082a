//! Streams without their latencies, which differ from run to run.

use sizeleak_frame::{Frame, FrameReader, FrameWriter};

/// A complete stream of several stages without the latency histograms of its summary.
pub fn timeless(stream: &[u8]) -> Vec<u8> {
    let (timeless, stages) = with_stages(stream);
    assert!(stages >= 2);
    timeless
}

/// The same for any number of stages, and their number.
pub fn with_stages(stream: &[u8]) -> (Vec<u8>, usize) {
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

/// A stream without its summary, cut or not.
pub fn without_summary(stream: &[u8]) -> Vec<u8> {
    let mut reader = FrameReader::new(stream);
    let mut writer = FrameWriter::new(Vec::new());
    while let Ok(Some(frame)) = reader.next_frame() {
        if !matches!(frame, Frame::Summary(_)) {
            writer.write(&frame).unwrap();
        }
    }
    writer.flush().unwrap();
    writer.output().clone()
}
