//! `sizeleak learn`: a model of a gateway, from captures whose commands are labelled, or few of them, or none.

mod summary;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use sizeleak_frame::Notice;
use sizeleak_learning::labels::{LabelFile, Tolerance};
use sizeleak_learning::{FoundSizes, LearningError, LearningOutcome, LearningRun, LearningSettings, UnlabelledRun};
use sizeleak_model::{FitMethod, Inventory, ModelSet};
use sizeleak_pipeline::{Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::{self, show};
use sizeleak_text::counted;

use super::document::{as_text, stderr_columns};
use super::failure::{check_damage, damaged, usage};
use super::labels::{CORRECTOR, LabelReading, LabelledCaptures};
use super::notices::NoticeReport;
use super::output_option::{write, write_result};
use super::session::Session;
use super::shared_options::{LearningOptions, OUTPUT};

/// Learn a gateway's sizes from captures, with labels or without
#[derive(Debug, Args)]
#[command(mut_arg("labels_from_names", LabelReading::excluded_by))]
#[command(after_long_help = "Examples:\n  \
    sizeleak learn learn.pcap --labels learn.csv --gateway 192.168.1.20 --inventory inventory.toml -o model.toml\n  \
    sizeleak learn monday.pcap tuesday.pcap --labels both.csv --gateway fd00::20 --method paper -o paper.toml\n  \
    sizeleak learn week.pcap --gateway 192.168.1.20 -o model.toml\n\n\
    Without labels, or where labels leave sizes open and most commands have none, sizes are learned from the sizes and \
    replies of all commands: actions are `action-1` and so on until one labelled command of each names them. What the \
    commands do not tell is said, or refused. `--labelled-only` learns from labelled commands alone.\n\n\
    Each label is matched with the command nearest in time; labels and commands without a partner are reported, not \
    guessed. If a capture is damaged, the model is learned from everything before the damage, and the exit code is 1.\n\n\
    Labels that do not determine every size (actions that never occur, or only together with others) are an error that \
    names the fewest commands to record next; `--suggest next.csv` writes them as labels to fill in.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    captures: LabelledCaptures,

    #[command(flatten)]
    reading: LabelReading,

    #[command(flatten)]
    options: LearningOptions,

    /// Where to write the model; `-` is stdout
    #[arg(short, long, short_alias = 'w', value_name = "FILE", help_heading = OUTPUT)]
    output: PathBuf,

    /// Write the fewest commands to record next, as a label file without times; without rows if nothing is missing
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    suggest: Option<PathBuf>,

    /// Learn from labelled commands alone, also where they leave sizes open
    #[arg(long)]
    labelled_only: bool,
}

pub(crate) fn run(arguments: &Arguments, session: &mut Session) -> Result<()> {
    let captures = &arguments.captures;
    arguments.check_use()?;
    let pipeline = captures.pipeline(captures.traffic.pipeline()?, &[], &[])?;
    session.check(&pipeline)?;
    let traffic = captures.input(&pipeline)?;
    let learning = arguments.options.settings(captures.digests(&pipeline)?)?;
    let (input, labelled_only) = (&traffic, arguments.labelled_only);
    let settings = LessonSettings { input, pipeline: &pipeline, labelled_only, learning };
    let mut labels = None;
    if captures.are_labelled() {
        let inventory = settings.learning.inventory.as_ref();
        labels = Some(captures.read_labels(&traffic, &pipeline, Some(&arguments.reading))?.within(inventory)?);
    }
    let labels = labels.as_ref().map(|labels| (labels, labels.tolerance(captures.tolerance)));

    let lesson = NoticeReport::of(|notices| settings.learn(labels, notices), |lesson| lesson.outcome.damage.as_ref());
    let Lesson { outcome, found, tolerance } = lesson?;
    let LearningOutcome { learned, commands, labels, damage, .. } = outcome;
    if let Some(path) = &arguments.suggest {
        let plan = match &learned {
            Ok(sections) => sections.first().map(|learned| learned.plan.clone()).unwrap_or_default(),
            Err(_) => settings.run(&labels, tolerance).training_set(&labels, &commands).plan()?,
        };
        write(path, &plan.label_template()?)?;
    }
    let learned = learned.map_err(|error| match &damage {
        None => error.into(),
        Some(damage) => damaged(damage, &format!("and from everything before that: {error}")),
    })?;
    let models = ModelSet::new(learned.iter().map(|section| section.model.clone()).collect());
    let models = models.with_context(|| labels.path().display().to_string())?;
    write_result(&arguments.output, models.to_toml().as_bytes())?;
    let summary = summary::summary(&learned, found.as_ref(), log::is_verbose());
    show(as_text(&summary, stderr_columns()).trim_end());
    check_damage(damage.as_ref(), "the model was learned from everything before the damage")
}

