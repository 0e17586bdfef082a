//! The numbered messages of a conversation: one that is captured or sent twice counts once, and numbers between those that
//! were seen are missing, be it on the way or from the capture.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, PerDirection};

/// Numbers this far from the highest are told apart, each by its bit.
const SPAN: u64 = u64::BITS as u64;

/// More numbers than these are not missing at once: whoever counts has begun anew.
const MOST_MISSING: u64 = 1 << 20;

/// How many messages have numbers in the ranges that were seen, and how many of these were not seen themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holes {
    pub(crate) numbers: u64,
    pub(crate) missing: u64,
}

impl AddAssign for Holes {
    fn add_assign(&mut self, other: Self) {
        self.numbers = self.numbers.saturating_add(other.numbers);
        self.missing = self.missing.saturating_add(other.missing);
    }
}

/// One in so many messages of a direction, or more, have numbers that the other one counts, too: fewer are late or forged.
const LEAST_OWN: u64 = 8;

/// The messages of both directions. Each should count its own, but some programs count those of both as one: then what is
/// missing in one direction was sent in the other.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Conversation {
    messages: PerDirection<NumberedMessages>,
    /// How many were new, and how many of these had numbers that one count of both directions would not give them.
    new: PerDirection<(u64, u64)>,
}

impl Conversation {
    /// Adds a message; false if it was seen before. Its number counts within a scope: keys, or an epoch of them.
    pub(crate) fn insert(&mut self, direction: Direction, scope: u32, number: u64) -> bool {
        if !self.messages.of_mut(direction).insert(scope, number) {
            return false;
        }
        let (new, own) = self.new.of_mut(direction);
        *new += 1;
        *own += u64::from(self.messages.of(direction.reversed()).has_passed(number));
        true
    }

    /// The holes of each direction: none where the other one may have used the numbers.
    pub(crate) fn holes(&self) -> PerDirection<Holes> {
        let are_mixed = self.new.all(|(new, own)| *new > 0 && own.saturating_mul(LEAST_OWN) < *new);
        if are_mixed { PerDirection::default() } else { self.messages.map(|messages| messages.holes()) }
    }
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct NumberedMessages {
    /// Those of the last two scopes: around a change of keys messages of both are under way.
    current: Numbers,
    previous: Numbers,
    /// Of earlier ones.
    holes: Holes,
}

impl NumberedMessages {
    fn insert(&mut self, scope: u32, number: u64) -> bool {
        if self.current.is_of(scope) {
            return self.current.insert(number, &mut self.holes);
        }
        std::mem::swap(&mut self.current, &mut self.previous);
        if self.current.is_of(scope) {
            return self.current.insert(number, &mut self.holes);
        }
        self.holes += self.current.holes();
        self.current = Numbers::new(scope, Span::new(number));
        true
    }

    /// Whether this direction, as it counts now, has used a number or has left it long behind.
    fn has_passed(&self, number: u64) -> bool {
        self.current.received > 0 && self.current.last.has_passed(number)
    }

    fn holes(&self) -> Holes {
        let mut holes = self.holes;
        holes += self.current.holes();
        holes += self.previous.holes();
        holes
    }
}

/// The numbers of one scope, from the first that was seen to the highest.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Numbers {
    scope: u32,
    first: u64,
    /// Different ones, as far as spans tell; none if there is no scope yet.
    received: u64,
    last: Span,
    /// Numbers far from these. One of them may be late, or forged, and shows nothing by itself.
    far: Option<Span>,
}

impl Numbers {
    fn new(scope: u32, last: Span) -> Self {
        Self { scope, first: last.lowest(), received: last.seen.count_ones().into(), last, far: None }
    }

    fn is_of(&self, scope: u32) -> bool {
        self.received > 0 && self.scope == scope
    }

    fn insert(&mut self, number: u64, ended: &mut Holes) -> bool {
        if let Some(is_new) = self.last.insert(number) {
            self.first = self.first.min(number);
            self.received += u64::from(is_new);
            return is_new;
        }
        let is_late = (self.first..self.last.highest).contains(&number);
        let far = self.far.as_mut().and_then(|far| Some((far.insert(number)?, *far)));
        let is_new = far.is_none_or(|(is_new, _)| is_new);
        match far {
            _ if is_late => self.received += u64::from(is_new),
            Some((true, far)) => self.go_on_at(far, ended),
            _ => {}
        }
        if far.is_none() {
            self.far = Some(Span::new(number));
        }
        is_new
    }

    /// Goes on at far numbers, of which there are two: so many are missing before them, or they are counted anew.
    fn go_on_at(&mut self, far: Span, ended: &mut Holes) {
        let is_ahead = far.lowest().checked_sub(self.last.highest).is_some_and(|ahead| ahead <= MOST_MISSING);
        if !is_ahead {
            *ended += self.holes();
            *self = Self::new(self.scope, far);
            return;
        }
        self.received += u64::from(far.seen.count_ones());
        (self.last, self.far) = (far, None);
    }

