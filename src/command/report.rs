//! `sizeleak report`: everything that is known of a gateway's leak, as one page for people.

mod given;
mod of_captures;
mod of_model;

use std::fs::File;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use sizeleak_habits::Home;
use sizeleak_platform::storage::RunFiles;
use sizeleak_report::document::{Report, Section};
use sizeleak_report::{Form, Observed, habits, written};

use super::audited_model::AuditedModel;
use super::failure::Failure;
use super::help::OUTPUT;
use super::labelled_captures::LabelledCaptures;
use super::output_option::OutputOption;
use super::plot::content::whole_text;
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

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, Failure> {
    let named = if arguments.markdown { Some(ReportForm::Markdown) } else { arguments.format };
    let form = match arguments.output.form(named, "sizeleak report")?.unwrap_or_default() {
        ReportForm::Html => Form::Page,
        ReportForm::Markdown => Form::Markdown,
    };
    let given = Given::take_from(&mut arguments.captures)?;
    arguments.check_files(&given)?;
    let (zone, home) = arguments.home(&given)?;
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
    let (mut verdicts, mut sections, mut figures) = (Vec::new(), vec![given.provenance(&arguments)?], Vec::new());
    let (mut tiles, mut fix) = (Vec::new(), "A model tells what would stop the leak, and what that costs.".to_owned());
    if let Some(found) = of_captures {
        verdicts.push(found.verdict);
        sections.extend(found.sections);
        tiles = found.tiles;
        damage = damage.or(found.damage);
    }
    if let Some(found) = of_model {
        verdicts.push(found.verdict);
        sections.extend(found.sections);
        figures.push(found.expected_sizes);
        // The model says more than labels, most of which occur once.
        (tiles, fix) = (found.tiles, found.fix);
    }
    verdicts.extend(observed.verdict());
    if let Some(home) = home {
        verdicts.push(habits::verdict(&home));
        sections.push(habits::section(&home, observed.clock()));
    }
    verdicts.extend(observed.deviation_verdict());
    let Some(verdict) = verdicts.into_iter().next() else {
        let known = "name a model (`--model FILE`), labelled captures, answers or a profile";
        return Err(Failure::usage(anyhow!("there is nothing to report on: {known}")));
    };
    figures.splice(0..0, observed.figures());
    if !figures.is_empty() {
        let text =
            "The observer sees encrypted records on their way to the gateway: when they come, and how long they are.";
        sections.push(Section::new("seen", vec![text.to_owned()], figures));
    }
    sections.extend(observed.deviations().into_iter().chain(observed.latencies()));
    let report = Report { verdict, tiles, fix, sections };
    arguments.output.write(written(report, form).as_bytes())?;
    damage.map_or(Ok(ExitCode::SUCCESS), Err)
}

impl Arguments {
    fn check_files(&self, given: &Given) -> Result<(), Failure> {
        let mut files = RunFiles::new();
        given.files(self).iter().for_each(|(role, path)| files.reads(role, path));
        self.output.add_to(&mut files);
        Ok(files.check()?)
    }

    /// The home that is meant, and its clock.
    fn home(&self, given: &Given) -> Result<(TimeZone, Option<Home>), Failure> {
        let Some(path) = &given.profile else { return Ok((TimeZone::UTC, None)) };
        let name = || path.display().to_string();
        let text = whole_text(File::open(path).with_context(name)?).with_context(name)?;
        let profile = profile::parsed(&text).with_context(name)?;
        let (_, home) = profile::home(&profile, &self.captures.gateways()).with_context(name)?;
        // A profile is read only if its zone is known.
        Ok((TimeZone::get(profile.zone()).unwrap_or(TimeZone::UTC), Some(home)))
    }
}
