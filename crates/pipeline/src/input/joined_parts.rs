//! Joins the kept parts of an input to one stream, in order of time.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use sizeleak_frame::{Frame, FrameReader, FrameWriter, Summary};

use super::part::{InputPart, finish, hello};
use crate::ConfigError;
use crate::input_error::InputError;
use crate::joined_streams;
use crate::recording::{Compression, Recording, decompressed};

/// How captures of the same times are put one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// They are not: that is an error.
    Refused,
    /// Their times are shifted: they were rewritten, and order alone counts.
    Shifted,
}

/// Silence between parts whose times are shifted: longer than any reply.
const APART_NS: i64 = 3_600_000_000_000;

/// Joins parts, which are the output of `stage`, into a file, and puts them into the order of their times; those that overlap are refused, or shifted in
/// the order in which they were named.
///
/// # Errors
/// If parts overlap and are not to be shifted, or a file cannot be read or written.
pub(super) fn join(parts: &mut [InputPart], overlap: Overlap, stage: &str, into: &Path) -> Result<(), InputError> {
    let named: Vec<InputPart> = parts.to_vec();
    // Parts without any traffic come last.
    parts.sort_by_key(|part| part.span.map_or(i64::MAX, |[first, _]| first));
    let overlapping = parts.windows(2).find_map(|pair| match pair {
        [one, other] => (one.span?[1] >= other.span?[0]).then(|| [one.path.clone(), other.path.clone()]),
        _ => None,
    });
    let mut shifts = vec![0; parts.len()];
    match (overlapping, overlap) {
        (None, _) => {}
        (Some([one, other]), Overlap::Refused) => {
            let fault = format!(
                "{} and {} hold traffic of the same time: as captures they are read together (`--input`), saved streams \
                 only one after another",
                one.display(),
                other.display()
            );
            return Err(ConfigError::input(fault).into());
        }
        (Some(_), Overlap::Shifted) => {
            parts.clone_from_slice(&named);
            shifts = shifts_apart(parts);
        }
    }
    let recording = File::create(into).and_then(|file| Recording::new(file, Compression::Zstd));
    let mut writer = JoinedWriter {
        writer: FrameWriter::new(recording.map_err(InputError::Recording)?),
        flows: BTreeSet::new(),
        has_hello: false,
        stage: stage.to_owned(),
        summary: Summary::default(),
    };
    for (part, shift) in parts.iter_mut().zip(shifts) {
        writer.add(part, shift).map_err(InputError::Recording)?;
        part.span = part.span.map(|span| span.map(|time| time.saturating_add(shift)));
    }
    writer.finish().map_err(InputError::Recording)
}

/// What to add to the times of each part, so that each begins after the one before.
fn shifts_apart(parts: &[InputPart]) -> Vec<i64> {
    let mut end: Option<i64> = None;
    let shift = |part: &InputPart| {
        let Some([first, last]) = part.span else { return 0 };
        let shift = end.map_or(0, |end| end.saturating_add(APART_NS).saturating_sub(first));
        end = Some(last.saturating_add(shift));
        shift
    };
    parts.iter().map(shift).collect()
}

/// Writes the frames of several streams as one.
struct JoinedWriter {
    writer: FrameWriter<Recording>,
    /// The flows that have been announced.
    flows: BTreeSet<u64>,
    has_hello: bool,
    /// The stage that the parts come from.
    stage: String,
    summary: Summary,
}

impl JoinedWriter {
    fn add(&mut self, part: &InputPart, shift: i64) -> io::Result<()> {
        let mut reader = FrameReader::new(decompressed(File::open(&part.kept)?)?);
        loop {
            let frame = match reader.next_frame() {
                Ok(Some(frame)) => frame,
                // A part that was cut ends without a summary; its damage is known.
                Ok(None) => return Ok(()),
                Err(error) if error.is_cut() => return Ok(()),
                Err(error) => return Err(io::Error::other(error.to_string())),
            };
            match frame {
                Frame::Hello(_) if std::mem::replace(&mut self.has_hello, true) => {}
                Frame::Flow(flow) if !self.flows.insert(flow.flow) => {}
                Frame::Summary(summary) => joined_streams::add(&mut self.summary, summary),
                mut frame => {
                    move_by(&mut frame, shift);
                    self.write(&frame)?;
                }
            }
        }
    }

    fn write(&mut self, frame: &Frame) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_hello, true) && !matches!(frame, Frame::Hello(_)) {
            self.write_hello()?;
        }
        self.writer.write(frame).map_err(|error| io::Error::other(error.to_string()))
    }

    /// A run that failed at once may not even have said who it is.
    fn write_hello(&mut self) -> io::Result<()> {
        self.writer.write(&hello(&self.stage).into()).map_err(|error| io::Error::other(error.to_string()))
    }

    fn finish(mut self) -> io::Result<()> {
        if !self.has_hello {
            self.write_hello()?;
        }
        let summary = Frame::Summary(std::mem::take(&mut self.summary));
        self.writer.write(&summary).map_err(|error| io::Error::other(error.to_string()))?;
        finish(self.writer)
    }
}

/// Adds to all times of a frame.
fn move_by(frame: &mut Frame, shift: i64) {
    if shift == 0 {
        return;
    }
    let add = |time: &mut i64| *time = time.saturating_add(shift);
    match frame {
        Frame::Record(record) => {
            add(&mut record.time_ns);
            add(&mut record.start_ns);
        }
        Frame::Session(session) => add(&mut session.time_ns),
        Frame::Command(command) => {
            add(&mut command.time_ns);
            add(&mut command.end_ns);
        }
        Frame::Deviation(deviation) => {
            add(&mut deviation.time_ns);
            deviation.commands.iter_mut().for_each(|command| add(&mut command.time_ns));
        }
        Frame::Notice(notice) => notice.time_ns.iter_mut().for_each(add),
        _ => {}
    }
}
