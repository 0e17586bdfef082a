//! What a capture holds for somebody who knows nothing of it yet: which addresses look like gateways and why, their
//! services and connections, and what the messages on them look like.
//!
//! A [`SurveyRun`] reads captures once, by the pipeline up to `record-sizer` with every address as the gateway, so that
//! the side that opens a connection counts as its gateway. The segmenter's algorithm `adaptive` says what each record
//! is; no model is needed. What is kept meanwhile: connections and addresses, the busiest of them.
//!
//! ```
//! use sizeleak_platform::runtime::Interrupt;
//! use sizeleak_traffic::survey::{SurveyRun, Verdict};
//!
//! let captures = vec!["../../examples/home/test.pcap".into()];
//! let run = SurveyRun { captures, ..SurveyRun::default() };
//! let survey = run.survey(&Interrupt::new(), &mut |_notice| {})?;
//! let first = &survey.report.addresses[0];
//! assert_eq!((first.address.to_string().as_str(), first.verdict), ("192.168.1.20", Verdict::Likely));
//! # Ok::<(), sizeleak_pipeline::InputError>(())
//! ```

#![warn(clippy::indexing_slicing)]

mod connection;
mod report;
mod score;
mod services;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use sizeleak_command_segmenter::{CommandDirection, CommandSegmenter, Options, SegmenterInput};
use sizeleak_frame::{Flow, Frame, FrameSink, Notice, Record, Summary, Transport, what};
use sizeleak_packet::is_private;
use sizeleak_pipeline::{ConfigError, InputError, Pipeline, RunEnding, RunError};
use sizeleak_platform::runtime::{ConfigureError, Interrupt, Stage, StageError, TwoGenerationCache};

use crate::survey::connection::{AddressTally, BusiestTable, Connection, MANY_CLIENTS};
use crate::survey::score::judge;
use crate::survey::services::{Service, services};

pub use report::{
    MessageKind, OtherPort, Reason, Server, SizeBin, SurveyReport, SurveyedAddress, SurveyedConnection,
    SurveyedService, TimesOfSize, Traffic, Verdict,
};
pub use score::in_words;

/// With these networks as gateways, the side of a private network counts as the gateway of a connection, else the side
/// that opens it.
const EVERY_ADDRESS: [&str; 2] = ["0.0.0.0/0", "::/0"];

#[derive(Debug, Clone, Default)]
pub struct SurveyRun {
    /// The captures; `-` is stdin. They are read once.
    pub captures: Vec<PathBuf>,
    /// Whether to read all captures below the folders among them.
    pub recursive: bool,
    /// The addresses and networks to survey; all of them if there are none.
    pub gateways: Vec<String>,
}

#[derive(Debug)]
pub struct SurveyOutcome {
    /// What the captures hold, as far as they were read.
    pub report: SurveyReport,
    pub coverage: Coverage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    Whole,
    UntilDamage(RunError),
    /// Until SIGINT or SIGTERM came.
    UntilStopped,
}

impl SurveyRun {
    pub fn pipeline(&self) -> Result<Pipeline, ConfigError> {
        let mut pipeline = Pipeline::standard().until("record-sizer")?;
        pipeline.read_captures(&self.captures)?;
        pipeline.set("capture", "recursive", self.recursive)?;
        // Connections without TLS have messages too, and are said to have none.
        pipeline.set("record-sizer", "plain-tcp", true)?;
        if self.gateways.is_empty() {
            pipeline.set("flow-filter", "gateway", EVERY_ADDRESS.map(str::to_owned).to_vec())?;
            pipeline.set("flow-filter", "allow-absent", true)?;
        } else {
            pipeline.set("flow-filter", "gateway", self.gateways.clone())?;
        }
        Ok(pipeline)
    }

