//! A model of a gateway whose messages have become longer or shorter.

use crate::action::{MAX_ACTION_SIZE, MAX_MESSAGE_SIZE};
use crate::{Model, ReplyClass, SingleReplies};

impl Model {
    /// The model of the same gateway where commands are longer by `bytes`, and each single reply by `reply_bytes`; both
    /// may be negative.
    ///
    /// |ac| grows. The ⟨size, ε⟩ tuples stay as they are: ε is what length fields add at a size, and they count all bytes
    /// of a message, whatever they are for.
    #[must_use]
    pub fn with_longer_messages(mut self, bytes: i64, reply_bytes: i64) -> Self {
        self.overhead = self.overhead.saturating_add(bytes);
        self.single_replies = self.single_replies.map(|replies| replies.longer_by(reply_bytes));
        if let Some(of_all) = &mut self.reply_bytes {
            of_all.per_reply += reply_bytes as f64;
        }
        self
    }

    /// The model of the same gateway where one action alone is longer by some bytes, which may be negative. `None` if it has
    /// no such action, or no bytes were left of it.
    #[must_use]
    pub fn with_longer_action(mut self, name: &str, bytes: i64) -> Option<Self> {
        let action = self.actions.iter_mut().find(|action| action.name == name)?;
        action.size = action.size.checked_add(bytes).filter(|size| (1..=MAX_ACTION_SIZE).contains(size))?;
        Some(self)
    }
}

impl SingleReplies {
    /// The same where each reply is longer by some bytes, and so are foreign records, which the same gateway sends; of
    /// several replies in one record each is longer. Sizes stay at least 0.
    #[must_use]
    pub fn longer_by(mut self, bytes: i64) -> Self {
        let of_classes = self.classes.iter_mut().map(|ReplyClass { sizes, .. }| sizes);
        for (size, _) in of_classes.chain([&mut self.foreign_sizes]).flatten() {
            *size = size.saturating_add(bytes).clamp(0, MAX_MESSAGE_SIZE);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplyBytesModel;
    use crate::testing::model;

    #[test]
    fn overhead_and_replies_grow_and_nothing_else_changes() {
        let mut old = model();
        let class = ReplyClass { missing: 0.01, unseen: 0.0, sizes: vec![(3, 2), (30, 5)] };
        old.single_replies = Some(SingleReplies {
            merged: 0.0,
            shared: 0,
            foreign: 0.1,
            foreign_sizes: vec![(40, 1)],
            per_command: vec![0],
            per_action: vec![vec![1]; old.actions.len()],
            classes: vec![class],
        });
        old.reply_bytes = Some(ReplyBytesModel {
            fixed: 1.0,
            per_reply: 20.0,
            per_action: vec![0.0; old.actions.len()],
            spread: 0.5,
            odd: 0.01,
            odd_spread: 9.0,
            odd_deviations: Vec::new(),
        });
        let new = old.clone().with_longer_messages(6, -4);
        let (replies, of_all) = (new.single_replies.clone().unwrap(), new.reply_bytes.clone().unwrap());
        assert_eq!(replies.classes[0].sizes, [(0, 2), (26, 5)]);
        assert_eq!(replies.foreign_sizes, [(36, 1)]);
        assert!((of_all.per_reply - 16.0).abs() < 1e-12);
        assert_eq!(new.overhead, old.overhead + 6);
        let restored = Model {
            overhead: old.overhead,
            single_replies: old.single_replies.clone(),
            reply_bytes: old.reply_bytes.clone(),
            ..new
        };
        assert_eq!(restored, old);
        assert_eq!(old.clone().with_longer_messages(0, 0), old);
        let name = old.actions[0].name.clone();
        let longer = old.clone().with_longer_action(&name, 3).unwrap();
        assert_eq!(longer.actions[0].size, old.actions[0].size + 3);
        assert_eq!(longer.with_longer_action(&name, -3).unwrap(), old);
        assert!(old.clone().with_longer_action(&name, -old.actions[0].size).is_none());
        assert!(old.clone().with_longer_action("no such action", 1).is_none());
    }
}
