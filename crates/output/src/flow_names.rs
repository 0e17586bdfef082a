//! The gateway and the service of each flow, for the rows that name a flow.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde_json::Value;
use sizeleak_frame::{Flow, FlowId, Frame, Session, Transport};

/// The names of at most this many flows are kept; beyond that the flow with the lowest number is evicted.
const MAX_FLOWS: usize = 100_000;

#[derive(Debug, Default)]
pub(crate) struct FlowNames {
    flows: BTreeMap<u64, FlowEnds>,
}

#[derive(Debug, Default)]
pub(crate) struct FlowEnds {
    pub(crate) transport: Option<Transport>,
    pub(crate) gateway: Option<IpAddr>,
    pub(crate) gateway_port: Option<u16>,
    pub(crate) service: Option<SocketAddr>,
    pub(crate) server_name: Option<Box<str>>,
    pub(crate) protocol: Option<Box<str>>,
}

impl FlowEnds {
    pub(crate) fn gateway_name(&self) -> Option<String> {
        self.gateway.map(|gateway| gateway.to_string())
    }

    pub(crate) fn service_name(&self) -> Option<String> {
        let name = self.server_name.as_deref().map(str::to_owned);
        name.or_else(|| self.service.map(|service| service.to_string()))
    }
}

impl FlowNames {
    pub(crate) fn observe(&mut self, frame: &Frame) {
        match frame {
            Frame::Flow(flow) => {
                let Flow { flow, gateway, gateway_port, service, transport, .. } = **flow;
                let ends = self.entry(flow);
                (ends.transport, ends.service) = (Some(transport), Some(service));
                (ends.gateway, ends.gateway_port) = (Some(gateway), gateway_port);
            }
            Frame::Session(session) => {
                let Session { flow, server_name, protocol, .. } = &**session;
                let ends = self.entry(*flow);
                ends.server_name = server_name.as_deref().map(Box::from).or(ends.server_name.take());
                ends.protocol = protocol.as_deref().map(Box::from).or(ends.protocol.take());
            }
            _ => {}
        }
    }

    /// Remembers what a row that [`Self::add_to`] completed says of a flow, as far as no frame did.
    pub(crate) fn learn(&mut self, flow: u64, gateway: Option<&str>, service: Option<&str>) {
        let ends = self.entry(flow);
        ends.gateway = ends.gateway.or_else(|| gateway?.parse().ok());
        let Some(service) = service else { return };
        match service.parse() {
            Ok(address) => ends.service = ends.service.or(Some(address)),
            Err(_) => drop(ends.server_name.get_or_insert_with(|| service.into())),
        }
    }

    fn entry(&mut self, flow: u64) -> &mut FlowEnds {
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&flow) {
            self.flows.pop_first();
        }
        self.flows.entry(flow).or_default()
    }

    pub(crate) fn ends(&self, flow: u64) -> Option<&FlowEnds> {
        self.flows.get(&flow)
    }

    /// What a row of a frame says of its flow: in the place of its number its text form, and `gateway` and `service` as
    /// far as they are known. A row of no flow, or of an unknown kind, stays as it is.
    pub(crate) fn add_to(&self, frame: &Frame, body: &mut Value) {
        let (Value::Object(body), false) = (body, matches!(frame, Frame::Unknown(_))) else { return };
        let commands = body.get_mut("commands").and_then(Value::as_array_mut).into_iter().flatten();
        for number in commands.filter_map(|command| command.get_mut("flow")) {
            *number = number.as_u64().map_or(Value::Null, |number| FlowId(number).to_string().into());
        }
        let Some(number) = body.get("flow").and_then(Value::as_u64) else { return };
        body.insert("flow".to_owned(), FlowId(number).to_string().into());
        let Some(ends) = self.ends(number) else { return };
        for (key, name) in [("gateway", ends.gateway_name()), ("service", ends.service_name())] {
            if let Some(name) = name
                && !body.contains_key(key)
            {
                body.insert(key.to_owned(), name.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(number: u64, service: &str) -> Frame {
        Frame::from(Flow::new(number, "2001:db8::20".parse().unwrap(), service.parse().unwrap(), Transport::Tcp))
    }

    fn named(names: &FlowNames, mut body: Value) -> Value {
        names.add_to(&flow(7, "203.0.113.1:443"), &mut body);
        body
    }

    #[test]
    fn row_gets_the_names_of_its_flow() {
        let mut names = FlowNames::default();
        names.observe(&flow(7, "[2001:db8::7]:443"));
        let row = || serde_json::json!({ "flow": 7, "size": 1 });
        let expected = serde_json::json!({
            "flow": "F0000000000000007", "size": 1, "gateway": "2001:db8::20", "service": "[2001:db8::7]:443",
        });
        assert_eq!(named(&names, row()), expected);
        let server_name = Some("hub.example".to_owned());
        let session =
            Session { time_ns: 0, flow: 7, server_name, tls_version: None, cipher_suite: None, protocol: None };
        names.observe(&session.into());
        assert_eq!(named(&names, row())["service"], "hub.example");
        let unknown = serde_json::json!({ "flow": u64::MAX });
        assert_eq!(named(&names, unknown), serde_json::json!({ "flow": "Fffffffffffffffff" }));
    }

    #[test]
    fn row_of_no_flow_and_ends_of_its_own_stay() {
        let mut names = FlowNames::default();
        names.observe(&flow(7, "[2001:db8::7]:443"));
        for body in [serde_json::json!({ "flow": null }), serde_json::json!({ "flow": "seven" }), Value::Null] {
            assert_eq!(named(&names, body.clone()), body);
        }
        let own = serde_json::json!({ "flow": 7, "service": "own" });
        assert_eq!(named(&names, own)["service"], "own");
        let unknown = sizeleak_frame::Unknown { kind: "new".into(), value: Vec::new() };
        let mut body = serde_json::json!({ "flow": 7 });
        names.add_to(&unknown.into(), &mut body);
        assert_eq!(body, serde_json::json!({ "flow": 7 }));
    }

    #[test]
    fn names_are_learned_from_rows_that_have_them() {
        let mut names = FlowNames::default();
        names.learn(7, Some("2001:db8::20"), Some("[2001:db8::7]:443"));
        let expected = serde_json::json!({
            "flow": "F0000000000000007", "gateway": "2001:db8::20", "service": "[2001:db8::7]:443",
        });
        assert_eq!(named(&names, serde_json::json!({ "flow": 7 })), expected);
        names.learn(7, Some("no address"), Some("hub.example"));
        let row = named(&names, serde_json::json!({ "flow": 7 }));
        assert_eq!((&row["gateway"], &row["service"]), (&"2001:db8::20".into(), &"hub.example".into()));
    }

    #[test]
    fn number_of_names_is_bounded() {
        let mut names = FlowNames::default();
        for number in 0..MAX_FLOWS as u64 + 2 {
            names.entry(number);
        }
        assert!(names.flows.len() == MAX_FLOWS && names.ends(1).is_none() && names.ends(2).is_some());
    }
}
