//! `sizeleak frames`: any frame stream as text; and the names of kinds of frames.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use sizeleak_frame::{Frame, FrameReader, KINDS, ReadError, what};
use sizeleak_output::{HexLength, KindSelection, OutputFormat, OutputWriter, has_columns, has_zeek_form};
use sizeleak_pipeline::did_you_mean;
use sizeleak_pipeline::recording::open;
use sizeleak_platform::telemetry::log::say;

use super::failure::{usage, with_code};
use super::output_option::{EncodedFile, OutputOption, keep_partial, one_of};
use super::shared_options::{ClockOption, OUTPUT};

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

    /// The format: table, ndjson, json, csv, parquet or zeek [default: by the name of FILE, else table]
    #[arg(long, value_parser = one_of(&FORMATS), hide_possible_values = true, help_heading = OUTPUT)]
    format: Option<OutputFormat>,

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
    clock: ClockOption,
}

const FORMATS: [OutputFormat; 6] = [
    OutputFormat::Table,
    OutputFormat::Ndjson,
    OutputFormat::Json,
    OutputFormat::Csv,
    OutputFormat::Parquet,
    OutputFormat::Zeek,
];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let selection =
        if arguments.kind.is_empty() { KindSelection::Traffic } else { KindSelection::Kinds(arguments.kind.clone()) };
    let format = arguments.output.form(arguments.format, &FORMATS, "sizeleak frames")?.unwrap_or_default();
    check_columns(format, &selection)?;
    let binary = if arguments.whole { HexLength::Whole } else { HexLength::default() };
    let (input, name) = open(arguments.file.as_deref())?;
    let mut file = arguments.output.create()?;
    let output = file.writer()?;
    check_target(format, &output)?;
    let style = arguments.clock.style(binary, &output)?;
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
            Ok(())
        }
        Ok(Some(error)) => {
            keep_partial(file)?;
            let code = if error.is_cut() { 3 } else { 1 };
            Err(with_code(code, anyhow!("{name}: {error}")))
        }
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow!("the output cannot be written: {error}")),
    }
}

pub(super) fn check_columns(format: OutputFormat, selection: &KindSelection) -> Result<()> {
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
            Err(usage!("a Zeek log has rows of flows, and `{kind}` has none: kinds with them are {known}"))
        }
        Some(kind) if has_columns(kind) => Ok(()),
        Some(kind) => Err(usage!("`{kind}` has no columns: kinds with columns are {}", KINDS.join(", "))),
        None => Err(usage!("a {name} file holds one kind of frame: name it with `--kind`")),
    }
}

pub(super) fn check_target(format: OutputFormat, output: &File) -> Result<()> {
    if format == OutputFormat::Parquet && output.is_terminal() {
        return Err(usage!("a Parquet file cannot be shown on a terminal: send it to a file"));
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
        match reader.buffered_frame() {
            Ok(Some(frame)) => {
                seen.add(&frame);
                writer.write(&frame)?;
            }
            Ok(None) => {
                // Frames of a live pipe are shown before waiting for more.
                if is_live {
                    writer.flush()?;
                }
                match reader.fill() {
                    Ok(true) => {}
                    Ok(false) => return Ok(None),
                    Err(error) => return Ok(Some(error)),
                }
            }
            Err(error) => return Ok(Some(error)),
        }
    }
}

pub(super) fn known_kind(text: &str) -> Result<String, String> {
    let kind = kind(text)?;
    if KINDS.contains(&&*kind) { Ok(kind) } else { Err(unknown(&kind)) }
}

/// The name of a kind, known or not; not one that is nearly that of a known kind.
pub(super) fn kind(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if !is_name {
        return Err("this is not the name of a kind".to_owned() + &did_you_mean(text, KINDS));
    }
    if KINDS.contains(&text) || did_you_mean(text, KINDS).is_empty() { Ok(text.to_owned()) } else { Err(unknown(text)) }
}

fn unknown(kind: &str) -> String {
    format!("there is no kind `{kind}`{} (there are {})", did_you_mean(kind, KINDS), KINDS.join(", "))
}

const MAX_KINDS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct KindsSeen {
    kinds: BTreeSet<String>,
    /// What is wrong with the times of the captures, as far as that was said.
    clock: Option<String>,
}

impl KindsSeen {
    pub(super) fn add(&mut self, frame: &Frame) {
        let kind = frame.kind();
        if !self.kinds.contains(kind) && self.kinds.len() < MAX_KINDS {
            self.kinds.insert(kind.to_owned());
        }
        if let Frame::Notice(notice) = frame
            && notice.stage == "capture"
            && notice.what == what::CLOCK
        {
            self.clock.clone_from(&notice.detail);
        }
    }

    pub(super) fn report_absent(&self, wanted: &[String]) {
        for kind in wanted.iter().filter(|kind| !self.kinds.contains(*kind)) {
            let known = if KINDS.contains(&&**kind) { "" } else { ", a kind that this program does not know" };
            let seen = self.kinds.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            // Records need no times; what is made of them does.
            let clock = self.clock.as_ref().filter(|_| ["command", "correction", "identification"].contains(&&**kind));
            let why = clock.map_or_else(String::new, |clock| format!(". Why: {clock}"));
            say("note", &format!("there is no frame of kind `{kind}`{known}; the stream has {seen}{why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_near_a_known_kind_are_refused_and_suggest_it() {
        for (typed, meant) in [
            ("packet", "packets"),
            ("records", "record"),
            ("comand", "command"),
            ("identifications", "identification"),
            ("Notice", "notice"),
        ] {
            for fault in [kind(typed).unwrap_err(), known_kind(typed).unwrap_err()] {
                assert!(fault.contains(&format!("did you mean `{meant}`?")), "{fault}");
            }
        }
    }

    #[test]
    fn kinds_of_other_programs_are_accepted_where_any_stream_is_shown() {
        assert_eq!(kind("dance").as_deref(), Ok("dance"));
        assert!(known_kind("dance").unwrap_err().contains("there is no kind `dance` (there are hello, "));
        assert!(KINDS.iter().all(|known| known_kind(known).as_deref() == Ok(known)));
    }
}
