//! The gateway and the service of each flow, for the rows of results.

use std::collections::BTreeMap;

use serde_json::Value;
use sizeleak_frame::{Frame, Session};

/// The names of at most this many flows are kept; beyond that the flow with the lowest number is evicted.
const MAX_FLOWS: usize = 100_000;

/// What flows and sessions say of a flow's ends.
#[derive(Debug, Default)]
pub(crate) struct FlowNames {
    flows: BTreeMap<u64, FlowEnds>,
}

/// The ends of a flow, as text.
#[derive(Debug, Default)]
struct FlowEnds {
    gateway: Option<Box<str>>,
    /// Address and port.
    service: Option<Box<str>>,
    server_name: Option<Box<str>>,
}

impl FlowNames {
    /// Remembers what a frame says of its flow.
    pub(crate) fn observe(&mut self, frame: &Frame) {
        match frame {
            Frame::Flow(flow) => {
                let ends = self.entry(flow.flow);
                ends.gateway = Some(flow.gateway.to_string().into());
                ends.service = Some(flow.service.to_string().into());
            }
            Frame::Session(session) => {
                let Session { flow, server_name: Some(name), .. } = &**session else { return };
                self.entry(*flow).server_name = Some(name.as_str().into());
            }
            _ => {}
        }
    }

    fn entry(&mut self, flow: u64) -> &mut FlowEnds {
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&flow) {
            self.flows.pop_first();
        }
        self.flows.entry(flow).or_default()
    }

    /// The address of a flow's gateway.
    pub(crate) fn gateway(&self, flow: u64) -> Option<&str> {
        self.flows.get(&flow)?.gateway.as_deref()
    }

    /// The server name of a flow's service, or else its address and port.
    pub(crate) fn service(&self, flow: u64) -> Option<&str> {
        let ends = self.flows.get(&flow)?;
        ends.server_name.as_deref().or(ends.service.as_deref())
    }

    /// Adds `gateway` and `service` to the body of a command, correction or identification, as far as they are known.
    pub(crate) fn add_to(&self, frame: &Frame, body: &mut Value) {
        let flow = match frame {
            Frame::Command(command) => command.flow,
            Frame::Correction(correction) => correction.command.flow,
            Frame::Identification(identification) => identification.command.flow,
            _ => return,
        };
        let Value::Object(body) = body else { return };
        for (key, name) in [("gateway", self.gateway(flow)), ("service", self.service(flow))] {
            if let Some(name) = name {
                body.insert(key.to_owned(), name.into());
            }
        }
    }
}
