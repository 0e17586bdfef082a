//! The models in use, one for each service of each gateway, and the choice among them for a flow.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::model_file::{MAX_SECTIONS, read_file, read_sections, write_sections};
use crate::{Model, ModelError, ModelFault, Scope};

/// One or several models ("sections"), which are about different services.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSet {
    /// At least one.
    sections: Vec<Model>,
}

/// What is known of a flow's two ends, and what is asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowEnds<'a> {
    pub gateway: Option<IpAddr>,
    pub service: Option<SocketAddr>,
    /// The server name that the gateway asked for.
    pub server_name: Option<&'a str>,
    /// The protocol of its messages, by its name in frames.
    pub protocol: Option<&'a str>,
    /// Whether the section is for the gateway's reports, instead of the commands to it.
    pub is_report: bool,
}

impl FlowEnds<'_> {
    /// Whether a section is about such messages, of whatever gateway and service.
    fn asks(&self, scope: &Scope) -> bool {
        scope.reports == self.is_report && scope.is_of(self.protocol)
    }
}

/// How many gateways a run has shown, or was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewaysSeen {
    /// None or one.
    One,
    Several,
}

/// The section for a flow. Sections are named by their index in [`ModelSet::sections`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The flow is what the section was learned on.
    Covered(usize),
    /// It is not known to be, and nothing contradicts it.
    Assumed(usize, Assumption),
    Uncovered(Uncovered),
}

/// What is assumed where a section is used for a flow that is not known to be what it was learned on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assumption {
    /// The service's name is not known and its address is another one; its port is the section's.
    SameService,
    /// The gateway has another address; it is the only one there is.
    SameGateway,
    SameGatewayAndService,
    /// Nothing is known of the flow's ends.
    UnknownEnds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uncovered {
    Gateway,
    Service,
    Ambiguous,
    Protocol,
    /// All sections are about commands, and this is a report; or the reverse.
    Direction,
}

impl ModelSet {
    /// A set of models that are about different services.
    ///
    /// # Errors
    /// [`ModelFault`] if there is none or there are too many, or if two are about the same service.
    pub fn new(sections: Vec<Model>) -> Result<Self, ModelFault> {
        if sections.is_empty() || sections.len() > MAX_SECTIONS {
            let fault = format!("there are 1 to {MAX_SECTIONS} models, here are {}", sections.len());
            return Err(ModelFault::Bounds(fault));
        }
        if let Some((first, second)) = overlap(&sections) {
            let scope = sections.get(second).map_or_else(String::new, |model| model.scope.to_string());
            return Err(ModelFault::Overlap { first: first + 1, second: second + 1, scope });
        }
        Ok(Self { sections })
    }

    /// Reads the sections of one or several model files.
    ///
    /// # Errors
    /// [`ModelError`], which names the file, or both files where two sections are about the same service.
    pub fn read<P: AsRef<Path>>(files: &[P]) -> Result<Self, ModelError> {
        let (mut sections, mut origins): (Vec<Model>, Vec<(PathBuf, usize)>) = Default::default();
        for file in files.iter().map(AsRef::as_ref) {
            let of_file = read_file(file, Self::from_toml)?.sections;
            origins.extend((1..=of_file.len()).map(|number| (file.to_owned(), number)));
            sections.extend(of_file);
            if sections.len() > MAX_SECTIONS {
                return Err(ModelError::TooManySections(sections.len()));
            }
        }
        if let Some((first, second)) = overlap(&sections) {
            let name = |index: usize| {
                origins.get(index).map_or_else(String::new, |(file, number)| {
                    let is_alone = origins.iter().all(|(other, number)| other != file || *number == 1);
                    let section = if is_alone { String::new() } else { format!(" (section {number})") };
                    format!("{}{section}", file.display())
                })
            };
            let scope = sections.get(second).map_or_else(String::new, |model| model.scope.to_string());
            return Err(ModelError::Overlap { first: name(first), second: name(second), scope });
        }
        let file = files.first().map_or_else(PathBuf::new, |file| file.as_ref().into());
        Self::new(sections).map_err(|fault| ModelError::Invalid { file, fault })
    }

    pub fn from_toml(text: &str) -> Result<Self, ModelFault> {
        Self::new(read_sections(text)?)
    }

    /// The text of a model file: flat for one section, otherwise with a `[[model]]` for each.
    pub fn to_toml(&self) -> String {
        match self.sections.as_slice() {
            [only] => only.to_toml(),
            sections => write_sections(sections),
        }
    }

    pub fn sections(&self) -> &[Model] {
        &self.sections
    }

    pub fn into_sections(self) -> Vec<Model> {
        self.sections
    }

    pub fn scopes(&self) -> Scopes {
        Scopes { scopes: self.sections.iter().map(|model| model.scope.clone()).collect() }
    }
}

/// The scopes of a set's sections: all that choosing among them needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes {
    scopes: Vec<Scope>,
}

impl From<Vec<Scope>> for Scopes {
    fn from(scopes: Vec<Scope>) -> Self {
        Self { scopes }
    }
}

impl Scopes {
    /// Whether there is one section, which covers all commands.
    pub fn cover_all(&self) -> bool {
        matches!(self.scopes.as_slice(), [only] if only.is_empty())
    }

