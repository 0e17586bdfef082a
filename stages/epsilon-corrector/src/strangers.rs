//! Commands whose size no labelled command comes near: their ε is a guess, which the reader is told.

use std::collections::BTreeSet;

use sizeleak_frame::{Command, Notice, what};
use sizeleak_signature::{Model, Tuple};
use sizeleak_stage::Stage;

use crate::EpsilonCorrector;

/// What is known of them.
#[derive(Debug)]
pub(crate) struct Strangers {
    /// A size is far from those of the labels if no label is within the largest action: then there are numbers of actions
    /// that none of the labelled commands near it has.
    reach: u64,
    /// The holes between labelled sizes that were told, each by the place of the tuple after it.
    told: BTreeSet<usize>,
    /// How many there were.
    pub(crate) seen: u64,
}

impl Strangers {
    pub(crate) fn of(model: &Model) -> Self {
        let largest = model.actions.iter().map(|action| action.size.unsigned_abs()).max();
        Self { reach: largest.unwrap_or(0), told: BTreeSet::new(), seen: 0 }
    }

    /// Counts a command with these sizes if it is one, and tells it if it is the first in its hole.
    pub(crate) fn notice(&mut self, model: &Model, command: &Command, [least, most]: [i64; 2]) -> Option<Notice> {
        let tuples = model.neighbours.tuples();
        let above = tuples.partition_point(|tuple| tuple.size < least);
        let (below, above_tuple) = (above.checked_sub(1).and_then(|at| tuples.get(at)), tuples.get(above));
        let distance = |tuple: Option<&Tuple>, size: i64| tuple.map_or(u64::MAX, |tuple| tuple.size.abs_diff(size));
        let within = above_tuple.is_some_and(|tuple| tuple.size <= most);
        let distance = distance(below, least).min(distance(above_tuple, most));
        if within || distance <= self.reach {
            return None;
        }
        self.seen += 1;
        if !self.told.insert(above) {
            return None;
        }
        let hole = match (below, above_tuple) {
            (Some(below), Some(above)) => format!("between {} and {} bytes", below.size, above.size),
            (Some(below), None) => format!("of more than {} bytes", below.size),
            (None, above) => format!("of less than {} bytes", above.map_or(0, |above| above.size)),
        };
        let detail = format!(
            "no labelled command {hole} was learned from: ε is taken to be as beyond; learn with commands of such sizes"
        );
        Some(Notice {
            time_ns: Some(command.time_ns),
            stage: EpsilonCorrector::NAME.into(),
            flow: Some(command.flow),
            what: what::ASSUMED.into(),
            bytes: Some(distance),
            detail: Some(detail),
        })
    }
}
