//! `sizeleak audit`: what the sizes of a gateway's commands give away, computed over all commands of an inventory: without
//! a tunnel, and through it. And what a model is asked of: its section, the devices, and how probable commands are before
//! their size is seen.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde::Serialize;
use sizeleak_audit::leakage::{Audit, Learned, Repeated, command_name, share_in_words, with_inventory};
use sizeleak_audit::tunnel::{
    Background, BackgroundError, Conversation, MAX_FLOWS, ObservedFlows, TCP_HEADER, Tunnel, TunnelAudit, TunnelKind,
    UDP_HEADER, flows_in_words,
};
use sizeleak_frame::{Direction, Flow, Frame, Transport};
use sizeleak_inference::channel::{Measures, Observer};
use sizeleak_inference::space::{Premises, PriorName, SpaceError};
use sizeleak_model::{Device, Inventory, LearnedPadding, Model, ModelSet, Scope};
use sizeleak_pipeline::{InputSource, Pipeline, PipelineInput, RunError};
use sizeleak_platform::telemetry::log::say;
use sizeleak_report::document::Value::{self, AtMost, Count, Number, Share, Sum};
use sizeleak_report::document::{Figure, NONE};
use sizeleak_report::leak::{anonymity_sets, by_number, has_one_value};
use sizeleak_text::{counted, escaped};
use sizeleak_traffic::survey::{SurveyRun, in_words};

use super::document::{Document, figure, line, paragraph, rest, spaced};
use super::failure::{NoticeReport, check_damage, parsed, usage};
use super::labels::LabelledCaptures;
use super::output_option::ReportOutput;
use super::session::Session;
use super::shared_options::share;

/// Compute what the sizes of commands give away, from a model
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    sizeleak audit --model model.toml\n  \
    sizeleak audit --model model.toml --inventory larger-home.toml --prior devices --decay 0.75\n  \
    sizeleak audit --model model.toml --tunnel wireguard --background 5:home.pcap\n\n\
    Nothing is sampled: all commands that the inventory allows are summed over. The observer has the model and the prior, \
    and guesses as well as these allow. docs/method.md explains every figure. `sizeleak measure` says what labelled \
    captures show, and `sizeleak pad` what hides commands.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    audited: AuditedModel,

    #[command(flatten)]
    observer: ObserverOption,

    /// So many other flows send through the tunnel, each like one of this capture or folder of captures. As in
    /// 5:home.pcap. Flows of the model's services are left out.
    #[arg(long, value_name = "FLOWS:CAPTURE", requires = "tunnel", value_parser = background)]
    background: Option<(u32, PathBuf)>,

    #[command(flatten)]
    output: ReportOutput,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: u32,
    sentence: String,
    prior: PriorReport,
    actions: Vec<&'a str>,
    devices: Option<&'a [Device]>,
    #[serde(flatten)]
    audit: &'a Audit,
}

pub(crate) fn run(arguments: &Arguments, session: &mut Session) -> Result<()> {
    let Arguments { audited, observer, output, .. } = arguments;
    let form = output.form("sizeleak audit")?;
    if arguments.background.is_some() {
        session.check(&arguments.background_pipeline()?)?;
    }
    let model = audited.fit_model()?;
    let (prior, actions) = (audited.prior(&model), actions(&model));
    if let Some(tunnel) = &observer.tunnel(&model) {
        let read = arguments.read_background(tunnel, &model.scope)?;
        let background = read.as_ref().map(|(background, _)| background);
        let audit = TunnelAudit::new(&model, &audited.premises(), tunnel, background)?;
        let sentence = audit.sentence(tunnel, background);
        let report = TunnelReport { schema: 1, sentence, prior, actions, tunnel, background, audit };
        form.write(&report, None, || report.document())?;
        return check_damage(read.and_then(|(_, damage)| damage).as_ref(), COVERED);
    }
    let audit = Audit::new(&model, &audited.premises())?;
    let report = Report {
        schema: 1,
        sentence: audit.sentence(),
        prior,
        actions,
        devices: model.inventory.as_ref().map(|inventory| inventory.devices.as_slice()),
        audit: &audit,
    };
    form.write(&report, None, || table(&audit, &model, &report.prior.sentence))
}

