//! A home that is commanded one command at a time: the same service, gateway and TLS as in a simulated capture, at times
//! that somebody else decides.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use serde::Deserialize;

use crate::application::{MessageInput, MessagePadding, PushSession, alpn_protocol};
use crate::command_generator::{CommandGenerator, DeviceAction, WantedCommand, random_id};
use crate::message_encoder::{BodyForm, MessageEncoder};
use crate::network::{Hosts, TcpRoute, pcap_file};
use crate::random_streams::{DAY, Purpose, Seed};
use crate::scenario::{DeviceKind, IdDraw, Resolution};
use crate::schedule::{PlannedCommand, PlannedConnection};
use crate::tls::{ServerIdentity, Side};
use crate::tls_connection::TlsConnection;
use crate::{Scenario, SimulateError};

/// What one end of the gateway's connection writes at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flight {
    /// Whether the gateway wrote it.
    pub is_from_gateway: bool,
    pub records: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CommandedDevice {
    pub device: String,
    /// Which device of this kind, from 0.
    pub index: u32,
    pub action: String,
}

/// A home between its sessions: what all captures and sessions of it share.
#[derive(Debug)]
pub struct LiveHome {
    pub(crate) scenario: Scenario,
    /// Of what its captures and sessions share.
    pub(crate) seed: Seed,
    pub(crate) generator: CommandGenerator,
    pub(crate) encoder: MessageEncoder,
    pub(crate) hosts: Hosts,
    service: ServerIdentity,
}

impl LiveHome {
    pub fn new(scenario: Scenario, seed: u64) -> Result<Self, SimulateError> {
        scenario.check()?;
        let seed = Seed::new(seed, 0);
        Ok(Self {
            generator: CommandGenerator::new(&scenario, &mut seed.stream(Purpose::Variation, 0)),
            encoder: MessageEncoder::new(&scenario),
            hosts: Hosts::new(&scenario.network),
            service: ServerIdentity::new(&scenario.network.name, &mut seed.stream(Purpose::Certificate, 0))?,
            scenario,
            seed,
        })
    }

    /// The devices, as an inventory file.
    pub fn inventory(&self) -> Result<String, SimulateError> {
        inventory_file(&self.scenario.devices)
    }

    /// Opens the `number`th session of the gateway, which lasts a day at most.
    ///
    /// # Errors
    /// If its service does not push.
    pub fn open(&self, number: u32, time_ns: i64) -> Result<LiveSession<'_>, SimulateError> {
        let mut random = self.seed.stream(Purpose::Messages, number);
        let tls = self.connect(self.seed, number, time_ns, &mut random)?;
        let connection =
            PlannedConnection { open_ns: time_ns, close_ns: time_ns + DAY, commands: Vec::new(), firmware: None };
        let push = PushSession::begin(self.input(&connection, tls.ready_ns), random)?;
        let [random, capture] = [Purpose::Commands, Purpose::Capture].map(|purpose| self.seed.stream(purpose, number));
        Ok(LiveSession { home: self, connection, tls, push, random, capture, sent: 0 })
    }

    /// The `index`th connection of the gateway to the service, after both handshakes; `random` draws its port, and what
    /// is drawn inside follows from a seed.
    pub(crate) fn connect(
        &self,
        seed: Seed,
        index: u32,
        open_ns: i64,
        random: &mut ChaCha20Rng,
    ) -> Result<TlsConnection<'_>, SimulateError> {
        let (Self { hosts, service, .. }, Scenario { network, tls, session, .. }) = (self, &self.scenario);
        let ports = [random.random_range(32_768..=60_999), network.port];
        let route = TcpRoute { hosts: [hosts.gateway, hosts.service], ports, network };
        let streams = [Purpose::Tls, Purpose::Tcp].map(|purpose| seed.stream(purpose, index));
        TlsConnection::open(route, service, *tls, alpn_protocol(session.framing), open_ns, streams)
    }

    pub(crate) fn input<'a>(&'a self, connection: &'a PlannedConnection, ready_ns: i64) -> MessageInput<'a> {
        MessageInput { scenario: &self.scenario, encoder: &self.encoder, connection, ready_ns }
    }

    fn wanted(&self, devices: &[CommandedDevice]) -> Result<Vec<DeviceAction>, SimulateError> {
        let names = self.scenario.action_names();
        let mut wanted: Vec<DeviceAction> = Vec::with_capacity(devices.len());
        for CommandedDevice { device, index, action } in devices {
            let before = self.scenario.devices.iter().take_while(|kind| kind.name != *device);
            let first: u32 = before.map(|kind| kind.count).sum();
            let kind = self.scenario.devices.iter().find(|kind| kind.name == *device);
            let kind = kind.filter(|kind| *index < kind.count && kind.actions.contains(action));
            let at = names.iter().position(|name| name == action).filter(|_| kind.is_some());
            let fault = |fault| SimulateError::impossible(format_args!("{device} {index} {action}: {fault}"));
            let at = at.ok_or_else(|| fault("there is no such device, or it has no such action"))?;
            if wanted.iter().any(|other| other.device == first + index) {
                return Err(fault("a command has one action for each device"));
            }
            wanted.push(DeviceAction::new(first + index, at));
        }
        if wanted.is_empty() { Err(SimulateError::impossible("it names no device")) } else { Ok(wanted) }
    }
}

