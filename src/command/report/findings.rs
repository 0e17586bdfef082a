//! What labelled captures show, how good a model's answers are and how fast it is learned; and what a model says: how much its
//! sizes give away, and what would stop that.

use std::path::PathBuf;

use anyhow::Result;
use sizeleak_audit::leakage::Audit;
use sizeleak_audit::padding::{
    Goal, HomeTraffic, PaddedHome, PaddingPolicy, TableRules, TableSearch, exact_table, seen_rows,
};
use sizeleak_evaluation::measured_leak::{MeasuredLeak, MeasuredShare};
use sizeleak_evaluation::{Evaluation, Evaluator, JudgedRun, LabelCounts, LearningCurve};
use sizeleak_inference::channel::{EpsilonKnowledge, Observation, Observer};
use sizeleak_inference::space::{CommandSpace, SpaceError};
use sizeleak_learning::{LearningRun, LearningSettings};
use sizeleak_model::{Model, ModelSet};
use sizeleak_report::document::{Figure, Section, Tile, Value, Verdict};
use sizeleak_report::{Observed, leak};

use crate::command::audited_model::AuditedModel;
use crate::command::document::quoted;
use crate::command::evaluation_input::COVERED;
use crate::command::failure::{damaged, sentence};
use crate::command::labels::LabelledCaptures;
use crate::command::measure::report::{MeasuredAudit, MeasuredSecrets};
use crate::command::measure::{CORRECTOR, Measured, named};
use crate::command::pad::check_sizes;
use crate::command::pad::countermeasures::{COMMANDS_PER_DAY, Comparison};
use crate::command::pad::judged::{Curve, NamedWithReplies};

/// How probable a credible set is to hold the truth, as `sizeleak evaluate` has it.
const CREDIBLE: f64 = 0.95;

pub(super) struct CaptureFindings {
    pub(super) verdict: Verdict,
    /// Of the command, as a model's answers name it where there is a model; else of all secrets, by labels alone.
    pub(super) tiles: Vec<Tile>,
    pub(super) sections: Vec<Section>,
    pub(super) damage: Option<anyhow::Error>,
    labelled: Measured,
}

impl CaptureFindings {
    pub(super) fn new(
        captures: &LabelledCaptures,
        audited: &AuditedModel,
        model: Option<&Model>,
        observed: &mut Observed,
    ) -> Result<Self> {
        let labelled = Measured::new(captures, audited, audited.pipeline(captures)?, model)?;
        let Measured { commands, audit: measured, .. } = &labelled;
        if observed.commands() == 0 {
            commands.seen().for_each(|(time_ns, bytes)| observed.add_command(time_ns, bytes));
            observed.end_of_file();
        }
        let evaluation = audited.path().map(|path| labelled.evaluation(path)).transpose()?;
        let verdict = match &evaluation {
            Some(evaluation) => leak::measured_verdict(evaluation),
            None => Verdict {
                sentence: measured.sentence.clone(),
                meaning: "This observer has no model, and learned from the labelled commands before each: a better one names \
                          more."
                    .to_owned(),
            },
        };
        let mut sections = vec![shown(measured)];
        sections.extend(evaluation.as_ref().map(leak::calibration));
        Ok(Self {
            verdict,
            tiles: evaluation
                .as_ref()
                .map_or_else(|| tiles(measured), |evaluation| vec![leak::measured_tile(evaluation)]),
            sections,
            damage: commands.damage.as_ref().map(|damage| damaged(damage, COVERED)),
            labelled,
        })
    }

    pub(super) fn learning_curve(&self, captures: &LabelledCaptures) -> Section {
        let labelled = &self.labelled;
        let inventory = labelled.inventory.clone();
        let settings = captures.digests(&labelled.pipeline);
        let settings = settings.map(|captures| LearningSettings { inventory, captures, ..LearningSettings::default() });
        match settings.and_then(|settings| labelled.measured_curve(&settings)) {
            Ok(curve) => leak::learning_curve(&curve),
            Err(fault) => Section::missing("learning", format!("It cannot be measured: {}.", sentence(&fault))),
        }
    }
}

impl Measured {
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

    fn measured_curve(&self, settings: &LearningSettings) -> Result<LearningCurve> {
        let labels = self.labels.clone().within(settings.inventory.as_ref())?;
        let run = LearningRun { labels: &labels, input: &self.traffic, tolerance: self.tolerance, settings };
        let outcome = run.learn(&self.pipeline.before(CORRECTOR), &mut |_| {})?;
        Ok(LearningCurve::measure(&run, &self.pipeline, outcome, &LabelCounts::Growing)?)
    }
}

