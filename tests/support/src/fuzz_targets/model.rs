//! The model file: bytes as `model.toml`, and the stages that use it.

use sizeleak_decomposer::Decomposer;
use sizeleak_epsilon_corrector::EpsilonCorrector;
use sizeleak_frame::{Command, Frame, SingleReply};
use sizeleak_model::Model;
use sizeleak_platform::runtime::Stage;
use sizeleak_pruner::{Pruner, PruningMode};

/// Candidates listed for a command.
const LIMIT: usize = 20;

/// Reads bytes as a model, which must read back from what it is written as, and asks it about commands.
pub fn model_file(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(model) = Model::from_toml(text) else { return };
    let written = model.to_toml();
    let again = Model::from_toml(&written);
    assert_eq!(again.as_ref(), Ok(&model), "it was written as\n{written}");
    let (Ok(decomposer), Ok(pruner)) =
        (Decomposer::new(model.clone(), LIMIT), Pruner::new(&model, PruningMode::Learned, 0.9))
    else {
        return;
    };
    let sizes = commands(&model);
    let corrected = through(EpsilonCorrector::new(model.clone(), model.smoothing), sizes);
    let identified = through(pruner, through(decomposer, corrected));
    for frame in &identified {
        let Frame::Identification(identification) = frame else { continue };
        assert!(identification.candidates.len() <= LIMIT, "{identification:?}");
        let all: f64 = identification.candidates.iter().map(|candidate| candidate.probability).sum();
        assert!((0.0..1.000_001).contains(&all), "{identification:?}");
    }
}

/// Commands of each action alone, of all together, and of extreme sizes; some overlap.
fn commands(model: &Model) -> Vec<Frame> {
    let sizes = model.actions.iter().map(|action| action.size);
    let all = sizes.clone().fold(model.overhead, i64::saturating_add);
    let alone = sizes.take(3).map(|size| model.overhead.saturating_add(size));
    let sizes = alone.chain([all, 0, 1 << 40, i64::MAX]).map(i64::unsigned_abs);
    let command = |(size, number): (u64, u32)| Command {
        time_ns: number.into(),
        end_ns: number.into(),
        flow: 7,
        size,
        plaintext: Some([size; 2]).filter(|_| number > 1),
        records: 1,
        replies: number,
        reply_bytes: 50,
        single_replies: (0..number).map(|_| SingleReply { after_ns: 0, length: 50 }).collect(),
        overlapped: number % 3 == 1,
        shared_replies: [1, 1].into_iter().filter(|_| number % 3 == 2).collect(),
        ..Command::default()
    };
    sizes.zip(0..).map(|numbered| Frame::from(command(numbered))).collect()
}

/// What a stage makes of frames, until it refuses one: a model of wire sizes cannot judge a session of known cipher.
fn through<S: Stage>(mut stage: S, frames: Vec<Frame>) -> Vec<Frame> {
    let mut out = Vec::new();
    for frame in frames {
        match S::Input::try_from(frame) {
            Ok(input) => {
                if stage.process(input, &mut out).is_err() {
                    break;
                }
            }
            Err(other) => out.push(other),
        }
    }
    stage.finish(&mut out).expect("nothing closes");
    out
}
