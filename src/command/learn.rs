//! `sizeleak learn`: a model of a gateway, from captures whose commands are labelled, or few of them, or none; and what it is
//! in words.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use sizeleak_frame::Notice;
use sizeleak_learning::labels::{LabelFile, Tolerance};
use sizeleak_learning::{
    FoundSizes, LearnedModel, LearningError, LearningOutcome, LearningRun, LearningSettings, MIN_COMMANDS,
    UnlabelledRun,
};
use sizeleak_model::statistics::times;
use sizeleak_model::{Action, Basis, FitMethod, Inventory, Kind, Model, ModelSet, ReplyBytesModel, ReplyCountModel};
use sizeleak_pipeline::{Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::{self, show};
use sizeleak_text::{counted, escaped, fitted, range_in_words, shortened, width};

use super::document::{Document, as_text, line, paragraph, rest, spaced, stderr_columns};
use super::failure::{MAX_NOTES, NoticeReport, check_damage, damaged, usage};
use super::labels::{CORRECTOR, LabelReading, LabelledCaptures};
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
    let summary = summary(&learned, found.as_ref(), log::is_verbose());
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
            let warnings = warnings_of_found(&found, learned);
            learned.model.learned.warnings.extend(warnings);
        }
        Ok(Lesson { outcome, found: Some(found), tolerance })
    }
}

/// How many values of ε, and sizes of an action, are shown.
const SHOWN: usize = 6;

const SHOWN_SHARE: f64 = 0.01;

const MAX_KINDS: usize = 40;

const MAX_COLUMNS: usize = 30;

const OVERHEAD: &str = "overhead |ac|";

/// A summary of all sections, and of what commands without labels said. Only the worst notes are shown, unless all are
/// asked for.
fn summary(sections: &[LearnedModel], found: Option<&FoundSizes>, all_notes: bool) -> Document {
    let several = sections.len() > 1;
    let part = |section: &LearnedModel| {
        let scope = several.then(|| line(format!("for {}:", escaped(&section.model.scope.to_string()))));
        scope.into_iter().flatten().chain(of_section(section, found, all_notes)).collect::<Document>()
    };
    spaced(sections.iter().map(part))
}

fn of_section(learned: &LearnedModel, found: Option<&FoundSizes>, all_notes: bool) -> Document {
    let LearnedModel { model, labels, .. } = learned;
    let method = match model.learned.method {
        FitMethod::Robust => "by a robust fit",
        FitMethod::Paper => "by the paper's procedure",
    };
    let mut opening: Vec<String> = found.into_iter().flat_map(lines_of_found).collect();
    let kind = if found.is_some() { "explained" } else { "labelled" };
    let all = counted(*labels, &format!("{kind} command"), &format!("{kind} commands"));
    opening.push(format!("learned {method} from {} of {all}", model.learned.commands));
    opening.push(format!("sizes are {}", describe_basis(&model.learned.basis)));
    let (mut of_actions, mut others) = (Vec::new(), Vec::new());
    if !model.actions.is_empty() {
        of_actions = sizes(learned, found);
        others.push(epsilons(model));
        others.extend(replies(model));
        others.extend(model.recurring_in_words().map(|commands| format!("habits: {}", escaped(&commands))));
    }
    others.extend(reply_windows(model).into_iter().chain(noise(model)));
    let parts = [opening, of_actions, kinds(model), others];
    let parts = parts.map(|lines| lines.into_iter().flat_map(|text| paragraph(text, 4)).collect());
    spaced(parts.into_iter().chain([notes(learned, all_notes)]))
}

fn notes(learned: &LearnedModel, all: bool) -> Document {
    let warnings = learned.model.learned.warnings.iter().map(|warning| format!("warning: {warning}"));
    let notes: Vec<String> = warnings.chain(learned.remarks.iter().map(|remark| format!("note: {remark}"))).collect();
    let shown = if all { notes.len() } else { MAX_NOTES.min(notes.len()) };
    let document: Document = notes.iter().take(shown).flat_map(|note| paragraph(note.as_str(), 2)).collect();
    let more = rest(notes.len(), shown, |more| format!("{more} more (-v prints all)"));
    [document, more].concat()
}

