//! What a stream says of its flows besides answers: the gateway of each, and those whose model does not fit.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{Identification, Notice, what};

use crate::sighting::Sighting;

/// The flows of a stream.
#[derive(Debug)]
pub struct SeenFlows {
    gateways: BTreeMap<u64, String>,
    /// Flows that their model does not fit: what they carry says nothing, only when it came.
    misfits: BTreeSet<u64>,
    most: usize,
}

impl SeenFlows {
    /// No flows; at most so many are remembered.
    pub fn new(most: usize) -> Self {
        Self { gateways: BTreeMap::new(), misfits: BTreeSet::new(), most }
    }

    /// Takes down which gateway a flow is of.
    pub fn name_gateway(&mut self, flow: u64, gateway: &str) {
        self.gateways.insert(flow, gateway.to_owned());
        while self.gateways.len() > self.most {
            self.gateways.pop_first();
        }
    }

    /// Takes down that a model does not fit, if that is what a notice is about.
    pub fn note(&mut self, notice: &Notice) {
        if notice.what == what::MISFIT && self.misfits.len() < self.most {
            self.misfits.extend(notice.flow);
        }
    }

    /// The gateway of an answer, empty where nothing named it; and what was seen.
    pub fn sighting(&self, answer: &Identification) -> (String, Sighting) {
        let flow = answer.command.flow;
        let mut sighting = Sighting::from(answer);
        if self.misfits.contains(&flow) {
            sighting.candidates.clear();
        }
        (self.gateways.get(&flow).cloned().unwrap_or_default(), sighting)
    }
}
