//! The flows of a stream, each with its section of a model set, and a stage with an instance of another stage for every
//! section.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use sizeleak_frame::{Command, Direction, Flow, Frame, Notice, PerDirection, Session, what};
use sizeleak_model::{Assumption, Choice, FlowEnds, GatewaysSeen, Model, ModelSet, Scopes, Uncovered};
use sizeleak_platform::runtime::{ConfigureError, Emit, Node, Runnable, Stage, StageError, TwoGenerationCache};

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

/// A stage that works with one model, of which there is one for each section.
pub trait SectionStage: Stage {
    /// Whether this stage tells the user which flows have no section, or one by an assumption. One stage of a pipeline
    /// does.
    const REPORTS: bool = false;

    fn subject(input: &Self::Input) -> Subject;

    /// What becomes of a frame whose flow has no section.
    fn without_model(input: Self::Input) -> Frame;

    /// Learns of a flow, which is passed on.
    fn see_flow(&mut self, flow: &Flow) {
        let _ = flow;
    }

    /// Learns of a session, which is passed on.
    fn see_session(&mut self, session: &Session) {
        let _ = session;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    pub flow: u64,
    /// Whether it is about a command or about a report.
    pub direction: Direction,
    pub time_ns: i64,
}

impl From<&Command> for Subject {
    fn from(command: &Command) -> Self {
        Self { flow: command.flow, direction: command.direction, time_ns: command.time_ns }
    }
}

#[derive(Debug)]
pub struct PerSection<S> {
    flows: FlowModels,
    stages: Vec<S>,
    covered: u64,
    assumed: u64,
    uncovered: u64,
}

#[derive(Debug)]
pub enum SectionInput<I> {
    /// A flow: its ends are remembered, and it is passed on.
    Flow(Box<Flow>),
    /// A session: its server name is remembered, and it is passed on.
    Session(Box<Session>),
    Frame(I),
}

impl<I: TryFrom<Frame, Error = Frame>> TryFrom<Frame> for SectionInput<I> {
    type Error = Frame;

    fn try_from(frame: Frame) -> Result<Self, Frame> {
        match frame {
            Frame::Flow(flow) => Ok(Self::Flow(flow)),
            Frame::Session(session) => Ok(Self::Session(session)),
            other => I::try_from(other).map(Self::Frame),
        }
    }
}

impl<S: SectionStage> PerSection<S> {
    /// The stages of these sections, each made from its model by `build`; or its first error, with the index of its section.
    pub fn new<E>(models: ModelSet, build: impl Fn(Model) -> Result<S, E>) -> Result<Self, (usize, E)> {
        let flows = FlowModels::new(models.scopes());
        let sections = models.into_sections().into_iter().enumerate();
        let stages = sections.map(|(at, model)| build(model).map_err(|error| (at, error))).collect::<Result<_, _>>()?;
        Ok(Self { flows, stages, covered: 0, assumed: 0, uncovered: 0 })
    }

    fn process_frame(&mut self, input: S::Input, out: &mut dyn Emit) -> Result<(), StageError> {
        let Subject { flow, direction, time_ns } = S::subject(&input);
        let choice = self.flows.choose(flow, direction);
        let (count, section) = match choice {
            Choice::Covered(section) => (&mut self.covered, Some(section)),
            Choice::Assumed(section, _) => (&mut self.assumed, Some(section)),
            Choice::Uncovered(_) => (&mut self.uncovered, None),
        };
        *count += 1;
        if S::REPORTS
            && !matches!(choice, Choice::Covered(_))
            && self.flows.is_news(flow, direction, choice)
            && let Some(notice) = notice_of(S::NAME, flow, time_ns, choice)
        {
            out.emit(notice.into())?;
        }
        match section.and_then(|section| self.stages.get_mut(section)) {
            Some(stage) => stage.process(input, out),
            None => Ok(out.emit(S::without_model(input))?),
        }
    }
}

impl<S: SectionStage> Stage for PerSection<S> {
    const NAME: &'static str = S::NAME;
    type Input = SectionInput<S::Input>;

