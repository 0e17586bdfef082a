//! Hands a stream of bytes on to a process as it is, and records it: between processes nothing is to be written anew.
//!
//! A program of somebody's may write fields that this version does not know; a stage that knows them may follow.

use std::io::{self, BufWriter, ErrorKind, PipeWriter, Read, Write};

use sizeleak_frame::{BATCH_BYTES, Frame, FrameReader, FrameWriter, ReadError, Summary};
use sizeleak_runtime::{Interrupt, Outcome};

use super::tap::{OutputRecorder, RawTaps};

/// A place between two stages where bytes are handed on.
pub(super) struct Relay {
    /// The stage they come from.
    pub(super) stage: String,
    pub(super) taps: Vec<OutputRecorder>,
}

impl Relay {
    /// Hands everything on. Whatever is wrong with the stream is left to the next stage to tell. Where `interrupt` is given,
    /// which is for a file that no process upstream would end, its stream ends early and well when that is set.
    pub(super) fn run(self, input: Box<dyn Read + Send>, output: PipeWriter, interrupt: Option<&Interrupt>) -> Outcome {
        let mut output = BufWriter::with_capacity(BATCH_BYTES, output);
        let ended = hand_on(FrameReader::new(input), &mut output, RawTaps::new(self.taps), interrupt);
        match ended.and_then(|outcome| output.flush().map(|()| outcome)) {
            Ok(outcome) => outcome,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Outcome::Closed,
            Err(error) => Outcome::Failed(format!("the output cannot be written: {error}")),
        }
    }
}

fn hand_on(
    mut reader: FrameReader<Box<dyn Read + Send>>,
    output: &mut impl Write,
    mut taps: RawTaps,
    interrupt: Option<&Interrupt>,
) -> io::Result<Outcome> {
    let (mut is_begun, mut is_ended) = (false, false);
    loop {
        let read = match reader.buffered_frame() {
            Ok(Some(frame)) => {
                let value = reader.last_value();
                taps.take(&frame, value)?;
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

/// Ends a stream behind a whole frame, as a source does that was stopped.
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
        // A command with a field of somebody's own: decoding would drop it.
        let own = rmpv::Value::Map(vec![("time_ns".into(), 7.into()), ("mood".into(), "good".into())]);
        let unknown = rmpv::Value::Map(vec![("reading".into(), own)]);
        let mut bytes = writer.into_output().unwrap();
        rmpv::encode::write_value(&mut bytes, &unknown).unwrap();
        let mut writer = FrameWriter::new(bytes);
        writer.write(&Summary::default().into()).unwrap();
        writer.into_output().unwrap()
    }

    /// What comes out, what was recorded if that is whole, and how it ended.
    fn relayed(bytes: Vec<u8>, interrupt: Option<&Interrupt>) -> (Vec<u8>, Option<Vec<u8>>, Outcome) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let recording = Recording::new(file.reopen().unwrap(), Compression::None, None).unwrap();
        let (tap, whole) = OutputRecorder::new(recording, "file".into(), OnRecordingFailure::Fail);
        let (mut reader, writer) = pipe().unwrap();
        let relay = Relay { stage: "mine".into(), taps: vec![tap] };
        let reading = thread::spawn(move || {
            let mut out = Vec::new();
            reader.read_to_end(&mut out).unwrap();
            out
        });
        let outcome = relay.run(Box::new(Cursor::new(bytes)), writer, interrupt);
        let recorded = whole.try_recv().ok().map(|_| std::fs::read(file.path()).unwrap());
        (reading.join().unwrap(), recorded, outcome)
    }

    #[test]
    fn bytes_pass_as_they_are_and_only_whole_streams_are_recorded() {
        let whole = stream();
        assert_eq!(relayed(whole.clone(), None), (whole.clone(), Some(whole.clone()), Outcome::Done));
        for broken in [whole[..whole.len() - 1].to_vec(), [&whole[..20], b"\xc1 what is this"].concat(), Vec::new()] {
            assert_eq!(relayed(broken.clone(), None), (broken, None, Outcome::Done));
        }
    }

    #[test]
    fn a_replay_that_is_stopped_ends_with_a_summary() {
        let interrupt = Interrupt::new();
        interrupt.set();
        let whole = stream();
        let cut = whole[..whole.len() - 3].to_vec();
        let (out, recorded, outcome) = relayed(cut, Some(&interrupt));
        assert_eq!((recorded, outcome), (None, Outcome::Interrupted));
        let mut reader = FrameReader::new(&out[..]);
        let mut last = None;
        while let Some(frame) = reader.next_frame().unwrap() {
            last = Some(frame);
        }
        assert_eq!(last, Some(Summary::default().into()));
    }
}
