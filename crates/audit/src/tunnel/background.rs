//! What other flows send beside a command, as a capture shows it.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use crate::tunnel::packets::Burst;

/// What comes at once: within 40 ms before a command or behind it, which is the pause by which the segmenter ends a
/// burst, in nanoseconds.
pub const WINDOW_NS: i64 = 2 * 40_000_000;

/// The most flows of a capture.
const MAX_FLOWS: usize = 1 << 20;

/// The most different bursts of several flows together.
const MAX_BURSTS: usize = 1 << 20;

/// The most sums of two bursts: some seconds of work.
const MAX_SUMS: usize = 1 << 25;

/// Less probable bursts are taken to hide nothing, so that no less is given away than is said: 10⁻⁹ of all for as many as
/// there may be.
const MIN_PROBABILITY: f64 = 1e-15;

/// Why nothing is known of background flows.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundError {
    /// There are none.
    #[error("it holds no connection but those that the model is about: name a capture of the home's other traffic")]
    NoFlow,
    /// There are more than are counted.
    #[error("it holds more than a million connections: name a shorter capture")]
    TooManyFlows,
    /// They send too much.
    #[error("so many flows send too many different bursts to sum over: name fewer flows with `--background`")]
    TooManyBursts,
}

/// Flows of a capture, cut into windows of [`WINDOW_NS`] from the first packet of each to its last one.
#[derive(Debug, Clone, Default)]
pub struct ObservedFlows {
    flows: BTreeMap<u64, FlowWindows>,
    /// How many windows have which packets, but for those that are still open.
    bursts: BTreeMap<Burst, u64>,
}

/// The windows of a flow, by their time.
#[derive(Debug, Clone, Copy)]
struct FlowWindows {
    first: i64,
    last: i64,
    open: i64,
    burst: Burst,
}

/// What flows send at the time of a command: each of them is some flow of a capture at some time of its life, as likely
/// as any other, and independent of the command and of the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Background {
    /// How many flows there are.
    pub flows: u32,
    /// How many flows the capture has.
    pub of_flows: usize,
    /// How long these last together, in seconds.
    pub seconds: f64,
    /// The share of windows in which one of them sends.
    pub busy: f64,
    /// What all of them send at once, with the probability.
    #[serde(skip)]
    pub(crate) bursts: Vec<(Burst, f64)>,
}

impl ObservedFlows {
    /// Adds a packet of a flow, by its time in nanoseconds; `None` for one that goes the other way.
    ///
    /// # Errors
    /// [`BackgroundError::TooManyFlows`] and [`BackgroundError::TooManyBursts`].
    pub fn add(&mut self, flow: u64, time_ns: i64, packet: Option<Burst>) -> Result<(), BackgroundError> {
        let window = time_ns.div_euclid(WINDOW_NS);
        let new = FlowWindows { first: window, last: window, open: window, burst: Burst::default() };
        let of_flow = self.flows.entry(flow).or_insert(new);
        of_flow.first = of_flow.first.min(window);
        of_flow.last = of_flow.last.max(window);
        if window != of_flow.open {
            count(&mut self.bursts, of_flow.burst);
            (of_flow.open, of_flow.burst) = (window, Burst::default());
        }
        of_flow.burst = of_flow.burst.with(packet.unwrap_or_default());
        match (self.flows.len(), self.bursts.len()) {
            (MAX_FLOWS.., _) => Err(BackgroundError::TooManyFlows),
            (_, MAX_BURSTS..) => Err(BackgroundError::TooManyBursts),
            _ => Ok(()),
        }
    }
}

fn count(bursts: &mut BTreeMap<Burst, u64>, burst: Burst) {
    if burst.packets > 0 {
        *bursts.entry(burst).or_default() += 1;
    }
}

impl Background {
    /// So many flows like those of a capture.
    ///
    /// # Errors
    /// [`BackgroundError::NoFlow`] and [`BackgroundError::TooManyBursts`].
    pub fn new(observed: &ObservedFlows, flows: u32) -> Result<Self, BackgroundError> {
        let mut bursts = observed.bursts.clone();
        observed.flows.values().for_each(|of_flow| count(&mut bursts, of_flow.burst));
        let busy: u64 = bursts.values().sum();
        let windows: i64 = observed.flows.values().map(|of_flow| of_flow.last - of_flow.first + 1).sum();
        // Windows that packets out of order open again count as often.
        let windows = windows.unsigned_abs().max(busy) as f64;
        if observed.flows.is_empty() {
            return Err(BackgroundError::NoFlow);
        }
        let silent = (Burst::default(), 1.0 - busy as f64 / windows);
        let sent = bursts.into_iter().map(|(burst, times)| (burst, times as f64 / windows));
        let one: Vec<(Burst, f64)> = std::iter::once(silent).chain(sent).collect();
        let mut all = vec![(Burst::default(), 1.0)];
        for _ in 0..flows {
            all = sums(&all, &one)?;
        }
        Ok(Self {
            flows,
            of_flows: observed.flows.len(),
            seconds: windows * WINDOW_NS as f64 / 1e9,
            busy: busy as f64 / windows,
            bursts: all,
        })
    }
}

/// What two send at once who are independent.
fn sums(one: &[(Burst, f64)], other: &[(Burst, f64)]) -> Result<Vec<(Burst, f64)>, BackgroundError> {
    if one.len().saturating_mul(other.len()) > MAX_SUMS {
        return Err(BackgroundError::TooManyBursts);
    }
    let mut all: BTreeMap<Burst, f64> = BTreeMap::new();
    for (burst, probability) in one {
        for (other, share) in other {
            *all.entry(burst.with(*other)).or_default() += probability * share;
        }
    }
    let rare: f64 = all.values().filter(|probability| **probability < MIN_PROBABILITY).sum();
    all.retain(|_, probability| *probability >= MIN_PROBABILITY);
    *all.entry(Burst::default()).or_default() += rare;
    Ok(all.into_iter().collect())
}
