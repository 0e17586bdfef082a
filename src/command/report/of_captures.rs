//! What labelled captures show: how good a model's answers are, what is learned without one, and how fast.

use anyhow::{Result, anyhow};
use sizeleak_evaluation::measured_leak::{MeasuredLeak, MeasuredShare};
use sizeleak_evaluation::{CurveInput, Evaluation, Evaluator, JudgedRun, LabelCounts, LearningCurve};
use sizeleak_labels::{LabelFile, Tolerance};
use sizeleak_learning::{LearningOutcome, LearningRun, LearningSettings};
use sizeleak_model::{FitMethod, Model, ModelSet};
use sizeleak_pipeline::{Pipeline, PipelineInput};
use sizeleak_report::document::{Section, Tile, TileRow, Verdict};
use sizeleak_report::{Observed, judged, leak};

use super::arguments::Arguments;
use crate::command::evaluation_input::COVERED;
use crate::command::failure::damaged;
use crate::command::measure::model_check::ModelCheck;
use crate::command::measure::report::{MeasuredAudit, MeasuredSecrets};
use crate::command::measure::table::named;
use crate::command::measure::{CORRECTOR, labelled_commands};

/// How probable a credible set is to hold the truth, as `sizeleak evaluate` has it.
const CREDIBLE: f64 = 0.95;

/// The seed of permutations, as `sizeleak measure` has it.
const SEED: u64 = 1;

pub(super) struct CaptureFindings {
    pub(super) verdict: Verdict,
    /// Of the command, as a model's answers name it where there is a model; else of all secrets, by labels alone.
    pub(super) tiles: Vec<Tile>,
    pub(super) sections: Vec<Section>,
    pub(super) damage: Option<anyhow::Error>,
}

struct Labelled<'a> {
    arguments: &'a Arguments,
    /// The stages that find commands; what learns from them takes no model.
    pipeline: Pipeline,
    traffic: PipelineInput,
    labels: LabelFile,
    tolerance: Tolerance,
}

impl CaptureFindings {
    pub(super) fn new(arguments: &Arguments, model: Option<&Model>, observed: &mut Observed) -> Result<Self> {
        let captures = &arguments.captures;
        let pipeline = captures.pipeline(
            captures.traffic.pipeline()?,
            arguments.audited.path().map_or(&[], std::slice::from_ref),
            &[],
        )?;
        let traffic = captures.input(&pipeline)?;
        let labels = captures.read_labels(&traffic, &pipeline)?;
        let tolerance = labels.tolerance(captures.tolerance);
        let labelled = Labelled { arguments, pipeline, traffic, labels, tolerance };
        let commands = labelled_commands(&labelled.pipeline, &labelled.traffic, &labelled.labels, tolerance)?;
        if observed.commands() == 0 {
            commands.seen().for_each(|(time_ns, bytes)| observed.add_command(time_ns, bytes));
            observed.end_of_file();
        }
        let inventory = match model {
            Some(model) => model.inventory.clone(),
            None => arguments.audited.inventory()?,
        };
        let premises = arguments.audited.premises();
        let check =
            model.map(|model| ModelCheck::of(captures, &labelled.pipeline, model, &premises, &commands)).transpose()?;
        let measured = MeasuredAudit::new(&commands, inventory.as_ref(), check, SEED);
        let evaluation = arguments.audited.path().map(|path| labelled.evaluation(path)).transpose()?;
        let verdict = match &evaluation {
            Some(evaluation) => judged::verdict(evaluation),
            None => Verdict {
                sentence: measured.sentence.clone(),
                meaning: "This observer has no model, and learned from the labelled commands before each: a better one names \
                          more."
                    .to_owned(),
            },
        };
        let mut sections = vec![shown(&measured)];
        sections.extend(evaluation.as_ref().map(judged::calibration));
        sections.push(if arguments.quick {
            Section::missing("learning", "Left out by `--quick`.")
        } else {
            labelled.learning_curve(inventory)
        });
        Ok(Self {
            verdict,
            tiles: evaluation.as_ref().map_or_else(|| tiles(&measured), |evaluation| vec![judged::tile(evaluation)]),
            sections,
            damage: commands.damage.as_ref().map(|damage| damaged(damage, COVERED)),
        })
    }
}

