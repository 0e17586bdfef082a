//! What is known of sizes: a table that most are found in by one step.

/// Sizes below this, all that one record can have among them, have a place of their own in the table.
const DENSE: usize = 1 << 15;

/// In place of a place: of this size nothing is known.
const NOTHING: u32 = u32::MAX;

/// Entries by size.
#[derive(Debug)]
pub(crate) struct BySize<T> {
    /// In order of size.
    entries: Vec<(u32, T)>,
    /// For each size up to the greatest below `DENSE`, where its entry is.
    places: Vec<u32>,
}

impl<T> BySize<T> {
    /// The table of these entries; of those with the same size the first counts.
    pub(crate) fn new(entries: impl IntoIterator<Item = (u32, T)>) -> Self {
        let mut entries: Vec<(u32, T)> = entries.into_iter().collect();
        entries.sort_by_key(|(size, _)| *size);
        entries.dedup_by_key(|(size, _)| *size);
        let mut places = Vec::new();
        for (place, size) in (0..NOTHING).zip(entries.iter().map(|(size, _)| *size as usize)) {
            if size < DENSE {
                places.resize(size, NOTHING);
                places.push(place);
            }
        }
        Self { entries, places }
    }

    /// What is known of a size.
    #[inline]
    pub(crate) fn get(&self, size: u32) -> Option<&T> {
        let place = match self.places.get(size as usize) {
            Some(place) => *place as usize,
            None if self.entries.last().is_some_and(|(greatest, _)| size <= *greatest) => self.search(size)?,
            None => return None,
        };
        self.entries.get(place).map(|(_, known)| known)
    }

    fn search(&self, size: u32) -> Option<usize> {
        self.entries.binary_search_by_key(&size, |(size, _)| *size).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Sizes small and great, next to each other and at the end of the dense ones.
    fn size() -> impl Strategy<Value = u32> {
        prop_oneof![0u32..40, 32_760u32..32_776, u32::MAX - 8..=u32::MAX]
    }

    proptest! {
        /// Of each size it knows what a map of the same entries does, and of no other anything.
        #[test]
        fn it_knows_what_a_map_does(sizes in prop::collection::vec(size(), 0..30), asked in prop::collection::vec(size(), 50)) {
            let map: BTreeMap<u32, usize> = sizes.iter().copied().zip(0..sizes.len()).rev().collect();
            let table = BySize::new(sizes.iter().copied().zip(0..));
            for size in sizes.into_iter().chain(asked) {
                prop_assert_eq!(table.get(size), map.get(&size));
            }
        }
    }
}
