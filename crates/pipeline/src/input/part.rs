//! Runs the front of a pipeline over one file of an input, and keeps what it makes, without the flows of gateways that
//! the user did not name; and joins what is kept to one stream, in order of time.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sizeleak_frame::{Frame, FrameReader, FrameWriter, Hello, Notice, Summary, what};
use sizeleak_packet::AddressSet;
use sizeleak_platform::runtime::Interrupt;

use crate::cause::RunEnding;
use crate::error::{ConfigError, InputError, RunError};
use crate::pipeline::Pipeline;
use crate::recording::{Recording, SavedStream, add, decompressed};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputPart {
    pub path: PathBuf,
    /// The times of its first and last frame, in nanoseconds since the epoch; `None` if it holds nothing.
    pub span: Option<[i64; 2]>,
    pub(super) kept: PathBuf,
}

pub(super) struct PartRecorder<'a> {
    pub(super) folder: &'a Path,
    pub(super) stage: &'a str,
    pub(super) parts: Vec<InputPart>,
    pub(super) damage: Option<RunError>,
}

impl PartRecorder<'_> {
    pub(super) fn record(
        &mut self,
        front: &Pipeline,
        path: PathBuf,
        from: Option<(usize, SavedStream)>,
        filter: &mut GatewayFilter,
    ) -> Result<(), InputError> {
        let (kept, mut writer) = self.next_part()?;
        let (mut span, mut is_begun): (Option<[i64; 2]>, bool) = (None, false);
        let mut failure = None;
        let mut sink = |frame: Frame| -> io::Result<()> {
            if !filter.keeps(&frame) {
                return Ok(());
            }
            if let Some([first, last]) = times(&frame) {
                let [start, end] = span.get_or_insert([first, last]);
                (*start, *end) = ((*start).min(first), (*end).max(last));
            }
            // A run that failed at once may not even have said who it is.
            let hello = (!is_begun && !matches!(frame, Frame::Hello(_))).then(|| Hello::of(self.stage).into());
            is_begun = true;
            let written = hello.iter().chain([&frame]).try_for_each(|frame| writer.write(frame));
            written.inspect_err(|error| failure = Some(io::Error::other(error.to_string())))
        };
        let ended = front.prepare_from(from)?.run(&own_interrupt()?, &mut sink);
        failure.map_or(Ok(()), Err)?;
        match ended {
            Ok(report) if report.ending == RunEnding::Interrupted => return Err(InputError::Interrupted),
            Ok(_) => {}
            Err(error) => self.damage = self.damage.take().or(Some(error)),
        }
        if !is_begun {
            writer.write(&Hello::of(self.stage).into())?;
        }
        Recording::end(writer)?;
        self.parts.push(InputPart { path, span, kept });
        Ok(())
    }

    pub(super) fn record_unreadable(&mut self, path: &Path, error: &io::Error) -> Result<(), InputError> {
        let fault = RunError::of_input(format!("{}: {error}", path.display()));
        let notice = Notice::new(fault.stage.clone(), what::MALFORMED, fault.cause.clone());
        let (kept, mut writer) = self.next_part()?;
        writer.write_all(&[Hello::of(self.stage).into(), notice.into()])?;
        Recording::end(writer)?;
        self.parts.push(InputPart { path: path.to_owned(), span: None, kept });
        self.damage.get_or_insert(fault);
        Ok(())
    }

    fn next_part(&self) -> io::Result<(PathBuf, FrameWriter<Recording>)> {
        let kept = self.folder.join(format!("{}.frames.zst", self.parts.len()));
        let writer = Recording::of_frames(&kept)?;
        Ok((kept, writer))
    }
}

/// The interrupt of one run: a failing run sets its interrupt.
pub(super) fn own_interrupt() -> Result<Interrupt, InputError> {
    Ok(Interrupt::on_signals().map_err(|error| ConfigError::input(format!("signals cannot be caught: {error}")))?)
}

pub(super) fn times(frame: &Frame) -> Option<[i64; 2]> {
    match frame {
        Frame::Record(record) => Some([record.start_ns.min(record.time_ns), record.time_ns]),
        Frame::Session(session) => Some([session.time_ns; 2]),
        Frame::Command(command) => Some([command.time_ns, command.end_ns.max(command.time_ns)]),
        _ => None,
    }
}

#[derive(Default)]
pub(super) struct GatewayFilter {
    /// `None` keeps all flows: `flow-filter` has chosen them.
    wanted: Option<AddressSet>,
    seen: BTreeSet<IpAddr>,
    dropped: BTreeSet<u64>,
}

impl GatewayFilter {
    pub(super) fn new(wanted: Option<AddressSet>) -> Self {
        Self { wanted, ..Self::default() }
    }

