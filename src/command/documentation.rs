//! `sizeleak completions` and `sizeleak man`: shell completions and manual pages of all programs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::generate_to;

use sizeleak_pipeline::registry::{self, StageEntry};
use sizeleak_platform::storage::replace;

use super::failure::Failure;
use super::output_option::print;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sizeleak completions bash > ~/.local/share/bash-completion/completions/sizeleak")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,

    #[command(flatten)]
    target: DocumentationTarget,
}

/// Print manual pages
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sizeleak man | man -l -\n  sizeleak man -o ~/.local/share/man/man1")]
pub(crate) struct Man {
    #[command(flatten)]
    target: DocumentationTarget,
}

/// The programs to document, and where to.
#[derive(Debug, Args)]
struct DocumentationTarget {
    /// The program [default: sizeleak]
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Write a file for each program into this folder
    #[arg(short, long, value_name = "DIR", conflicts_with = "program")]
    output: Option<PathBuf>,
}

impl DocumentationTarget {
    /// The folder to write into, created if missing.
    fn folder(&self) -> Result<Option<&Path>, Failure> {
        let Some(folder) = &self.output else { return Ok(None) };
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(Some(folder))
    }

    /// One of the programs.
    fn program(&self, programs: Vec<Command>) -> Result<Command, Failure> {
        let wanted = self.program.as_deref().unwrap_or("sizeleak");
        let names = programs.iter().map(Command::get_name).collect::<Vec<_>>().join(", ");
        let program = programs.into_iter().find(|program| program.get_name() == wanted);
        program.ok_or_else(|| Failure::usage(anyhow!("there is no program `{wanted}`: the programs are {names}")))
    }
}

/// The command lines of all programs.
fn programs(sizeleak: Command) -> Vec<Command> {
    [sizeleak].into_iter().chain(registry::all().map(StageEntry::command)).collect()
}

/// Writes the files that `generate` makes in a folder into this one, each completely or not at all.
fn write_all(folder: &Path, generate: impl FnOnce(&Path) -> io::Result<()>) -> Result<ExitCode, Failure> {
    let made = tempfile::tempdir()?;
    generate(made.path())?;
    for entry in fs::read_dir(made.path())? {
        let entry = entry?;
        replace(&folder.join(entry.file_name()), &fs::read(entry.path())?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Completions; `sizeleak` is the command line of this program.
pub(crate) fn completions(arguments: &Completions, sizeleak: Command) -> Result<ExitCode, Failure> {
    let (shell, programs) = (arguments.shell, programs(sizeleak));
    if let Some(folder) = arguments.target.folder()? {
        return write_all(folder, |made| {
            programs.into_iter().try_for_each(|mut program| {
                let name = program.get_name().to_owned();
                clap_complete::generate_to(shell, &mut program, name, made).map(drop)
            })
        });
    }
    let mut program = arguments.target.program(programs)?;
    let mut text = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(shell, &mut program, name, &mut text);
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A command line whose options all have their texts in a manual page, also those that are not in the short help.
fn with_every_text(command: Command) -> Command {
    command.mut_args(|argument| argument.hide_short_help(false)).mut_subcommands(with_every_text)
}

/// Manual pages; `sizeleak` is the command line of this program.
pub(crate) fn man(arguments: &Man, sizeleak: Command) -> Result<ExitCode, Failure> {
    let programs: Vec<Command> = programs(sizeleak).into_iter().map(with_every_text).collect();
    if let Some(folder) = arguments.target.folder()? {
        // Subcommands have their own pages.
        return write_all(folder, |made| programs.into_iter().try_for_each(|program| generate_to(program, made)));
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(arguments.target.program(programs)?).render(&mut text)?;
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
