//! What is learned from: the labels, or what sizes and replies say of commands without labels.

use std::collections::BTreeSet;

use sizeleak_labels::{LabelFile, Tolerance};
use sizeleak_learning::{FoundSizes, LearningError, LearningOutcome, LearningRun, LearningSettings, UnlabelledRun};
use sizeleak_model::{FitMethod, Inventory};
use sizeleak_pipeline::{Pipeline, PipelineInput};

use super::found_sizes;
use crate::command::notices::NoticeReport;

/// Sizes are looked for in commands without labels if there are at least so many of them…
const MIN_UNLABELLED: usize = 60;

/// …and so many for each label.
const MIN_FOR_EACH_LABEL: usize = 2;

/// The first stage that needs a model of sizes.
const CORRECTOR: &str = "epsilon-corrector";

/// What a model was learned from, and the model.
#[derive(Debug)]
pub(super) struct Lesson {
    pub(super) outcome: LearningOutcome,
    /// What commands without labels said, if that was learned from.
    pub(super) found: Option<FoundSizes>,
    /// How far commands were from the labels of the outcome.
    pub(super) tolerance: Tolerance,
}

/// How is learned, whatever the labels.
#[derive(Debug)]
pub(super) struct LessonSettings<'a> {
    pub(super) input: &'a PipelineInput,
    pub(super) pipeline: &'a Pipeline,
    pub(super) labelled_only: bool,
    pub(super) learning: LearningSettings,
}

impl LessonSettings<'_> {
    /// A run over labels.
    pub(super) fn run<'a>(&'a self, labels: &'a LabelFile, tolerance: Tolerance) -> LearningRun<'a> {
        LearningRun { labels, input: self.input, tolerance, settings: &self.learning }
    }

    /// Learns from the labels. Where there are none, or they leave sizes open, learns from the other commands too.
    pub(super) fn learn(
        &self,
        labels: Option<(&LabelFile, Tolerance)>,
        notices: &mut NoticeReport,
    ) -> Result<Lesson, LearningError> {
        let Some((labels, tolerance)) = labels else {
            let found = self.find(None, notices)?;
            return match found.doubt() {
                Some(doubt) => Err(LearningError::Unsettled(doubt)),
                None => self.learn_found(found),
            };
        };
        let run = self.run(labels, tolerance);
        let mut outcome = run.learn(&self.pipeline.before(CORRECTOR), &mut |notice| notices.add(notice))?;
        if !self.needs_more(&outcome) {
            return Ok(Lesson { outcome, found: None, tolerance });
        }
        let doubt = match self.find(Some((labels, tolerance)), notices) {
            Ok(found) => match found.doubt() {
                None if found.fit.alternatives.is_empty() => return self.learn_found(found),
                None => "other sizes explain them nearly as well".to_owned(),
                Some(doubt) => doubt,
            },
            Err(error @ LearningError::BlindFit(_)) => error.to_string(),
            Err(LearningError::HiddenSizes | LearningError::NoSizes) => String::new(),
            Err(error) => return Err(error),
        };
        if let Some(learned) = outcome.learned.as_mut().ok().and_then(|sections| sections.first_mut())
            && !doubt.is_empty()
        {
            learned.remarks.push(format!("the commands without labels do not tell more: {doubt}"));
        }
        Ok(Lesson { outcome, found: None, tolerance })
    }

    /// Whether labels leave open what the commands without labels may tell.
    fn needs_more(&self, outcome: &LearningOutcome) -> bool {
        let first = outcome.learned.as_ref().ok().and_then(|sections| sections.first());
        let rows = outcome.labels.labels().rows.len();
        let unlabelled = outcome.commands.len().saturating_sub(rows);
        !self.labelled_only
            && self.learning.padding.is_none()
            && self.learning.method == FitMethod::Robust
            && first.is_none_or(|learned| learned.leaves_sizes_open)
            && unlabelled >= MIN_UNLABELLED.max(MIN_FOR_EACH_LABEL * rows)
    }

    fn find(
        &self,
        labels: Option<(&LabelFile, Tolerance)>,
        notices: &mut NoticeReport,
    ) -> Result<FoundSizes, LearningError> {
        let run = UnlabelledRun { input: self.input, labels, cipher: self.learning.cipher.clone() };
        run.find(self.pipeline, &mut |notice| notices.add(notice))
    }

    /// Learns from what the commands without labels said.
    fn learn_found(&self, found: FoundSizes) -> Result<Lesson, LearningError> {
        let tolerance = Tolerance::EXACT;
        let known: BTreeSet<&str> = self.learning.inventory.iter().flat_map(Inventory::action_names).collect();
        let nameless = found.names.iter().filter(|name| !known.contains(name.as_str())).count();
        let inventory = self.learning.inventory.clone().filter(|_| nameless == 0);
        let settings = LearningSettings { labels_are_complete: false, inventory, ..self.learning.clone() };
        let run = LearningRun { settings: &settings, ..self.run(&found.labels, tolerance) };
        let mut outcome = run.learn(&self.pipeline.before(CORRECTOR), &mut |_| {})?;
        if let Some(learned) = outcome.learned.as_mut().ok().and_then(|sections| sections.first_mut()) {
            learned.remarks.extend(found.remarks.iter().cloned());
            if self.learning.inventory.is_some() && nameless > 0 {
                learned.remarks.push(format!(
                    "the inventory is not used: {nameless} actions have no name; label one command of each"
                ));
            }
            let warnings = found_sizes::warnings(&found, learned);
            learned.model.learned.warnings.extend(warnings.iter().cloned());
            learned.warnings.extend(warnings);
        }
        Ok(Lesson { outcome, found: Some(found), tolerance })
    }
}
