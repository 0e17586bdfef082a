//! A saved frame stream, from which a pipeline continues.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use sizeleak_frame::{Frame, FrameReader, FrameWriter, Hello, Summary};
use sizeleak_platform::runtime::{Interrupt, Interruptible, open_stream};

use crate::joined_streams::{JoinedStreams, UnopenedStream};
use crate::recording::decompressed;
use crate::registry;
use crate::stage::PipelineStage;
use crate::{ConfigError, Pipeline};

/// A saved stream whose `hello` has been read.
pub struct SavedStream {
    name: String,
    /// The file, if the user named it.
    path: Option<PathBuf>,
    unopened: Vec<PathBuf>,
    hello: Hello,
    input: Box<dyn Read + Send>,
}

impl SavedStream {
    /// Opens a file, compressed or not; `-` is stdin. Waits for its first frame until `interrupt` is set.
    pub fn open(path: &Path, interrupt: &Interrupt) -> Result<Self, ConfigError> {
        let name = name_of(path);
        let of_file = |error: io::Error| ConfigError::input(format!("{name}: {error}"));
        let input = bytes_of(path, interrupt).map_err(of_file)?;
        Self::new(name, Some(path.to_owned()), input)
    }

    /// A stream from an open file, called `name` in messages.
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
        let unopened = |path: &PathBuf| {
            let (name, path, interrupt) = (name_of(path), path.clone(), interrupt.clone());
            UnopenedStream { name, open: Box::new(move || bytes_of(&path, &interrupt)) }
        };
        let joined = JoinedStreams::new(files.iter().map(unopened));
        let unopened = files.iter().skip(1).filter(|file| file.as_os_str() != "-").cloned().collect();
        Ok(Self { unopened, ..Self::new(name, files.first().cloned(), Box::new(joined))? })
    }

    /// A stream of this stage that holds no traffic.
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

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(crate) fn unopened(&self) -> &[PathBuf] {
        &self.unopened
    }

    /// Whether the user named the file, so that it need not be saved again.
    pub(crate) fn is_named(&self) -> bool {
        self.path.is_some()
    }

    pub(crate) fn into_input(self) -> Box<dyn Read + Send> {
        self.input
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
        self.check_next(stream, index)?;
        Ok(index)
    }

    /// Checks that the stage after this index consumes what the maker of the stream makes, if both are standard
    /// stages.
    fn check_next(&self, stream: &SavedStream, index: usize) -> Result<(), ConfigError> {
        let Some(next) = self.stages.get(index + 1).and_then(PipelineStage::entry) else { return Ok(()) };
        let maker = &stream.hello.stage;
        match (registry::find(maker), next.consumes) {
            (Some(made), Some(consumed)) if made.makes != consumed => Err(ConfigError::usage(format!(
                "{}: `{maker}` makes frames of kind `{}`, but `{}`, which comes next in this pipeline, works on \
                 `{consumed}`",
                stream.name, made.makes, next.name
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
