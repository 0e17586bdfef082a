//! What a report is made of: what labelled captures show, how good a model's answers are and how fast it is learned; and
//! what a model says: how much its sizes give away, and what would stop that.

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
use sizeleak_text::counted;

use crate::command::audited_model::AuditedModel;
use crate::command::document::quoted;
use crate::command::evaluation_input::COVERED;
use crate::command::failure::{damaged, sentence};
use crate::command::labels::{CORRECTOR, LabelledCaptures};
use crate::command::measure::report::{MeasuredAudit, MeasuredSecrets};
use crate::command::measure::{Measured, named};
use crate::command::pad::check_sizes;
use crate::command::pad::countermeasures::{COMMANDS_PER_DAY, Comparison};
use crate::command::pad::judged::{Curve, NamedWithReplies};

/// How probable a credible set is to hold the truth, as `sizeleak evaluate` has it.
const CREDIBLE: f64 = 0.95;

/// A report as it grows.
#[derive(Default)]
pub(super) struct Draft {
    /// The most certain first.
    pub(super) verdicts: Vec<Verdict>,
    /// Of the command, as a model's answers name it where there is a model; else of all secrets, by labels alone. What only
    /// the model says of follows.
    pub(super) tiles: Vec<Tile>,
    /// `None` without a model.
    pub(super) fix: Option<String>,
    pub(super) sections: Vec<Section>,
    /// What an observer sees.
    pub(super) figures: Vec<Figure>,
    pub(super) damage: Option<anyhow::Error>,
}

