//! A command whose actions are known from a label: the data that everything is learned from.

/// Largest message size accepted, in bytes.
pub(crate) const LARGEST_SIZE: i64 = 1 << 32;

/// Largest count of one action in a command.
pub(crate) const LARGEST_COUNT: u32 = 1 << 20;

/// A command whose actions are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledCommand {
    /// Smallest and largest possible |s|, in bytes, in the basis of the model. They differ if a block cipher pads.
    pub sizes: [i64; 2],
    /// How often each action occurs, in the order of the actions' names.
    pub counts: Vec<u32>,
    /// Number of records the gateway sent in reply.
    pub replies: u32,
    /// Bytes of these records, in the same basis.
    pub reply_bytes: i64,
    /// The size of each of them in bytes, in the same basis; `None` if they are not known one by one.
    pub single_replies: Option<Vec<i64>>,
    /// Whether the replies are to this command alone; not where another command overlapped it.
    pub has_own_replies: bool,
}

impl LabelledCommand {
    /// The middle of the size range, rounded down.
    pub(crate) fn middle(&self) -> i64 {
        let [least, most] = self.sizes;
        least + (most - least) / 2
    }

    /// Total number of actions.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// Whether sizes and counts are plausible and there is one count for each of `actions` actions.
    pub(crate) fn is_within_bounds(&self, actions: usize) -> bool {
        let [least, most] = self.sizes;
        (0..=LARGEST_SIZE).contains(&least)
            && (least..=LARGEST_SIZE).contains(&most)
            && self.counts.len() == actions
            && self.counts.iter().all(|count| *count <= LARGEST_COUNT)
    }
}

/// Bytes of the actions of a command: Σ |aᵢ|·nbᵢ.
pub(crate) fn action_bytes(sizes: &[i64], counts: &[u32]) -> i64 {
    let products = sizes.iter().zip(counts).map(|(size, count)| size.saturating_mul(i64::from(*count)));
    products.fold(0, i64::saturating_add)
}
