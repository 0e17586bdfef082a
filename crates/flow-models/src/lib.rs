//! Which model the commands of a flow are asked of.
//!
//! A model set has a section for each service of each gateway. [`FlowModels`] follows the flows of a stream and chooses
//! the section of each; [`PerSection`] is a stage that has an instance of another stage for every section and gives each
//! frame to that of its flow. [`model_files`] is the form of the option `--model`.

mod flow_models;
pub mod model_files;
mod per_section;

pub use flow_models::FlowModels;
pub use per_section::{PerSection, SectionInput, SectionStage, Subject, build_per_section};
