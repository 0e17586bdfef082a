//! Lists that many frames share: a clone copies no items. On the wire they are ordinary lists.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An immutable list, shared by all its clones.
#[derive(Debug, PartialEq, Eq)]
pub struct SharedList<T>(Arc<[T]>);

impl<T> SharedList<T> {
    /// Whether both are clones of the same list, and therefore equal.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for SharedList<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Deref for SharedList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<Vec<T>> for SharedList<T> {
    fn from(list: Vec<T>) -> Self {
        Self(list.into())
    }
}

impl<T> From<Arc<[T]>> for SharedList<T> {
    fn from(list: Arc<[T]>) -> Self {
        Self(list)
    }
}

impl<T, const N: usize> From<[T; N]> for SharedList<T> {
    fn from(list: [T; N]) -> Self {
        Self(list.into())
    }
}

impl<T> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<'a, T> IntoIterator for &'a SharedList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Serialize> Serialize for SharedList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SharedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clones_are_the_same_list() {
        let list = SharedList::from([1, 2, 3]);
        let equal: SharedList<i32> = list.iter().copied().collect();
        assert!(list.clone().is_clone_of(&list) && !equal.is_clone_of(&list));
        assert_eq!((&equal, &list[1..]), (&list, &[2, 3][..]));
        assert_eq!((&list).into_iter().sum::<i32>(), 6);
        assert!(SharedList::<i32>::default().is_empty());
    }
}
