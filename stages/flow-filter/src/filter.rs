//! The stage: packets in, the gateway's flows and segments out. Where a run continues a state over a capture once more,
//! the packets that a run before this one has read already are passed over.

use std::fmt::Write as _;

use sizeleak_frame::{BatchIter, BatchLimit, Flow, Packet, PacketRow, Packets, Segment, Transport, what};
use sizeleak_packet::{
    AddressPrefilter, AddressSet, CapturedBytes, Encapsulation, IpPacket, IpPayload, NoIpHeader, NoSegment,
    OpenedTunnel, TransportSegment, dns_message, fast, ip_bytes, may_be_tunnel, open_tunnel,
};
use sizeleak_platform::runtime::{
    ConfigureError, Emit, Node, Runnable, Stage, StageError, StageOptions, StateError, decode_state, encode_state,
};

use crate::fast::FlowCache;
use crate::flow_table::{FlowRef, FlowTable, GatewayEnds};
use crate::ip_reassembly::{FragmentLimits, IpReassembly};
use crate::options::{Options, TunnelSelection, TunnelTreatment};
use crate::output::{FilterCounters, SeenAddresses, SegmentWriter, UnsizedTraffic};
use crate::services::ServiceSelection;

/// How much later than its neighbours a packet may stand in a capture: cards with several queues and buffers of capture
/// programs reorder by milliseconds. A run that begins no earlier than this before the state ends is a new capture.
const MAX_LATE_NS: i64 = 1_000_000_000;

/// Passes over the beginning of a run whose packets are not later than the state that it continues.
///
/// A state knows the time of its last packet, and not which packets it has seen. Captures follow each other in time, so
/// those that begin before that time are read a second time as far as it.
#[derive(Debug, Default)]
pub(crate) struct EarlierPackets {
    /// The time of the last packet of the state, until a later one has come.
    until_ns: Option<i64>,
    passed_over: u64,
}

impl EarlierPackets {
    fn pass_over<'a>(&mut self, packets: &mut BatchIter<'a, PacketRow>) -> Option<Packet<'a>> {
        let before = self.passed_over;
        let first = packets.peek();
        while let Some(until_ns) = self.until_ns
            && let Some(packet) = packets.peek()
        {
            let margin_ns = if self.passed_over == 0 { MAX_LATE_NS } else { 0 };
            if packet.time_ns <= until_ns.saturating_sub(margin_ns) {
                self.passed_over += 1;
                packets.advance();
            } else {
                self.until_ns = None;
            }
        }
        first.filter(|_| before == 0 && self.passed_over > 0)
    }
}

#[derive(Debug)]
pub struct FlowFilter {
    prefilter: AddressPrefilter,
    services: ServiceSelection,
    allow_absent: bool,
    flows: FlowTable,
    flow_cache: FlowCache,
    tunnels: TunnelSelection,
    gateway_fragments: IpReassembly,
    other_fragments: IpReassembly,
    seen: SeenAddresses,
    counters: FilterCounters,
    unsized_traffic: UnsizedTraffic,
    earlier: EarlierPackets,
    batches: BatchLimit,
}

/// What an IP packet came in: a frame, or a tunnel with these gateways at its ends, if any.
#[derive(Debug, Clone, Copy, Default)]
struct Carrier {
    is_tunnel: bool,
    gateways: Option<GatewayEnds>,
    /// The tunnel that keeps its flows apart, unless the user has named it.
    apart: Option<Encapsulation>,
}

struct Context<'a, 'b> {
    time_ns: i64,
    number: u64,
    writer: &'a mut SegmentWriter<'b>,
}

impl FlowFilter {
    pub fn new(options: &Options) -> Result<Self, ConfigureError> {
        let gateways = AddressSet::parse(&options.gateway).map_err(|error| ConfigureError::Usage(error.to_string()))?;
        if gateways.is_empty() {
            return Err(ConfigureError::Usage(
                "`--gateway IP|CIDR` is missing: name the gateway whose flows to keep; `sizeleak survey CAPTURE` says \
                 which addresses look like gateways"
                    .into(),
            ));
        }
        if options.max_flows < 2 {
            return Err(ConfigureError::Usage("`max-flows` is less than 2: no flow could be remembered".into()));
        }
        Ok(Self {
            prefilter: AddressPrefilter::inactive(gateways),
            services: ServiceSelection::parse(&options.service, &options.port, &options.resolver)?,
            allow_absent: options.allow_absent,
            flows: FlowTable::new(options.max_flows),
            flow_cache: FlowCache::default(),
            tunnels: TunnelSelection::parse(&options.tunnel)?,
            gateway_fragments: IpReassembly::new(FragmentLimits::GATEWAYS),
            other_fragments: IpReassembly::new(FragmentLimits::OTHERS),
            seen: SeenAddresses::default(),
            counters: FilterCounters::default(),
            unsized_traffic: UnsizedTraffic::default(),
            earlier: EarlierPackets::default(),
            batches: BatchLimit::default(),
        })
    }

