//! What the figures of an evaluation would be if commands were padded.

use std::fs;

use anyhow::Context;
use serde::Serialize;
use sizeleak_evaluation::{Conclusion, Evaluation, JudgedRun, PaddedInput, PaddingOverhead, Score};
use sizeleak_labels::LabelFile;
use sizeleak_model::policies::PaddingPolicy;
use sizeleak_model::{LearnedPadding, ModelSet};
use sizeleak_pipeline::{Pipeline, PipelineInput};
use sizeleak_report::document::{Figure, Value};
use sizeleak_text::percent;

use super::table::ROWS;
use crate::command::document::{Document, blank, figure, paragraph};
use crate::command::evaluation_input::EvaluationInput;
use crate::command::failure::Failure;

#[derive(Debug, Clone, Copy)]
pub(super) struct Unpadded<'a> {
    pub(super) input: &'a EvaluationInput,
    pub(super) traffic: &'a PipelineInput,
    pub(super) pipeline: &'a Pipeline,
    pub(super) models: &'a ModelSet,
    pub(super) labels: &'a LabelFile,
}

/// The figures of the same commands if they were padded, against an observer who knows the policy.
#[derive(Debug, Serialize)]
pub(super) struct WhatIf {
    policy: String,
    #[serde(flatten)]
    cost: PaddingOverhead,
    /// The bytes that padding adds, as a share of those without.
    overhead: f64,
    conclusion: Conclusion,
    before_pruning: Option<Score>,
    after_pruning: Score,
}

impl Unpadded<'_> {
    /// Pads the commands, and evaluates the model that knows the policy.
    pub(super) fn padded_by(self, policy: &PaddingPolicy, prior_bits: Option<f64>) -> Result<WhatIf, Failure> {
        let Self { input, traffic, pipeline, models, labels } = self;
        let padded = PaddedInput::new(traffic, pipeline, models.sections(), policy)?;
        let mut sections = models.sections().to_vec();
        for model in &mut sections {
            model.learned.padding = Some(LearnedPadding::Policy(policy.clone()));
        }
        let models = ModelSet::new(sections).map_err(anyhow::Error::new)?;
        let folder = tempfile::Builder::new().prefix("sizeleak-").tempdir().context("a temporary folder")?;
        let file = folder.path().join("model.toml");
        fs::write(&file, models.to_toml()).with_context(|| file.display().to_string())?;
        let mut pipeline = pipeline.clone();
        pipeline.use_models(&[&file])?;
        let evaluator = input.evaluator(&models, labels, &padded.input)?;
        let run = evaluator.judge(&pipeline, &mut |_| {}).and_then(JudgedRun::with_candidates)?;
        let Evaluation { conclusion, before_pruning, after_pruning, .. } = Evaluation::new(&run, prior_bits);
        let (policy, cost) = (policy.to_string(), padded.overhead);
        Ok(WhatIf { policy, cost, overhead: cost.share(), conclusion, before_pruning, after_pruning })
    }
}

/// Which of the figures of an evaluation are shown.
const SHOWN: [&str; 6] = [
    "truth the first candidate",
    "exactly one candidate",
    "no candidate",
    "candidates, mean",
    "candidates, median",
    "credible set, mean size",
];

pub(super) fn table(evaluation: &Evaluation, what_if: &WhatIf) -> Document {
    let WhatIf { policy, cost, overhead, before_pruning, after_pruning, .. } = what_if;
    let PaddingOverhead { commands, bytes, added_bytes } = cost;
    let mean = |bytes: &u64| *bytes as f64 / (*commands).max(1) as f64;
    let rows = |name: &str, captured: &Score, padded: &Score| {
        let title = [name, "", ""].map(Value::from);
        let shown = ROWS.iter().filter(|row| SHOWN.contains(&row.0));
        let figures = shown.map(|(name, value)| [format!("  {name}").into(), value(captured), value(padded)]);
        std::iter::once(title).chain(figures).collect::<Vec<_>>()
    };
    let by_size = evaluation.before_pruning.as_ref().zip(before_pruning.as_ref());
    let mut all = by_size.map_or_else(Vec::new, |(captured, padded)| rows("by the size", captured, padded));
    let name = if by_size.is_some() { "in the end" } else { "" };
    all.extend(rows(name, &evaluation.after_pruning, after_pruning));
    let sentence = format!(
        "if commands were padded ({policy}): {added_bytes} bytes more in {commands} commands, {} of {bytes} ({:.1} on \
         {:.1} bytes each); to an observer who knows the policy",
        percent(*overhead),
        mean(added_bytes),
        mean(bytes),
    );
    [blank(), paragraph(sentence, 0), figure(&Figure::new("what-if", " | as captured | padded", all))].concat()
}
