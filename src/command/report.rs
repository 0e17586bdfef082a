//! `sizeleak report`: everything that is known of a gateway's leak, as one page for people. What it is made of: what labelled
//! captures show, how good a model's answers are and how fast it is learned; how much a model's sizes give away, and what
//! would stop that.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use sizeleak_audit::leakage::Audit;
use sizeleak_audit::padding::{
    Goal, HomeTraffic, PaddedHome, PaddingPolicy, TableRules, TableSearch, exact_table, seen_rows,
};
use sizeleak_evaluation::measured_leak::{MeasuredLeak, MeasuredShare};
use sizeleak_evaluation::{Evaluation, Evaluator, JudgedRun, LabelCounts, LearningCurve};
use sizeleak_habits::{Home, Profile};
use sizeleak_inference::channel::{EpsilonKnowledge, Observation, Observer};
use sizeleak_inference::space::{CommandSpace, SpaceError};
use sizeleak_learning::{LearningRun, LearningSettings, digest_capture};
use sizeleak_model::{Model, ModelSet};
use sizeleak_platform::storage::RunFiles;
use sizeleak_report::document::{Figure, Report, Section, Tile, Value, Verdict};
use sizeleak_report::{Observed, habits_section, habits_verdict, html, leak, markdown};
use sizeleak_text::counted;

use super::audit::AuditedModel;
use super::document::quoted;
use super::evaluate::COVERED;
use super::failure::{damaged, sentence, usage};
use super::labels::{CORRECTOR, LabelledCaptures};
use super::measure::{Measured, MeasuredAudit, MeasuredSecrets, named};
use super::output_option::OutputOption;
use super::pad::check_sizes;
use super::pad::countermeasures::{COMMANDS_PER_DAY, Comparison};
use super::pad::judged::{Curve, NamedWithReplies};
use super::plot::content::home as home_of;
use super::session::{Content, Operand, Session};
use super::shared_options::OUTPUT;
use super::traffic_input::AnswersInput;

pub(crate) fn run(mut arguments: Arguments, session: &mut Session) -> Result<()> {
    let form = arguments.output.form(arguments.format, ReportForm::value_variants(), "sizeleak report")?;
    let given = Given::take_from(&mut arguments.captures)?;
    let mut read = RunFiles::new();
    given.files(&arguments).iter().for_each(|(role, path)| read.reads(role, path));
    session.check_files(read)?;
    let (zone, home) = home(&arguments, &given)?;
    let (mut observed, mut draft) = (Observed::new(zone), Draft::default());
    if let Err(failure) = given.answers.read(arguments.captures.range.range()?, &mut observed, |observed, _| {
        observed.end_of_file();
        Ok(())
    }) {
        observed.end_of_file();
        if observed.commands() + observed.deviation_count() == 0 {
            return Err(failure);
        }
        draft.damage = Some(failure.context("the report covers what is before the damage".to_owned()));
    }
    let model = arguments.audited.path().map(|_| arguments.audited.model()).transpose()?;
    let captures = &arguments.captures;
    if let Some(model) = &model {
        let is_alone = captures.traffic.operands.is_empty() && !given.has_findings();
        if let Err(fault) = draft.add_model(model, &arguments.audited) {
            match fault.downcast_ref() {
                Some(SpaceError::NoSizes | SpaceError::OneDevice) if !is_alone => draft.add_kinds(&fault.to_string()),
                _ => return Err(fault),
            }
        }
    }
    if !captures.traffic.operands.is_empty() {
        let labelled = draft.add_captures(captures, &arguments.audited, model.as_ref(), &mut observed)?;
        draft.sections.push(if arguments.quick {
            Section::missing("learning", "Left out by `--quick`.")
        } else {
            labelled.learning_curve(captures)
        });
    }
    let Draft { mut verdicts, tiles, fix, mut sections, mut figures, damage } = draft;
    sections.push(given.provenance(&arguments)?);
    verdicts.extend(observed.verdict());
    if let Some(home) = home {
        verdicts.push(habits_verdict(&home));
        sections.push(habits_section(&home, observed.clock()));
    }
    verdicts.extend(observed.deviation_verdict());
    let Some(verdict) = verdicts.into_iter().next() else {
        let known = "name a model (`--model FILE`), labelled captures, answers or a profile";
        return Err(usage!("there is nothing to report on: {known}"));
    };
    figures.splice(0..0, observed.figures());
    if !figures.is_empty() {
        let text =
            "The observer sees encrypted records on their way to the gateway: when they come, and how long they are.";
        sections.push(Section::new("seen", vec![text.to_owned()], figures));
    }
    sections.extend(observed.deviations().into_iter().chain(observed.latencies()));
    let fix = fix.unwrap_or_else(|| "A model tells what would stop the leak, and what that costs.".to_owned());
    let report = Report { verdict, tiles, fix, sections };
    let written = match form.unwrap_or_default() {
        ReportForm::Html => html(report),
        ReportForm::Markdown => markdown(report),
    };
    arguments.output.write(written.as_bytes())?;
    damage.map_or(Ok(()), Err)
}

