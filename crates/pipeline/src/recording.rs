//! Frame streams in files: compressed by the name of the file when written, recognised by content when read. And
//! saved ones, from which a pipeline continues; several of one stage, from runs that continue each other, are read one
//! after another as one stream. `save` names the file that a stage's output is also written to, on its way to the next one:
//! it appears complete or not at all.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufWriter, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Receiver, Sender, bounded};
use flate2::write::GzEncoder;
use sizeleak_frame::{Frame, FrameReader, FrameWriter, Hello, ReadError, StageSummary, Summary};
use sizeleak_platform::runtime::{Interrupt, Interruptible, Output, open_stream, stdin};
use sizeleak_platform::storage::OutputFile;

use crate::stage::PipelineStage;
use crate::{ConfigError, Pipeline, registry};

const ZSTD_LEVEL: i32 = 3;

pub struct Recording(Encoder);

enum Encoder {
    Plain(BufWriter<File>),
    Zstd(zstd::Encoder<'static, File>),
    Gzip(GzEncoder<File>),
}

impl Recording {
    pub fn new(file: File, compression: Compression) -> io::Result<Self> {
        Ok(Self(match compression {
            Compression::None => Encoder::Plain(BufWriter::new(file)),
            Compression::Gzip => Encoder::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(file, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Encoder::Zstd(encoder)
            }
        }))
    }

    /// A new file that frames are written to, compressed by zstd; [`Recording::end`] makes it whole.
    pub fn of_frames(path: &Path) -> io::Result<FrameWriter<Self>> {
        Ok(FrameWriter::new(Self::new(File::create(path)?, Compression::Zstd)?))
    }

    pub fn end(writer: FrameWriter<Self>) -> io::Result<()> {
        writer.into_output()?.finish()
    }

    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Encoder::Plain(mut writer) => writer.flush(),
            Encoder::Zstd(encoder) => encoder.finish().map(drop),
            Encoder::Gzip(encoder) => encoder.finish().map(drop),
        }
    }
}

impl Write for Recording {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Encoder::Plain(writer) => writer.write(bytes),
            Encoder::Zstd(encoder) => encoder.write(bytes),
            Encoder::Gzip(encoder) => encoder.write(bytes),
        }
    }

    /// Does nothing: the file is read only when complete, and flushing makes compression worse.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Zstd,
    Gzip,
}

impl Compression {
    /// Chosen by the extension of a file name: `.zst`, `.gz`, or none.
    pub fn of_name(file: &Path) -> Self {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("zst") => Self::Zstd,
            Some("gz") => Self::Gzip,
            _ => Self::None,
        }
    }
}

/// The decompressed stream; its first bytes, which this waits for, show the compression.
pub fn decompressed(input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    sizeleak_capture::decompressed(Box::new(input))
}

/// A file, or stdin for `-` or `None`, decompressed; and its name in messages.
pub fn open(file: Option<&Path>) -> anyhow::Result<(Box<dyn Read + Send>, String)> {
    let (opened, name) = match file.filter(|path| path.as_os_str() != "-") {
        Some(path) => (File::open(path), path.display().to_string()),
        None => (stdin(), "stdin".to_owned()),
    };
    let input = opened.and_then(decompressed).with_context(|| name.clone())?;
    Ok((input, name))
}

/// A saved stream whose `hello` has been read.
pub struct SavedStream {
    name: String,
    /// The file, if the user named it, so that it need not be saved again.
    pub(crate) path: Option<PathBuf>,
    pub(crate) unopened: Vec<PathBuf>,
    hello: Hello,
    pub(crate) input: Box<dyn Read + Send>,
}

impl SavedStream {
    /// Opens a file, compressed or not; `-` is stdin. Waits for its first frame until `interrupt` is set.
    pub fn open(path: &Path, interrupt: &Interrupt) -> Result<Self, ConfigError> {
        let name = name_of(path);
        let of_file = |error: io::Error| ConfigError::input(format!("{name}: {error}"));
        let input = bytes_of(path, interrupt).map_err(of_file)?;
        Self::new(name, Some(path.to_owned()), input)
    }

