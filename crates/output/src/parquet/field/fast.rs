//! The candidates of an identification without JSON between: most of what a file of answers holds.

use sizeleak_frame::{Actions, Candidate, Frame, Identification};

use super::{Field, Levels, List};

/// An identification as a row needs it besides the list of its candidates, of which it keeps the first; and that list.
pub(crate) fn without_candidates(frame: &Frame) -> Option<(Frame, &[Candidate])> {
    let Frame::Identification(answer) = frame else { return None };
    let first = answer.candidates.iter().take(1).cloned().collect();
    let row = Identification { candidates: first, ..Identification::clone(answer) };
    Some((row.into(), &answer.candidates))
}

impl Field {
    /// As [`Field::push`] for the candidates of a row; `None` if it is no column of candidates.
    pub(crate) fn push_candidates(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let Self::List(list) = self else { return None };
        if candidates.is_empty() {
            return Some(list.push_none(Levels { definition: 1, repetition: 0 }));
        }
        let depth = list.depth;
        let [
            (_, Self::List(actions)),
            (_, Self::Leaf(epsilon)),
            (_, Self::Leaf(probability)),
            (_, Self::Leaf(likelihood)),
        ] = &mut *list.fields
        else {
            return None;
        };
        let mut bytes = 0;
        for (at, candidate) in candidates.iter().enumerate() {
            let levels = Levels { definition: 2, repetition: if at == 0 { 0 } else { depth } };
            bytes += actions.push_actions(&candidate.actions, levels)?;
            bytes += epsilon.push_with(levels, |values| values.push_integer(candidate.epsilon));
            // JSON has no other numbers.
            let finite = |number: &f64| number.is_finite();
            let (given, of_sizes) = (Some(candidate.probability), candidate.likelihood);
            bytes += probability.push_with(levels, |values| values.push_float(given.filter(finite)?));
            bytes += likelihood.push_with(levels, |values| values.push_float(of_sizes.filter(finite)?));
        }
        Some(bytes)
    }
}

impl List {
    fn push_actions(&mut self, actions: &Actions, Levels { definition, mut repetition }: Levels) -> Option<usize> {
        if actions.is_empty() {
            return Some(self.push_none(Levels { definition: definition + 1, repetition }));
        }
        let [(_, Field::Leaf(names)), (_, Field::Leaf(counts))] = &mut *self.fields else { return None };
        let mut bytes = 0;
        for (name, count) in actions.iter() {
            let levels = Levels { definition: definition + 2, repetition };
            bytes += names.push_with(levels, |values| values.push_bytes(name.as_bytes()));
            bytes += counts.push_with(levels, |values| values.push_integer(count.into()));
            repetition = self.depth;
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;
    use sizeleak_frame::SharedList;

    use super::super::{Leaf, Values};
    use super::*;
    use crate::columns::columns;

    /// What a column of candidates holds: sizes, levels and values.
    fn content(field: &mut Field) -> String {
        let leaf = |leaf: &mut Leaf| {
            let values = match &leaf.values {
                Values::Integers(values) => format!("{values:?}"),
                Values::Floats(values) => format!("{values:?}"),
                Values::Flags(values) => format!("{values:?}"),
                Values::Bytes(values) => format!("{values:?}"),
            };
            format!("{:?} {:?} {values}", leaf.definitions, leaf.repetitions)
        };
        field.leaves().into_iter().map(leaf).collect::<Vec<_>>().join("\n")
    }

    proptest! {
        #[test]
        fn candidates_are_those_of_json(
            rows in prop::collection::vec(
                prop::collection::vec(
                    (0_usize..8, any::<i64>(), prop::num::f64::ANY, prop::option::of(prop::num::f64::ANY)),
                    0..4,
                ),
                1..5,
            ),
        ) {
            let candidates = columns("identification").unwrap().into_iter().find(|it| it.name == "candidates").unwrap();
            let [mut plain, mut fast] = [(); 2].map(|()| Field::column(candidates.content));
            for row in rows {
                let names: SharedList<Arc<str>> = ["on", "off", "dim"].map(Into::into).into();
                let counts = |chosen: usize| (0..3_u32).filter(move |at| chosen >> at & 1 == 1).map(|at| (at, at + 1));
                let all: Vec<_> = row.iter().flat_map(|(chosen, ..)| counts(*chosen)).collect();
                let ends = row.iter().scan(0, |end, (chosen, ..)| {
                    *end += counts(*chosen).count() as u32;
                    Some(*end)
                });
                let actions = Actions::of_many(names, all, ends.collect::<Vec<_>>());
                let made = row.iter().zip(actions);
                let row: Vec<Candidate> = made
                    .map(|((_, epsilon, probability, likelihood), actions)| Candidate {
                        actions,
                        epsilon: *epsilon,
                        probability: *probability,
                        likelihood: *likelihood,
                    })
                    .collect();
                let bytes = plain.push(Some(&json!(row)), &[]);
                prop_assert_eq!(fast.push_candidates(&row), Some(bytes));
            }
            prop_assert_eq!(content(&mut fast), content(&mut plain));
        }
    }
}
