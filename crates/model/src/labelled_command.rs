//! A command whose actions are known from a label: the data that everything is learned from.

use crate::action::MAX_MESSAGE_SIZE;

pub const MAX_COUNT_OF_ACTION: u32 = 1 << 20;

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
    pub fn middle(&self) -> i64 {
        let [least, most] = self.sizes;
        least + (most - least) / 2
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// Whether sizes and counts are plausible and there is one count for each of `actions` actions.
    pub fn is_within_bounds(&self, actions: usize) -> bool {
        let [least, most] = self.sizes;
        (0..=MAX_MESSAGE_SIZE).contains(&least)
            && (least..=MAX_MESSAGE_SIZE).contains(&most)
            && self.counts.len() == actions
            && self.counts.iter().all(|count| *count <= MAX_COUNT_OF_ACTION)
    }
}
