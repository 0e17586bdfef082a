//! `sizeleak frames`: any frame stream as text.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use sizeleak_frame::{FrameReader, KINDS, ReadError};

use super::Failure;
use super::gateway_seen::GatewaySeen;
use sizeleak_output::{HexLength, KindSelection, OutputFormat, OutputWriter, has_columns};
use sizeleak_pipeline::recording::open;

/// Show a frame stream as text, at any point of a pipe
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  capture home.pcap | flow-filter --gateway 192.168.1.20 | record-sizer | sizeleak \
                        frames\n  sizeleak frames saved.frames --format ndjson --kind notice summary\n  sizeleak frames records.frames --format parquet --kind record > records.parquet\n  TZ=Europe/Berlin sizeleak frames \
                        saved.frames --time local"
)]
pub(crate) struct Arguments {
    /// The stream, also compressed by zstd or gzip; `-`, or none, is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// How to write it
    #[arg(long, value_enum, default_value_t = Shape::Table)]
    format: Shape,

    /// Only frames of these kinds; `csv` and `parquet` take one [default: all but hello and summary]
    #[arg(long, value_name = "KIND", num_args = 1.., value_delimiter = ',', value_parser = kind)]
    kind: Vec<String>,

    /// Write binary fields whole, not just their first 16 bytes
    #[arg(long)]
    whole: bool,

    #[command(flatten)]
    appearance: GatewaySeen,
}

/// The formats that are no frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// A line a frame (or row of a batch), aligned, for people
    Table,
    /// A JSON object a frame (or row of a batch)
    Ndjson,
    /// Comma-separated values of frames of one kind, with a header
    Csv,
    /// A Parquet file of frames of one kind, for pandas, Polars, DuckDB and the like
    Parquet,
}

/// A kind's name, known or not. Without a look at it, a FILE behind `--kind` would be taken for one.
pub(super) fn kind(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_name { Ok(text.to_owned()) } else { Err("no kind is named so; a FILE stands before `--kind`".to_owned()) }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let selection =
        if arguments.kind.is_empty() { KindSelection::Traffic } else { KindSelection::Kinds(arguments.kind.clone()) };
    let format = match arguments.format {
        Shape::Table => OutputFormat::Table,
        Shape::Ndjson => OutputFormat::Ndjson,
        Shape::Csv => OutputFormat::Csv,
        Shape::Parquet => OutputFormat::Parquet,
    };
    check_columns(format, &selection)?;
    let binary = if arguments.whole { HexLength::Whole } else { HexLength::default() };
    let stdout = super::stdout()?;
    check_target(format, &stdout)?;
    let look = arguments.appearance.look(binary, &stdout)?;
    let (input, name) = open(arguments.file.as_deref())?;
    let mut reader = FrameReader::new(input);
    let copied = OutputWriter::new(format, selection, look, stdout).and_then(|mut writer| {
        let damage = copy(&mut reader, &mut writer)?;
        writer.finish().map(|()| damage)
    });
    match copied {
        Ok(None) => Ok(ExitCode::SUCCESS),
        Ok(Some(error)) => {
            let code = if error.is_cut() { 3 } else { 1 };
            Err(Failure::with_code(code, anyhow::anyhow!("{name}: {error}")))
        }
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(anyhow::anyhow!("the output cannot be written: {error}").into()),
    }
}

/// Checks, of a format of columns, that one kind is selected, and one that has them.
pub(super) fn check_columns(format: OutputFormat, selection: &KindSelection) -> Result<(), Failure> {
    let name = match format {
        OutputFormat::Parquet => "Parquet",
        OutputFormat::Csv => "CSV",
        OutputFormat::Table | OutputFormat::Ndjson | OutputFormat::Frames => return Ok(()),
    };
    match selection.only() {
        Some(kind) if has_columns(kind) => Ok(()),
        Some(kind) => {
            let known = KINDS.join(", ");
            Err(Failure::usage(anyhow::anyhow!("`{kind}` has no columns: kinds with columns are {known}")))
        }
        None => Err(Failure::usage(anyhow::anyhow!("a {name} file holds one kind of frame: name it with `--kind`"))),
    }
}

/// Checks that a Parquet file does not go to a terminal.
pub(super) fn check_target(format: OutputFormat, output: &File) -> Result<(), Failure> {
    if format == OutputFormat::Parquet && output.is_terminal() {
        return Err(Failure::usage(anyhow::anyhow!("a Parquet file is nothing for a terminal: send it to a file")));
    }
    Ok(())
}

/// Writes all frames there are; gives what is wrong with the stream behind them. An output that fails is an error.
fn copy(
    reader: &mut FrameReader<Box<dyn Read + Send>>,
    writer: &mut OutputWriter<File>,
) -> io::Result<Option<ReadError>> {
    loop {
        let buffered = match reader.buffered_frame() {
            Ok(Some(frame)) => {
                writer.write(&frame)?;
                continue;
            }
            Ok(None) => {
                // What a live pipe has brought so far is shown before waiting for more.
                writer.flush()?;
                reader.fill()
            }
            Err(error) => Err(error),
        };
        match buffered {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => return Ok(Some(error)),
        }
    }
}
