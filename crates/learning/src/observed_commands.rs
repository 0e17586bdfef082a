//! The commands that a pipeline finds, with their sessions and services: one service may have many connections.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use sizeleak_frame::{Command, Flow, Frame, Notice, Protocol, Session};
use sizeleak_model::{Scope, ServiceName};
use sizeleak_pipeline::{Pipeline, PipelineInput, RunError, TrafficSeen};

use crate::error::Result;
use crate::labels::{LabelFile, Tolerance};

pub(crate) const SEGMENTER: &str = "command-segmenter";

/// The most addresses that a scope names.
const MAX_ADDRESSES: usize = 128;

pub(crate) type OnNotice<'a> = dyn FnMut(&Notice) + Send + 'a;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedCommand {
    pub command: Command,
    /// `None` if the handshake was not captured.
    pub(crate) cipher_suite: Option<String>,
    /// Its service, by the index among those observed; `None` if its flow was not.
    pub service: Option<usize>,
}

/// What a pipeline, which ends with the segmenter, found.
#[derive(Debug)]
pub(crate) struct ObservedCommands {
    /// In the order of the captures.
    pub(crate) commands: Vec<ObservedCommand>,
    /// When the commands of times that are left out were, in nanoseconds since 1970.
    pub(crate) other_times: Vec<i64>,
    pub(crate) services: Vec<ObservedService>,
    pub(crate) seen: TrafficSeen,
    /// What is wrong with the captures; commands are those before the damage.
    pub(crate) damage: Option<RunError>,
}

impl ObservedCommands {
    /// The labels on the clock of all commands, of those that are left out, too.
    pub(crate) fn aligned(&self, labels: &LabelFile, tolerance: Tolerance) -> LabelFile {
        labels.aligned(&[command_times(&self.commands), self.other_times.clone()].concat(), tolerance)
    }
}

pub fn command_times(commands: &[ObservedCommand]) -> Vec<i64> {
    commands.iter().map(|observed| observed.command.time_ns).collect()
}

/// The pipeline with the algorithm that needs no model and finds most; decisions can wait for the end of the captures.
pub(crate) fn patient(pipeline: &Pipeline) -> Result<Pipeline> {
    let mut pipeline = with_algorithm(pipeline, "adaptive")?;
    pipeline.set(SEGMENTER, "look-ahead", "24h")?;
    Ok(pipeline)
}

pub(crate) fn with_algorithm(pipeline: &Pipeline, algorithm: &str) -> Result<Pipeline> {
    let mut pipeline = pipeline.clone();
    pipeline.set(SEGMENTER, "algorithm", algorithm)?;
    Ok(pipeline)
}

pub(crate) fn observe_commands(
    input: &PipelineInput,
    pipeline: &Pipeline,
    on_notice: &mut OnNotice<'_>,
) -> Result<ObservedCommands> {
    let mut suites: BTreeMap<u64, Option<String>> = BTreeMap::new();
    let mut flows = ObservedFlows::default();
    let mut commands = Vec::new();
    let mut seen = TrafficSeen::default();
    let mut other_times = Vec::new();
    let on_other = |frame| other_times.extend(matches!(frame, Frame::Command(_)).then(|| frame.time_ns()).flatten());
    let on_frame = |frame| match frame {
        Frame::Session(session) => {
            flows.add_session(&session);
            // What protects messages of a protocol without suites is the protocol's own.
            let own = session.protocol.filter(|protocol| !is_tls(protocol));
            suites.insert(session.flow, session.cipher_suite.or(own));
        }
        Frame::Command(command) => {
            let cipher_suite = suites.get(&command.flow).cloned().flatten();
            commands.push(ObservedCommand { command: *command, cipher_suite, service: None });
        }
        frame => {
            seen.add(&frame);
            if let Frame::Flow(flow) = frame {
                flows.add_flow(&flow);
            }
        }
    };
    let damage = input.observe_apart(pipeline, on_notice, on_frame, on_other)?;
    let (services, of_flow) = flows.services();
    for observed in &mut commands {
        observed.service = of_flow.get(&observed.command.flow).copied();
    }
    Ok(ObservedCommands { commands, other_times, services, seen, damage })
}

/// A service of a gateway: by its server name if a handshake showed it, else by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedService {
    pub gateway: IpAddr,
    /// The server name, or the protocol if that has no names.
    pub name: Option<String>,
    /// The protocol of its messages, if it is not TLS.
    pub protocol: Option<String>,
    /// Its addresses and ports, in ascending order, at least one.
    pub addresses: Vec<SocketAddr>,
}

impl fmt::Display for ObservedService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.addresses.first()) {
            (Some(name), _) => formatter.write_str(name),
            (None, Some(address)) => address.fmt(formatter),
            (None, None) => formatter.write_str("an unknown service"),
        }
    }
}