    /// Reads the captures to their end, to their damage, or until it is interrupted; notices of the stages go to `on_notice`.
    pub fn survey(
        &self,
        interrupt: &Interrupt,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<SurveyOutcome, InputError> {
        let of_segmenter = |error: &dyn Display| ConfigError::input(format!("command-segmenter: {error}"));
        let prepared = self.pipeline()?.prepare()?;
        let mut state = SurveyState::new(on_notice).map_err(|error| of_segmenter(&error))?;
        let ended = prepared.run(interrupt, &mut state);
        let report = state.finish().map_err(|error| of_segmenter(&error))?;
        let coverage = match ended {
            Ok(run) if run.ending == RunEnding::Interrupted => Coverage::UntilStopped,
            Ok(_) => Coverage::Whole,
            Err(error) if report.span_ns.is_none() => return Err(error.into()),
            Err(error) => Coverage::UntilDamage(error),
        };
        Ok(SurveyOutcome { report, coverage })
    }
}

/// The most connections that are kept: those with the most messages.
const MAX_CONNECTIONS: usize = 1024;

/// The most sentences on protocols that are not sized; there are fewer such protocols.
const MAX_NOT_SIZED: usize = 32;

const MAX_ADDRESSES: usize = 2048;

/// The most connections that may still get their first message; at least the half announced last is kept.
const MAX_ANNOUNCED: usize = 65_536;

struct SurveyState<'a> {
    segmenter: CommandSegmenter,
    out: Vec<Frame>,
    announced: TwoGenerationCache<u64, Flow>,
    connections: BusiestTable<u64, Connection>,
    addresses: BusiestTable<IpAddr, AddressTally>,
    span_ns: Option<[i64; 2]>,
    flows: u64,
    spoken: u64,
    suppressed: u64,
    not_sized: Vec<String>,
    on_notice: &'a mut (dyn FnMut(&Notice) + Send),
}

impl<'a> SurveyState<'a> {
    fn new(on_notice: &'a mut (dyn FnMut(&Notice) + Send)) -> Result<Self, ConfigureError> {
        let options = Options { direction: Some(CommandDirection::Both), ..Options::default() };
        Ok(Self {
            segmenter: CommandSegmenter::new(&options)?.keeping_roles(),
            out: Vec::new(),
            announced: TwoGenerationCache::new(MAX_ANNOUNCED),
            connections: BusiestTable::new(MAX_CONNECTIONS, |connection: &Connection| connection.messages.count()),
            addresses: BusiestTable::new(MAX_ADDRESSES, AddressTally::messages),
            span_ns: None,
            flows: 0,
            spoken: 0,
            suppressed: 0,
            not_sized: Vec::new(),
            on_notice,
        })
    }

