//! The form of an output: by `--format`, or by the name of the file that is written.

use std::path::Path;

use anyhow::anyhow;
use clap::ValueEnum;

use super::failure::Failure;

/// What the end of a name says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It has the format of this name.
    Format(&'static str),
    /// It is a picture as `sizeleak plot` draws it.
    Svg,
    /// It is a picture that other programs make of that.
    Picture,
    /// It is compressed.
    Compressed,
}

/// The endings of names that say what a file holds.
const ENDINGS: [(&str, Ending); 15] = [
    ("parquet", Ending::Format("parquet")),
    ("csv", Ending::Format("csv")),
    ("ndjson", Ending::Format("ndjson")),
    ("jsonl", Ending::Format("ndjson")),
    // One object a line, or one object: what the command has.
    ("json", Ending::Format("json")),
    ("frames", Ending::Format("frames")),
    ("svg", Ending::Svg),
    ("png", Ending::Picture),
    ("pdf", Ending::Picture),
    ("jpg", Ending::Picture),
    ("gz", Ending::Compressed),
    ("zst", Ending::Compressed),
    ("xz", Ending::Compressed),
    ("lz4", Ending::Compressed),
    ("zip", Ending::Compressed),
];

/// The format of an output; `None` if neither `--format` nor the name of the file says one. `command` writes it.
pub(super) fn chosen<F: ValueEnum>(
    named: Option<F>,
    output: Option<&Path>,
    command: &str,
) -> Result<Option<F>, Failure> {
    let Some((file, ending)) = output.and_then(|file| Some((file, ending_of(file)?))) else { return Ok(named) };
    let Ending::Format(wanted) = ending else { return Err(refusal(file, ending, command)) };
    let by_name = format_of::<F>(wanted);
    let wanted = by_name.as_ref().map_or_else(|| wanted.to_owned(), name_of);
    let file = file.display();
    match (named, by_name) {
        (None, Some(by_name)) => Ok(Some(by_name)),
        (Some(named), Some(_)) if name_of(&named) == wanted => Ok(Some(named)),
        (Some(named), _) => Err(Failure::usage(anyhow!(
            "`--format {}` contradicts the name {file}: leave out `--format`, or name the file otherwise",
            name_of(&named)
        ))),
        (None, None) => {
            let known = F::value_variants().iter().map(name_of).collect::<Vec<_>>().join(", ");
            Err(Failure::usage(anyhow!(
                "`{command}` does not write {wanted}, which {file} is named for: it writes {known}"
            )))
        }
    }
}

/// Refuses a picture that is not SVG.
pub(super) fn check_picture(output: Option<&Path>) -> Result<(), Failure> {
    match output.and_then(|file| Some((file, ending_of(file)?))) {
        Some((file, ending @ (Ending::Picture | Ending::Compressed))) => Err(refusal(file, ending, "sizeleak plot")),
        Some((file, Ending::Format(_))) => {
            Err(Failure::usage(anyhow!("`sizeleak plot` draws SVG, and {} is not named so", file.display())))
        }
        _ => Ok(()),
    }
}

fn ending_of(file: &Path) -> Option<Ending> {
    let extension = file.extension()?.to_str()?.to_ascii_lowercase();
    ENDINGS.iter().find(|(ending, _)| *ending == extension).map(|(_, ending)| *ending)
}

/// The format of this name; where there is no `json`, a file of JSON has one object a line.
fn format_of<F: ValueEnum>(name: &str) -> Option<F> {
    let format = F::from_str(name, false).ok();
    if format.is_none() && name == "json" { F::from_str("ndjson", false).ok() } else { format }
}

