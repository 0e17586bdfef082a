//! Addresses as text: by default `serde` writes binary formats an enum of byte lists, which other languages do not
//! expect.

use std::fmt::{Display, Formatter};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

pub(crate) fn serialize<T: Display, S: Serializer>(address: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(address)
}

pub(crate) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_str(AddressVisitor(PhantomData))
}

struct AddressVisitor<T>(PhantomData<T>);

impl<T: FromStr> Visitor<'_> for AddressVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an address as text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}
