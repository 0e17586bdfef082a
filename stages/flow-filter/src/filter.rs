//! The stage: packets in, the gateway's flows and segments out.

use std::net::IpAddr;

use prefetch_index::prefetch_index;
use sizeleak_frame::{
    BatchIter, BatchLimit, Flow, Notice, Packet, PacketRow, Packets, Segment, Segments, Transport, what,
};
use sizeleak_packet::{AddressPrefilter, GatewaySeen, Networks, may_be_tunnel, plain_addresses};
use sizeleak_runtime::{ConfigureError, Emit, Stage, StageError};

use crate::absent::SeenAddresses;
use crate::address::{GatewayEnds, ServiceRule};
use crate::flow::{Flows, Lookup};
use crate::flow_cache::{FlowCache, FlowRef, PlainSegment};
use crate::link::{NoIp, ip_offset};
use crate::name::ResolvedNames;
use crate::network::{Content, IpPacket};
use crate::options::Options;
use crate::reassembly::Reassembly;
use crate::tally::Tally;
use crate::transport::{NoSegment, TransportSegment, dns_answer, is_infrastructure};
use crate::tunnel::inside;

/// So many packets ahead headers are fetched.
const AHEAD: usize = 6;
/// Where what is looked at begins in most packets, and where it ends.
const LINK_TYPE_AT: usize = 12;
const PAYLOAD_AT: usize = 54;

/// Keeps the TCP segments and UDP datagrams of a gateway's flows.
#[derive(Debug)]
pub struct FlowFilter {
    sieve: AddressPrefilter,
    appearance: GatewaySeen,
    services: Vec<Networks>,
    names: ResolvedNames,
    any_service: bool,
    ports: Vec<u16>,
    absence: Absence,
    flows: Flows,
    reassembly: Reassembly,
    seen: SeenAddresses,
    tally: Tally,
    shortcuts: FlowCache,
    batches: BatchLimit,
}

/// What a gateway that is in no packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absence {
    Error,
    Notice,
}

/// The packet being looked at, and what becomes of it.
struct Work<'a> {
    time_ns: i64,
    number: u64,
    packets: &'a Packets,
    batch: Segments,
    batches: BatchLimit,
    out: &'a mut dyn Emit,
}

