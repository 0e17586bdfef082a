//! What the sections of a model set know about records, by flow.

use sizeleak_flow_models::FlowModels;
use sizeleak_frame::{Direction, Flow, Session};
use sizeleak_model::{Choice, ModelSet};

use crate::noise_model::NoiseModel;

/// The noise of each section, and which section a flow has.
#[derive(Debug)]
pub(crate) struct NoiseModels {
    flows: FlowModels,
    /// Whether commands or reports are looked for.
    direction: Direction,
    /// Of each section; `None` where it knows nothing about records that are not commands.
    sections: Vec<Option<NoiseModel>>,
}

impl NoiseModels {
    /// What the sections know; `None` if none of them knows anything about records that are not commands.
    pub(crate) fn new(models: &ModelSet, direction: Direction) -> Option<Self> {
        let sections: Vec<Option<NoiseModel>> = models.sections().iter().map(NoiseModel::new).collect();
        sections.iter().any(Option::is_some).then(|| Self {
            flows: FlowModels::new(models.scopes()),
            direction,
            sections,
        })
    }

    /// Remembers the ends of a flow.
    pub(crate) fn add_flow(&mut self, flow: &Flow) {
        self.flows.add_flow(flow);
    }

    /// Remembers the server name of a session.
    pub(crate) fn add_session(&mut self, session: &Session) {
        self.flows.add_session(session);
    }

    /// What is known about the records of a flow.
    #[inline]
    pub(crate) fn of_flow(&mut self, flow: u64) -> Option<&NoiseModel> {
        match self.flows.choose(flow, self.direction) {
            Choice::Covered(section) | Choice::Assumed(section, _) => self.sections.get(section)?.as_ref(),
            Choice::Uncovered(_) => None,
        }
    }
}
