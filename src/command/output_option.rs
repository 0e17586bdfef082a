//! Where results are written, stdout or a file, and in which form: as named, or by the name of the file; reports for people,
//! or for programs.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use sizeleak_pipeline::recording::{Compression, Recording};
use sizeleak_platform::storage::OutputFile;
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::{escaped_json, escaped_lines};

use super::document::{COLUMNS, Document, as_markdown, as_text, stdout_columns};
use super::failure::usage;
use super::shared_options::OUTPUT;

#[derive(Debug, Args)]
pub(super) struct OutputOption {
    /// Write to FILE; its name chooses the format
    #[arg(short, long, short_alias = 'w', value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,
}

impl OutputOption {
    pub(super) const STDOUT: Self = Self { output: None };

    pub(super) fn path(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// The one of these formats of what `command` writes; `None` if neither `--format` nor the name of the file says one.
    pub(super) fn form<F: ValueEnum>(&self, named: Option<F>, formats: &[F], command: &str) -> Result<Option<F>> {
        let Some(output) = self.path() else { return Ok(named) };
        let (file, is_compressed) = plain_name(output);
        let format = match extension(&file) {
            None => named,
            Some(ending) => by_ending(named, formats, output, &ending, command)?,
        };
        if is_compressed && format.as_ref().is_some_and(|format| name_of(format) == "parquet") {
            let (output, file) = (output.display(), file.display());
            return Err(usage!("Parquet is compressed inside, so {output} cannot be: write `-o {file}`"));
        }
        Ok(format)
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

/// The formats that the endings of names stand for. `text` is any format of text.
const ENDINGS: [(&str, &str); 12] = [
    ("html", "html"),
    ("htm", "html"),
    ("parquet", "parquet"),
    ("csv", "csv"),
    ("ndjson", "ndjson"),
    ("jsonl", "ndjson"),
    ("json", "json"),
    ("frames", "frames"),
    ("md", "markdown"),
    ("markdown", "markdown"),
    ("txt", "text"),
    ("text", "text"),
];

/// Pictures, which are drawn from what other commands write.
const PICTURES: [&str; 4] = ["svg", "pdf", "png", "jpg"];

pub(super) fn one_of<F: ValueEnum + Send + Sync + 'static>(formats: &'static [F]) -> impl TypedValueParser<Value = F> {
    let values: Vec<PossibleValue> = formats.iter().filter_map(F::to_possible_value).collect();
    PossibleValuesParser::new(values).try_map(|name| F::from_str(&name, false))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PictureForm {
    Svg,
    Png,
    Pdf,
}

impl PictureForm {
    /// The form of a picture, by the name of its file; SVG if that has no ending.
    pub(super) fn of(output: Option<&Path>) -> Result<Self> {
        let Some((file, ending)) = output.and_then(|file| Some((file, extension(file)?))) else { return Ok(Self::Svg) };
        match ending.as_str() {
            "svg" => Ok(Self::Svg),
            "png" | "pdf" if cfg!(not(feature = "figures")) => Err(only_svg(file, &ending)),
            "png" => Ok(Self::Png),
            "pdf" => Ok(Self::Pdf),
            _ => {
                let file = file.display();
                Err(usage!("`sizeleak plot` draws .svg, .png and .pdf, and {file} is not named so"))
            }
        }
    }
}

fn by_ending<F: ValueEnum>(
    named: Option<F>,
    formats: &[F],
    output: &Path,
    ending: &str,
    command: &str,
) -> Result<Option<F>> {
    let shown = output.display();
    if PICTURES.contains(&ending) {
        return Err(no_picture(output, command));
    }
    let Some(wanted) = ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, format)| *format) else {
        // The user knows what the name means.
        return if named.is_some() { Ok(named) } else { Err(unknown(formats, output, ending, command)) };
    };
    if wanted == "text" && named.is_some() {
        return Ok(named);
    }
    let by_name = formats.iter().find(|format| has_name(*format, wanted)).cloned();
    match (named, by_name) {
        (None, Some(by_name)) => Ok(Some(by_name)),
        (None, None) => Err(unknown(formats, output, ending, command)),
        (Some(named), by_name) if by_name.as_ref().map(name_of) == Some(name_of(&named)) => Ok(Some(named)),
        (Some(named), _) => Err(usage!(
            "`--format {}` contradicts the name {shown}: leave out `--format`, or name the file otherwise",
            name_of(&named)
        )),
    }
}

fn plain_name(output: &Path) -> (PathBuf, bool) {
    if Compression::of_name(output) == Compression::None {
        (output.to_owned(), false)
    } else {
        (output.with_extension(""), true)
    }
}

fn extension(file: &Path) -> Option<String> {
    Some(file.extension()?.to_str()?.to_ascii_lowercase())
}

fn has_name<F: ValueEnum>(format: &F, name: &str) -> bool {
    format.to_possible_value().is_some_and(|value| value.matches(name, false))
}

fn name_of<F: ValueEnum>(format: &F) -> String {
    format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn unknown<F: ValueEnum>(formats: &[F], output: &Path, ending: &str, command: &str) -> anyhow::Error {
    let can_be = |name: &str| formats.iter().any(|format| has_name(format, name));
    let known = ENDINGS.iter().filter(|(_, format)| can_be(format)).map(|(ending, _)| format!(".{ending}"));
    let formats: Vec<String> = formats.iter().map(name_of).collect();
    usage!(
        "`{command}` does not know what to write into {}: name it with {}, or say `--format {}` ({} is none of them)",
        output.display(),
        known.collect::<Vec<_>>().join(", "),
        formats.join("|"),
        format_args!(".{ending}")
    )
}

fn no_picture(output: &Path, command: &str) -> anyhow::Error {
    let source = if command == "sizeleak run" { "frames" } else { "json" };
    let source = output.with_extension(source);
    let (source, shown) = (source.display(), output.display());
    usage!("`{command}` draws no pictures: write `-o {source}`, then `sizeleak plot {source} -o {shown}`")
}

fn only_svg(output: &Path, ending: &str) -> anyhow::Error {
    let (picture, source) = (output.display(), output.with_extension("svg"));
    let source = source.display();
    let other = if ending == "pdf" { "print it from a browser" } else { "open it in a browser" };
    usage!(
        "this program was built without PNG and PDF: write `-o {source}`, then {other} or run `rsvg-convert -f {ending} \
         {source} -o {picture}`; or build the program with `--features figures`"
    )
}

#[derive(Debug, Args)]
pub(super) struct ReportFormatOption {
    /// The format: text, json, csv or markdown [default: by the name of FILE, else text]
    #[arg(long, value_enum, hide_possible_values = true, help_heading = OUTPUT)]
    format: Option<ReportFormat>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// Sentences and aligned tables, for people
    #[default]
    #[value(alias = "table")]
    Text,
    /// One JSON value, whose keys docs/reference.md describes
    Json,
    /// Comma-separated values: the rows of what is compared, or else a row for each figure, named by its JSON keys
    Csv,
    /// The text with tables for an issue or a wiki
    #[value(alias = "md")]
    Markdown,
}

impl ReportFormatOption {
    pub(super) fn printed(&self) -> ReportForm<'static> {
        ReportForm { format: self.format.unwrap_or_default(), output: &OutputOption::STDOUT }
    }
}

/// Where a report goes, and in which format.
#[derive(Debug, Args)]
pub(super) struct ReportOutput {
    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    output: OutputOption,
}

impl ReportOutput {
    /// The form of what `command` writes: as named, or by the name of its file. Asked for before anything is computed.
    pub(super) fn form(&self, command: &str) -> Result<ReportForm<'_>> {
        let Self { format, output } = self;
        let format = output.form(format.format, ReportFormat::value_variants(), command)?.unwrap_or_default();
        Ok(ReportForm { format, output })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ReportForm<'a> {
    format: ReportFormat,
    output: &'a OutputOption,
}

impl ReportForm<'_> {
    pub(super) fn is_csv(self) -> bool {
        self.format == ReportFormat::Csv
    }

