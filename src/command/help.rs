//! The help of every command: headings, a short text for `-h` that fits a screen, and everything for `--help`.

use clap::{Arg, Command};

pub(super) use sizeleak_platform::telemetry::headings::MEASURING;

pub(super) const INPUT: &str = "Input";

pub(super) const STAGES: &str = "Stages";

pub(super) const OUTPUT: &str = "Output";

pub(super) const PADDING: &str = "Padding";

pub(super) const CURVE: &str = "Options with --curve";

pub(super) const FOLDS: &str = "Options with --folds and --curve";

/// The options that the short help has; others are in the long one.
const SHOWN: &str = "add ask budget capture-with countermeasures curve details do do-lines drop-others dry-run folds \
    force format frames from gateway help include input interface inventory jobs keep-dns kind labels \
    labels-only max-commands max-time model output pcap pipeline plan policy profile program quick quiet \
    reconnect suggest restore scenario sequence serve set table target time-zone title verbose version \
    watch whole width";

/// The same of one command.
const SHOWN_OF: [(&str, &str); 6] = [
    ("audit", "tunnel"),
    ("detect", "alarms"),
    ("plot", "since"),
    ("plot", "until"),
    ("simulate", "padding"),
    ("simulate", "seed"),
];

/// The help of a subcommand: the flags of all commands are in that of the program, the short one has the first example
/// and the options that people look for.
pub(super) fn of_subcommand(subcommand: Command, of_all: &[Arg]) -> Command {
    let long = subcommand.get_after_long_help().map(ToString::to_string);
    let first = long.as_deref().and_then(|text| text.split_once(":\n")?.1.split('\n').next().map(str::to_owned));
    let subcommand = match first.filter(|_| subcommand.get_after_help().is_none()) {
        Some(example) => subcommand.after_help(format!("Example:\n{example}")),
        None => subcommand,
    };
    let name = subcommand.get_name().to_owned();
    let is_shown = |option: &str| SHOWN.split(' ').any(|shown| shown == option) || SHOWN_OF.contains(&(&*name, option));
    let subcommand = subcommand.mut_args(|argument| match argument.get_long() {
        Some(option) if !is_shown(option) => argument.hide_short_help(true),
        _ => argument,
    });
    subcommand.args(of_all.iter().cloned().map(|flag| flag.hide(true)))
}