    #[must_use]
    pub fn with_batches(self, batches: BatchLimit) -> Self {
        Self { batches, ..self }
    }

    /// The prefilter of this stage, for an earlier stage that drops what it rejects once it is active, and reports
    /// those packets by [`Packets::skip_packets`].
    pub fn prefilter(&self) -> AddressPrefilter {
        self.prefilter.clone()
    }

    fn packet(&mut self, packet: &Packet<'_>, writer: &mut SegmentWriter<'_>) -> Result<(), StageError> {
        self.counters.count_packet(packet.time_ns);
        if self.prefilter.rejects(packet.link_type, packet.data) {
            if self.counters.gateway_packets == 0
                && let Some(ends) = fast::addresses(packet.link_type, packet.data)
            {
                self.seen.count(ends.into());
            }
            return Ok(());
        }
        let context = &mut Context { time_ns: packet.time_ns, number: packet.number, writer };
        let flow = match ip_bytes(packet.link_type, CapturedBytes::frame(packet.data, packet.original_length)) {
            Ok(bytes) => self.ip_packet(bytes, Carrier::default(), context)?,
            Err(reason) => self.no_ip(reason, context)?,
        };
        if let Some(flow) = flow {
            self.flow_cache.insert(packet, flow, self.flows.entries.generation);
        }
        Ok(())
    }

    /// Processes an IP packet, reassembling it first if it is a fragment. Returns the flow of its segment if that is
    /// kept.
    fn ip_packet(
        &mut self,
        bytes: CapturedBytes<'_>,
        carrier: Carrier,
        context: &mut Context<'_, '_>,
    ) -> Result<Option<FlowRef>, StageError> {
        let Some(packet) = IpPacket::read(bytes) else {
            self.counters.damaged += 1;
            return Ok(None);
        };
        let Some(fragment) = packet.fragment else { return self.whole_packet(&packet, carrier, context) };
        let is_gateways = self.gateway_ends(&packet, carrier).is_some();
        let may_be_tunnel =
            || may_be_tunnel(packet.payload.protocol) || self.other_fragments.awaits(&packet, carrier.apart, fragment);
        if !is_gateways && (carrier.is_tunnel || !may_be_tunnel()) {
            return Ok(None);
        }
        self.counters.fragments += 1;
        let mut incomplete = Vec::new();
        let reassembly = if is_gateways { &mut self.gateway_fragments } else { &mut self.other_fragments };
        let added = reassembly.add(context.time_ns, &packet, carrier.apart, fragment, &mut incomplete);
        for notice in incomplete.iter().filter_map(|packet| self.counters.count_incomplete(packet)) {
            context.writer.emit(notice)?;
        }
        if let Ok(Some(whole)) = &added {
            let bytes = CapturedBytes::new(&whole.data, whole.length);
            let payload = IpPayload { protocol: whole.protocol, bytes }.after_extensions();
            return self.whole_packet(&IpPacket { payload, fragment: None, ..packet }, carrier, context);
        }
        self.counters.gateway_packets += u64::from(is_gateways);
        self.counters.damaged += u64::from(added.is_err());
        Ok(None)
    }

    fn whole_packet(
        &mut self,
        packet: &IpPacket<'_>,
        carrier: Carrier,
        context: &mut Context<'_, '_>,
    ) -> Result<Option<FlowRef>, StageError> {
        if !self.services.names.is_empty() {
            self.resolve_names(packet, carrier, context)?;
        }
        let no_ip = match open_tunnel(packet) {
            Ok(None) => None,
            Ok(Some(_)) if carrier.is_tunnel => Some(NoIpHeader::Nested),
            Ok(Some(tunnel)) => return self.tunnel(packet, tunnel, context),
            Err(reason) => Some(reason),
        };
        let gateways = self.gateway_ends(packet, carrier);
        self.counters.gateway_packets += u64::from(gateways.is_some());
        self.unsized_traffic.count(packet, gateways.is_some());
        if let Some(reason) = no_ip {
            return self.no_ip(reason, context);
        }
        let Some(gateways) = gateways else { return Ok(None) };
        match TransportSegment::read(packet) {
            Ok(segment) => return self.segment(&segment, gateways, carrier.apart, context),
            Err(NoSegment::Damaged) => self.counters.damaged += 1,
            Err(NoSegment::OtherProtocol) => self.counters.other_protocols += 1,
        }
        Ok(None)
    }

