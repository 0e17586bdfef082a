//! What the replies to a command say about its actions.

use sizeleak_frame::{Actions, Command};
use sizeleak_model::{Model, ReplyBytesModel, ReplyCountModel, WireSize};

/// Where nothing limits the number of actions, likelihoods are looked at up to this many.
const MAX_ACTIONS: u32 = 4096;

/// Likelihoods of more actions than this are worked out each time.
const MOST_REMEMBERED: usize = 1 << 10;

/// The replies to one command.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    model: &'a ReplyCountModel,
    replies: u32,
    /// Likelihoods by number of actions, as far as they were asked for: thousands of candidates have the same few.
    likelihoods: Vec<Option<f64>>,
    /// Where the bytes of the replies say more than their number.
    bytes: Option<Bytes<'a>>,
}

/// The bytes of the replies to one command.
#[derive(Debug)]
struct Bytes<'a> {
    model: &'a ReplyBytesModel,
    /// The actions' names, in the order of the model's.
    names: Vec<&'a str>,
    seen: i64,
}

/// The least and the greatest number of actions that replies leave possible; `None` where there is no greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) least: u32,
    pub(crate) most: Option<u32>,
}

impl<'a> Evidence<'a> {
    /// The evidence of a command's replies; `None` where this gateway's replies say nothing of actions.
    pub(crate) fn new(model: &'a Model, command: &Command) -> Option<Self> {
        let replies = command.replies;
        let size = WireSize { wire: command.size, records: command.records, plaintext: command.plaintext };
        let bytes = model.reply_bytes.as_ref().map(|known| Bytes {
            model: known,
            names: model.actions.iter().map(|action| action.name.as_str()).collect(),
            seen: model.learned.basis.reply_bytes(command.reply_bytes, replies, size),
        });
        let is_informative = model.replies.is_informative() || bytes.is_some();
        is_informative.then(|| Self { model: &model.replies, replies, likelihoods: Vec::new(), bytes })
    }

    /// P(replies and their bytes | these actions).
    pub(crate) fn likelihood(&mut self, actions: &Actions) -> f64 {
        let of_bytes = self.bytes.as_ref().map_or(1.0, |bytes| {
            let counts = bytes.names.iter().map(|name| actions.count(name));
            bytes.model.likelihood(bytes.seen, self.replies, counts)
        });
        (of_bytes * self.of_number(actions.total())).max(f64::MIN_POSITIVE)
    }

    /// P(replies | so many actions).
    fn of_number(&mut self, actions: u64) -> f64 {
        let likelihood = || self.model.likelihood(self.replies, u32::try_from(actions).unwrap_or(u32::MAX));
        let Ok(place @ ..=MOST_REMEMBERED) = usize::try_from(actions) else { return likelihood() };
        if place >= self.likelihoods.len() {
            self.likelihoods.resize(place + 1, None);
        }
        match self.likelihoods.get_mut(place) {
            Some(known) => *known.get_or_insert_with(likelihood),
            None => likelihood(),
        }
    }

    /// The greatest likelihood that a command of up to `max_actions` can have.
    pub(crate) fn greatest(&self, max_actions: u32) -> f64 {
        let numbers = 1..=max_actions.clamp(1, MAX_ACTIONS);
        let of_number = numbers.map(|actions| self.model.likelihood(self.replies, actions)).fold(0.0, f64::max);
        of_number * self.bytes.as_ref().map_or(1.0, |bytes| bytes.model.greatest().max(1.0))
    }

    /// Bounds that hold for all but 1 − `keep` of commands.
    pub(crate) fn learned_bounds(&self, keep: f64) -> Bounds {
        Bounds::from(self.model.bounds(self.replies, keep))
    }

    /// The bounds where replies are taken at their word.
    pub(crate) fn paper_bounds(&self) -> Bounds {
        Bounds::from(self.model.paper_bounds(self.replies))
    }
}

impl Bounds {
    /// Whether so many actions are within them.
    pub(crate) fn allow(self, actions: u64) -> bool {
        actions >= self.least.into() && self.most.is_none_or(|most| actions <= most.into())
    }
}

impl From<(u32, u32)> for Bounds {
    fn from((least, most): (u32, u32)) -> Self {
        Self { least, most: (most < u32::MAX).then_some(most) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::{command, model};

    fn counting() -> Model {
        model("[replies]\nfixed = 1.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.02\n")
    }

    fn actions(name: &str, count: u32) -> Actions {
        Actions::from(vec![(Arc::from(name), count)])
    }

    #[test]
    fn bounds_widen_with_what_must_be_kept() {
        let model = counting();
        let evidence = Evidence::new(&model, &command(6, 0)).unwrap();
        assert_eq!(evidence.paper_bounds(), Bounds { least: 5, most: Some(5) });
        let (narrow, wide) = (evidence.learned_bounds(0.9), evidence.learned_bounds(0.999));
        assert!(narrow.allow(5) && wide.least <= narrow.least && wide.most >= narrow.most && wide != narrow);
        assert_eq!(evidence.learned_bounds(1.0), Bounds { least: 0, most: None });
        assert!(wide.allow(6) && !wide.allow(4000) && evidence.learned_bounds(1.0).allow(u64::MAX));
    }

    #[test]
    fn the_greatest_likelihood_is_the_greatest() {
        let model = counting();
        let mut evidence = Evidence::new(&model, &command(6, 0)).unwrap();
        let likelihoods: Vec<f64> = (1..=16).map(|count| evidence.likelihood(&actions("on", count))).collect();
        assert!(likelihoods.iter().all(|likelihood| *likelihood <= evidence.greatest(16)));
        assert!(likelihoods.contains(&evidence.greatest(16)) && likelihoods[4] > likelihoods[0]);
        assert!(evidence.greatest(2) < evidence.greatest(u32::MAX));
        assert!(evidence.of_number(u64::MAX) > 0.0);
    }

    #[test]
    fn bytes_tell_actions_apart_that_the_number_of_replies_does_not() {
        let model = model(
            "[replies]\nfixed = 1.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
             [reply_bytes]\nfixed = 10.0\nper_reply = 0.0\nper_action = [20.0, 31.0]\nspread = 0.5\nodd = 0.01\n\
             odd_spread = 100.0\n",
        );
        // 25 bytes are the cipher's: the command has as many.
        let mut evidence = Evidence::new(&model, &command(1, 10 + 31 + 25)).unwrap();
        let (on, off) = (evidence.likelihood(&actions("on", 1)), evidence.likelihood(&actions("off", 1)));
        assert!(off > 100.0 * on && on > 0.0 && off <= evidence.greatest(16));
        let mut silent = Evidence::new(&model, &command(0, 0)).unwrap();
        assert_eq!(silent.likelihood(&actions("on", 1)).to_bits(), silent.likelihood(&actions("off", 1)).to_bits());
    }

    #[test]
    fn a_silent_gateway_gives_no_evidence() {
        let silent = model("[replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n");
        assert!(Evidence::new(&silent, &command(6, 0)).is_none());
    }
}
