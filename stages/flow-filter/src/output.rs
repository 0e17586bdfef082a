//! What the stage puts out: its counters, and the notices that report only the first case of each kind; packets that are
//! named, but not sized; and its frames in order, the segments gathered into batches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use foldhash::quality::RandomState;
use serde::{Deserialize, Serialize};
use sizeleak_frame::{BatchLimit, Flow, Frame, Notice, Packets, Segment, Segments, SkippedPackets, what};
use sizeleak_packet::{DnsMessage, IpPacket, NoIpHeader, UnsizedProtocol};
use sizeleak_platform::counters;
use sizeleak_platform::runtime::{Emit, StageError, sorted_table};
use sizeleak_text::counted;

use crate::ip_reassembly::IncompletePacket;
use crate::services::{MAX_RESOLVED, Resolution};

const MAX_REASONS: usize = 64;

counters! {
    FilterCounters
    first { pub(crate) packets: u64, }
    rare {}
    counted {
        gateway_packets flows datagrams no_ip tunnelled closed_tunnels flows_apart fragments incomplete_fragments
        other_protocols other_services damaged unasked_answers unkept_answers
    }
    last {
        /// Why packets have no IP header, and how many for each reason.
        reasons: BTreeMap<NoIpHeader, u64>,
        eviction_is_reported: bool,
        last_ns: Option<i64>,
    }
}

impl FilterCounters {
    pub(crate) fn count_packet(&mut self, time_ns: i64) {
        self.packets += 1;
        self.last_ns = Some(time_ns);
    }

    pub(crate) fn count_gateway_packets(&mut self, packets: u64, last_ns: Option<i64>) {
        self.packets += packets;
        self.gateway_packets += packets;
        self.last_ns = last_ns.or(self.last_ns);
    }

    pub(crate) fn count_passed_over(&mut self, passed_over: SkippedPackets) {
        self.packets += passed_over.packets;
        // Packets that are read a second time are no later ones.
        self.last_ns = self.last_ns.max(passed_over.last_ns);
    }

    pub(crate) fn last_ns(&self) -> Option<i64> {
        self.last_ns
    }

    /// Reports that packets are passed over, from `first_ns` on, because they are not later than those of the state.
    pub(crate) fn notice_repeated(&self, first_ns: i64) -> Notice {
        let [first, last] = [Some(first_ns), self.last_ns].map(|time| time.map(sizeleak_text::utc).unwrap_or_default());
        let detail = format!(
            "the packets from {first} to {last} are passed over: an earlier run has read as far as that, as the state says"
        );
        self.notice(what::REPEATED, None, detail)
    }

    /// Counts a packet without a readable IP header. The first packet for a reason is reported, unless it is routine.
    pub(crate) fn count_no_ip(&mut self, number: u64, reason: NoIpHeader) -> Option<Notice> {
        self.no_ip += 1;
        if self.reasons.len() >= MAX_REASONS && !self.reasons.contains_key(&reason) {
            return None;
        }
        let count = self.reasons.entry(reason).or_default();
        *count += 1;
        if *count > 1 || reason.is_routine() {
            return None;
        }
        let detail = format!("packet {number}: {reason}; more of these are only counted");
        Some(self.notice(what::UNSUPPORTED, None, detail))
    }

    pub(crate) fn reason_for_all(&self) -> Option<NoIpHeader> {
        self.main_reason().filter(|_| self.no_ip == self.packets).map(|(reason, _)| reason)
    }

    /// Why packets have no IP header, and how many; that of most, but what every network has only where there is no other.
    pub(crate) fn main_reason(&self) -> Option<(NoIpHeader, u64)> {
        let most = self.reasons.iter().max_by_key(|(reason, count)| (!reason.is_routine(), **count));
        most.map(|(reason, count)| (*reason, *count))
    }

    pub(crate) fn damaged_sentence(&self) -> Option<String> {
        let packets = counted(self.damaged, "packet", "packets");
        (self.damaged > 0).then(|| format!("{packets} with a cut or damaged header of IP, TCP or UDP: not sized"))
    }

    pub(crate) fn count_incomplete(&mut self, packet: &IncompletePacket) -> Option<Notice> {
        self.incomplete_fragments += 1;
        (self.incomplete_fragments == 1).then(|| {
            let detail = format!(
                "a packet from {} to {} of which some fragments never came; more of these are only counted",
                packet.source, packet.destination
            );
            self.notice(what::GAP, Some(packet.bytes), detail)
        })
    }

    /// Counts a new flow whose connection was also seen by another way. The first is reported.
    pub(crate) fn count_apart(&mut self, flow: &Flow) -> Option<Notice> {
        self.flows_apart += 1;
        let Flow { flow: id, gateway, service, encapsulation, .. } = flow;
        (self.flows_apart == 1).then(|| {
            let place = match encapsulation {
                Some(tunnel) => format!("inside the tunnel `{tunnel}` and elsewhere"),
                None => "inside a tunnel and outside".to_owned(),
            };
            let detail = format!(
                "a connection between {gateway} and {service} was seen {place}: each is a flow of its own. To join them, \
                 name the tunnels that carry the gateway's traffic (`--tunnel`); `--tunnel none` opens none; more of \
                 these are only counted"
            );
            Notice { flow: Some(*id), ..self.notice(what::ENCAPSULATED, None, detail) }
        })
    }

