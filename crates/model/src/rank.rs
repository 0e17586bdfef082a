//! A sort key: greater weights first, equal weights in order of their index.

/// The rank of a weighted item: the least comes first. Weight and index are one integer, which compares several times
/// faster than the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u128);

impl Rank {
    /// The rank of a weight, or of its logarithm. Weights are ordered by [`f64::total_cmp`].
    #[inline]
    pub fn new(weight: f64, index: usize) -> Self {
        let bits = weight.to_bits();
        let descending = if weight.is_sign_negative() { bits } else { !(bits | 1 << 63) };
        Self(u128::from(descending) << 64 | index as u128)
    }

    #[inline]
    pub fn index(self) -> usize {
        self.0 as u64 as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranks_order_by_weight_then_index(one: f64, other: f64, indices: [u32; 2]) {
            let [at, other_at] = indices.map(|index| index as usize);
            for (one, other) in [(one, other), (-one, other)] {
                let expected = other.total_cmp(&one).then(at.cmp(&other_at));
                prop_assert_eq!(Rank::new(one, at).cmp(&Rank::new(other, other_at)), expected);
            }
            prop_assert_eq!(Rank::new(one, at).cmp(&Rank::new(one, other_at)), at.cmp(&other_at));
            prop_assert_eq!(Rank::new(-one, at).index(), at);
        }
    }
}
