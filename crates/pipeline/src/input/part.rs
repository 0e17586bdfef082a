//! Runs the front of a pipeline over one file of an input, and keeps what it makes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sizeleak_frame::{Frame, FrameWriter, Hello, Notice, SCHEMA, what};
use sizeleak_platform::runtime::Interrupt;

use super::gateway_filter::GatewayFilter;
use crate::cache::{CacheSession, CacheStore};
use crate::cause::RunEnding;
use crate::error::RunError;
use crate::input_error::InputError;
use crate::pipeline::Pipeline;
use crate::plan::RunOptions;
use crate::recording::{Compression, Recording};
use crate::saved_stream::SavedStream;

/// A file of an input, and the time that it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputPart {
    /// The file that the user named.
    pub path: PathBuf,
    /// The times of its first and last frame, in nanoseconds since the epoch; `None` if it holds nothing.
    pub span: Option<[i64; 2]>,
    /// What was kept of it.
    pub(super) kept: PathBuf,
}

/// Records the parts of an input.
pub(super) struct PartRecorder<'a> {
    folder: &'a Path,
    cache: Option<&'a (PathBuf, u64)>,
    report: &'a (dyn Fn(&str) + Send + Sync),
    parts: Vec<InputPart>,
    damage: Option<RunError>,
}

impl<'a> PartRecorder<'a> {
    /// A recorder into files of a folder.
    pub(super) fn new(
        folder: &'a Path,
        cache: Option<&'a (PathBuf, u64)>,
        report: &'a (dyn Fn(&str) + Send + Sync),
    ) -> Self {
        Self { folder, cache, report, parts: Vec::new(), damage: None }
    }

    /// Records what `front` makes of a file, from a saved stream on if there is one.
    ///
    /// # Errors
    /// If it does not run or is stopped. Damage of the file is kept with the parts.
    pub(super) fn record(
        &mut self,
        front: &Pipeline,
        path: PathBuf,
        from: Option<(usize, SavedStream)>,
        filter: &mut GatewayFilter,
    ) -> Result<(), InputError> {
        let kept = self.folder.join(format!("{}.frames.zst", self.parts.len()));
        let (session, options) = match (from, self.cache) {
            (None, Some((folder, limit))) => {
                let store = CacheStore::new(folder.clone(), *limit);
                let cached = CacheSession::begin(store, front, |text| (self.report)(&text));
                cached.map_or_else(Default::default, |(session, options)| (Some(session), options))
            }
            (from, _) => (None, RunOptions { from, recorders: Vec::new() }),
        };
        let file = File::create(&kept).map_err(InputError::Recording)?;
        let recording = Recording::new(file, Compression::Zstd, None).map_err(InputError::Recording)?;
        let mut writer = FrameWriter::new(recording);
        let mut span: Option<[i64; 2]> = None;
        let mut failure = None;
        let mut sink = |frame: Frame| -> io::Result<()> {
            if !filter.keeps(&frame) {
                return Ok(());
            }
            if let Some([first, last]) = times(&frame) {
                let [start, end] = span.get_or_insert([first, last]);
                (*start, *end) = ((*start).min(first), (*end).max(last));
            }
            writer.write(&frame).map_err(|error| {
                let error = io::Error::other(error.to_string());
                failure = Some(io::Error::other(error.to_string()));
                error
            })
        };
        // A failing run sets its interrupt, so every run needs its own.
        let interrupt = Interrupt::on_signals().map_err(InputError::Signals)?;
        let ended = front.prepare_with(options)?.run(&interrupt, &mut sink);
        if let Some(error) = failure {
            return Err(InputError::Recording(error));
        }
        match ended {
            Ok(report) if report.ending == RunEnding::Interrupted => return Err(InputError::Interrupted),
            Ok(_) => session.into_iter().for_each(|session| session.end(|text| (self.report)(&text))),
            Err(error) => self.damage = self.damage.take().or(Some(error)),
        }
        let recorded = writer.into_output().map_err(|error| io::Error::other(error.to_string()));
        recorded.and_then(Recording::finish).map_err(InputError::Recording)?;
        self.parts.push(InputPart { path, span, kept });
        Ok(())
    }

    /// Records that a file cannot be read, as if `stage` had said so.
    ///
    /// # Errors
    /// If that cannot be written.
    pub(super) fn record_unreadable(&mut self, stage: &str, path: &Path, error: &io::Error) -> Result<(), InputError> {
        let fault = RunError::of_input(format!("{}: {error}", path.display()));
        let (stage, version) = (stage.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let hello = Hello { schema: SCHEMA, stage, version, upstream: Vec::new() };
        let notice = Notice {
            time_ns: None,
            stage: fault.stage.clone().into(),
            flow: None,
            what: what::MALFORMED.into(),
            bytes: None,
            detail: Some(fault.cause.clone()),
        };
        let kept = self.folder.join(format!("{}.frames.zst", self.parts.len()));
        let file = File::create(&kept).map_err(InputError::Recording)?;
        let recording = Recording::new(file, Compression::Zstd, None).map_err(InputError::Recording)?;
        let mut writer = FrameWriter::new(recording);
        let written = [hello.into(), notice.into()].iter().try_for_each(|frame: &Frame| writer.write(frame));
        let recorded = written.and_then(|()| writer.into_output()).map_err(|error| io::Error::other(error.to_string()));
        recorded.and_then(Recording::finish).map_err(InputError::Recording)?;
        self.parts.push(InputPart { path: path.to_owned(), span: None, kept });
        self.damage.get_or_insert(fault);
        Ok(())
    }

    /// The parts, and what was wrong with the first that is damaged.
    pub(super) fn finish(self) -> (Vec<InputPart>, Option<RunError>) {
        (self.parts, self.damage)
    }
}

/// The times of the traffic that a frame is about.
pub(super) fn times(frame: &Frame) -> Option<[i64; 2]> {
    match frame {
        Frame::Record(record) => Some([record.start_ns.min(record.time_ns), record.time_ns]),
        Frame::Session(session) => Some([session.time_ns; 2]),
        Frame::Command(command) => Some([command.time_ns, command.end_ns.max(command.time_ns)]),
        _ => None,
    }
}