impl Arguments {
    fn check_use(&self) -> Result<()> {
        if self.captures.are_labelled() {
            return Ok(());
        }
        let needing = [
            (self.suggest.is_some(), "--suggest"),
            (self.labelled_only, "--labelled-only"),
            (self.options.labels_are_complete, "--labels-are-complete"),
            (self.options.method == FitMethod::Paper, "--method paper"),
            (self.options.padding.is_some(), "--padding"),
        ];
        let used = needing.into_iter().find(|(is_used, _)| *is_used);
        used.map_or(Ok(()), |(_, option)| Err(usage!("`{option}` needs labels: name them with `--labels`")))
    }
}

#[derive(Debug)]
struct Lesson {
    outcome: LearningOutcome,
    /// What commands without labels said, if that was learned from.
    found: Option<FoundSizes>,
    /// How far commands were from the labels of the outcome.
    tolerance: Tolerance,
}

#[derive(Debug)]
struct LessonSettings<'a> {
    input: &'a PipelineInput,
    pipeline: &'a Pipeline,
    labelled_only: bool,
    learning: LearningSettings,
}

impl LessonSettings<'_> {
    fn run<'a>(&'a self, labels: &'a LabelFile, tolerance: Tolerance) -> LearningRun<'a> {
        LearningRun { labels, input: self.input, tolerance, settings: &self.learning }
    }

    /// Learns from the labels. Where there are none, or they leave sizes open, learns from the other commands too.
    fn learn(
        &self,
        labels: Option<(&LabelFile, Tolerance)>,
        notices: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<Lesson, LearningError> {
        let Some((labels, tolerance)) = labels else {
            let found = self.find(None, notices)?;
            return match found.doubt() {
                Some(doubt) => Err(LearningError::Unsettled(doubt)),
                None => self.learn_found(found),
            };
        };
        let run = self.run(labels, tolerance);
        let mut outcome = run.learn(&self.pipeline.before(CORRECTOR), notices)?;
        if self.labelled_only || !outcome.needs_more(&self.learning) {
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
        if !doubt.is_empty() {
            outcome.remark(format!("the commands without labels do not tell more: {doubt}"));
        }
        Ok(Lesson { outcome, found: None, tolerance })
    }

    fn find(
        &self,
        labels: Option<(&LabelFile, Tolerance)>,
        notices: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<FoundSizes, LearningError> {
        let run = UnlabelledRun { input: self.input, labels, cipher: self.learning.cipher.clone() };
        run.find(self.pipeline, notices)
    }

    fn learn_found(&self, found: FoundSizes) -> Result<Lesson, LearningError> {
        let tolerance = Tolerance::EXACT;
        let known: BTreeSet<&str> = self.learning.inventory.iter().flat_map(Inventory::action_names).collect();
        let nameless = found.names.iter().filter(|name| !known.contains(name.as_str())).count();
        let inventory = self.learning.inventory.clone().filter(|_| nameless == 0);
        let settings = LearningSettings { labels_are_complete: false, inventory, ..self.learning.clone() };
        let run = LearningRun { settings: &settings, ..self.run(&found.labels, tolerance) };
        let mut outcome = run.learn(&self.pipeline.before(CORRECTOR), &mut |_| {})?;
        if let Some(learned) = outcome.first_mut() {
            learned.remarks.extend(found.remarks.iter().cloned());
            if self.learning.inventory.is_some() && nameless > 0 {
                learned.remarks.push(format!(
                    "the inventory is not used: {} no name; label one command of each",
                    counted(nameless, "action has", "actions have")
                ));
            }
            let warnings = summary::warnings_of_found(&found, learned);
            learned.model.learned.warnings.extend(warnings);
        }
        Ok(Lesson { outcome, found: Some(found), tolerance })
    }
}
