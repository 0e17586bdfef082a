//! The file `./pipeline.toml`, which `sizeleak run` uses where the user names no pipeline.

use std::path::Path;

use anyhow::anyhow;
use sizeleak_pipeline::Pipeline;
use sizeleak_pipeline::registry::STAGES;
use sizeleak_platform::telemetry::log::say;

use super::failure::Failure;
use super::traffic_input::TrafficInput;

/// Where it is.
const FILE: &str = "pipeline.toml";

/// The key of stages that use a model.
const MODEL: &str = "model";

/// Says that a pipeline is used that was found, not named.
pub(super) fn report() {
    say("sizeleak", &format!("pipeline ./{FILE}"));
}

/// A pipeline that was found, not named.
#[derive(Debug)]
pub(super) struct FoundPipeline(Pipeline);

impl FoundPipeline {
    /// The pipeline of the current folder, if none is named and there is one.
    pub(super) fn of(input: &TrafficInput) -> Result<Option<Self>, Failure> {
        let file = Path::new(FILE);
        if input.pipeline()?.is_some() || !file.is_file() {
            return Ok(None);
        }
        Ok(Some(Self(Pipeline::read(file)?)))
    }

    /// The pipeline as it is in the file.
    pub(super) fn pipeline(&self) -> &Pipeline {
        &self.0
    }

    /// Checks that captures which the user names are not answered with a model that only the file names: they may be of
    /// another gateway. Only the stages that make these kinds run.
    pub(super) fn check(&self, input: &TrafficInput, kinds: &[String]) -> Result<(), Failure> {
        if input.captures()?.is_empty() { Ok(()) } else { refuse_model(&self.0.making(kinds, None)) }
    }

    /// Checks the same of a saved stream, which the stage at this index made.
    pub(super) fn check_behind(&self, index: usize, kinds: &[String]) -> Result<(), Failure> {
        refuse_model(&self.0.making(kinds, Some(index)).behind(index))
    }
}

/// Refuses stages that are found with a model.
fn refuse_model(pipeline: &Pipeline) -> Result<(), Failure> {
    let Some(model) = STAGES.iter().find_map(|stage| pipeline.option(stage.name, MODEL)) else { return Ok(()) };
    let model = model.as_str().map_or_else(|| model.to_string(), str::to_owned);
    Err(Failure::usage(anyhow!(
        "the input is named here, but its model only in ./{FILE} ({model}), which may be of another gateway: name the \
         model with `--model FILE`, use that pipeline with `sizeleak run {FILE} …`, or run the standard pipeline from \
         another folder"
    )))
}
