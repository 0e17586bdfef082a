//! `sizeleak simulate`: labelled captures with real TLS, or a home that is commanded while it runs.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use crossbeam_channel::RecvTimeoutError;
use jiff::SignedDuration;
use serde::Deserialize;
use sizeleak_platform::storage::replace;
use sizeleak_platform::telemetry::log::{self, say};
use sizeleak_simulator::scenario::AttackKind;
use sizeleak_simulator::{
    AttackTime, BayesLimit, CommandedDevice, Flight, LiveHome, LiveSession, Scenario, Simulation, TestForm,
    bayes_limit, simulate_as,
};
use sizeleak_text::{counted, read_text};

use super::failure::parsed;
use super::record::sender::{lines_of, now_ns};
use super::session::Session;
use super::shared_options::PaddingOption;

/// Make labelled captures of a simulated gateway, with real TLS
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sizeleak simulate --scenario home.toml --seed 7 -o home\n\
                        writes learn.pcap, learn.csv, test.pcap, test.csv and inventory.toml into home, and prints how \
                        often the best possible first answer to a command is right, where that is known. The same \
                        scenario and seed produce the same bytes. examples/scenarios/default.toml lists all keys.")]
pub(crate) struct Arguments {
    /// A description of the home, the service and the network [default: the home of the paper]
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,

    /// Pad commands by this policy, in place of the scenario's. A file that `sizeleak pad` wrote, or a name, as in the
    /// scenario's `[padding]`.
    #[arg(long, value_name = "POLICY")]
    padding: Option<PaddingOption>,

    /// Write the commands to test on as frames, with the same sizes, in place of a capture: a year takes seconds
    #[arg(long)]
    frames: bool,

    /// Let the devices and times of a file be those of the test, not the scenario's: CSV with time, device, action
    #[arg(long, value_name = "FILE")]
    sequence: Option<PathBuf>,

    /// The seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The folder to write into, created if missing
    #[arg(short, long, value_name = "DIR", required_unless_present = "serve")]
    output: Option<PathBuf>,

    /// Run the home now, over loopback: each line of stdin is a command, as `record --do-lines` gives it
    #[arg(long, conflicts_with_all = ["frames", "sequence"])]
    serve: bool,

    /// With --serve, write what crosses the loopback into this capture, packet by packet
    #[arg(long, value_name = "FILE", requires = "serve")]
    pcap: Option<PathBuf>,

    /// With --serve, how far the capture's clock is ahead, as in 20s or -20s
    #[arg(long, value_name = "TIME", requires = "pcap", default_value = "0s", allow_hyphen_values = true)]
    clock_ahead: SignedDuration,
}

/// The file of a folder that says which devices are served.
const INVENTORY: &str = "inventory.toml";

/// The longest sequence that is read, in bytes: years of a home.
const MAX_SEQUENCE_BYTES: u64 = 64 << 20;

pub(crate) fn run(arguments: &Arguments, session: &mut Session) -> Result<()> {
    let scenario = arguments.scenario.as_ref().map(|path| parsed(path, Scenario::from_toml));
    let mut scenario = scenario.transpose()?.unwrap_or_default();
    if let Some(path) = &arguments.sequence {
        let text = read_text(path, MAX_SEQUENCE_BYTES).with_context(|| path.display().to_string())?;
        scenario.play(&text).with_context(|| path.display().to_string())?;
    }
    if let Some(padding) = &arguments.padding {
        scenario.padding.policy = padding.policy()?;
    }
    let form = if arguments.frames { TestForm::Frames } else { TestForm::Capture };
    if let Some(output) = &arguments.output {
        let names = if arguments.serve { vec![INVENTORY] } else { Simulation::files(&scenario, form) };
        session.check_folder("the simulated file", output, &names)?;
    }
    if arguments.serve {
        return serve(scenario, arguments);
    }
    let Some(output) = &arguments.output else { return Ok(()) };
    let simulation = simulate_as(&scenario, arguments.seed, form)?;
    simulation.write_to(output)?;
    let (learn, test) = (simulation.learn.truths.len(), simulation.test.truths.len());
    let folder = output.display().to_string();
    let learn = counted(learn, "labelled command", "labelled commands");
    say(&folder, &format!("{learn} to learn from, {test} to test on"));
    let mut left_out: Vec<AttackKind> = scenario.habits.attacks.iter().map(|attack| attack.kind).collect();
    for AttackTime { kind, .. } in &simulation.attacks {
        if let Some(at) = left_out.iter().position(|planned| planned == kind) {
            left_out.swap_remove(at);
        }
    }
    if !left_out.is_empty() {
        left_out.sort_unstable();
        let kinds = left_out.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let number = scenario.habits.attacks.len();
        say(
            "note",
            &format!("{} of {number} attacks left out, for which this home gives no occasion: {kinds}", left_out.len()),
        );
    }
    // It may take the longest.
    if !log::is_quiet() {
        let possible = if arguments.sequence.is_some() {
            "the limit is not known where `--sequence` says what comes: an observer learns how often its commands come"
                .to_owned()
        } else {
            best_possible(&scenario)
        };
        say("best possible", &possible);
    }
    Ok(())
}

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

