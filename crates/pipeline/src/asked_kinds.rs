//! How far a pipeline has to run for the kinds of frame that somebody asked for.

use crate::Pipeline;
use crate::registry::OPTIONAL;
use crate::stage::PipelineStage;

/// Kinds that a stage emits besides the kind it makes, and that all later stages pass on.
const PASSED_ON: [(&str, &str); 2] = [("flow", "segments"), ("session", "record")];

impl Pipeline {
    /// The part of the pipeline that makes these kinds: it ends with the stage that makes the last of them, and a later
    /// stage consumes what this one makes, so that it must not run. Flows and sessions come out of any longer pipeline
    /// too, so they shorten it only where nothing is asked for that every stage emits, as notices are. A stage whose
    /// output is saved is never left out, and nor is one up to index `at_least`.
    #[must_use]
    pub fn making(&self, kinds: &[impl AsRef<str>], at_least: Option<usize>) -> Self {
        let mut part = self.clone();
        let saved = self.stages.iter().rposition(|stage| stage.save.is_some());
        if let Some(last) = self.last_needed(kinds) {
            part.stages.truncate(last.max(saved.unwrap_or(0)).max(at_least.unwrap_or(0)) + 1);
        }
        part
    }

    /// Those of these kinds that cannot come out of this pipeline, because one of its stages consumes them, each with
    /// that stage.
    pub fn consumed<'a>(&self, kinds: &'a [String]) -> Vec<(&'a str, &'static str)> {
        let consumer = |kind: &'a String| {
            let made = self.stages.iter().rposition(|stage| stage.entry().is_some_and(|entry| entry.makes == kind));
            let behind = self.stages.get(made? + 1..)?;
            let mut entries = behind.iter().filter_map(PipelineStage::entry);
            let is_optional = |name: &str| OPTIONAL.iter().any(|optional| optional.name == name);
            let consumer = entries.find(|entry| entry.consumes == Some(kind.as_str()) && !is_optional(entry.name))?;
            Some((kind.as_str(), consumer.name))
        };
        kinds.iter().filter_map(consumer).collect()
    }

    /// The index of the last stage that these kinds need; `None` if they need all of them.
    fn last_needed(&self, kinds: &[impl AsRef<str>]) -> Option<usize> {
        let passed_on = |kind: &str| PASSED_ON.iter().find(|(name, _)| *name == kind).map(|(_, made_with)| *made_with);
        let mut last = None;
        let (mut is_of_every_stage, mut is_made) = (kinds.is_empty(), false);
        for kind in kinds.iter().map(AsRef::as_ref) {
            let maker = self.last_maker(passed_on(kind).unwrap_or(kind));
            is_of_every_stage |= maker.is_none();
            is_made |= maker.is_some() && passed_on(kind).is_none();
            last = last.max(maker);
        }
        last.filter(|_| is_made || !is_of_every_stage)
    }

    fn last_maker(&self, kind: &str) -> Option<usize> {
        let is_next = |stage: &PipelineStage| stage.entry().is_some();
        let makes = |stage: &PipelineStage| stage.entry().is_some_and(|entry| entry.makes == kind);
        let consumes = |stage: &PipelineStage| stage.entry().is_some_and(|entry| entry.consumes == Some(kind));
        match self.stages.iter().rposition(makes) {
            Some(made) => {
                let behind = self.stages.get(made + 1..)?;
                Some(made + behind.iter().position(is_next).unwrap_or(behind.len()))
            }
            // A program of somebody makes it.
            None => self.stages.iter().position(consumes)?.checked_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn names(pipeline: &Pipeline) -> Vec<&str> {
        pipeline.stages.iter().map(PipelineStage::name).collect()
    }

    fn last_of(kinds: &[&str]) -> String {
        names(&Pipeline::standard().making(kinds, None)).last().copied().unwrap_or_default().to_owned()
    }

    #[test]
    fn pipeline_ends_with_the_stage_that_makes_the_last_kind() {
        for (kind, stage) in [
            ("packets", "capture"),
            ("segments", "flow-filter"),
            ("flow", "flow-filter"),
            ("session", "record-sizer"),
            ("record", "record-sizer"),
            ("command", "command-segmenter"),
            ("correction", "epsilon-corrector"),
            ("identification", "pruner"),
        ] {
            assert_eq!(last_of(&[kind]), stage, "{kind}");
        }
        assert_eq!(last_of(&["command", "flow"]), "command-segmenter");
        assert_eq!(last_of(&["record", "notice", "summary"]), "record-sizer");
    }

    #[test]
    fn kinds_that_every_stage_emits_or_nobody_knows_need_all_stages() {
        for kinds in [&[][..], &["notice"], &["summary", "session"], &["flow", "own_kind"], &["hello"]] {
            assert_eq!(last_of(kinds), "pruner", "{kinds:?}");
        }
    }

    #[test]
    fn saved_output_and_the_start_of_a_run_are_kept() {
        let mut pipeline = Pipeline::standard();
        assert_eq!(names(&pipeline.making(&["flow"], Some(2))).len(), 3);
        pipeline.set("decomposer", "save", "all.frames").unwrap();
        assert_eq!(names(&pipeline.making(&["record"], None)).last(), Some(&"decomposer"));
    }

    #[test]
    fn programs_behind_a_maker_or_in_its_place_are_kept() {
        let text = "[[stage]]\nrun = \"capture\"\n[[stage]]\nrun = \"flow-filter\"\n[[stage]]\nrun = \"record-sizer\"\n\
                    [[stage]]\ncommand = [\"mine\"]\nname = \"mine\"\n[[stage]]\nrun = \"epsilon-corrector\"\n";
        let pipeline = Pipeline::parse(text, Path::new("")).unwrap();
        assert_eq!(names(&pipeline.making(&["record"], None)).last(), Some(&"mine"));
        assert_eq!(names(&pipeline.making(&["command"], None)).last(), Some(&"mine"));
        assert_eq!(names(&pipeline.making(&["correction"], None)).last(), Some(&"epsilon-corrector"));
    }

    #[test]
    fn kinds_that_a_later_stage_consumes_are_named_with_it() {
        let kinds = ["record", "command", "flow", "notice"].map(str::to_owned);
        let part = Pipeline::standard().making(&kinds, None);
        assert_eq!(part.consumed(&kinds), [("record", "command-segmenter")]);
        assert_eq!(part.consumed(&["identification".to_owned()]), []);
    }
}
