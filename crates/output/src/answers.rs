//! Reads answers again, that is identifications, what deviates among them and what is known of their flows: from a frame
//! stream, from its JSON lines, or from Parquet. And the best answer to a command, as people read it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;
use sizeleak_frame::{
    Actions, Candidate, Deviation, Flow, FlowId, Frame, FrameReader, Identification, ReadError, Session,
};
use thiserror::Error;

/// The longest line, like the largest frame: 16 MiB.
const MAX_BYTES: usize = 16 << 20;

/// Why the input cannot be read any further. Everything before it has been read.
#[derive(Debug, Error)]
pub enum AnswersError {
    #[error(transparent)]
    Frames(#[from] ReadError),
    #[error("line {0}: {1}")]
    Malformed(u64, serde_json::Error),
    #[error("line {0} ends within its JSON")]
    Cut(u64),
    #[error("line {0} is longer than 16 MiB")]
    TooLong(u64),
    #[error("the input cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl AnswersError {
    /// Whether the input ended too early and is otherwise valid.
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Cut(_) => true,
            Self::Frames(error) => error.is_cut(),
            Self::Io(error) => error.kind() == io::ErrorKind::UnexpectedEof,
            _ => false,
        }
    }
}

pub trait AnswerSink {
    /// Takes a frame of a stream; of JSON lines and Parquet, flows, sessions, identifications and deviations alone.
    fn add(&mut self, frame: Frame);

    /// What a line or row says of the ends of its flow, before its identification.
    fn learn(&mut self, _flow: u64, _gateway: Option<&str>, _service: Option<&str>) {}
}

impl<F: FnMut(Frame)> AnswerSink for F {
    fn add(&mut self, frame: Frame) {
        self(frame);
    }
}

/// Reads frames, or their JSON lines. No frame starts with the first byte of a JSON object.
pub fn read_answers(input: impl Read, sink: &mut dyn AnswerSink) -> Result<(), AnswersError> {
    let mut input = BufReader::new(input);
    if input.fill_buf()?.first() == Some(&b'{') { read_lines(input, sink) } else { read_frames(input, sink) }
}

fn read_frames(input: impl Read, sink: &mut dyn AnswerSink) -> Result<(), AnswersError> {
    let mut reader = FrameReader::new(input);
    while let Some(frame) = reader.next_frame()? {
        sink.add(frame);
    }
    Ok(())
}

#[derive(Deserialize)]
struct JsonLine {
    flow: Option<Flow>,
    session: Option<Session>,
    identification: Option<NamedIdentification>,
    deviation: Option<Deviation>,
}

/// An identification with the ends of its flow, as far as its stream said them.
#[derive(Deserialize)]
struct NamedIdentification {
    #[serde(flatten)]
    identification: Identification,
    gateway: Option<String>,
    service: Option<String>,
}

fn parse(line: &[u8]) -> Result<JsonLine, serde_json::Error> {
    let mut line: Value = serde_json::from_slice(line)?;
    for body in line.as_object_mut().into_iter().flat_map(|line| line.values_mut()) {
        number_flow(body)?;
        body.get_mut("commands").and_then(Value::as_array_mut).into_iter().flatten().try_for_each(number_flow)?;
    }
    serde_json::from_value(line)
}

/// A flow is text in JSON; older streams have its number.
fn number_flow(body: &mut Value) -> Result<(), serde_json::Error> {
    if let Some(flow @ Value::String(_)) = body.get_mut("flow") {
        let id: FlowId = flow.as_str().unwrap_or_default().parse().map_err(serde_json::Error::custom)?;
        *flow = id.0.into();
    }
    Ok(())
}

fn read_lines(mut input: impl BufRead, sink: &mut dyn AnswerSink) -> Result<(), AnswersError> {
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if input.by_ref().take(MAX_BYTES as u64 + 1).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() > MAX_BYTES {
            return Err(AnswersError::TooLong(line));
        }
        let parsed = parse(&bytes).map_err(|error| {
            let is_last = bytes.last() != Some(&b'\n');
            if is_last && error.is_eof() { AnswersError::Cut(line) } else { AnswersError::Malformed(line, error) }
        })?;
        let frames = [parsed.flow.map(Frame::from), parsed.session.map(Frame::from), parsed.deviation.map(Frame::from)];
        frames.into_iter().flatten().for_each(|frame| sink.add(frame));
        if let Some(NamedIdentification { identification, gateway, service }) = parsed.identification {
            sink.learn(identification.command.flow, gateway.as_deref(), service.as_deref());
            sink.add(identification.into());
        }
    }
    Ok(())
}

/// How uncertain habits are before anything is seen: the standard deviation of the logarithm by which a home uses an
/// action more or less than its labels say, as answers take it (`docs/method.md`).
const HABITS: f64 = 0.7;

/// Habits that are further from the learned ones than so many standard deviations are not reckoned with.
const DEVIATIONS: f64 = 2.0;

