//! `sizeleak audit`: what the sizes of a gateway's commands give away, computed over all commands of an inventory.

mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use sizeleak_audit::leakage::Audit;
use sizeleak_audit::tunnel::{
    Background, BackgroundError, Conversation, MAX_FLOWS, ObservedFlows, TCP_HEADER, Tunnel, UDP_HEADER,
};
use sizeleak_frame::{Direction, Flow, Frame, Transport};
use sizeleak_model::{Device, Scope};
use sizeleak_pipeline::{InputSource, Pipeline, PipelineInput, RunError};
use sizeleak_survey::SurveyRun;

use super::audited_model::{AuditedModel, ObserverOption, PriorReport, actions};
use super::failure::check_damage;
use super::report_format::ReportOutput;
use super::session::Session;
use crate::command::notices::NoticeReport;
use table::TunnelReport;

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
    if let Some(tunnel) = observer.tunnel(&model) {
        let read = arguments.read_background(&tunnel, &model.scope)?;
        let report = TunnelReport::new(audited, &model, &tunnel, read.as_ref().map(|(background, _)| background))?;
        form.write(&report, None, || report.document())?;
        return check_damage(read.and_then(|(_, damage)| damage).as_ref(), COVERED);
    }
    let audit = Audit::new(&model, &audited.premises())?;
    let report = Report {
        schema: 1,
        sentence: audit.sentence(),
        prior: audited.prior(&model),
        actions: actions(&model),
        devices: model.inventory.as_ref().map(|inventory| inventory.devices.as_slice()),
        audit: &audit,
    };
    form.write(&report, None, || table::table(&audit, &model, &report.prior.sentence))
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