fn home(arguments: &Arguments, given: &Given) -> Result<(TimeZone, Option<Home>)> {
    let Some(path) = &given.profile else { return Ok((TimeZone::UTC, None)) };
    let profile = Profile::read(path)?;
    let (_, home) = home_of(&profile, &arguments.captures.gateways()).with_context(|| path.display().to_string())?;
    // A profile is read only if its zone is known.
    Ok((TimeZone::get(profile.zone()).unwrap_or(TimeZone::UTC), Some(home)))
}

/// Write all that is known of a gateway's leak as a page for people
#[derive(Debug, Args)]
#[command(mut_arg("set", |set| set.hide_short_help(true)))]
#[command(mut_arg("operands", |files| {
    files.help("Captures with `--labels`, answers, deviations or a profile, recognised by content; `-` is stdin")
}))]
#[command(after_long_help = "Examples:\n  \
    sizeleak report --model model.toml -o report.html\n  \
    sizeleak report test.pcap --labels test.csv --model model.toml --gateway 192.168.1.20 -o report.html\n  \
    sizeleak report answers.frames home.profile.toml deviations.ndjson -o report.html\n  \
    sizeleak report --model model.toml --quick --format markdown > report.md\n\n\
    Files are told apart by content. What is not given is left out, and the page says what to give. It is one file, which \
    loads nothing and sends nothing, and holds sums over many commands: no single command, and no time of a single event. \
    docs/guide.md explains it.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) captures: LabelledCaptures,

    #[command(flatten)]
    pub(super) audited: AuditedModel,

    /// Leave out the learning curve, which takes longest
    #[arg(long)]
    pub(super) quick: bool,

    /// The format of the output: html or markdown [default: by the name of FILE, else html]
    #[arg(long, value_enum, hide_possible_values = true, help_heading = OUTPUT)]
    pub(super) format: Option<ReportForm>,

    #[command(flatten)]
    pub(super) output: OutputOption,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportForm {
    /// One page that loads nothing
    #[default]
    Html,
    /// The same text and tables as Markdown
    Markdown,
}

#[derive(Debug)]
pub(super) struct Given {
    pub(super) answers: AnswersInput,
    pub(super) profile: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Capture,
    Answers,
    Profile,
}

impl Given {
    fn take_from(captures: &mut LabelledCaptures) -> Result<Self> {
        let labelled = captures.are_labelled();
        let operands = std::mem::take(&mut captures.traffic.operands);
        // Labels are about captures. Where there are none, they are about saved streams.
        let is_capture = |operand: &Operand| role(operand, labelled) == Role::Capture;
        let has_captures = operands.iter().any(is_capture);
        let (mut answers, mut profiles) = (Vec::new(), Vec::new());
        for operand in operands {
            match role(&operand, labelled) {
                Role::Profile => profiles.push(operand.path),
                Role::Answers if has_captures || !labelled => answers.push(operand.path),
                Role::Answers | Role::Capture => captures.traffic.operands.push(operand),
            }
        }
        captures.traffic.check()?;
        if let Some(operand) = captures.traffic.operands.first().filter(|_| !labelled) {
            operand.path.metadata().with_context(|| operand.path.display().to_string())?;
            return Err(usage!(
                "captures need labels: name them with `--labels FILE`; without labels, name the answers that `sizeleak run \
                 CAPTURE --model model.toml -o answers.frames` writes"
            ));
        }
        if labelled && captures.traffic.operands.is_empty() {
            return Err(usage!("`--labels` needs the captures that they are about: name them"));
        }
        if let [one, other, ..] = profiles.as_slice() {
            let (one, other) = (one.display(), other.display());
            return Err(usage!("{one} and {other} are both profiles: a report is about one home"));
        }
        let profile = profiles.into_iter().next();
        Ok(Self { answers: AnswersInput { answers }, profile })
    }

