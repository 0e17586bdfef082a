//! The flows of a stream, and the section of a model set for each.

use std::net::{IpAddr, SocketAddr};

use sizeleak_frame::{Direction, Flow, PerDirection, Session};
use sizeleak_model::{Choice, FlowEnds, GatewaysSeen, Scopes};
use sizeleak_platform::runtime::TwoGenerationCache;

/// The most flows that are remembered; at least the half used last is kept. A flow takes about 150 bytes.
const MAX_FLOWS: usize = 200_000;

/// Longer server names are cut; the DNS has none.
const MAX_NAME_CHARS: usize = 255;

#[derive(Debug)]
pub struct FlowModels {
    scopes: Scopes,
    gateway: Option<IpAddr>,
    gateways: GatewaysSeen,
    flows: TwoGenerationCache<u64, FlowState>,
}

#[derive(Debug, Default)]
struct FlowState {
    gateway: Option<IpAddr>,
    service: Option<SocketAddr>,
    server_name: Option<Box<str>>,
    protocol: Option<Box<str>>,
    /// For commands, and for reports.
    chosen: PerDirection<Chosen>,
}

/// The section for what goes in one direction.
#[derive(Debug, Default)]
struct Chosen {
    /// The choice, with the number of gateways that it was made with, until more is known.
    choice: Option<(GatewaysSeen, Choice)>,
    known: Option<Choice>,
}

impl FlowState {
    fn choose_again(&mut self) {
        (self.chosen.to_gateway.choice, self.chosen.from_gateway.choice) = (None, None);
    }
}

impl FlowModels {
    pub fn new(scopes: Scopes) -> Self {
        Self { scopes, gateway: None, gateways: GatewaysSeen::One, flows: TwoGenerationCache::new(MAX_FLOWS) }
    }

    pub fn add_flow(&mut self, flow: &Flow) {
        if self.scopes.cover_all() {
            return;
        }
        if flow.among_several || *self.gateway.get_or_insert(flow.gateway) != flow.gateway {
            self.gateways = GatewaysSeen::Several;
        }
        let state = self.flows.get_or_default(flow.flow);
        (state.gateway, state.service) = (Some(flow.gateway), Some(flow.service));
        state.choose_again();
    }

    /// Remembers the server name and the protocol of a flow's session. A later session of the flow without them leaves
    /// them.
    pub fn add_session(&mut self, session: &Session) {
        if self.scopes.cover_all() {
            return;
        }
        let shortened = |text: &String| -> Box<str> { text.chars().take(MAX_NAME_CHARS).collect() };
        if session.server_name.is_some() || session.protocol.is_some() {
            let state = self.flows.get_or_default(session.flow);
            state.server_name = session.server_name.as_ref().map(shortened).or(state.server_name.take());
            state.protocol = session.protocol.as_ref().map(shortened).or(state.protocol.take());
            state.choose_again();
        }
    }

    /// The section for a flow's commands (to the gateway) or reports (from it).
    pub fn choose(&mut self, flow: u64, direction: Direction) -> Choice {
        if self.covers_all(direction) {
            return Choice::Covered(0);
        }
        let state = self.flows.get_or_default(flow);
        if let Some((gateways, choice)) = state.chosen.of_mut(direction).choice
            && gateways == self.gateways
        {
            return choice;
        }
        let (server_name, protocol) = (state.server_name.as_deref(), state.protocol.as_deref());
        let is_report = direction == Direction::FromGateway;
        let ends = FlowEnds { gateway: state.gateway, service: state.service, server_name, protocol, is_report };
        let choice = self.scopes.choose(ends, self.gateways);
        state.chosen.of_mut(direction).choice = Some((self.gateways, choice));
        choice
    }

    /// Whether a choice for a flow is to be reported: the first time, and whenever it changes.
    pub fn is_news(&mut self, flow: u64, direction: Direction, choice: Choice) -> bool {
        if self.covers_all(direction) {
            return false;
        }
        self.flows.get_or_default(flow).chosen.of_mut(direction).known.replace(choice) != Some(choice)
    }

    fn covers_all(&self, direction: Direction) -> bool {
        direction == Direction::ToGateway && self.scopes.cover_all()
    }

