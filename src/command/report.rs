//! `sizeleak report`: everything that is known of a gateway's leak, as one page for people.

mod given;
mod of_captures;
mod of_model;

use std::fs::File;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use sizeleak_platform::storage::RunFiles;
use sizeleak_report::document::{Report, Section, Verdict};
use sizeleak_report::{Form, Observed, habits, written};

use super::audited_model::AuditedModel;
use super::failure::Failure;
use super::help::OUTPUT;
use super::labelled_captures::LabelledCaptures;
use super::output_option::OutputOption;
use super::plot::profile;
use given::Given;
use of_captures::CaptureFindings;
use of_model::ModelFindings;

/// Write all that is known of a gateway's leak as one page, for people
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sizeleak report --model model.toml -o report.html\n  \
    sizeleak report test.pcap --labels test.csv --model model.toml --gateway 192.168.1.20 -o report.html\n  \
    sizeleak report answers.frames home.profile.toml deviations.ndjson -o report.md")]
#[command(after_long_help = "Examples:\n  \
    sizeleak report --model model.toml -o report.html\n  \
    sizeleak report test.pcap --labels test.csv --model model.toml --gateway 192.168.1.20 -o report.html\n  \
    sizeleak report answers.frames home.profile.toml deviations.ndjson -o report.html\n  \
    sizeleak report --model model.toml --quick --markdown > report.md\n\n\
    FILE is any of: captures with `--labels`; answers and deviations, as `sizeleak run`, `archive`, `detect` and the stage \
    `detector` write them; a profile, as `sizeleak profile` writes it. They are told apart by content. What is not given is \
    left out, and the page says what to give.\n\n\
    The page is one file. It loads nothing and sends nothing, and holds sums over many commands: no single command, and no \
    time of a single event. docs/report.md explains it.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) captures: LabelledCaptures,

    #[command(flatten)]
    audited: AuditedModel,

    /// Leave out what takes longest: the floor of all padding, and the learning curve
    #[arg(long)]
    quick: bool,

    /// The format of the output: html or markdown [default: by the name of FILE, else html]
    #[arg(long, value_enum, hide_possible_values = true, hide_short_help = true, help_heading = OUTPUT)]
    format: Option<ReportForm>,

    /// Write Markdown, for an issue or a wiki: `--format markdown`
    #[arg(long, conflicts_with = "format", help_heading = OUTPUT)]
    markdown: bool,

    #[command(flatten)]
    output: OutputOption,
}

/// The format of the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ReportForm {
    /// One page that loads nothing
    #[default]
    Html,
    /// The same text and tables as Markdown
    Markdown,
}

/// What a home usually does, and the clock it goes by.
struct Habits {
    verdict: Verdict,
    section: Section,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, Failure> {
    let named = if arguments.markdown { Some(ReportForm::Markdown) } else { arguments.format };
    let form = match arguments.output.form(named, "sizeleak report")?.unwrap_or_default() {
        ReportForm::Html => Form::Page,
        ReportForm::Markdown => Form::Markdown,
    };
    let given = Given::take_from(&mut arguments.captures)?;
    arguments.check_files(&given)?;
    let (zone, home) = arguments.habits(&given)?;
    let mut observed = Observed::new(zone);
    let mut damage = None;
    if let Err(failure) = given.answers.read(&mut observed, |observed, _| {
        observed.end_of_file();
        Ok(())
    }) {
        observed.end_of_file();
        if observed.commands() + observed.deviation_count() == 0 {
            return Err(failure);
        }
        damage = Some(failure.context("the report covers what is before the damage".to_owned()));
    }
    let log = &arguments.captures.log;
    let model = arguments.audited.path().map(|_| arguments.audited.model(log)).transpose()?;
    let of_model = model.as_ref().map(|model| ModelFindings::new(model, &arguments)).transpose()?;
    let of_captures = match given.has_captures {
        true => Some(CaptureFindings::new(&arguments, model.as_ref(), &mut observed)?),
        false => None,
    };
    let report = Parts { arguments: &arguments, given: &given, observed: &observed, of_model, of_captures, home };
    let (report, damaged) = report.report()?;
    arguments.output.write(written(report, form).as_bytes())?;
    damage.or(damaged).map_or(Ok(ExitCode::SUCCESS), Err)
}

impl Arguments {
    fn check_files(&self, given: &Given) -> Result<(), Failure> {
        let mut files = RunFiles::new();
        given.files(self).iter().for_each(|(role, path)| files.reads(role, path));
        self.output.add_to(&mut files);
        Ok(files.check()?)
    }