    pub(crate) fn count_resolution(&mut self, resolution: Resolution, message: &DnsMessage<'_>) -> Option<Notice> {
        let (DnsMessage { client, resolver, .. }, more) = (message, "more of these are only counted");
        let (count, what, detail) = match resolution {
            Resolution::Quiet => return None,
            Resolution::Unasked => {
                self.unasked_answers += 1;
                let detail = format!(
                    "addresses of a service that {resolver} told {client} were not taken: no such query of the gateway \
                     is in the capture; `--resolver {resolver}` believes it; {more}"
                );
                (self.unasked_answers, what::UNASKED, detail)
            }
            Resolution::Full => {
                self.unkept_answers += 1;
                let detail = format!(
                    "of the addresses of a service that {resolver} told {client} not all were taken: no more than \
                     {MAX_RESOLVED} addresses and names are kept; {more}"
                );
                (self.unkept_answers, what::EVICTED, detail)
            }
        };
        (count == 1).then(|| self.notice(what, None, detail))
    }

    pub(crate) fn report_eviction(&mut self, capacity: usize) -> Option<Notice> {
        let is_reported = std::mem::replace(&mut self.eviction_is_reported, true);
        (!is_reported).then(|| {
            let detail = format!(
                "only {capacity} flows are remembered (`max-flows`): those idle for longest are forgotten, and \
                 announced again if seen; more of these are only counted"
            );
            self.notice(what::EVICTED, None, detail)
        })
    }

    pub(crate) fn notice(&self, what: &'static str, bytes: Option<u64>, detail: String) -> Notice {
        Notice { time_ns: self.last_ns, bytes, ..Notice::new("flow-filter", what, detail) }
    }
}

const MAX_ADDRESSES: usize = 4096;
const SHOWN: usize = 5;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SeenAddresses {
    #[serde(with = "sorted_table")]
    packets: HashMap<IpAddr, u64, RandomState>,
}

impl SeenAddresses {
    pub(crate) fn count(&mut self, addresses: [IpAddr; 2]) {
        for address in addresses {
            if self.packets.len() < MAX_ADDRESSES || self.packets.contains_key(&address) {
                *self.packets.entry(address).or_default() += 1;
            }
        }
    }

    pub(crate) fn most_frequent(&self) -> String {
        let mut counts: Vec<(u64, IpAddr)> = self.packets.iter().map(|(address, count)| (*count, *address)).collect();
        counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let shown: Vec<String> =
            counts.iter().take(SHOWN).map(|(count, address)| format!("{address} ({count} packets)")).collect();
        if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
    }
}

const MAX_PAIRS: usize = 256;
const SHOWN_PAIRS: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct UnsizedTraffic {
    packets: BTreeMap<UnsizedProtocol, Named>,
}

#[derive(Debug, Default)]
struct Named {
    packets: u64,
    pairs: BTreeSet<[IpAddr; 2]>,
}

impl UnsizedTraffic {
    /// Counts a packet, if it is of such a protocol. Of others than gateways only tunnels count, in which a gateway's
    /// packets may be.
    pub(crate) fn count(&mut self, packet: &IpPacket<'_>, is_gateways: bool) {
        let [source, destination] = [packet.source, packet.destination];
        let counts = |protocol: &UnsizedProtocol| is_gateways || protocol.is_tunnel();
        let Some(protocol) = UnsizedProtocol::of(packet).filter(counts) else { return };
        let named = self.packets.entry(protocol).or_default();
        named.packets += 1;
        if named.pairs.len() < MAX_PAIRS {
            named.pairs.insert([source.min(destination), source.max(destination)]);
        }
    }

    pub(crate) fn sentences(&self) -> impl Iterator<Item = String> {
        self.packets.iter().map(|(protocol, named)| {
            let shown = named.pairs.iter().take(SHOWN_PAIRS).map(|[one, other]| format!("{one} and {other}"));
            let more = match named.pairs.len().saturating_sub(SHOWN_PAIRS) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let between = shown.collect::<Vec<_>>().join(", ");
            let packets = counted(named.packets, "packet", "packets");
            format!("{packets} of {protocol} between {between}{more}: not sized")
        })
    }
}

/// Gathers segments into batches. Other frames go out behind the segments before them, so it does not matter where a
/// batch ends.
pub(crate) struct SegmentWriter<'a> {
    packets: &'a Packets,
    batch: Segments,
    batches: BatchLimit,
    out: &'a mut dyn Emit,
}

impl<'a> SegmentWriter<'a> {
    /// For segments of these packets, whose buffers they share, in batches of this size.
    pub(crate) fn new(packets: &'a Packets, batches: BatchLimit, out: &'a mut dyn Emit) -> Self {
        Self { packets, batch: Segments::with_capacity(packets.len()), batches, out }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.batch.is_full(self.batches)
    }

    #[inline]
    pub(crate) fn push(&mut self, segment: Segment<'_>) {
        self.batch.push_from(segment, self.packets);
    }

    pub(crate) fn emit(&mut self, frame: impl Into<Frame>) -> Result<(), StageError> {
        self.send()?;
        Ok(self.out.emit(frame.into())?)
    }

    pub(crate) fn send(&mut self) -> Result<(), StageError> {
        if !self.batch.is_empty() {
            self.out.emit(std::mem::take(&mut self.batch).into())?;
        }
        Ok(())
    }
}
