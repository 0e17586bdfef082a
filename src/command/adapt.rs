//! `sizeleak adapt`: a model of a gateway whose messages have become longer or shorter.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use sizeleak_learning::{Adaptation, AdaptationRun};
use sizeleak_model::ModelSet;
use sizeleak_pipeline::{InputSource, PipelineInput};
use sizeleak_platform::telemetry::log::say;

use super::failure::{NoticeReport, check_damage};
use super::output_option::write_result;
use super::session::Session;
use super::shared_options::{OUTPUT, STAGES};
use super::traffic_input::{StageOptionArguments, TrafficInput};

/// Adapt a model to messages that have become longer or shorter
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    sizeleak adapt today.pcap --model model.toml --gateway 192.168.1.20 -o adapted.toml\n  \
    sizeleak adapt records.frames.zst --model model.toml -o adapted.toml\n\n\
    A firmware update or a longer message id makes all commands longer by a few bytes. `run` follows that (the notice \
    `shifted`); this command writes it into the model. Changes of more than 64 bytes are not followed: learn a new model. \
    If no change is certain at the end of the captures, nothing is written, and the exit code is 1.")]
pub(crate) struct Arguments {
    /// The model to adapt, made by `sizeleak learn`
    #[arg(long, value_name = "FILE", help_heading = STAGES)]
    model: PathBuf,

    #[command(flatten)]
    traffic: TrafficInput,

    #[command(flatten)]
    options: StageOptionArguments,

    /// Where to write the model; `-` is stdout
    #[arg(short, long, short_alias = 'w', value_name = "FILE", help_heading = OUTPUT)]
    output: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, session: &mut Session) -> Result<()> {
    let Arguments { traffic, options, .. } = arguments;
    let model = std::slice::from_ref(&arguments.model);
    let pipeline = traffic.rereadable(traffic.pipeline()?, model, options, &[])?;
    let streams = traffic.streams();
    session.check(&pipeline)?;
    let models = ModelSet::read(model)?;
    let source = if streams.is_empty() { InputSource::Captures } else { InputSource::Streams(streams) };
    let input = PipelineInput::new(source);
    let run = AdaptationRun { input: &input, models };
    let adapted = NoticeReport::of(|notices| run.adapt(&pipeline, notices), |adapted| adapted.damage.as_ref());
    let Adaptation { models, changes, damage } = adapted?;
    write_result(&arguments.output, models.to_toml().as_bytes())?;
    for change in &changes {
        say("sizeleak", &change.to_string());
    }
    check_damage(damage.as_ref(), "the model was adapted to everything before the damage")
}