    fn tunnel(
        &mut self,
        outer: &IpPacket<'_>,
        tunnel: OpenedTunnel<'_>,
        context: &mut Context<'_, '_>,
    ) -> Result<Option<FlowRef>, StageError> {
        let apart = match self.tunnels.treatment(&tunnel.encapsulation) {
            TunnelTreatment::Apart => Some(tunnel.encapsulation),
            TunnelTreatment::Joined => None,
            TunnelTreatment::Closed => {
                self.counters.closed_tunnels += 1;
                let gateways = self.gateway_ends(outer, Carrier::default());
                self.counters.gateway_packets += u64::from(gateways.is_some());
                return Ok(None);
            }
        };
        self.counters.tunnelled += 1;
        let gateways = GatewayEnds::of(self.prefilter.addresses(), [outer.source, outer.destination]);
        self.ip_packet(tunnel.bytes, Carrier { is_tunnel: true, gateways, apart }, context)
    }

    fn resolve_names(
        &mut self,
        packet: &IpPacket<'_>,
        carrier: Carrier,
        context: &mut Context<'_, '_>,
    ) -> Result<(), StageError> {
        let Some(message) = dns_message(packet) else { return Ok(()) };
        let ends = GatewayEnds::of(self.prefilter.addresses(), [packet.source, packet.destination]);
        let resolution = self.services.resolve(&message, ends.or(carrier.gateways), carrier.apart);
        if let Some(notice) = self.counters.count_resolution(resolution, &message) {
            context.writer.emit(notice)?;
        }
        Ok(())
    }

    /// Which ends of a packet are gateways. In a tunnel between gateways, the inner end on a gateway's side counts as
    /// the gateway. Addresses are counted until a gateway has appeared.
    fn gateway_ends(&mut self, packet: &IpPacket<'_>, carrier: Carrier) -> Option<GatewayEnds> {
        let ends = [packet.source, packet.destination];
        let gateways = GatewayEnds::of(self.prefilter.addresses(), ends);
        if gateways.is_none() && self.counters.gateway_packets == 0 {
            self.seen.count(ends);
        }
        gateways.or(carrier.gateways)
    }

    fn segment(
        &mut self,
        segment: &TransportSegment<'_>,
        gateways: GatewayEnds,
        encapsulation: Option<Encapsulation>,
        context: &mut Context<'_, '_>,
    ) -> Result<Option<FlowRef>, StageError> {
        if self.services.excludes_as_infrastructure(segment) {
            self.counters.other_protocols += 1;
            return Ok(None);
        }
        let (flow, is_new) = self.flows.look_up(segment, gateways, encapsulation);
        if self.flows.entries.evicted > 0
            && let Some(notice) = self.counters.report_eviction(self.flows.entries.capacity())
        {
            context.writer.emit(notice)?;
        }
        if !self.services.contains(flow.service) {
            self.counters.other_services += 1;
            return Ok(None);
        }
        let &TransportSegment { transport, sequence, flags, acknowledgement, payload, .. } = segment;
        if is_new {
            self.counters.flows += 1;
            let (gateway, service) = (flow.gateway.ip(), flow.service);
            let tunnel = encapsulation.map(|tunnel| tunnel.to_string());
            let gateway_port = Some(flow.gateway.port()).filter(|port| *port != 0);
            let among_several = self.prefilter.addresses().holds_several();
            let announced =
                Flow { flow: flow.id, gateway, service, transport, encapsulation: tunnel, among_several, gateway_port };
            if self.flows.is_seen_elsewhere(flow.id, segment, encapsulation)
                && let Some(notice) = self.counters.count_apart(&announced)
            {
                context.writer.emit(notice)?;
            }
            context.writer.emit(announced)?;
        }
        self.counters.datagrams += u64::from(transport == Transport::Udp);
        let (time_ns, direction) = (context.time_ns, flow.direction(segment));
        let (length, payload) = (payload.length(), payload.data());
        let flow = flow.id;
        context.writer.push(Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement });
        Ok(Some(FlowRef { flow, direction }))
    }

    fn no_ip(&mut self, reason: NoIpHeader, context: &mut Context<'_, '_>) -> Result<Option<FlowRef>, StageError> {
        if let Some(notice) = self.counters.count_no_ip(context.number, reason) {
            context.writer.emit(notice)?;
        }
        Ok(None)
    }

    fn absence(&self) -> String {
        let packets = self.counters.packets;
        if let Some(reason) = self.counters.reason_for_all() {
            return format!("none of the {packets} packets could be read: {reason}");
        }
        let mut text = format!(
            "none of the {packets} packets is from or to {}; the most frequent addresses are: {}",
            self.prefilter.addresses(),
            self.seen.most_frequent()
        );
        if let Some((reason, count)) = self.counters.main_reason().filter(|(reason, _)| !reason.is_routine()) {
            let _ = write!(text, "; {count} packets could not be read: {reason}");
        }
        for sentence in self.unsized_traffic.sentences().chain(self.counters.damaged_sentence()) {
            text.push_str("; ");
            text.push_str(&sentence);
        }
        text
    }
}