    pub fn of_file(name: String, file: File) -> Result<Self, ConfigError> {
        let input = decompressed(file).map_err(|error| ConfigError::input(format!("{name}: {error}")))?;
        Self::new(name, None, input)
    }

    /// The streams of one stage in these files, one after another, as one stream. Each file is opened when its turn comes:
    /// there may be more of them than a process may open.
    pub fn joined(files: &[PathBuf], interrupt: &Interrupt) -> Result<Self, ConfigError> {
        let name = match files {
            [only] => name_of(only),
            [first, .., last] => format!("{} … {}", name_of(first), name_of(last)),
            [] => String::new(),
        };
        for file in files.iter().filter(|file| file.as_os_str() != "-") {
            file.metadata().map_err(|error| ConfigError::input(format!("{}: {error}", name_of(file))))?;
        }
        let joined = JoinedStreams::new(files, interrupt);
        let unopened = files.iter().skip(1).filter(|file| file.as_os_str() != "-").cloned().collect();
        Ok(Self { unopened, ..Self::new(name, files.first().cloned(), Box::new(joined))? })
    }

    pub fn empty(stage: &str) -> Result<Self, ConfigError> {
        let mut writer = FrameWriter::new(Vec::new());
        let written = writer.write_all(&[Hello::of(stage).into(), Frame::Summary(Summary::default())]);
        let bytes = written.and_then(|()| writer.into_output());
        let bytes = bytes.map_err(|error| ConfigError::input(error.to_string()))?;
        Self::new("no traffic".to_owned(), None, Box::new(Cursor::new(bytes)))
    }

    fn new(name: String, path: Option<PathBuf>, input: Box<dyn Read + Send>) -> Result<Self, ConfigError> {
        let mut reader = FrameReader::new(input);
        let fault = |fault: String| ConfigError::input(format!("{name}: {fault}"));
        let hello = match reader.next_frame() {
            Ok(Some(Frame::Hello(hello))) => *hello,
            Ok(_) => return Err(fault("a frame stream begins with `hello`".into())),
            Err(error) if error.is_cut() => return Err(ConfigError::cut(format!("{name}: {error}"))),
            Err(error) => return Err(fault(error.to_string())),
        };
        // The first stage reads the stream from its beginning.
        let first = reader.last_value().to_vec();
        let (rest, input) = reader.into_rest();
        let input = Box::new(Cursor::new([first, rest].concat()).chain(input));
        Ok(Self { name, path, unopened: Vec::new(), hello, input })
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

fn name_of(path: &Path) -> String {
    if path.as_os_str() == "-" { "stdin".to_owned() } else { path.display().to_string() }
}

/// The decompressed bytes of a file; `-` is stdin. Waits for the first of them until `interrupt` is set.
fn bytes_of(path: &Path, interrupt: &Interrupt) -> io::Result<Box<dyn Read + Send>> {
    let file = open_stream(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("is a folder, not a frame stream"));
    }
    if metadata.is_file() { decompressed(file) } else { decompressed(Interruptible::new(file, interrupt.clone())) }
}

impl Pipeline {
    /// The index of the stage that made a stream: the one that saves to this file, or else the one named by its
    /// `hello`.
    pub fn index_of(&self, stream: &SavedStream) -> Result<usize, ConfigError> {
        let maker = &stream.hello.stage;
        let file =
            stream.path.as_ref().filter(|path| path.as_os_str() != "-").and_then(|path| path.canonicalize().ok());
        let is_saved_there =
            |stage: &PipelineStage| stage.save.as_ref().is_some_and(|save| save.canonicalize().ok() == file);
        let saved = file.is_some().then(|| self.stages.iter().position(is_saved_there));
        // Of several stages with this name: as many come before the maker as its `hello` lists.
        let nth = stream.hello.upstream.iter().filter(|stage| *stage == maker).count();
        let named: Vec<usize> =
            (0..).zip(&self.stages).filter(|(_, stage)| stage.name() == maker).map(|(index, _)| index).collect();
        let index = saved.flatten().or_else(|| named.get(nth).or(named.last()).copied());
        let Some(index) = index else {
            let all = self.stages.iter().map(PipelineStage::name).collect::<Vec<_>>().join(", ");
            return Err(ConfigError::usage(format!(
                "{}: `{maker}` made this stream, and it is not in this pipeline, which has {all}; to continue after a \
                 program of your own, give it that `name`",
                stream.name
            )));
        };
        // The stage after it works on what the maker of the stream makes, if both are standard stages.
        let next = self.stages.get(index + 1).and_then(PipelineStage::entry);
        match (registry::find(maker), next.and_then(|next| Some((next.name, next.consumes?)))) {
            (Some(made), Some((next, consumed))) if made.makes != consumed => Err(ConfigError::usage(format!(
                "{}: `{maker}` makes frames of kind `{}`, but `{next}`, which comes next in this pipeline, works on \
                 `{consumed}`",
                stream.name, made.makes
            ))),
            _ => Ok(index),
        }
    }
}

/// The joined stream: the `hello` of the first one, all other frames, and a `summary` of all.
struct JoinedStreams {
    /// The name and the bytes of the one that is read.
    present: Option<(String, FrameReader<Box<dyn Read + Send>>)>,
    waiting: VecDeque<PathBuf>,
    interrupt: Interrupt,
    /// The stage that made all of them, once the first has said so.
    stage: Option<String>,
    /// That of all, until it was returned.
    summary: Option<Summary>,
    bytes: Cursor<Vec<u8>>,
}

impl JoinedStreams {
    fn new(files: &[PathBuf], interrupt: &Interrupt) -> Self {
        let (waiting, interrupt) = (files.to_vec().into(), interrupt.clone());
        let summary = Some(Summary::default());
        Self { present: None, waiting, interrupt, stage: None, summary, bytes: Cursor::default() }
    }

