//! What an observer sees of a scenario's commands: what each action contributes to their sizes and replies, and what
//! these are.

use std::collections::BTreeMap;

use sizeleak_inference::channel::{ReplyClasses, ReplyNoise, SizeNoise, VaryingSizes};
use sizeleak_model::Pmf;

use crate::command_generator::DeviceAction;
use crate::message_encoder::{self, App, BodyForm, MessageEncoder};
use crate::scenario::{Parameter, ReplyMode, ReplyPadding, Scenario};
use crate::tls::{Side, wire_lengths};
use crate::{SimulateError, application};

#[derive(Debug)]
pub(super) struct ActionTraits {
    /// The bytes that a further one adds to a message of the first app, without its parameter.
    pub(super) bytes: usize,
    pub(super) parameter: Option<Pmf>,
    /// The padding of the replies to it, where there are some for each action.
    replies: Vec<ReplyPadding>,
}

/// The form of the messages of an app.
#[derive(Debug)]
pub(super) struct AppTraits {
    pub(super) share: f64,
    /// The bytes of a command without actions and id, less the comma that the first action does not need.
    pub(super) base: usize,
    /// The bytes of each action beyond those in messages of the first app.
    pub(super) more_bytes: usize,
}

#[derive(Debug)]
pub(super) struct ScenarioTraits {
    pub(super) actions: Vec<ActionTraits>,
    pub(super) apps: Vec<AppTraits>,
}

impl ScenarioTraits {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let encoder = MessageEncoder::new(scenario);
        let action = |index: usize| {
            let parameter = encoder.parameter(index);
            ActionTraits {
                bytes: added_bytes(&encoder, App::First, index) - parameter.map_or(0, |own| own.json(0).len()),
                parameter: parameter.map(distribution),
                replies: encoder.replies(index).to_vec(),
            }
        };
        let actions = (0..scenario.action_names().len()).map(action).collect();
        Self { actions, apps: apps(scenario, &encoder) }
    }
}

/// The bytes that a further action adds to a message, with the first choice of its parameter.
fn added_bytes(encoder: &MessageEncoder, app: App, action: usize) -> usize {
    let form = BodyForm { app, added_bytes: 0 };
    let length = |actions: &[DeviceAction]| encoder.command(form, 1, 0, actions).len();
    let action = DeviceAction::new(0, action);
    length(&[action, action]) - length(&[action])
}

fn distribution(parameter: &Parameter) -> Pmf {
    let lengths = parameter.lengths().into_iter();
    Pmf::from_values(lengths.map(|(length, count)| (length.cast_signed() as i64, count as f64))).normalised()
}

/// The apps that send commands. In messages of another app each action has the same number of bytes more.
fn apps(scenario: &Scenario, encoder: &MessageEncoder) -> Vec<AppTraits> {
    let time_ns = scenario.epoch.as_second().saturating_mul(1_000_000_000);
    let second = scenario.command.second_app;
    let app = |(app, share)| {
        let form = BodyForm { app, added_bytes: 0 };
        // Without the one digit of the id, and without one comma.
        let base = encoder.command(form, 1, time_ns, &[]).len() - 2;
        AppTraits { share, base, more_bytes: added_bytes(encoder, app, 0) - added_bytes(encoder, App::First, 0) }
    };
    [(App::First, 1.0 - second), (App::Second, second)].into_iter().filter(|(_, share)| *share > 0.0).map(app).collect()
}

/// What an observer sees of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeenReplies {
    None,
    Number,
    Sizes,
}

/// Commands whose bodies have the same form: those before or after new firmware, with ids of one width if ids grow.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Period {
    pub(super) share: f64,
    /// The bytes that new firmware adds to each body.
    pub(super) added_bytes: usize,
    /// The digits of the message id, with their probabilities.
    pub(super) id_widths: Vec<(u32, f64)>,
}