const COVERED: &str = "the background is that from before the damage";

fn background(text: &str) -> Result<(u32, PathBuf), String> {
    let parsed = text.split_once(':').and_then(|(flows, capture)| Some((flows.parse().ok()?, capture.into())));
    parsed
        .filter(|(flows, _)| *flows <= 64)
        .ok_or_else(|| "write it like 5:home.pcap, with at most 64 flows".to_owned())
}

impl Arguments {
    fn background_pipeline(&self) -> Result<Pipeline> {
        let run = SurveyRun {
            captures: self.background.iter().map(|(_, capture)| capture.clone()).collect(),
            recursive: true,
            gateways: Vec::new(),
        };
        Ok(run.pipeline()?.until("flow-filter")?)
    }

    /// The flows that are asked for, through a tunnel of a gateway that `scope` names, and the damage of their capture.
    fn read_background(&self, tunnel: &Tunnel, scope: &Scope) -> Result<Option<(Background, Option<RunError>)>> {
        let Some((flows, capture)) = &self.background else { return Ok(None) };
        let (pipeline, mut conversations) = (self.background_pipeline()?, BTreeMap::new());
        let (mut observed, mut fault) = (ObservedFlows::default(), None);
        let mut add = |frame: Frame| match frame {
            _ if fault.is_some() => {}
            Frame::Flow(flow) if !is_own(scope, &flow) => {
                let transport_header = if flow.transport == Transport::Tcp { TCP_HEADER } else { UDP_HEADER };
                let of_flow = Conversation { device: flow.gateway, service: flow.service, transport_header };
                conversations.insert(flow.flow, of_flow);
                fault = (conversations.len() >= MAX_FLOWS).then_some(BackgroundError::TooManyFlows);
            }
            Frame::Segments(segments) => {
                fault = segments.iter().find_map(|segment| {
                    observed.add_time(segment.time_ns);
                    let of_flow: Option<&Conversation> = conversations.get(&segment.flow);
                    let conversation = *of_flow.filter(|_| segment.direction == Direction::ToGateway)?;
                    let Conversation { device, transport_header, .. } = conversation;
                    let packets = tunnel.packets(segment.length.into(), device, transport_header);
                    observed.add(conversation, segment.time_ns, packets).err()
                });
            }
            _ => {}
        };
        let input = PipelineInput::new(InputSource::Captures);
        let damage = NoticeReport::of(|notices| input.observe(&pipeline, notices, &mut add), Option::as_ref)?;
        let found = fault.map_or(Ok(()), Err).and_then(|()| Background::new(&observed, *flows));
        match (found, damage) {
            (Err(BackgroundError::NoFlow), Some(damage)) => Err(damage.into()),
            (found, damage) => Ok(Some((found.with_context(|| capture.display().to_string())?, damage))),
        }
    }
}

fn is_own(scope: &Scope, flow: &Flow) -> bool {
    let is_gateway = scope.gateway.is_some_and(|gateway| gateway == flow.gateway);
    is_gateway && scope.services.is_empty() || scope.has_address(flow.service)
}

const INDENT: usize = 2;

const SHOWN: usize = 6;

fn table(audit: &Audit, model: &Model, prior: &str) -> Document {
    spaced([
        paragraph(audit.sentence(), 0),
        premises(audit, model, prior),
        named(audit),
        measures(&audit.by_size),
        figure(&anonymity_sets(audit)),
        figure(&by_number(audit)),
        collisions(audit, model),
    ])
}

