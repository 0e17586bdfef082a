//! `sizeleak report`: everything that is known of a gateway's leak, as one page for people.

mod arguments;
mod given;
mod of_captures;
mod of_model;

use std::fs::File;

use anyhow::{Context, Result};
use clap::ValueEnum;
use jiff::tz::TimeZone;
use sizeleak_habits::Home;
use sizeleak_report::document::{Report, Section};
use sizeleak_report::{Form, Observed, habits, written};

use super::failure::usage;
use super::plot::content::{home as home_of, parsed, whole_text};
use super::session::Session;
pub(crate) use arguments::Arguments;
use arguments::ReportForm;
use given::Given;
use of_captures::CaptureFindings;
use of_model::ModelFindings;

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
