//! What a run says beside its answers: whether the model fitted, as the last stages judged it, and why it found no
//! command.

use std::collections::BTreeMap;
use std::fmt;

use sizeleak_frame::{Flow, Frame, Summary, Transport};
use sizeleak_text::counted;

/// What the last stage says of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFit {
    /// It fits every flow that had enough commands to judge by, or there was none.
    All,
    Some {
        misfits: u64,
        /// How many had enough commands.
        judged: u64,
    },
    /// It fits no flow that had enough commands.
    None { judged: u64 },
    /// It was asked of no command: all belong to other gateways or services than it was learned on.
    Elsewhere { commands: u64 },
}

impl ModelFit {
    /// That of two runs together: a model that fits nothing in both of them fits nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let fits_nothing = |fit: &Self| matches!(fit, Self::None { .. } | Self::Elsewhere { .. });
        if fits_nothing(&self) { other } else { self }
    }

    pub fn of(summary: &Summary) -> Self {
        let count = |name: &str| {
            let counts = summary.stages.iter().filter_map(|stage| stage.counters.get(name).copied());
            counts.fold(0, u64::saturating_add)
        };
        let (misfits, judged) = (count("misfit_flows"), count("judged_flows"));
        // Each stage with a model counts the same commands.
        let unasked = summary.stages.iter().filter(|stage| stage.counters.get("with_model") == Some(&0));
        let unasked = unasked.filter_map(|stage| stage.counters.get("without_model").copied()).max();
        if let Some(commands) = unasked {
            return Self::Elsewhere { commands };
        }
        match misfits {
            0 => Self::All,
            _ if misfits < judged => Self::Some { misfits, judged },
            _ => Self::None { judged },
        }
    }
}

/// For people: what does not fit, and what to do.
impl fmt::Display for ModelFit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flows = |number: u64| if number == 1 { "flow" } else { "flows" };
        match self {
            Self::All => formatter.write_str("the model fits"),
            Self::Some { misfits, judged } => write!(
                formatter,
                "this model does not fit {misfits} of {judged} flows: their answers are not to be trusted; learn them \
                 with labels of their own, or leave them out (`flow-filter --service`)"
            ),
            Self::None { judged } => write!(
                formatter,
                "this model does not fit this gateway: none of {judged} {} has the sizes and replies that it knows; its \
                 answers are not to be trusted; learn a model of this gateway",
                flows(*judged)
            ),
            Self::Elsewhere { commands } => write!(
                formatter,
                "the model is not for these flows: {commands} {} to other gateways or services than it was learned on, \
                 so none is answered (`-v` names each flow); learn a model of this gateway",
                if *commands == 1 { "command belongs" } else { "commands belong" }
            ),
        }
    }
}

const MAX_NAMED: usize = 5;

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
                "the gateway's {flows} {connections} ({ports}) {} no TLS record: if commands come without TLS, \
                 `--set record-sizer.plain-tcp=true` sizes bursts of TCP instead",
                if flows == 1 { "carries" } else { "carry" }
            ),
            Some(records) => {
                let by = if self.segment_records > 0 { " by the lengths of segments" } else { "" };
                write!(
                    out,
                    "none of {} on the gateway's {flows} {connections} ({ports}) is taken for a \
                     command to it: `-v` says what was skipped, and `sizeleak frames --kind record` shows them",
                    counted(records, &format!("record{by}"), &format!("records{by}"))
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

    #[test]
    fn fit_is_what_the_counters_say() {
        let fit = |counters: &[(&str, u64)]| {
            let counters = counters.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            ModelFit::of(&Summary { stages: vec![StageSummary { counters, ..StageSummary::default() }] })
        };
        assert_eq!(fit(&[]), ModelFit::All);
        assert_eq!(fit(&[("judged_flows", 3), ("misfit_flows", 1)]), ModelFit::Some { misfits: 1, judged: 3 });
        assert_eq!(fit(&[("judged_flows", 2), ("misfit_flows", 2)]), ModelFit::None { judged: 2 });
        assert_eq!(fit(&[("with_model", 1), ("without_model", 9)]), ModelFit::All);
        assert_eq!(fit(&[("with_model", 0), ("without_model", 9)]), ModelFit::Elsewhere { commands: 9 });
    }

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
        let one = sentence(&[&flows[..1], &[summary(&[("records", 0)])]].concat());
        assert!(one.contains("1 connection (TCP port 1883) carries no TLS record"), "{one}");
        let sized = sentence(&[&flows[..1], &[summary(&[("records", 7), ("segment_records", 7)])]].concat());
        assert!(sized.contains("none of 7 records by the lengths of segments"), "{sized}");
    }
}