fn premises(audit: &Audit, model: &Model, prior: &str) -> Document {
    let devices = model.inventory.as_ref().map_or_else(
        || "any number of devices, as no inventory names them (`--inventory FILE`)".to_owned(),
        |inventory| {
            let kinds: Vec<String> =
                inventory.devices.iter().map(|device| format!("{} {}", device.count, device.name)).collect();
            kinds.join(", ")
        },
    );
    let many =
        |count: f64, one, several| format!("{} {}", Count(count).shown(), if count < 1.5 { one } else { several });
    let (commands, sizes) = (many(audit.commands, "command", "commands"), many(audit.sizes as f64, "size", "sizes"));
    let [actions, most] =
        [model.actions.len() as u64, audit.most_actions.into()].map(|it| counted(it, "action", "actions"));
    let home = format!("{devices}; {actions}; {commands} of up to {most}, which have {sizes}");
    let left_out = match audit.left_out {
        left_out if left_out > 0.0 => {
            format!("; commands of more actions are left out ({} of all)", Share(left_out).shown())
        }
        _ => String::new(),
    };
    let padded = match &model.learned.padding {
        Some(LearnedPadding::Modulo(_)) => "; where the multiples begin is not known, and taken to be 0",
        _ => "",
    };
    let blocks = audit.block_bytes.map(|bytes| {
        format!("sizes are multiples of {bytes} bytes on the wire: smaller differences are not seen{padded}")
    });
    named_paragraphs([("prior", Some(prior.to_owned())), ("home", Some(home + &left_out)), ("blocks", blocks)])
}

fn named_paragraphs<const N: usize>(texts: [(&str, Option<String>); N]) -> Document {
    let known = texts.into_iter().filter_map(|(name, text)| Some(format!("{name}: {}", escaped(&text?))));
    known.flat_map(|text| paragraph(text, INDENT)).collect()
}

fn of_secrets(name: &str, learned: &Learned, value: impl Fn(&Measures) -> Value) -> [Value; 4] {
    [name.into(), value(&learned.command), value(&learned.number), learned.kinds.as_ref().map(&value).into()]
}

fn named(audit: &Audit) -> Document {
    // A secret with one value needs no observer.
    let unknown_before = |measures: &Measures, share: f64| (!has_one_value(measures)).then_some(Share(share)).into();
    let right = |measures: &Measures| -> Value { unknown_before(measures, measures.named) };
    let words = |name: &str, why: &str| [name, why, why, why].map(Value::from);
    let command = |name: String, named: Value| [name.into(), named, "".into(), "".into()];
    let mut rows = vec![
        of_secrets("by guessing, V₀", &audit.by_size, |measures| unknown_before(measures, measures.guessing)),
        of_secrets("by size, V", &audit.by_size, right),
    ];
    rows.extend(audit.repeated.iter().map(|Repeated { observations, named }| {
        command(format!("  by {observations} sizes of the same command"), named.map(Share).into())
    }));
    rows.push(command("  by any number of them".to_owned(), Share(audit.in_the_end)));
    // In blocks, ε moves the size to another block or not, which is not worked out for each of its values.
    let without = if audit.block_bytes.is_some() { "  by size, if ε were 0" } else { "  by size, with ε known" };
    rows.push(of_secrets(without, &audit.with_known_epsilon, right));
    let observers = [
        ("by size and number of replies", Observer::ReplyCount, &audit.with_reply_count),
        ("by size and single replies", Observer::Replies, &audit.with_replies),
    ];
    rows.extend(observers.map(|(name, observer, learned)| match learned {
        Some(learned) if learned.is_exact => of_secrets(name, learned, right),
        Some(learned) => of_secrets(name, learned, |measures| match right(measures) {
            Share(named) => AtMost(named),
            unknown => unknown,
        }),
        None if audit.too_many.contains(&observer) => words(name, NONE),
        None => words(name, "as by size"),
    }));
    figure(&Figure::new("named", "named correctly | command | number of actions | types of devices", rows))
}