impl Labelled<'_> {
    fn evaluation(&self, model: &std::path::PathBuf) -> Result<Evaluation> {
        let files = std::slice::from_ref(model);
        let (models, mut pipeline) = (ModelSet::read(files)?, self.pipeline.clone());
        pipeline.use_models(files)?;
        self.labels.check_actions(models.sections())?;
        let evaluator = Evaluator::new(models.sections(), &self.labels, self.tolerance, CREDIBLE, &self.traffic)?;
        let run = evaluator.judge(&pipeline, &mut |_| {}).and_then(JudgedRun::with_candidates)?;
        run.check_use()?;
        Ok(Evaluation::new(&run, evaluator.prior_bits(&pipeline)))
    }

    /// How precision grows with labels, or why that is not known.
    fn learning_curve(&self, inventory: Option<sizeleak_model::Inventory>) -> Section {
        let settings = self.arguments.captures.digests(&self.pipeline).map(|captures| LearningSettings {
            labels_are_complete: false,
            method: FitMethod::Robust,
            cipher: None,
            padding: None,
            inventory,
            captures,
        });
        match settings.and_then(|settings| self.measured_curve(&settings)) {
            Ok(curve) => judged::learning_curve(&curve),
            Err(fault) => Section::missing("learning", format!("It cannot be measured: {fault}.")),
        }
    }

    fn measured_curve(&self, settings: &LearningSettings) -> Result<LearningCurve> {
        let labels = match &settings.inventory {
            Some(inventory) => self.labels.clone().within(inventory)?,
            None => self.labels.clone(),
        };
        let run = LearningRun { labels: &labels, input: &self.traffic, tolerance: self.tolerance, settings };
        let LearningOutcome { learned, commands, labels, .. } =
            run.learn(&self.pipeline.before(CORRECTOR), &mut |_| {})?;
        let run = LearningRun { labels: &labels, ..run };
        let learned = learned?;
        let first = learned.first().ok_or_else(|| anyhow!("nothing was learned"))?;
        let input = CurveInput {
            training_set: run.training_set(&labels, &commands),
            model: &first.model,
            pipeline: self.pipeline.clone(),
            input: &self.traffic,
            test: None,
            tolerance: self.tolerance,
        };
        Ok(LearningCurve::measure(&input, &LabelCounts::Growing)?)
    }
}

/// The secrets of labelled commands, by their names in tiles.
fn by_secret(secrets: &MeasuredSecrets) -> [(&'static str, Option<&MeasuredLeak>); 3] {
    let [command, number, types] = leak::SECRETS;
    [(command, Some(&secrets.command)), (number, Some(&secrets.number)), (types, secrets.kinds.as_ref())]
}

fn tiles(measured: &MeasuredAudit) -> Vec<Tile> {
    let row = |observer, share: Option<MeasuredShare>| TileRow {
        observer,
        share: share.map(|share| share.share),
        interval: share.map(|share| share.interval),
        is_bound: false,
    };
    let tile = |((title, size), (_, replies)): ((_, Option<&MeasuredLeak>), (_, Option<&MeasuredLeak>))| Tile {
        title,
        source: format!("measured on {} labelled commands", size.map_or(0, |leak| leak.commands)),
        rows: size.map_or_else(Vec::new, |leak| {
            let shares = [Some(leak.guessing), Some(leak.named), replies.map(|leak| leak.named)];
            leak::OBSERVERS.into_iter().zip(shares).map(|(observer, share)| row(observer, share)).collect()
        }),
    };
    by_secret(&measured.by_size).into_iter().zip(by_secret(&measured.with_reply_bytes)).map(tile).collect()
}

fn shown(measured: &MeasuredAudit) -> Section {
    let mut text = vec![measured.sentence.clone()];
    text.extend(measured.model_sentence.clone());
    if !measured.remarks.is_empty() {
        text.push(format!("What limits these figures: {}.", measured.remarks.join("; ")));
    }
    Section::new("measured", text, vec![named(measured)])
}
