//! What was seen and what was left out: the counters, and notices that tell a reason once and then only count it.

use std::collections::BTreeMap;

use sizeleak_frame::{Notice, SkippedPackets, what};

use crate::link::NoIp;
use crate::reassembly::GivenUp;

/// Reasons told apart in notices; others are counted together.
const MOST_REASONS: usize = 64;

/// What was seen and what was left out.
#[derive(Debug, Default)]
pub(crate) struct Tally {
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
    unread: BTreeMap<NoIp, u64>,
    last_time_ns: Option<i64>,
    told_evicted: Told,
}

/// Whether something was told already.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Told {
    #[default]
    NotYet,
    Once,
}

impl Tally {
    /// Begins with a packet of this time.
    pub(crate) fn packet(&mut self, time_ns: i64) {
        self.packets += 1;
        self.last_time_ns = Some(time_ns);
    }

    /// Takes packets of the gateway, the last one of this time.
    pub(crate) fn gateway_packets(&mut self, packets: u64, last_ns: Option<i64>) {
        self.packets += packets;
        self.gateway_packets += packets;
        self.last_time_ns = last_ns.or(self.last_time_ns);
    }

    /// Counts packets that a stage before has left out.
    pub(crate) fn skipped_packets(&mut self, skipped: SkippedPackets) {
        self.packets += skipped.packets;
        self.last_time_ns = skipped.last_ns.or(self.last_time_ns);
    }

    /// Counts a packet without IP that is read; the first for its reason is told.
    pub(crate) fn unread(&mut self, number: u64, reason: NoIp) -> Option<Notice> {
        self.no_ip += 1;
        if self.unread.len() >= MOST_REASONS && !self.unread.contains_key(&reason) {
            return None;
        }
        let count = self.unread.entry(reason).or_default();
        *count += 1;
        let is_told = *count == 1 && !reason.is_usual();
        is_told.then(|| {
            let detail = format!("packet {number}: {reason}; more of these are only counted");
            self.notice(what::UNSUPPORTED, None, detail)
        })
    }

    /// Counts a packet whose fragments did not all come; the first is told.
    pub(crate) fn incomplete(&mut self, packet: &GivenUp) -> Option<Notice> {
        self.incomplete += 1;
        (self.incomplete == 1).then(|| {
            let detail = format!(
                "a packet from {} to {} of which some fragments never came; more of these are only counted",
                packet.source, packet.destination
            );
            self.notice(what::GAP, Some(packet.bytes), detail)
        })
    }

    /// Tells, the first time, that flows were forgotten.
    pub(crate) fn forgot(&mut self, remembered: usize) -> Option<Notice> {
        let before = std::mem::replace(&mut self.told_evicted, Told::Once);
        (before == Told::NotYet).then(|| {
            let detail = format!(
                "only {remembered} flows are remembered (`max-flows`): those idle for longest are forgotten, and announced \
                 again if seen; more of these are only counted"
            );
            self.notice(what::EVICTED, None, detail)
        })
    }

    pub(crate) fn notice(&self, what: &'static str, bytes: Option<u64>, detail: String) -> Notice {
        Notice {
            time_ns: self.last_time_ns,
            stage: "flow-filter".into(),
            flow: None,
            what: what.into(),
            bytes,
            detail: Some(detail),
        }
    }

    /// The counters, for the stage's row of `summary`.
    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
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
