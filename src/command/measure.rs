//! `sizeleak measure`: how much labelled captures show that sizes give away, and how sure that is; also how often an observer
//! who knows a model is right about labelled commands, beside what the model says.

use std::collections::BTreeSet;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use sizeleak_audit::leakage::{ModelObserver, NamedSecrets, share_in_words};
use sizeleak_evaluation::measured_leak::{
    MeasuredInformation, MeasuredLeak, MeasuredShare, PermutationTest, SIGNIFICANT, SecretNumbers, SeenOutput,
};
use sizeleak_evaluation::statistics::Interval;
use sizeleak_inference::space::{CommandSpace, Premises, SpaceError};
use sizeleak_learning::labels::{LabelFile, MatchCounts, Tolerance};
use sizeleak_learning::{LabelledCommands, LearningSettings};
use sizeleak_model::{Inventory, LabelledCommand, LearnedPadding, Model};
use sizeleak_pipeline::{Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::say;
use sizeleak_report::document::{Figure, Value};
use sizeleak_text::{counted, escaped};

use super::audit::AuditedModel;
use super::document::{Document, figure, paragraph, spaced};
use super::evaluate::{COVERED, order_remark, p_in_words};
use super::failure::{NoticeReport, check_damage};
use super::labels::{CORRECTOR, LabelledCaptures};
use super::output_option::ReportOutput;
use super::session::Session;

/// Measure what sizes give away, on labelled captures
#[derive(Debug, Args)]
#[command(mut_args(|argument| match argument.get_id().as_str() {
    // Without a model they would say nothing.
    "section" | "prior" | "decay" => argument.requires("model"),
    _ => argument,
}))]
#[command(override_usage = "sizeleak measure [OPTIONS] --labels <FILE> [FILE]...")]
#[command(after_long_help = "Examples:\n  \
    sizeleak measure test.pcap --labels test.csv --gateway 192.168.1.20\n  \
    sizeleak measure test.pcap --labels test.csv --gateway 192.168.1.20 --model model.toml\n\n\
    It is measured how often an observer is right who learned from the labelled commands before; no model is needed. \
    With `--model` it is also measured how often the observer of `sizeleak audit` is right there, beside what the \
    model says. docs/method.md explains every figure, docs/reference.md the keys of `--format json`.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) captures: LabelledCaptures,

    #[command(flatten)]
    audited: AuditedModel,

    #[command(flatten)]
    output: ReportOutput,
}

pub(crate) fn run(arguments: &Arguments, session: &mut Session) -> Result<()> {
    let Arguments { captures, audited, output } = arguments;
    let form = output.form("sizeleak measure")?;
    let pipeline = audited.pipeline(captures)?;
    session.check(&pipeline)?;
    let model = audited.path().map(|_| audited.model()).transpose()?;
    let Measured { commands, audit, .. } = Measured::new(captures, audited, &pipeline, model.as_ref())?;
    commands.remarks.iter().for_each(|remark| say("note", remark));
    form.write(&audit, None, || table(&audit))?;
    check_damage(commands.damage.as_ref(), COVERED)
}

pub(super) struct Measured {
    /// The stages that find commands; what learns from them takes no model.
    pub(super) pipeline: Pipeline,
    pub(super) traffic: PipelineInput,
    pub(super) labels: LabelFile,
    pub(super) tolerance: Tolerance,
    pub(super) inventory: Option<Inventory>,
    pub(super) commands: LabelledCommands,
    pub(super) audit: MeasuredAudit,
}

