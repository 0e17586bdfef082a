//! Which turns of a walk lead to an end, in few bytes: so that the many that do not are never looked at.

/// Which numbers of an action lead to an end, a bit each; the last one stands for all that are as great and greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Open(u32);

impl Open {
    /// The place of the last bit.
    const LAST: usize = 31;

    /// Adds a number.
    pub(crate) fn insert(&mut self, taken: usize) {
        self.0 |= 1 << taken.min(Self::LAST);
    }

    /// The numbers below `end`, least first; beyond the last bit each one, whether it leads to an end or not.
    pub(crate) fn iter(self, end: usize) -> impl Iterator<Item = usize> {
        let mut bits = self.0;
        let mut beyond = if self.0 >> Self::LAST == 1 { Self::LAST + 1..end } else { 0..0 };
        std::iter::from_fn(move || {
            if bits == 0 {
                return beyond.next();
            }
            let taken = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            Some(taken)
        })
    }

    /// The number, where it is the only one.
    pub(crate) fn only(self) -> Option<usize> {
        (self.0.is_power_of_two() && self.0 >> Self::LAST == 0).then(|| self.0.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_number_is_missing(numbers in prop::collection::btree_set(0usize..65, 0..6)) {
            let mut open = Open::default();
            for number in &numbers {
                open.insert(*number);
            }
            let end = numbers.last().map_or(0, |last| last + 1);
            let found: Vec<usize> = open.iter(end).collect();
            prop_assert!(found.is_sorted_by(|one, next| one < next) && found.iter().all(|number| *number < end));
            prop_assert!(numbers.iter().all(|number| found.contains(number)));
            let few = numbers.iter().copied().filter(|number| *number < Open::LAST);
            prop_assert!(found.iter().copied().filter(|number| *number < Open::LAST).eq(few));
            if let Some(only) = open.only() {
                prop_assert_eq!(found, vec![only]);
            }
        }
    }
}
