//! What the replies to a command say about its actions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use foldhash::fast::RandomState;
use sizeleak_frame::{Actions, Command, SharedList};
use sizeleak_model::{Action, Kinds, Model, ReplyBytesModel, ReplyReader, SeenReplies, SingleReplies, WireSize};

/// Without an inventory, likelihoods are tabulated up to this number of actions.
const MAX_ACTIONS: u32 = 4096;

/// A model with what reads single replies by it.
#[derive(Debug)]
pub(crate) struct ReplyModel {
    pub(crate) model: Model,
    reader: Option<ReplyReader>,
    /// Whether some actions send more replies than others.
    differ_in_number: bool,
}

impl ReplyModel {
    pub(crate) fn new(model: Model) -> Self {
        let reader = model.single_replies.clone().map(ReplyReader::new);
        let differ_in_number = model.single_replies.as_ref().is_some_and(SingleReplies::differ_in_number);
        Self { model, reader, differ_in_number }
    }
}

/// What the replies to a command say about its actions.
pub(crate) trait ActionEvidence {
    /// ln P(replies | these actions): of many replies, the probability itself is less than a number can hold. −∞ where no
    /// actions at all would have these replies by the model.
    fn ln_likelihood(&self, actions: &Actions) -> f64;

    /// The greatest that a command can have.
    fn ln_greatest(&self) -> f64;

    /// The numbers of actions that all but 1 − `keep` of commands with these replies have; up to `u32::MAX` if there is
    /// no bound.
    fn learned_bounds(&self, keep: f64) -> RangeInclusive<u32>;
}

/// The replies to one command, all of them its own.
#[derive(Debug)]
pub(crate) struct ReplyEvidence<'a> {
    model: &'a Model,
    replies: u32,
    /// P(replies | n actions) by n, as far as a command can have them, or up to [`MAX_ACTIONS`].
    likelihoods: Vec<f64>,
    /// The bytes of the replies, if they say more than their number.
    bytes: Option<(&'a ReplyBytesModel, i64)>,
    /// If single replies say something.
    single: Option<SingleReplyEvidence<'a>>,
    /// If replies tell kinds apart.
    kinds: Option<KindEvidence<'a>>,
}

/// The replies to one command, as far as they tell kinds apart.
#[derive(Debug)]
struct KindEvidence<'a> {
    kinds: &'a Kinds,
    /// P(replies | kind), by kind.
    likelihoods: Vec<f64>,
    /// P(replies) of a command of any kind.
    of_any: f64,
}

impl KindEvidence<'_> {
    /// The likelihood of these actions; `None` if they are none of the kinds.
    fn likelihood(&self, actions: &Actions) -> Option<f64> {
        let actions: Vec<(&str, u32)> = actions.iter().map(|(name, count)| (&**name, count)).collect();
        self.likelihoods.get(self.kinds.position(&actions)?).copied()
    }
}

/// A list of names, each with its index among the model's actions.
type NamedActions = (SharedList<Arc<str>>, Vec<Option<usize>>);

#[derive(Debug)]
pub(crate) struct SingleReplyEvidence<'a> {
    classes: &'a SingleReplies,
    actions: &'a [Action],
    differ_in_number: bool,
    pub(crate) seen: SeenReplies,
    /// The names that the last candidate referred to, each with its index among the model's actions: a list of candidates
    /// shares them.
    of_names: RefCell<NamedActions>,
    /// Logarithms of likelihoods computed so far: many candidates should have the same replies.
    known: RefCell<HashMap<Vec<u32>, f64, RandomState>>,
}

impl<'a> SingleReplyEvidence<'a> {
    fn new(with_reader: &'a ReplyModel, command: &Command, size: WireSize) -> Option<Self> {
        let ReplyModel { model, reader, differ_in_number } = with_reader;
        let (classes, replies) = (model.single_replies.as_ref()?, command.all_single_replies()?);
        let range = |reply| model.learned.basis.reply_sizes(command.learned_length(reply), size);
        let ranges: Vec<[i64; 2]> = replies.iter().map(range).collect();
        let (actions, differ_in_number) = (&model.actions[..], *differ_in_number);
        let (of_names, known) = (RefCell::default(), RefCell::default());
        Some(Self { classes, actions, differ_in_number, seen: reader.as_ref()?.read(&ranges), of_names, known })
    }

    fn ln_likelihood(&self, actions: &Actions) -> f64 {
        let counts = self.class_counts(actions);
        let mut known = self.known.borrow_mut();
        *known.entry(counts).or_insert_with_key(|counts| self.seen.ln_likelihood(counts))
    }

