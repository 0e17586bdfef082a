//! What is commanded, what is captured, and when it ends, as `record` names it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use clap::builder::TypedValueParser;
use sizeleak_evaluation::experiment::{MAX_COMMANDS, Stop};
use sizeleak_model::Inventory;
use sizeleak_text::{MAX_WRITTEN_BYTES, counted, read_text};

use crate::command::failure::usage;
use crate::command::shared_options::{INPUT, OUTPUT, duration};

const END: &str = "End";

/// Command a home, capture it and learn its sizes, without a person
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    sizeleak record --inventory home.toml --do ./send.sh --interface eth1 --gateway 192.168.1.20 -o recorded\n  \
    sizeleak record --inventory home.toml --do ./send.sh --dry-run\n  \
    sizeleak record --inventory home.toml --do-lines ./sender.py --capture-with \
    'ssh router tcpdump -U --immediate-mode -w - host hub' --gateway 192.168.1.20 -o recorded\n  \
    sizeleak record --inventory home.toml --do ./send.sh --labels-only -o recorded\n  \
    sizeleak record --inventory home.toml --ask --interface eth1 --gateway 192.168.1.20 -o recorded\n\n\
    CMD gets one command as a line of JSON on stdin: {\"number\": 17, \"actions\": {\"on\": 2}, \"devices\": [{\"device\": \
    \"plug\", \"index\": 0, \"action\": \"on\"}, …]}. If it ends with another code than 0, the command does not count. With \
    `--do-lines`, one process gets all of them, and answers each by the line `ok`, or by why it was not sent.\n\n\
    Every second command is held back, to test the model with it. Recording stops when all sizes are certain, when more \
    commands would not help, at a limit, or on Ctrl-C. Named again, a folder goes on where it was stopped. docs/guide.md \
    says what it holds, and shows how to drive gateways.")]
pub(crate) struct Arguments {
    /// The devices; those with `safe = false` are left out
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub(super) inventory: PathBuf,

    #[command(flatten)]
    pub(super) command: CommandOptions,

    #[command(flatten)]
    pub(super) capture: CaptureOptions,

    /// Stop after N commands
    #[arg(long, value_name = "N", default_value_t = MAX_COMMANDS, help_heading = END,
        value_parser = clap::value_parser!(u32).range(1..=100_000).map(|count| count as usize))]
    pub(super) max_commands: usize,

    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = END)]
    pub(super) max_time: Option<Duration>,

    /// The seed of all choices
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Commands")]
    pub(super) seed: u64,

    /// Print which commands would be sent, and send none
    #[arg(long, help_heading = OUTPUT)]
    pub(super) dry_run: bool,

    /// The folder to write into, or to go on with
    #[arg(short, long, value_name = "DIR", required_unless_present = "dry_run", help_heading = OUTPUT)]
    pub(super) output: Option<PathBuf>,
}

/// How commands are sent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Commands")]
pub(super) struct CommandOptions {
    /// Start CMD for each command, with JSON on stdin
    #[arg(long = "do", value_name = "CMD")]
    pub(super) program: Option<String>,

    /// Start CMD once, with a line of JSON for each, which it answers by `ok`, or by why it was not sent
    #[arg(long, value_name = "CMD", conflicts_with = "program")]
    pub(super) do_lines: Option<String>,

    /// Ask for each command on the terminal: somebody sends it, at a phone or at the device
    #[arg(long, conflicts_with_all = ["program", "do_lines", "quiet"])]
    pub(super) ask: bool,

    /// Also command the devices of this name, which have `safe = false` in the inventory; can be repeated
    #[arg(long, value_name = "NAME")]
    include: Vec<String>,

    /// First record what `learn --suggest FILE` asked for
    #[arg(long, value_name = "FILE")]
    pub(super) plan: Option<PathBuf>,

    /// Make the gateway connect anew when the capture runs: its handshake shows the cipher suite
    #[arg(long, value_name = "CMD")]
    pub(super) reconnect: Option<String>,

    /// Put the state back at the end
    #[arg(long, value_name = "CMD")]
    pub(super) restore: Option<String>,

    /// The least time from one command to the next
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(super) pause: Duration,
}

