//! The model and the labelled captures of `evaluate` and `compare`.

use std::path::PathBuf;

use clap::Args;
use sizeleak_evaluation::Evaluator;
use sizeleak_labels::LabelFile;
use sizeleak_model::ModelSet;
use sizeleak_pipeline::{Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::say;

use super::failure::Failure;
use super::help::STAGES;
use super::labelled_captures::LabelledCaptures;
use super::pipeline_variant::PipelineVariant;

/// What the figures of damaged captures cover.
pub(super) const COVERED: &str = "the figures cover everything before the damage";

/// Labelled captures, and the model that pipelines use.
#[derive(Debug, Args)]
#[command(mut_arg("labels", |labels| labels.required_unless_present("labels_from_names")))]
pub(super) struct EvaluationInput {
    /// The model, made by `sizeleak learn`
    ///
    /// Can be repeated, for several services or gateways.
    #[arg(long, value_name = "FILE", required = true, help_heading = STAGES)]
    model: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) captures: LabelledCaptures,

    /// The probability that a credible set holds
    #[arg(long, value_name = "P", default_value = "0.95", value_parser = probability, hide_short_help = true)]
    pub(super) credible: f64,
}

fn probability(text: &str) -> Result<f64, String> {
    let probability = text.parse().ok().filter(|probability| *probability > 0.0 && *probability <= 1.0);
    probability.ok_or_else(|| "it must be above 0 and at most 1".to_owned())
}

impl EvaluationInput {
    /// Reads the models and the labels.
    pub(super) fn read(&self, input: &PipelineInput, pipeline: &Pipeline) -> Result<(ModelSet, LabelFile), Failure> {
        let models = ModelSet::read(&self.model)?;
        let labels = self.captures.read_labels(input, pipeline)?;
        let unknown = labels.check_actions(models.sections())?;
        let warnings = models.sections().iter().flat_map(|model| &model.learned.warnings);
        let warnings = warnings.map(|warning| format!("the model was learned with a warning: {warning}"));
        if !self.captures.log.is_quiet() {
            unknown.into_iter().chain(warnings).for_each(|text| say("sizeleak", &text));
        }
        Ok((models, labels))
    }

    /// The evaluator of all pipelines.
    pub(super) fn evaluator<'a>(
        &self,
        models: &'a ModelSet,
        labels: &'a LabelFile,
        input: &'a PipelineInput,
    ) -> Result<Evaluator<'a>, Failure> {
        let tolerance = labels.tolerance(self.captures.tolerance);
        let evaluator = Evaluator::new(models.sections(), labels, tolerance, self.credible, input);
        evaluator.map_err(|error| Failure::from(error).context(self.names()))
    }

    fn names(&self) -> String {
        self.model.iter().map(|model| model.display().to_string()).collect::<Vec<_>>().join(", ")
    }

    /// A pipeline that uses the models.
    pub(super) fn pipeline(&self, variant: &PipelineVariant) -> Result<Pipeline, Failure> {
        let mut pipeline = match variant {
            PipelineVariant::Options(options) => {
                self.captures.pipeline(self.captures.traffic.pipeline_option(), options)?
            }
            PipelineVariant::File(file) => self.captures.pipeline(Some(file), &[])?,
        };
        pipeline.use_models(&self.model)?;
        Ok(pipeline)
    }
}