/// The sizes of a scenario's commands in one period. That of a reply to the whole command repeats the id and so depends on
/// that of the command: where it is seen, it is part of the size.
#[derive(Debug)]
pub(super) struct TrueSizes<'a> {
    scenario: &'a Scenario,
    traits: &'a ScenarioTraits,
    period: &'a Period,
    seen: SeenReplies,
    parameters: VaryingSizes,
    observed: ObservedSizes<'a>,
    /// Why the size of some message is not known.
    fault: Option<SimulateError>,
}

impl<'a> TrueSizes<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        traits: &'a ScenarioTraits,
        period: &'a Period,
        seen: SeenReplies,
    ) -> Self {
        let parameters = VaryingSizes::new(traits.actions.iter().map(|action| action.parameter.clone()));
        let observed = ObservedSizes::new(scenario, period.added_bytes);
        Self { scenario, traits, period, seen, parameters, observed, fault: None }
    }

    /// Whether the sizes of all messages were known.
    pub(super) fn check(self) -> Result<(), SimulateError> {
        self.fault.map_or(Ok(()), Err)
    }

    /// The size of the reply to a whole command, 0 if there is none, with its probability.
    fn whole_reply(&mut self, id_width: u32) -> Result<Vec<(usize, f64)>, SimulateError> {
        let settings = self.scenario.replies;
        let size = match (settings.mode, self.seen) {
            (ReplyMode::PerAction | ReplyMode::None, _) | (_, SeenReplies::None) => return Ok(vec![(0, 1.0)]),
            (ReplyMode::PerCommand, SeenReplies::Number) => 1,
            (ReplyMode::PerCommand, SeenReplies::Sizes) => self.observed.done(id_width)?,
        };
        Ok(vec![(size, 1.0 - settings.loss), (0, settings.loss)])
    }

    fn with_replies(&mut self, bytes: i64, actions: u32, varying: &[u32]) -> Result<Vec<(u64, f64)>, SimulateError> {
        let mut sizes: BTreeMap<u64, f64> = BTreeMap::new();
        let parameters = self.parameters.sum(varying).clone();
        for (width, width_share) in &self.period.id_widths {
            let whole = self.whole_reply(*width)?;
            for app in &self.traits.apps {
                let fixed = app.base + app.more_bytes * actions as usize + bytes as usize + *width as usize;
                for (length, length_share) in parameters.iter() {
                    let size = self.observed.command(fixed + length as usize)? as u64;
                    for (reply, chance) in &whole {
                        // Bodies are far shorter than 4 GB.
                        let share = sizes.entry(size << 32 | *reply as u64).or_default();
                        *share += width_share * app.share * length_share * chance;
                    }
                }
            }
        }
        Ok(sizes.into_iter().filter(|(_, share)| *share > 0.0).collect())
    }
}

impl SizeNoise for TrueSizes<'_> {
    fn varying(&self) -> &VaryingSizes {
        &self.parameters
    }

    fn sizes(&mut self, bytes: i64, actions: u32, varying: &[u32]) -> Vec<(u64, f64)> {
        let sizes = self.with_replies(bytes, actions, varying);
        sizes.map_err(|fault| self.fault = Some(fault)).unwrap_or_default()
    }
}

