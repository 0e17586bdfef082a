//! The candidates of an identification without JSON between: most of what a file of answers holds.

use sizeleak_frame::{Actions, Candidate};

use super::{Cells, Values};

impl Cells {
    /// As [`Cells::push`] for the candidates of a row; `None` if it is no column of candidates.
    pub(crate) fn push_candidates(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let Values::Lists { lengths, fields } = &mut self.values else { return None };
        let [(_, actions), (_, epsilon), (_, probability), (_, likelihood)] = &mut **fields else { return None };
        lengths.push(candidates.len());
        self.are_there.push(true);
        let mut bytes = size_of::<bool>() + size_of::<usize>();
        for candidate in candidates {
            bytes += actions.push_actions(&candidate.actions)?;
            bytes += epsilon.push_with(|values| values.push_integer(candidate.epsilon));
            // JSON has no other numbers.
            let finite = |number: &f64| number.is_finite();
            let (given, of_sizes) = (Some(candidate.probability), candidate.likelihood);
            bytes += probability.push_with(|values| values.push_float(given.filter(finite)?));
            bytes += likelihood.push_with(|values| values.push_float(of_sizes.filter(finite)?));
        }
        Some(bytes)
    }

    fn push_actions(&mut self, actions: &Actions) -> Option<usize> {
        let Values::Lists { lengths, fields } = &mut self.values else { return None };
        let [(_, names), (_, counts)] = &mut **fields else { return None };
        self.are_there.push(true);
        let (mut length, mut bytes) = (0, size_of::<bool>() + size_of::<usize>());
        for (name, count) in actions.iter() {
            length += 1;
            bytes += names.push_with(|values| values.push_text(name.as_bytes()));
            bytes += counts.push_with(|values| values.push_integer(count.into()));
        }
        lengths.push(length);
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;
    use sizeleak_frame::SharedList;

    use super::*;
    use crate::columns::columns;

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
            let [mut plain, mut fast] = [(); 2].map(|()| Cells::new(candidates.content));
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
            prop_assert_eq!(fast, plain);
        }
    }
}
