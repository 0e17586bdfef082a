//! Sums by an index, of which few are not 0.

/// Sums by an index, of which few are not 0.
#[derive(Debug)]
pub(crate) struct SparseSums {
    sums: Vec<f64>,
    /// The indexes of the sums that something was added to.
    touched: Vec<u32>,
}

impl SparseSums {
    /// For indexes below `length`.
    pub(crate) fn new(length: usize) -> Self {
        Self { sums: vec![0.0; length], touched: Vec::new() }
    }

    /// Adds a positive value.
    pub(crate) fn add(&mut self, index: u32, value: f64) {
        let Some(sum) = self.sums.get_mut(index as usize).filter(|_| value > 0.0) else { return };
        if *sum <= 0.0 {
            self.touched.push(index);
        }
        *sum += value;
    }

    /// The sums by ascending index, which are 0 from here on.
    pub(crate) fn take(&mut self) -> Vec<(u32, f64)> {
        self.touched.sort_unstable();
        let sums = &mut self.sums;
        let take = |index: u32| Some((index, std::mem::take(sums.get_mut(index as usize)?)));
        self.touched.drain(..).filter_map(take).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_come_in_order_and_are_gone_afterwards() {
        let mut sums = SparseSums::new(9);
        for (index, value) in [(7, 0.5), (2, 0.125), (7, 0.25), (3, 0.0)] {
            sums.add(index, value);
        }
        assert_eq!(sums.take(), [(2, 0.125), (7, 0.75)]);
        assert_eq!(sums.take(), []);
    }
}