/// The longest line of a command, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// Delayed acknowledgements are due after this time, if nothing else is.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// A command, as `record` tells it; what else it tells is not needed.
#[derive(Deserialize)]
struct Told {
    devices: Vec<CommandedDevice>,
}

struct Loopback {
    gateway: TcpStream,
    service: TcpStream,
}

impl Loopback {
    fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let gateway = TcpStream::connect(listener.local_addr()?)?;
        let (service, _) = listener.accept()?;
        gateway.set_nodelay(true)?;
        service.set_nodelay(true)?;
        Ok(Self { gateway, service })
    }

    fn carry(&mut self, flight: &Flight) -> Result<()> {
        let Self { gateway, service } = self;
        let (from, to) = if flight.is_from_gateway { (gateway, service) } else { (service, gateway) };
        let mut received = vec![0; flight.records.len()];
        // Both ends are this thread, and a flight is shorter than what a socket holds.
        from.write_all(&flight.records).and_then(|()| to.read_exact(&mut received))?;
        if received == flight.records { Ok(()) } else { Err(anyhow!("the loopback changed what it carried")) }
    }
}

fn serve(scenario: Scenario, arguments: &Arguments) -> Result<()> {
    let Arguments { output: folder, pcap, clock_ahead, .. } = arguments;
    let home = LiveHome::new(scenario, arguments.seed)?;
    if let Some(folder) = folder {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        replace(&folder.join(INVENTORY), home.inventory()?.as_bytes())?;
    }
    let mut capture = None;
    if let Some(path) = pcap {
        let name = || path.display().to_string();
        let file = capture.insert(File::create(path).with_context(name)?);
        file.write_all(&LiveSession::pcap_header()?).with_context(name)?;
    }
    let ahead_ns = i64::try_from(clock_ahead.as_nanos()).unwrap_or(0);
    let mut loopback = Loopback::open()?;
    // Another session each time, as of a gateway that connects again.
    let begun_ns = now_ns();
    let mut session = home.open((begun_ns / 1_000_000) as u32, begun_ns)?;
    for flight in session.handshake() {
        loopback.carry(&flight)?;
    }
    let [gateway, service] = [&loopback.gateway, &loopback.service].map(TcpStream::local_addr);
    say("simulate", &format!("gateway {}, service {}: give commands as lines of stdin", gateway?, service?));
    let lines = lines_of(io::stdin(), MAX_LINE);
    loop {
        let next = session
            .next_ns()
            .map_or(MAX_WAIT, |next| Duration::from_nanos(next.saturating_sub(now_ns()).max(0).unsigned_abs()));
        let line = match lines.recv_timeout(next.min(MAX_WAIT)) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let answer = line.map(|line| answer(&mut session, &line));
        let now = now_ns();
        for flight in session.flights(now)? {
            loopback.carry(&flight)?;
        }
        let packets = session.packets(now, ahead_ns)?;
        if let (Some(file), Some(path)) = (&mut capture, pcap) {
            file.write_all(&packets).with_context(|| path.display().to_string())?;
        }
        if let Some(answer) = answer {
            let mut output = io::stdout();
            writeln!(output, "{answer}").and_then(|()| output.flush())?;
        }
    }
}

fn answer(session: &mut LiveSession<'_>, line: &str) -> String {
    let told: Result<Told, _> = serde_json::from_str(line);
    let sent = told
        .map_err(|error| error.to_string())
        .and_then(|told| session.command(now_ns(), &told.devices).map_err(|error| error.to_string()));
    sent.map_or_else(|fault| fault.replace('\n', " "), |()| "ok".to_owned())
}