fn sizes(learned: &LearnedModel, found: Option<&FoundSizes>) -> Vec<String> {
    let LearnedModel { model, occurrences, intervals, .. } = learned;
    let widest = model.actions.iter().map(|action| width(&escaped(&action.name))).max().unwrap_or(0);
    let columns = widest.clamp(OVERHEAD.len(), MAX_COLUMNS);
    let overhead = format!("  {}  {:>6} bytes", fitted(OVERHEAD, columns), model.overhead);
    let actions = model.actions.iter().zip(occurrences).zip(intervals).map(|((action, commands), [least, most])| {
        let name = fitted(&escaped(&action.name), columns);
        let interval = if least < most { format!(" ({least} to {most})") } else { String::new() };
        let sizes = if action.varies() { shares(action) } else { String::new() };
        let more = found.map_or_else(String::new, |found| found_of_action(found, &action.name));
        format!("  {name}  {:>6} bytes{interval}{sizes}, in {}{more}", action.size, count(*commands as u64))
    });
    [overhead].into_iter().chain(actions).collect()
}

/// The most frequent sizes of an action whose sizes vary, in ascending order, and how many others there are.
fn shares(action: &Action) -> String {
    let mut sizes: Vec<(i64, f64)> = action.sizes().filter(|(_, share)| *share >= SHOWN_SHARE).collect();
    sizes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    sizes.truncate(SHOWN);
    sizes.sort_unstable_by_key(|(size, _)| *size);
    let rest = 1.0 - sizes.iter().map(|(_, share)| share).sum::<f64>();
    let share = |(size, share): &(i64, f64)| format!("{size} in {:.0} %", 100.0 * share);
    let shown = sizes.iter().map(share).collect::<Vec<_>>().join(", ");
    let [least, most] = action.size_range();
    let rest = if rest >= SHOWN_SHARE / 2.0 { format!(", others in {:.0} %", 100.0 * rest) } else { String::new() };
    format!(", varying from {least} to {most}: {shown}{rest}")
}

fn count(commands: u64) -> String {
    counted(commands, "command", "commands")
}

fn kinds(model: &Model) -> Vec<String> {
    let Some(kinds) = &model.kinds else { return Vec::new() };
    let named = |kind: &Kind| escaped(&kind.in_words()).into_owned();
    let widest = kinds.list.iter().map(|kind| width(&named(kind))).max().unwrap_or(0).min(MAX_COLUMNS);
    let line = |kind: &Kind| {
        let sizes = range_in_words(kind.size_range());
        let (name, commands) = (fitted(&named(kind), widest), kind.commands());
        format!("  {name}  {sizes:>10} bytes, in {}", count(commands))
    };
    let replies = match &kinds.replies {
        Some(_) => "replies: their number and bytes tell kinds apart",
        None if kinds.list.iter().any(|kind| kind.commands() == 1) => {
            "replies: whether they tell kinds apart is not known"
        }
        None => "replies: they do not tell kinds apart",
    };
    let mut lines = vec!["whole commands, overhead included:".to_owned()];
    lines.extend(kinds.list.iter().take(MAX_KINDS).map(line));
    if kinds.list.len() > MAX_KINDS {
        lines.push(format!("  and {} more", kinds.list.len() - MAX_KINDS));
    }
    lines.extend((kinds.list.len() > 1).then(|| replies.to_owned()));
    lines
}

fn describe_basis(basis: &Basis) -> String {
    match basis {
        Basis::Plaintext { cipher_suite, record_overhead } => {
            let added = range_in_words(*record_overhead);
            // The suites of TLS have names that begin so; other protocols have one that protects all their messages.
            if cipher_suite.starts_with("TLS") {
                let assumed = "plaintext; sessions without a handshake are assumed to use";
                format!("{assumed} {cipher_suite} ({added} bytes per record)")
            } else {
                format!("plaintext of {cipher_suite} ({added} bytes more per message)")
            }
        }
        Basis::Wire => "those on the wire, under an unknown cipher suite".to_owned(),
    }
}

