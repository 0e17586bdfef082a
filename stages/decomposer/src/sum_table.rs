//! A table with one row of cells for each sum. Rows are computed in order, when a sum is first asked for.

/// The most bytes of memory that a table takes.
pub(crate) const MAX_TABLE_BYTES: usize = 256 << 20;

/// Rows of equal width, one for each sum from 0 on.
#[derive(Debug, Clone)]
pub(crate) struct SumTable<T> {
    width: usize,
    /// There is room for this many rows.
    max_rows: usize,
    rows: usize,
    cells: Vec<T>,
}

impl<T: Copy + Default> SumTable<T> {
    /// An empty table with rows of this width, for sums up to `max_sum` where there is a largest one.
    pub(crate) fn new(width: usize, max_sum: Option<usize>) -> Self {
        let fitting = MAX_TABLE_BYTES / size_of::<T>() / width.max(1);
        let wanted = max_sum.map_or(usize::MAX, |sum| sum.saturating_add(1));
        Self { width, max_rows: fitting.min(wanted), rows: 0, cells: Vec::new() }
    }

    /// Whether there is room for the row of this sum.
    pub(crate) fn has_room_for(&self, sum: usize) -> bool {
        sum < self.max_rows
    }

    /// The largest sum there is room for.
    pub(crate) fn max_sum(&self) -> usize {
        self.max_rows.saturating_sub(1)
    }

    /// Computes all missing rows up to that of `sum`, if there is room for it. `fill` gets the sum, the rows of all
    /// smaller sums, and the row to fill.
    pub(crate) fn grow(&mut self, sum: usize, mut fill: impl FnMut(usize, &SmallerSums<'_, T>, &mut [T])) {
        if sum < self.rows || !self.has_room_for(sum) {
            return;
        }
        let wanted = (sum + 1) * self.width;
        if wanted > self.cells.capacity() {
            // Doubling keeps the number of moves small.
            let capacity = wanted.max(self.cells.capacity() * 2).min(self.max_rows * self.width);
            self.cells.reserve_exact(capacity - self.cells.len());
        }
        self.cells.resize(wanted, T::default());
        for sum in self.rows..=sum {
            let (smaller, rest) = self.cells.split_at_mut(sum * self.width);
            let row = rest.get_mut(..self.width).unwrap_or_default();
            fill(sum, &SmallerSums { width: self.width, cells: smaller }, row);
        }
        self.rows = sum + 1;
    }

    /// A cell of a computed row; the default outside of the table.
    pub(crate) fn cell(&self, sum: usize, at: usize) -> T {
        self.cells.get(sum * self.width + at).copied().unwrap_or_default()
    }
}

/// The rows of all sums below the one being computed.
pub(crate) struct SmallerSums<'a, T> {
    width: usize,
    cells: &'a [T],
}

impl<'a, T: Copy> SmallerSums<'a, T> {
    /// Some cells of a sum's row.
    pub(crate) fn cells(&self, sum: usize, from: usize, len: usize) -> &'a [T] {
        let start = sum * self.width + from;
        self.cells.get(start..start + len).unwrap_or_default()
    }

    /// A cell of a sum's row.
    pub(crate) fn cell(&self, sum: usize, at: usize) -> Option<T> {
        self.cells.get(sum * self.width + at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_computed_once_and_in_order() {
        let mut table = SumTable::<u64>::new(2, Some(9));
        let mut computed = Vec::new();
        for wanted in [3, 1, 3, 9, 10, usize::MAX] {
            table.grow(wanted, |sum, smaller, row| {
                computed.push(sum);
                let last = sum.checked_sub(1).map_or(0, |sum| smaller.cells(sum, 1, 1)[0]);
                row.copy_from_slice(&[7, last + 1]);
            });
        }
        assert_eq!(computed, (0..10).collect::<Vec<_>>());
        assert_eq!((table.cell(9, 0), table.cell(9, 1), table.cell(10, 0)), (7, 10, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let table = SumTable::<u64>::new(1 << 20, None);
        assert_eq!(table.max_sum(), 31);
        assert!(table.has_room_for(31) && !table.has_room_for(32));
        assert_eq!(SumTable::<u64>::new(0, Some(usize::MAX)).max_sum(), (MAX_TABLE_BYTES >> 3) - 1);
    }
}
