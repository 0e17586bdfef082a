//! Models of gateways whose messages have become longer or shorter since they were learned.

use std::collections::BTreeMap;
use std::fmt;

use sizeleak_epsilon_corrector::EpsilonCorrector;
use sizeleak_flow_models::FlowModels;
use sizeleak_frame::{Correction, Frame, Shift};
use sizeleak_model::{Choice, Model, ModelSet};
use sizeleak_pipeline::{InputError, Pipeline, PipelineInput, RunError, TrafficSeen};
use sizeleak_text::utc;

use crate::error::{LearningError, Result};
use crate::observed_commands::OnNotice;

const CORRECTOR: &str = "epsilon-corrector";

/// A less probable shift is not adapted to.
const CERTAIN: f64 = 0.99;

/// A flow that has fewer commands since a change does not contradict it.
const MIN_COMMANDS: u64 = 3;

#[derive(Debug)]
pub struct AdaptationRun<'a> {
    pub input: &'a PipelineInput,
    pub models: ModelSet,
}

#[derive(Debug)]
pub struct Adaptation {
    /// The models, with those that were changed.
    pub models: ModelSet,
    pub changes: Vec<AdaptedSection>,
    /// What is wrong with the captures. Everything before the damage was used.
    pub damage: Option<RunError>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AdaptedSection {
    pub section: usize,
    pub shift: Shift,
    /// |ac|, or the size of the one action that is longer, before and after, in bytes.
    pub bytes: [i64; 2],
}

/// What the corrector found about one flow.
#[derive(Debug, Clone, PartialEq)]
struct FlowEnd {
    section: usize,
    commands: u64,
    /// How many of them have a size that is known as a range alone.
    ranges: u64,
    last_ns: i64,
    /// The most probable shift of its last command; `None` where there is none.
    shift: Option<Shift>,
}

impl AdaptationRun<'_> {
    /// Runs a pipeline with the models up to the stage that follows shifts, and adapts the models to those that are there
    /// at the end. Notices go to `on_notice`.
    ///
    /// # Errors
    /// If the pipeline does not run, or no shift is certain.
    pub fn adapt(self, pipeline: &Pipeline, on_notice: &mut OnNotice<'_>) -> Result<Adaptation> {
        let mut pipeline = pipeline.until(CORRECTOR)?;
        pipeline.set(CORRECTOR, "fixed", false)?;
        let mut flow_models = FlowModels::new(self.models.scopes());
        let mut flows: BTreeMap<u64, FlowEnd> = BTreeMap::new();
        let mut seen = TrafficSeen::default();
        let damage = self.input.observe(&pipeline, on_notice, |frame| match frame {
            Frame::Session(session) => flow_models.add_session(&session),
            Frame::Correction(correction) => {
                let Correction { command, shifts, .. } = *correction;
                let (Choice::Covered(section) | Choice::Assumed(section, _)) =
                    flow_models.choose(command.flow, command.direction)
                else {
                    return;
                };
                let end = FlowEnd { section, commands: 0, ranges: 0, last_ns: command.time_ns, shift: None };
                let end = flows.entry(command.flow).or_insert(end);
                let shift = shifts.first().cloned().filter(|shift| !shift.is_none());
                end.ranges += u64::from(command.plaintext.is_some_and(|[least, most]| least < most));
                (end.commands, end.last_ns, end.shift) = (end.commands + 1, command.time_ns, shift);
            }
            frame => {
                seen.add(&frame);
                if let Frame::Flow(flow) = &frame {
                    flow_models.add_flow(flow);
                }
            }
        })?;
        let ends: Vec<FlowEnd> = flows.into_values().collect();
        if ends.is_empty() {
            return Err(InputError::no_commands(damage, seen).into());
        }
        let mut sections = self.models.into_sections();
        let mut changes = Vec::new();
        for (section, model) in sections.iter_mut().enumerate() {
            let Some(shift) = shift_of_section(&ends, section)? else { continue };
            let (adapted, bytes) = adapted(model.clone(), &shift)?;
            *model = adapted;
            changes.push(AdaptedSection { section, shift, bytes });
        }
        if changes.is_empty() {
            if let Some(reason) = not_followed(&ends, &sections) {
                return Err(LearningError::NotFollowed(reason));
            }
            return Err(LearningError::NoShift(ends.iter().map(|end| end.commands).sum()));
        }
        let models = ModelSet::new(sections).map_err(|fault| LearningError::AdaptedModel(fault.to_string()))?;
        Ok(Adaptation { models, changes, damage })
    }
}

/// Why no shift of these flows could be seen, if none could.
fn not_followed(ends: &[FlowEnd], sections: &[Model]) -> Option<&'static str> {
    let of_flow = |end: &FlowEnd| {
        let of_model = sections.get(end.section).and_then(EpsilonCorrector::not_followed);
        of_model.or((end.ranges == end.commands).then_some("a block cipher leaves sizes as ranges"))
    };
    let reasons: Option<Vec<&str>> = ends.iter().map(of_flow).collect();
    reasons?.first().copied()
}