    /// Writes a report in this form, with text from outside escaped. `rows` is the key of the list that is the answer,
    /// whose entries are the rows of CSV; `document` is what people read.
    pub(super) fn write(
        self,
        report: &impl Serialize,
        rows: Option<&str>,
        document: impl FnOnce() -> Document,
    ) -> Result<()> {
        let columns = || self.output.path().map_or_else(stdout_columns, |_| COLUMNS);
        let written = match self.format {
            ReportFormat::Text => escaped_lines(&as_text(&document(), columns())).into_owned(),
            ReportFormat::Markdown => escaped_lines(&as_markdown(&document())).into_owned(),
            ReportFormat::Json => escaped_json(&(serde_json::to_string_pretty(report)? + "\n")).into_owned(),
            ReportFormat::Csv => return self.output.write(&csv_of(&serde_json::to_value(report)?, rows)?),
        };
        self.output.write(written.as_bytes())
    }
}

/// The entries of the list at `rows` as rows, with a column for each of their figures. Without such a list, a row for each
/// figure of the report.
pub(super) fn csv_of(report: &Value, rows: Option<&str>) -> Result<Vec<u8>> {
    let list = rows.map_or(Some(report), |key| report.get(key)).and_then(Value::as_array);
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let Some(rows) = list else {
        writer.write_record(["figure", "value"])?;
        figures(report).iter().try_for_each(|(name, value)| writer.write_record([name, value]))?;
        return Ok(writer.into_inner()?);
    };
    let rows: Vec<Vec<(String, String)>> = rows.iter().map(figures).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    writer.write_record(&columns)?;
    for row in &rows {
        let cell = |column: &&str| row.iter().find(|(name, _)| name == column).map_or("", |(_, value)| value);
        writer.write_record(columns.iter().map(cell))?;
    }
    Ok(writer.into_inner()?)
}

fn figures(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    add_figures(value, &mut String::new(), &mut found);
    found
}

