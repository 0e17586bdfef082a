//! How the single replies to a command depend on its actions: their sizes, one by one.
//!
//! A gateway answers an action with a report of what it did, whose size often tells which action it was. The model has
//! *reply classes*: replies that are alike, each with a distribution of sizes and a share that is missing. An action
//! sends some number of replies of each class, and so does every command as such. Two replies may share a record, and
//! foreign records may be among the replies.
//!
//! P(replies | A) depends on A through the number of replies of each class alone ([`SingleReplies::class_counts`]), so
//! it is computed once for many candidates ([`SeenReplies`]).

mod classes;
mod interpretation;
mod seen_replies;
mod ways;

pub use self::classes::{ReplyClass, SingleReplies};
pub use self::interpretation::Interpretation;
pub use self::seen_replies::{Component, ReplyReader, SeenReplies};

#[cfg(test)]
mod tests;
