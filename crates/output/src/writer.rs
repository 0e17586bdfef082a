//! Writes selected frames to an output in one of the formats.

use std::io::{self, BufWriter, Write};
use std::slice;

use clap::ValueEnum;
use sizeleak_frame::{Frame, FrameSink, FrameWriter};

use crate::csv::Csv;
use crate::flow_names::FlowNames;
use crate::json::{JsonArray, JsonLines};
#[cfg(feature = "parquet")]
use crate::parquet::ParquetFile;
use crate::table::IdentificationTable;
use crate::text_style::TextFormat;
use crate::zeek::ZeekLog;
use crate::{KindSelection, TextStyle};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// One aligned line per frame (or row of a batch), for people
    #[default]
    #[value(alias = "text")]
    Table,
    /// One JSON object per line, for each frame (or row of a batch)
    Ndjson,
    /// The same objects as one JSON array
    Json,
    /// Comma-separated values of frames of one kind, with a header. Controls in texts are escaped, and an apostrophe
    /// goes before a text that a spreadsheet would take for a formula
    Csv,
    /// A Parquet file of frames of one kind, for pandas, Polars, DuckDB and the like
    Parquet,
    /// A log of frames of one kind like Zeek's, tab-separated, for zeek-cut and other readers of such logs
    Zeek,
    /// The frames themselves, in MessagePack
    Frames,
}

pub struct OutputWriter<W: Write + Send> {
    selection: KindSelection,
    target: Target<W>,
    names: FlowNames,
    is_complete: bool,
}

enum Target<W: Write + Send> {
    Frames(FrameWriter<W>),
    Text {
        format: Box<dyn TextFormat>,
        output: BufWriter<W>,
    },
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetFile<W>>),
}

impl<W: Write + Send> OutputWriter<W> {
    pub fn new(format: OutputFormat, selection: KindSelection, style: TextStyle, output: W) -> io::Result<Self> {
        let format: Box<dyn TextFormat> = match format {
            OutputFormat::Table => Box::new(IdentificationTable::new(style)),
            OutputFormat::Ndjson => Box::new(JsonLines(style.binary)),
            OutputFormat::Json => Box::new(JsonArray::new(style.binary)),
            OutputFormat::Csv => Box::new(Csv::new(&selection, style.binary)),
            OutputFormat::Zeek => Box::new(ZeekLog::new(&selection, style.binary)),
            #[cfg(not(feature = "parquet"))]
            OutputFormat::Parquet => return Err(io::Error::other("this program was built without Parquet")),
            #[cfg(feature = "parquet")]
            OutputFormat::Parquet => {
                let file = Box::new(ParquetFile::new(&selection, output)?);
                return Ok(Self::to(Target::Parquet(file), selection));
            }
            OutputFormat::Frames => return Ok(Self::to(Target::Frames(FrameWriter::new(output)), selection)),
        };
        Ok(Self::to(Target::Text { format, output: BufWriter::new(output) }, selection))
    }

    fn to(target: Target<W>, selection: KindSelection) -> Self {
        Self { selection, target, names: FlowNames::default(), is_complete: false }
    }

    pub fn write_kind(&mut self, kind: &str, frames: &[Frame]) -> io::Result<()> {
        let is_selected = self.selection.takes(kind);
        if let Target::Frames(writer) = &mut self.target {
            return if is_selected { writer.write_all(frames) } else { Ok(()) };
        }
        for frame in frames {
            // One that is not selected may describe others.
            self.names.observe(frame);
            self.is_complete |= matches!(frame, Frame::Summary(_));
            match &mut self.target {
                Target::Text { format, output } if is_selected => format.write(frame, &self.names, output)?,
                #[cfg(feature = "parquet")]
                Target::Parquet(file) if is_selected => file.write(frame, &self.names)?,
                _ => {}
            }
        }
        Ok(())
    }

    pub fn write_all(&mut self, frames: &[Frame]) -> io::Result<()> {
        frames.chunk_by(Frame::is_same_kind).try_for_each(|frames| match frames {
            [first, ..] => self.write_kind(first.kind(), frames),
            [] => Ok(()),
        })
    }

    pub fn write(&mut self, frame: &Frame) -> io::Result<()> {
        self.write_kind(frame.kind(), slice::from_ref(frame))
    }

    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Frames(writer) => writer.flush(),
            Target::Text { format, output } => {
                format.write_header(output)?;
                output.flush()
            }
            // Small row groups would be slow to read.
            #[cfg(feature = "parquet")]
            Target::Parquet(_) => Ok(()),
        }
    }

    /// Writes the footer and flushes the output. Call it once, however the stream ended.
    pub fn finish(&mut self) -> io::Result<()> {
        match &mut self.target {
            #[cfg(feature = "parquet")]
            Target::Parquet(file) => file.finish(),
            Target::Text { format, output } => {
                format.write_header(output)?;
                format.write_footer(self.is_complete, output)?;
                output.flush()
            }
            Target::Frames(_) => self.flush(),
        }
    }
}

impl<W: Write + Send> FrameSink for OutputWriter<W> {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        let written = self.write_all(frames);
        frames.clear();
        written
    }

    fn pause(&mut self) -> io::Result<()> {
        self.flush()
    }
}
