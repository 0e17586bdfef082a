//! Answers of earlier runs as input: frames, JSON lines, Parquet, and folders of them.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow};
use clap::Args;
use sizeleak_capture::content_below;
use sizeleak_frame::Frame;
use sizeleak_output::{AnswerSink, read_answers};
use sizeleak_pipeline::recording::open;
use sizeleak_text::TimeRange;

use super::failure::with_code;
use super::shared_options::{INPUT, TimeCut};

/// The endings of the files of a folder that are answers; others are passed over.
const ENDINGS: [&str; 5] = [".parquet", ".frames", ".frames.zst", ".frames.gz", ".ndjson"];

#[derive(Debug, Args)]
pub(super) struct AnswersInput {
    /// Answers in order of time: frames, JSON lines or Parquet, as `sizeleak run` and `archive` write them
    ///
    /// Of a folder, all files in it by their names: `.parquet`, `.ndjson`, `.frames`, and the last compressed. `-` is
    /// stdin.
    #[arg(value_name = "ANSWERS", required = true, help_heading = INPUT)]
    pub(super) answers: Vec<PathBuf>,
}

impl AnswersInput {
    /// Reads the answers of a time, file by file; `file_ends` is called behind each. Says how many there are.
    ///
    /// # Errors
    /// Also if there are answers, and none is of that time.
    pub(super) fn read<S: AnswerSink>(
        &self,
        range: TimeRange,
        sink: &mut S,
        mut file_ends: impl FnMut(&mut S, &Path) -> Result<()>,
    ) -> Result<()> {
        let mut within = Within { sink, cut: TimeCut::new(range) };
        for operand in &self.answers {
            let files = if operand.is_dir() { answers_below(operand)? } else { vec![operand.clone()] };
            if files.is_empty() {
                let known = ENDINGS.join(", ");
                return Err(anyhow!("{} holds no answers: none of its files ends in {known}", operand.display()));
            }
            for file in files {
                let (input, name) = open(Some(&file))?;
                Answers::of(BufReader::new(input), Some(&file), &name)?.read(&name, &mut within)?;
                file_ends(within.sink, &file)?;
            }
        }
        within.cut.report("answers")
    }
}

struct Within<'a, S> {
    sink: &'a mut S,
    cut: TimeCut,
}

impl<S: AnswerSink> AnswerSink for Within<'_, S> {
    fn add(&mut self, frame: Frame) {
        if self.cut.keeps(&frame) {
            self.sink.add(frame);
        }
    }

    fn learn(&mut self, flow: u64, gateway: Option<&str>, service: Option<&str>) {
        self.sink.learn(flow, gateway, service);
    }
}

/// The answers of a folder and its folders, in order of their paths. Symbolic links to folders are not followed.
fn answers_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let content = content_below(folder);
    if let Some((path, error)) = content.unreadable.into_iter().next() {
        return Err(Error::from(error).context(path.display().to_string()));
    }
    let mut answers = content.files;
    answers.extend(content.special.into_iter().map(|special| special.path));
    answers.retain(|path| ENDINGS.iter().any(|ending| path.as_os_str().to_string_lossy().ends_with(ending)));
    answers.sort();
    Ok(answers)
}

pub(super) enum Answers {
    /// Frames or JSON lines.
    Stream(Box<dyn Read>),
    Parquet(PathBuf),
}

impl Answers {
    pub(super) fn of(mut input: impl BufRead + 'static, file: Option<&Path>, name: &str) -> Result<Self> {
        if !input.fill_buf().with_context(|| name.to_owned())?.starts_with(b"PAR1") {
            return Ok(Self::Stream(Box::new(input)));
        }
        let file = file.filter(|path| path.is_file());
        let file = file.ok_or_else(|| anyhow!("{name} is Parquet, whose end is read first: name a file"))?;
        Ok(Self::Parquet(file.to_owned()))
    }

    /// Reads the answers; everything before an error has been added.
    pub(super) fn read(self, name: &str, sink: &mut dyn AnswerSink) -> Result<()> {
        match self {
            Self::Stream(input) => read_answers(input, sink).map_err(|error| {
                let code = if error.is_cut() { 3 } else { 1 };
                with_code(code, anyhow!("{name}: {error}"))
            }),
            Self::Parquet(path) => read_parquet(&path, sink),
        }
    }
}

#[cfg(feature = "parquet")]
fn read_parquet(path: &Path, sink: &mut dyn AnswerSink) -> Result<()> {
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    sizeleak_output::read_parquet_answers(file, sink).map_err(|error| anyhow!("{}: {error}", path.display()))
}

#[cfg(not(feature = "parquet"))]
fn read_parquet(path: &Path, _: &mut dyn AnswerSink) -> Result<()> {
    Err(anyhow!("{}: this program was built without Parquet", path.display()))
}
