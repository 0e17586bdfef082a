//! The records of a point: the output of the first three stages over its captures, kept as a compressed frame stream.

use std::io;
use std::path::{Path, PathBuf};

use sizeleak_frame::{Frame, FrameSink, FrameWriter, Summary};
use sizeleak_pipeline::recording::{Compression, FinishedRecording, Recording};
use sizeleak_pipeline::{ConfigError, Pipeline, RunEnding, RunError};
use sizeleak_runtime::Interrupt;
use sizeleak_storage::PendingFile;
use sizeleak_telemetry::{Progress, Telemetry};

use crate::description::RecordsDescription;
use crate::error::io_error;
use crate::keys::RECORD_STAGE;
use crate::layout::Layout;

/// The stage that reports damaged captures.
const CAPTURE: &str = "capture";

/// Reads captures and writes their records, which become `target` once they are kept; `key` is what they depend on. If `is_damaged`, that `capture`
/// fails at the end is expected: everything that can be read has been.
///
/// # Errors
/// One sentence.
pub(crate) fn make(
    layout: &Layout,
    pipeline: &Pipeline,
    target: &Path,
    key: &str,
    is_damaged: bool,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<(PendingFile, RecordsDescription), String> {
    let of_target = |error: io::Error| format!("{} cannot be written: {error}", target.display());
    let mut pending = layout.begin(target).map_err(of_target)?;
    let file = pending.file().try_clone().map_err(of_target)?;
    let recording = Recording::new(file, Compression::Zstd, None).map_err(of_target)?;
    let prepared = pipeline.until(RECORD_STAGE).and_then(|first| first.prepare());
    let mut prepared = prepared.map_err(|error: ConfigError| error.to_string())?;
    let telemetry = Telemetry::new();
    prepared.report_to(&telemetry);
    let mut sink = RecordSink {
        writer: FrameWriter::new(recording),
        records: 0,
        is_whole: false,
        read: telemetry.progress().clone(),
        reported: 0,
        progress: progress.clone(),
    };
    match prepared.run(interrupt, &mut sink) {
        Ok(report) if report.ending == RunEnding::Done => {}
        Err(RunError { stage, .. }) if stage == CAPTURE && is_damaged => {}
        Ok(_) => return Err("the run was stopped".to_owned()),
        Err(error) => return Err(error.to_string()),
    }
    let records = sink.records;
    let finished = sink.finish().map_err(of_target)?;
    let (key, digest) = (key.to_owned(), finished.digest.to_string());
    Ok((pending, RecordsDescription { key, digest, bytes: finished.bytes, records }))
}

/// Makes the pipeline of a point read its captures.
pub(crate) fn reading(pipeline: &Pipeline, captures: &[PathBuf]) -> Result<Pipeline, ConfigError> {
    let mut reading = pipeline.clone();
    reading.read_captures(captures)?;
    Ok(reading)
}

/// Writes records, without what differs between two runs.
struct RecordSink {
    writer: FrameWriter<Recording>,
    records: u64,
    /// Whether the stream has its summary.
    is_whole: bool,
    /// How much of the captures has been read, and how much of that is in `progress`.
    read: Progress,
    reported: u64,
    progress: Progress,
}

impl FrameSink for RecordSink {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        self.report();
        for frame in frames.drain(..) {
            let frame = match frame {
                Frame::Summary(summary) => {
                    self.is_whole = true;
                    Frame::Summary(without_latencies(summary))
                }
                other => other,
            };
            self.records += u64::from(matches!(frame, Frame::Record(_)));
            self.writer.write(&frame).map_err(io_error)?;
        }
        Ok(())
    }
}

impl RecordSink {
    fn report(&mut self) {
        let read = self.read.read();
        self.progress.add(read.saturating_sub(self.reported));
        self.reported = read;
    }

    /// Ends the stream. That of a damaged capture ends without a summary; what is missing is in the manifest.
    fn finish(mut self) -> io::Result<FinishedRecording> {
        self.report();
        if !self.is_whole {
            self.writer.write(&Frame::Summary(Summary::default())).map_err(io_error)?;
        }
        self.writer.into_output().map_err(io_error)?.finish()
    }
}

/// Latencies are the one difference between two runs.
fn without_latencies(mut summary: Summary) -> Summary {
    for stage in &mut summary.stages {
        stage.latency.clear();
        stage.queue.clear();
    }
    summary
}
