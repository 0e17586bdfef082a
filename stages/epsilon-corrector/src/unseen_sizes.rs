//! Commands whose size no labelled command comes near: their ε is a guess, which the reader is told.

use std::collections::BTreeSet;

use sizeleak_frame::{Command, Notice, what};
use sizeleak_model::{EpsilonTuple, Model};
use sizeleak_runtime::Stage;

use crate::EpsilonCorrector;

/// What is known of them.
#[derive(Debug)]
pub(crate) struct UnseenSizes {
    /// A size is far from those of the labels if no label is within the largest action: then there are numbers of actions
    /// that none of the labelled commands near it has.
    reach: u64,
    /// The holes between labelled sizes that were told, each by the place of the tuple after it.
    told: BTreeSet<usize>,
    /// How many there were.
    pub(crate) seen: u64,
}

impl UnseenSizes {
    pub(crate) fn of(model: &Model) -> Self {
        let largest = model.actions.iter().map(|action| action.size.unsigned_abs()).max();
        Self { reach: largest.unwrap_or(0), told: BTreeSet::new(), seen: 0 }
    }

    /// Counts a command with these sizes if it is one, and tells it if it is the first in its hole.
    pub(crate) fn notice(&mut self, model: &Model, command: &Command, [least, most]: [i64; 2]) -> Option<Notice> {
        let tuples = model.neighbours.tuples();
        let above = tuples.partition_point(|tuple| tuple.size < least);
        let (below, above_tuple) = (above.checked_sub(1).and_then(|at| tuples.get(at)), tuples.get(above));
        let distance =
            |tuple: Option<&EpsilonTuple>, size: i64| tuple.map_or(u64::MAX, |tuple| tuple.size.abs_diff(size));
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn model(sizes: &[i64], action: i64) -> Model {
        let tuples: Vec<String> = sizes.iter().map(|size| format!("[{size}, 0, 1]")).collect();
        let tuples = tuples.join(", ");
        Model::from_toml(&format!(
            "schema = 1\noverhead = 60\nk = 1\ntuples = [{tuples}]\n[[action]]\nname = \"on\"\nsize = {action}\n\
             [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
             [learned]\nmethod = \"robust\"\ncommands = 3\nversion = \"0.1.0\"\nbasis = \"wire\"\n"
        ))
        .unwrap()
    }

    proptest! {
        /// Unseen sizes are those of which no label is within reach, looked at one by one.
        #[test]
        fn strangers_are_far_from_every_label(
            labels in prop::collection::btree_set(0i64..400, 1..8),
            action in 1i64..60,
            least in 0i64..500,
            width in 0i64..80,
        ) {
            let labels: Vec<i64> = labels.into_iter().collect();
            let model = model(&labels, action);
            let mut strangers = UnseenSizes::of(&model);
            let sizes = [least, least + width];
            let is_near = labels.iter().any(|label| (sizes[0] - action..=sizes[1] + action).contains(label));
            let command =
                Command { time_ns: 1, end_ns: 2, flow: 3, size: 4, plaintext: None, records: 1, replies: 0, reply_bytes: 0 };
            prop_assert_eq!(strangers.notice(&model, &command, sizes).is_none(), is_near);
            prop_assert_eq!(strangers.seen, u64::from(!is_near));
        }
    }
}
