//! What a picture is drawn from, found by its content.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use serde_json::Value;
use sizeleak_habits::{Home, Profile};
use sizeleak_pipeline::recording::open;

use crate::command::traffic_input::Answers;

/// The longest profile, model or report: 256 MiB, the diaries of hundreds of homes.
const MAX_BYTES: u64 = 1 << 28;

/// The longest line of JSON lines, like the largest frame: 16 MiB.
const MAX_LINE: u64 = 1 << 24;

pub(super) enum Content {
    /// Frames, JSON lines or Parquet.
    Answers(Answers),
    /// The text of a profile, or of what is none of the others.
    Profile(String),
    Model(String),
    /// A JSON object that is no line of frames.
    Report(Value),
}

impl Content {
    pub(super) fn of(file: Option<&Path>) -> Result<(Self, String)> {
        let (input, name) = open(file)?;
        let mut input = BufReader::new(input);
        let first = input.fill_buf().with_context(|| name.clone())?;
        let content = match first.first() {
            Some(_) if first.starts_with(b"PAR1") => Self::Answers(Answers::of(input, file, &name)?),
            Some(b'{') => Self::of_json(input).with_context(|| name.clone())?,
            // Frames begin with a byte that is no text.
            Some(first) if first.is_ascii_graphic() => Self::of_toml(whole_text(input).with_context(|| name.clone())?),
            _ => Self::Answers(Answers::Stream(Box::new(input))),
        };
        Ok((content, name))
    }

    /// A report is one object, with the number of its schema; lines are objects without one.
    fn of_json(mut input: impl BufRead + 'static) -> Result<Self> {
        let mut line = Vec::new();
        input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        let is_report = match serde_json::from_slice::<Value>(&line) {
            Ok(object) => object.get("schema").is_some(),
            Err(error) => error.is_eof() && line.ends_with(b"\n"),
        };
        let input: Box<dyn Read> = Box::new(Cursor::new(line).chain(input));
        if !is_report {
            return Ok(Self::Answers(Answers::Stream(input)));
        }
        let report: Value = serde_json::from_str(&whole_text(input)?).context("this JSON cannot be read")?;
        Ok(Self::Report(report))
    }

    fn of_toml(text: String) -> Self {
        let table: Option<toml::Table> = toml::from_str(&text).ok();
        let is_model = table.is_some_and(|table| ["overhead", "model"].iter().any(|key| table.contains_key(*key)));
        if is_model { Self::Model(text) } else { Self::Profile(text) }
    }

    /// What is drawn of it, unless something else is asked for.
    pub(super) fn kind(&self) -> PictureKind {
        match self {
            Self::Answers(_) => PictureKind::Timeline,
            Self::Profile(_) => PictureKind::Profile,
            Self::Model(_) => PictureKind::Sizes,
            Self::Report(report) if report.get("drawn_from").is_some() => PictureKind::Curve,
            Self::Report(report) if report.get("points").is_some() => PictureKind::Padding,
            Self::Report(report) if report.get("collisions").is_some() => PictureKind::Sizes,
            Self::Report(_) => PictureKind::Calibration,
        }
    }

    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Answers(_) => "a stream",
            Self::Profile(_) => "text",
            Self::Model(_) => "a model",
            Self::Report(_) => "a report as JSON",
        }
    }
}

fn whole_text(input: impl Read) -> Result<String> {
    let mut text = String::new();
    input.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= MAX_BYTES, "it is longer than 256 MiB");
    Ok(text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PictureKind {
    /// The commands and deviations of a stream over time
    Timeline,
    /// The sizes of commands of one action and more, and how many commands share each
    Sizes,
    /// How often answers are right, by the probability that they state
    Calibration,
    /// How precision grows with the number of labels
    Curve,
    /// What padding gives away against what it costs
    Padding,
    /// Which actions are taken for which others
    Confusion,
    /// What the home of a profile usually does: hours by weekdays, and routines
    Profile,
    /// How long each stage takes for a frame
    Latency,
}

impl PictureKind {
    /// What it is called, and what it is drawn from, with the command that writes that.
    pub(super) const fn in_words(self) -> (&'static str, &'static str) {
        const EVALUATION: &str = "an evaluation: `sizeleak evaluate … -o evaluation.json` writes it";
        match self {
            Self::Timeline => {
                ("timeline", "frames, JSON lines or Parquet: `sizeleak run … -o answers.frames` writes them")
            }
            Self::Sizes => ("figure of sizes", "a model: `sizeleak learn … -o model.toml` writes it"),
            Self::Calibration => ("figure of calibration", EVALUATION),
            Self::Curve => ("learning curve", "a curve as JSON: `sizeleak evaluate … --curve -o curve.json` writes it"),
            Self::Padding => {
                ("figure of padding", "a curve as JSON: `sizeleak pad --model model.toml -o padding.json` writes it")
            }
            Self::Confusion => ("figure of confusions", EVALUATION),
            Self::Profile => ("profile", "a profile: `sizeleak profile answers.frames -o home.profile.toml` writes it"),
            Self::Latency => {
                ("figure of latencies", "frames to their end: `sizeleak run … -o answers.frames` writes them")
            }
        }
    }
}

pub(super) fn parsed(text: &str) -> Result<Profile> {
    // Its words hold what its source says.
    Profile::from_toml(text).map_err(|error| anyhow!("it is nothing that can be drawn, and {error}"))
}

pub(crate) fn home<'a>(profile: &'a Profile, gateways: &[IpAddr]) -> Result<(&'a str, Home)> {
    let is_meant =
        |gateway: &&str| gateways.is_empty() || gateway.parse().is_ok_and(|it: IpAddr| gateways.contains(&it));
    ensure!(profile.gateways().next().is_some(), "it holds no home: `sizeleak profile --add` adds answers");
    let meant: Vec<&str> = profile.gateways().filter(is_meant).collect();
    let [gateway] = meant[..] else {
        let known = profile.gateways().map(gateway_name).collect::<Vec<_>>().join(", ");
        return Err(anyhow!(
            "of the homes of a profile, one is drawn: name its gateway by `--gateway`; the profile has {known}"
        ));
    };
    let home = profile.home(gateway);
    ensure!(
        home.learned_days() > 0,
        "no whole day, from four in the morning to the next, is learned yet: `sizeleak profile --add` adds answers"
    );
    Ok((gateway_name(gateway), home))
}

fn gateway_name(gateway: &str) -> &str {
    if gateway.is_empty() { "an unknown gateway" } else { gateway }
}
