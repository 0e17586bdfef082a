//! Forwards a byte stream unchanged between processes, and records it on the way.
//!
//! An external program may write fields that this version does not know and a later stage does: decoding and encoding
//! would drop them.

use std::io::{self, BufWriter, ErrorKind, PipeWriter, Read, Write};

use sizeleak_frame::{BATCH_BYTES, Frame, FrameReader, FrameWriter, ReadError, Summary};
use sizeleak_runtime::{Interrupt, Outcome};

use crate::recorder::{ByteRecorders, OutputRecorder};

/// Forwards the output of one stage to the next.
pub(crate) struct ByteForwarder {
    /// The stage whose output it is.
    pub(crate) stage: String,
    pub(crate) recorders: Vec<OutputRecorder>,
}

impl ByteForwarder {
    /// Forwards the whole stream; faults in it are left to the next stage to report. With `interrupt`, for a file that
    /// no process upstream would end, the stream ends with a summary once that is set.
    pub(crate) fn run(self, input: Box<dyn Read + Send>, output: PipeWriter, interrupt: Option<&Interrupt>) -> Outcome {
        let mut output = BufWriter::with_capacity(BATCH_BYTES, output);
        let ended = forward(FrameReader::new(input), &mut output, ByteRecorders::new(self.recorders), interrupt);
        match ended.and_then(|outcome| output.flush().map(|()| outcome)) {
            Ok(outcome) => outcome,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Outcome::Closed,
            Err(error) => Outcome::Failed(format!("the output cannot be written: {error}")),
        }
    }
}

fn forward(
    mut reader: FrameReader<Box<dyn Read + Send>>,
    output: &mut impl Write,
    mut recorders: ByteRecorders,
    interrupt: Option<&Interrupt>,
) -> io::Result<Outcome> {
    let (mut is_begun, mut is_ended) = (false, false);
    loop {
        let read = match reader.buffered_frame() {
            Ok(Some(frame)) => {
                let value = reader.last_value();
                recorders.record(&frame, value)?;
                output.write_all(value)?;
                (is_begun, is_ended) = (true, matches!(frame, Frame::Summary(_)));
                continue;
            }
            Ok(None) if is_begun && !is_ended && interrupt.is_some_and(Interrupt::is_set) => {
                return end_early(output).map(|()| Outcome::Interrupted);
            }
            Ok(None) => {
                output.flush()?;
                reader.fill()
            }
            Err(error) => Err(error),
        };
        match read {
            Ok(true) => {}
            Ok(false) => return Ok(Outcome::Done),
            Err(_) if is_begun && !is_ended && interrupt.is_some_and(Interrupt::is_set) => {
                return end_early(output).map(|()| Outcome::Interrupted);
            }
            Err(error @ ReadError::Io { .. }) if error.is_cut() => return Ok(Outcome::Cut(error.to_string())),
            Err(ReadError::Io { source, .. }) => return Ok(Outcome::Failed(format!("cannot be read on: {source}"))),
            Err(_) => {
                let (rest, mut input) = reader.into_rest();
                output.write_all(&rest)?;
                io::copy(&mut input, output)?;
                return Ok(Outcome::Done);
            }
        }
    }
}

/// Ends a stream after a whole frame, as an interrupted source does.
fn end_early(output: &mut impl Write) -> io::Result<()> {
    let mut writer = FrameWriter::new(output);
    let written = writer.write(&Summary::default().into()).and_then(|()| writer.flush());
    written.map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, pipe};
    use std::thread;

    use sizeleak_frame::{Hello, SCHEMA};

    use super::*;
    use crate::OnRecordingFailure;
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
        let recording = Recording::new(file.reopen().unwrap(), Compression::None, None).unwrap();
        let (recorder, finished) = OutputRecorder::new(recording, "file".into(), OnRecordingFailure::Fail);
        let (mut reader, writer) = pipe().unwrap();
        let forwarder = ByteForwarder { stage: "mine".into(), recorders: vec![recorder] };
        let reading = thread::spawn(move || {
            let mut out = Vec::new();
            reader.read_to_end(&mut out).unwrap();
            out
        });
        let outcome = forwarder.run(Box::new(Cursor::new(bytes)), writer, interrupt);
        let file_content = finished.try_recv().ok().map(|_| std::fs::read(file.path()).unwrap());
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
}