impl Draft {
    pub(super) fn add_captures(
        &mut self,
        captures: &LabelledCaptures,
        audited: &AuditedModel,
        model: Option<&Model>,
        observed: &mut Observed,
    ) -> Result<Measured> {
        let labelled = Measured::new(captures, audited, &audited.pipeline(captures)?, model)?;
        let Measured { commands, audit: measured, .. } = &labelled;
        if observed.commands() == 0 {
            commands.seen().for_each(|(time_ns, bytes)| observed.add_command(time_ns, bytes));
            observed.end_of_file();
        }
        self.sections.push(shown(measured));
        let (verdict, tiles) = if let Some(path) = audited.path() {
            let evaluation = labelled.evaluation(path)?;
            self.sections.push(leak::calibration(&evaluation));
            let mut shown = vec![leak::measured_tile(&evaluation)];
            if self.tiles.is_empty() {
                // The model has no figures of the others.
                shown.extend(tiles(measured).into_iter().skip(shown.len()));
            }
            (leak::measured_verdict(&evaluation), shown)
        } else {
            let meaning = "This observer has no model, and learned from the labelled commands before each: a better one \
                           names more.";
            let verdict = Verdict { sentence: measured.sentence.clone(), meaning: meaning.to_owned() };
            (verdict, tiles(measured))
        };
        self.verdicts.insert(0, verdict);
        self.tiles.retain(|tile| tiles.iter().all(|measured| measured.title != tile.title));
        self.tiles.splice(0..0, tiles);
        if self.damage.is_none() {
            self.damage = commands.damage.as_ref().map(|damage| damaged(damage, COVERED));
        }
        Ok(labelled)
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

    pub(super) fn learning_curve(&self, captures: &LabelledCaptures) -> Section {
        match self.measured_curve(captures) {
            Ok(curve) => leak::learning_curve(&curve),
            Err(fault) => Section::missing("learning", format!("It cannot be measured: {}.", sentence(&fault))),
        }
    }

    fn measured_curve(&self, captures: &LabelledCaptures) -> Result<LearningCurve> {
        let (inventory, captures) = (self.inventory.clone(), captures.digests(&self.pipeline)?);
        let settings = LearningSettings { inventory, captures, ..LearningSettings::default() };
        let labels = self.labels.clone().within(settings.inventory.as_ref())?;
        let run = LearningRun { labels: &labels, input: &self.traffic, tolerance: self.tolerance, settings: &settings };
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
    let named = |size: &MeasuredLeak, replies: Option<&MeasuredLeak>| match size.secrets {
        // What has one value, everybody knows.
        0 | 1 => [Value::Unknown, Value::Unknown, Value::Unknown],
        _ => [within(size.guessing), within(size.named), replies.map(|leak| within(leak.named)).into()],
    };
    let tile = |((title, size), (_, replies)): ((_, Option<&MeasuredLeak>), (_, Option<&MeasuredLeak>))| {
        let labelled = counted(size.map_or(0, |leak| leak.commands), "labelled command", "labelled commands");
        let source = format!("measured on {labelled}");
        Tile { title, source, named: size.map(|size| named(size, replies)) }
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

impl Draft {
    pub(super) fn add_model(&mut self, model: &Model, audited: &AuditedModel) -> Result<()> {
        if let Some(why) = model.learned.unfit_for_figures() {
            self.add_unfit(&why);
            return Ok(());
        }
        let premises = audited.premises();
        let audit = Audit::new(model, &premises)?;
        let space = CommandSpace::new(model, &premises)?;
        let knowledge = EpsilonKnowledge::Distribution;
        let seen = Observation::new(&space, model, Observer::Sizes, knowledge)?.ok_or(SpaceError::TooMany)?;
        let prior = audited.prior(model).sentence;
        let mut sizes = leak::sizes(&audit, model);
        sizes.text.push(format!("How probable commands are before their size is seen: {prior}."));
        sizes.text.extend(
            model
                .learned
                .warnings
                .iter()
                .map(|warning| format!("The model was learned with a warning, and so are these figures: {warning}.")),
        );
        if model.inventory.is_none() {
            let hint = "No inventory says which devices there are, so any number of each action is counted: name them \
                        (`--inventory FILE`).";
            sizes.text.push(hint.to_owned());
        }
        self.sections.extend([sizes, leak::anonymity(&audit)]);
        self.fix = Some(if let Err(fault) = check_sizes(model) {
            let missing = |id| Section::missing(id, format!("There are no figures: {fault}."));
            self.sections.extend(["padding", "countermeasures"].map(missing));
            format!("What would stop the leak is not known: {fault}.")
        } else {
            let home = PaddedHome::new(&space, model, knowledge, COMMANDS_PER_DAY)?;
            let curve = Curve::new(&home, &prior, |_| Ok(None))?;
            let traffic = HomeTraffic::new(&space, model, knowledge, COMMANDS_PER_DAY)?;
            let text = "Padding makes sizes say less. Where it is drawn at random for each message, the figure holds for one \
                        message: unless it is keyed, it averages out over several.";
            self.sections.push(Section::new("padding", vec![text.to_owned()], vec![curve.figure()]));
            let compared = Comparison::new(&traffic, &prior, &PaddingPolicy::None);
            let text = [compared.explained()].into_iter().chain(compared.faults()).collect();
            self.sections.push(Section::new("countermeasures", text, compared.figures().into()));
            fix((&home, &traffic), &audit, audited)?
        });
        self.verdicts.push(leak::verdict(&audit));
        self.tiles.extend(leak::tiles(&audit));
        self.figures.push(leak::expected_sizes(&seen_rows(&seen), &model.learned.basis));
        Ok(())
    }

    /// What is said of a model that is not fit for figures.
    fn add_unfit(&mut self, why: &str) {
        let (sentence, meaning) = why.split_once(": ").unwrap_or((why, ""));
        self.verdicts.push(Verdict {
            sentence: format!("No leak is announced or denied: {sentence}."),
            meaning: format!("{meaning}."),
        });
        self.fix = Some("What would stop the leak is not known, since its sizes are not.".to_owned());
        self.add_without_figures(sentence);
    }

    /// What is said of a model that knows commands only as kinds, where something else is reported on, too.
    pub(super) fn add_kinds(&mut self, why: &str) {
        let sentence = why.split_once([',', ':']).map_or(why, |(sentence, _)| sentence);
        self.fix = Some(format!("What would stop the leak is not known, since {sentence}."));
        self.add_without_figures(sentence);
    }

    fn add_without_figures(&mut self, why: &str) {
        let missing = |id| Section::missing(id, format!("There are no figures, since {why}."));
        self.sections.extend(["sizes", "anonymity", "padding", "countermeasures"].map(missing));
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