impl Measured {
    pub(super) fn new(
        captures: &LabelledCaptures,
        audited: &AuditedModel,
        pipeline: &Pipeline,
        model: Option<&Model>,
    ) -> Result<Self> {
        let inventory = model.map_or_else(|| audited.inventory(), |model| Ok(model.inventory.clone()))?;
        let traffic = captures.input(pipeline)?;
        let labels = captures.read_labels(&traffic, pipeline, None)?;
        let sections = model.map_or(&[][..], std::slice::from_ref);
        let pipeline = captures.of_labelled_gateways(&traffic, pipeline, &labels, sections)?;
        let tolerance = labels.tolerance(captures.tolerance);
        let finding = pipeline.before(CORRECTOR);
        let settings = LearningSettings { inventory: inventory.clone(), ..LearningSettings::default() };
        let commands = NoticeReport::of(
            |notices| LabelledCommands::find(&traffic, &finding, &labels, tolerance, &settings, notices),
            |found| found.damage.as_ref(),
        )?;
        let check = model.map(|model| ModelCheck::of(captures, &pipeline, model, &audited.premises(), &commands));
        let audit = MeasuredAudit::new(&commands, inventory.as_ref(), check.transpose()?);
        Ok(Self { pipeline, traffic, labels, tolerance, inventory, commands, audit })
    }
}

pub(super) fn table(report: &MeasuredAudit) -> Document {
    let sentences: Vec<&str> =
        [Some(&report.sentence), report.model_sentence.as_ref()].into_iter().flatten().map(String::as_str).collect();
    let remarks = report.remarks.iter().flat_map(|remark| paragraph(format!("- {}", escaped(remark)), 2));
    spaced([paragraph(sentences.join(" "), 0), remarks.collect(), figure(&named(report)), measures(&report.by_size)])
}