/// The shift of a section's flows at the end; `None` without one.
///
/// # Errors
/// If it is not certain, or if flows differ.
fn shift_of_section(ends: &[FlowEnd], section: usize) -> Result<Option<Shift>> {
    let own = || ends.iter().filter(|end| end.section == section);
    // The change that came last: flows that ended before are of another time.
    let shifted = own().filter_map(|end| Some((end.shift.clone()?, end)));
    let Some((shift, _)) = shifted.max_by_key(|(shift, end)| (shift.since_ns, end.commands)) else { return Ok(None) };
    if shift.probability < CERTAIN {
        let probability = shift.probability;
        return Err(LearningError::UncertainShift { shift, probability });
    }
    let contradicts = |end: &&FlowEnd| {
        end.commands >= MIN_COMMANDS
            && Some(end.last_ns) >= shift.since_ns
            && !end.shift.as_ref().is_some_and(|own| own.is_like(&shift))
    };
    let Some(other) = own().find(contradicts) else { return Ok(Some(shift)) };
    let other = other.shift.as_ref().map_or_else(|| "nothing is longer or shorter".into(), Shift::to_string);
    Err(LearningError::ShiftsDiffer { one: shift, other })
}

/// The model with longer messages, which says so.
///
/// # Errors
/// If no bytes are left of the action that is shorter.
fn adapted(model: Model, shift: &Shift) -> Result<(Model, [i64; 2])> {
    let Shift { bytes, reply_bytes, since_ns, action, .. } = shift;
    let size = |model: &Model| match action {
        Some(name) => model.actions.iter().find(|own| *own.name == **name).map_or(0, |own| own.size),
        None => model.overhead,
    };
    let before = size(&model);
    let mut model = match action {
        Some(name) => {
            let impossible = || LearningError::AdaptedModel(format!("nothing is left of {before} bytes: {shift}"));
            model.with_longer_action(name, *bytes).ok_or_else(impossible)?
        }
        None => model.with_longer_messages(*bytes, *reply_bytes),
    };
    let bytes = [before, size(&model)];
    let since = since_ns.map_or_else(String::new, |since_ns| format!(" since {}", utc(since_ns)));
    model.learned.warnings.push(format!(
        "adapted without labels{since}, probability {:.4}: {}; all else is as learned before",
        shift.probability,
        describe(shift, bytes)
    ));
    Ok((model, bytes))
}

/// `|ac| from 67 to 73 bytes, single replies by +6 bytes`.
fn describe(shift: &Shift, [before, after]: [i64; 2]) -> String {
    let what = shift.action.as_ref().map_or_else(|| "|ac|".into(), |action| format!("`{action}`"));
    let replies = match shift.reply_bytes {
        0 => String::new(),
        bytes => format!(", single replies by {bytes:+} bytes"),
    };
    format!("{what} from {before} to {after} bytes{replies}")
}

impl fmt::Display for AdaptedSection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "section {}: {}", self.section + 1, describe(&self.shift, self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(commands: u64, last_ns: i64, shift: Option<(i64, i64, f64)>) -> FlowEnd {
        let shift = shift.map(|(bytes, since_ns, probability)| Shift {
            bytes,
            action: None,
            reply_bytes: 0,
            probability,
            since_ns: Some(since_ns),
        });
        FlowEnd { section: 0, commands, ranges: 0, last_ns, shift }
    }

    #[test]
    fn why_no_shift_could_be_seen_is_said_where_none_of_any_flow_could() {
        let exact = end(10, 90, None);
        let ranges = FlowEnd { ranges: 10, ..exact.clone() };
        let reason = Some("a block cipher leaves sizes as ranges");
        assert_eq!(not_followed(&[ranges.clone(), ranges.clone()], &[]), reason);
        assert_eq!(not_followed(&[ranges, exact.clone()], &[]), None);
        assert_eq!(not_followed(&[FlowEnd { ranges: 9, ..exact }], &[]), None);
    }

    #[test]
    fn the_last_certain_shift_counts() {
        let bytes = |ends: &[FlowEnd]| shift_of_section(ends, 0).map(|shift| shift.map(|shift| shift.bytes));
        assert_eq!(bytes(&[end(100, 90, None)]).unwrap(), None);
        assert_eq!(bytes(&[end(100, 90, None), end(100, 300, Some((6, 120, 1.0)))]).unwrap(), Some(6));
        assert_eq!(bytes(&[end(50, 110, Some((2, 40, 1.0))), end(9, 300, Some((6, 120, 1.0)))]).unwrap(), Some(6));
        assert!(matches!(
            bytes(&[end(9, 300, Some((6, 120, 0.7)))]),
            Err(LearningError::UncertainShift { shift: Shift { bytes: 6, .. }, .. })
        ));
        let two = [end(100, 290, None), end(100, 300, Some((6, 120, 1.0)))];
        assert!(matches!(bytes(&two), Err(LearningError::ShiftsDiffer { one: Shift { bytes: 6, .. }, .. })));
        assert_eq!(
            bytes(&[end(2, 290, None), end(100, 300, Some((6, 120, 1.0)))]).unwrap(),
            Some(6),
            "too few commands"
        );
    }
}
