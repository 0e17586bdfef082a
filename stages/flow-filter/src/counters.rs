//! The counters of the stage, and the notices that report only the first case of each kind.

use std::collections::BTreeSet;

use sizeleak_frame::{Notice, SkippedPackets, what};
use sizeleak_packet::NoIpHeader;

use crate::ip_reassembly::IncompletePacket;

/// The most reasons that are reported separately.
const MOST_REASONS: usize = 64;

/// The counters of the stage, and what was reported already.
#[derive(Debug, Default)]
pub(crate) struct FilterCounters {
    pub(crate) packets: u64,
    pub(crate) gateway_packets: u64,
    pub(crate) flows: u64,
    pub(crate) datagrams: u64,
    pub(crate) no_ip: u64,
    pub(crate) tunnelled: u64,
    pub(crate) fragments: u64,
    pub(crate) incomplete: u64,
    pub(crate) other_protocols: u64,
    pub(crate) other_services: u64,
    pub(crate) damaged: u64,
    reported_reasons: BTreeSet<NoIpHeader>,
    eviction_is_reported: bool,
    last_ns: Option<i64>,
}

impl FilterCounters {
    /// Counts a packet captured at this time.
    pub(crate) fn count_packet(&mut self, time_ns: i64) {
        self.packets += 1;
        self.last_ns = Some(time_ns);
    }

    /// Counts packets of the gateway, the last of which was captured at `last_ns`.
    pub(crate) fn count_gateway_packets(&mut self, packets: u64, last_ns: Option<i64>) {
        self.packets += packets;
        self.gateway_packets += packets;
        self.last_ns = last_ns.or(self.last_ns);
    }

    /// Counts packets that an earlier stage has dropped.
    pub(crate) fn count_passed_over(&mut self, passed_over: SkippedPackets) {
        self.packets += passed_over.packets;
        self.last_ns = passed_over.last_ns.or(self.last_ns);
    }

    /// Counts a packet without a readable IP header. The first packet for a reason is reported, unless it is routine.
    pub(crate) fn count_no_ip(&mut self, number: u64, reason: NoIpHeader) -> Option<Notice> {
        self.no_ip += 1;
        if self.reported_reasons.len() >= MOST_REASONS || !self.reported_reasons.insert(reason) || reason.is_routine() {
            return None;
        }
        let detail = format!("packet {number}: {reason}; more of these are only counted");
        Some(self.notice(what::UNSUPPORTED, None, detail))
    }

    /// Counts a packet of which fragments are missing. The first is reported.
    pub(crate) fn count_incomplete(&mut self, packet: &IncompletePacket) -> Option<Notice> {
        self.incomplete += 1;
        (self.incomplete == 1).then(|| {
            let detail = format!(
                "a packet from {} to {} of which some fragments never came; more of these are only counted",
                packet.source, packet.destination
            );
            self.notice(what::GAP, Some(packet.bytes), detail)
        })
    }

    /// Reports, once, that flows were evicted from a table of this capacity.
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
        Notice {
            time_ns: self.last_ns,
            stage: "flow-filter".into(),
            flow: None,
            what: what.into(),
            bytes,
            detail: Some(detail),
        }
    }

    /// The counters by their names in `summary`.
    pub(crate) fn named(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("gateway_packets", self.gateway_packets),
            ("flows", self.flows),
            ("datagrams", self.datagrams),
            ("no_ip", self.no_ip),
            ("tunnelled", self.tunnelled),
            ("fragments", self.fragments),
            ("incomplete_fragments", self.incomplete),
            ("other_protocols", self.other_protocols),
            ("other_services", self.other_services),
            ("damaged", self.damaged),
        ]
    }
}