    fn holes(&self) -> Holes {
        if self.received == 0 {
            return Holes::default();
        }
        let numbers = (self.last.highest - self.first).saturating_add(1);
        Holes { numbers, missing: numbers.saturating_sub(self.received) }
    }
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Span {
    highest: u64,
    /// Bit n stands for the number n before the highest.
    seen: u64,
}

impl Span {
    fn new(number: u64) -> Self {
        Self { highest: number, seen: 1 }
    }

    fn lowest(self) -> u64 {
        self.highest.saturating_sub((SPAN - 1).saturating_sub(self.seen.leading_zeros().into()))
    }

    /// Adds a number, and says whether it is new; `None` if it is far from the highest.
    fn insert(&mut self, number: u64) -> Option<bool> {
        let (ahead, behind) = (number.saturating_sub(self.highest), self.highest.saturating_sub(number));
        if ahead.max(behind) >= SPAN {
            return None;
        }
        if ahead > 0 {
            (self.seen, self.highest) = (self.seen << ahead | 1, number);
            return Some(true);
        }
        let bit = 1 << behind;
        let is_new = self.seen & bit == 0;
        self.seen |= bit;
        Some(is_new)
    }

    /// Whether it has this number, or is too far above it to tell.
    fn has_passed(self, number: u64) -> bool {
        self.highest.checked_sub(number).is_some_and(|behind| behind >= SPAN || self.seen >> behind & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_messages_are_not_new() {
        let mut messages = NumberedMessages::default();
        let numbers =
            [(0, 5), (0, 5), (0, 7), (0, 6), (0, 6), (1, 0), (1, 0), (1, 60), (1, 59), (1, 59), (1, 1), (1, 1)];
        let new: Vec<bool> = numbers.iter().map(|(scope, number)| messages.insert(*scope, *number)).collect();
        assert_eq!(new, [true, false, true, true, false, true, false, true, true, false, true, false]);
        assert!(messages.insert(0, 60) && !messages.insert(0, 60), "another scope counts by itself");
        assert!(!messages.insert(0, 5) && !messages.insert(1, 60), "and is not forgotten");
        assert!(messages.insert(0, u64::MAX) && messages.insert(0, 61) && !messages.insert(0, 61), "a forged number");
        assert!(messages.insert(9, 3) && messages.insert(0, 62) && !messages.insert(0, 62), "a forged scope");
    }

    fn holes(numbers: impl IntoIterator<Item = (u32, u64)>) -> (u64, u64) {
        let mut messages = NumberedMessages::default();
        for (scope, number) in numbers {
            messages.insert(scope, number);
        }
        let Holes { numbers, missing } = messages.holes();
        (numbers, missing)
    }

    #[test]
    fn numbers_between_those_that_were_seen_are_missing() {
        let of_one = |numbers: &[u64]| holes(numbers.iter().map(|number| (7, *number)));
        assert_eq!(of_one(&[]), (0, 0));
        assert_eq!(of_one(&[40, 41, 43, 46]), (7, 3));
        assert_eq!(of_one(&[40, 43, 42, 41, 39, 43]), (5, 0), "in another order, and twice");
        assert_eq!(of_one(&[0, 1, 300, 301]), (302, 298), "a long outage");
        assert_eq!(of_one(&[0, 1, 300]), (2, 0), "one number alone shows nothing");
        assert_eq!(of_one(&[0, 1, 300, 2, 301]), (302, 297), "but two do");
        assert_eq!(of_one(&[0, 1, 1 << 40, 2, 3]), (4, 0), "a forged number");
        assert_eq!(of_one(&[0, 1, 3, 1 << 40, (1 << 40) + 1]), (6, 1), "and counting anew");
        assert_eq!(of_one(&[900, 901, 903, 0, 1, 2]), (7, 1));
    }

    #[test]
    fn late_messages_are_not_missing() {
        let all = 0..1024_u64;
        let late = [100, 101, 102, 500, 104];
        let numbers = all.clone().filter(|number| !late.contains(number)).chain(late).chain(1024..1100);
        assert_eq!(holes(numbers.map(|number| (1, number))), (1100, 0));
        let swapped = all.map(|number| number ^ 31);
        assert_eq!(holes(swapped.map(|number| (1, number))).1, 0);
    }

    #[test]
    fn messages_of_two_scopes_may_alternate() {
        let old = (0..100).map(|number| (1, number));
        let around = [(2, 0), (1, 101), (2, 1), (1, 100), (2, 3)];
        assert_eq!(holes(old.chain(around)), (102 + 4, 1));
        // Each of the third takes the place of the one that was silent for longest.
        assert_eq!(holes([(1, 0), (1, 2), (2, 0), (2, 2), (3, 0), (3, 2), (1, 3), (1, 4)]), (3 + 3 + 3 + 2, 3));
    }
}