/// Two likelihoods that differ by a smaller part differ by rounding.
const ROUNDING: f64 = 1e-9;

/// The most probable actions, with their twin: what explains the command as well, to the last byte, and would be as
/// probable by other habits. What is seen of a home never tells twins apart, so neither is the answer, but both.
pub(crate) struct BestAnswer<'a> {
    pub(crate) first: &'a Candidate,
    /// `None` where there are several: then the probability of the first says how little is known.
    pub(crate) twin: Option<&'a Candidate>,
}

impl<'a> BestAnswer<'a> {
    /// `None` if nothing explains the command.
    pub(crate) fn new(identification: &'a Identification) -> Option<Self> {
        let (first, others) = identification.candidates.split_first()?;
        let mut twins = others.iter().filter(|other| are_twins(first, other));
        let twin = twins.next().filter(|_| twins.next().is_none());
        Some(Self { first, twin })
    }

    /// How probable it is that the command carried one of these, from 0 to 1.
    pub(crate) fn probability(&self) -> f64 {
        self.first.probability + self.twin.map_or(0.0, |twin| twin.probability)
    }

    /// The actions of both, in the words of `name`, as `1 colour, 1 off or 1 timer, 1 white`.
    pub(crate) fn words(&self, name: impl Fn(&Actions) -> String) -> String {
        let first = name(&self.first.actions);
        self.twin.map_or_else(|| first.clone(), |twin| format!("{first} or {}", name(&twin.actions)))
    }
}

fn are_twins(one: &Candidate, other: &Candidate) -> bool {
    let (Some(seen), Some(of_other)) = (one.likelihood, other.likelihood) else { return false };
    if (seen - of_other).abs() > ROUNDING * seen {
        return false;
    }
    // As the likelihoods are equal, the ratio of the probabilities is that of the priors. Its logarithm is uncertain by that
    // of each action by which they differ.
    let mut apart: BTreeMap<&str, i64> = BTreeMap::new();
    for (actions, sign) in [(&one.actions, 1), (&other.actions, -1)] {
        for (name, count) in actions.iter() {
            *apart.entry(name).or_default() += sign * i64::from(count);
        }
    }
    let squares: f64 = apart.values().map(|count| (*count as f64).powi(2)).sum();
    (one.probability / other.probability).ln().abs() <= DEVIATIONS * HABITS * squares.sqrt()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::Command;

    use super::*;

    fn candidate(actions: &[(&str, u32)], probability: f64, likelihood: Option<f64>) -> Candidate {
        let actions = actions.iter().map(|(name, count)| (Arc::from(*name), *count)).collect();
        Candidate { actions, epsilon: 0, probability, likelihood }
    }

    fn words(candidates: &[Candidate]) -> String {
        let candidates = candidates.iter().cloned().collect();
        let answer = Identification { candidates, ..Identification::unanswered(Command::default()) };
        let best = BestAnswer::new(&answer).unwrap();
        let named = |actions: &Actions| {
            let each: Vec<String> = actions.iter().map(|(name, count)| format!("{count} {name}")).collect();
            each.join(", ")
        };
        format!("{:.2} {}", best.probability(), best.words(named))
    }

    #[test]
    fn a_twin_is_named_beside_the_most_probable_actions() {
        let off = candidate(&[("colour", 1), ("off", 1)], 0.5, Some(0.25));
        let timer = candidate(&[("timer", 1), ("white", 1)], 0.3, Some(0.25 * (1.0 + 1e-13)));
        let less = candidate(&[("on", 2)], 0.2, Some(0.2));
        let pair = "0.80 1 colour, 1 off or 1 timer, 1 white";
        assert_eq!(words(&[off.clone(), timer.clone(), less.clone()]), pair);
        assert_eq!(words(&[off.clone(), less.clone(), timer.clone()]), pair, "wherever it stands");
        assert_eq!(words(&[off.clone(), less]), "0.50 1 colour, 1 off", "another likelihood");
        let third = candidate(&[("toggle", 2)], 0.1, Some(0.25));
        assert_eq!(words(&[off, timer, third]), "0.50 1 colour, 1 off", "several are as likely");
        let unknown = [0.6, 0.4].map(|probability| candidate(&[("on", 1)], probability, None));
        assert_eq!(words(&unknown), "0.60 1 on", "likelihoods that are not known");
    }

    /// Two actions that differ by one each are uncertain by 0.7 √2 = 0.99, so twice that is a ratio of 7.2.
    #[test]
    fn a_ratio_beyond_what_habits_can_turn_round_is_an_answer() {
        let pair = |ratio: f64| {
            let shares = [ratio / (1.0 + ratio), 1.0 / (1.0 + ratio)];
            [("on", shares[0]), ("off", shares[1])].map(|(name, share)| candidate(&[(name, 1)], share, Some(1.0)))
        };
        assert_eq!(words(&pair(7.2)), "1.00 1 on or 1 off");
        assert_eq!(words(&pair(7.3)), "0.88 1 on");
    }
}
