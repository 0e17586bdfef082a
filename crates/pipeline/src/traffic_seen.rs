//! What a run saw of a gateway's traffic, for the sentence that says why it found no command.

use std::collections::BTreeMap;
use std::fmt;

use sizeleak_frame::{Flow, Frame, Summary, Transport};

/// The most ports that are named.
const MAX_NAMED: usize = 5;

/// The most ports that are told apart.
const MAX_PORTS: usize = 1024;

/// The gateway's flows by port, and what the stages counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrafficSeen {
    /// Announced flows; one that was forgotten is announced again.
    flows: u64,
    ports: BTreeMap<(Transport, u16), u64>,
    /// Records, and those of them that stand for segments or bursts; `None` if no stage counted any.
    records: Option<u64>,
    segment_records: u64,
}

impl TrafficSeen {
    pub fn add(&mut self, frame: &Frame) {
        match frame {
            Frame::Flow(flow) => self.add_flow(flow),
            Frame::Summary(summary) => self.add_summary(summary),
            _ => {}
        }
    }

    fn add_flow(&mut self, flow: &Flow) {
        self.flows += 1;
        let port = (flow.transport, flow.service.port());
        if self.ports.len() < MAX_PORTS || self.ports.contains_key(&port) {
            *self.ports.entry(port).or_default() += 1;
        }
    }

    fn add_summary(&mut self, summary: &Summary) {
        for stage in &summary.stages {
            if let Some(records) = stage.counters.get("records") {
                self.records = Some(*records);
                self.segment_records = stage.counters.get("segment_records").copied().unwrap_or_default();
            }
        }
    }

    /// The ports of the flows, the most frequent first.
    fn named_ports(&self) -> String {
        let mut ports: Vec<_> = self.ports.iter().collect();
        ports.sort_by_key(|(port, count)| (std::cmp::Reverse(**count), **port));
        let named = ports.iter().take(MAX_NAMED).map(|((transport, port), count)| {
            let times = if **count > 1 { format!(" ({count} times)") } else { String::new() };
            format!("{} port {port}{times}", transport.name().to_uppercase())
        });
        let more = if ports.len() > MAX_NAMED { ", …" } else { "" };
        format!("{}{more}", named.collect::<Vec<_>>().join(", "))
    }
}

/// Why there was no command, and what to do.
impl fmt::Display for TrafficSeen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (flows, ports) = (self.flows, self.named_ports());
        let connections = if flows == 1 { "connection" } else { "connections" };
        match self.records {
            None if flows == 0 => out.write_str("nothing is known of the gateway's traffic"),
            _ if flows == 0 => out.write_str(
                "the gateway has no TCP or UDP connection in it, or none that `--service` and `--port` leave: is the \
                 gateway's address right? `sizeleak survey CAPTURE` says which addresses look like gateways",
            ),
            Some(0) => write!(
                out,
                "the gateway's {flows} {connections} ({ports}) carry no TLS record: if commands come without TLS, \
                 `--set record-sizer.plain-tcp=true` sizes bursts of TCP instead"
            ),
            Some(records) => {
                let by = if self.segment_records > 0 { " by the lengths of segments" } else { "" };
                write!(
                    out,
                    "none of {records} records{by} on the gateway's {flows} {connections} ({ports}) is taken for a \
                     command to it: `-v` says what was skipped, and `sizeleak frames --kind record` shows them"
                )
            }
            None => write!(out, "the gateway has {flows} {connections} ({ports})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::StageSummary;

    use super::*;

    fn flow(number: u64, port: u16, transport: Transport) -> Frame {
        let (gateway, service) = ("192.168.1.20".parse().unwrap(), format!("203.0.113.7:{port}").parse().unwrap());
        Frame::Flow(Box::new(Flow::new(number, gateway, service, transport)))
    }

    fn summary(counters: &[(&str, u64)]) -> Frame {
        let counters = counters.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let stage = StageSummary { stage: "record-sizer".to_owned(), counters, ..StageSummary::default() };
        Frame::from(Summary { stages: vec![stage] })
    }

    fn sentence(frames: &[Frame]) -> String {
        let mut seen = TrafficSeen::default();
        for frame in frames {
            seen.add(frame);
        }
        seen.to_string()
    }

    #[test]
    fn cause_is_what_was_not_there() {
        assert!(sentence(&[summary(&[("records", 0)])]).contains("right? `sizeleak survey CAPTURE` says"));
        let (tcp, udp) = (Transport::Tcp, Transport::Udp);
        let flows = [flow(1, 1883, tcp), flow(2, 1883, tcp), flow(3, 5683, udp)];
        let plain = sentence(&[&flows[..], &[summary(&[("records", 0)])]].concat());
        assert!(plain.contains("3 connections (TCP port 1883 (2 times), UDP port 5683) carry no TLS"), "{plain}");
        assert!(plain.contains("plain-tcp") && !plain.contains("address right"), "{plain}");
        let sized = sentence(&[&flows[..1], &[summary(&[("records", 7), ("segment_records", 7)])]].concat());
        assert!(sized.contains("none of 7 records by the lengths of segments"), "{sized}");
    }
}
