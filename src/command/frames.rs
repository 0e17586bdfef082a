//! `sizeleak frames`: any frame stream as text.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use sizeleak_frame::{FrameReader, KINDS, ReadError};

use sizeleak_output::{HexLength, KindSelection, OutputFormat, OutputWriter, has_columns, has_zeek_form};
use sizeleak_pipeline::recording::open;
use sizeleak_platform::storage::RunFiles;

use super::encoded_file::EncodedFile;
use super::failure::Failure;
use super::help::{INPUT, OUTPUT};
use super::kind_names::{KindsSeen, kind};
use super::output_option::{OutputOption, keep_partial};
use super::text_style::TextStyleOptions;

/// Show a frame stream as text, at any point of a pipe
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capture home.pcap | flow-filter --gateway 192.168.1.20 | record-sizer | sizeleak frames\n  \
    sizeleak frames saved.frames --format ndjson --kind notice,summary\n  \
    sizeleak frames records.frames --kind record -o records.parquet\n  \
    TZ=Europe/Berlin sizeleak frames saved.frames --time local")]
pub(crate) struct Arguments {
    /// The stream, also compressed with zstd or gzip; `-` or nothing is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The stream, as FILE names it
    #[arg(short = 'r', long, value_name = "FILE", conflicts_with = "file", help_heading = INPUT)]
    input: Option<PathBuf>,

    /// The format of the output [default: by the name of FILE, else table]
    #[arg(long, value_enum, help_heading = OUTPUT)]
    format: Option<TextFormat>,

    /// Only frames of this kind, such as `record`; can be repeated
    ///
    /// `csv`, `parquet` and `zeek` take one. By default all but hello and summary. Kinds that only other programs know are
    /// shown too.
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind, help_heading = OUTPUT)]
    kind: Vec<String>,

    #[command(flatten)]
    output: OutputOption,

    /// Write binary fields completely, not just their first 16 bytes
    #[arg(long, help_heading = OUTPUT)]
    whole: bool,

    #[command(flatten)]
    style: TextStyleOptions,
}

/// A format other than frames.
#[derive(Debug, Clone, Copy)]
struct TextFormat(OutputFormat);

impl ValueEnum for TextFormat {
    fn value_variants<'a>() -> &'a [Self] {
        use OutputFormat::{Csv, Json, Ndjson, Parquet, Table, Zeek};
        &[Self(Table), Self(Ndjson), Self(Json), Self(Csv), Self(Parquet), Self(Zeek)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        self.0.to_possible_value()
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let selection =
        if arguments.kind.is_empty() { KindSelection::Traffic } else { KindSelection::Kinds(arguments.kind.clone()) };
    let format = arguments.output.form(arguments.format, "sizeleak frames")?;
    let format = format.map_or(OutputFormat::Table, |TextFormat(format)| format);
    check_columns(format, &selection)?;
    let binary = if arguments.whole { HexLength::Whole } else { HexLength::default() };
    let mut files = RunFiles::new();
    let stream = arguments.file.as_deref().or(arguments.input.as_deref());
    files.reads("the stream", stream.unwrap_or(Path::new("-")));
    arguments.output.add_to(&mut files);
    files.check()?;
    let (input, name) = open(stream)?;
    let mut file = arguments.output.create()?;
    let output = file.writer()?;
    check_target(format, &output)?;
    let style = arguments.style.style(binary, &output)?;
    let (mut reader, mut seen) = (FrameReader::new(input), KindsSeen::default());
    let output = EncodedFile::new(output, arguments.output.path());
    let is_live = output.is_plain();
    let copied = OutputWriter::new(format, selection, style, output).and_then(|mut writer| {
        let damage = copy(&mut reader, &mut writer, &mut seen, is_live)?;
        writer.finish().map(|()| damage)
    });
    match copied {
        Ok(None) => {
            file.keep()?;
            seen.report_absent(&arguments.kind);
            Ok(ExitCode::SUCCESS)
        }
        Ok(Some(error)) => {
            keep_partial(file)?;
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
        OutputFormat::Table | OutputFormat::Ndjson | OutputFormat::Json | OutputFormat::Frames => return Ok(()),
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

/// Writes all frames, each before more are waited for if the output is live; returns why the stream ends early, if it does. Errors are those of the output.
fn copy(
    reader: &mut FrameReader<Box<dyn Read + Send>>,
    writer: &mut OutputWriter<EncodedFile>,
    seen: &mut KindsSeen,
    is_live: bool,
) -> io::Result<Option<ReadError>> {
    loop {
        let buffered = match reader.buffered_frame() {
            Ok(Some(frame)) => {
                seen.add(&frame);
                writer.write(&frame)?;
                continue;
            }
            Ok(None) => {
                // Frames of a live pipe are shown before waiting for more.
                if is_live {
                    writer.flush()?;
                }
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