/// What is captured.
#[derive(Debug, Args)]
#[command(next_help_heading = INPUT)]
pub(super) struct CaptureOptions {
    /// Capture this interface with tcpdump
    #[arg(long, value_name = "IF", conflicts_with_all = ["capture_with", "labels_only"])]
    pub(super) interface: Option<String>,

    /// Capture with CMD, which writes pcap or pcapng to stdout, each packet at once
    #[arg(long, value_name = "CMD", conflicts_with = "labels_only")]
    pub(super) capture_with: Option<String>,

    /// Only send, write labels: the capture is elsewhere
    #[arg(long)]
    pub(super) labels_only: bool,

    /// The gateway's address or network; can be repeated
    #[arg(long, value_name = "IP|CIDR", value_delimiter = ',')]
    pub(super) gateway: Vec<String>,

    /// How long the gateway must be silent before a command and after it
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration)]
    pub(super) silence: Duration,
}

impl CommandOptions {
    pub(super) fn commanded(&self, inventory: &Inventory) -> Result<Inventory> {
        let names = || inventory.devices.iter().map(|device| &device.name);
        if let Some(unknown) = self.include.iter().find(|name| names().all(|known| known != *name)) {
            let known = names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return Err(usage!("`--include {unknown}`: the inventory has {known}"));
        }
        let devices = inventory.devices.iter().filter(|device| device.safe || self.include.contains(&device.name));
        let commanded = Inventory { devices: devices.cloned().collect() };
        if commanded.devices.is_empty() {
            return Err(usage!(
                "every device of the inventory has `safe = false`: name those to command with `--include`"
            ));
        }
        Ok(commanded)
    }
}

/// The commands of a plan that `learn --suggest` wrote: a column for each action, without times.
pub(super) fn planned(path: &Path, actions: &[String]) -> Result<Vec<Vec<u32>>> {
    let name = || path.display().to_string();
    let text = read_text(path, MAX_WRITTEN_BYTES).with_context(name)?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let headers = reader.headers().with_context(name)?.clone();
    let columns: Vec<Option<usize>> =
        actions.iter().map(|action| headers.iter().position(|header| header == action)).collect();
    if columns.iter().all(Option::is_none) {
        return Err(anyhow!("{}: no column is an action that may be commanded", name()));
    }
    let mut planned = Vec::new();
    for (row, line) in reader.records().zip(2_u64..) {
        let row = row.with_context(name)?;
        if row.len() != headers.len() {
            let (cells, all) = (counted(row.len(), "cell", "cells"), headers.len());
            return Err(anyhow!("{}, line {line}: it has {cells}, and the header {all}", name()));
        }
        let count = |column: &Option<usize>| match column.and_then(|at| row.get(at)).map_or("", str::trim) {
            "" => Ok(0),
            count => count.parse::<u32>().map_err(|_| anyhow!("{}, line {line}: `{count}` is not a count", name())),
        };
        let counts = columns.iter().map(count).collect::<Result<Vec<u32>>>()?;
        if counts.iter().any(|count| *count > 0) {
            planned.push(counts);
        }
    }
    Ok(planned)
}

pub(super) enum End {
    Decided(Stop),
    LabelsComplete,
    MaxTime,
    Interrupted,
}

impl End {
    pub(super) fn in_words(&self) -> String {
        let words = match self {
            Self::Decided(Stop::Settled) => "all sizes are certain and explain the commands held back",
            Self::Decided(Stop::OffTogether) => {
                "more commands would not help: sizes explain the commands held back, but all may be off by the same few \
                 bytes, as this home has no command that shows where length fields grow"
            }
            Self::Decided(Stop::NoGain { tied }) if tied.is_empty() => {
                "more commands would not help: sizes are certain, but do not explain the commands held back"
            }
            Self::Decided(Stop::NoGain { tied }) => {
                let stay = if tied.len() == 1 { "stays" } else { "stay" };
                return format!("more commands would not help: {} {stay} open", tied.join(", "));
            }
            Self::Decided(Stop::WithoutSums(cause)) => return format!("more commands would not help: {cause}"),
            Self::Decided(Stop::MaxCommands) => "as many commands as `--max-commands` allows",
            Self::LabelsComplete => "the commands that sizes need are sent",
            Self::MaxTime => "`--max-time` is over",
            Self::Interrupted => "interrupted",
        };
        words.to_owned()
    }
}