fn by_secret(secrets: &MeasuredSecrets) -> [(&'static str, Option<&MeasuredLeak>); 3] {
    let [command, number, types] = leak::SECRETS;
    [(command, Some(&secrets.command)), (number, Some(&secrets.number)), (types, secrets.kinds.as_ref())]
}

fn tiles(measured: &MeasuredAudit) -> Vec<Tile> {
    let within = |share: MeasuredShare| Value::Within(share.share, share.interval);
    let tile = |((title, size), (_, replies)): ((_, Option<&MeasuredLeak>), (_, Option<&MeasuredLeak>))| {
        let source = format!("measured on {} labelled commands", size.map_or(0, |leak| leak.commands));
        let replies = Value::from(replies.map(|leak| within(leak.named)));
        Tile::new(title, source, size.map(|leak| [within(leak.guessing), within(leak.named), replies]))
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

/// The fix is the cheapest table with which commands are named at most so much more often than by guessing, as in the
/// examples of docs/padding.md: what is left is 5 % of guessing.
const FIX: f64 = 1.05;

/// The fewest commands of each size in the fix: alone in its size, a command is named for certain whatever the average is.
const FEWEST: f64 = 2.0;

pub(super) struct ModelFindings {
    pub(super) verdict: Verdict,
    pub(super) tiles: Vec<Tile>,
    pub(super) fix: String,
    /// `None` where there are no figures.
    pub(super) expected_sizes: Option<Figure>,
    pub(super) sections: Vec<Section>,
}

impl ModelFindings {
    pub(super) fn new(model: &Model, audited: &AuditedModel) -> Result<Self> {
        if let Some(why) = model.learned.unfit_for_figures() {
            return Ok(Self::without_figures(&why));
        }
        let premises = audited.premises();
        let audit = Audit::new(model, &premises)?;
        let space = CommandSpace::new(model, &premises)?;
        let knowledge = EpsilonKnowledge::Distribution;
        let seen = Observation::new(&space, model, Observer::Sizes, knowledge)?.ok_or(SpaceError::TooMany)?;
        let prior = audited.prior(model).sentence;
        let mut sections = vec![leak::sizes(&audit, model), leak::anonymity(&audit)];
        if let Some(first) = sections.first_mut() {
            first.text.push(format!("How probable commands are before their size is seen: {prior}."));
            if model.inventory.is_none() {
                let hint = "No inventory says which devices there are, so any number of each action is counted: name them \
                            (`--inventory FILE`).";
                first.text.push(hint.to_owned());
            }
        }
        let fix = if let Err(fault) = check_sizes(model) {
            let why = fault.to_string();
            sections.extend(["padding", "countermeasures"].map(|id| Section::missing(id, &why)));
            fault.to_string()
        } else {
            let home = PaddedHome::new(&space, model, knowledge, COMMANDS_PER_DAY)?;
            let curve = Curve::new(&home, &prior, |_| Ok(None))?;
            let traffic = HomeTraffic::new(&space, model, knowledge, COMMANDS_PER_DAY)?;
            let text = "Padding makes sizes say less. Where it is drawn at random for each message, the figure holds for one \
                        message: unless it is keyed, it averages out over several.";
            sections.push(Section::new("padding", vec![text.to_owned()], vec![curve.figure()]));
            let compared = Comparison::new(&traffic, &prior, &PaddingPolicy::None);
            let text = [compared.explained()].into_iter().chain(compared.faults()).collect();
            sections.push(Section::new("countermeasures", text, compared.figures().into()));
            fix((&home, &traffic), &audit, audited)?
        };
        Ok(Self {
            verdict: leak::verdict(&audit),
            tiles: leak::tiles(&audit),
            fix,
            expected_sizes: Some(leak::expected_sizes(&seen_rows(&seen))),
            sections,
        })
    }

    fn without_figures(why: &str) -> Self {
        let (sentence, meaning) = why.split_once(": ").unwrap_or((why, ""));
        let missing = |id| Section::missing(id, format!("There are no figures, since {sentence}."));
        Self {
            verdict: Verdict {
                sentence: format!("No leak is announced or denied: {sentence}."),
                meaning: format!("{meaning}."),
            },
            tiles: Vec::new(),
            fix: "What would stop the leak is not known, since its sizes are not.".to_owned(),
            expected_sizes: None,
            sections: ["sizes", "anonymity", "padding", "countermeasures"].map(missing).into(),
        }
    }
}

fn fix((home, traffic): (&PaddedHome, &HomeTraffic), audit: &Audit, audited: &AuditedModel) -> Result<String> {
    let rules = TableRules { fewest_commands: FEWEST, ..TableRules::default() };
    let search = TableSearch { rows: &home.rows, rules };
    let goal = Goal::Target(FIX * home.unpadded.command.guessing);
    let Ok((policy, judged)) = exact_table(home, &search, goal) else {
        let only = "the only way is to send all commands at one size and a constant rate";
        return Ok(format!("No padding table brings naming down to guessing: {only}."));
    };
    let words = leak::fix(&judged, audit, home.commands_per_day);
    let replies = NamedWithReplies::new(traffic, &policy)?;
    let replies = replies.map_or_else(String::new, |named| format!(" {}", named.sentence()));
    let option = |(role, path): (&str, PathBuf)| {
        format!(" --{} {}", role.trim_start_matches("the "), quoted(&path.to_string_lossy()))
    };
    let options: String = audited.files().map(option).collect();
    Ok(format!(
        "{words}{replies} `sizeleak pad{options} --target 5%-of-guessing --least-set {FEWEST} --table table.c` writes it \
         as C."
    ))
}