    /// The next frame as bytes; none at the end.
    fn next_bytes(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let Some((name, reader)) = &mut self.present else {
                let Some(path) = self.waiting.pop_front() else {
                    let Some(summary) = self.summary.take() else { return Ok(Vec::new()) };
                    let mut writer = FrameWriter::new(Vec::new());
                    return writer.write(&Frame::Summary(summary)).and_then(|()| writer.into_output());
                };
                let name = name_of(&path);
                let opened = bytes_of(&path, &self.interrupt).map_err(|error| named(&name, &error))?;
                self.present = Some((name, FrameReader::new(opened)));
                continue;
            };
            let fault =
                |why: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {why}"));
            match reader.next_frame() {
                Ok(Some(Frame::Hello(hello))) => match &self.stage {
                    None => self.stage = Some(hello.stage),
                    Some(stage) if *stage != hello.stage => {
                        return Err(fault(&format!("`{}` made it, and `{stage}` the stream before it", hello.stage)));
                    }
                    Some(_) => continue,
                },
                Ok(Some(Frame::Summary(summary))) => {
                    if let Some(all) = &mut self.summary {
                        add(all, summary);
                    }
                    continue;
                }
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.present = None;
                    continue;
                }
                Err(error) if error.is_cut() => {
                    let cut = format!("{name} was cut: {error}");
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, cut));
                }
                Err(ReadError::Io { source, .. }) => return Err(named(name, &source)),
                Err(error) => return Err(fault(&error)),
            }
            return Ok(reader.last_value().to_vec());
        }
    }
}

impl Read for JoinedStreams {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.fill_buf()?.is_empty() {
            self.bytes = Cursor::new(self.next_bytes()?);
        }
        self.bytes.read(buffer)
    }
}

/// Adds what stages did in another run. Latencies are those of the last run.
pub(crate) fn add(summary: &mut Summary, other: Summary) {
    let before = std::mem::replace(summary, other);
    // A run that only ended flows had no source.
    let missing = before.stages.len().saturating_sub(summary.stages.len());
    for (index, stage) in before.stages.into_iter().enumerate() {
        match summary.stages.iter_mut().find(|other| other.stage == stage.stage) {
            Some(other) => add_stage(other, &stage),
            None => summary.stages.insert(index.min(missing), stage),
        }
    }
}

