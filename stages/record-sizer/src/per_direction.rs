//! Two values of the same kind, one for each direction.

use serde::{Deserialize, Serialize};
use sizeleak_frame::Direction;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PerDirection<T> {
    pub(crate) to_gateway: T,
    pub(crate) from_gateway: T,
}

impl<T> PerDirection<T> {
    #[inline]
    pub(crate) fn of(&self, direction: Direction) -> &T {
        if direction == Direction::ToGateway { &self.to_gateway } else { &self.from_gateway }
    }

    #[inline]
    pub(crate) fn of_mut(&mut self, direction: Direction) -> &mut T {
        if direction == Direction::ToGateway { &mut self.to_gateway } else { &mut self.from_gateway }
    }

    #[inline]
    pub(crate) fn both(&self) -> [&T; 2] {
        [&self.to_gateway, &self.from_gateway]
    }

    pub(crate) fn map<U>(self, each: impl Fn(T) -> U) -> PerDirection<U> {
        PerDirection { to_gateway: each(self.to_gateway), from_gateway: each(self.from_gateway) }
    }

    pub(crate) fn all(&self, holds: impl Fn(&T) -> bool) -> bool {
        holds(&self.to_gateway) && holds(&self.from_gateway)
    }
}

impl<T: Clone> PerDirection<T> {
    pub(crate) fn same(value: T) -> Self {
        Self { to_gateway: value.clone(), from_gateway: value }
    }
}
