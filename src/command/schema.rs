//! `sizeleak schema`: the JSON Schema of `pipeline.toml`.

use std::process::ExitCode;

use clap::Args;
use sizeleak_pipeline::schema;

use super::failure::Failure;
use super::output_option::print;

/// Print the JSON Schema of pipeline.toml, for editors
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  sizeleak schema > pipeline.schema.json\n\nWith `#:schema pipeline.schema.json` as the \
                        first line of a pipeline.toml, editors that use Taplo complete and check it."
)]
pub(crate) struct Arguments {}

/// The text of the schema file.
pub(super) fn text() -> String {
    format!("{:#}\n", schema::schema())
}

pub(crate) fn run(_: &Arguments) -> Result<ExitCode, Failure> {
    print(text().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
