//! `sizeleak plot`: the commands of a stream and their probabilities over time, as a picture.

mod axis;
mod choice;
mod drawing;
mod source;
mod timeline;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::gateway_seen::times;
use super::{Failure, write};
use choice::Choice;
use sizeleak_output::Clock;
use sizeleak_pipeline::recording::open;
use timeline::Timeline;

/// Draw the commands of a frame stream over time, as SVG
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sizeleak run pipeline.toml --format frames | sizeleak plot -o timeline.svg\n  sizeleak \
                        plot saved.ndjson --time local -o timeline.svg\n  sizeleak plot saved.frames --from 2026-01-06T08:30 --until \
                        2026-01-07 --gateway 192.168.1.20 -o morning.svg\n\nEach action has a lane, each command a bar in \
                        the lanes of its most probable actions, as high as their number and the darker the more \
                        probable they are. What a command is, stands in its tooltip."
)]
pub(crate) struct Arguments {
    /// Frames or JSON lines, as `sizeleak run --format frames` or `ndjson` writes them; `-`, or none, is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Write to FILE, not to stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Which clock the times are by
    #[arg(long, value_name = "CLOCK", value_enum, default_value_t)]
    time: Clock,

    #[command(flatten)]
    choice: Choice,

    /// Draw no more than the first so many commands
    #[arg(long, value_name = "NUMBER", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let times = times(arguments.time)?;
    let mut timeline = Timeline::new(arguments.limit as usize, arguments.choice.sieve(&times)?);
    let (input, name) = open(arguments.file.as_deref())?;
    let read = source::read(input, &mut timeline);
    tell(&timeline);
    // What was whole before a damage is drawn all the same.
    let mut picture = Vec::new();
    svg::write(&mut picture, &drawing::draw(&timeline, &times))?;
    picture.push(b'\n');
    write(arguments.output.as_deref(), &picture)?;
    read.map(|()| ExitCode::SUCCESS).map_err(|error| {
        let code = if error.is_cut() { 3 } else { 1 };
        Failure::with_code(code, anyhow::anyhow!("{name}: {error}"))
    })
}

/// Says what the picture does not show.
fn tell(timeline: &Timeline) {
    let drawn = timeline.marks.len() as u64;
    if timeline.commands == 0 && timeline.others > 0 {
        eprintln!("sizeleak: none of {} commands is of the times, gateways and flows to draw", timeline.others);
    } else if timeline.commands == 0 {
        eprintln!("sizeleak: there is no identification to draw: those come from the decomposer and the pruner");
    } else if drawn < timeline.commands {
        eprintln!("sizeleak: the first {drawn} of {} commands are drawn (--limit sets how many)", timeline.commands);
    }
}
