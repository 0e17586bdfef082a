//! What padding leaves to an observer who sees replies, too.

use serde::Serialize;
use sizeleak_audit::padding::{CountermeasureError, Countermeasures, HomeTraffic, PaddingPolicy, ReplyForm};

use sizeleak_text::percent;

/// How often an observer of size and replies names the exact command, whose size alone is padded; or replies, too.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct NamedWithReplies {
    /// With replies as the gateway sends them.
    as_they_are: f64,
    /// With replies that all have one size.
    one_size: f64,
}

impl NamedWithReplies {
    /// Under a policy; `None` if replies say nothing, or too much to compute.
    pub(crate) fn new(traffic: &HomeTraffic, policy: &PaddingPolicy) -> Result<Option<Self>, CountermeasureError> {
        let named = |replies| {
            let effect =
                traffic.effect(&Countermeasures { policy: policy.clone(), replies, ..Countermeasures::NONE })?;
            Ok(effect.with_replies.map(|leak| leak.command.named))
        };
        let (as_they_are, one_size) = (named(ReplyForm::AsTheyAre)?, named(ReplyForm::OneSize)?);
        Ok(as_they_are.zip(one_size).map(|(as_they_are, one_size)| Self { as_they_are, one_size }))
    }

    /// As a sentence.
    pub(crate) fn sentence(self) -> String {
        format!(
            "Replies are not padded by it: an observer who sees them, too, names the exact command in {} of cases while \
             replies are as they are, and in {} if all have one size (`--replies one-size`).",
            percent(self.as_they_are),
            percent(self.one_size)
        )
    }
}