    /// The habits of the home that is meant, and its clock.
    fn habits(&self, given: &Given) -> Result<(TimeZone, Option<Habits>), Failure> {
        let Some(path) = &given.profile else { return Ok((TimeZone::UTC, None)) };
        let name = || path.display().to_string();
        let profile = profile::read(File::open(path).with_context(name)?).with_context(name)?;
        let (_, home) = profile::home(&profile, &self.captures.gateways()).with_context(name)?;
        // A profile is read only if its zone is known.
        let zone = TimeZone::get(profile.zone()).unwrap_or(TimeZone::UTC);
        Ok((zone, Some(Habits { verdict: habits::verdict(&home), section: habits::section(&home, profile.zone()) })))
    }

    /// The options that name the model, its section, devices and prior, as they were written.
    fn model_options(&self) -> String {
        given::words_of(&["--model", "--section", "--inventory", "--prior", "--decay"])
    }
}

/// Everything that a report is made of.
struct Parts<'a> {
    arguments: &'a Arguments,
    given: &'a Given,
    observed: &'a Observed,
    of_model: Option<ModelFindings>,
    of_captures: Option<CaptureFindings>,
    home: Option<Habits>,
}

impl Parts<'_> {
    /// The report, and what is wrong with the captures.
    fn report(self) -> Result<(Report, Option<Failure>), Failure> {
        let Self { arguments, given, observed, of_model, of_captures, home } = self;
        let deviations = observed.deviations();
        let verdicts = [
            of_captures.as_ref().map(|found| found.verdict.clone()),
            of_model.as_ref().map(|found| found.verdict.clone()),
            observed.verdict(),
            home.as_ref().map(|home| home.verdict.clone()),
            observed.deviation_verdict(),
        ];
        let Some(verdict) = verdicts.into_iter().flatten().next() else {
            return Err(Failure::usage(anyhow!(
                "there is nothing to report on: name a model (`--model FILE`), labelled captures, answers or a profile"
            )));
        };
        let provenance = given.provenance(arguments)?;
        let (model_tiles, fix, model_sections, sizes) = match of_model {
            Some(found) => (found.tiles, found.fix, found.sections, Some(found.expected_sizes)),
            None => (Vec::new(), of_model::WITHOUT_MODEL.to_owned(), of_model::missing(), None),
        };
        let (tiles, capture_sections, damage) = match of_captures {
            // The model says more than labels, most of which occur once.
            Some(found) if model_tiles.is_empty() => (found.tiles, found.sections, found.damage),
            Some(found) => (model_tiles, found.sections, found.damage),
            None => (model_tiles, of_captures::missing(), None),
        };
        let mut figures = observed.figures();
        figures.extend(sizes);
        let text = match figures.is_empty() {
            true => "Name answers: `sizeleak report answers.frames -o report.html`.".to_owned(),
            false => {
                "The observer sees encrypted records on their way to the gateway: when they come, and how long they \
                      are."
                    .to_owned()
            }
        };
        let or_missing = |section: Option<Section>, id, title, text: &str| {
            section.unwrap_or_else(|| Section::missing(id, title, text))
        };
        let mut sections = vec![Section::new("seen", "What an observer sees", vec![text], figures)];
        sections.extend(model_sections);
        sections.extend(capture_sections);
        sections.push(or_missing(
            home.map(|home| home.section),
            "habits",
            "Habits of the home",
            "Learn a profile from the answers of some weeks, and name it: `sizeleak profile answers.frames -o \
             home.profile.toml`.",
        ));
        sections.push(or_missing(
            deviations,
            "deviations",
            "Deviations",
            "Look for them, and name them: `sizeleak detect answers.frames --profile home.profile.toml -o deviations.ndjson`.",
        ));
        sections.push(or_missing(
            observed.latencies(),
            "latency",
            "Latencies of the pipeline",
            "Answers that were saved as frames say how long stages took: `sizeleak run CAPTURE --model model.toml -o \
             answers.frames`.",
        ));
        sections.push(provenance);
        Ok((Report { verdict, tiles, fix, sections }, damage))
    }
}
