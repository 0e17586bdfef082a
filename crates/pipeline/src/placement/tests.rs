//! Tests of `forwarder`.

use std::io::{Cursor, pipe};
use std::thread;

use sizeleak_frame::{Hello, SCHEMA};

use super::*;
use crate::recording::{Compression, Recording};

fn stream() -> Vec<u8> {
    let hello = Hello { schema: SCHEMA, stage: "mine".into(), version: "1".into(), upstream: Vec::new() };
    let mut writer = FrameWriter::new(Vec::new());
    writer.write(&hello.into()).unwrap();
    // A kind this version does not know: decoding would drop its fields.
    let own = rmpv::Value::Map(vec![("time_ns".into(), 7.into()), ("mood".into(), "good".into())]);
    let unknown = rmpv::Value::Map(vec![("reading".into(), own)]);
    let mut bytes = writer.into_output().unwrap();
    rmpv::encode::write_value(&mut bytes, &unknown).unwrap();
    let mut writer = FrameWriter::new(bytes);
    writer.write(&Summary::default().into()).unwrap();
    writer.into_output().unwrap()
}

/// The output, the recording if it is whole, and the outcome.
fn forwarded(bytes: Vec<u8>, interrupt: Option<&Interrupt>) -> (Vec<u8>, Option<Vec<u8>>, Outcome) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let recording = Recording::new(file.reopen().unwrap(), Compression::None).unwrap();
    let (sender, finished) = crossbeam_channel::bounded(1);
    let recorder = OutputRecorder { recording, name: "file".into(), finished: sender };
    let (mut reader, writer) = pipe().unwrap();
    let forwarder = ByteForwarder { stage: "mine".into(), recorder: Some(recorder) };
    let reading = thread::spawn(move || {
        let mut out = Vec::new();
        reader.read_to_end(&mut out).unwrap();
        out
    });
    let outcome = forwarder.run(Box::new(Cursor::new(bytes)), writer, interrupt);
    let file_content = finished.try_recv().ok().map(|()| std::fs::read(file.path()).unwrap());
    (reading.join().unwrap(), file_content, outcome)
}

#[test]
fn bytes_are_forwarded_unchanged_and_only_whole_streams_are_recorded() {
    let whole = stream();
    assert_eq!(forwarded(whole.clone(), None), (whole.clone(), Some(whole.clone()), Outcome::Done));
    for broken in [whole[..whole.len() - 1].to_vec(), [&whole[..20], b"\xc1 what is this"].concat(), Vec::new()] {
        assert_eq!(forwarded(broken.clone(), None), (broken, None, Outcome::Done));
    }
}

#[test]
fn interrupted_forwarder_ends_the_stream_with_a_summary() {
    let interrupt = Interrupt::new();
    interrupt.set();
    let whole = stream();
    let cut = whole[..whole.len() - 3].to_vec();
    let (out, recorded, outcome) = forwarded(cut, Some(&interrupt));
    assert_eq!((recorded, outcome), (None, Outcome::Interrupted));
    let mut reader = FrameReader::new(&out[..]);
    let mut last = None;
    while let Some(frame) = reader.next_frame().unwrap() {
        last = Some(frame);
    }
    assert_eq!(last, Some(Summary::default().into()));
}
