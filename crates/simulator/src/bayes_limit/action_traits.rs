//! What each action of a scenario contributes to a command's size and replies.

use crate::command_generator::DeviceAction;
use crate::message_encoder::{App, BodyForm, MessageEncoder};
use crate::scenario::{Parameter, ReplyMode, ReplyPadding, Scenario};

/// Lengths in bytes, with their probabilities.
pub(super) type Lengths = Vec<(usize, f64)>;

/// An action. Those that differ in nothing but the bytes look alike where their bytes are equal.
#[derive(Debug)]
pub(super) struct ActionTraits {
    /// The bytes that a further one adds to a message of the first app, without its parameter.
    pub(super) bytes: usize,
    /// The lengths of its parameter, by their index in [`ScenarioTraits::parameters`].
    pub(super) parameter: Option<usize>,
    /// Its replies, by their index in [`ScenarioTraits::replies`]; `None` if it has none.
    pub(super) replies: Option<usize>,
    /// The kinds of device that have it, by their index in [`ScenarioTraits::kind_sets`].
    pub(super) kinds: usize,
}

/// The form of the messages of an app.
#[derive(Debug)]
pub(super) struct AppTraits {
    /// The share of commands that it sends.
    pub(super) share: f64,
    /// The bytes of a command without actions and id, less the comma that the first action does not need.
    pub(super) base: usize,
    /// The bytes of each action beyond those in messages of the first app.
    pub(super) more_bytes: usize,
}

/// The actions and messages of a scenario.
#[derive(Debug)]
pub(super) struct ScenarioTraits {
    pub(super) actions: Vec<ActionTraits>,
    /// The different distributions of the lengths of parameters.
    pub(super) parameters: Vec<Lengths>,
    /// The different replies of actions, as the padding of each.
    pub(super) replies: Vec<Vec<ReplyPadding>>,
    /// The different sets of kinds of device that have an action.
    pub(super) kind_sets: Vec<Vec<usize>>,
    pub(super) apps: Vec<AppTraits>,
}

impl ScenarioTraits {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let encoder = MessageEncoder::new(scenario);
        let (mut parameters, mut replies, mut kind_sets) = (Vec::new(), Vec::new(), Vec::new());
        let actions = (0_usize..).zip(scenario.action_names()).map(|(index, name)| {
            let parameter = encoder.parameter(index);
            let own_replies = match scenario.replies.mode {
                ReplyMode::PerAction => encoder.replies(index).to_vec(),
                ReplyMode::PerCommand | ReplyMode::None => Vec::new(),
            };
            let kinds = (0..).zip(&scenario.devices).filter(|(_, kind)| kind.actions.iter().any(|own| own == name));
            ActionTraits {
                bytes: added_bytes(&encoder, App::First, index) - parameter.map_or(0, |own| own.json(0).len()),
                parameter: parameter.map(|own| index_of(&mut parameters, distribution(own))),
                replies: Some(own_replies).filter(|own| !own.is_empty()).map(|own| index_of(&mut replies, own)),
                kinds: index_of(&mut kind_sets, kinds.map(|(index, _)| index).collect()),
            }
        });
        let actions = actions.collect();
        Self { actions, parameters, replies, kind_sets, apps: apps(scenario, &encoder) }
    }
}

/// The bytes that a further action adds to a message, with the first choice of its parameter.
fn added_bytes(encoder: &MessageEncoder, app: App, action: usize) -> usize {
    let form = BodyForm { app, added_bytes: 0 };
    let length = |actions: &[DeviceAction]| encoder.command(form, 1, 0, actions).len();
    let action = DeviceAction::new(0, action);
    length(&[action, action]) - length(&[action])
}

fn distribution(parameter: &Parameter) -> Lengths {
    let lengths = parameter.lengths();
    let all: f64 = lengths.iter().map(|(_, count)| *count as f64).sum();
    lengths.into_iter().map(|(length, count)| (length, count as f64 / all)).collect()
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

fn index_of<T: PartialEq>(known: &mut Vec<T>, wanted: T) -> usize {
    known.iter().position(|one| *one == wanted).unwrap_or_else(|| {
        known.push(wanted);
        known.len() - 1
    })
}
