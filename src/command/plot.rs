//! `sizeleak plot`: figures of what the other commands write: a timeline of a stream, the habits of a profile, the sizes of a
//! model, what reports say as JSON, and how long the stages took.

pub(super) mod content;
mod timeline;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use content::{Content, PictureKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use sizeleak_evaluation::{Calibration, CurvePoint, LearningCurve, MedianScore, MedianShare};
use sizeleak_frame::{Frame, StageSummary};
use sizeleak_inference::space::{CommandSpace, Premises};
use sizeleak_model::ModelSet;
use sizeleak_output::plot::{
    Chart, CommandSizes, ConfusionFigure, HomeHabits, PictureSize, TooSmall, habits_svg, svg_of,
};
use sizeleak_report::document::{ChartKind, Figure, Value};
use sizeleak_report::{leak, quantiles};
use sizeleak_text::{counted, percent};
use timeline::TimelineOptions;

use super::audit::section;
use super::failure::{usage, with_code};
use super::output_option::{OutputOption, PictureForm};
use super::shared_options::{ClockOption, OUTPUT};
use super::traffic_input::Answers;

/// Draw figures of what other commands write: SVG, PNG or PDF
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    sizeleak run pipeline.toml --format frames | sizeleak plot -o timeline.svg\n  \
    sizeleak plot saved.ndjson --time local -o timeline.svg\n  \
    sizeleak plot saved.parquet --since 2026-01-06T08:30 --until 2026-01-07 --gateway 192.168.1.20 -o morning.svg\n  \
    sizeleak plot saved.frames --labels truth.csv --size 800x500 --title 'Monday' -o monday.png\n  \
    sizeleak plot saved.frames --kind latency -o latency.pdf\n  \
    detector --profile home.profile.toml < saved.frames | sizeleak plot -o deviations.svg\n  \
    sizeleak plot home.profile.toml --gateway 192.168.1.20 -o habits.svg\n  \
    sizeleak pad --model model.toml --format json | sizeleak plot --title '' -o padding.pdf\n\n\
    docs/guide.md says what each figure shows. `--font-size` enlarges lines and marks too. `--title ''` leaves out title \
    and explanation, for figures with a caption. PNG and PDF are in packages, and where `cargo install` had `--features \
    figures`.")]
pub(crate) struct Arguments {
    /// Answers of run, archive or detect, a profile, a model, or JSON of evaluate or pad; `-` or nothing is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// What to draw [default: by what FILE is]
    #[arg(long, value_name = "KIND", value_enum, help_heading = OUTPUT)]
    kind: Option<PictureKind>,

    #[command(flatten)]
    output: OutputOption,

    #[command(flatten)]
    clock: ClockOption,

    #[command(flatten)]
    timeline: TimelineOptions,

    /// Which section of a model of several services, from 1
    #[arg(long, value_name = "NUMBER")]
    section: Option<usize>,

    /// The title; '' for none [default: what is drawn]
    #[arg(long, value_name = "TEXT", help_heading = OUTPUT)]
    title: Option<String>,

    /// Width and height in pixels, or the width alone [default: by what is drawn]
    #[arg(long, value_name = "WIDTH[xHEIGHT]", value_parser = size, help_heading = OUTPUT)]
    size: Option<(u32, Option<u32>)>,

