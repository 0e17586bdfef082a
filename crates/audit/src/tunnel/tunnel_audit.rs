//! What commands give away through a tunnel, beside what their sizes alone do, and what other flows send beside a command,
//! as a capture shows it.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use sizeleak_inference::channel::{Channel, EpsilonKnowledge, Observation, Observer};
use sizeleak_inference::space::{CommandSpace, Premises, SpaceError};
use sizeleak_model::Model;
use sizeleak_model::policies::PaddingPolicy;
use thiserror::Error;

use crate::leakage::{Learned, share_in_words};
use crate::padding::PaddedOutputs;
use crate::tunnel::{Burst, Tunnel};

/// The most entries of a channel: some seconds of work, and 256 MB.
const MAX_ENTRIES: usize = 1 << 22;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TunnelAudit {
    /// From sizes alone, without the tunnel.
    pub by_size: Learned,
    /// From the number and the bytes of the tunnel's packets, where nothing else is sent.
    pub through_tunnel: Learned,
    /// The same beside what other flows send at once; `None` without any.
    pub beside_background: Option<Learned>,
    /// The probability that these send something that is not summed over: it is taken to hide nothing, so that no less is
    /// given away than is said.
    pub left_out: f64,
}

impl TunnelAudit {
    pub fn new(
        model: &Model,
        premises: &Premises,
        tunnel: &Tunnel,
        background: Option<&Background>,
    ) -> Result<Self, SpaceError> {
        let space = CommandSpace::new(model, premises)?;
        let knowledge = EpsilonKnowledge::Distribution;
        let sizes = Observation::new(&space, model, Observer::Sizes, knowledge)?.ok_or(SpaceError::TooMany)?;
        let (alone, bursts) = PaddedOutputs::through_tunnel(&sizes, &PaddingPolicy::None, tunnel);
        let beside = background.map(|background| beside(&sizes, &alone, &bursts, background));
        let (beside_background, left_out) = beside.unzip();
        Ok(Self {
            by_size: Learned::from(&sizes),
            through_tunnel: alone.learned(&sizes),
            beside_background,
            left_out: left_out.unwrap_or(0.0),
        })
    }

    /// The figure that matters most, as a sentence about a tunnel.
    pub fn sentence(&self, tunnel: &Tunnel, background: Option<&Background>) -> String {
        let named = |learned: &Learned| share_in_words(learned.command.named);
        let beside = match (&self.beside_background, background) {
            (Some(learned), Some(background)) => {
                format!("; beside {}: {}", flows_in_words(background.flows), named(learned))
            }
            _ => String::new(),
        };
        format!(
            "An observer of a tunnel's packets ({}) names the exact command in {} of cases (without the tunnel: {}{beside}; \
             guessing: {}).",
            tunnel.title(),
            named(&self.through_tunnel),
            named(&self.by_size),
            share_in_words(self.by_size.command.guessing)
        )
    }
}

pub fn flows_in_words(flows: u32) -> String {
    if flows == 1 { "1 flow".to_owned() } else { format!("{flows} flows") }
}

/// What is learned from commands, each seen as one of `bursts`, beside a background, and the probability that this is left
/// out.
fn beside(sizes: &Observation, alone: &PaddedOutputs, bursts: &[Burst], background: &Background) -> (Learned, f64) {
    // Rows that look alike are one, so that there are few.
    let in_tunnel = |channel: &Channel| alone.channel(channel).merged();
    let entries: usize = in_tunnel(&sizes.command).rows.iter().map(|row| row.outputs.len()).sum();
    let (others, left_out) = background.bursts(MAX_ENTRIES / entries.max(bursts.len()).max(1));
    let with = |burst: &Burst| others.iter().map(|(other, share)| (burst.with(*other), *share)).collect::<Vec<_>>();
    let (together, _) = PaddedOutputs::of(bursts.iter().map(with));
    let learned = Learned::of(sizes, |channel| together.channel(&in_tunnel(channel)).measures());
    (Learned { is_exact: learned.is_exact && left_out <= 0.0, ..learned }, left_out)
}

/// What comes at once: within 40 ms before a command or behind it, which is the pause by which the segmenter ends a
/// burst, in nanoseconds.
pub const WINDOW_NS: i64 = 2 * 40_000_000;

pub const MAX_FLOWS: usize = 1 << 20;

const MAX_OBSERVED: usize = 1 << 20;

/// The most bursts of one flow, and the most sums of two bursts for each flow: about a second of work.
const MAX_BURSTS: usize = 1 << 12;
const MAX_SUMS: usize = 1 << 22;

/// What stands for bursts that are left out: it is told apart from all others, so that it hides nothing.
const TOLD_APART: Burst = Burst { packets: 1 << 40, bytes: 0 };

#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundError {
    #[error("it holds no traffic but that which the model is about: name a capture of the home's other traffic")]
    NoFlow,
    #[error("it holds more than a million connections: name a shorter capture")]
    TooManyFlows,
    #[error("it holds more than a million different bursts: name a shorter capture")]
    TooManyBursts,
}

/// All connections of a device with a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conversation {
    /// The device in the home, behind the tunnel.
    pub device: IpAddr,
    pub service: SocketAddr,
    /// The header of its transport with usual options, in bytes.
    pub transport_header: u64,
}