fn add_figures(value: &Value, path: &mut String, found: &mut Vec<(String, String)>) {
    let mut below = |key: &str, value: &Value| {
        let length = path.len();
        if length > 0 {
            path.push('.');
        }
        path.push_str(key);
        add_figures(value, path, found);
        path.truncate(length);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(entries) => (0..).zip(entries).for_each(|(at, entry): (usize, _)| below(&at.to_string(), entry)),
        Value::Null => found.push((path.clone(), String::new())),
        // Anything can be in a text, such as a formula in the name of an action.
        Value::String(text) => found.push((path.clone(), sizeleak_text::cell(text).into_owned())),
        Value::Bool(_) | Value::Number(_) => found.push((path.clone(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sizeleak_output::OutputFormat;

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
    enum Figures {
        Text,
        Json,
    }

    fn of_run(named: Option<OutputFormat>, file: &str) -> Result<Option<OutputFormat>, String> {
        to(file).form(named, OutputFormat::value_variants(), "sizeleak run").map_err(|failure| failure.to_string())
    }

    fn to(file: &str) -> OutputOption {
        OutputOption { output: Some(file.into()) }
    }

    #[test]
    fn the_name_of_a_file_chooses_its_form() {
        for (file, format) in [
            ("x.parquet", Some(OutputFormat::Parquet)),
            ("a.b/x.CSV", Some(OutputFormat::Csv)),
            ("x.csv.gz", Some(OutputFormat::Csv)),
            ("x.ndjson.zst", Some(OutputFormat::Ndjson)),
            ("x.json", Some(OutputFormat::Json)),
            ("x.frames", Some(OutputFormat::Frames)),
            ("x.txt", Some(OutputFormat::Table)),
            ("x.gz", None),
            ("csv", None),
            ("/dev/fd/63", None),
        ] {
            assert_eq!(of_run(None, file), Ok(format), "{file}");
        }
        let figures = |file: &str| to(file).form(None, Figures::value_variants(), "sizeleak evaluate").ok();
        assert_eq!(figures("x.json"), Some(Some(Figures::Json)));
        assert_eq!(figures("x.csv"), None, "it would hold a table");
        assert_eq!(OutputOption { output: None }.form(Some(Figures::Text), &[], "").ok(), Some(Some(Figures::Text)));
    }

    #[test]
    fn a_format_that_contradicts_the_name_is_refused() {
        assert_eq!(of_run(Some(OutputFormat::Csv), "x.csv"), Ok(Some(OutputFormat::Csv)));
        assert_eq!(of_run(Some(OutputFormat::Csv), "x.txt"), Ok(Some(OutputFormat::Csv)));
        assert_eq!(of_run(Some(OutputFormat::Zeek), "x.log"), Ok(Some(OutputFormat::Zeek)));
        let fault = of_run(Some(OutputFormat::Csv), "x.parquet").unwrap_err();
        assert!(fault.contains("`--format csv` contradicts the name x.parquet"), "{fault}");
    }

    #[test]
    fn a_picture_that_cannot_be_made_is_refused_with_what_makes_it() {
        for (file, words) in [
            (
                "a/x.png",
                "write `-o a/x.svg`, then open it in a browser or run `rsvg-convert -f png a/x.svg -o a/x.png`",
            ),
            ("x.pdf", "then print it from a browser or run `rsvg-convert -f pdf x.svg -o x.pdf`"),
            ("x.pdf", "`--features figures`"),
        ] {
            let fault = only_svg(Path::new(file), &extension(Path::new(file)).unwrap()).to_string();
            assert!(fault.contains(words), "{fault}");
        }
    }

    #[test]
    fn names_that_say_no_form_are_refused_with_what_to_do() {
        for (file, words) in [
            ("x.svg", "write `-o x.frames`, then `sizeleak plot x.frames -o x.svg`"),
            ("x.png", "then `sizeleak plot x.frames -o x.png`"),
            ("x.html", "name it with .parquet, .csv, .ndjson"),
            ("x.log", "or say `--format table|"),
            ("x.parquet.gz", "write `-o x.parquet`"),
        ] {
            assert!(of_run(None, file).unwrap_err().contains(words), "{file}: {:?}", of_run(None, file));
        }
    }

    fn text(report: &Value, rows: Option<&str>) -> String {
        String::from_utf8(csv_of(report, rows).unwrap()).unwrap()
    }

    #[test]
    fn a_list_has_a_row_for_each_entry_and_a_column_for_each_figure() {
        let report = json!({ "schema": 1, "points": [
            { "policy": "none", "bytes": 0.5, "floor": null },
            { "policy": "=a,b", "bytes": 2, "interval": { "low": 0.25 }, "sets": [3, 4] },
        ] });
        let expected = "policy,bytes,floor,interval.low,sets.0,sets.1\nnone,0.5,,,,\n\"'=a,b\",2,,0.25,3,4\n";
        assert_eq!(text(&report, Some("points")), expected);
        assert_eq!(text(&json!([{ "a": 1 }]), None), "a\n1\n");
    }

    #[test]
    fn figures_without_a_list_have_a_row_each() {
        let report =
            json!({ "sentence": "It is.", "by_size": { "command": { "named": 0.25 } }, "tries": [{ "named": 1 }] });
        let expected = "figure,value\nsentence,It is.\nby_size.command.named,0.25\ntries.0.named,1\n";
        assert_eq!(text(&report, None), expected);
    }
}
