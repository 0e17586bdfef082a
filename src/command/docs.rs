//! `sizeleak docs`: manual pages and shell completions of all programs, and the JSON Schema of `pipeline.toml`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use sizeleak_pipeline::registry;
use sizeleak_pipeline::schema;
use sizeleak_platform::runtime::program::EXIT_CODES;
use sizeleak_platform::storage::replace;

use super::output_option::print;

/// Print manual pages, completions for a shell, or the JSON Schema of pipeline.toml
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sizeleak docs man | man -l -\n  \
    sizeleak docs bash > ~/.local/share/bash-completion/completions/sizeleak\n  \
    sizeleak docs schema > pipeline.schema.json\n\n\
    With `#:schema pipeline.schema.json` as the first line of a pipeline.toml, editors that use Taplo complete and check it.")]
pub(crate) struct Arguments {
    /// man, schema, or the shell to complete for: bash, zsh, fish, elvish, powershell
    #[arg(value_name = "WHAT", value_parser = what(), hide_possible_values = true)]
    what: What,

    /// Write a file for each program into this folder [default: print that of sizeleak]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Man,
    Schema,
    Completions(Shell),
}

fn what() -> impl TypedValueParser<Value = What> {
    PossibleValuesParser::new(["man", "schema", "bash", "zsh", "fish", "elvish", "powershell"]).try_map(|name| {
        Ok::<_, String>(match &*name {
            "man" => What::Man,
            "schema" => What::Schema,
            shell => What::Completions(Shell::from_str(shell, false)?),
        })
    })
}

pub(super) fn schema_text() -> String {
    format!("{:#}\n", schema::schema())
}

/// A command line whose options all have their texts in a manual page, which is read alone: also those that the short help
/// leaves out, those of all commands, and the exit codes.
fn with_every_text(command: Command) -> Command {
    let end = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string).unwrap_or_default();
    let codes = if end.contains("Exit code") { "" } else { EXIT_CODES };
    let command = command.after_long_help(format!("{end}\n\n{codes}").trim().to_owned());
    command.mut_args(|argument| argument.hide_short_help(false).hide(false)).mut_subcommands(with_every_text)
}

pub(crate) fn run(arguments: &Arguments, mut sizeleak: Command) -> Result<()> {
    let Some(folder) = &arguments.output else {
        let mut text = Vec::new();
        match arguments.what {
            What::Man => clap_mangen::Man::new(with_every_text(sizeleak)).render(&mut text)?,
            What::Completions(shell) => clap_complete::generate(shell, &mut sizeleak, "sizeleak", &mut text),
            What::Schema => text = schema_text().into_bytes(),
        }
        return print(&text);
    };
    let mut programs: Vec<Command> =
        [sizeleak].into_iter().chain(registry::all().map(|entry| (entry.command)())).collect();
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let made = tempfile::tempdir()?;
    match arguments.what {
        What::Schema => fs::write(made.path().join("pipeline.schema.json"), schema_text())?,
        // Subcommands have their own pages.
        What::Man => programs
            .into_iter()
            .try_for_each(|program| clap_mangen::generate_to(with_every_text(program), made.path()))?,
        What::Completions(shell) => programs.iter_mut().try_for_each(|program| {
            let name = program.get_name().to_owned();
            clap_complete::generate_to(shell, program, name, made.path()).map(drop)
        })?,
    }
    for entry in fs::read_dir(made.path())? {
        let entry = entry?;
        replace(&folder.join(entry.file_name()), &fs::read(entry.path())?)?;
    }
    Ok(())
}
