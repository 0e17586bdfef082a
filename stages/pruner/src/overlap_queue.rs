//! Identifications in their order, held until the commands that may share replies with them are there.

use std::collections::VecDeque;
use std::sync::Arc;

use sizeleak_frame::{Command, Identification};

/// The most identifications that are held; beyond that the first one goes on without the others.
const MAX_HELD: usize = 1024;

/// The most commands whose replies are shared out together.
const MAX_GROUP: usize = 8;

/// Identifications in the order in which they came, each with what is known of its replies; `None` as long as others may
/// share them.
#[derive(Debug, Default)]
pub(crate) struct OverlapQueue {
    held: VecDeque<(Box<Identification>, Option<RepliesKnown>)>,
}

/// What is known of the replies to a command.
#[derive(Debug, Clone)]
pub(crate) enum RepliesKnown {
    /// They are its own.
    Own,
    /// They are among those to the commands of a group, each with the identification it belongs to; this is the command
    /// at that index.
    Grouped(Arc<[Identification]>, usize),
    /// Some of them are not known.
    Unknown,
}

impl OverlapQueue {
    pub(crate) fn push(&mut self, identification: Box<Identification>) {
        let known = identification.command.has_own_replies().then_some(RepliesKnown::Own);
        self.held.push_back((identification, known));
    }

    /// The next identification whose replies are known as far as they ever will be; at the end of the stream, that is all.
    pub(crate) fn next(&mut self, is_end: bool) -> Option<(Box<Identification>, RepliesKnown)> {
        if self.held.front()?.1.is_none() && !self.group(is_end || self.held.len() > MAX_HELD) {
            return None;
        }
        let (identification, known) = self.held.pop_front()?;
        Some((identification, known?))
    }

    /// Finds the group that begins with the first identification. False if later ones may still belong to it.
    fn group(&mut self, is_end: bool) -> bool {
        let mut members: Vec<usize> = Vec::new();
        let mut last: Option<&Command> = None;
        for (at, (Identification { command, .. }, _)) in
            self.held.iter().map(|(own, known)| (&**own, known)).enumerate()
        {
            match last {
                Some(last) if (last.flow, last.direction) != (command.flow, command.direction) => continue,
                Some(_) if command.shared_replies.is_empty() => {
                    // Something else came between: the replies after that are not known.
                    self.set(&members, false);
                    return true;
                }
                None | Some(_) => {}
            }
            members.push(at);
            last = Some(command);
            if !command.overlapped {
                self.set(&members, true);
                return true;
            }
        }
        if is_end {
            self.set(&members, false);
        }
        is_end
    }

    /// Sets what is known of the replies to the members of a group.
    fn set(&mut self, members: &[usize], is_whole: bool) {
        let group = members.iter().filter_map(|at| self.held.get(*at)).map(|(identification, _)| identification);
        let commands: Vec<&Command> = group.clone().map(|identification| &identification.command).collect();
        let is_known = is_whole && members.len() <= MAX_GROUP && is_complete(&commands);
        let group: Arc<[Identification]> =
            if is_known { group.map(|identification| (**identification).clone()).collect() } else { Arc::new([]) };
        for (index, at) in members.iter().enumerate() {
            let known = if is_known { RepliesKnown::Grouped(Arc::clone(&group), index) } else { RepliesKnown::Unknown };
            if let Some((_, own)) = self.held.get_mut(*at) {
                *own = Some(known);
            }
        }
    }
}

/// Whether commands share replies with each other alone, and all replies are listed.
fn is_complete(group: &[&Command]) -> bool {
    let shares_within =
        |(at, command): (usize, &&Command)| command.shared_replies.iter().skip(at).all(|replies| *replies == 0);
    group.iter().enumerate().all(shares_within) && group.iter().all(|command| command.listed_replies().is_some())
}
