//! A padding policy as a JSON file, which the programs of the project exchange.
//!
//! ```json
//! { "version": 1, "policy": { "kind": "table", "buckets": [104, 131, 160] } }
//! ```
//!
//! The kinds of policy with their keys are those of [`PaddingPolicy`]; `note` may say what the policy was made for.

use serde::{Deserialize, Serialize};

use crate::policies::padding_policy::PaddingPolicy;
use crate::policies::policy_error::PolicyError;

pub const POLICY_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    pub version: u32,
    /// What the policy was made for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub policy: PaddingPolicy,
}

/// The version alone, which is read first: what follows it may be unknown.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl PolicyFile {
    pub fn new(policy: PaddingPolicy, note: Option<String>) -> Self {
        Self { version: POLICY_VERSION, note, policy }
    }

    pub fn from_json(text: &str) -> Result<Self, PolicyError> {
        let syntax = |error: serde_json::Error| PolicyError::Syntax(error.to_string());
        let Version { version } = serde_json::from_str(text).map_err(syntax)?;
        if version != POLICY_VERSION {
            return Err(PolicyError::Version { found: version, known: POLICY_VERSION });
        }
        let file: Self = serde_json::from_str(text).map_err(syntax)?;
        file.policy.check()?;
        Ok(file)
    }

    /// The policy as one JSON object with a line end.
    ///
    /// # Errors
    /// [`PolicyError::Syntax`] if a probability is not a number.
    pub fn to_json(&self) -> Result<String, PolicyError> {
        self.policy.check()?;
        let json = serde_json::to_string(self).map_err(|error| PolicyError::Syntax(error.to_string()))?;
        Ok(json + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::padding_policy::{Draw, PaddedSize, RandomRow};

    fn policies() -> Vec<PaddingPolicy> {
        let padded = vec![PaddedSize { bytes: 7, probability: 0.1 }, PaddedSize { bytes: 9, probability: 0.9 }];
        vec![
            PaddingPolicy::None,
            PaddingPolicy::Multiple { bytes: 16 },
            PaddingPolicy::PowersOfTwo,
            PaddingPolicy::Padme,
            PaddingPolicy::Tls13Multiple { bytes: 128 },
            PaddingPolicy::Random { most: 40, draw: Draw::Independent },
            PaddingPolicy::Constant { bytes: 512 },
            PaddingPolicy::Table { buckets: vec![104, 131] },
            PaddingPolicy::Map { sizes: vec![[1, 3], [2, 2], [3, 3]] },
            PaddingPolicy::RandomTable { rows: vec![RandomRow { size: 7, padded }], draw: Draw::Keyed },
        ]
    }

    #[test]
    fn every_policy_reads_back() {
        for policy in policies() {
            let file = PolicyFile::new(policy, Some("a test".to_owned()));
            assert_eq!(PolicyFile::from_json(&file.to_json().unwrap()).unwrap(), file);
        }
    }

    #[test]
    fn the_format_is_the_documented_one() {
        let text = r#"{ "version": 1, "policy": { "kind": "table", "buckets": [104, 131, 160] } }"#;
        let policy = PaddingPolicy::Table { buckets: vec![104, 131, 160] };
        assert_eq!(PolicyFile::from_json(text).unwrap(), PolicyFile::new(policy, None));
        let random = r#"{"version":1,"policy":{"kind":"random","most":40,"draw":"keyed"}}"#;
        let file = PolicyFile::from_json(random).unwrap();
        assert_eq!(file.policy, PaddingPolicy::Random { most: 40, draw: Draw::Keyed });
        assert_eq!(file.to_json().unwrap(), format!("{random}\n"));
    }

    #[test]
    fn errors_name_the_fault() {
        let error = |policy: &str| {
            let text = format!(r#"{{"version":1,"policy":{policy}}}"#);
            PolicyFile::from_json(&text).unwrap_err().to_string()
        };
        assert!(error(r#"{"kind":"table","buckets":[]}"#).contains("not 0"));
        assert!(error(r#"{"kind":"table","buckets":[5,5]}"#).contains("ascend"));
        assert!(error(r#"{"kind":"table","buckets":[0]}"#).contains("from 1"));
        assert!(error(r#"{"kind":"table","buckets":[-1]}"#).contains("-1"));
        assert!(error(r#"{"kind":"table","buckets":[1],"most":1}"#).contains("unknown field `most`"));
        assert!(error(r#"{"kind":"multiple","bytes":0}"#).contains("from 1"));
        assert!(error(r#"{"kind":"multiple","bytes":1e99}"#).contains("cannot be read"));
        assert!(error(r#"{"kind":"random","most":65536,"draw":"keyed"}"#).contains("65536"));
        assert!(error(r#"{"kind":"map","sizes":[[5,4]]}"#).contains("5 bytes to 4"));
        assert!(error(r#"{"kind":"shrink"}"#).contains("shrink"));
        let row = |padded: &str| {
            error(&format!(r#"{{"kind":"random-table","draw":"keyed","rows":[{{"size":7,"padded":[{padded}]}}]}}"#))
        };
        assert!(row(r#"{"bytes":7,"probability":0.5}"#).contains("row of 7 bytes"));
        assert!(row(r#"{"bytes":6,"probability":1}"#).contains("7 bytes to 6"));
        assert!(row(r#"{"bytes":7,"probability":1.5},{"bytes":8,"probability":-0.5}"#).contains("above 0"));
        let version = PolicyFile::from_json(r#"{"version":2,"policy":{"kind":"new"}}"#).unwrap_err();
        assert_eq!(version, PolicyError::Version { found: 2, known: 1 });
        assert!(PolicyFile::from_json("").is_err() && PolicyFile::from_json("[]").is_err());
    }

    #[test]
    fn a_policy_that_would_not_be_read_is_not_written() {
        let file = PolicyFile::new(PaddingPolicy::Table { buckets: vec![2, 1] }, None);
        assert_eq!(file.to_json(), Err(PolicyError::Order(1)));
    }
}
