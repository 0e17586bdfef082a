//! The command line of `sizeleak report`.

use clap::{Args, ValueEnum};

use crate::command::audited_model::AuditedModel;
use crate::command::help::OUTPUT;
use crate::command::labelled_captures::LabelledCaptures;
use crate::command::output_option::OutputOption;

/// Write all that is known of a gateway's leak as a page for people
#[derive(Debug, Args)]
#[command(mut_arg("set", |set| set.hide_short_help(true)))]
#[command(mut_arg("operands", |files| {
    files.help("Captures with `--labels`, answers, deviations or a profile, recognised by content; `-` is stdin")
}))]
#[command(after_long_help = "Examples:\n  \
    sizeleak report --model model.toml -o report.html\n  \
    sizeleak report test.pcap --labels test.csv --model model.toml --gateway 192.168.1.20 -o report.html\n  \
    sizeleak report answers.frames home.profile.toml deviations.ndjson -o report.html\n  \
    sizeleak report --model model.toml --quick --format markdown > report.md\n\n\
    FILE is any of: captures with `--labels`; answers and deviations, as `sizeleak run`, `archive`, `detect` and the stage \
    `detector` write them; a profile, as `sizeleak profile` writes it. They are told apart by content. What is not given is \
    left out, and the page says what to give.\n\n\
    The page is one file. It loads nothing and sends nothing, and holds sums over many commands: no single command, and no \
    time of a single event. docs/report.md explains it.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) captures: LabelledCaptures,

    #[command(flatten)]
    pub(super) audited: AuditedModel,

    /// Leave out the learning curve, which takes longest
    #[arg(long)]
    pub(super) quick: bool,

    /// The format of the output: html or markdown [default: by the name of FILE, else html]
    #[arg(long, value_enum, hide_possible_values = true, help_heading = OUTPUT)]
    pub(super) format: Option<ReportForm>,

    #[command(flatten)]
    pub(super) output: OutputOption,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportForm {
    /// One page that loads nothing
    #[default]
    Html,
    /// The same text and tables as Markdown
    Markdown,
}
