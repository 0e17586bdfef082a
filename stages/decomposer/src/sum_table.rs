//! A table's memory: a row of cells for each sum, made once, in order, when a sum first asks for it.

/// A table takes this many bytes at most.
pub(crate) const MAX_TABLE_BYTES: usize = 256 << 20;

/// Rows of equal width, one for each sum from 0 on.
#[derive(Debug, Clone)]
pub(crate) struct Cache<T> {
    width: usize,
    /// There can be this many rows.
    max_rows: usize,
    rows: usize,
    cells: Vec<T>,
}

impl<T: Copy + Default> Cache<T> {
    /// An empty cache of rows of this width, for sums up to `max_sum` where that is known.
    pub(crate) fn new(width: usize, max_sum: Option<usize>) -> Self {
        let fitting = MAX_TABLE_BYTES / size_of::<T>() / width.max(1);
        let wanted = max_sum.map_or(usize::MAX, |sum| sum.saturating_add(1));
        Self { width, max_rows: fitting.min(wanted), rows: 0, cells: Vec::new() }
    }

    /// Whether there is room for the row of this sum.
    pub(crate) fn reaches(&self, sum: usize) -> bool {
        sum < self.max_rows
    }

    /// The largest sum there is room for.
    pub(crate) fn reach(&self) -> usize {
        self.max_rows.saturating_sub(1)
    }

    /// Makes all rows up to that of `sum`, which must be in reach: `fill` gets the sum, the rows before and its row.
    pub(crate) fn grow(&mut self, sum: usize, mut fill: impl FnMut(usize, &Rows<'_, T>, &mut [T])) {
        if sum < self.rows || !self.reaches(sum) {
            return;
        }
        let wanted = (sum + 1) * self.width;
        if wanted > self.cells.capacity() {
            // By doubling, so that rows are moved few times; never beyond what the table may take.
            let capacity = wanted.max(self.cells.capacity() * 2).min(self.max_rows * self.width);
            self.cells.reserve_exact(capacity - self.cells.len());
        }
        self.cells.resize(wanted, T::default());
        for sum in self.rows..=sum {
            let (before, rest) = self.cells.split_at_mut(sum * self.width);
            let row = rest.get_mut(..self.width).unwrap_or_default();
            fill(sum, &Rows { width: self.width, cells: before }, row);
        }
        self.rows = sum + 1;
    }

    /// A cell of a row that was made; the default in any other.
    pub(crate) fn cell(&self, sum: usize, at: usize) -> T {
        self.cells.get(sum * self.width + at).copied().unwrap_or_default()
    }
}

/// The rows of all smaller sums.
pub(crate) struct Rows<'a, T> {
    width: usize,
    cells: &'a [T],
}

impl<'a, T> Rows<'a, T> {
    /// Some cells of a sum's row.
    pub(crate) fn cells(&self, sum: usize, from: usize, len: usize) -> &'a [T] {
        let start = sum * self.width + from;
        self.cells.get(start..start + len).unwrap_or_default()
    }

    /// A cell of a sum's row.
    pub(crate) fn cell(&self, sum: usize, at: usize) -> Option<T>
    where
        T: Copy,
    {
        self.cells.get(sum * self.width + at).copied()
    }

    /// How many cells a row has.
    pub(crate) fn width(&self) -> usize {
        self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_made_once_and_in_order() {
        let mut cache = Cache::<u64>::new(2, Some(9));
        let mut made = Vec::new();
        for wanted in [3, 1, 3, 9, 10, usize::MAX] {
            cache.grow(wanted, |sum, before, row| {
                made.push(sum);
                let last = sum.checked_sub(1).map_or(0, |sum| before.cells(sum, 1, 1)[0]);
                row.copy_from_slice(&[7, last + 1]);
            });
        }
        assert_eq!(made, (0..10).collect::<Vec<_>>());
        assert_eq!((cache.cell(9, 0), cache.cell(9, 1), cache.cell(10, 0)), (7, 10, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let cache = Cache::<u64>::new(1 << 20, None);
        assert_eq!(cache.reach(), 31);
        assert!(cache.reaches(31) && !cache.reaches(32));
        assert_eq!(Cache::<u64>::new(0, Some(usize::MAX)).reach(), (MAX_TABLE_BYTES >> 3) - 1);
    }
}