    fn process(&mut self, input: Self::Input, out: &mut dyn Emit) -> Result<(), StageError> {
        match input {
            SectionInput::Frame(input) => self.process_frame(input, out),
            SectionInput::Flow(flow) => {
                self.flows.add_flow(&flow);
                self.stages.iter_mut().for_each(|stage| stage.see_flow(&flow));
                Ok(out.emit(Frame::Flow(flow))?)
            }
            SectionInput::Session(session) => {
                self.flows.add_session(&session);
                self.stages.iter_mut().for_each(|stage| stage.see_session(&session));
                Ok(out.emit(Frame::Session(session))?)
            }
        }
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        self.stages.iter_mut().try_for_each(|stage| stage.finish(out))
    }

    /// Those of the sections' stages, added up, and what is rare: commands whose section is assumed, and those that have
    /// none; then also how many have one.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters: Vec<(&'static str, u64)> = Vec::new();
        for (name, count) in self.stages.iter().flat_map(Stage::counters) {
            match counters.iter_mut().find(|(other, _)| *other == name) {
                Some((_, sum)) => *sum = sum.saturating_add(count),
                None => counters.push((name, count)),
            }
        }
        let rare = [
            ("assumed_model", self.assumed),
            ("without_model", self.uncovered),
            ("forgotten_model_flows", self.flows.evicted()),
        ];
        counters.extend(rare.into_iter().filter(|(_, count)| *count > 0));
        let with_model = self.covered.saturating_add(self.assumed);
        counters.extend((self.uncovered > 0).then_some(("with_model", with_model)));
        counters
    }
}

fn notice_of(stage: &'static str, flow: u64, time_ns: i64, choice: Choice) -> Option<Notice> {
    let (what, detail) = match choice {
        Choice::Covered(_) => return None,
        Choice::Assumed(_, assumption) => (what::ASSUMED, Assumption::to_string(&assumption)),
        Choice::Uncovered(why) => (what::UNCOVERED, Uncovered::to_string(&why)),
    };
    let (what, detail) = (what.into(), Some(detail));
    Some(Notice { time_ns: Some(time_ns), stage: stage.into(), flow: Some(flow), what, bytes: None, detail })
}

/// Reads the model files that a stage's option names, and builds the stage with a part for each section.
pub fn build_per_section<S: SectionStage + 'static, E: Display>(
    files: &[PathBuf],
    build: impl Fn(Model) -> Result<S, E>,
) -> Result<Box<dyn Runnable>, ConfigureError> {
    let [first, ..] = files else {
        return Err(ConfigureError::Usage("`--model FILE` is missing: `sizeleak learn` makes one".into()));
    };
    let models = ModelSet::read(files).map_err(|error| ConfigureError::Input(error.to_string()))?;
    let scopes: Vec<String> = models.sections().iter().map(|model| model.scope.to_string()).collect();
    let stage = PerSection::new(models, build).map_err(|(at, error)| {
        let section = scopes.get(at).filter(|_| scopes.len() > 1);
        let section = section.map_or_else(String::new, |scope| format!("the section of {scope}: "));
        ConfigureError::Input(format!("{}: {section}{error}", first.display()))
    })?;
    Ok(Box::new(Node::new(stage)))
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Direction::{FromGateway, ToGateway};
    use sizeleak_frame::Transport;
    use sizeleak_model::{Scope, Uncovered};

    use super::*;

    #[test]
    fn a_missing_option_is_a_usage_error_and_an_unusable_model_an_input_error() {
        struct Nothing;
        impl Stage for Nothing {
            const NAME: &'static str = "nothing";
            type Input = sizeleak_frame::Correction;
            fn process(&mut self, _: Self::Input, _: &mut dyn Emit) -> Result<(), StageError> {
                Ok(())
            }
            fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
                Ok(())
            }
        }
        impl SectionStage for Nothing {
            fn subject(correction: &Self::Input) -> Subject {
                (&correction.command).into()
            }
            fn without_model(correction: Self::Input) -> Frame {
                correction.into()
            }
        }
        let error_of = |files: &[PathBuf]| {
            let built = build_per_section(files, |_| Ok::<_, String>(Nothing));
            built.map(|_| "a stage").unwrap_err()
        };
        assert_eq!(error_of(&[]).exit_code(), 2);
        let missing = error_of(&["no-such-folder/m.toml".into()]);
        assert_eq!(missing.exit_code(), 1);
        assert!(missing.to_string().starts_with("no-such-folder/m.toml: "), "{missing}");
    }

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