type MeasureRow = (&'static str, fn(&Measures) -> Value);

const ROWS: [MeasureRow; 19] = [
    ("V / V₀", |measures| Value::figure(measures.times_guessing)),
    ("  at most, under any prior", |measures| Value::figure(measures.capacity)),
    ("V − V₀", |measures| Share(measures.above_guessing.max(0.0))),
    ("log₂ V / V₀, in bits", |measures| Value::figure(measures.min_entropy_bits)),
    ("entropy before, in bits", |measures| Value::figure(measures.prior_bits)),
    ("  given away by size", |measures| Value::figure(measures.information_bits)),
    ("  left", |measures| Value::figure(measures.remaining_bits)),
    ("Bayes security β", |measures| measures.security.map(|security| Number(security, 3)).into()),
    ("  at least, under any prior", |measures| measures.least_security.map(|security| Number(security, 3)).into()),
    ("right within 2 tries", |measures| within(measures, 0)),
    ("right within 3 tries", |measures| within(measures, 1)),
    ("right within 5 tries", |measures| within(measures, 2)),
    ("right within 10 tries", |measures| within(measures, 3)),
    ("posterior of 50 % or more", |measures| certain(measures, 0)),
    ("posterior of 90 % or more", |measures| certain(measures, 1)),
    ("posterior of 99 % or more", |measures| certain(measures, 2)),
    ("greatest posterior", |measures| Share(measures.worst_posterior)),
    ("alone in its size, ε unknown", |measures| Sum(measures.alone)),
    ("smallest anonymity set", |measures| Count(measures.smallest_set)),
];

fn measures(learned: &Learned) -> Document {
    let rows = ROWS.iter().map(|(name, value)| of_secrets(name, learned, value));
    figure(&Figure::new("measures", "by size | command | number of actions | types of devices", rows))
}

fn collisions(audit: &Audit, model: &Model) -> Document {
    if audit.collisions.is_empty() {
        return line("no two commands of one or two actions have the same size");
    }
    let alike = |commands: &[Vec<u32>]| {
        let names: Vec<String> = commands.iter().map(|counts| command_name(model, counts)).collect();
        paragraph(escaped(&format!("  {}", names.join(" = "))), 4)
    };
    let shown = audit.collisions.iter().take(SHOWN).flat_map(|collision| alike(&collision.commands));
    let more = rest(audit.collisions.len(), SHOWN, |more| {
        format!("  and {} (--format json lists all)", counted(more, "more size", "more sizes"))
    });
    let heading = line("commands of one or two actions that have the same size:");
    [heading, shown.collect(), more].concat()
}

fn within(measures: &Measures, at: usize) -> Value {
    measures.tries.get(at).map(|tries| Share(tries.named)).into()
}

fn certain(measures: &Measures, at: usize) -> Value {
    measures.certain.get(at).map(|certain| Share(certain.probability)).into()
}

#[derive(Debug, Serialize)]
struct TunnelReport<'a> {
    schema: u32,
    sentence: String,
    prior: PriorReport,
    actions: Vec<&'a str>,
    tunnel: &'a Tunnel,
    background: Option<&'a Background>,
    #[serde(flatten)]
    audit: TunnelAudit,
}

