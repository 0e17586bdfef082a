//! `sizeleak audit` on labelled captures: how much these show that sizes give away, and how sure that is.

mod model_check;
mod report;
mod samples;
mod secrets;
mod table;

use std::path::Path;

use sizeleak_audit::leakage::Secret;
use sizeleak_inference::space::Premises;
use sizeleak_learning::LabelledCommands;
use sizeleak_model::{Inventory, Model};
use sizeleak_pipeline::{Pipeline, RunError};
use sizeleak_platform::telemetry::log::say;

use crate::command::evaluation_input::COVERED;
use crate::command::failure::Failure;
use crate::command::labelled_captures::LabelledCaptures;
use crate::command::notices::NoticeReport;
use crate::command::output_option::written_report;
use crate::command::report_format::ReportFormat;

use model_check::ModelCheck;
use report::MeasuredAudit;
pub(super) use secrets::SeenBy;

/// The first stage that needs a model of sizes.
const CORRECTOR: &str = "epsilon-corrector";

/// Labelled captures to be audited.
#[derive(Debug)]
pub(super) struct MeasuredRequest<'a> {
    pub(super) captures: &'a LabelledCaptures,
    pub(super) pipeline: Pipeline,
    /// The model whose observer is tested on them, if there is one.
    pub(super) model: Option<TestedModel<'a>>,
    /// The devices, if they are known.
    pub(super) inventory: Option<Inventory>,
    pub(super) seed: u64,
}

/// A model whose figures are compared with what is measured.
#[derive(Debug)]
pub(super) struct TestedModel<'a> {
    pub(super) path: &'a Path,
    pub(super) model: Model,
    pub(super) premises: Premises,
}

/// What is written of labelled captures.
#[derive(Debug, Clone, Copy)]
pub(super) enum MeasuredOutput {
    Report(ReportFormat),
    /// A row of numbers for each labelled command.
    Samples(Secret, SeenBy),
}

/// What is written, and what is wrong with the captures.
#[derive(Debug)]
pub(super) struct MeasuredText {
    pub(super) text: Vec<u8>,
    damage: Option<RunError>,
}

impl MeasuredRequest<'_> {
    /// Finds the labelled commands and says what they show.
    pub(super) fn written(&self, output: MeasuredOutput) -> Result<MeasuredText, Failure> {
        let commands = self.commands()?;
        let text = match output {
            MeasuredOutput::Samples(secret, seen) => {
                samples::csv(&commands, self.inventory.as_ref(), secret, seen)?.into_bytes()
            }
            MeasuredOutput::Report(format) => {
                let check = self.model.as_ref().map(|tested| self.check(tested, &commands)).transpose()?;
                let report = MeasuredAudit::new(&commands, self.inventory.as_ref(), check, self.seed);
                written_report(&report, format, || table::table(&report))?
            }
        };
        Ok(MeasuredText { text, damage: commands.damage })
    }

    /// The labelled commands. What is to be said of labels goes to stderr.
    fn commands(&self) -> Result<LabelledCommands, Failure> {
        let log = &self.captures.log;
        let mut pipeline = self.pipeline.clone();
        if let Some(tested) = &self.model {
            pipeline.use_models(&[tested.path.to_owned()])?;
        }
        let traffic = self.captures.input(&pipeline)?;
        let labels = self.captures.read_labels(&traffic, &pipeline)?;
        let tolerance = labels.tolerance(self.captures.tolerance);
        let mut notices = NoticeReport::new(log);
        let finding = pipeline.before(CORRECTOR);
        let found = LabelledCommands::find(&traffic, &finding, &labels, tolerance, &mut |notice| notices.add(notice));
        notices.print(&found, |found| found.damage.as_ref());
        let found = found?;
        if !log.is_quiet() {
            found.remarks.iter().for_each(|remark| say("note", remark));
        }
        Ok(found)
    }

    fn check(&self, tested: &TestedModel<'_>, commands: &LabelledCommands) -> Result<ModelCheck, Failure> {
        let known = self.captures.digests()?;
        let is_same = |sha256: &str| known.iter().any(|capture| capture.sha256 == sha256);
        let learned = tested.model.learned.captures.iter().filter(|capture| is_same(&capture.sha256));
        let learned = learned.map(|capture| capture.name.clone()).collect();
        Ok(ModelCheck::new(&tested.model, &tested.premises, commands, learned))
    }
}

impl MeasuredText {
    /// Fails where the captures are damaged: the figures, which have been written, cover what is before that.
    pub(super) fn check_damage(&self) -> Result<(), Failure> {
        self.damage.as_ref().map_or(Ok(()), |damage| Err(Failure::damaged(damage, COVERED)))
    }
}
