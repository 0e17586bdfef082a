//! How many replies commands have, and of how many bytes.

use sizeleak_inference::channel::{Observation, Observer};
use sizeleak_model::{Model, ReplyClass};

/// The replies to a command, as far as a model knows them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ReplyTraffic {
    /// How many there are, as is expected.
    pub replies: Option<f64>,
    /// Their bytes together, as is expected.
    pub bytes: Option<f64>,
    /// The bytes of the greatest one that was seen.
    pub greatest: Option<f64>,
}

impl ReplyTraffic {
    /// What a model says of the replies that its observer sees.
    pub(crate) fn new(model: &Model, observer: Observer, observation: &Observation) -> Self {
        let classes = expected_replies(observation);
        let replies = Some(classes.iter().sum());
        match &model.single_replies {
            Some(single) if observer == Observer::Replies => {
                let sizes = single.classes.iter().flat_map(|class| class.sizes.iter().map(|(size, _)| *size));
                Self {
                    replies,
                    bytes: Some(
                        single.classes.iter().zip(&classes).map(|(class, times)| mean_bytes(class) * times).sum(),
                    ),
                    greatest: sizes.max().map(|size| size as f64),
                }
            }
            _ => Self { replies, bytes: None, greatest: None },
        }
    }
}

/// The expected number of replies of each class, or of all as the only entry.
fn expected_replies(observation: &Observation) -> Vec<f64> {
    let mut expected: Vec<f64> = Vec::new();
    for row in &observation.command.rows {
        for (output, probability) in &row.outputs {
            let seen = observation.output(*output).replies;
            expected.resize(expected.len().max(seen.len()), 0.0);
            for (sum, times) in expected.iter_mut().zip(seen) {
                *sum += row.secrets.weight * probability * f64::from(times);
            }
        }
    }
    expected
}

/// The mean bytes of a reply of a class.
fn mean_bytes(class: &ReplyClass) -> f64 {
    let all: f64 = class.sizes.iter().map(|(_, times)| *times as f64).sum();
    let bytes: f64 = class.sizes.iter().map(|(size, times)| *size as f64 * *times as f64).sum();
    if all > 0.0 { bytes / all } else { 0.0 }
}
