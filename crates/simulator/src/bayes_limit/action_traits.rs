//! What each action of a scenario contributes to a command's size and replies.

use sizeleak_model::Pmf;

use crate::command_generator::DeviceAction;
use crate::message_encoder::{App, BodyForm, MessageEncoder};
use crate::scenario::{Parameter, ReplyMode, ReplyPadding, Scenario};

#[derive(Debug)]
pub(super) struct ActionTraits {
    /// The bytes that a further one adds to a message of the first app, without its parameter.
    pub(super) bytes: usize,
    pub(super) parameter: Option<Pmf>,
    pub(super) replies: Vec<ReplyPadding>,
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
                replies: match scenario.replies.mode {
                    ReplyMode::PerAction => encoder.replies(index).to_vec(),
                    ReplyMode::PerCommand | ReplyMode::None => Vec::new(),
                },
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