/// Where an IP packet was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// On the wire.
    Outer,
    /// In a tunnel with these gateways at its ends, if any.
    Inner(Option<GatewayEnds>),
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
        if options.max_flows < 2 {
            return Err(ConfigureError::Usage("`max-flows` is less than 2: nothing could be remembered".into()));
        }
        let (mut services, mut names) = (Vec::new(), Vec::new());
        for service in &options.service {
            match ServiceRule::parse(service)? {
                ServiceRule::Networks(networks) => services.push(networks),
                ServiceRule::Name(name) => names.push(name),
            }
        }
        Ok(Self {
            sieve: AddressPrefilter::new(gateways),
            appearance: GatewaySeen::default(),
            services,
            names: ResolvedNames::new(names),
            any_service: options.service.is_empty(),
            ports: options.port.clone(),
            absence: if options.allow_absent { Absence::Notice } else { Absence::Error },
            flows: Flows::new(options.max_flows),
            reassembly: Reassembly::default(),
            seen: SeenAddresses::default(),
            tally: Tally::default(),
            shortcuts: FlowCache::default(),
            batches: BatchLimit::default(),
        })
    }

    /// Has it put out batches of this size.
    #[must_use]
    pub fn with_batches(self, batches: BatchLimit) -> Self {
        Self { batches, ..self }
    }

    /// How many flows it remembers: never more than `max-flows`.
    pub fn remembered_flows(&self) -> usize {
        self.flows.len()
    }

    /// Tells which packets this filter would drop after a look at their addresses, so that a stage before need not hand them
    /// on. They are to be counted all the same, see [`Packets::pass_over`].
    pub fn sieve(&self) -> AddressPrefilter {
        AddressPrefilter::after(self.appearance.clone(), self.sieve.networks().clone())
    }

    /// Takes segments of the plainest kind, of flows that had some: up to the first packet that is none, or to where the batch
    /// is full.
    ///
    /// A function of its own, so that most of what it needs stays in registers.
    #[inline(never)]
    fn plain_segments(&mut self, rest: &mut BatchIter<'_, PacketRow>, work: &mut Work<'_>) {
        let (generation, batches) = (self.flows.generation(), work.batches);
        let (before, mut last_ns) = (rest.len(), None);
        while !work.batch.is_full(batches)
            && let Some(packet) = rest.peek()
        {
            // What another processor has read would be waited for.
            let later = rest.data_ahead(AHEAD);
            prefetch_index(later, LINK_TYPE_AT);
            prefetch_index(later, PAYLOAD_AT);
            let Some(plain) = PlainSegment::read(packet.link_type, packet.data) else { break };
            let Some(belonging) = self.shortcuts.find(&plain, generation) else { break };
            work.batch.push_from(plain.row(packet.time_ns, belonging), work.packets);
            last_ns = Some(packet.time_ns);
            rest.advance();
        }
        self.tally.gateway_packets((before - rest.len()) as u64, last_ns);
    }

    fn packet(&mut self, packet: &Packet<'_>, work: &mut Work<'_>) -> Result<(), StageError> {
        self.tally.packet(packet.time_ns);
        // Most packets of an archive are somebody else's: their addresses tell before anything is parsed.
        if self.sieve.is_foreign(packet.link_type, packet.data) {
            if self.tally.gateway_packets == 0
                && let Some((source, destination)) = plain_addresses(packet.link_type, packet.data)
            {
                self.gateways_at(source, destination);
            }
            return Ok(());
        }
        (work.time_ns, work.number) = (packet.time_ns, packet.number);
        // And most of a gateway's packets are plain.
        if let Some(segment) = TransportSegment::plain(packet.link_type, packet.data)
            && let Some(gateways) = self.gateways_at(segment.source.ip(), segment.destination.ip())
        {
            self.tally.gateway_packets += 1;
            let belonging = self.segment(&segment, gateways, work)?;
            let plain = PlainSegment::read(packet.link_type, packet.data);
            if let (Some(plain), Some(belonging)) = (plain, belonging) {
                self.shortcuts.remember(&plain, belonging, self.flows.generation());
            }
            return Ok(());
        }
        let at = match ip_offset(packet.link_type, packet.data) {
            Ok(at) => at,
            Err(reason) => return self.tell_unread(reason, work),
        };
        let on_wire = u64::from(packet.original_length).max(packet.data.len() as u64).saturating_sub(at as u64);
        self.ip(packet.data.get(at..).unwrap_or_default(), on_wire, Level::Outer, work)
    }

    /// Takes an IP packet, of which `bytes` were captured, and puts it together if it is a fragment.
    fn ip(&mut self, bytes: &[u8], on_wire: u64, level: Level, work: &mut Work<'_>) -> Result<(), StageError> {
        let Some(mut packet) = IpPacket::read(bytes, on_wire) else {
            self.tally.damaged += 1;
            return Ok(());
        };
        let Some(fragment) = packet.fragment else { return self.whole(&packet, level, work) };
        let gateways = self.gateways_of(&packet, level);
        if gateways.is_none() && (level != Level::Outer || !may_be_tunnel(packet.content.protocol)) {
            return Ok(());
        }
        self.tally.fragments += 1;
        let mut given_up = Vec::new();
        let added = self.reassembly.add(work.time_ns, &packet, fragment, &mut |packet| given_up.push(packet));
        for notice in given_up.iter().filter_map(|packet| self.tally.incomplete(packet)) {
            work.tell(notice)?;
        }
        if !matches!(added, Ok(Some(_))) {
            self.tally.gateway_packets += u64::from(gateways.is_some());
        }
        match added {
            Ok(None) => Ok(()),
            Ok(Some(whole)) => {
                let content = Content { protocol: whole.protocol, length: whole.length, data: &whole.data };
                (packet.content, packet.fragment) = (content.behind_extensions(), None);
                self.whole(&packet, level, work)
            }
            Err(_) => {
                self.tally.damaged += 1;
                Ok(())
            }
        }
    }

    /// Takes an IP packet that is no fragment: opens it if it is a tunnel, and else keeps its segment if it is the
    /// gateway's.
    fn whole(&mut self, packet: &IpPacket<'_>, level: Level, work: &mut Work<'_>) -> Result<(), StageError> {
        if !self.names.is_empty()
            && let Some(answer) = dns_answer(&packet.content)
        {
            self.names.learn(answer);
        }
        let unread = match (inside(&packet.content), level) {
            (Ok(None), _) => None,
            (Ok(Some(at)), Level::Outer) => {
                self.tally.tunnelled += 1;
                let gateways = GatewayEnds::among(self.sieve.networks(), packet.source, packet.destination);
                let on_wire = u64::from(packet.content.length).saturating_sub(at as u64);
                return self.ip(
                    packet.content.data.get(at..).unwrap_or_default(),
                    on_wire,
                    Level::Inner(gateways),
                    work,
                );
            }
            (Ok(Some(_)), Level::Inner(_)) => Some(NoIp::Nested),
            (Err(reason), _) => Some(reason),
        };
        let gateways = self.gateways_of(packet, level);
        self.tally.gateway_packets += u64::from(gateways.is_some());
        if let Some(reason) = unread {
            return self.tell_unread(reason, work);
        }
        let Some(gateways) = gateways else { return Ok(()) };
        match TransportSegment::read(packet) {
            Ok(segment) => {
                self.segment(&segment, gateways, work)?;
            }
            Err(NoSegment::Damaged) => self.tally.damaged += 1,
            Err(NoSegment::OtherProtocol) => self.tally.other_protocols += 1,
        }
        Ok(())
    }

    /// Which ends of a packet are gateways. As long as none was, addresses are counted, to say who was there instead.
    fn gateways_at(&mut self, source: IpAddr, destination: IpAddr) -> Option<GatewayEnds> {
        let gateways = GatewayEnds::among(self.sieve.networks(), source, destination);
        if gateways.is_none() && self.tally.gateway_packets == 0 {
            self.seen.count(source);
            self.seen.count(destination);
        }
        gateways
    }

    /// As [`Self::gateways_at`]; in a tunnel between gateways the end on a gateway's side is the gateway's.
    fn gateways_of(&mut self, packet: &IpPacket<'_>, level: Level) -> Option<GatewayEnds> {
        let of_tunnel = if let Level::Inner(gateways) = level { gateways } else { None };
        self.gateways_at(packet.source, packet.destination).or(of_tunnel)
    }

    /// Keeps a segment if it is wanted; where it belongs, if it is.
    fn segment(
        &mut self,
        segment: &TransportSegment<'_>,
        gateways: GatewayEnds,
        work: &mut Work<'_>,
    ) -> Result<Option<FlowRef>, StageError> {
        let is_named = |port| self.ports.contains(&port);
        if is_infrastructure(segment) && !is_named(segment.source.port()) && !is_named(segment.destination.port()) {
            self.tally.other_protocols += 1;
            return Ok(None);
        }
        let lookup = self.flows.look_up(segment, gateways);
        if self.flows.forgotten > 0
            && let Some(notice) = self.tally.forgot(self.flows.most())
        {
            work.tell(notice)?;
        }
        let (Lookup::Known(flow) | Lookup::New(flow)) = lookup;
        if !self.is_wanted(flow.service.ip(), flow.service.port()) {
            self.tally.other_services += 1;
            return Ok(None);
        }
        if matches!(lookup, Lookup::New(_)) {
            self.tally.flows += 1;
            work.send()?;
            let (gateway, service, transport) = (flow.gateway.ip(), flow.service, segment.transport);
            work.out.emit(Flow { flow: flow.id, gateway, service, transport }.into())?;
        }
        self.tally.datagrams += u64::from(segment.transport == Transport::Udp);
        let belonging = FlowRef { flow: flow.id, direction: flow.direction(segment) };
        work.keep(Segment {
            time_ns: work.time_ns,
            flow: belonging.flow,
            direction: belonging.direction,
            sequence: segment.sequence,
            flags: segment.flags,
            length: segment.length,
            payload: segment.payload,
        })?;
        Ok(Some(belonging))
    }

    fn is_wanted(&self, service: IpAddr, port: u16) -> bool {
        let address = self.any_service
            || self.services.iter().any(|networks| networks.contains(service))
            || self.names.contains(service);
        address && (self.ports.is_empty() || self.ports.contains(&port))
    }

    fn tell_unread(&mut self, reason: NoIp, work: &mut Work<'_>) -> Result<(), StageError> {
        self.tally.unread(work.number, reason).map_or(Ok(()), |notice| work.tell(notice))
    }

    /// Who was there instead of the gateway.
    fn absence(&self) -> String {
        format!(
            "none of the {} packets is from or to {}; the most frequent addresses are: {}",
            self.tally.packets,
            self.sieve.networks(),
            self.seen.most_frequent()
        )
    }
}