    /// The height of text in pixels [default: 12 or 18]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(4..=200), help_heading = OUTPUT)]
    font_size: Option<u32>,
}

const WIDTHS: RangeInclusive<u32> = 200..=20_000;
const HEIGHTS: RangeInclusive<u32> = 150..=20_000;

fn size(text: &str) -> Result<(u32, Option<u32>), String> {
    let pixels = |text: &str, range: RangeInclusive<u32>| text.parse().ok().filter(|pixels| range.contains(pixels));
    let size = match text.split_once('x') {
        Some((width, height)) => pixels(width, WIDTHS).zip(pixels(height, HEIGHTS).map(Some)),
        None => pixels(text, WIDTHS).map(|width| (width, None)),
    };
    size.ok_or_else(|| format!("write it like 800 or 800x500, within {WIDTHS:?} and {HEIGHTS:?} pixels"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let times = arguments.clock.times()?;
    let mut timeline = arguments.timeline.timeline(&times)?;
    let form = PictureForm::of(arguments.output.path())?;
    let (labels, model) = (arguments.timeline.labels()?, arguments.timeline.model()?);
    let (content, name) = Content::of(arguments.file.as_deref())?;
    let kind = arguments.kind.unwrap_or_else(|| content.kind());
    let section = arguments.section.map(|_| ("--section", &[PictureKind::Sizes][..]));
    if let Some((option, kinds)) = arguments.timeline.given().chain(section).find(|(_, kinds)| !kinds.contains(&kind)) {
        let about: Vec<String> = kinds.iter().map(|kind| format!("a {}", kind.in_words().0)).collect();
        let (about, (kind, _)) = (about.join(" or "), kind.in_words());
        return Err(usage!("`{option}` is about {about}, and {name} is drawn as a {kind}: leave it out"));
    }
    let (size, title) = (arguments.picture_size(), arguments.title.as_deref());
    let drawn = |figure: &Figure| -> Result<String, TooSmall> {
        let chart = figure.chart().map(|chart| Chart { size, heading: arguments.title.clone(), ..chart });
        chart.map_or_else(|| Ok(String::new()), |chart| chart.svg())
    };
    // Commands before the damage are drawn.
    let mut read = Ok(());
    let svg = match (kind, content) {
        (PictureKind::Timeline, Content::Answers(answers)) => {
            read = answers.read(&name, &mut timeline);
            if timeline.accepted == 0 && read.is_err() {
                return read;
            }
            timeline::complete(&mut timeline, model.as_ref(), labels.as_ref())?;
            svg_of(&timeline, &times, size, title)
        }
        (PictureKind::Latency, Content::Answers(answers)) => drawn(&latencies_of(answers, &name)?),
        (PictureKind::Profile, Content::Profile(text)) => {
            let (own_title, home) = home_of(&text, &arguments.timeline.gateway).with_context(|| name.clone())?;
            habits_svg(&home, size, title.unwrap_or(&own_title))
        }
        (PictureKind::Sizes, Content::Model(text)) => sizes_of(&text, arguments.section, &name)?.svg(size, title),
        (PictureKind::Calibration, Content::Report(report)) => drawn(&calibration(report, &name)?),
        (PictureKind::Curve, Content::Report(report)) => drawn(&learning_curve(report, &name)?),
        (PictureKind::Padding, Content::Report(report)) => drawn(&padding(report, &name)?),
        (PictureKind::Confusion, Content::Report(report)) => {
            report_as::<ConfusionFigure>(kind, report, &name)?.svg(size, title)
        }
        (kind, content) => {
            let (what, (kind, source)) = (content.what(), kind.in_words());
            return Err(anyhow!("{name} is {what}, and a {kind} is drawn from {source}"));
        }
    };
    let svg = svg.map_err(|error| with_code(2, error))?;
    arguments.output.write(&rendered(svg, form)?)?;
    read
}

impl Arguments {
    fn picture_size(&self) -> PictureSize {
        PictureSize {
            width: self.size.map(|(width, _)| width),
            height: self.size.and_then(|(_, height)| height),
            font: self.font_size,
        }
    }
}

/// The home of a profile that one of these gateways is of, and what its picture is called.
fn home_of(text: &str, gateways: &[IpAddr]) -> Result<(String, HomeHabits)> {
    let profile = content::parsed(text)?;
    let (gateway, home) = content::home(&profile, gateways)?;
    let (days, commands, zone) = (home.learned_days(), home.sightings().count(), profile.zone());
    let days = counted(days, "whole day", "whole days");
    let about = format!("{days}, {}; clock: {zone}", counted(commands, "command", "commands"));
    let habits = HomeHabits { about, actions: home.week(), routines: home.routines() };
    Ok((format!("Habits of the home behind {gateway}"), habits))
}

fn latencies_of(answers: Answers, name: &str) -> Result<Figure> {
    let mut stages = Vec::new();
    answers.read(name, &mut |frame| {
        if let Frame::Summary(summary) = frame {
            stages = summary.stages;
        }
    })?;
    let latencies = latency(&stages);
    if latencies.rows.is_empty() {
        let (_, source) = PictureKind::Latency.in_words();
        return Err(anyhow!("{name} has no latencies, which a summary holds; they are drawn from {source}"));
    }
    Ok(latencies)
}

/// Commands of so many actions have rows, as long as these are fewer than [`MAX_LISTED`].
const MAX_ACTIONS: u32 = 4;
const MAX_LISTED: f64 = 100_000.0;

fn sizes_of(text: &str, number: Option<usize>, name: &str) -> Result<CommandSizes> {
    let model = ModelSet::from_toml(text).map_err(Into::into).and_then(|model| section(model, number));
    let model = model.with_context(|| name.to_owned())?;
    if model.actions.is_empty() {
        return Err(anyhow!("{name} knows no sizes of actions: `sizeleak learn … --labels labels.csv` finds them"));
    }
    let space = CommandSpace::new(&model, &Premises::default())?;
    let all: BTreeMap<u64, f64> = space.size_rows()?.into_iter().map(|row| (row.bytes, row.commands)).collect();
    let is_few = |actions: &u32| combinations(model.actions.len(), *actions) < MAX_LISTED;
    let numbers = (1..=space.most_actions().min(MAX_ACTIONS)).take_while(is_few);
    let row = |actions| {
        let mut sizes: Vec<u64> = space.commands_of(actions).into_iter().map(|(bytes, _)| space.size(bytes)).collect();
        sizes.dedup();
        sizes.into_iter().map(|size| (size, all.get(&size).copied().unwrap_or(1.0))).collect()
    };
    let alone = |at: usize| {
        let counts: Vec<u32> = (0..model.actions.len()).map(|other| u32::from(other == at)).collect();
        space.size(space.bytes_of(&counts))
    };
    let actions = model.actions.iter().enumerate().map(|(at, action)| (action.name.clone(), alone(at)));
    let commands: f64 = all.values().sum();
    Ok(CommandSizes {
        about: format!(
            "overhead {} bytes; {} commands have {}, learned from {}",
            model.overhead,
            if commands < 1e9 { format!("{commands:.0}") } else { format!("{commands:.1e}") },
            counted(all.len(), "size", "sizes"),
            counted(model.learned.commands, "command", "commands")
        ),
        actions: actions.collect(),
        rows: numbers.map(row).collect(),
    })
}

/// How many ways there are to have at most so many of these actions.
fn combinations(kinds: usize, actions: u32) -> f64 {
    (1..=actions).map(|at| (kinds as f64 + f64::from(at)) / f64::from(at)).product()
}

/// The picture as a file; says which characters it lacks.
#[cfg(feature = "figures")]
fn rendered(svg: String, form: PictureForm) -> Result<Vec<u8>> {
    use sizeleak_output::plot::{Rendering, RenderingError};
    use sizeleak_platform::telemetry::log::say;

    if form == PictureForm::Svg {
        return Ok(svg.into_bytes());
    }
    let failure = |error: RenderingError| match error {
        RenderingError::TooLarge(..) => with_code(2, error),
        RenderingError::Failed(_) => error.into(),
    };
    let rendering = Rendering::new(&svg).map_err(failure)?;
    let missing = rendering.missing();
    if !missing.is_empty() {
        say("sizeleak", &format!("the font of PNG and PDF lacks {missing}: SVG has them"));
    }
    let picture = if form == PictureForm::Png { rendering.png() } else { rendering.pdf() };
    picture.map_err(failure)
}

#[cfg(not(feature = "figures"))]
#[expect(clippy::unnecessary_wraps, reason = "its other form may fail")]
fn rendered(svg: String, _: PictureForm) -> Result<Vec<u8>> {
    Ok(svg.into_bytes())
}

/// An evaluation, as far as it is drawn: what `sizeleak evaluate` writes as JSON.
#[derive(Deserialize)]
struct Evaluated {
    after_pruning: Score,
}

#[derive(Deserialize)]
struct Score {
    commands: u64,
    calibration: Calibration,
}

/// Policies against their cost, as far as they are drawn: what `sizeleak pad` writes as JSON.
#[derive(Deserialize)]
struct Policies {
    prior: String,
    guessing: f64,
    points: Vec<PolicyPoint>,
}

#[derive(Deserialize)]
struct PolicyPoint {
    policy: String,
    added_share: f64,
    named: f64,
}

/// What a report says of a figure.
fn report_as<F: DeserializeOwned>(kind: PictureKind, report: Json, name: &str) -> Result<F> {
    let (wanted, source) = kind.in_words();
    serde_json::from_value(report).map_err(|error| anyhow!("{name}: {error}; a {wanted} is drawn from {source}"))
}

fn calibration(report: Json, name: &str) -> Result<Figure> {
    let Evaluated { after_pruning: Score { commands, calibration } } =
        report_as(PictureKind::Calibration, report, name)?;
    let share = |share: Option<f64>| share.map_or_else(|| "unknown".to_owned(), percent);
    let [error, chance] = [calibration.expected_error, calibration.by_chance].map(share);
    let commands = counted(commands, "command", "commands");
    let about = format!("{commands}; mean error {error}, {chance} is expected by chance");
    Ok(leak::reliability(&calibration).titled("Are stated probabilities right?", about))
}

fn learning_curve(report: Json, name: &str) -> Result<Figure> {
    let LearningCurve { drawn_from, tested, points, .. } = report_as(PictureKind::Curve, report, name)?;
    let row = |CurvePoint { labels, after_pruning: score, .. }: &CurvePoint| {
        let share = |share: fn(&MedianScore) -> MedianShare| {
            let within = |MedianShare { median, interval }| Value::Within(median, interval);
            Value::from(score.as_ref().map(|score| within(share(score))))
        };
        let count = Value::Count(*labels as f64);
        [count, share(|score| score.precision), share(|score| score.top_5), share(|score| score.top_1)]
    };
    let columns = "labels | truth among the candidates | among the first five | the first candidate";
    let tested = counted(tested, "other command", "other commands");
    let about = format!(
        "models of so many of {drawn_from} labels, drawn at random, answer {tested}; bars are intervals of 95 %"
    );
    let figure = Figure::new("curve", columns, points.iter().map(row));
    Ok(figure.titled("How many labels are enough?", about).drawn(ChartKind::Growth, &[0, 1, 2, 3]))
}

fn padding(report: Json, name: &str) -> Result<Figure> {
    let Policies { prior, guessing, points } = report_as(PictureKind::Padding, report, name)?;
    let row = |it: &PolicyPoint| [it.policy.as_str().into(), Value::Share(it.added_share), Value::Share(it.named)];
    let about = format!("commands as probable as {prior}");
    let figure = Figure::new("padding", "policy | more | named", points.iter().map(row));
    let figure = figure.titled("What padding hides, and what it costs", about);
    Ok(figure.drawn(ChartKind::Points, &[0, 1, 2]).beside_guessing(guessing))
}

/// How long each stage works on a frame, and how long a frame waits for it, as far as summaries say; no rows if none does.
fn latency(stages: &[StageSummary]) -> Figure {
    let row = |stage: &StageSummary| {
        let times = [&stage.latency, &stage.queue].map(|histogram| quantiles(histogram));
        let is_known = times.iter().any(Option::is_some);
        let [[work, most_work, longest_work], [wait, most_wait, longest_wait]] =
            times.map(|times| times.unwrap_or([const { Value::Unknown }; 3]));
        is_known.then(|| [stage.stage.as_str().into(), work, most_work, longest_work, wait, most_wait, longest_wait])
    };
    let rows: Vec<_> = stages.iter().filter_map(row).collect();
    let about = format!("{} stages; times of single frames, in microseconds", rows.len());
    let figure = Figure::new("latency", "stage | work | 99 % | longest | wait | 99 % | longest", rows);
    figure.titled("How long the stages take for a frame", about).drawn(ChartKind::Ranges, &[0, 1, 2, 3, 4, 5, 6])
}