pub(crate) fn scope_of(services: &[&ObservedService]) -> Scope {
    let first = services.first().map(|service| service.gateway);
    let gateway = first.filter(|gateway| services.iter().all(|service| service.gateway == *gateway));
    let protocol = services.iter().find_map(|service| service.protocol.clone());
    // Of a protocol without names, whoever speaks it is the same service: its address may be another each time.
    let with_names =
        || services.iter().filter(|service| service.protocol.is_none() || service.protocol != service.name);
    let names: BTreeSet<ServiceName> = with_names().filter_map(|service| service.name.as_ref()?.parse().ok()).collect();
    let addresses: BTreeSet<ServiceName> =
        with_names().flat_map(|service| &service.addresses).map(|address| ServiceName::Address(*address)).collect();
    let services = [names, addresses].into_iter().flat_map(|named| named.into_iter().take(MAX_ADDRESSES)).collect();
    Scope { gateway, services, protocol, reports: false }
}

/// The flows of a run, and what their handshakes showed.
#[derive(Debug, Default)]
pub(crate) struct ObservedFlows {
    flows: BTreeMap<u64, (IpAddr, SocketAddr)>,
    /// The names that were asked for at an address, or the protocol there if that has no names.
    names: BTreeMap<(IpAddr, SocketAddr), String>,
    /// The protocols there, where they are not TLS.
    protocols: BTreeMap<(IpAddr, SocketAddr), String>,
}

fn is_tls(protocol: &str) -> bool {
    sizeleak_model::TLS.contains(&protocol)
}

impl ObservedFlows {
    pub(crate) fn add_flow(&mut self, flow: &Flow) {
        self.flows.insert(flow.flow, (flow.gateway, flow.service));
    }

    pub(crate) fn add_session(&mut self, session: &Session) {
        let Some(ends) = self.flows.get(&session.flow) else { return };
        let protocol = session.protocol.as_ref().filter(|protocol| !is_tls(protocol));
        if let Some(protocol) = protocol {
            self.protocols.insert(*ends, protocol.clone());
        }
        let nameless = protocol.filter(|protocol| !Protocol::has_tls_handshake(protocol));
        if let Some(name) = session.server_name.as_ref().or(nameless) {
            self.names.insert(*ends, name.to_lowercase());
        }
    }

    /// All services, in order of gateway, then names before addresses; and the service of each flow, by its index.
    pub(crate) fn services(&self) -> (Vec<ObservedService>, BTreeMap<u64, usize>) {
        type Key<'a> = (IpAddr, Option<&'a str>, Option<SocketAddr>);
        let key = |(gateway, address): &(IpAddr, SocketAddr)| -> Key<'_> {
            let name = self.names.get(&(*gateway, *address)).map(String::as_str);
            (*gateway, name, Some(*address).filter(|_| name.is_none()))
        };
        let mut by_key: BTreeMap<Key<'_>, Vec<SocketAddr>> = BTreeMap::new();
        for ends in self.flows.values() {
            by_key.entry(key(ends)).or_default().push(ends.1);
        }
        let index: BTreeMap<Key<'_>, usize> = by_key.keys().copied().zip(0..).collect();
        let of_flow = self.flows.iter().filter_map(|(flow, ends)| Some((*flow, *index.get(&key(ends))?)));
        let of_flow = of_flow.collect();
        let services = by_key.into_iter().map(|((gateway, name, _), mut addresses)| {
            addresses.sort_unstable();
            addresses.dedup();
            let protocol = addresses.iter().find_map(|address| self.protocols.get(&(gateway, *address)).cloned());
            ObservedService { gateway, name: name.map(str::to_owned), protocol, addresses }
        });
        (services.collect(), of_flow)
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Transport;

    use super::*;

    fn flow(flow: u64, service: &str) -> Flow {
        let (gateway, service) = ("192.0.2.1".parse().unwrap(), service.parse().unwrap());
        Flow::new(flow, gateway, service, Transport::Tcp)
    }

    fn session(flow: u64, name: &str) -> Session {
        Session {
            time_ns: 0,
            flow,
            server_name: Some(name.to_owned()),
            tls_version: None,
            cipher_suite: None,
            protocol: None,
        }
    }

    #[test]
    fn addresses_of_one_server_name_are_one_service() {
        let mut flows = ObservedFlows::default();
        for (number, service) in [(1, "198.51.100.7:443"), (2, "198.51.100.8:443"), (3, "198.51.100.9:443")] {
            flows.add_flow(&flow(number, service));
        }
        // A second connection to the first address, whose handshake was not captured.
        flows.add_flow(&flow(4, "198.51.100.7:443"));
        flows.add_session(&session(1, "Cloud.example.com"));
        flows.add_session(&session(2, "cloud.example.com"));
        let (services, of_flow) = flows.services();
        let texts: Vec<String> = services.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["198.51.100.9:443", "cloud.example.com"]);
        assert_eq!(of_flow, BTreeMap::from([(1, 1), (2, 1), (3, 0), (4, 1)]));
        let scope = scope_of(&[&services[1]]);
        assert_eq!(scope.to_string(), "gateway 192.0.2.1, cloud.example.com, 198.51.100.7:443, 198.51.100.8:443");
    }
}
