//! Commands by their size.

use crate::leakage::secret_sums::SecretSums;

/// Sums over commands, for each size from the smallest one on.
#[derive(Debug, Clone)]
pub(crate) struct Spread {
    first: usize,
    cells: Vec<SecretSums>,
}

impl Spread {
    /// No command.
    pub(crate) const NONE: Self = Self { first: 0, cells: Vec::new() };

    /// The command without actions.
    pub(crate) fn unit() -> Self {
        Self { first: 0, cells: vec![SecretSums::one(1.0)] }
    }

    /// The sums of each size that some command has.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (usize, &SecretSums)> {
        (self.first..).zip(&self.cells).filter(|(_, sums)| sums.count > 0.0)
    }

    /// Adds the commands of another spread, each `bytes` longer and with its weight times `factor`.
    pub(crate) fn add_scaled(&mut self, other: &Self, bytes: usize, factor: f64) {
        if other.cells.is_empty() {
            return;
        }
        self.cover(other.first + bytes, other.cells.len());
        for (size, sums) in other.cells() {
            if let Some(cell) = self.cells.get_mut(size + bytes - self.first) {
                cell.add(&sums.scaled(factor));
            }
        }
    }

    /// All commands that consist of one of this and one of another spread.
    pub(crate) fn products(&self, other: &Self) -> Self {
        let Some(last) = (self.cells.len() + other.cells.len()).checked_sub(2) else { return Self::NONE };
        let mut products = Self { first: self.first + other.first, cells: vec![SecretSums::NONE; last + 1] };
        for (size, one) in self.cells() {
            for (added, two) in other.cells() {
                if let Some(cell) = products.cells.get_mut(size + added - products.first) {
                    cell.add_products(one, two);
                }
            }
        }
        products
    }

    /// Makes room for so many sizes from `first` on.
    fn cover(&mut self, first: usize, sizes: usize) {
        if self.cells.is_empty() {
            self.first = first;
        }
        if let Some(before) = self.first.checked_sub(first).filter(|before| *before > 0) {
            self.cells.splice(0..0, vec![SecretSums::NONE; before]);
            self.first = first;
        }
        let needed = first + sizes - self.first;
        if self.cells.len() < needed {
            self.cells.resize(needed, SecretSums::NONE);
        }
    }
}
