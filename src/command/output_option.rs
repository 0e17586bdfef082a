//! Writes results to stdout or to a file.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use sizeleak_pipeline::recording::{Compression, Recording};
use sizeleak_platform::storage::{OutputFile, replace};
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::escaped_lines;

use super::document::{Document, as_text, stdout_columns};
use super::help::OUTPUT;
use super::output_form;

#[derive(Debug, Args)]
pub(super) struct OutputOption {
    /// Write to FILE; its name chooses the format
    #[arg(short, long, short_alias = 'w', value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,
}

impl OutputOption {
    pub(super) fn path(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// The format of what `command` writes: as named, or by the name of the file.
    pub(super) fn form<F: ValueEnum>(&self, named: Option<F>, formats: &[F], command: &str) -> Result<Option<F>> {
        output_form::chosen(named, formats, self.path(), command)
    }

    pub(super) fn create(&self) -> Result<OutputFile> {
        Ok(match &self.output {
            Some(path) => OutputFile::create(path)?,
            None => OutputFile::stdout()?,
        })
    }

    pub(super) fn write(&self, result: &[u8]) -> Result<()> {
        self.output.as_deref().map_or_else(|| print(result), |path| write_result(path, result))
    }
}

/// Leaves the earlier output of a run that failed as it is, and this one beside it.
pub(super) fn keep_partial(file: OutputFile) -> Result<()> {
    if let Some(path) = file.keep_partial()? {
        say("sizeleak", &format!("the output until the failure is in {}", path.display()));
    }
    Ok(())
}

/// Writes a complete result to a file, completely or not at all, and compressed if its name says so; `-` is stdout.
pub(super) fn write(path: &Path, result: &[u8]) -> Result<()> {
    if path.as_os_str() == "-" {
        return print(result);
    }
    let compression = Compression::of_name(path);
    if compression == Compression::None {
        return Ok(replace(path, result)?);
    }
    let mut output = OutputFile::create(path)?;
    let mut file = EncodedFile::new(output.writer()?, Some(path));
    let fault = |error| anyhow!("{} cannot be written: {error}", path.display());
    file.write_all(result).and_then(|()| file.flush()).map_err(fault)?;
    Ok(output.keep()?)
}

pub(super) fn write_result(path: &Path, result: &[u8]) -> Result<()> {
    write(path, result)?;
    if path.is_file() {
        say("sizeleak", &format!("{} is written", path.display()));
    }
    Ok(())
}

pub(super) fn print_document(document: &Document) -> Result<()> {
    print(escaped_lines(&as_text(document, stdout_columns())).as_bytes())
}

/// Writes a complete result to stdout, as it is unless that is a terminal. It is not an error if the reader is gone.
pub(super) fn print(result: &[u8]) -> Result<()> {
    let shown = String::from_utf8_lossy(result);
    let shown = if io::stdout().is_terminal() { escaped_lines(&shown) } else { "".into() };
    let result = if shown.is_empty() { result } else { shown.as_bytes() };
    let written = OutputFile::stdout().and_then(|mut stdout| {
        stdout.writer().map_err(io::Error::other).and_then(|mut writer| writer.write_all(result))
    });
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow!("the output cannot be written: {error}"))
        }
        _ => Ok(()),
    }
}

pub(super) struct EncodedFile {
    file: File,
    compression: Compression,
    member: Option<Recording>,
}

impl EncodedFile {
    /// What is written to `file`, compressed as the name of the output says.
    pub(super) fn new(file: File, name: Option<&Path>) -> Self {
        Self { file, compression: name.map_or(Compression::None, Compression::of_name), member: None }
    }

    /// Whether what is written so far can be read before the end.
    pub(super) fn is_plain(&self) -> bool {
        self.compression == Compression::None
    }
}

impl Write for EncodedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_plain() {
            return self.file.write(bytes);
        }
        if self.member.is_none() {
            self.member = Some(Recording::new(self.file.try_clone()?, self.compression)?);
        }
        self.member.as_mut().map_or(Ok(0), |member| member.write(bytes))
    }

    /// Ends a compressed stream. A file may be several of them, but its bytes would depend on when they end: only at the
    /// end of all.
    fn flush(&mut self) -> io::Result<()> {
        self.member.take().map_or(Ok(()), |member| member.finish().map(drop))?;
        self.file.flush()
    }
}
