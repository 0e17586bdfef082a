//! Joins the kept parts of an input to one stream, in order of time.

use std::fs::File;
use std::path::Path;

use sizeleak_frame::{Frame, FrameWriter};

use super::part::{InputPart, finish};
use crate::ConfigError;
use crate::error::InputError;
use crate::joined_streams::{JoinedStreams, UnopenedStream};
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

/// Joins parts into a file, and puts them into the order of their times; those that overlap are refused, or shifted in the
/// order in which they were named.
pub(super) fn join(parts: &mut [InputPart], overlap: Overlap, into: &Path) -> Result<(), InputError> {
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
    let mut writer = FrameWriter::new(recording.map_err(InputError::Recording)?);
    let unopened = |part: &InputPart| {
        let (name, kept) = (part.path.display().to_string(), part.kept.clone());
        UnopenedStream { name, open: Box::new(|| decompressed(File::open(kept)?)) }
    };
    let mut joined = JoinedStreams::of_parts(parts.iter().map(unopened));
    while let Some(mut frame) = joined.next_frame().map_err(InputError::Recording)? {
        let shift = shifts.iter().rev().nth(joined.waiting()).copied().unwrap_or_default();
        move_by(&mut frame, shift);
        writer.write(&frame).map_err(|error| InputError::Recording(error.into()))?;
    }
    for (part, shift) in parts.iter_mut().zip(shifts) {
        part.span = part.span.map(|span| span.map(|time| time.saturating_add(shift)));
    }
    finish(writer).map_err(InputError::Recording)
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
