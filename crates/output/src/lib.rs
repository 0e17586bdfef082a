//! Frames as text: a table for people, JSON lines and CSV for programs; as Parquet; and as frames again.

mod columns;
mod csv;
mod json;
mod line;
mod moment;
mod palette;
mod parquet;
pub mod plot;
mod selection;
mod table;

use std::io::{self, BufWriter, Write};
use std::slice;

use clap::ValueEnum;
use sizeleak_frame::{Frame, FrameSink, FrameWriter, WriteError};

pub use columns::has_columns;
pub use moment::{Clock, Times};
pub use palette::Colours;
pub use selection::Selection;

/// How frames are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line a frame (or row of a batch), aligned, for people
    #[default]
    Table,
    /// A JSON object a frame (or row of a batch)
    Ndjson,
    /// Comma-separated values of frames of one kind, with a header
    Csv,
    /// A Parquet file of frames of one kind, for pandas, Polars, DuckDB and the like
    Parquet,
    /// Frames as they are, in MessagePack
    Frames,
}

/// How long binary fields are in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// Hexadecimal digits of so many bytes at most, with `…` behind them where there are more.
    Cut(usize),
    /// All of them.
    Whole,
}

impl Default for Binary {
    fn default() -> Self {
        Self::Cut(16)
    }
}

/// How text for people looks. What programs read knows only of `binary`.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// How long binary fields are.
    pub binary: Binary,
    /// How times are said.
    pub times: Times,
    /// Whether it has colours.
    pub colours: Colours,
}

/// One way to write frames.
trait Form: Send {
    /// Writes a frame that is selected.
    fn write(&mut self, frame: &Frame, output: &mut dyn Write) -> io::Result<()>;

    /// Sees a frame that is not selected, for what it says of others.
    fn see(&mut self, _: &Frame) {}

    /// Writes what stands before the first frame, unless it did: called before every flush, so that it is there also
    /// where no frame comes.
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Writes frames to an output.
pub struct Writer<W: Write + Send> {
    selection: Selection,
    target: Target<W>,
}

enum Target<W: Write + Send> {
    Frames(FrameWriter<W>),
    Text { form: Box<dyn Form>, output: BufWriter<W> },
    Parquet(parquet::Parquet<W>),
}

impl<W: Write + Send> Writer<W> {
    /// Writes the selected frames in this format.
    ///
    /// # Errors
    /// The output's, where something stands before the first frame.
    pub fn new(format: Format, selection: Selection, look: Look, output: W) -> io::Result<Self> {
        let form: Box<dyn Form> = match format {
            Format::Table => Box::new(table::Table::new(look)),
            Format::Ndjson => Box::new(json::Lines::new(look.binary)),
            Format::Csv => Box::new(csv::Csv::new(&selection, look.binary)),
            Format::Parquet => {
                let target = Target::Parquet(parquet::Parquet::new(&selection, output)?);
                return Ok(Self { selection, target });
            }
            Format::Frames => return Ok(Self { selection, target: Target::Frames(FrameWriter::new(output)) }),
        };
        Ok(Self { selection, target: Target::Text { form, output: BufWriter::new(output) } })
    }

    /// Writes frames of one kind, if that is selected.
    ///
    /// # Errors
    /// The output's.
    pub fn write_kind(&mut self, kind: &str, frames: &[Frame]) -> io::Result<()> {
        let is_selected = self.selection.takes(kind);
        match &mut self.target {
            Target::Frames(writer) if is_selected => writer.write_all(frames).map_err(io_error),
            Target::Text { form, output } if is_selected => {
                frames.iter().try_for_each(|frame| form.write(frame, output))
            }
            Target::Text { form, .. } => {
                for frame in frames {
                    form.see(frame);
                }
                Ok(())
            }
            Target::Parquet(file) if is_selected => frames.iter().try_for_each(|frame| file.write(frame)),
            Target::Frames(_) | Target::Parquet(_) => Ok(()),
        }
    }

    /// Writes those frames that are selected.
    ///
    /// # Errors
    /// The output's.
    pub fn write_all(&mut self, frames: &[Frame]) -> io::Result<()> {
        frames.chunk_by(Frame::is_alike).try_for_each(|alike| match alike {
            [first, ..] => self.write_kind(first.kind(), alike),
            [] => Ok(()),
        })
    }

    /// Writes a frame if it is selected.
    ///
    /// # Errors
    /// The output's.
    pub fn write(&mut self, frame: &Frame) -> io::Result<()> {
        self.write_kind(frame.kind(), slice::from_ref(frame))
    }

    /// Hands everything to the output.
    ///
    /// # Errors
    /// The output's.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Frames(writer) => writer.flush().map_err(io_error),
            Target::Text { form, output } => {
                form.begin(output)?;
                output.flush()
            }
            // Its rows go in large groups or are slow to read.
            Target::Parquet(_) => Ok(()),
        }
    }

    /// Writes what stands behind the last frame, and hands everything to the output: called once, however the frames ended.
    ///
    /// # Errors
    /// The output's.
    pub fn finish(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Parquet(file) => file.finish(),
            Target::Frames(_) | Target::Text { .. } => self.flush(),
        }
    }
}

fn io_error(error: WriteError) -> io::Error {
    match error {
        WriteError::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl<W: Write + Send> FrameSink for Writer<W> {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        let written = self.write_all(frames);
        frames.clear();
        written
    }

    fn pause(&mut self) -> io::Result<()> {
        self.flush()
    }
}
