//! Streams of frames as bytes.

use sizeleak_frame::{Frame, FrameReader, FrameWriter, Identification, Notice, Summary};

/// The frames of a stream, up to where it is cut.
pub fn frames_of(stream: &[u8]) -> Vec<Frame> {
    let mut reader = FrameReader::new(stream);
    std::iter::from_fn(|| reader.next_frame().ok().flatten()).collect()
}

/// The stream of these frames.
pub fn stream_of(frames: &[Frame]) -> Vec<u8> {
    let mut writer = FrameWriter::new(Vec::new());
    writer.write_all(frames).unwrap();
    writer.into_output().unwrap()
}

/// The summary at the end of a stream that is not cut.
pub fn summary_of(stream: &[u8]) -> Summary {
    let Some(Frame::Summary(summary)) = frames_of(stream).pop() else { panic!("a cut stream") };
    summary
}

/// The answers in a stream.
pub fn answers_of(stream: &[u8]) -> Vec<Identification> {
    let answer = |frame| if let Frame::Identification(answer) = frame { Some(*answer) } else { None };
    frames_of(stream).into_iter().filter_map(answer).collect()
}

/// The notices in a stream.
pub fn notices_of(stream: &[u8]) -> Vec<Notice> {
    let notice = |frame| if let Frame::Notice(notice) = frame { Some(*notice) } else { None };
    frames_of(stream).into_iter().filter_map(notice).collect()
}
