//! `sizeleak record`: commands a home, captures it, learns from it and stops by itself.

mod options;
pub(super) mod sender;
mod session;
mod tap;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use sizeleak_evaluation::experiment::{Decision, Experiment, Journal};
use sizeleak_model::Inventory;
use sizeleak_platform::storage::UNIQUE_LETTERS;
use sizeleak_platform::telemetry::log::{say, show};
use sizeleak_text::{MAX_WRITTEN_BYTES, counted, read_text};

pub(crate) use self::options::Arguments;
use self::session::{JOURNAL, Session, in_words};
use super::failure::usage;

const SHOWN: usize = 60;

/// What a recording writes, besides captures and the inventory as it is.
const WRITTEN: [&str; 4] = [JOURNAL, "labels.csv", "test.csv", "model.toml"];

pub(crate) fn run(arguments: &Arguments, session: &mut super::session::Session) -> Result<()> {
    let named = |path: &Path| path.display().to_string();
    let text = read_text(&arguments.inventory, MAX_WRITTEN_BYTES).with_context(|| named(&arguments.inventory))?;
    let inventory = Inventory::from_toml(&text).with_context(|| named(&arguments.inventory))?;
    let commanded = arguments.command.commanded(&inventory)?;
    let experiment = Experiment::new(commanded, arguments.max_commands, arguments.seed);
    let mut experiment = experiment.with_context(|| named(&arguments.inventory))?;
    if let Some(plan) = &arguments.command.plan {
        let asked = options::planned(plan, experiment.actions())?;
        experiment = experiment.asked_for(asked);
    }
    let Some(folder) = arguments.output.as_deref().filter(|_| !arguments.dry_run) else {
        dry_run(experiment);
        return Ok(());
    };
    session.check_folder("the recorded file", folder, &WRITTEN)?;
    fs::create_dir_all(folder).with_context(|| named(folder))?;
    remove_leftovers(folder).with_context(|| named(folder))?;
    let journal = journal(arguments.seed, folder, &mut experiment)?;
    let inventory_file = folder.join("inventory.toml");
    if inventory_file != arguments.inventory {
        super::output_option::write(&inventory_file, text.as_bytes())?;
    }
    Session::new(arguments, folder, inventory, experiment, journal)?.record()
}

fn journal(seed: u64, folder: &Path, experiment: &mut Experiment) -> Result<Journal> {
    let path = folder.join(JOURNAL);
    if !path.exists() {
        let captures = tap::captures(folder).with_context(|| folder.display().to_string())?;
        let Some(capture) = captures.first() else { return Ok(Journal::new(experiment.actions(), seed)) };
        return Err(usage!("{} is of another recording: name an empty folder", capture.display()));
    }
    let name = || path.display().to_string();
    let text = fs::read_to_string(&path).with_context(name)?;
    let journal: Journal = serde_json::from_str(&text)
        .map_err(|error| anyhow!("{}: this is no record.json of `sizeleak record`: {error}", name()))?;
    let journal = journal.resume(experiment).with_context(name)?;
    if !journal.steps.is_empty() {
        let (sent, steps) = (experiment.commands(), journal.steps.len());
        let steps = counted(steps, "command counts", "commands count");
        say("record", &format!("goes on in {}: {sent} of {steps}", folder.display()));
    }
    Ok(journal)
}

/// Removes what a recording that was killed had not written to its end: `.record.json.` and random letters.
fn remove_leftovers(folder: &Path) -> std::io::Result<()> {
    let is_unique = |name: &str| name.len() == UNIQUE_LETTERS && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_leftover = |name: &str| {
        let written = WRITTEN.iter().chain([&"inventory.toml"]);
        let mut ends = written.filter_map(|it| name.strip_prefix('.')?.strip_prefix(it)?.strip_prefix('.'));
        ends.next().is_some_and(is_unique)
    };
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_leftover) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Prints what would be sent if every command were seen.
fn dry_run(mut experiment: Experiment) {
    let expected = experiment.expected_commands();
    let mut lines = vec![format!("about {}, every second one held back:", counted(expected, "command", "commands"))];
    for number in 1..=expected.min(SHOWN) {
        let Decision::Send(command) = experiment.next() else { break };
        lines.push(format!("{number:>4}  {}  ({})", in_words(&command), command.why));
        experiment.add(command.half, Some(&command.counts));
    }
    if expected > SHOWN {
        lines.push(format!("and {} more", expected - SHOWN));
    }
    show(&lines.join("\n"));
}