    /// Whether there are answers or a profile, which a report is about without a model, too.
    fn has_findings(&self) -> bool {
        !self.answers.answers.is_empty() || self.profile.is_some()
    }

    fn files(&self, arguments: &Arguments) -> Vec<(&'static str, PathBuf)> {
        let mut files: Vec<(&'static str, PathBuf)> = Vec::new();
        let captures = &arguments.captures;
        files.extend(captures.traffic.captures().into_iter().map(|path| ("the capture", path)));
        files.extend(captures.traffic.streams().into_iter().map(|path| ("the saved stream", path)));
        files.extend(captures.labels.clone().map(|path| ("the labels", path)));
        files.extend(arguments.audited.files());
        files.extend(self.answers.answers.iter().map(|path| ("the answers", path.clone())));
        files.extend(self.profile.iter().map(|path| ("the profile", path.clone())));
        files
    }

    fn provenance(&self, arguments: &Arguments) -> Result<Section> {
        let mut rows = Vec::new();
        for (role, path) in self.files(arguments) {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            // Of stdin and folders there is none.
            let digest = path.is_file().then(|| digest_capture(&path)).transpose()?.map(|digest| digest.sha256);
            rows.push([role.trim_start_matches("the ").into(), name.into(), digest.into()]);
        }
        let files = Figure::new("files", "what | name | SHA-256", rows).titled("Files", "");
        let version = env!("CARGO_PKG_VERSION");
        let text = format!("Written by sizeleak {version}. The same files and options give the same bytes.");
        Ok(Section::new("provenance", vec![text, format!("Command line: `{}`", command_line())], vec![files]))
    }
}

fn role(operand: &Operand, labelled: bool) -> Role {
    match operand.content {
        _ if operand.path.is_dir() && labelled => Role::Capture,
        _ if operand.path.is_dir() => Role::Answers,
        _ if operand.is_profile() => Role::Profile,
        Content::Stream | Content::Answers => Role::Answers,
        // Nothing can be looked at without taking from it.
        Content::Capture if operand.path == Path::new("-") && !labelled => Role::Answers,
        _ => Role::Capture,
    }
}

/// The command line of this process without its output, which the report does not depend on.
fn command_line() -> String {
    let mut arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let mut words = vec!["sizeleak".to_owned()];
    while let Some(argument) = arguments.next() {
        if ["-o", "-w", "--output"].contains(&&*argument) {
            arguments.next();
        } else if !["-o", "-w", "--output="].iter().any(|option| argument.starts_with(option)) {
            words.push(quoted(&argument));
        }
    }
    words.join(" ")
}

/// How probable a credible set is to hold the truth, as `sizeleak evaluate` has it.
const CREDIBLE: f64 = 0.95;

#[derive(Default)]
struct Draft {
    /// The most certain first.
    verdicts: Vec<Verdict>,
    /// Of the command, as a model's answers name it where there is a model; else of all secrets, by labels alone. What only
    /// the model says of follows.
    tiles: Vec<Tile>,
    /// `None` without a model.
    fix: Option<String>,
    sections: Vec<Section>,
    /// What an observer sees.
    figures: Vec<Figure>,
    damage: Option<anyhow::Error>,
}

impl Draft {
    fn add_captures(
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
        let (tolerance, credible, input) = (self.tolerance, CREDIBLE, &self.traffic);
        let evaluator = Evaluator { models: models.sections(), labels: &self.labels, tolerance, credible, input };
        let run = evaluator.judge(&pipeline, &mut |_| {}).and_then(JudgedRun::with_candidates)?;
        run.check_use()?;
        Ok(Evaluation::new(&run, evaluator.prior_bits(&pipeline)))
    }

    fn learning_curve(&self, captures: &LabelledCaptures) -> Section {
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
    fn add_model(&mut self, model: &Model, audited: &AuditedModel) -> Result<()> {
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
    fn add_kinds(&mut self, why: &str) {
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
