//! `sizeleak frames`: any frame stream as text.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use sizeleak_frame::{FrameReader, KINDS, ReadError};

use sizeleak_output::{HexLength, KindSelection, OutputFormat, OutputWriter, has_columns, has_zeek_form};
use sizeleak_pipeline::recording::open;
use sizeleak_storage::{OutputFile, RunFiles};

use super::failure::Failure;
use super::output_option::writes_stdout;
use super::text_style::TextStyleOptions;

/// Show a frame stream as text, at any point of a pipe
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capture home.pcap | flow-filter --gateway 192.168.1.20 | record-sizer | sizeleak frames\n  \
    sizeleak frames saved.frames --format ndjson --kind notice summary\n  \
    sizeleak frames records.frames --format parquet --kind record > records.parquet\n  \
    TZ=Europe/Berlin sizeleak frames saved.frames --time local")]
pub(crate) struct Arguments {
    /// The stream, also compressed with zstd or gzip; `-` or nothing is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The format of the output
    #[arg(long, value_enum, default_value_t = TextFormat::Table)]
    format: TextFormat,

    /// Only frames of these kinds; `csv`, `parquet` and `zeek` take one [default: all but hello and summary]
    #[arg(long, value_name = "KIND", num_args = 1.., value_delimiter = ',', value_parser = kind)]
    kind: Vec<String>,

    /// Write binary fields completely, not just their first 16 bytes
    #[arg(long)]
    whole: bool,

    #[command(flatten)]
    style: TextStyleOptions,
}

/// The formats other than frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TextFormat {
    /// An aligned line for each frame (or row of a batch), for people
    Table,
    /// A JSON object for each frame (or row of a batch)
    Ndjson,
    /// Comma-separated values of frames of one kind, with a header. Controls in texts are escaped, and an apostrophe
    /// goes before a text that a spreadsheet would take for a formula
    Csv,
    /// A Parquet file of frames of one kind, for pandas, Polars or DuckDB
    Parquet,
    /// A log of frames of one kind like Zeek's, tab-separated, for zeek-cut and other readers of such logs
    Zeek,
}

/// The name of a kind, known or not. Checked because a FILE after `--kind` would otherwise be taken for one.
pub(super) fn kind(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("this is not the name of a kind; FILE goes before `--kind`".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let selection =
        if arguments.kind.is_empty() { KindSelection::Traffic } else { KindSelection::Kinds(arguments.kind.clone()) };
    let format = match arguments.format {
        TextFormat::Table => OutputFormat::Table,
        TextFormat::Ndjson => OutputFormat::Ndjson,
        TextFormat::Csv => OutputFormat::Csv,
        TextFormat::Parquet => OutputFormat::Parquet,
        TextFormat::Zeek => OutputFormat::Zeek,
    };
    check_columns(format, &selection)?;
    let binary = if arguments.whole { HexLength::Whole } else { HexLength::default() };
    let mut files = RunFiles::new();
    files.reads("the stream", arguments.file.as_deref().unwrap_or(Path::new("-")));
    writes_stdout(&mut files);
    files.check()?;
    let stdout = OutputFile::stdout()?.writer()?;
    check_target(format, &stdout)?;
    let style = arguments.style.style(binary, &stdout)?;
    let (input, name) = open(arguments.file.as_deref())?;
    let mut reader = FrameReader::new(input);
    let copied = OutputWriter::new(format, selection, style, stdout).and_then(|mut writer| {
        let damage = copy(&mut reader, &mut writer)?;
        writer.finish().map(|()| damage)
    });
    match copied {
        Ok(None) => Ok(ExitCode::SUCCESS),
        Ok(Some(error)) => {
            let code = if error.is_cut() { 3 } else { 1 };
            Err(Failure::with_code(code, anyhow!("{name}: {error}")))
        }
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(anyhow!("the output cannot be written: {error}").into()),
    }
}

/// Checks that a format with columns gets exactly one kind, and that this kind has columns.
pub(super) fn check_columns(format: OutputFormat, selection: &KindSelection) -> Result<(), Failure> {
    let name = match format {
        OutputFormat::Parquet => "Parquet",
        OutputFormat::Csv => "CSV",
        OutputFormat::Zeek => "Zeek",
        OutputFormat::Table | OutputFormat::Ndjson | OutputFormat::Frames => return Ok(()),
    };
    match selection.only() {
        Some(kind) if has_columns(kind) && format == OutputFormat::Zeek && !has_zeek_form(kind) => {
            let known: Vec<&str> = KINDS.into_iter().filter(|kind| has_zeek_form(kind)).collect();
            let known = known.join(", ");
            Err(Failure::usage(anyhow!(
                "a Zeek log has rows of flows, and `{kind}` has none: kinds with them are {known}"
            )))
        }
        Some(kind) if has_columns(kind) => Ok(()),
        Some(kind) => {
            let known = KINDS.join(", ");
            Err(Failure::usage(anyhow!("`{kind}` has no columns: kinds with columns are {known}")))
        }
        None => Err(Failure::usage(anyhow!("a {name} file holds one kind of frame: name it with `--kind`"))),
    }
}

/// Checks that a Parquet file does not go to a terminal.
pub(super) fn check_target(format: OutputFormat, output: &File) -> Result<(), Failure> {
    if format == OutputFormat::Parquet && output.is_terminal() {
        return Err(Failure::usage(anyhow!("a Parquet file cannot be shown on a terminal: send it to a file")));
    }
    Ok(())
}

/// Writes all frames; returns why the stream ends early, if it does. Errors are those of the output.
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
                // Frames of a live pipe are shown before waiting for more.
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