type Row = (&'static str, fn(&Learned) -> Value);

impl TunnelReport<'_> {
    fn document(&self) -> Document {
        let premises = named_paragraphs([
            ("prior", Some(self.prior.sentence.clone())),
            ("tunnel", Some(self.tunnel.in_words())),
            ("background", self.background_in_words()),
            ("observer", Some("counts the packets that are sent at once, and adds up their bytes".to_owned())),
        ]);
        let named: [Row; 6] = [
            ("command by guessing, V₀", |learned| Share(learned.command.guessing)),
            ("command, V", |learned| Share(learned.command.named)),
            ("number of actions by guessing", |learned| Share(learned.number.guessing)),
            ("number of actions", |learned| Share(learned.number.named)),
            ("types of devices by guessing", |learned| {
                learned.kinds.as_ref().map(|kinds| Share(kinds.guessing)).into()
            }),
            ("types of devices", |learned| learned.kinds.as_ref().map(|kinds| Share(kinds.named)).into()),
        ];
        let named = self.beside("named correctly", named.into_iter());
        let measures = ROWS.iter().map(|(name, value)| (*name, |learned: &Learned| value(&learned.command)));
        let sentence = paragraph(self.sentence.clone(), 0);
        spaced([sentence, premises, named, self.beside("of the command", measures)])
    }

    fn background_in_words(&self) -> Option<String> {
        let Background { flows, conversations, seconds, busy, .. } = self.background?;
        let left_out = match self.audit.left_out {
            left_out if left_out > 0.0 => format!(
                "; what they send in {} of cases is taken to hide nothing, so that no more is given away than this",
                share_in_words(left_out)
            ),
            _ => String::new(),
        };
        let (flows, time, busy) = (flows_in_words(*flows), in_words((seconds * 1e9) as i64), share_in_words(*busy));
        Some(format!(
            "{flows}, each like any of {conversations} of a device with a service in {time}, which sends within 40 ms of a \
             command in {busy} of cases{left_out}"
        ))
    }

    fn beside<F: Fn(&Learned) -> Value>(&self, title: &str, rows: impl Iterator<Item = (&'static str, F)>) -> Document {
        let TunnelAudit { by_size, through_tunnel, beside_background, .. } = &self.audit;
        let mut columns = vec![title.to_owned(), "by size alone".to_owned(), "through the tunnel".to_owned()];
        columns.extend(self.background.map(|background| format!("beside {}", flows_in_words(background.flows))));
        let seen = || [by_size, through_tunnel].into_iter().chain(beside_background);
        let rows = rows.map(|(name, value)| [name.into()].into_iter().chain(seen().map(&value)).collect());
        figure(&Figure::of("beside", columns, rows.collect()))
    }
}

#[derive(Debug, Args)]
pub(super) struct AuditedModel {
    /// The model of the gateway, made by `sizeleak learn`
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// Which section of a model of several services, from 1
    #[arg(long, value_name = "NUMBER")]
    section: Option<usize>,

    /// The devices, if they are others than those of the model
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// How probable commands are before their size is seen: learned, recurring, devices or flat [default: recurring]
    #[arg(long, value_enum, hide_possible_values = true, default_value_t, hide_default_value = true)]
    prior: PriorName,

    /// How likely n + 1 actions are, compared with n [default: as learned]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    decay: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct PriorReport {
    name: PriorName,
    decay: Option<f64>,
    pub(super) sentence: String,
}

/// The section of this number, from 1, or the only one.
pub(super) fn section(model: ModelSet, number: Option<usize>) -> Result<Model> {
    let sections = model.into_sections();
    let count = sections.len();
    if number.is_none() && count > 1 {
        let fault = "the model is about several services: name one of its sections with";
        return Err(usage!("{fault} `--section`, from 1 to {count}"));
    }
    let number = number.unwrap_or(1);
    let section = number.checked_sub(1).and_then(|at| sections.into_iter().nth(at));
    section.ok_or_else(|| {
        usage!("the model has no section {number}, only {count}: name one with `--section`, from 1 to {count}")
    })
}

pub(super) fn actions(model: &Model) -> Vec<&str> {
    model.actions.iter().map(|action| action.name.as_str()).collect()
}

impl AuditedModel {
    pub(super) fn files(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        let named = [("the model", &self.model), ("the inventory", &self.inventory)];
        named.into_iter().filter_map(|(role, path)| Some((role, path.clone()?)))
    }

    pub(super) fn path(&self) -> Option<&PathBuf> {
        self.model.as_ref()
    }

    pub(super) fn pipeline(&self, captures: &LabelledCaptures) -> Result<Pipeline> {
        captures.pipeline(captures.traffic.pipeline()?, self.model.as_slice(), &[])
    }

    pub(super) fn premises(&self) -> Premises {
        Premises { prior: self.prior, decay: self.decay }
    }

    pub(super) fn prior(&self, model: &Model) -> PriorReport {
        let number = self.decay.map_or_else(
            || "the number of actions is as learned".to_owned(),
            |decay| format!("each number of actions is {decay} times as likely as one less"),
        );
        // Without labels, they are commands that the sizes explain.
        let learned = format!("learned from {}", counted(model.learned.commands, "command", "commands"));
        let recurring = if self.prior == PriorName::Recurring { model.recurring_in_words() } else { None };
        let recurring = recurring.map_or_else(String::new, |commands| format!("; {commands}"));
        let sentence = match self.prior {
            PriorName::Learned | PriorName::Recurring if self.decay.is_none() => format!("{learned}{recurring}"),
            PriorName::Learned | PriorName::Recurring => {
                format!("how often each action occurs is {learned}; {number}{recurring}")
            }
            PriorName::Devices => format!("each device is as likely, and each of its actions; {number}"),
            PriorName::Flat => "each command is as likely".to_owned(),
        };
        PriorReport { name: self.prior, decay: self.decay, sentence }
    }

    pub(super) fn inventory(&self) -> Result<Option<Inventory>> {
        self.inventory.as_ref().map(|path| parsed(path, Inventory::from_toml)).transpose()
    }

    /// The model's section, if its sizes are known well enough for a figure.
    pub(super) fn fit_model(&self) -> Result<Model> {
        let model = self.model()?;
        let unfit = model.learned.unfit_for_figures().map(|why| anyhow!(why));
        let fault = unfit
            .or_else(|| model.actions.is_empty().then(|| SpaceError::without_sizes(model.inventory.as_ref()).into()));
        fault.map_or(Ok(model), |fault| Err(fault.context(self.named())))
    }

    /// The model's file, as errors name it.
    pub(super) fn named(&self) -> String {
        self.path().map_or_else(String::new, |path| path.display().to_string())
    }

    pub(super) fn model(&self) -> Result<Model> {
        let Some(model) = &self.model else {
            return Err(usage!("the model is missing: name it with `--model FILE`"));
        };
        let model = section(ModelSet::read(&[model])?, self.section)?;
        if model.kinds.is_some() && !model.actions.is_empty() {
            say("note", "commands that the model knows only as kinds are left out: the audit is about sums of actions");
        }
        // One that is not fit for figures says its warnings instead of them.
        if model.learned.unfit_for_figures().is_none() {
            model.learned.warnings.iter().for_each(|warning| {
                say("sizeleak", &format!("the model was learned with a warning, and so are these figures: {warning}"));
            });
        }
        let (Some(path), Some(inventory)) = (&self.inventory, self.inventory()?) else { return Ok(model) };
        let name = || path.display().to_string();
        let has_sizes = !model.actions.is_empty();
        let (model, gone) = with_inventory(model, inventory).with_context(name)?;
        if !has_sizes {
            // It knows commands as kinds alone, whatever the devices are; who needs sizes of actions says so.
            return Ok(model);
        }
        if model.actions.is_empty() {
            let path = path.display();
            let fault = "no device has an action that the model has sizes of: name actions as the model does";
            return Err(usage!("{path}: {fault}"));
        }
        let unknown = model.inventory.as_ref().map(|inventory| inventory.unlearned(&model.actions).join(", "));
        let notes = [
            ("no device of the inventory has these actions of the model, which are left out", gone.join(", ")),
            ("the model does not know these actions of the inventory, which are left out", unknown.unwrap_or_default()),
        ];
        for (note, actions) in notes.iter().filter(|(_, actions)| !actions.is_empty()) {
            say("note", &format!("{note}: {actions}"));
        }
        Ok(model)
    }
}

#[derive(Debug, Args)]
pub(super) struct ObserverOption {
    /// What who sees the packets of a tunnel learns: wireguard, esp-gcm, esp-cbc, or a policy by which it pads packets.
    /// Such as multiple:128. The observer counts the packets that are sent at once, and adds up their bytes.
    #[arg(long, value_name = "NAME")]
    tunnel: Option<TunnelKind>,
}

impl ObserverOption {
    pub(super) fn tunnel(&self, model: &Model) -> Option<Tunnel> {
        self.tunnel.clone().map(|kind| Tunnel::new(kind, model))
    }
}
