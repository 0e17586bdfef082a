//! `sizeleak completions` and `sizeleak man`: shell completions and manual pages of all programs.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::Shell;

use super::Failure;
use sizeleak_pipeline::registry::{STAGES, StageEntry};

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sizeleak completions bash > ~/.local/share/bash-completion/completions/sizeleak")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,

    #[command(flatten)]
    target: Target,
}

/// Print manual pages
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sizeleak man | man -l -\n  sizeleak man -o ~/.local/share/man/man1")]
pub(crate) struct Man {
    #[command(flatten)]
    target: Target,
}

/// For which programs, and where to.
#[derive(Debug, Args)]
struct Target {
    /// The program [default: sizeleak]
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Write a file for each program into this folder
    #[arg(short, long, value_name = "DIR", conflicts_with = "program")]
    output: Option<PathBuf>,
}

impl Target {
    /// The folder to write into, made where it is missing.
    fn folder(&self) -> Result<Option<&Path>, Failure> {
        let Some(folder) = &self.output else { return Ok(None) };
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(Some(folder))
    }

    /// The one program that is meant.
    fn program(&self) -> Result<Command, Failure> {
        let wanted = self.program.as_deref().unwrap_or("sizeleak");
        let all = programs();
        let names = all.iter().map(Command::get_name).collect::<Vec<_>>().join(", ");
        let program = all.into_iter().find(|program| program.get_name() == wanted);
        program.ok_or_else(|| Failure::usage(anyhow::anyhow!("`{wanted}` is none of the programs: {names}")))
    }
}

/// The command lines of all programs.
fn programs() -> Vec<Command> {
    let stages = STAGES.iter().map(StageEntry::command);
    [super::command()].into_iter().chain(stages).collect()
}

pub(crate) fn completions(arguments: &Completions) -> Result<ExitCode, Failure> {
    let shell = arguments.shell;
    if let Some(folder) = arguments.target.folder()? {
        for mut program in programs() {
            let name = program.get_name().to_owned();
            clap_complete::generate_to(shell, &mut program, name, folder)
                .with_context(|| folder.display().to_string())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut program = arguments.target.program()?;
    let mut text = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(shell, &mut program, name, &mut text);
    print(&text)
}

pub(crate) fn man(arguments: &Man) -> Result<ExitCode, Failure> {
    if let Some(folder) = arguments.target.folder()? {
        for program in programs() {
            // A page for each subcommand, too.
            clap_mangen::generate_to(program, folder).with_context(|| folder.display().to_string())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(arguments.target.program()?).render(&mut text)?;
    print(&text)
}

/// Writes a text to stdout.
pub(super) fn print(text: &[u8]) -> Result<ExitCode, Failure> {
    match super::stdout()?.write_all(text) {
        // Nobody reading it any more is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
