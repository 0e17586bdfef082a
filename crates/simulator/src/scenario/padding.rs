//! The table of a scenario about padding.

use serde::{Deserialize, Serialize};
use sizeleak_model::policies::PaddingPolicy;

/// To which sizes commands and replies are padded. All other messages stay as they are: they say nothing of a command.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PaddingSettings {
    /// The service's padding of commands.
    #[serde(with = "name_or_table")]
    pub policy: PaddingPolicy,
    /// The gateway's padding of each reply.
    #[serde(with = "name_or_table")]
    pub replies: PaddingPolicy,
    /// Where the padding is.
    pub layer: PaddingLayer,
}

/// Where padding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaddingLayer {
    /// Blanks after the JSON: the message with its framing has the policy's size. Where the framing has no message of that
    /// size, it is padded as one that is larger.
    #[default]
    Body,
    /// TLS record padding (RFC 8446 section 5.4): the plaintext of each record has the policy's size, at most 16384 bytes.
    Record,
}

/// A policy as a name, `"multiple:16"`, or as a table like that of a policy's file, `{ kind = "multiple", bytes = 16 }`.
mod name_or_table {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use sizeleak_model::policies::PaddingPolicy;

    pub(super) fn serialize<S: Serializer>(policy: &PaddingPolicy, serializer: S) -> Result<S::Ok, S::Error> {
        let name = policy.to_string();
        if name.parse().as_ref() == Ok(policy) { serializer.serialize_str(&name) } else { policy.serialize(serializer) }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PaddingPolicy, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(name) => name.parse().map_err(D::Error::custom),
            table => PaddingPolicy::deserialize(table).map_err(|error| D::Error::custom(error.message())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_names_or_tables() {
        let settings: PaddingSettings =
            toml::from_str("policy = { kind = \"table\", buckets = [104, 160] }\nreplies = \"constant:64\"").unwrap();
        let policy = PaddingPolicy::Table { buckets: vec![104, 160] };
        let replies = PaddingPolicy::Constant { bytes: 64 };
        assert_eq!(settings, PaddingSettings { policy, replies, layer: PaddingLayer::Body });
        let text = toml::to_string(&settings).unwrap();
        assert_eq!(toml::from_str::<PaddingSettings>(&text).unwrap(), settings);
    }

    #[test]
    fn errors_name_the_fault() {
        let error = |text| toml::from_str::<PaddingSettings>(text).unwrap_err().to_string();
        assert!(error("policy = \"pad\"").contains("there is no padding policy `pad`"));
        assert!(error("policy = { kind = \"table\", sizes = [1] }").contains("unknown field `sizes`"));
        assert!(error("policy = 16").contains("invalid type: integer `16`"), "{}", error("policy = 16"));
    }
}
