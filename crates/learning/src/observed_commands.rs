//! The commands that a pipeline finds in captures, with what is known of their sessions and services.

use std::collections::BTreeMap;

use sizeleak_evaluation::{PipelineInput, TrafficSeen};
use sizeleak_frame::{Frame, Notice};
use sizeleak_pipeline::{Pipeline, RunError};

use crate::error::LearningError;
use crate::observed_service::{ObservedFlows, ObservedService};
use crate::size_basis::ObservedCommand;

/// What a pipeline, which ends with the segmenter, found.
#[derive(Debug)]
pub(crate) struct ObservedCommands {
    /// In the order of the captures.
    pub(crate) commands: Vec<ObservedCommand>,
    pub(crate) services: Vec<ObservedService>,
    /// What else there was.
    pub(crate) seen: TrafficSeen,
    /// What is wrong with the captures; commands are those before the damage.
    pub(crate) damage: Option<RunError>,
}

/// Runs the pipeline. Notices go to `on_notice`.
///
/// # Errors
/// If it does not run.
pub(crate) fn observe_commands(
    input: &PipelineInput,
    pipeline: &Pipeline,
    on_notice: &mut (dyn FnMut(&Notice) + Send),
) -> Result<ObservedCommands, LearningError> {
    let mut suites: BTreeMap<u64, Option<String>> = BTreeMap::new();
    let mut flows = ObservedFlows::default();
    let mut commands = Vec::new();
    let mut seen = TrafficSeen::default();
    let damage = input.observe(pipeline, on_notice, |frame| match frame {
        Frame::Session(session) => {
            flows.add_session(&session);
            suites.insert(session.flow, session.cipher_suite);
        }
        Frame::Command(command) => {
            let cipher_suite = suites.get(&command.flow).cloned().flatten();
            commands.push(ObservedCommand { command: *command, cipher_suite, service: None });
        }
        frame => {
            seen.add(&frame);
            if let Frame::Flow(flow) = frame {
                flows.add_flow(&flow);
            }
        }
    })?;
    let (services, of_flow) = flows.services();
    for observed in &mut commands {
        observed.service = of_flow.get(&observed.command.flow).copied();
    }
    Ok(ObservedCommands { commands, services, seen, damage })
}