    /// The section for a flow.
    ///
    /// A section of the flow's own gateway comes before one of any gateway. A gateway address that no section has is
    /// taken to be a new address of the sections' gateway only if they have one gateway and the run shows one, and was
    /// asked for one: another gateway's model would give wrong answers with confidence.
    ///
    /// A known server name decides where sections name servers, then address and port, then the port alone (with an
    /// assumption), then a section for any service.
    pub fn choose(&self, flow: FlowEnds<'_>, gateways: GatewaysSeen) -> Choice {
        let is_asked = |scope: &Scope| flow.asks(scope);
        if !self.scopes.iter().any(is_asked) {
            let has_direction = self.scopes.iter().any(|scope| scope.reports == flow.is_report);
            return Choice::Uncovered(if has_direction { Uncovered::Protocol } else { Uncovered::Direction });
        }
        let exact = |scope: &Scope| is_asked(scope) && scope.gateway.is_some() && scope.gateway == flow.gateway;
        let own = self.of_service(flow, exact);
        if let Choice::Covered(_) = own {
            return own;
        }
        let any = self.of_service(flow, |scope| is_asked(scope) && scope.gateway.is_none());
        if let Choice::Covered(_) = any {
            return any;
        }
        let has_own = self.scopes.iter().any(exact);
        let moved = if has_own { own } else { self.of_moved_gateway(flow, gateways) };
        match (moved, any) {
            (Choice::Assumed(..), _) => moved,
            (_, Choice::Assumed(..)) => any,
            (Choice::Uncovered(why), Choice::Uncovered(other)) => Choice::Uncovered(why.max(other)),
            (covered, _) => covered,
        }
    }

    /// The section for a flow of a gateway that no section has.
    fn of_moved_gateway(&self, flow: FlowEnds<'_>, gateways: GatewaysSeen) -> Choice {
        let asked = || self.scopes.iter().filter(|scope| flow.asks(scope));
        let mut named = asked().filter_map(|scope| scope.gateway);
        let Some(only) = named.next() else { return Choice::Uncovered(Uncovered::Gateway) };
        if gateways == GatewaysSeen::Several || named.any(|other| other != only) {
            return Choice::Uncovered(Uncovered::Gateway);
        }
        match self.of_service(flow, |scope| flow.asks(scope) && scope.gateway.is_some()) {
            Choice::Covered(section) if flow.gateway.is_none() => Choice::Assumed(section, Assumption::UnknownEnds),
            Choice::Covered(section) => Choice::Assumed(section, Assumption::SameGateway),
            Choice::Assumed(section, Assumption::SameService) => {
                Choice::Assumed(section, Assumption::SameGatewayAndService)
            }
            other => other,
        }
    }

    /// The section for a flow's service among those with a suitable gateway.
    fn of_service(&self, flow: FlowEnds<'_>, is_suitable: impl Fn(&Scope) -> bool) -> Choice {
        let suitable = || self.scopes.iter().enumerate().filter(|(_, scope)| is_suitable(scope));
        let first = |found: &dyn Fn(&Scope) -> bool| suitable().find(|(_, scope)| found(scope)).map(|(at, _)| at);
        let by_name = flow.server_name.and_then(|name| first(&|scope| scope.has_server(name)));
        let by_address = || flow.service.and_then(|address| first(&|scope| scope.has_address(address)));
        let by_any = || first(&|scope| scope.services.is_empty());
        if let Some(section) = by_name.or_else(by_address).or_else(by_any) {
            return Choice::Covered(section);
        }
        if suitable().next().is_none() {
            return Choice::Uncovered(Uncovered::Gateway);
        }
        if flow.server_name.is_some() {
            return Choice::Uncovered(Uncovered::Service);
        }
        // A section that names no address says nothing of ports.
        let may_be = |scope: &Scope| {
            let mut ports = scope.addresses().map(|address| address.port()).peekable();
            ports.peek().is_none() || flow.service.is_none_or(|service| ports.any(|port| port == service.port()))
        };
        let mut possible = suitable().filter(|(_, scope)| may_be(scope));
        match (possible.next(), possible.next(), flow.service) {
            (None, ..) => Choice::Uncovered(Uncovered::Service),
            (Some(_), Some(_), _) => Choice::Uncovered(Uncovered::Ambiguous),
            (Some((section, _)), None, None) => Choice::Assumed(section, Assumption::UnknownEnds),
            (Some((section, _)), None, Some(_)) => Choice::Assumed(section, Assumption::SameService),
        }
    }
}

/// The first two models that are about the same service.
fn overlap(sections: &[Model]) -> Option<(usize, usize)> {
    let mut pairs = (0..sections.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
    pairs.find(|(first, second)| sections[*first].scope.overlaps(&sections[*second].scope))
}

/// What is assumed, for people: a predicate without its subject.
impl fmt::Display for Assumption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::SameService => {
                "its server name was not seen: taken to be the model's service, which has the same port"
            }
            Self::SameGateway => "the gateway has another address than the model's: taken to be the same gateway",
            Self::SameGatewayAndService => {
                "the gateway has another address than the model's, and the server name was not seen: taken to be the \
                 model's gateway and service, which has the same port"
            }
            Self::UnknownEnds => "the flow's ends are not known: taken to be those of the model",
        })
    }
}

impl fmt::Display for Uncovered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Gateway => {
                "the model was learned on another gateway: learn a model of this one, or, if it is the same gateway \
                 under a new address, set `gateway` in the model's [scope]"
            }
            Self::Service => {
                "the model was not learned on this service: its commands are not answered; learn with labels of this \
                 service too, or, if it is the same service under another name, add that to `services` in the model's \
                 [scope]"
            }
            Self::Direction => {
                "the model is about messages of the other direction, commands or reports: these are not answered; \
                 learn with `--set command-segmenter.direction=both`"
            }
            Self::Protocol => "the model was learned on messages of another protocol: learn a model of this one",
            Self::Ambiguous => {
                "its server name was not seen, and several sections of the model have this port: its commands are not \
                 answered; add its address and port to `services` of the [scope] that it belongs to"
            }
        })
    }
}