    /// How many replies of each class these actions should have.
    pub(crate) fn class_counts(&self, actions: &Actions) -> Vec<u32> {
        let mut of_names = self.of_names.borrow_mut();
        if !of_names.0.is_clone_of(actions.names()) {
            let position = |name: &Arc<str>| self.actions.iter().position(|known| known.name == **name);
            *of_names = (actions.names().clone(), actions.names().iter().map(position).collect());
        }
        let known = |(name, count): &(u32, u32)| Some((of_names.1.get(*name as usize).copied().flatten()?, *count));
        self.classes.class_counts(actions.indexed_counts().iter().filter_map(known))
    }
}

impl<'a> ReplyEvidence<'a> {
    /// The evidence of the replies to a command of up to `max_actions` actions; `None` if this gateway's replies say
    /// nothing about actions.
    pub(crate) fn new(with_reader: &'a ReplyModel, command: &Command, max_actions: u32) -> Option<Self> {
        let (model, replies) = (&with_reader.model, command.replies);
        let size = WireSize { wire: command.size, records: command.records, plaintext: command.plaintext };
        let seen = model.learned.basis.reply_bytes(command.reply_bytes, replies, size);
        let bytes = model.reply_bytes.as_ref().map(|reply_bytes| (reply_bytes, seen));
        let kinds = model.kinds.as_ref().and_then(|kinds| {
            let (likelihoods, of_any) = kinds.reply_likelihoods(replies, seen)?;
            Some(KindEvidence { kinds, likelihoods, of_any })
        });
        // A model of kinds alone knows nothing of how replies depend on the number of actions.
        let counts = !model.actions.is_empty() && model.replies.is_informative();
        let single = SingleReplyEvidence::new(with_reader, command, size);
        let is_informative = counts || bytes.is_some() || single.is_some() || kinds.is_some();
        is_informative.then(|| {
            let numbers = 0..=max_actions.clamp(1, MAX_ACTIONS);
            let likelihoods = numbers.map(|actions| model.replies.likelihood(replies, actions)).collect();
            Self { model, replies, likelihoods, bytes, single, kinds }
        })
    }

    /// The single replies, if likelihoods depend on nothing else: on how many of each class there should be.
    pub(crate) fn only_single(&self) -> Option<&SingleReplyEvidence<'a>> {
        self.single.as_ref().filter(|_| self.kinds.is_none())
    }

    /// P(number of replies | these actions): where some actions send more than others, by those of each.
    pub(crate) fn likelihood_of_number(&self, actions: &Actions) -> f64 {
        let of_each = self.single.as_ref().filter(|single| single.differ_in_number);
        let of_each = of_each
            .and_then(|single| single.classes.probability_of_number(self.replies, &single.class_counts(actions)));
        if let Some(of_each) = of_each {
            return of_each;
        }
        let total = u32::try_from(actions.total()).unwrap_or(u32::MAX);
        let of_number = self.likelihoods.get(total as usize).copied();
        of_number.unwrap_or_else(|| self.model.replies.likelihood(self.replies, total))
    }

    /// The greatest P(number of replies | actions) that a command can have; `None` if the number says nothing about
    /// actions.
    pub(crate) fn greatest_of_number(&self) -> Option<f64> {
        // Where some actions send more than others, some may send just as many.
        let of_each = || self.single.as_ref().is_some_and(|single| single.differ_in_number);
        let greatest = || self.likelihoods.iter().skip(1).copied().fold(0.0, f64::max);
        self.model.replies.is_informative().then(|| if of_each() { 1.0 } else { greatest() })
    }

    /// The numbers of actions by the paper, where every action has its replies.
    pub(crate) fn paper_bounds(&self) -> RangeInclusive<u32> {
        let (least, most) = self.model.replies.paper_bounds(self.replies);
        least..=most
    }
}

impl ActionEvidence for ReplyEvidence<'_> {
    fn ln_likelihood(&self, actions: &Actions) -> f64 {
        if let Some(likelihood) = self.kinds.as_ref().and_then(|kinds| kinds.likelihood(actions)) {
            return likelihood.ln();
        }
        if let Some(single) = &self.single {
            return single.ln_likelihood(actions);
        }
        let of_bytes = self.bytes.map_or(1.0, |(bytes, seen)| {
            let counts = self.model.actions.iter().map(|action| actions.count(&action.name));
            bytes.likelihood(seen, self.replies, counts)
        });
        of_bytes.ln() + self.likelihood_of_number(actions).ln()
    }

    /// The greatest that a command can have; beside kinds, that of anything else.
    fn ln_greatest(&self) -> f64 {
        if let Some(kinds) = &self.kinds {
            return kinds.of_any.ln();
        }
        if let Some(single) = &self.single {
            return single.seen.ln_greatest();
        }
        let of_number = self.likelihoods.iter().skip(1).copied().fold(0.0, f64::max);
        of_number.ln() + self.bytes.map_or(1.0, |(bytes, _)| bytes.greatest().max(1.0)).ln()
    }

    fn learned_bounds(&self, keep: f64) -> RangeInclusive<u32> {
        let (least, most) = self.model.replies.bounds(self.replies, keep);
        least..=most
    }
}
