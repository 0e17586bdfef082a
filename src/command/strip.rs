//! `sizeleak strip`: a capture without its content, from which the same sizes are read.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;
use sizeleak_capture::Capture;
use sizeleak_frame::{Frame, Packets};
use sizeleak_platform::runtime::{Closed, Emit, Interrupt, Source, SourceEmit, StageError};
use sizeleak_platform::storage::OutputFile;
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::counted;
use sizeleak_traffic::strip::{CaptureFormat, CaptureWriter, StripError, StripOptions, StripReport, Stripper};

use super::failure::{NoticeReport, usage, with_code};
use super::output_option::keep_partial;
use super::shared_options::OUTPUT;

/// Write a capture without its content, for the same sizes
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    sizeleak strip home.pcap --gateway 192.168.1.20 -o sizes-only.pcap\n  \
    sizeleak strip home.pcap --gateway 192.168.1.20 --drop-others -o sizes-only.pcap\n  \
    tcpdump -i eth1 -U -w - | sizeleak strip - --gateway 192.168.1.20 -o sizes-only.pcapng\n\n\
    Every byte of payload becomes zero, also in headers that are not the gateway's, in padding, and in frames without \
    IP. In TCP flows of the gateway these bytes stay: record headers, the first four bytes of each handshake message, \
    the two hellos (with the service's name and the client's ciphers); in datagrams DTLS record headers and hellos, or \
    the six bytes that show that it is QUIC. Addresses, ports, times and lengths stay, since that is what sizes are \
    read from; checksums are computed anew, and what a pcapng file says beside packets (comments, names, keys) is left \
    out.\n\n\
    Both captures are read by flow-filter and record-sizer, and a message says whether they find the same records. They \
    may not where segments came in fragments of IP, or where packets contradict each other: zeroes agree. \
    docs/ethics.md says what a capture without content still tells.")]
pub(crate) struct Arguments {
    /// The captures (pcap or pcapng, also compressed; `-` is stdin); several become one, in order of time
    #[arg(value_name = "CAPTURE", required = true)]
    captures: Vec<PathBuf>,

    /// The gateway's address or network; can be repeated
    #[arg(long, value_name = "IP|CIDR", value_delimiter = ',')]
    gateway: Vec<String>,

    /// Open only this tunnel, as `flow-filter` does
    #[arg(long, value_name = "TUNNEL", value_delimiter = ',')]
    tunnel: Vec<String>,

    /// Leave out packets that are not from or to the gateway, so that nothing of other devices stays
    #[arg(long)]
    drop_others: bool,

    /// Keep the gateway's DNS messages, so that `--service NAME` finds the same flows
    #[arg(long)]
    keep_dns: bool,

    /// Where to write the capture; pcapng if it is named so, else pcap; `-` is stdout
    #[arg(short, long, short_alias = 'w', value_name = "FILE", help_heading = OUTPUT)]
    output: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.output == Path::new("-") && io::stdout().is_terminal() {
        return Err(usage!("a capture is not for a terminal: name a file, or pipe it on"));
    }
    let stripper = Stripper::new(&arguments.options())?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = OutputFile::create(&arguments.output)?;
    let writer = CaptureWriter::new(BufWriter::new(output.writer()?), arguments.format());
    let mut run = StrippedRun { stripper, writer, notices: NoticeReport::default(), failed: None };
    let read = Capture::new(arguments.captures.clone()).run(&mut run, &interrupt);
    let (report, damage) = match run.finish(read) {
        Ok(finished) => finished,
        // Nobody reads it any more.
        Err(StripError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        Err(error) => {
            keep_partial(output)?;
            return Err(error.into());
        }
    };
    if interrupt.is_set() {
        keep_partial(output)?;
        return Err(with_code(130, anyhow!("stopped")));
    }
    output.keep()?;
    for line in describe(&report) {
        say("sizeleak", &line);
    }
    damage.map_or(Ok(()), |damage| Err(with_code(1, anyhow!("{damage}; everything that could be read was written"))))
}

impl Arguments {
    fn options(&self) -> StripOptions {
        StripOptions {
            gateway: self.gateway.clone(),
            tunnel: self.tunnel.clone(),
            drop_others: self.drop_others,
            keep_dns: self.keep_dns,
        }
    }

    fn format(&self) -> CaptureFormat {
        let is_pcapng = self.output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("pcapng"));
        if is_pcapng { CaptureFormat::Pcapng } else { CaptureFormat::Pcap }
    }
}

struct StrippedRun {
    stripper: Stripper,
    writer: CaptureWriter<BufWriter<File>>,
    notices: NoticeReport,
    failed: Option<StripError>,
}

impl StrippedRun {
    fn packets(&mut self, packets: &Packets) -> Result<(), StripError> {
        for packet in packets {
            self.stripper.packet(packet, &mut |stripped| self.writer.write(stripped))?;
        }
        Ok(())
    }

    /// Writes what is left. The result has the damage of the captures, if something was read before it.
    fn finish(mut self, read: Result<(), StageError>) -> Result<(StripReport, Option<StageError>), StripError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.notices.print(&read, |()| None);
        let report = match self.stripper.finish(&mut |stripped| self.writer.write(stripped)) {
            Ok(report) if report.packets > 0 => report,
            // Where nothing can be read, that is the reason.
            finished => {
                read?;
                return finished.map(|report| (report, None));
            }
        };
        self.writer.finish()?;
        Ok((report, read.err()))
    }
}

impl Emit for StrippedRun {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        match frame {
            Frame::Packets(packets) => self.packets(&packets).map_err(|error| {
                self.failed = Some(error);
                Closed
            }),
            Frame::Notice(notice) => {
                self.notices.add(&notice);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl SourceEmit for StrippedRun {
    fn flush(&mut self) -> Result<(), Closed> {
        Ok(())
    }
}

fn describe(report: &StripReport) -> Vec<String> {
    let StripReport { packets, dropped_packets, kept_bytes, zeroed_bytes, .. } = *report;
    let dropped = if dropped_packets > 0 { format!(", {dropped_packets} left out") } else { String::new() };
    let mut lines = vec![format!(
        "{}{dropped}; {} zero now, {kept_bytes} stay",
        counted(packets, "packet", "packets"),
        counted(zeroed_bytes, "byte is", "bytes are")
    )];
    lines.push(match report.differing_flows {
        0 if report.records == 0 => "no record is found in it, as before".to_owned(),
        0 => "the same records are found in it".to_owned(),
        flows => format!("other records are found in it in {}", counted(flows, "flow", "flows")),
    });
    if report.fragmented_segments > 0 {
        let segments = counted(report.fragmented_segments, "segment", "segments");
        lines.push(format!("{segments} in fragments of IP became zero as a whole"));
    }
    if report.differing_notices > 0 {
        lines.push(format!("the notices about {} differ", counted(report.differing_notices, "flow", "flows")));
    }
    lines
}
