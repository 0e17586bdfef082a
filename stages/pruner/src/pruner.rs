//! The stage: identifications in, with fewer and better ordered candidates out.

use sizeleak_frame::{Identification, Notice, what};
use sizeleak_signature::{InventoryError, Limits, Model, ReplyModel};
use sizeleak_stage::{Emit, Stage, StageError};

use crate::evidence::{Bounds, learned_bounds, paper_bounds};
use crate::options::Mode;
use crate::posterior::{keep_likely, normalise};

/// Drops the candidates that the inventory or the replies speak against.
#[derive(Debug)]
pub struct Pruner {
    mode: Mode,
    keep: f64,
    replies: ReplyModel,
    names: Vec<String>,
    limits: Limits,
    told_cut: bool,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    candidates_in: u64,
    candidates_out: u64,
    beyond_inventory: u64,
    cut_lists: u64,
    emptied: u64,
}

impl Pruner {
    /// A pruner by this model; `keep` is the probability that the truth is kept in mode [`Mode::Learned`].
    ///
    /// # Errors
    /// [`InventoryError`] where the model's inventory does not fit its actions.
    pub fn new(model: &Model, mode: Mode, keep: f64) -> Result<Self, InventoryError> {
        Ok(Self {
            mode,
            keep,
            replies: model.replies.clone(),
            names: model.actions.iter().map(|action| action.name.clone()).collect(),
            limits: model.limits()?,
            told_cut: false,
            counts: Counts::default(),
        })
    }

    /// Drops what the inventory does not allow: another decomposer than ours may not have looked.
    fn drop_impossible(&mut self, identification: &mut Identification) {
        let before = identification.candidates.len();
        identification.candidates.retain(|candidate| {
            let known = candidate.actions.0.iter().all(|(name, _)| self.names.iter().any(|known| **known == **name));
            let counts: Vec<u32> = self.names.iter().map(|name| candidate.actions.count(name)).collect();
            known && self.limits.admits(&counts)
        });
        let dropped = (before - identification.candidates.len()) as u64;
        if dropped > 0 {
            self.counts.beyond_inventory += dropped;
            identification.candidate_count = identification.candidate_count.saturating_sub(dropped);
            normalise(&mut identification.candidates);
        }
    }

    /// Keeps what the replies leave, and says which numbers of actions that is. What the decomposer did not list
    /// cannot be weighed; it is left out, and told.
    fn prune(&mut self, identification: &mut Identification) {
        let replies = identification.command.replies;
        let bounds = match self.mode {
            Mode::None => return,
            Mode::Learned => {
                let candidates = std::mem::take(&mut identification.candidates);
                identification.candidates = keep_likely(candidates, &self.replies, replies, self.keep);
                learned_bounds(&self.replies, replies, self.limits.most_actions(), self.keep)
            }
            Mode::Paper => {
                let bounds = paper_bounds(&self.replies, replies);
                if let Some(Bounds { least, most }) = bounds {
                    let possible = u64::from(least)..=u64::from(most);
                    identification.candidates.retain(|candidate| possible.contains(&candidate.actions.total()));
                    normalise(&mut identification.candidates);
                }
                bounds
            }
        };
        identification.candidate_count = identification.candidates.len() as u64;
        identification.min_actions = bounds.map(|bounds| bounds.least);
        identification.max_actions = bounds.map(|bounds| bounds.most);
    }

    fn notice(identification: &Identification, what: &'static str, detail: &str) -> Notice {
        Notice {
            time_ns: Some(identification.command.time_ns),
            stage: Self::NAME.into(),
            flow: Some(identification.command.flow),
            what: what.into(),
            bytes: None,
            detail: Some(detail.to_owned()),
        }
    }
}

impl Stage for Pruner {
    const NAME: &'static str = "pruner";
    type Input = Identification;