fn name_of<F: ValueEnum>(format: &F) -> String {
    format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Why a file that is named so is not written, and what to do.
fn refusal(file: &Path, ending: Ending, command: &str) -> Failure {
    let extension = file.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let shown = file.display();
    let svg = file.with_extension("svg");
    let svg = svg.display();
    let frames = file.with_extension("frames");
    let frames = frames.display();
    Failure::usage(match ending {
        Ending::Picture if command == "sizeleak plot" => anyhow!(
            "`{command}` draws SVG, not {extension}: write `-o {svg}`, then `rsvg-convert -f {extension} {svg} -o {shown}`"
        ),
        Ending::Picture => anyhow!(
            "`{command}` draws no pictures: write `-o {frames}`, then `sizeleak plot {frames} -o {svg}` and \
             `rsvg-convert -f {extension} {svg} -o {shown}`"
        ),
        Ending::Compressed => anyhow!(
            "{shown} would not be compressed: leave out `-o`, and pipe the output into a program that compresses it"
        ),
        Ending::Svg | Ending::Format(_) => {
            anyhow!("`{command}` draws no pictures: write `-o {frames}`, then `sizeleak plot {frames} -o {svg}`")
        }
    })
}

#[cfg(test)]
mod tests {
    use sizeleak_output::OutputFormat;

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
    enum Figures {
        Table,
        Json,
    }

    fn of_run(named: Option<OutputFormat>, file: &str) -> Result<Option<OutputFormat>, String> {
        chosen(named, Some(Path::new(file)), "sizeleak run").map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_name_of_a_file_chooses_its_form() {
        for (file, format) in [
            ("x.parquet", Some(OutputFormat::Parquet)),
            ("a.b/x.CSV", Some(OutputFormat::Csv)),
            ("x.ndjson", Some(OutputFormat::Ndjson)),
            ("x.json", Some(OutputFormat::Ndjson)),
            ("x.frames", Some(OutputFormat::Frames)),
            ("x.txt", None),
            ("csv", None),
            ("/dev/fd/63", None),
        ] {
            assert_eq!(of_run(None, file), Ok(format), "{file}");
        }
        let figures = |file: &str| chosen::<Figures>(None, Some(Path::new(file)), "sizeleak evaluate").ok();
        assert_eq!(figures("x.json"), Some(Some(Figures::Json)));
        assert_eq!(figures("x.csv"), None, "it would hold a table");
        assert_eq!(chosen(Some(Figures::Table), None, "").ok(), Some(Some(Figures::Table)));
    }

    #[test]
    fn a_format_that_contradicts_the_name_is_refused() {
        assert_eq!(of_run(Some(OutputFormat::Csv), "x.csv"), Ok(Some(OutputFormat::Csv)));
        assert_eq!(of_run(Some(OutputFormat::Ndjson), "x.json"), Ok(Some(OutputFormat::Ndjson)));
        assert_eq!(of_run(Some(OutputFormat::Csv), "x.txt"), Ok(Some(OutputFormat::Csv)));
        let fault = of_run(Some(OutputFormat::Csv), "x.parquet").unwrap_err();
        assert!(fault.contains("`--format csv` contradicts the name x.parquet"), "{fault}");
    }

    #[test]
    fn pictures_and_compressed_files_are_refused_with_what_to_do() {
        for (file, words) in [
            ("x.svg", "write `-o x.frames`, then `sizeleak plot x.frames -o x.svg`"),
            ("x.png", "then `sizeleak plot x.frames -o x.svg` and `rsvg-convert -f png x.svg -o x.png`"),
            ("x.csv.gz", "x.csv.gz would not be compressed"),
        ] {
            for named in [None, Some(OutputFormat::Csv)] {
                assert!(of_run(named, file).unwrap_err().contains(words), "{file}");
            }
        }
        let plot = |file: &str| check_picture(Some(Path::new(file))).map_err(|failure| failure.to_string());
        assert_eq!((plot("x.svg"), plot("x")), (Ok(()), Ok(())));
        assert!(plot("x.pdf").unwrap_err().contains("`-o x.svg`, then `rsvg-convert -f pdf x.svg -o x.pdf`"));
        assert!(plot("x.csv").unwrap_err().contains("draws SVG"));
    }
}
