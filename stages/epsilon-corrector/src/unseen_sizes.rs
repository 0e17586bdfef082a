//! Commands whose size is far from those of all labelled commands: their ε is a guess, and is reported as one.

use std::collections::BTreeSet;

use sizeleak_model::{EpsilonTuple, Model};

/// Counts commands of unseen sizes, and remembers what was reported.
#[derive(Debug)]
pub(crate) struct UnseenSizes {
    /// The size of the largest action. Without a label within this distance, there are numbers of actions that no
    /// labelled command near the size has.
    max_distance: u64,
    /// The gaps between labelled sizes that were reported, each by the index of the tuple after it.
    reported: BTreeSet<usize>,
    /// How many commands had unseen sizes.
    pub(crate) commands: u64,
}

impl UnseenSizes {
    pub(crate) fn new(model: &Model) -> Self {
        let largest = model.actions.iter().map(|action| action.size_range()[1].unsigned_abs()).max();
        Self { max_distance: largest.unwrap_or(0), reported: BTreeSet::new(), commands: 0 }
    }

    /// Counts a command if its sizes are far from those of the labels, which are in order of size. If it is the first one
    /// between its neighbours, returns how far it is from the nearest label in bytes, and the detail of a notice.
    pub(crate) fn check(&mut self, labels: &[EpsilonTuple], [least, most]: [i64; 2]) -> Option<(u64, String)> {
        let next = labels.partition_point(|tuple| tuple.size < least);
        let (below, above) = (next.checked_sub(1).and_then(|at| labels.get(at)), labels.get(next));
        let distance =
            |tuple: Option<&EpsilonTuple>, size: i64| tuple.map_or(u64::MAX, |tuple| tuple.size.abs_diff(size));
        let is_within = above.is_some_and(|tuple| tuple.size <= most);
        let distance = distance(below, least).min(distance(above, most));
        if is_within || distance <= self.max_distance {
            return None;
        }
        self.commands += 1;
        if !self.reported.insert(next) {
            return None;
        }
        let range = match (below, above) {
            (Some(below), Some(above)) => format!("between {} and {} bytes", below.size, above.size),
            (Some(below), None) => format!("of more than {} bytes", below.size),
            (None, above) => format!("of less than {} bytes", above.map_or(0, |above| above.size)),
        };
        let detail = format!(
            "no labelled command {range} was learned from: their ε is taken from the nearest sizes that were; record \
             commands of such sizes, and learn again"
        );
        Some((distance, detail))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_size_is_unseen_if_it_is_far_from_every_label(
            labels in prop::collection::btree_set(0i64..400, 1..8),
            action in 1u64..60,
            least in 0i64..500,
            width in 0i64..80,
        ) {
            let tuples: Vec<EpsilonTuple> = labels.iter().map(|size| EpsilonTuple::new(*size, 0)).collect();
            let mut unseen = UnseenSizes { max_distance: action, reported: BTreeSet::new(), commands: 0 };
            let near = least.saturating_sub_unsigned(action)..=(least + width).saturating_add_unsigned(action);
            let is_near = labels.iter().any(|label| near.contains(label));
            prop_assert_eq!(unseen.check(&tuples, [least, least + width]).is_none(), is_near);
            prop_assert_eq!(unseen.commands, u64::from(!is_near));
        }
    }
}