/// What is seen of the replies to single actions: how many of each size arrive, or how many.
pub(super) fn reply_noise(
    scenario: &Scenario,
    traits: &ScenarioTraits,
    period: &Period,
    seen: SeenReplies,
) -> Result<ReplyNoise<'static>, SimulateError> {
    if seen == SeenReplies::None || scenario.replies.mode != ReplyMode::PerAction {
        return Ok(ReplyNoise::Unseen);
    }
    let mut observed = ObservedSizes::new(scenario, period.added_bytes);
    let mut sizes: Vec<usize> = Vec::new();
    let mut classes: Vec<Vec<(Option<usize>, f64)>> = Vec::new();
    let mut class_of = |ReplyPadding { min, max }: ReplyPadding| -> Result<usize, SimulateError> {
        let each = (1.0 - scenario.replies.loss) / f64::from(max - min + 1);
        let mut class = vec![(None, scenario.replies.loss)];
        for padding in min..=max {
            let size = if seen == SeenReplies::Number { 0 } else { observed.status(padding)? };
            let look = Some(index_of(&mut sizes, size));
            match class.iter_mut().find(|(known, _)| *known == look) {
                Some((_, share)) => *share += each,
                None => class.push((look, each)),
            }
        }
        Ok(index_of(&mut classes, class))
    };
    let of_action = |action: &ActionTraits| action.replies.iter().copied().map(&mut class_of).collect();
    let of_actions = traits.actions.iter().map(of_action).collect::<Result<Vec<Vec<usize>>, SimulateError>>()?;
    let mut per_action = vec![vec![0; classes.len()]; of_actions.len()];
    for (row, sent) in per_action.iter_mut().zip(of_actions) {
        for class in sent {
            row[class] += 1;
        }
    }
    Ok(ReplyNoise::Classes(ReplyClasses {
        per_action,
        per_command: vec![0; classes.len()],
        looks: sizes.len(),
        is_exact: true,
        classes,
    }))
}

fn index_of<T: PartialEq>(known: &mut Vec<T>, wanted: T) -> usize {
    known.iter().position(|one| *one == wanted).unwrap_or_else(|| {
        known.push(wanted);
        known.len() - 1
    })
}

/// Computes what an observer learns about the length of messages: the exact length, or under a block cipher the number of
/// blocks. Two messages of one side look alike if and only if these numbers are equal.
#[derive(Debug)]
pub(super) struct ObservedSizes<'a> {
    scenario: &'a Scenario,
    form: BodyForm,
    /// The bytes of a reply to an action without padding.
    status: usize,
    /// The bytes of a reply to a command, without its id.
    done: usize,
    /// Cache of bytes on the wire, by side and length of the body.
    wire_sizes: BTreeMap<(bool, usize), usize>,
}

impl<'a> ObservedSizes<'a> {
    /// For bodies that new firmware lengthens by some bytes.
    pub(super) fn new(scenario: &'a Scenario, added_bytes: usize) -> Self {
        let form = BodyForm { added_bytes, ..BodyForm::default() };
        let status = MessageEncoder::new(scenario).status(form, 0, 0).len();
        Self { scenario, form, status, done: message_encoder::done(form, 0).len() - 1, wire_sizes: BTreeMap::new() }
    }

    /// The size of a command with a JSON body of `body` bytes, without those of new firmware.
    pub(super) fn command(&mut self, body: usize) -> Result<usize, SimulateError> {
        self.size(Side::Server, body + self.form.added_bytes)
    }

    pub(super) fn status(&mut self, padding: u32) -> Result<usize, SimulateError> {
        self.size(Side::Client, self.status + padding as usize)
    }

    /// The size of the reply to a whole command, which repeats its id.
    pub(super) fn done(&mut self, digits: u32) -> Result<usize, SimulateError> {
        self.size(Side::Client, self.done + digits as usize)
    }

    /// Longer messages are longer in every framing, so without padding and a block cipher the length itself will do.
    fn size(&mut self, side: Side, body: usize) -> Result<usize, SimulateError> {
        if self.scenario.rounds_sizes() { self.on_the_wire(side, body) } else { Ok(body) }
    }

    /// The total length of the records of a message. It determines the length of each, since all but the last are full.
    fn on_the_wire(&mut self, side: Side, body: usize) -> Result<usize, SimulateError> {
        let key = (side == Side::Server, body);
        if let Some(size) = self.wire_sizes.get(&key) {
            return Ok(*size);
        }
        let tls = self.scenario.tls;
        let padding = &self.scenario.padding;
        let policy = if side == Side::Server { &padding.policy } else { &padding.replies };
        let padded = |size| policy.padded(size).unwrap_or(size);
        let message = application::padded_length(self.scenario, side, body, padded)?;
        let length = if tls.suite.is_padded() { wire_lengths(tls, message, &[]).into_iter().sum() } else { message };
        self.wire_sizes.insert(key, length);
        Ok(length)
    }
}