impl Work<'_> {
    /// Puts a row into the batch.
    fn keep(&mut self, segment: Segment<'_>) -> Result<(), StageError> {
        self.batch.push_from(segment, self.packets);
        self.send_if_full()
    }

    fn send_if_full(&mut self) -> Result<(), StageError> {
        if self.batch.is_full(self.batches) { self.send() } else { Ok(()) }
    }

    /// Tells of something behind the rows before it: so it does not matter where batches end.
    fn tell(&mut self, notice: Notice) -> Result<(), StageError> {
        self.send()?;
        Ok(self.out.emit(notice.into())?)
    }

    /// Sends what has gathered.
    fn send(&mut self) -> Result<(), StageError> {
        if !self.batch.is_empty() {
            self.out.emit(std::mem::take(&mut self.batch).into())?;
        }
        Ok(())
    }
}

impl Stage for FlowFilter {
    const NAME: &'static str = "flow-filter";
    type Input = Packets;

    fn process(&mut self, packets: Packets, out: &mut dyn Emit) -> Result<(), StageError> {
        let (batch, batches) = (Segments::with_capacity(packets.len()), self.batches);
        let mut work = Work { time_ns: 0, number: 0, packets: &packets, batch, batches, out };
        let mut rest = packets.iter();
        while rest.len() > 0 {
            self.plain_segments(&mut rest, &mut work);
            if !work.batch.is_full(batches)
                && let Some(packet) = rest.next()
            {
                self.packet(&packet, &mut work)?;
            }
            work.send_if_full()?;
        }
        self.tally.skipped_packets(packets.skipped_packets());
        if self.tally.gateway_packets > 0 {
            self.appearance.tell();
        }
        // A batch for a batch, however small: what comes out depends on what came in, never on when.
        work.send()
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        let mut given_up = Vec::new();
        self.reassembly.finish(&mut |packet| given_up.push(packet));
        for notice in given_up.iter().filter_map(|packet| self.tally.incomplete(packet)) {
            out.emit(notice.into())?;
        }
        if self.tally.packets > 0 && self.tally.gateway_packets == 0 {
            match self.absence {
                Absence::Error => return Err(StageError::failed(self.absence())),
                Absence::Notice => out.emit(self.tally.notice(what::ABSENT, None, self.absence()).into())?,
            }
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.tally.counters();
        counters.push(("forgotten_flows", self.flows.forgotten));
        counters
    }
}
