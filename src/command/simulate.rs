//! `sizeleak simulate`: labelled captures with real TLS, or a home that is commanded while it runs.

mod serving;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use jiff::SignedDuration;
use sizeleak_platform::storage::RunFiles;
use sizeleak_platform::telemetry::log::{self, say};
use sizeleak_simulator::{BayesLimit, Scenario, SimulateError, Simulation, TestForm, bayes_limit, simulate_as};
use sizeleak_text::{MAX_WRITTEN_BYTES, read_text};

use self::serving::Served;
use super::failure::Failure;
use super::padding_option::PaddingOption;

/// Make labelled captures of a simulated gateway, with real TLS
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sizeleak simulate --scenario home.toml --seed 7 -o home\n\
                        writes learn.pcap, learn.csv, test.pcap, test.csv and inventory.toml into home, and prints how \
                        often the best possible first answer to a command is right. The same scenario and seed \
                        produce the same bytes. examples/scenarios/default.toml lists all keys.")]
pub(crate) struct Arguments {
    /// A description of the home, the service and the network [default: the home of the paper]
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,

    /// Pad commands by this policy, in place of the scenario's
    ///
    /// A file that `sizeleak pad` wrote, or a name, as in the scenario's `[padding]`.
    #[arg(long, value_name = "POLICY")]
    padding: Option<PaddingOption>,

    /// Write the commands to test on as frames, in place of a capture: a year takes seconds
    ///
    /// They have the sizes that they would have in a capture. `sizeleak run test.frames --model model.toml` answers them.
    #[arg(long)]
    frames: bool,

    /// Let the devices and times of a file be those of the test: CSV with time, device, action
    ///
    /// The devices replace those of the scenario.
    #[arg(long, value_name = "FILE")]
    sequence: Option<PathBuf>,

    /// The seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The folder to write into, created if missing
    #[arg(short, long, value_name = "DIR", required_unless_present = "serve")]
    output: Option<PathBuf>,

    /// Run the home now: each line of stdin is a command, as `record --do-lines` gives it
    ///
    /// The gateway and its service have a real TLS session over loopback. The inventory is written into DIR, if there is
    /// one.
    #[arg(long, conflicts_with_all = ["frames", "sequence"])]
    serve: bool,

    /// With --serve, write what crosses the loopback into this capture, packet by packet
    #[arg(long, value_name = "FILE", requires = "serve")]
    pcap: Option<PathBuf>,

    /// With --serve, how far the capture's clock is ahead, as in 20s or -20s
    #[arg(
        long,
        value_name = "TIME",
        requires = "pcap",
        default_value = "0s",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    clock_ahead: SignedDuration,
}

/// The longest sequence that is read, in bytes: years of a home.
const MAX_SEQUENCE_BYTES: u64 = 64 << 20;

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut scenario = match &arguments.scenario {
        Some(path) => {
            let text = read_text(path, MAX_WRITTEN_BYTES).with_context(|| path.display().to_string())?;
            Scenario::from_toml(&text).with_context(|| path.display().to_string())?
        }
        None => Scenario::default(),
    };
    if let Some(path) = &arguments.sequence {
        let text = read_text(path, MAX_SEQUENCE_BYTES).with_context(|| path.display().to_string())?;
        scenario.play(&text).with_context(|| path.display().to_string())?;
    }
    if let Some(padding) = &arguments.padding {
        scenario.padding.policy = padding.policy()?;
    }
    if arguments.serve {
        let Arguments { output, pcap, clock_ahead, .. } = arguments;
        let (folder, pcap) = (output.as_deref(), pcap.as_deref());
        let served = Served { folder, pcap, clock_ahead: *clock_ahead };
        return serving::serve(scenario, arguments.seed, &served);
    }
    let Some(output) = &arguments.output else { return Ok(ExitCode::SUCCESS) };
    let mut files = RunFiles::new();
    if let Some(scenario) = &arguments.scenario {
        files.reads("the scenario", scenario);
    }
    if let Some(policy) = arguments.padding.as_ref().and_then(PaddingOption::file) {
        files.reads("the padding policy", policy);
    }
    let form = if arguments.frames { TestForm::Frames } else { TestForm::Capture };
    for name in Simulation::files(&scenario, form) {
        files.writes("the simulated file", &output.join(name));
    }
    if let Some(sequence) = &arguments.sequence {
        files.reads("the sequence", sequence);
    }
    files.check()?;
    let simulation = simulate_as(&scenario, arguments.seed, form)?;
    simulation.write_to(output)?;
    let (learn, test) = (simulation.learn.truths.len(), simulation.test.truths.len());
    let folder = output.display().to_string();
    say(&folder, &format!("{learn} labelled commands to learn from, {test} to test on"));
    // It may take the longest.
    if !log::is_quiet() {
        say("best possible", &best_possible(&scenario));
    }
    Ok(ExitCode::SUCCESS)
}

/// How often the best first answer to a command is right, or why that is not known.
fn best_possible(scenario: &Scenario) -> String {
    match bayes_limit(scenario) {
        Err(error) => error.to_string(),
        Ok(BayesLimit { top_1, top_1_with_reply_count, top_1_with_replies, neglected, .. }) => {
            let shown = |share: f64| format!("{:.3} %", 100.0 * share);
            let [size, count, replies] = [top_1, top_1_with_reply_count, top_1_with_replies].map(shown);
            let figures = format!(
                "first answer right in {size} by the size alone, {count} with the number of replies, {replies} with the \
                 size of each reply"
            );
            // Only what would change a figure.
            if neglected < 0.000_005 { figures } else { format!("{figures} (at most {} more)", shown(neglected)) }
        }
    }
}

impl From<SimulateError> for Failure {
    fn from(error: SimulateError) -> Self {
        anyhow::Error::from(error).into()
    }
}