/// The conversations of captures, cut into windows of [`WINDOW_NS`].
#[derive(Debug, Clone, Default)]
pub struct ObservedFlows {
    /// With the window to which more packets may come, and those that came.
    conversations: BTreeMap<Conversation, (i64, Burst)>,
    /// How many windows have which packets, but for those that are still open.
    bursts: BTreeMap<Burst, u64>,
    /// The first window and the last one.
    span: Option<[i64; 2]>,
}

/// What flows send at the time of a command: each of them is some conversation of a capture at some time of it, as likely
/// as any other, and independent of the command and of the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Background {
    pub flows: u32,
    pub conversations: usize,
    pub seconds: f64,
    /// The share of windows in which one of them sends.
    pub busy: f64,
    /// What all of them send at once, with the probability.
    #[serde(skip)]
    bursts: Vec<(Burst, f64)>,
    /// The probability of all other bursts.
    #[serde(skip)]
    left_out: f64,
}

impl ObservedFlows {
    /// Adds a time at which something was captured, in nanoseconds.
    pub fn add_time(&mut self, time_ns: i64) {
        let window = time_ns.div_euclid(WINDOW_NS);
        let [first, last] = self.span.unwrap_or([window; 2]);
        self.span = Some([first.min(window), last.max(window)]);
    }

    /// Adds packets to a device, by their time in nanoseconds.
    ///
    /// # Errors
    /// [`BackgroundError::TooManyFlows`] and [`BackgroundError::TooManyBursts`].
    pub fn add(&mut self, conversation: Conversation, time_ns: i64, packets: Burst) -> Result<(), BackgroundError> {
        self.add_time(time_ns);
        let window = time_ns.div_euclid(WINDOW_NS);
        let (open, burst) = self.conversations.entry(conversation).or_insert((window, Burst::default()));
        if window != *open {
            *self.bursts.entry(std::mem::take(burst)).or_default() += 1;
            *open = window;
        }
        *burst = burst.with(packets);
        match (self.conversations.len(), self.bursts.len()) {
            (MAX_FLOWS.., _) => Err(BackgroundError::TooManyFlows),
            (_, MAX_OBSERVED..) => Err(BackgroundError::TooManyBursts),
            _ => Ok(()),
        }
    }
}

impl Background {
    /// So many flows like those of a capture.
    pub fn new(observed: &ObservedFlows, flows: u32) -> Result<Self, BackgroundError> {
        let Some([first, last]) = observed.span.filter(|_| !observed.conversations.is_empty()) else {
            return Err(BackgroundError::NoFlow);
        };
        let mut bursts = observed.bursts.clone();
        for (_, burst) in observed.conversations.values() {
            *bursts.entry(*burst).or_default() += 1;
        }
        let busy: u64 = bursts.values().sum();
        let of_capture = last.abs_diff(first) as f64 + 1.0;
        // Windows that packets out of order open again count as often.
        let windows = (of_capture * observed.conversations.len() as f64).max(busy as f64);
        let silent = (Burst::default(), 1.0 - busy as f64 / windows);
        let sent = bursts.into_iter().map(|(burst, times)| (burst, times as f64 / windows));
        let one: Vec<(Burst, f64)> = std::iter::once(silent).chain(sent).collect();
        let (one, left_of_one) = most_probable(one, MAX_BURSTS);
        let (mut bursts, mut left_out) = (vec![(Burst::default(), 1.0)], 0.0);
        for _ in 0..flows {
            let (kept, rare) = most_probable(bursts, MAX_SUMS / one.len());
            left_out += rare;
            left_out += left_of_one * (1.0 - left_out);
            bursts = sums(&kept, &one);
        }
        Ok(Self {
            flows,
            conversations: observed.conversations.len(),
            seconds: of_capture * WINDOW_NS as f64 / 1e9,
            busy: busy as f64 / windows,
            bursts,
            left_out,
        })
    }

    /// What is sent at once, at most so many bursts, with their probabilities. Returns also the probability of those that
    /// are left out: an observer is taken to know what was sent then, which is no less than is seen.
    fn bursts(&self, most: usize) -> (Vec<(Burst, f64)>, f64) {
        let (mut bursts, rare) = most_probable(self.bursts.clone(), most.max(1));
        let left_out = self.left_out + rare;
        bursts.extend((left_out > 0.0).then_some((TOLD_APART, left_out)));
        (bursts, left_out)
    }
}

/// What two send at once who are independent.
fn sums(one: &[(Burst, f64)], other: &[(Burst, f64)]) -> Vec<(Burst, f64)> {
    let mut all: HashMap<Burst, f64> = HashMap::new();
    for (burst, probability) in one {
        for (other, share) in other {
            *all.entry(burst.with(*other)).or_default() += probability * share;
        }
    }
    let mut all: Vec<(Burst, f64)> = all.into_iter().collect();
    all.sort_unstable_by_key(|(burst, _)| *burst);
    all
}

/// The most probable of bursts, at most so many, and the probability of the others.
fn most_probable(mut bursts: Vec<(Burst, f64)>, most: usize) -> (Vec<(Burst, f64)>, f64) {
    bursts.sort_by(|(one, p), (other, q)| q.total_cmp(p).then(one.cmp(other)));
    let rare = bursts.iter().skip(most).map(|(_, probability)| probability).sum::<f64>() + 0.0;
    bursts.truncate(most);
    (bursts, rare)
}