    fn process(&mut self, mut identification: Identification, out: &mut dyn Emit) -> Result<(), StageError> {
        self.counts.candidates_in = self.counts.candidates_in.saturating_add(identification.candidate_count);
        if identification.candidate_count > identification.candidates.len() as u64 {
            self.counts.cut_lists += 1;
            if self.mode != Mode::None && !self.told_cut {
                self.told_cut = true;
                let detail = "only the candidates the decomposer lists are weighed: raise its `limit` for all";
                out.emit(Self::notice(&identification, what::TRUNCATED, detail).into())?;
            }
        }
        let had_some = !identification.candidates.is_empty();
        self.drop_impossible(&mut identification);
        self.prune(&mut identification);
        identification.listed = identification.candidates.len() as u64;
        self.counts.candidates_out = self.counts.candidates_out.saturating_add(identification.candidate_count);
        if had_some && identification.candidates.is_empty() {
            self.counts.emptied += 1;
            let detail = "the replies contradict every candidate";
            out.emit(Self::notice(&identification, what::UNEXPLAINED, detail).into())?;
        }
        Ok(out.emit(identification.into())?)
    }

    fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("candidates_in", self.counts.candidates_in),
            ("candidates_out", self.counts.candidates_out),
            ("beyond_inventory", self.counts.beyond_inventory),
            ("cut_lists", self.counts.cut_lists),
            ("emptied", self.counts.emptied),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::{Actions, Candidate, Command, Frame};

    use super::*;

    const MODEL: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
        [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n\
        [[device]]\nname = \"plug\"\ncount = 5\nactions = [\"on\", \"off\"]\n\
        [replies]\nfixed = 0.0\nper_action = 1.0\ndeviations = [[-1, 10], [0, 90]]\n\
        [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n";

    fn prune(mode: Mode, candidates: &[(u32, &str)], replies: u32, count: u64) -> (Identification, usize) {
        let model = Model::from_toml(MODEL).unwrap();
        let command =
            Command { time_ns: 1, end_ns: 2, flow: 3, size: 4, plaintext: None, records: 1, replies, reply_bytes: 0 };
        let probability = 1.0 / count as f64;
        let candidate = |(times, name): &(u32, &str)| Candidate {
            actions: Actions(vec![(Arc::from(*name), *times)]),
            epsilon: 0,
            probability,
        };
        let identification = Identification {
            command,
            candidates: candidates.iter().map(candidate).collect(),
            candidate_count: count,
            listed: candidates.len() as u64,
            min_actions: None,
            max_actions: None,
        };
        let mut out: Vec<Frame> = Vec::new();
        Pruner::new(&model, mode, 0.9).unwrap().process(identification, &mut out).unwrap();
        let Some(Frame::Identification(identification)) = out.pop() else { panic!("{out:?}") };
        (identification, out.len())
    }

    fn totals(identification: &Identification) -> Vec<u64> {
        identification.candidates.iter().map(|candidate| candidate.actions.total()).collect()
    }

    #[test]
    fn paper_takes_replies_at_their_word_and_learned_weighs_them() {
        let candidates = [(2, "on"), (3, "on"), (4, "off")];
        let (paper, _) = prune(Mode::Paper, &candidates, 3, 3);
        assert_eq!((totals(&paper), paper.min_actions, paper.max_actions), (vec![3], Some(3), Some(3)));
        assert!((paper.candidates[0].probability - 1.0).abs() < 1e-12);
        let (learned, _) = prune(Mode::Learned, &candidates, 3, 3);
        assert_eq!((totals(&learned), learned.candidate_count, learned.listed), (vec![3, 4], 2, 2));
        let (none, _) = prune(Mode::None, &candidates, 3, 3);
        assert_eq!((none.candidates.len(), none.min_actions), (3, None));
    }

    #[test]
    fn what_the_inventory_does_not_hold_goes() {
        let (pruned, _) = prune(Mode::None, &[(6, "on"), (1, "blink"), (5, "on")], 3, 3);
        assert_eq!((totals(&pruned), pruned.candidate_count), (vec![5], 1));
    }

    #[test]
    fn what_cannot_be_judged_is_told() {
        assert_eq!(prune(Mode::Learned, &[(3, "on")], 3, 900).1, 1, "a cut list");
        let (emptied, notices) = prune(Mode::Paper, &[(1, "on")], 3, 1);
        assert_eq!((emptied.candidate_count, notices), (0, 1));
        assert_eq!(prune(Mode::Learned, &[], 3, 0).1, 0);
    }
}
