//! The flows of a capture that send through the tunnel beside commands.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use sizeleak_audit::tunnel::{
    Background, BackgroundError, Conversation, MAX_FLOWS, ObservedFlows, TCP_HEADER, Tunnel, UDP_HEADER,
};
use sizeleak_frame::{Direction, Flow, Frame, Transport};
use sizeleak_model::Scope;
use sizeleak_pipeline::{InputSource, Pipeline, PipelineInput, RunError};
use sizeleak_platform::storage::RunFiles;
use sizeleak_survey::SurveyRun;

use crate::command::failure::Failure;
use crate::command::notices::NoticeReport;

/// What a report covers whose background is of a damaged capture.
pub(super) const COVERED: &str = "the background is that from before the damage";

/// Which other flows there are.
#[derive(Debug, Args)]
pub(super) struct BackgroundOptions {
    /// So many other flows send through the tunnel, each like one of `--background-from`
    #[arg(long, value_name = "FLOWS", hide_short_help = true, requires_all = ["background_from", "tunnel"],
        value_parser = clap::value_parser!(u32).range(0..=64))]
    pub(super) background: Option<u32>,

    /// A capture with the home's other traffic, or a folder of captures; flows of the model's services are left out
    #[arg(long, value_name = "CAPTURE", hide_short_help = true, requires = "background")]
    background_from: Option<PathBuf>,
}

/// Background flows, and what is wrong with their captures.
pub(super) struct ReadBackground {
    pub(super) background: Background,
    pub(super) damage: Option<RunError>,
}

impl BackgroundOptions {
    /// Adds the captures.
    pub(super) fn add_to(&self, files: &mut RunFiles) -> Result<(), Failure> {
        if self.background.is_some() {
            files.extend(self.pipeline()?.files(None));
        }
        Ok(())
    }

    /// All packets, of whoever opens a connection.
    fn pipeline(&self) -> Result<Pipeline, Failure> {
        let run = SurveyRun {
            captures: self.background_from.iter().cloned().collect(),
            recursive: true,
            gateways: Vec::new(),
        };
        Ok(run.pipeline()?.until("flow-filter")?)
    }

    /// The flows that are asked for, through a tunnel of a gateway that `scope` names.
    pub(super) fn read(&self, tunnel: &Tunnel, scope: &Scope) -> Result<Option<ReadBackground>, Failure> {
        let Some(flows) = self.background else { return Ok(None) };
        let mut reader = Reader { tunnel, scope, conversations: BTreeMap::new(), observed: ObservedFlows::default() };
        let (mut notices, mut fault) = (NoticeReport::default(), None);
        let input = PipelineInput::new(InputSource::Captures);
        let damage = input.observe(&self.pipeline()?, &mut |notice| notices.add(notice), |frame| {
            if fault.is_none() {
                fault = reader.add(&frame).err();
            }
        });
        notices.print(&damage, Option::as_ref);
        let damage = damage?;
        let found = fault.map_or(Ok(()), Err).and_then(|()| Background::new(&reader.observed, flows));
        match (found, damage) {
            (Err(BackgroundError::NoFlow), Some(damage)) => Err(damage.into()),
            (found, damage) => {
                let place =
                    || self.background_from.as_ref().map_or_else(String::new, |path| path.display().to_string());
                Ok(Some(ReadBackground { background: found.with_context(place)?, damage }))
            }
        }
    }
}

/// Takes flows and their packets.
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

    /// Whether a flow is one of the model's.
    fn is_own(&self, flow: &Flow) -> bool {
        let Scope { gateway, services, .. } = self.scope;
        let is_gateway = gateway.is_some_and(|gateway| gateway == flow.gateway);
        is_gateway && services.is_empty() || self.scope.has_address(flow.service)
    }
}
