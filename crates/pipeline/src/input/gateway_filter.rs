//! Drops the flows of gateways that the user did not name from saved streams.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

use sizeleak_frame::Frame;
use sizeleak_packet::AddressSet;

use crate::ConfigError;

pub(super) struct GatewayFilter {
    /// `None` keeps all flows: `flow-filter` has chosen them.
    wanted: Option<AddressSet>,
    seen: BTreeSet<IpAddr>,
    /// The flows of other gateways.
    dropped: BTreeSet<u64>,
}

impl GatewayFilter {
    pub(super) fn new(wanted: Option<AddressSet>) -> Self {
        Self { wanted, seen: BTreeSet::new(), dropped: BTreeSet::new() }
    }

    pub(super) fn keeps(&mut self, frame: &Frame) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        let flow = match frame {
            Frame::Flow(flow) => {
                self.seen.insert(flow.gateway);
                if !wanted.is_empty() && !wanted.contains(flow.gateway) {
                    self.dropped.insert(flow.flow);
                }
                Some(flow.flow)
            }
            Frame::Session(session) => Some(session.flow),
            Frame::Record(record) => Some(record.flow),
            Frame::Command(command) => Some(command.flow),
            Frame::Correction(correction) => Some(correction.command.flow),
            Frame::Identification(identification) => Some(identification.command.flow),
            Frame::Notice(notice) => notice.flow,
            _ => None,
        };
        flow.is_none_or(|flow| !self.dropped.contains(&flow))
    }

    /// Checks that the flows are those of the gateways that are wanted, or of one.
    pub(super) fn check(&self, streams: &[PathBuf]) -> Result<(), ConfigError> {
        let Some(wanted) = &self.wanted else { return Ok(()) };
        let listed =
            |addresses: &BTreeSet<IpAddr>| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let files = || streams.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
        if wanted.is_empty() {
            return match self.seen.len() {
                0 | 1 => Ok(()),
                _ => Err(ConfigError::usage(format!(
                    "{}: there are several gateways ({}): name one with `--gateway`",
                    files(),
                    listed(&self.seen)
                ))),
            };
        }
        if self.seen.is_empty() || self.seen.iter().any(|gateway| wanted.contains(*gateway)) {
            return Ok(());
        }
        Err(ConfigError::input(format!(
            "{}: there is no flow of the gateway that `--gateway` names, but of {}",
            files(),
            listed(&self.seen)
        )))
    }
}
