//! The model and the labelled captures of `evaluate`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Result;
use clap::Args;
use sizeleak_evaluation::Evaluator;
use sizeleak_evaluation::measured_leak::PermutationTest;
use sizeleak_learning::labels::LabelFile;
use sizeleak_model::ModelSet;
use sizeleak_pipeline::{Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::say;

use super::failure::usage;
use super::labels::{LabelReading, LabelledCaptures};
use super::session::{Content, STANDARD};
use super::shared_options::{INPUT, STAGES, share};
use super::traffic_input::both_pipelines;

pub(super) const COVERED: &str = "the figures cover everything before the damage";

#[derive(Debug, Args)]
pub(super) struct EvaluationInput {
    /// The model, made by `sizeleak learn`; can be repeated, for several services [default: that of the pipeline file]
    #[arg(long, value_name = "FILE", help_heading = STAGES)]
    model: Vec<PathBuf>,

    /// The pipeline file that options of stages change, instead of the standard pipeline
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pipeline: Option<PathBuf>,

    #[command(flatten)]
    pub(super) captures: LabelledCaptures,

    #[command(flatten)]
    pub(super) reading: LabelReading,

    /// The probability that a credible set holds
    #[arg(long, value_name = "P", default_value = "0.95", value_parser = share)]
    pub(super) credible: f64,
}

impl EvaluationInput {
    pub(super) fn variants(&self) -> Result<Vec<PipelineVariant>> {
        let operands = self.captures.traffic.operands.iter();
        let named = operands.filter(|operand| matches!(operand.content, Content::Pipeline | Content::Settings));
        let variants = named.map(|operand| operand.path.to_string_lossy().parse());
        variants.collect::<Result<_, _>>().map_err(|fault: String| usage!(fault))
    }

    pub(super) fn only_pipeline(&self) -> Result<Pipeline> {
        let named = self.captures.traffic.pipeline()?;
        if let (Some(named), Some(option)) = (named, &self.pipeline) {
            return Err(both_pipelines(option, named));
        }
        self.pipeline(&PipelineVariant { file: named.map(Path::to_owned), ..PipelineVariant::default() }, false)
    }

    pub(super) fn models(pipeline: &Pipeline) -> Result<ModelSet> {
        let models = pipeline.models();
        if models.is_empty() {
            return Err(usage!("the model is missing: name it with `--model FILE`"));
        }
        Ok(ModelSet::read(&models)?)
    }

    pub(super) fn read(&self, input: &PipelineInput, pipeline: &Pipeline) -> Result<(ModelSet, LabelFile)> {
        let models = Self::models(pipeline)?;
        let labels = self.captures.read_labels(input, pipeline, Some(&self.reading))?;
        let unknown = labels.check_actions(models.sections())?;
        let warnings = models.sections().iter().flat_map(|model| &model.learned.warnings);
        let warnings = warnings.map(|warning| format!("the model was learned with a warning: {warning}"));
        unknown.into_iter().chain(warnings).for_each(|text| say("sizeleak", &text));
        Ok((models, labels))
    }

    pub(super) fn evaluator<'a>(
        &self,
        models: &'a ModelSet,
        labels: &'a LabelFile,
        input: &'a PipelineInput,
    ) -> Result<Evaluator<'a>> {
        let tolerance = labels.tolerance(self.captures.tolerance);
        let evaluator = Evaluator::new(models.sections(), labels, tolerance, self.credible, input);
        Ok(evaluator?)
    }

    /// A pipeline with the models that are named, or else with its own. `keeps_own`: one that has models keeps them whatever is named.
    pub(super) fn pipeline(&self, variant: &PipelineVariant, keeps_own: bool) -> Result<Pipeline> {
        let file = variant.file.as_deref().or(self.pipeline.as_deref());
        let own = file.map(Pipeline::read).transpose()?.map_or_else(Vec::new, |pipeline| pipeline.models());
        let keeps_own = self.model.is_empty() || keeps_own && !own.is_empty();
        self.captures.pipeline(file, if keeps_own { &own } else { &self.model }, &variant.options)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PipelineVariant {
    /// As it was given.
    pub(super) name: String,
    /// Its file; `None` for the one that `--pipeline` names, or the standard pipeline.
    file: Option<PathBuf>,
    /// Options of stages that change it, `stage.key=value` each.
    options: Vec<String>,
}

impl FromStr for PipelineVariant {
    type Err = String;

    /// Reads options separated by commas, the word `standard`, or the path of a pipeline file. A value may contain
    /// commas: a part without `=` belongs to the option before it.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut variant = Self { name: text.to_owned(), ..Self::default() };
        if text == STANDARD {
            return Ok(variant);
        }
        for part in text.split(',') {
            match variant.options.last_mut() {
                _ if part.contains('=') => variant.options.push(part.to_owned()),
                Some(last) => last.extend([",", part]),
                None if text.is_empty() => return Err("it is empty: name options or a pipeline file".to_owned()),
                None => return Ok(Self { file: Some(text.into()), ..variant }),
            }
        }
        Ok(variant)
    }
}

/// A p-value; no smaller one could have been found where the labels dealt out anew never fit as well.
pub(super) fn p_in_words(test: &PermutationTest) -> String {
    format!("{} {:.3}", if test.is_least() { "≤" } else { "=" }, test.p_value)
}

/// Labels are said to follow each other in a row if chance orders them so with at most this probability.
const IN_A_ROW: f64 = 0.01;

/// That what changes with time cannot be told from what actions do.
pub(super) fn order_remark(order: &PermutationTest) -> Option<String> {
    (order.p_value <= IN_A_ROW).then(|| {
        format!(
            "equal commands follow each other more often than chance orders them (p {}): what changes with time, such as a \
             message number, is not told from what actions do; record commands in random order",
            p_in_words(order)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_p_value_that_could_not_be_smaller_is_a_bound() {
        let order = |as_great| PermutationTest { permutations: 999, as_great, p_value: (as_great + 1) as f64 / 1000.0 };
        assert!(order_remark(&order(0)).is_some_and(|remark| remark.contains("orders them (p ≤ 0.001): ")));
        assert!(order_remark(&order(4)).is_some_and(|remark| remark.contains("orders them (p = 0.005): ")));
        assert_eq!(order_remark(&order(40)), None);
    }

    #[test]
    fn variants_are_options_or_a_file() {
        for (text, file, options) in [
            ("pruner.mode=paper", None, &["pruner.mode=paper"][..]),
            ("a.gap=1s,b.keep=0.9", None, &["a.gap=1s", "b.keep=0.9"]),
            ("f.gateway=10.0.0.1,10.0.0.2,b.keep=1", None, &["f.gateway=10.0.0.1,10.0.0.2", "b.keep=1"]),
            ("own/pipeline.toml", Some("own/pipeline.toml"), &[]),
            ("standard", None, &[]),
            ("./standard", Some("./standard"), &[]),
        ] {
            let variant: PipelineVariant = text.parse().unwrap();
            assert_eq!(
                (variant.file.as_deref(), variant.options),
                (file.map(Path::new), options.iter().map(ToString::to_string).collect())
            );
            assert_eq!(variant.name, text, "it is shown as it was given");
        }
        assert!("".parse::<PipelineVariant>().is_err());
    }
}
