//! `sizeleak report`: everything that is known of a gateway's leak, as one page for people.

mod findings;
mod given;

use std::fs::File;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use sizeleak_habits::Home;
use sizeleak_report::document::{Report, Section};
use sizeleak_report::{Form, Observed, habits, written};

use super::failure::usage;
use super::plot::content::{home as home_of, parsed, whole_text};
use super::session::Session;
use crate::command::audited_model::AuditedModel;
use crate::command::help::OUTPUT;
use crate::command::labelled_captures::LabelledCaptures;
use crate::command::output_option::OutputOption;
use findings::{CaptureFindings, ModelFindings};
use given::Given;

pub(crate) fn run(mut arguments: Arguments, session: &mut Session) -> Result<()> {
    let form = match arguments
        .output
        .form(arguments.format, ReportForm::value_variants(), "sizeleak report")?
        .unwrap_or_default()
    {
        ReportForm::Html => Form::Page,
        ReportForm::Markdown => Form::Markdown,
    };
    let given = Given::take_from(&mut arguments.captures)?;
    session.check_files(given.named(&arguments))?;
    let (zone, home) = home(&arguments, &given)?;
    let mut observed = Observed::new(zone);
    let mut damage = None;
    if let Err(failure) = given.answers.read(arguments.captures.range.range()?, &mut observed, |observed, _| {
        observed.end_of_file();
        Ok(())
    }) {
        observed.end_of_file();
        if observed.commands() + observed.deviation_count() == 0 {
            return Err(failure);
        }
        damage = Some(failure.context("the report covers what is before the damage".to_owned()));
    }
    let model = arguments.audited.path().map(|_| arguments.audited.model()).transpose()?;
    let of_model = model.as_ref().map(|model| ModelFindings::new(model, &arguments)).transpose()?;
    let of_captures = given.has_captures.then(|| CaptureFindings::new(&arguments, model.as_ref(), &mut observed));
    let of_captures = of_captures.transpose()?;
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
        figures.extend(found.expected_sizes);
        // What answers to labels showed stands first; what only the model says of, follows.
        let measured: Vec<&str> = tiles.iter().map(|tile| tile.title).collect();
        tiles.extend(found.tiles.into_iter().filter(|tile| !measured.contains(&tile.title)));
        fix = found.fix;
    }
    verdicts.extend(observed.verdict());
    if let Some(home) = home {
        verdicts.push(habits::verdict(&home));
        sections.push(habits::section(&home, observed.clock()));
    }
    verdicts.extend(observed.deviation_verdict());
    let Some(verdict) = verdicts.into_iter().next() else {
        let known = "name a model (`--model FILE`), labelled captures, answers or a profile";
        return Err(usage!("there is nothing to report on: {known}"));
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
    damage.map_or(Ok(()), Err)
}

fn home(arguments: &Arguments, given: &Given) -> Result<(TimeZone, Option<Home>)> {
    let Some(path) = &given.profile else { return Ok((TimeZone::UTC, None)) };
    let name = || path.display().to_string();
    let text = whole_text(File::open(path).with_context(name)?).with_context(name)?;
    let profile = parsed(&text).with_context(name)?;
    let (_, home) = home_of(&profile, &arguments.captures.gateways()).with_context(name)?;
    // A profile is read only if its zone is known.
    Ok((TimeZone::get(profile.zone()).unwrap_or(TimeZone::UTC), Some(home)))
}

/// Write all that is known of a gateway's leak as a page for people
#[derive(Debug, Args)]
#[command(mut_arg("set", |set| set.hide_short_help(true)))]
#[command(mut_arg("operands", |files| {
    files.help("Captures with `--labels`, answers, deviations or a profile, recognised by content; `-` is stdin")
}))]
#[command(after_long_help = "Examples:\n  \
    sizeleak report --model model.toml -o report.html\n  \
    sizeleak report test.pcap --labels test.csv --model model.toml --gateway 192.168.1.20 -o report.html\n  \
    sizeleak report answers.frames home.profile.toml deviations.ndjson -o report.html\n  \
    sizeleak report --model model.toml --quick --format markdown > report.md\n\n\
    FILE is any of: captures with `--labels`; answers and deviations, as `sizeleak run`, `archive`, `detect` and the stage \
    `detector` write them; a profile, as `sizeleak profile` writes it. They are told apart by content. What is not given is \
    left out, and the page says what to give.\n\n\
    The page is one file. It loads nothing and sends nothing, and holds sums over many commands: no single command, and no \
    time of a single event. docs/report.md explains it.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) captures: LabelledCaptures,

    #[command(flatten)]
    pub(super) audited: AuditedModel,

    /// Leave out the learning curve, which takes longest
    #[arg(long)]
    pub(super) quick: bool,

    /// The format of the output: html or markdown [default: by the name of FILE, else html]
    #[arg(long, value_enum, hide_possible_values = true, help_heading = OUTPUT)]
    pub(super) format: Option<ReportForm>,

    #[command(flatten)]
    pub(super) output: OutputOption,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportForm {
    /// One page that loads nothing
    #[default]
    Html,
    /// The same text and tables as Markdown
    Markdown,
}