fn epsilons(model: &Model) -> String {
    let mut times: BTreeMap<i64, u64> = BTreeMap::new();
    for tuple in model.neighbours.tuples() {
        *times.entry(tuple.epsilon).or_default() += tuple.times;
    }
    let all: u64 = times.values().sum();
    let mut frequent: Vec<(i64, u64)> = times.into_iter().collect();
    frequent.sort_by_key(|(epsilon, times)| (std::cmp::Reverse(*times), *epsilon));
    let share = |times: u64| 100.0 * times as f64 / all as f64;
    let shown = frequent.iter().take(SHOWN).map(|(epsilon, times)| format!("{epsilon} in {:.1} %", share(*times)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let rest = frequent.len().saturating_sub(SHOWN);
    let rest = if rest > 0 { format!(" and {}", counted(rest, "more value", "more values")) } else { String::new() };
    let used = match model.smoothing.k {
        1 => "the nearest command is".to_owned(),
        k => format!("the {k} nearest commands are"),
    };
    format!("ε: {shown}{rest}; {used} used")
}

fn replies(model: &Model) -> Vec<String> {
    let replies = &model.replies;
    let count = if let Some(by_action) = replies_by_action(model) {
        by_action
    } else if replies.is_informative() {
        let ReplyCountModel { fixed, per_action, surplus, .. } = replies;
        let missing = 100.0 * replies.missing;
        let fixed = if *fixed > 0.0 { format!("{fixed} per command and ") } else { String::new() };
        format!("replies: {fixed}{per_action} per action; {missing:.1} % missing, {surplus:.3} others per command")
    } else {
        match model.learned.commands {
            few if few < MIN_COMMANDS as u64 => {
                "replies: whether their number depends on the number of actions is not known"
            }
            _ => "replies: their number does not depend on the number of actions",
        }
        .to_owned()
    };
    let bytes = model.reply_bytes.as_ref().map(|bytes| {
        let ReplyBytesModel { fixed, per_reply, spread, per_action, .. } = bytes;
        let actions = model.actions.iter().zip(per_action);
        let actions: Vec<String> = actions
            .map(|(action, bytes)| format!("{bytes} for {}", shortened(&escaped(&action.name), MAX_COLUMNS)))
            .collect();
        format!("bytes of replies: {fixed}, {per_reply} per reply, {}; ± {spread}", actions.join(", "))
    });
    [count].into_iter().chain(bytes).collect()
}

/// How many replies each action has, where single replies show that actions differ in it; `None` where they do not.
fn replies_by_action(model: &Model) -> Option<String> {
    let single = model.single_replies.as_ref()?;
    let all = |numbers: &Vec<u32>| numbers.iter().fold(0_u32, |sum, number| sum.saturating_add(*number));
    let numbers: Vec<u32> = single.per_action.iter().map(all).collect();
    if numbers.windows(2).all(|pair| pair[0] == pair[1]) {
        return None;
    }
    let actions = model.actions.iter().zip(&numbers);
    let actions =
        actions.map(|(action, number)| format!("{number} to `{}`", shortened(&escaped(&action.name), MAX_COLUMNS)));
    let per_command = match all(&single.per_command) {
        0 => String::new(),
        number => format!(", and {number} to any command"),
    };
    Some(format!("replies: {}{per_command}", actions.collect::<Vec<_>>().join(", ")))
}

fn reply_windows(model: &Model) -> Option<String> {
    model.reply_windows.map(|windows| {
        let [within, gap] = [windows.within_ms, windows.gap_ms].map(|ms| ms as f64 / 1000.0);
        format!("replies come within {within} s after a command and end when the gateway is silent for {gap} s")
    })
}

fn noise(model: &Model) -> Option<String> {
    let kinds = &model.noise.as_ref()?.to_gateway;
    if kinds.is_empty() {
        return Some("noise: besides commands the service sent nothing".to_owned());
    }
    let answers = kinds.iter().fold(0_u64, |sum, kind| sum.saturating_add(kind.answers));
    let alone = kinds.iter().fold(0_u64, |sum, kind| sum.saturating_add(kind.alone));
    let (answers, sizes) = (counted(answers, "answer", "answers"), counted(kinds.len(), "size", "sizes"));
    let others = counted(alone, "other message", "other messages");
    Some(format!("noise: besides commands the service sent {answers} and {others}, of {sizes}"))
}

/// How many actions may have the same reply before their sizes are in doubt.
const MAX_ALIKE: usize = 2;

const MAX_OTHERS: usize = 3;

fn lines_of_found(found: &FoundSizes) -> Vec<String> {
    let fit = &found.fit;
    let labelled = match found.labelled {
        0 => "without labels".to_owned(),
        labelled => format!("with {}", counted(labelled, "label", "labels")),
    };
    let explained = found.labels.labels().rows.len();
    let mut lines = vec![format!(
        "sizes were found {labelled}: {explained} of {} explained; lengths are those of {}",
        counted(found.commands, "command is", "commands are"),
        fit.length_fields
    )];
    let nameless = fit.actions.iter().filter(|action| action.name.is_none()).count();
    if nameless > 0 {
        let all = fit.actions.len();
        lines.push(format!(
            "{nameless} of {} no name: one labelled command of each (`--labels`) names them",
            counted(all, "action has", "actions have")
        ));
    }
    lines
}

/// What is said of an action besides its size: the reply and the share of all actions.
fn found_of_action(found: &FoundSizes, name: &str) -> String {
    let at = found.names.iter().position(|known| known == name);
    let Some(action) = at.and_then(|at| found.fit.actions.get(at)) else { return String::new() };
    let reply = action.reply.map_or_else(|| "no reply".to_owned(), |bytes| format!("a reply of {bytes} bytes"));
    format!("; {reply}, {:.1} % of actions", 100.0 * action.frequency)
}

/// The reply that most actions have in common, and how many do, if they are more than replies can be trusted with.
fn most_alike(found: &FoundSizes) -> Option<(Option<i64>, usize)> {
    let times: BTreeMap<Option<i64>, usize> = times(found.fit.actions.iter().map(|action| action.reply));
    times.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > MAX_ALIKE)
}

fn warnings_of_found(found: &FoundSizes, learned: &LearnedModel) -> Vec<String> {
    let fit = &found.fit;
    let mut warnings = Vec::new();
    let others = fit.alternatives.iter().take(MAX_OTHERS).map(|other| {
        let (overhead, actions, difference) = (other.overhead, other.actions, other.difference);
        format!("an overhead of {overhead} bytes and {actions} actions ({difference:.1} nats less likely)")
    });
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        warnings.push(format!("other sizes explain the commands nearly as well: {}", others.join("; ")));
    }
    if let Some((reply, count)) = most_alike(found) {
        let reply = reply.map_or_else(|| "no reply".to_owned(), |bytes| format!("replies of {bytes} bytes"));
        warnings.push(format!(
            "{count} actions have {reply}, so only lengths tell them apart: sizes that are a few bytes apart may be \
             mixed up; label each of them alone, several times"
        ));
    }
    for uncertain in &fit.uncertain_names {
        let [one, other] = &uncertain.names;
        warnings.push(format!(
            "`{}` and `{}` may be the other way round (probability {:.2}): what is labelled fits both; label each of them \
             alone once or twice more",
            escaped(one),
            escaped(other),
            uncertain.probability
        ));
    }
    let size = |name: &str| learned.model.actions.iter().find(|action| action.name == name).map(|action| action.size);
    let moved = found.names.iter().zip(&fit.actions).filter_map(|(name, action)| {
        let learned = size(name).filter(|size| *size != action.size)?;
        Some(format!("`{}` {} or {learned} bytes", escaped(name), action.size))
    });
    let moved: Vec<String> = moved.collect();
    if !moved.is_empty() {
        warnings.push(format!("these sizes are not certain: {}", moved.join(", ")));
    }
    warnings
}