#[derive(Debug)]
pub struct LiveSession<'a> {
    home: &'a LiveHome,
    connection: PlannedConnection,
    tls: TlsConnection<'a>,
    push: PushSession,
    random: ChaCha20Rng,
    capture: ChaCha20Rng,
    sent: u64,
}

impl LiveSession<'_> {
    pub fn handshake(&mut self) -> Vec<Flight> {
        let flights = std::mem::take(&mut self.tls.handshake);
        flights.into_iter().map(|(side, records)| flight(side, records)).collect()
    }

    /// Lets the service send a command at a time that is not before any other.
    ///
    /// # Errors
    /// If there are no such devices.
    pub fn command(&mut self, time_ns: i64, devices: &[CommandedDevice]) -> Result<(), SimulateError> {
        let settings = self.home.scenario.command.message_id;
        let mut wanted = [WantedCommand::new(None, self.home.wanted(devices)?)];
        self.home.generator.draw_parameters(&mut wanted, &mut self.random);
        let [WantedCommand { actions, .. }] = wanted;
        let first = 10_u64.saturating_pow(settings.min_digits.saturating_sub(1));
        let message_id = match settings.draw {
            IdDraw::Growing => first + self.sent,
            IdDraw::Number | IdDraw::Digits => random_id(settings, &mut self.random),
        };
        self.sent += 1;
        let command = PlannedCommand { time_ns, message_id, form: BodyForm::default(), actions, is_dummy: false };
        self.push.add(self.home.input(&self.connection, self.tls.ready_ns), 0, &command);
        // The command that replies belong to.
        self.connection.commands = vec![command];
        Ok(())
    }

    /// What both ends have written by a time, since it was last asked.
    ///
    /// # Errors
    /// If a message does not fit its framing.
    pub fn flights(&mut self, until_ns: i64) -> Result<Vec<Flight>, SimulateError> {
        let Self { home, connection, push, tls, .. } = self;
        let key = &mut Seed::new(0, 0).stream(Purpose::Padding, 0);
        let mut padding = MessagePadding::new(&home.scenario, &connection.commands, key, push.random.clone());
        let messages = push.take_messages(home.input(connection, tls.ready_ns), until_ns, &mut padding)?;
        let sealed = messages.iter().map(|message| Ok(flight(message.side, tls.send(message)?.1)));
        sealed.collect()
    }

    /// When one of them writes next, in nanoseconds since the epoch.
    pub fn next_ns(&self) -> Option<i64> {
        self.push.next_ns()
    }

    /// The packets of these flights by a time, since it was last asked: records of a pcap file, of which the scenario's
    /// share is lost. Their clock is ahead by `ahead_ns`.
    pub fn packets(&mut self, until_ns: i64, ahead_ns: i64) -> Result<Vec<u8>, SimulateError> {
        let mut packets = self.tls.take_packets(until_ns)?;
        packets.retain(|_| !self.capture.random_bool(self.home.scenario.capture.loss));
        for packet in &mut packets {
            packet.time_ns += ahead_ns;
        }
        Ok(pcap_file(&packets, Resolution::Nanosecond)?.split_off(PCAP_HEADER_BYTES))
    }

    pub fn pcap_header() -> Result<Vec<u8>, SimulateError> {
        pcap_file(&[], Resolution::Nanosecond)
    }
}

const PCAP_HEADER_BYTES: usize = 24;

fn flight(side: Side, records: Vec<u8>) -> Flight {
    Flight { is_from_gateway: side == Side::Client, records }
}

/// The devices as an inventory file: `[[device]]` with name, count and actions.
pub(crate) fn inventory_file(devices: &[DeviceKind]) -> Result<String, SimulateError> {
    toml::to_string(&BTreeMap::from([("device", devices)])).map_err(SimulateError::encoding("the inventory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inventory_reads_back_as_the_devices_of_a_scenario() {
        let scenario = Scenario::default();
        let text = inventory_file(&scenario.devices).unwrap();
        assert_eq!(Scenario::from_toml(&text).unwrap().devices, scenario.devices);
    }
}