    pub(super) fn keeps(&mut self, frame: &Frame) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        let flow = match frame {
            Frame::Flow(flow) => {
                self.seen.insert(flow.gateway);
                if !wanted.is_empty() && !wanted.contains(flow.gateway) {
                    self.dropped.insert(flow.flow);
                }
                Some(flow.flow)
            }
            Frame::Session(session) => Some(session.flow),
            Frame::Record(record) => Some(record.flow),
            Frame::Command(command) => Some(command.flow),
            Frame::Correction(correction) => Some(correction.command.flow),
            Frame::Identification(identification) => Some(identification.command.flow),
            Frame::Notice(notice) => notice.flow,
            _ => None,
        };
        flow.is_none_or(|flow| !self.dropped.contains(&flow))
    }

    /// Checks that the flows are those of the gateways that are wanted, or of one.
    pub(super) fn check(&self, streams: &[PathBuf]) -> Result<(), ConfigError> {
        let Some(wanted) = &self.wanted else { return Ok(()) };
        let listed =
            |addresses: &BTreeSet<IpAddr>| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let files = || streams.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
        if wanted.is_empty() {
            return match self.seen.len() {
                0 | 1 => Ok(()),
                _ => Err(ConfigError::usage(format!(
                    "{}: there are several gateways ({}): name one with `--gateway`",
                    files(),
                    listed(&self.seen)
                ))),
            };
        }
        if self.seen.is_empty() || self.seen.iter().any(|gateway| wanted.contains(*gateway)) {
            return Ok(());
        }
        Err(ConfigError::input(format!(
            "{}: there is no flow of the gateway that `--gateway` names, but of {}",
            files(),
            listed(&self.seen)
        )))
    }
}

/// Silence between parts whose times are shifted: longer than any reply.
const APART_NS: i64 = 3_600_000_000_000;

/// Joins parts into a file, and puts them into the order of their times; those that overlap are refused, or shifted in the
/// order in which they were named.
pub(super) fn join(parts: &mut [InputPart], shifts_overlapping: bool, into: &Path) -> Result<(), InputError> {
    let named: Vec<InputPart> = parts.to_vec();
    // Parts without any traffic come last.
    parts.sort_by_key(|part| part.span.map_or(i64::MAX, |[first, _]| first));
    let overlapping = parts.windows(2).find_map(|pair| match pair {
        [one, other] => (one.span?[1] >= other.span?[0]).then(|| [one.path.clone(), other.path.clone()]),
        _ => None,
    });
    let mut shifts = vec![0; parts.len()];
    match overlapping {
        None => {}
        Some(_) if shifts_overlapping => {
            parts.clone_from_slice(&named);
            shifts = shifts_apart(parts);
        }
        Some([one, other]) => {
            let fault = format!(
                "{} and {} hold traffic of the same time: as captures they are read together (`--input`), saved streams \
                 only one after another",
                one.display(),
                other.display()
            );
            return Err(ConfigError::input(fault).into());
        }
    }
    let mut writer = Recording::of_frames(into)?;
    let (mut summary, mut announced) = (Summary::default(), BTreeSet::new());
    for (at, (part, shift)) in parts.iter_mut().zip(shifts).enumerate() {
        let mut reader = FrameReader::new(decompressed(File::open(&part.kept)?)?);
        loop {
            match reader.next_frame() {
                Ok(Some(Frame::Hello(_))) if at > 0 => {}
                Ok(Some(Frame::Flow(flow))) if !announced.insert(flow.flow) => {}
                Ok(Some(Frame::Summary(of_part))) => add(&mut summary, of_part),
                Ok(Some(mut frame)) => {
                    move_by(&mut frame, shift);
                    writer.write(&frame)?;
                }
                Ok(None) => break,
                // Its run has failed.
                Err(error) if error.is_cut() => break,
                Err(error) => return Err(io::Error::other(error).into()),
            }
        }
        part.span = part.span.map(|span| span.map(|time| time.saturating_add(shift)));
    }
    writer.write(&Frame::Summary(summary))?;
    Ok(Recording::end(writer)?)
}

/// What to add to the times of each part, so that each begins after the one before.
fn shifts_apart(parts: &[InputPart]) -> Vec<i64> {
    let mut end: Option<i64> = None;
    let shift = |part: &InputPart| {
        let Some([first, last]) = part.span else { return 0 };
        let shift = end.map_or(0, |end| end.saturating_add(APART_NS).saturating_sub(first));
        end = Some(last.saturating_add(shift));
        shift
    };
    parts.iter().map(shift).collect()
}

fn move_by(frame: &mut Frame, shift: i64) {
    if shift == 0 {
        return;
    }
    let add = |time: &mut i64| *time = time.saturating_add(shift);
    match frame {
        Frame::Record(record) => {
            add(&mut record.time_ns);
            add(&mut record.start_ns);
        }
        Frame::Session(session) => add(&mut session.time_ns),
        Frame::Command(command) => {
            add(&mut command.time_ns);
            add(&mut command.end_ns);
        }
        Frame::Deviation(deviation) => {
            add(&mut deviation.time_ns);
            deviation.commands.iter_mut().for_each(|command| add(&mut command.time_ns));
        }
        Frame::Notice(notice) => notice.time_ns.iter_mut().for_each(add),
        _ => {}
    }
}