fn add_stage(stage: &mut StageSummary, other: &StageSummary) {
    stage.frames_in = stage.frames_in.saturating_add(other.frames_in);
    stage.frames_out = stage.frames_out.saturating_add(other.frames_out);
    stage.bytes_in = stage.bytes_in.saturating_add(other.bytes_in);
    for (name, count) in &other.counters {
        let sum = stage.counters.entry(name.clone()).or_default();
        *sum = if name.starts_with("worst_") { *count.max(sum) } else { sum.saturating_add(*count) };
    }
}

pub(crate) struct PendingSave {
    pub(crate) stage: String,
    pub(crate) path: PathBuf,
    file: OutputFile,
    finished: Receiver<()>,
}

impl PendingSave {
    pub(crate) fn begin(stage: &str, path: &Path) -> Result<(Self, OutputRecorder), String> {
        let named = |error: io::Error| format!("{}: {error}", path.display());
        if !may_be_replaced(path).map_err(named)? {
            return Err(format!(
                "{} exists and holds no frames: it is not overwritten; remove it, or name another file",
                path.display()
            ));
        }
        let mut file = OutputFile::create(path).map_err(|error| error.to_string())?;
        let copy = file.writer().map_err(|error| error.to_string())?;
        let cannot = |error: io::Error| format!("{} cannot be written: {error}", path.display());
        let recording = Recording::new(copy, Compression::of_name(path)).map_err(cannot)?;
        let (sender, finished) = bounded(1);
        let recorder = OutputRecorder { recording, name: path.display().to_string(), finished: sender };
        Ok((Self { stage: stage.to_owned(), path: path.to_owned(), file, finished }, recorder))
    }

    /// Renames the file after the end of the run. Returns its path, or `None` if the stream was not whole.
    pub(crate) fn keep(self) -> Result<Option<PathBuf>, String> {
        let Ok(()) = self.finished.try_recv() else { return Ok(None) };
        self.file.keep().map_err(|error| error.to_string())?;
        Ok(Some(self.path))
    }
}

/// Whether nothing would be lost: the file is missing or empty, or holds frames.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
        Ok(metadata) if !metadata.is_file() => Ok(false),
        Ok(metadata) if metadata.len() == 0 => Ok(true),
        Ok(_) => {
            let mut reader = FrameReader::new(decompressed(File::open(path)?)?);
            Ok(matches!(reader.next_frame(), Ok(Some(_))))
        }
    }
}

/// Records the output of one stage into a file. An error fails the run.
pub(crate) struct OutputRecorder {
    pub(crate) recording: Recording,
    /// In messages.
    pub(crate) name: String,
    /// Is told after the summary that the recording is whole, and nothing if the stream was cut or could not be written.
    pub(crate) finished: Sender<()>,
}

impl OutputRecorder {
    pub(crate) fn end(self) -> io::Result<()> {
        self.recording.finish().map_err(|error| named(&self.name, &error))?;
        // The receiver may be gone.
        let _sent = self.finished.send(());
        Ok(())
    }
}

fn named(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

impl Write for OutputRecorder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.recording.write(bytes).map_err(|error| named(&self.name, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.recording.flush()
    }
}

pub(crate) struct RecordedOutput {
    output: Box<dyn Output>,
    recorder: Option<FrameWriter<OutputRecorder>>,
    spent: Duration,
}

impl RecordedOutput {
    pub(crate) fn wrap(output: Box<dyn Output>, recorder: Option<OutputRecorder>) -> Box<dyn Output> {
        let Some(recorder) = recorder else { return output };
        Box::new(Self { output, recorder: Some(FrameWriter::new(recorder)), spent: Duration::ZERO })
    }

    fn record(&mut self, frames: &[Frame]) -> io::Result<()> {
        let Some(writer) = &mut self.recorder else { return Ok(()) };
        writer.write_all(frames)?;
        match self.recorder.take_if(|_| matches!(frames.last(), Some(Frame::Summary(_)))) {
            Some(ended) => ended.into_output()?.end(),
            None => Ok(()),
        }
    }
}

impl Output for RecordedOutput {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        let start = Instant::now();
        let recorded = self.record(frames);
        self.spent += start.elapsed();
        recorded?;
        self.output.emit_all(frames)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    fn waited(&self) -> Duration {
        self.output.waited() + self.spent
    }
}

#[cfg(test)]
mod tests;
