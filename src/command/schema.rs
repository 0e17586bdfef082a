//! `sizeleak schema`: the JSON Schema of `pipeline.toml`.

use std::process::ExitCode;

use clap::Args;

use super::Failure;
use super::documentation::print;
use sizeleak_pipeline::schema;

/// Print the JSON Schema of pipeline.toml, for editors
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  sizeleak schema > pipeline.schema.json\n\nWith `#:schema pipeline.schema.json` as the \
                        first line of a pipeline.toml, editors that use Taplo complete and check it."
)]
pub(crate) struct Arguments {}

/// The schema as the file that is committed.
pub(super) fn text() -> String {
    format!("{:#}\n", schema::schema())
}

pub(crate) fn run(_: &Arguments) -> Result<ExitCode, Failure> {
    print(text().as_bytes())
}
