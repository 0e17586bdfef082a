//! `sizeleak audit`: what the sizes of a gateway's commands give away, computed over all commands of an inventory: without
//! a tunnel, and through it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use sizeleak_audit::leakage::{Audit, Learned, Repeated, command_name, share_in_words};
use sizeleak_audit::tunnel::{
    Background, BackgroundError, Conversation, MAX_FLOWS, ObservedFlows, TCP_HEADER, Tunnel, TunnelAudit, UDP_HEADER,
    flows_in_words,
};
use sizeleak_frame::{Direction, Flow, Frame, Transport};
use sizeleak_inference::channel::{Measures, Observer};
use sizeleak_model::{Device, LearnedPadding, Model, Scope};
use sizeleak_pipeline::{InputSource, Pipeline, PipelineInput, RunError};
use sizeleak_report::document::Value::{self, AtMost, Count, Number, Share, Sum};
use sizeleak_report::document::{Figure, NONE};
use sizeleak_report::leak::{anonymity_sets, by_number, has_one_value};
use sizeleak_text::{counted, escaped};
use sizeleak_traffic::survey::{SurveyRun, in_words};

use super::audited_model::{AuditedModel, ObserverOption, PriorReport, actions};
use super::failure::check_damage;
use super::report_format::ReportOutput;
use super::session::Session;
use crate::command::document::{Document, figure, line, paragraph, rest, spaced};
use crate::command::notices::NoticeReport;

/// Compute what the sizes of commands give away, from a model
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    sizeleak audit --model model.toml\n  \
    sizeleak audit --model model.toml --inventory larger-home.toml --prior devices --decay 0.75\n  \
    sizeleak audit --model model.toml --tunnel wireguard --background 5:home.pcap\n\n\
    Nothing is sampled: all commands that the inventory allows are summed over. The observer has the model and the prior, \
    and guesses as well as these allow. docs/audit.md explains every figure. `sizeleak measure` says what labelled \
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
        let mut reader = Reader { tunnel, scope, conversations: BTreeMap::new(), observed: ObservedFlows::default() };
        let (pipeline, mut fault) = (self.background_pipeline()?, None);
        let mut add = |frame: Frame| {
            if fault.is_none() {
                fault = reader.add(&frame).err();
            }
        };
        let input = PipelineInput::new(InputSource::Captures);
        let damage = NoticeReport::of(|notices| input.observe(&pipeline, notices, &mut add), Option::as_ref)?;
        let found = fault.map_or(Ok(()), Err).and_then(|()| Background::new(&reader.observed, *flows));
        match (found, damage) {
            (Err(BackgroundError::NoFlow), Some(damage)) => Err(damage.into()),
            (found, damage) => Ok(Some((found.with_context(|| capture.display().to_string())?, damage))),
        }
    }
}

struct Reader<'a> {
    tunnel: &'a Tunnel,
    scope: &'a Scope,
    /// Those of flows that are not the model's.
    conversations: BTreeMap<u64, Conversation>,
    observed: ObservedFlows,
}

impl Reader<'_> {
    fn add(&mut self, frame: &Frame) -> Result<(), BackgroundError> {
        match frame {
            Frame::Flow(flow) if !self.is_own(flow) => {
                let transport_header = if flow.transport == Transport::Tcp { TCP_HEADER } else { UDP_HEADER };
                let of_flow = Conversation { device: flow.gateway, service: flow.service, transport_header };
                self.conversations.insert(flow.flow, of_flow);
                if self.conversations.len() >= MAX_FLOWS {
                    return Err(BackgroundError::TooManyFlows);
                }
            }
            Frame::Segments(segments) => {
                for segment in segments.iter() {
                    self.observed.add_time(segment.time_ns);
                    let of_flow = self.conversations.get(&segment.flow);
                    let to_device = of_flow.filter(|_| segment.direction == Direction::ToGateway);
                    if let Some(conversation) = to_device {
                        let Conversation { device, transport_header, .. } = *conversation;
                        let packets = self.tunnel.packets(segment.length.into(), device, transport_header);
                        self.observed.add(*conversation, segment.time_ns, packets)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn is_own(&self, flow: &Flow) -> bool {
        let Scope { gateway, services, .. } = self.scope;
        let is_gateway = gateway.is_some_and(|gateway| gateway == flow.gateway);
        is_gateway && services.is_empty() || self.scope.has_address(flow.service)
    }
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
    let lines = [("prior", Some(prior.to_owned())), ("home", Some(home + &left_out)), ("blocks", blocks)];
    lines.into_iter().filter_map(|(name, text)| Some(named_paragraph(name, &text?))).flatten().collect()
}

fn named_paragraph(name: &str, text: &str) -> Document {
    paragraph(format!("{name}: {}", escaped(text)), INDENT)
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
        let premises = [
            ("prior", Some(self.prior.sentence.clone())),
            ("tunnel", Some(self.tunnel.in_words())),
            ("background", self.background_in_words()),
            ("observer", Some("counts the packets that are sent at once, and adds up their bytes".to_owned())),
        ];
        let premises = premises.into_iter().filter_map(|(name, text)| Some(named_paragraph(name, &text?)));
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
        spaced([sentence, premises.flatten().collect(), named, self.beside("of the command", measures)])
    }

    /// What other flows send; `None` if there are none.
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
