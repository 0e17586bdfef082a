//! `simulate --serve`: a gateway and its service with a real TLS session over loopback, commanded by lines.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use crossbeam_channel::RecvTimeoutError;
use jiff::SignedDuration;
use serde::Deserialize;
use sizeleak_platform::storage::replace;
use sizeleak_platform::telemetry::log::say;
use sizeleak_simulator::{CommandedDevice, Flight, LiveHome, LiveSession, Scenario};

use crate::command::failure::Failure;
use crate::command::line_channel::lines_of;
use crate::command::wall_clock::now_ns;

/// The longest line of a command, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// Delayed acknowledgements are due after this time, if nothing else is.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// A command, as `record` tells it; what else it tells is not needed.
#[derive(Deserialize)]
struct Told {
    devices: Vec<CommandedDevice>,
}

/// Both ends of the gateway's connection.
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

    /// Carries a flight from one end to the other.
    fn carry(&mut self, flight: &Flight) -> anyhow::Result<()> {
        let Self { gateway, service } = self;
        let (from, to) = if flight.is_from_gateway { (gateway, service) } else { (service, gateway) };
        let mut received = vec![0; flight.records.len()];
        // Both ends are this thread, and a flight is shorter than what a socket holds.
        from.write_all(&flight.records).and_then(|()| to.read_exact(&mut received))?;
        if received == flight.records { Ok(()) } else { Err(anyhow!("the loopback changed what it carried")) }
    }
}

/// What a home that runs writes.
pub(super) struct Served<'a> {
    /// The folder of the inventory.
    pub(super) folder: Option<&'a Path>,
    /// What crosses the loopback.
    pub(super) pcap: Option<&'a Path>,
    /// How far the clock of that is ahead.
    pub(super) clock_ahead: SignedDuration,
}

/// Runs a home until stdin ends.
pub(super) fn serve(scenario: Scenario, seed: u64, served: &Served<'_>) -> Result<ExitCode, Failure> {
    let home = LiveHome::new(scenario, seed)?;
    if let Some(folder) = served.folder {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        replace(&folder.join("inventory.toml"), home.inventory()?.as_bytes())?;
    }
    let mut capture = match served.pcap {
        Some(path) => {
            let name = || path.display().to_string();
            let mut file = File::create(path).with_context(name)?;
            file.write_all(&LiveSession::pcap_header()?).with_context(name)?;
            Some(file)
        }
        None => None,
    };
    let ahead_ns = i64::try_from(served.clock_ahead.as_nanos()).unwrap_or(0);
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
            Err(RecvTimeoutError::Disconnected) => return Ok(ExitCode::SUCCESS),
        };
        let answer = line.map(|line| answer(&mut session, &line));
        let now = now_ns();
        for flight in session.flights(now)? {
            loopback.carry(&flight)?;
        }
        let packets = session.packets(now, ahead_ns)?;
        if let (Some(file), Some(path)) = (&mut capture, served.pcap) {
            file.write_all(&packets).with_context(|| path.display().to_string())?;
        }
        if let Some(answer) = answer {
            let mut output = io::stdout();
            writeln!(output, "{answer}").and_then(|()| output.flush())?;
        }
    }
}

/// Sends a command. Returns `ok`, or why it was not sent.
fn answer(session: &mut LiveSession<'_>, line: &str) -> String {
    let told: Result<Told, _> = serde_json::from_str(line);
    let sent = told
        .map_err(|error| error.to_string())
        .and_then(|told| session.command(now_ns(), &told.devices).map_err(|error| error.to_string()));
    sent.map_or_else(|fault| fault.replace('\n', " "), |()| "ok".to_owned())
}