type Row = (&'static str, fn(&MeasuredLeak) -> Value);

/// The figure of each secret that has at least so many values.
fn row(secrets: &MeasuredSecrets, (name, value): Row, least: u64) -> [Value; 4] {
    let shown = |leak: &MeasuredLeak| Value::from((leak.secrets >= least).then(|| value(leak)));
    let kinds = secrets.kinds.as_ref().map(shown).into();
    [name.into(), shown(&secrets.command), shown(&secrets.number), kinds]
}

fn within(MeasuredShare { share, interval }: MeasuredShare) -> Value {
    Value::Within(share, interval)
}

const BY_SIZE: [Row; 5] = [
    ("by guessing, V₀", |leak| within(leak.guessing)),
    ("by size", |leak| within(leak.named)),
    ("  guessing at new sizes", |leak| within(leak.frequentist)),
    ("  from all other times", |leak| within(leak.from_others)),
    ("  by anybody, V", |leak| whole_percents(leak.vulnerability).into()),
];

pub(crate) fn named(report: &MeasuredAudit) -> Figure {
    let mut rows: Vec<[Value; 4]> = BY_SIZE.iter().map(|of_size| row(&report.by_size, *of_size, 2)).collect();
    for (name, secrets) in
        [("by size and reply count", &report.with_reply_count), ("by size and reply bytes", &report.with_reply_bytes)]
    {
        rows.push(row(secrets, (name, |leak| within(leak.named)), 2));
    }
    if let Some(ModelCheck { figures: Some(figures), .. }) = &report.model {
        let of_model = |name: &str, shown: fn(&ModelFigure) -> Value| {
            [name.into(), shown(&figures.command), shown(&figures.number), Value::Unknown]
        };
        rows.push(of_model("by size, with the model", |figure| within(figure.named)));
        rows.push(of_model("  as the model says", |figure| Value::Share(figure.expected)));
        rows.push(of_model("  of all commands", |figure| Value::Share(figure.over_all_commands)));
    }
    Figure::new("without-a-model", "named correctly | command | number of actions | types of devices", rows).titled(
        "Named by an observer who learned from the commands before",
        "In brackets are intervals of 95 % (Wilson).",
    )
}

const COUNTS: [Row; 3] = [
    ("labelled commands", |leak| count(leak.commands)),
    ("  different", |leak| count(leak.secrets)),
    ("  labelled as no other", |leak| count(leak.secrets_once)),
];

const FIGURES: [Row; 7] = [
    ("  needed at least", |leak| leak.fewest_commands.map(count).into()),
    ("sizes", |leak| count(leak.outputs)),
    ("sizes say nothing: p", |leak| p_in_words(&leak.independence).into()),
    ("V / V₀", |leak| decimals(leak.times_guessing.interval).into()),
    ("V at most, by heart", |leak| Value::Share(leak.upper_bounds.learned_by_heart)),
    ("V at most, by neighbours", |leak| Value::Share(leak.upper_bounds.nearest_neighbour)),
    ("given away, in bits", |leak| {
        let MeasuredInformation { bits, interval, .. } = leak.information;
        interval.map(|Interval { low, high }| format!("{bits:.2} ({low:.2}–{high:.2})")).into()
    }),
];

/// A number that is shown without commas.
fn count(number: u64) -> Value {
    Value::Number(number as f64, 0)
}

fn measures(secrets: &MeasuredSecrets) -> Document {
    let counts = COUNTS.iter().map(|counts| row(secrets, *counts, 1));
    let rows = counts.chain(FIGURES.iter().map(|figures| row(secrets, *figures, 2)));
    figure(&Figure::new("measures", "by size | command | number of actions | types of devices", rows))
}

fn decimals(Interval { low, high }: Interval) -> String {
    if high.is_finite() { format!("{low:.1}–{high:.1}") } else { format!("≥ {low:.1}") }
}

/// An upper bound of V above this bounds nothing.
const NO_BOUND: f64 = 0.995;

const SEED: u64 = 1;

#[derive(Debug, Serialize)]
pub(crate) struct MeasuredAudit {
    schema: u32,
    /// The figure that matters most, or why there is none.
    pub(crate) sentence: String,
    pub(crate) model_sentence: Option<String>,
    pub(crate) remarks: Vec<String>,
    actions: Vec<String>,
    pub(crate) labels: MatchCounts,
    pub(crate) by_size: MeasuredSecrets,
    pub(crate) with_reply_count: MeasuredSecrets,
    /// The same with the bytes of replies.
    pub(crate) with_reply_bytes: MeasuredSecrets,
    /// Whether labels are independent of the order of commands.
    order: PermutationTest,
    pub(crate) model: Option<ModelCheck>,
    seed: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct MeasuredSecrets {
    pub(crate) command: MeasuredLeak,
    pub(crate) number: MeasuredLeak,
    /// Of which kinds of device are addressed; `None` without an inventory, or if it is known of no command.
    pub(crate) kinds: Option<MeasuredLeak>,
}

impl MeasuredAudit {
    pub(crate) fn new(commands: &LabelledCommands, inventory: Option<&Inventory>, model: Option<ModelCheck>) -> Self {
        let counts: Vec<&Vec<u32>> = commands.commands.iter().map(|command| &command.counts).collect();
        let number = |counts: &&Vec<u32>| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
        let (command, number) = (SecretNumbers::new(&counts), counts.iter().map(number).collect::<Vec<_>>());
        let number = SecretNumbers::new(&number);
        let kinds = inventory.and_then(|inventory| kind_secrets(commands, inventory));
        let order = PermutationTest::of_order(command.numbers(), SEED);
        let measured = |replies: fn(&LabelledCommand) -> u64| {
            let leak = |secrets: &SecretNumbers, commands: &[LabelledCommand]| {
                // Under a block cipher, the greatest size that a command may have.
                let output = |it: &LabelledCommand| SeenOutput { size: unsigned(it.sizes[1]), replies: replies(it) };
                MeasuredLeak::new(secrets, &commands.iter().map(output).collect::<Vec<_>>(), SEED)
            };
            let [command, number] = [&command, &number].map(|secrets| leak(secrets, &commands.commands));
            let kinds = kinds.as_ref().map(|(commands, secrets)| leak(secrets, commands));
            MeasuredSecrets { command, number, kinds }
        };
        let by_size = measured(|_| 0);
        let with_reply_count = measured(|command| command.replies.into());
        let with_reply_bytes = measured(|command| unsigned(command.reply_bytes));
        let mut remarks: Vec<String> = unmatched_remark(&commands.matches).into_iter().collect();
        remarks.extend(once_remark(&by_size.command, model.is_some()));
        remarks.extend(bound_remark(&by_size.command));
        remarks.extend(replies_remark(&by_size.command, [&with_reply_count.command, &with_reply_bytes.command]));
        remarks.extend(order_remark(&order));
        remarks.extend(inventory.and_then(|_| kinds_remark(&by_size)));
        remarks.extend(model.iter().flat_map(model_remarks));
        Self {
            schema: 1,
            sentence: sentence(&by_size.command),
            model_sentence: model.as_ref().and_then(model_sentence),
            remarks,
            actions: commands.actions.clone(),
            labels: commands.matches,
            by_size,
            with_reply_count,
            with_reply_bytes,
            order,
            model,
            seed: SEED,
        }
    }
}

fn sentence(leak: &MeasuredLeak) -> String {
    let MeasuredLeak { named, guessing, .. } = leak;
    let commands = counted(leak.commands, "labelled command", "labelled commands");
    if leak.commands == 1 {
        return format!("Nothing can be concluded from {commands}.");
    }
    if leak.secrets <= 1 {
        return format!("Nothing can be concluded from {commands}: all are the same.");
    }
    if leak.secrets == leak.commands {
        return format!(
            "Nothing can be concluded from {commands}: each is labelled as no other is, so that nothing \
             can be learned from the others."
        );
    }
    if leak.has_too_few_commands() {
        let fewest = leak.fewest_commands.map_or_else(
            || "where nearly all are the same".to_owned(),
            |fewest| format!("with fewer than {fewest} of such labels"),
        );
        return format!(
            "Nothing can be concluded from {commands}: {fewest}, even an observer who is always right \
             could not be told from one who guesses."
        );
    }
    let doubt = if leak.is_certain() { "" } else { ", which is not certainly better than guessing" };
    format!(
        "An observer who sees only sizes names the exact command in {} of cases ({}; guessing: {}; {commands}){doubt}.",
        share_in_words(named.share),
        whole_percents(named.interval),
        share_in_words(guessing.share)
    )
}

/// An interval in whole percents, which is not cut.
fn whole_percents(Interval { low, high }: Interval) -> String {
    format!("{:.0}–{:.0} %", (100.0 * low).floor(), (100.0 * high).ceil())
}

fn unmatched_remark(labels: &MatchCounts) -> Option<String> {
    let MatchCounts { missed, ambiguous, .. } = labels;
    (missed + ambiguous > 0).then(|| {
        format!(
            "{} left out: {} none nearby, {ambiguous} only one of another label",
            counted(
                missed + ambiguous,
                "label belongs to no command that was found, and is",
                "labels belong to no command that was found, and are"
            ),
            counted(*missed, "has", "have")
        )
    })
}

fn once_remark(leak: &MeasuredLeak, has_model: bool) -> Option<String> {
    let MeasuredLeak { commands, secrets, secrets_once, .. } = leak;
    let remedy =
        if has_model { "" } else { "; an observer who learns the sizes of actions may name them, too (`--model`)" };
    let [are, them, they_count] =
        if *secrets_once == 1 { ["is", "it", "it counts"] } else { ["are", "them", "they count"] };
    (*secrets_once > 0 && *secrets > 1).then(|| {
        format!(
            "{secrets_once} of {commands} commands {are} labelled as no other is, so that nobody can learn {them} from the \
             others: {they_count} as not named{remedy}"
        )
    })
}

fn bound_remark(leak: &MeasuredLeak) -> Option<String> {
    let has_secrets = leak.secrets > 1;
    (has_secrets && leak.vulnerability.high > NO_BOUND && leak.named.interval.high < NO_BOUND)
        .then(|| "these commands set no limit to what a better observer would name: V may be 100 %".to_owned())
}

fn replies_remark(by_size: &MeasuredLeak, with_replies: [&MeasuredLeak; 2]) -> Option<String> {
    // Two tests of the same question: each has half of what is accepted.
    let telling = with_replies.into_iter().filter(|leak| leak.independence.p_value <= SIGNIFICANT / 2.0);
    let telling = telling.max_by(|one, other| one.named.share.total_cmp(&other.named.share));
    telling.filter(|_| by_size.independence.p_value > SIGNIFICANT).map(|leak| {
        format!(
            "sizes of commands alone say nothing that can be told from chance (p {}), but the replies do (p {}): who sees \
             them, too, names {} ({})",
            p_in_words(&by_size.independence),
            p_in_words(&leak.independence),
            share_in_words(leak.named.share),
            whole_percents(leak.named.interval)
        )
    })
}

fn kinds_remark(by_size: &MeasuredSecrets) -> Option<String> {
    let all = by_size.command.commands;
    let known = by_size.kinds.as_ref().map_or(0, |kinds| kinds.commands);
    (known < all).then(|| {
        format!(
            "which kinds of device are addressed is known of {known} of {all} commands, the others have actions of several \
             kinds or of none"
        )
    })
}

fn model_sentence(check: &ModelCheck) -> Option<String> {
    let ModelFigure { named, expected, agrees, .. } = check.figures.as_ref()?.command;
    let place = if agrees { "lies within" } else { "lies outside" };
    let meaning = if agrees { "" } else { ": these commands are not as the model describes them" };
    let those = match check.unknown_commands + check.other_ciphers {
        0 => "them".to_owned(),
        _ => format!("the {} that it knows", check.commands),
    };
    Some(format!(
        "An observer who knows the model names {} of {those} by size. The model's figure for these commands, {}, {place} \
         what was measured, {}{meaning}.",
        share_in_words(named.share),
        share_in_words(expected),
        whole_percents(named.interval)
    ))
}

fn model_remarks(check: &ModelCheck) -> Vec<String> {
    let ModelCheck { learned_from, unknown_commands, other_ciphers, unknown_sizes, fault, .. } = check;
    let mut remarks = Vec::new();
    if !learned_from.is_empty() {
        remarks.push(format!(
            "the model was learned from {}: that it fits there says little; audit captures that it has not seen",
            learned_from.join(", ")
        ));
    }
    remarks.extend(fault.as_ref().map(|fault| format!("there are no figures of the model: {fault}")));
    let counted = [
        (
            unknown_commands,
            "commands have actions or devices that the model does not have: its figures are without them",
        ),
        (
            other_ciphers,
            "commands are under a cipher that the model's sizes do not hold for: its figures are without them",
        ),
        (unknown_sizes, "commands have a size that no command of the model has: it names none of them"),
    ];
    remarks.extend(counted.iter().filter(|(count, _)| **count > 0).map(|(count, text)| format!("{count} {text}")));
    remarks
}

fn unsigned(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}

/// A command's kinds are known if each of its actions is one of a single kind.
fn kind_secrets(commands: &LabelledCommands, inventory: &Inventory) -> Option<(Vec<LabelledCommand>, SecretNumbers)> {
    let only_kind = |action: &String| -> Option<usize> {
        let mut kinds = (0..).zip(&inventory.devices).filter(|(_, kind)| kind.actions.contains(action));
        let first = kinds.next();
        first.filter(|_| kinds.next().is_none()).map(|(kind, _)| kind)
    };
    let of_actions: Vec<Option<usize>> = commands.actions.iter().map(only_kind).collect();
    let kinds_of = |counts: &[u32]| -> Option<BTreeSet<usize>> {
        counts.iter().zip(&of_actions).filter(|(count, _)| **count > 0).map(|(_, kind)| *kind).collect()
    };
    let known = commands.commands.iter().filter_map(|command| Some((command.clone(), kinds_of(&command.counts)?)));
    let (commands, kinds): (Vec<_>, Vec<_>) = known.filter(|(_, kinds)| !kinds.is_empty()).unzip();
    (!commands.is_empty()).then(|| (commands, SecretNumbers::new(&kinds)))
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct ModelCheck {
    learned_from: Vec<String>,
    /// How many labelled commands the model knows: the figures are of these.
    commands: u64,
    /// How many it does not know, because it lacks an action or a device.
    unknown_commands: u64,
    /// How many are under a cipher that its sizes on the wire do not hold for.
    other_ciphers: u64,
    /// How many that it knows have a size that no command of the model has.
    unknown_sizes: u64,
    /// `None` if the figures cannot be computed.
    figures: Option<ModelFigures>,
    fault: Option<String>,
}

#[derive(Debug, Serialize)]
struct ModelFigures {
    command: ModelFigure,
    number: ModelFigure,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct ModelFigure {
    named: MeasuredShare,
    /// What the model says of these commands, each as frequent as it is among the labels.
    expected: f64,
    agrees: bool,
    /// What the model says of all commands of the home, as probable as its prior says: V of the audit without captures.
    over_all_commands: f64,
}

impl ModelFigure {
    fn new(right: f64, expected: f64, commands: u64, over_all_commands: f64) -> Self {
        // Where the guess is one of several, so is being right.
        let named = MeasuredShare::new(right.round() as u64, commands);
        let expected = expected / commands.max(1) as f64;
        // Up to rounding of sums.
        let agrees = named.interval.low - 1e-9 <= expected && expected <= named.interval.high + 1e-9;
        Self { named, expected, agrees, over_all_commands }
    }
}

impl ModelCheck {
    pub(crate) fn of(
        captures: &LabelledCaptures,
        pipeline: &Pipeline,
        model: &Model,
        premises: &Premises,
        commands: &LabelledCommands,
    ) -> Result<Self> {
        let learned_from = captures.learned_from(std::slice::from_ref(model), pipeline)?;
        let mut check = Self { learned_from, ..Self::default() };
        match check.figures(model, premises, commands) {
            Ok(figures) => check.figures = Some(figures),
            Err(fault) => check.fault = Some(fault),
        }
        Ok(check)
    }

    fn figures(
        &mut self,
        model: &Model,
        premises: &Premises,
        commands: &LabelledCommands,
    ) -> Result<ModelFigures, String> {
        if let Some(why) = model.learned.unfit_for_figures() {
            return Err(why);
        }
        if matches!(model.learned.padding, Some(LearnedPadding::Modulo(_))) {
            return Err("where the multiples begin that commands are padded to is not known".to_owned());
        }
        let fault = |error: SpaceError| error.to_string();
        let space = CommandSpace::new(model, premises).map_err(fault)?;
        let mut observer = ModelObserver::new(&space, model).map_err(fault)?;
        let (mut right, mut expected) = (NamedSecrets::default(), NamedSecrets::default());
        for (command, size) in commands.commands.iter().zip(commands.sizes_in(&model.learned.basis)) {
            let Some(size) = size else {
                self.other_ciphers += 1;
                continue;
            };
            let counts = counts_in(model, &commands.actions, command);
            let Some(counts) = counts.filter(|counts| observer.knows_command(counts)) else {
                self.unknown_commands += 1;
                continue;
            };
            self.commands += 1;
            self.unknown_sizes += u64::from(!observer.knows_size(size));
            add(&mut right, observer.right(&counts, size));
            add(&mut expected, observer.expected(&counts));
        }
        if self.commands == 0 {
            return Err("it knows none of the labelled commands".to_owned());
        }
        let named = observer.named();
        Ok(ModelFigures {
            command: ModelFigure::new(right.command, expected.command, self.commands, named.command),
            number: ModelFigure::new(right.number, expected.number, self.commands, named.number),
        })
    }
}

fn add(sum: &mut NamedSecrets, named: NamedSecrets) {
    sum.command += named.command;
    sum.number += named.number;
}

fn counts_in(model: &Model, actions: &[String], command: &LabelledCommand) -> Option<Vec<u32>> {
    let mut counts = vec![0_u32; model.actions.len()];
    for (action, count) in actions.iter().zip(&command.counts).filter(|(_, count)| **count > 0) {
        let at = model.actions.iter().position(|known| known.name == *action)?;
        let known = counts.get_mut(at)?;
        *known = known.saturating_add(*count);
    }
    Some(counts)
}