/// What outlasts a batch; the cache of flows only saves time.
type State = (ServiceSelection, FlowTable, [IpReassembly; 2], SeenAddresses, FilterCounters);

impl Stage for FlowFilter {
    const NAME: &'static str = "flow-filter";
    type Input = Packets;

    fn process(&mut self, packets: Packets, out: &mut dyn Emit) -> Result<(), StageError> {
        let mut writer = SegmentWriter::new(&packets, self.batches, out);
        let mut rest = packets.iter();
        if let Some(first) = self.earlier.pass_over(&mut rest) {
            writer.emit(self.counters.notice_repeated(first.time_ns))?;
        }
        while rest.len() > 0 {
            self.flow_cache.write_segments(self.flows.entries.generation, &mut rest, &mut writer, &mut self.counters);
            if !writer.is_full()
                && let Some(packet) = rest.next()
            {
                self.packet(&packet, &mut writer)?;
            }
            if writer.is_full() {
                writer.send()?;
            }
        }
        self.counters.count_passed_over(packets.skipped_packets());
        if self.counters.gateway_packets > 0 {
            self.prefilter.activate();
        }
        // A partial batch is sent too, so that a live capture is not delayed.
        writer.send()
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        let incomplete = [self.gateway_fragments.finish(), self.other_fragments.finish()].concat();
        for notice in incomplete.iter().filter_map(|packet| self.counters.count_incomplete(packet)) {
            out.emit(notice.into())?;
        }
        for sentence in self.unsized_traffic.sentences().chain(self.counters.damaged_sentence()) {
            out.emit(self.counters.notice(what::NOT_SIZED, None, sentence).into())?;
        }
        if self.counters.packets > 0 && self.counters.gateway_packets == 0 {
            if !self.allow_absent {
                let absence = self.absence();
                if self.counters.reason_for_all().is_some() {
                    return Err(StageError::failed(absence));
                }
                let advice = "`sizeleak survey CAPTURE` says which look like gateways";
                return Err(StageError::failed(format!("{absence}; {advice}")));
            }
            out.emit(self.counters.notice(what::ABSENT, None, self.absence()).into())?;
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.counters.all();
        counters.push(("forgotten_flows", self.flows.entries.evicted));
        counters.push(("repeated_packets", self.earlier.passed_over));
        counters
    }

    fn save(&self) -> Result<Option<Vec<u8>>, StateError> {
        let Self { services, flows, gateway_fragments, other_fragments, seen, counters, .. } = self;
        encode_state(&(services, flows, [gateway_fragments, other_fragments], seen, counters)).map(Some)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let (services, flows, [gateways, others], seen, counters): State = decode_state(state)?;
        self.services = self.services.restored(services);
        self.gateway_fragments = self.gateway_fragments.restored(gateways);
        self.other_fragments = self.other_fragments.restored(others);
        (self.flows, self.seen, self.counters) = (flows, seen, counters);
        self.earlier = EarlierPackets { until_ns: self.counters.last_ns(), passed_over: 0 };
        if self.counters.gateway_packets > 0 {
            self.prefilter.activate();
        }
        Ok(())
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "flow-filter";
    const ABOUT: &'static str = "TCP segments and UDP datagrams of a gateway's flows, out of packets";
    const EXAMPLES: &'static [&'static str] = &[
        "capture home.pcap | flow-filter --gateway 192.168.1.20 | sizeleak frames --kind flow",
        "capture home.pcap | flow-filter --gateway 192.168.1.0/24 --service hub.example --port 443 | record-sizer \
         > records.frames",
    ];

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        Ok(Box::new(Node::new(FlowFilter::new(self)?)))
    }
}

#[cfg(test)]
mod tests;
