//! A frame stream that was saved, from which a pipeline goes on.

use std::fs::{File, OpenOptions};
use std::io::{self, Cursor, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use sizeleak_frame::{Frame, FrameReader, Hello};
use sizeleak_runtime::{Interrupt, Interruptible};

use super::{ConfigError, Pipeline, Step, Work};
use crate::recording::{decompressed, stdin};
use crate::registry;

/// A stream that was saved; what stands in its `hello` is known.
pub struct SavedStream {
    name: String,
    /// The file, if it is one of the user's.
    path: Option<PathBuf>,
    hello: Hello,
    input: Box<dyn Read + Send>,
}

impl SavedStream {
    /// Opens a file, compressed or not; `-` is stdin. Waits for its first frame, and no longer than until `interrupt` is set.
    ///
    /// # Errors
    /// [`ConfigError`] where it cannot be read or does not begin as a frame stream.
    pub fn open(path: &Path, interrupt: &Interrupt) -> Result<Self, ConfigError> {
        let name = if path.as_os_str() == "-" { "stdin".to_owned() } else { path.display().to_string() };
        let of_file = |error: io::Error| ConfigError::input(format!("{name}: {error}"));
        let file = if path.as_os_str() == "-" { stdin() } else { open(path) }.map_err(of_file)?;
        let metadata = file.metadata().map_err(of_file)?;
        if metadata.is_dir() {
            return Err(ConfigError::input(format!("{name} is a folder, not a frame stream")));
        }
        let input = if metadata.is_file() {
            decompressed(file)
        } else {
            decompressed(Interruptible::new(file, interrupt.clone()))
        };
        Self::new(name.clone(), Some(path.to_owned()), input.map_err(of_file)?)
    }

    /// A stream out of a file that is open, which messages call `name`.
    ///
    /// # Errors
    /// As [`SavedStream::open`].
    pub fn of_file(name: String, file: File) -> Result<Self, ConfigError> {
        let input = decompressed(file).map_err(|error| ConfigError::input(format!("{name}: {error}")))?;
        Self::new(name, None, input)
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
        // The next one reads it from its beginning.
        let first = reader.last_value().to_vec();
        let (rest, input) = reader.into_rest();
        let input = Box::new(Cursor::new([first, rest].concat()).chain(input));
        Ok(Self { name, path, hello, input })
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a file that the user named, so that there is no need to save it again.
    pub(super) fn is_named(&self) -> bool {
        self.path.is_some()
    }

    pub(super) fn into_input(self) -> Box<dyn Read + Send> {
        self.input
    }
}

/// Opens a file; a named pipe without waiting for its writer, which would keep the user from stopping.
fn open(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    fcntl_setfl(&opened, fcntl_getfl(&opened)? - OFlags::NONBLOCK)?;
    Ok(opened)
}

impl Pipeline {
    /// The place of the stage that made a stream: that which saves to this file, or else the one that its `hello` names.
    ///
    /// # Errors
    /// [`ConfigError`] where no stage is called so, or the one behind it works on other frames.
    pub fn place_of(&self, replay: &SavedStream) -> Result<usize, ConfigError> {
        let made_by = &replay.hello.stage;
        let file =
            replay.path.as_ref().filter(|path| path.as_os_str() != "-").and_then(|path| path.canonicalize().ok());
        let is_saved_there = |step: &Step| step.save.as_ref().is_some_and(|save| save.canonicalize().ok() == file);
        let saved = file.is_some().then(|| self.stages.iter().position(is_saved_there));
        // A stage may be there several times: the first one's stream names it once, the second one's twice.
        let nth = replay.hello.upstream.iter().filter(|stage| *stage == made_by).count();
        let named: Vec<usize> =
            (0..).zip(&self.stages).filter(|(_, step)| step.name() == made_by).map(|(at, _)| at).collect();
        let place = saved.flatten().or_else(|| named.get(nth).or(named.last()).copied());
        let Some(place) = place else {
            let all = self.stages.iter().map(Step::name).collect::<Vec<_>>().join(", ");
            return Err(ConfigError::usage(format!(
                "{}: `{made_by}` made this stream, and it is not in this pipeline, which has {all}; to go on behind a \
                 program of your own, give it that `name`",
                replay.name
            )));
        };
        self.check_fit(replay, place)?;
        Ok(place)
    }

    /// Checks that the stage behind this place works on what the maker of the stream makes, where both are ours.
    fn check_fit(&self, replay: &SavedStream, place: usize) -> Result<(), ConfigError> {
        let Some(Work::Known { entry: next, .. }) = self.stages.get(place + 1).map(|step| &step.work) else {
            return Ok(());
        };
        let maker = &replay.hello.stage;
        match (registry::find(maker), next.consumes) {
            (Some(made), Some(consumed)) if made.makes != consumed => Err(ConfigError::usage(format!(
                "{}: `{maker}` makes frames of kind `{}`, but `{}`, which comes next in this pipeline, works on `{consumed}`",
                replay.name, made.makes, next.name
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{FrameWriter, SCHEMA};

    use super::*;

    fn replay(stage: &str, upstream: &[&str]) -> SavedStream {
        let upstream = upstream.iter().map(|&stage| stage.to_owned()).collect();
        let hello = Hello { schema: SCHEMA, stage: stage.into(), version: "1".into(), upstream };
        let mut writer = FrameWriter::new(Vec::new());
        writer.write(&hello.into()).unwrap();
        let bytes = writer.into_output().unwrap();
        SavedStream::new("file".into(), None, Box::new(Cursor::new(bytes))).unwrap()
    }

    fn pipeline(text: &str) -> Pipeline {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Pipeline::read(file.path()).unwrap()
    }

    #[test]
    fn a_stream_is_that_of_the_stage_its_hello_names() {
        let standard = Pipeline::standard();
        assert_eq!(standard.place_of(&replay("record-sizer", &["capture", "flow-filter"])).unwrap(), 2);
        assert_eq!(standard.place_of(&replay("pruner", &[])).unwrap(), 6);
        let error = standard.place_of(&replay("burst", &["record-sizer"])).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("`burst` made this stream, and it is not in this pipeline"), "{error}");
    }

    #[test]
    fn of_several_stages_of_one_name_it_is_the_one_that_comes_as_often_before() {
        let twice = pipeline(
            "[[stage]]\nrun = \"capture\"\n[[stage]]\nname = \"mine\"\ncommand = [\"cat\"]\n[[stage]]\nname = \
             \"mine\"\ncommand = [\"cat\"]\n",
        );
        assert_eq!(twice.place_of(&replay("mine", &["capture"])).unwrap(), 1);
        assert_eq!(twice.place_of(&replay("mine", &["capture", "mine"])).unwrap(), 2);
        assert_eq!(twice.place_of(&replay("mine", &["mine", "mine", "mine"])).unwrap(), 2, "more than there are");
    }

    #[test]
    fn a_kind_that_does_not_fit_is_told() {
        let odd = pipeline(
            "[[stage]]\nrun = \"capture\"\n[[stage]]\nname = \"record-sizer\"\ncommand = [\"cat\"]\n[[stage]]\nrun = \
             \"flow-filter\"\n",
        );
        let error = odd.place_of(&replay("record-sizer", &["capture"])).unwrap_err().to_string();
        assert!(error.contains("kind `record`") && error.contains("works on `packets`"), "{error}");
    }

    #[test]
    fn what_is_no_stream_is_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hello").unwrap();
        let interrupt = Interrupt::new();
        let fault = |path: &Path| SavedStream::open(path, &interrupt).map(|_| ()).unwrap_err().to_string();
        assert!(fault(file.path()).contains("value 1 of the frame stream"), "{}", fault(file.path()));
        assert!(fault(Path::new("/no/such.frames")).contains("/no/such.frames: No such file"));
        assert!(fault(Path::new("/")).contains("is a folder"));
    }
}