    pub fn evicted(&self) -> u64 {
        self.flows.evicted()
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Direction::{FromGateway, ToGateway};
    use sizeleak_frame::Transport;
    use sizeleak_model::{Scope, Uncovered};

    use super::*;

    fn scope(gateway: &str, services: &[&str]) -> Scope {
        let services = services.iter().map(|service| service.parse().unwrap()).collect();
        Scope { gateway: gateway.parse().ok(), services, ..Scope::default() }
    }

    fn flow(number: u64, gateway: &str, service: &str) -> Flow {
        let (gateway, service) = (gateway.parse().unwrap(), service.parse().unwrap());
        Flow::new(number, gateway, service, Transport::Tcp)
    }

    fn session(flow: u64, name: Option<&str>) -> Session {
        let server_name = name.map(str::to_owned);
        Session { time_ns: 0, flow, server_name, tls_version: None, cipher_suite: None, protocol: None }
    }

    #[test]
    fn a_server_name_replaces_an_assumption() {
        let mut flows = FlowModels::new(Scopes::from(vec![scope("", &["192.0.2.1:443", "a.example"])]));
        flows.add_flow(&flow(1, "10.0.0.1", "192.0.2.9:443"));
        let assumed = flows.choose(1, ToGateway);
        assert!(matches!(assumed, Choice::Assumed(0, _)));
        assert!(flows.is_news(1, ToGateway, assumed) && !flows.is_news(1, ToGateway, assumed));
        flows.add_session(&session(1, Some("b.example")));
        assert_eq!(flows.choose(1, ToGateway), Choice::Uncovered(Uncovered::Service));
        flows.add_session(&session(1, Some("a.example")));
        flows.add_session(&session(1, None));
        assert_eq!(flows.choose(1, ToGateway), Choice::Covered(0));
    }

    #[test]
    fn a_second_gateway_ends_the_assumption_that_the_first_has_a_new_address() {
        let mut flows = FlowModels::new(Scopes::from(vec![scope("10.0.0.1", &[])]));
        flows.add_flow(&flow(1, "10.0.0.2", "192.0.2.1:443"));
        assert!(matches!(flows.choose(1, ToGateway), Choice::Assumed(0, _)));
        flows.add_flow(&flow(2, "10.0.0.1", "192.0.2.1:443"));
        assert_eq!(flows.choose(1, ToGateway), Choice::Uncovered(Uncovered::Gateway));
        assert_eq!(flows.choose(2, ToGateway), Choice::Covered(0));
    }

    #[test]
    fn one_of_several_gateways_that_were_asked_for_is_not_taken_for_the_models_own() {
        let mut flows = FlowModels::new(Scopes::from(vec![scope("10.0.0.1", &[])]));
        flows.add_flow(&Flow { among_several: true, ..flow(1, "10.0.0.2", "192.0.2.1:443") });
        assert_eq!(flows.choose(1, ToGateway), Choice::Uncovered(Uncovered::Gateway));
        flows.add_flow(&Flow { among_several: true, ..flow(2, "10.0.0.1", "192.0.2.1:443") });
        assert_eq!(flows.choose(2, ToGateway), Choice::Covered(0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut flows = FlowModels::new(Scopes::from(vec![scope("10.0.0.1", &[])]));
        for number in 0..MAX_FLOWS as u64 * 2 {
            flows.add_flow(&flow(number, "10.0.0.1", "192.0.2.1:443"));
        }
        assert!(flows.evicted() > 0);
        assert_eq!(flows.choose(MAX_FLOWS as u64 * 2 - 1, ToGateway), Choice::Covered(0));
    }

    #[test]
    fn reports_have_sections_of_their_own() {
        let commands = scope("10.0.0.1", &["192.0.2.1:443"]);
        let mut flows = FlowModels::new(Scopes::from(vec![commands.clone()]));
        flows.add_flow(&flow(1, "10.0.0.1", "192.0.2.1:443"));
        let uncovered = Choice::Uncovered(Uncovered::Direction);
        assert_eq!((flows.choose(1, ToGateway), flows.choose(1, FromGateway)), (Choice::Covered(0), uncovered));
        assert!(flows.is_news(1, FromGateway, uncovered) && !flows.is_news(1, FromGateway, uncovered));
        let mut flows = FlowModels::new(Scopes::from(vec![commands.clone(), Scope { reports: true, ..commands }]));
        flows.add_flow(&flow(1, "10.0.0.1", "192.0.2.1:443"));
        assert_eq!(
            (flows.choose(1, ToGateway), flows.choose(1, FromGateway)),
            (Choice::Covered(0), Choice::Covered(1))
        );
        // A model without a scope is about all commands, and no report.
        let mut flows = FlowModels::new(Scopes::from(vec![Scope::default()]));
        assert_eq!((flows.choose(7, ToGateway), flows.choose(7, FromGateway)), (Choice::Covered(0), uncovered));
        assert!(flows.is_news(7, FromGateway, uncovered));
    }
}