    fn add(&mut self, frame: Frame) -> Result<(), StageError> {
        match frame {
            Frame::Flow(flow) => {
                self.flows += 1;
                self.addresses.find_or_add(flow.gateway, AddressTally::default).open(&flow);
                self.announced.remember(flow.flow, (*flow).clone(), 1);
                self.segment(SegmenterInput::Flow(flow))
            }
            Frame::Session(session) => {
                if let Some(connection) = self.connection(session.flow) {
                    connection.add_session((*session).clone());
                }
                self.segment(SegmenterInput::Session(session))
            }
            Frame::Record(record) => {
                self.add_record(&record);
                self.segment(SegmenterInput::Frame(record))
            }
            Frame::Notice(notice) => {
                self.add_notice(&notice);
                Ok(())
            }
            Frame::Summary(summary) => {
                self.add_summary(&summary);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The connection of a flow, which is kept from its first record, session or notice on.
    fn connection(&mut self, flow: u64) -> Option<&mut Connection> {
        if self.connections.find(&flow).is_none() {
            let announced = self.announced.peek(&flow)?;
            self.spoken += 1;
            self.connections.find_or_add(flow, || Connection::new(announced));
        }
        self.connections.find(&flow)
    }

    fn add_record(&mut self, record: &Record) {
        let [first, last] = self.span_ns.unwrap_or([record.start_ns, record.time_ns]);
        self.span_ns = Some([first.min(record.start_ns), last.max(record.time_ns)]);
        let Some(connection) = self.connection(record.flow) else { return };
        if !connection.add_record(record) {
            return;
        }
        let (gateway, end, port) = (connection.gateway, connection.service, connection.service_port());
        // A client has another port each time, and is one all the same.
        let service = SocketAddr::new(end.ip(), port.unwrap_or_default());
        let tally = self.addresses.find_or_add(gateway, AddressTally::default);
        tally.add_opened(service, record.length);
        if port.is_none() {
            tally.add_client(end.ip());
        }
        self.addresses.find_or_add(service.ip(), AddressTally::default).add_served(gateway);
    }

    fn add_notice(&mut self, notice: &Notice) {
        (self.on_notice)(notice);
        if notice.what == what::NOT_SIZED && self.not_sized.len() < MAX_NOT_SIZED {
            self.not_sized.extend(notice.detail.clone());
        }
        // Other notices say nothing of what a connection is.
        let tells = matches!(&*notice.what, what::NOT_TLS | what::UNSUPPORTED | what::ASSUMED);
        if tells
            && let Some(flow) = notice.flow
            && let Some(connection) = self.connection(flow)
        {
            connection.add_notice(notice);
        }
    }

    fn add_summary(&mut self, summary: &Summary) {
        let suppressed = summary.stages.iter().filter_map(|stage| stage.counters.get("suppressed_notices"));
        self.suppressed = suppressed.fold(0, |sum, count| sum.saturating_add(*count));
    }

    fn segment(&mut self, input: SegmenterInput) -> Result<(), StageError> {
        self.segmenter.process(input, &mut self.out)?;
        self.take_segmented();
        Ok(())
    }

    fn take_segmented(&mut self) {
        for record in self.segmenter.take_roles() {
            if let Some(connection) = self.connections.find(&record.flow) {
                connection.add_role(&record);
            }
        }
        for frame in self.out.drain(..) {
            match frame {
                Frame::Command(command) => {
                    if let Some(connection) = self.connections.find(&command.flow) {
                        connection.add_command(&command);
                    }
                }
                Frame::Notice(notice) => (self.on_notice)(&notice),
                _ => {}
            }
        }
    }

    fn finish(mut self) -> Result<SurveyReport, StageError> {
        self.segmenter.finish(&mut self.out)?;
        self.take_segmented();
        let mut addresses = self.surveyed_addresses();
        addresses.sort_by_key(|(messages, surveyed)| {
            (surveyed.verdict, Reverse(surveyed.score), Reverse(*messages), surveyed.address)
        });
        Ok(SurveyReport {
            schema: 1,
            span_ns: self.span_ns,
            addresses: addresses.into_iter().map(|(_, surveyed)| surveyed).collect(),
            servers: self.servers(),
            silent_connections: self.flows.saturating_sub(self.spoken),
            left_out: self.connections.forgotten.saturating_add(self.addresses.forgotten),
            suppressed_notices: self.suppressed,
            not_sized: std::mem::take(&mut self.not_sized),
        })
    }

    /// The addresses with a connection that is kept, each with its number of messages.
    fn surveyed_addresses(&self) -> Vec<(u64, SurveyedAddress)> {
        let span_ns = self.span_ns.map_or(0, |[first, last]| last.saturating_sub(first));
        let mut by_gateway: BTreeMap<IpAddr, Vec<(u64, &Connection)>> = BTreeMap::new();
        for (flow, connection) in self.connections.iter() {
            by_gateway.entry(connection.gateway).or_default().push((*flow, connection));
        }
        let surveyed = |(address, tally): (&IpAddr, &AddressTally)| {
            let services = services(by_gateway.get(address)?.iter().copied());
            let judgement = judge(*address, tally, &services, span_ns);
            let surveyed = SurveyedAddress {
                address: *address,
                verdict: judgement.verdict,
                score: judgement.score,
                reasons: judgement.reasons,
                connections: tally.opened,
                other_ports: other_ports(tally, &services),
                services: services.iter().map(Service::surveyed).collect(),
            };
            Some((tally.messages, surveyed))
        };
        self.addresses.iter().filter_map(surveyed).collect()
    }

    /// The addresses that opened no connection and that may be worth a look.
    fn servers(&self) -> Vec<Server> {
        let is_server = |(address, tally): &(&IpAddr, &AddressTally)| {
            tally.messages == 0 && tally.served > 0 && (is_private(**address) || tally.clients.len() >= MANY_CLIENTS)
        };
        let server = |(address, tally): (&IpAddr, &AddressTally)| Server {
            address: *address,
            clients: tally.clients.len() as u64,
            messages: tally.served,
        };
        let mut servers: Vec<Server> = self.addresses.iter().filter(is_server).map(server).collect();
        servers.sort_by_key(|server| (Reverse(server.messages), server.address));
        servers
    }
}

fn other_ports(tally: &AddressTally, services: &[Service<'_>]) -> Vec<OtherPort> {
    let is_of_service = |transport: Transport, port: u16| {
        let mut connections = services.iter().flat_map(|service| &service.connections);
        connections.any(|(_, connection)| connection.transport == transport && connection.service.port() == port)
    };
    let others = tally.ports.iter().filter(|((transport, port), _)| !is_of_service(*transport, *port));
    let mut others: Vec<OtherPort> = others
        .map(|((transport, port), connections)| OtherPort {
            transport: transport.name(),
            port: *port,
            connections: *connections,
        })
        .collect();
    others.sort_by_key(|other| (Reverse(other.connections), other.transport, other.port));
    others
}

impl FrameSink for SurveyState<'_> {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        frames.drain(..).try_for_each(|frame| self.add(frame).map_err(io::Error::other))
    }
}
