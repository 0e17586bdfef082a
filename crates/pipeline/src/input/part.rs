//! Runs the front of a pipeline over one file of an input, and keeps what it makes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sizeleak_frame::{Frame, FrameWriter, Hello, Notice, what};
use sizeleak_platform::runtime::Interrupt;

use super::gateway_filter::GatewayFilter;
use crate::cause::RunEnding;
use crate::error::{ConfigError, InputError, RunError};
use crate::pipeline::Pipeline;
use crate::recording::{Compression, Recording};
use crate::saved_stream::SavedStream;

/// A file of an input, and the time that it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputPart {
    pub path: PathBuf,
    /// The times of its first and last frame, in nanoseconds since the epoch; `None` if it holds nothing.
    pub span: Option<[i64; 2]>,
    pub(super) kept: PathBuf,
}

pub(super) struct PartRecorder<'a> {
    folder: &'a Path,
    /// The stage whose output they are.
    stage: &'a str,
    parts: Vec<InputPart>,
    damage: Option<RunError>,
}

impl<'a> PartRecorder<'a> {
    pub(super) fn new(folder: &'a Path, stage: &'a str) -> Self {
        Self { folder, stage, parts: Vec::new(), damage: None }
    }

    /// Records what `front` makes of a file, from a saved stream on if there is one.
    pub(super) fn record(
        &mut self,
        front: &Pipeline,
        path: PathBuf,
        from: Option<(usize, SavedStream)>,
        filter: &mut GatewayFilter,
    ) -> Result<(), InputError> {
        let (kept, mut writer) = self.next_part()?;
        let (mut span, mut is_begun): (Option<[i64; 2]>, bool) = (None, false);
        let mut failure = None;
        let mut sink = |frame: Frame| -> io::Result<()> {
            if !filter.keeps(&frame) {
                return Ok(());
            }
            if let Some([first, last]) = times(&frame) {
                let [start, end] = span.get_or_insert([first, last]);
                (*start, *end) = ((*start).min(first), (*end).max(last));
            }
            // A run that failed at once may not even have said who it is.
            let hello = (!is_begun && !matches!(frame, Frame::Hello(_))).then(|| Hello::of(self.stage).into());
            is_begun = true;
            hello.iter().chain([&frame]).try_for_each(|frame| writer.write(frame)).map_err(|error| {
                failure = Some(io::Error::other(error.to_string()));
                error.into()
            })
        };
        let ended = front.prepare_from(from)?.run(&own_interrupt()?, &mut sink);
        if let Some(error) = failure {
            return Err(InputError::Recording(error));
        }
        match ended {
            Ok(report) if report.ending == RunEnding::Interrupted => return Err(InputError::Interrupted),
            Ok(_) => {}
            Err(error) => self.damage = self.damage.take().or(Some(error)),
        }
        if !is_begun {
            let written = writer.write(&Hello::of(self.stage).into());
            written.map_err(|error| InputError::Recording(error.into()))?;
        }
        finish(writer).map_err(InputError::Recording)?;
        self.parts.push(InputPart { path, span, kept });
        Ok(())
    }

    pub(super) fn record_unreadable(&mut self, path: &Path, error: &io::Error) -> Result<(), InputError> {
        let fault = RunError::of_input(format!("{}: {error}", path.display()));
        let notice = Notice::new(fault.stage.clone(), what::MALFORMED, fault.cause.clone());
        let (kept, mut writer) = self.next_part()?;
        let written =
            [Hello::of(self.stage).into(), notice.into()].iter().try_for_each(|frame: &Frame| writer.write(frame));
        written.map_err(|error| InputError::Recording(error.into()))?;
        finish(writer).map_err(InputError::Recording)?;
        self.parts.push(InputPart { path: path.to_owned(), span: None, kept });
        self.damage.get_or_insert(fault);
        Ok(())
    }

    fn next_part(&self) -> Result<(PathBuf, FrameWriter<Recording>), InputError> {
        let kept = self.folder.join(format!("{}.frames.zst", self.parts.len()));
        let recording = File::create(&kept).and_then(|file| Recording::new(file, Compression::Zstd));
        Ok((kept, FrameWriter::new(recording.map_err(InputError::Recording)?)))
    }

    /// The parts, and what was wrong with the first that is damaged.
    pub(super) fn finish(self) -> (Vec<InputPart>, Option<RunError>) {
        (self.parts, self.damage)
    }
}

/// The interrupt of one run: a failing run sets its interrupt.
pub(super) fn own_interrupt() -> Result<Interrupt, InputError> {
    Ok(Interrupt::on_signals().map_err(|error| ConfigError::input(format!("signals cannot be caught: {error}")))?)
}

pub(super) fn finish(writer: FrameWriter<Recording>) -> io::Result<()> {
    writer.into_output()?.finish()
}

pub(super) fn times(frame: &Frame) -> Option<[i64; 2]> {
    match frame {
        Frame::Record(record) => Some([record.start_ns.min(record.time_ns), record.time_ns]),
        Frame::Session(session) => Some([session.time_ns; 2]),
        Frame::Command(command) => Some([command.time_ns, command.end_ns.max(command.time_ns)]),
        _ => None,
    }
}
