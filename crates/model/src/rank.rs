//! The order of what is weighed: greater weights first, of equal ones what came first.

/// Where something stands among others by its weight and its place: the less, the earlier. It is one integer, which is compared
/// in a fraction of the time that weight and place take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u128);

impl Rank {
    /// The rank of a weight, or of the logarithm of one, at a place. Weights are ordered as [`f64::total_cmp`] orders them.
    #[inline]
    pub fn new(weight: f64, place: usize) -> Self {
        let bits = weight.to_bits();
        let descending = if weight.is_sign_negative() { bits } else { !(bits | 1 << 63) };
        Self(u128::from(descending) << 64 | place as u128)
    }

    /// The place.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as u64 as usize
    }

    /// Whether the other has the same weight, to the last bit.
    #[inline]
    pub fn is_tied_with(self, other: Self) -> bool {
        self.0 >> 64 == other.0 >> 64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranks_are_of_weights_before_places(one: f64, other: f64, places: [u32; 2]) {
            let [at, other_at] = places.map(|place| place as usize);
            for (one, other) in [(one, other), (-one, other)] {
                let expected = other.total_cmp(&one).then(at.cmp(&other_at));
                prop_assert_eq!(Rank::new(one, at).cmp(&Rank::new(other, other_at)), expected);
                let is_tied = Rank::new(one, at).is_tied_with(Rank::new(other, other_at));
                prop_assert_eq!(is_tied, one.total_cmp(&other).is_eq());
            }
            prop_assert_eq!(Rank::new(one, at).cmp(&Rank::new(one, other_at)), at.cmp(&other_at));
            prop_assert!(Rank::new(one, at).is_tied_with(Rank::new(one, other_at)));
            prop_assert_eq!(Rank::new(-one, at).index(), at);
        }
    }
}
