//! The stage: packets in, the gateway's flows and segments out.

use std::collections::BTreeMap;
use std::net::IpAddr;

use etherparse::LaxSlicedPacket;
use sizeleak_frame::{Flow, Notice, Packet, Packets, Segment, Segments, Transport, what};
use sizeleak_stage::{ConfigureError, Emit, Stage, StageError};

use crate::absent::SeenAddresses;
use crate::address::{Networks, ServiceRule, plain_addresses};
use crate::flow::{Flows, Lookup};
use crate::link::{NoIp, ip_offset};
use crate::name::ResolvedNames;
use crate::options::Options;
use crate::segment::{NoTcp, TcpSegment, addresses, segment};

/// Reasons told apart in notices; others are counted together.
const MOST_REASONS: usize = 64;

/// Keeps the TCP segments of a gateway's flows.
#[derive(Debug)]
pub struct FlowFilter {
    gateways: Networks,
    services: Vec<Networks>,
    names: ResolvedNames,
    any_service: bool,
    ports: Vec<u16>,
    flows: Flows,
    seen: SeenAddresses,
    unread: BTreeMap<NoIp, u64>,
    counts: Counts,
    last_time_ns: Option<i64>,
}

#[derive(Debug, Default)]
struct Counts {
    packets: u64,
    gateway_packets: u64,
    segments: u64,
    flows: u64,
    no_ip: u64,
    fragments: u64,
    other_protocols: u64,
    damaged: u64,
    other_services: u64,
}

impl FlowFilter {
    /// A filter with these options.
    ///
    /// # Errors
    /// [`ConfigureError::Usage`] where no gateway is named, or something named cannot be read.
    pub fn new(options: &Options) -> Result<Self, ConfigureError> {
        let gateways = Networks::parse(&options.gateway)?;
        if gateways.is_empty() {
            return Err(ConfigureError::Usage("`--gateway IP|CIDR` is missing: whose flows are meant?".into()));
        }
        let (mut services, mut names) = (Vec::new(), Vec::new());
        for service in &options.service {
            match ServiceRule::parse(service)? {
                ServiceRule::Networks(networks) => services.push(networks),
                ServiceRule::Name(name) => names.push(name),
            }
        }
        Ok(Self {
            gateways,
            services,
            names: ResolvedNames::new(names),
            any_service: options.service.is_empty(),
            ports: options.port.clone(),
            flows: Flows::default(),
            seen: SeenAddresses::default(),
            unread: BTreeMap::new(),
            counts: Counts::default(),
            last_time_ns: None,
        })
    }

    fn packet(&mut self, packet: &Packet<'_>, batch: &mut Segments, out: &mut dyn Emit) -> Result<(), StageError> {
        self.counts.packets += 1;
        self.last_time_ns = Some(packet.time_ns);
        // Most packets of an archive are somebody else's: their addresses tell before anything is parsed. Only names
        // need a look at the answers of name servers to others, too.
        let quick = if self.names.is_empty() { plain_addresses(packet.link_type, packet.data) } else { None };
        if let Some((source, destination)) = quick
            && !self.is_gateways(source, destination)
        {
            return Ok(());
        }
        let at = match ip_offset(packet.link_type, packet.data) {
            Ok(at) => at,
            Err(reason) => return self.tell_unread(packet, reason, out),
        };
        let ip = packet.data.get(at..).unwrap_or_default();
        let Ok(parsed) = LaxSlicedPacket::from_ip(ip) else {
            self.counts.damaged += 1;
            return Ok(());
        };
        let on_wire = u64::from(packet.original_length).max(packet.data.len() as u64).saturating_sub(at as u64);
        let found = segment(&parsed, ip, on_wire);
        if let (Err(NoTcp::Dns(answer)), false) = (found, self.names.is_empty()) {
            self.names.learn(answer);
        }
        let Some((source, destination)) = addresses(&parsed) else {
            self.counts.damaged += 1;
            return Ok(());
        };
        if quick.is_none() && !self.is_gateways(source, destination) {
            return Ok(());
        }
        self.counts.gateway_packets += 1;
        match found {
            Ok(segment) => self.segment(packet.time_ns, &segment, batch, out)?,
            Err(NoTcp::Fragment) => self.counts.fragments += 1,
            Err(NoTcp::Damaged) => self.counts.damaged += 1,
            Err(NoTcp::Dns(_) | NoTcp::OtherProtocol) => self.counts.other_protocols += 1,
        }
        Ok(())
    }

