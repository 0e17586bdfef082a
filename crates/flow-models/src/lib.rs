//! Which model the commands of a flow are asked of.
//!
//! A model set has a section for each service of each gateway. [`FlowModels`] follows the flows of a stream and chooses
//! the section of each; [`PerSection`] is a stage that has an instance of another stage for every section and gives each
//! frame to that of its flow. [`model_files`] is the form of the option `--model`.

mod per_section;

pub use per_section::{FlowModels, PerSection, SectionInput, SectionStage, Subject, build_per_section};

/// The option `model` of the stages: in `pipeline.toml` one file or a list of files.
pub mod model_files {
    use std::path::PathBuf;

    use schemars::{JsonSchema, Schema, SchemaGenerator};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// One file or several: how the option is written in `pipeline.toml`.
    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    pub enum OneOrSeveral {
        One(PathBuf),
        Several(Vec<PathBuf>),
    }

    impl JsonSchema for OneOrSeveral {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "OneOrSeveral".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            schemars::json_schema!({ "type": ["string", "array"], "items": { "type": "string" } })
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<PathBuf>, D::Error> {
        let read = OneOrSeveral::deserialize(value);
        let read =
            read.map_err(|_| serde::de::Error::custom("expected the name of a model file, or a list of them"))?;
        Ok(match read {
            OneOrSeveral::One(file) => vec![file],
            OneOrSeveral::Several(files) => files,
        })
    }

    pub fn serialize<S: Serializer>(files: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        match files {
            [only] => only.serialize(serializer),
            files => files.serialize(serializer),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Options {
            #[serde(with = "super", default, skip_serializing_if = "Vec::is_empty")]
            model: Vec<PathBuf>,
        }

        #[test]
        fn one_file_is_text_and_several_are_a_list() {
            for (text, files) in
                [("", vec![]), ("model = \"a\"\n", vec!["a"]), ("model = [\"a\", \"b\"]\n", vec!["a", "b"])]
            {
                let options = Options { model: files.into_iter().map(PathBuf::from).collect() };
                assert_eq!(toml::from_str::<Options>(text), Ok(Options { model: options.model.clone() }));
                assert_eq!(toml::to_string(&options).as_deref(), Ok(text));
            }
            let error = toml::from_str::<Options>("model = 3").unwrap_err().to_string();
            assert!(error.contains("name of a model file"), "{error}");
        }
    }
}