    /// Whether a packet is the gateway's. As long as none was, addresses are counted, to say who was there instead.
    fn is_gateways(&mut self, source: IpAddr, destination: IpAddr) -> bool {
        let is = self.gateways.contains(source) || self.gateways.contains(destination);
        if !is && self.counts.gateway_packets == 0 {
            self.seen.count(source);
            self.seen.count(destination);
        }
        is
    }

    fn segment(
        &mut self,
        time_ns: i64,
        segment: &TcpSegment<'_>,
        batch: &mut Segments,
        out: &mut dyn Emit,
    ) -> Result<(), StageError> {
        let lookup = self.flows.look_up(segment, &self.gateways);
        let (Lookup::Known(flow) | Lookup::New(flow)) = lookup;
        if !self.is_wanted(flow.service.ip(), flow.service.port()) {
            self.counts.other_services += 1;
            return Ok(());
        }
        if matches!(lookup, Lookup::New(_)) {
            self.counts.flows += 1;
            send(batch, out)?;
            let (gateway, service) = (flow.gateway.ip(), flow.service);
            out.emit(Flow { flow: flow.id, gateway, service, transport: Transport::Tcp }.into())?;
        }
        self.counts.segments += 1;
        batch.push(Segment {
            time_ns,
            flow: flow.id,
            direction: flow.direction(segment),
            sequence: segment.sequence,
            flags: segment.flags,
            length: segment.length,
            payload: segment.payload,
        });
        if batch.is_full() {
            send(batch, out)?;
        }
        Ok(())
    }

    fn is_wanted(&self, service: IpAddr, port: u16) -> bool {
        let address = self.any_service
            || self.services.iter().any(|networks| networks.contains(service))
            || self.names.contains(service);
        address && (self.ports.is_empty() || self.ports.contains(&port))
    }

    /// Counts a packet without IP; the first of its kind is told.
    fn tell_unread(&mut self, packet: &Packet<'_>, reason: NoIp, out: &mut dyn Emit) -> Result<(), StageError> {
        self.counts.no_ip += 1;
        if self.unread.len() >= MOST_REASONS && !self.unread.contains_key(&reason) {
            return Ok(());
        }
        let count = self.unread.entry(reason).or_default();
        *count += 1;
        // Every network has ARP; it is nothing a user need know of.
        if *count > 1 || matches!(reason, NoIp::EtherType(_) | NoIp::Other) {
            return Ok(());
        }
        let detail = format!("packet {}: {reason}; more of these are only counted", packet.number);
        Ok(out.emit(self.notice(what::UNSUPPORTED, detail).into())?)
    }

    fn notice(&self, what: &'static str, detail: String) -> Notice {
        Notice {
            time_ns: self.last_time_ns,
            stage: Self::NAME.into(),
            flow: None,
            what: what.into(),
            bytes: None,
            detail: Some(detail),
        }
    }
}

fn send(batch: &mut Segments, out: &mut dyn Emit) -> Result<(), StageError> {
    if !batch.is_empty() {
        out.emit(std::mem::take(batch).into())?;
    }
    Ok(())
}

impl Stage for FlowFilter {
    const NAME: &'static str = "flow-filter";
    type Input = Packets;

    fn process(&mut self, packets: Packets, out: &mut dyn Emit) -> Result<(), StageError> {
        // A batch for a batch, however small: what comes out depends on what came in, never on when.
        let mut batch = Segments::new();
        for packet in packets.iter() {
            self.packet(&packet, &mut batch, out)?;
        }
        send(&mut batch, out)
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        if self.counts.packets > 0 && self.counts.gateway_packets == 0 {
            let detail = format!(
                "none of the {} packets is from or to {}; the most frequent addresses are: {}",
                self.counts.packets,
                self.gateways,
                self.seen.most_frequent()
            );
            out.emit(self.notice("absent", detail).into())?;
        }
        if self.flows.forgotten > 0 {
            let detail =
                format!("{} idle flows were forgotten; they are announced again if seen", self.flows.forgotten);
            out.emit(self.notice(what::EVICTED, detail).into())?;
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("gateway_packets", self.counts.gateway_packets),
            ("flows", self.counts.flows),
            ("no_ip", self.counts.no_ip),
            ("fragments", self.counts.fragments),
            ("other_protocols", self.counts.other_protocols),
            ("other_services", self.counts.other_services),
            ("damaged", self.counts.damaged),
            ("forgotten_flows", self.flows.forgotten),
        ]
    }
}
