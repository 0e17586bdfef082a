//! The stage for live capture: an interface, through tcpdump, instead of files.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ChildStdout;

use sizeleak_frame::what;
use sizeleak_platform::runtime::{FileProgress, Interrupt, Progress, Source, SourceEmit, StageError};

use crate::capture_driver::CaptureDriver;
use crate::error::{CaptureError, Damage, Failures, NAME, notice};
use crate::merge::{CaptureOrder, Merge};
use crate::open_capture::OpenCapture;
use crate::packet_batcher::Selection;
use crate::reader::CaptureReader;
use crate::tcpdump::{Drops, Tcpdump};

#[derive(Debug)]
pub(crate) struct LiveCapture {
    tcpdump: Tcpdump,
    output: Option<ChildStdout>,
    selection: Selection,
    bytes: u64,
    packets: u64,
    counters: Vec<(&'static str, u64)>,
}

impl LiveCapture {
    /// Passes on this selection of the packets that a tcpdump captures.
    pub(crate) fn new((tcpdump, output): (Tcpdump, ChildStdout), selection: Selection) -> Self {
        Self { tcpdump, output: Some(output), selection, bytes: 0, packets: 0, counters: Vec::new() }
    }

    /// A merge of what tcpdump writes alone, and why that is no capture.
    fn open(&mut self, progress: &FileProgress, interrupt: &Interrupt) -> (Merge, Option<CaptureError>) {
        let (mut merge, _) = Merge::new(Vec::new(), CaptureOrder::Time, &Interrupt::new(), &Progress::new());
        let Some(output) = self.output.take() else { return (merge, None) };
        let file = PathBuf::from(self.tcpdump.interface());
        let opened = output.as_fd().try_clone_to_owned().map_err(Damage::Open).and_then(|handle| {
            let output = self.tcpdump.until_interrupted(output, interrupt);
            Ok((CaptureReader::new(Box::new(progress.watch(output, 0)))?, handle))
        });
        let started = match opened {
            Ok((reader, handle)) => merge.advance(Box::new(OpenCapture::of_stream(file, reader, handle))),
            Err(damage) => Err(CaptureError { file, damage }),
        };
        (merge, started.err())
    }

    /// Reports how many packets tcpdump says were lost.
    fn report_drops(&self, drops: Drops, last_ns: Option<i64>, out: &mut dyn SourceEmit) -> Result<(), StageError> {
        let Drops { kernel, interface } = drops;
        if kernel + interface > 0 {
            let detail = format!(
                "{}: {} packets were dropped ({kernel} by the kernel, {interface} by the interface): they came faster than \
                 they were read",
                self.tcpdump.interface(),
                kernel + interface
            );
            out.emit(notice(what::GAP, last_ns, &detail).into())?;
        }
        Ok(())
    }
}

impl Source for LiveCapture {
    const NAME: &'static str = NAME;

    fn run(&mut self, out: &mut dyn SourceEmit, interrupt: &Interrupt) -> Result<(), StageError> {
        let (merge, unopened) = self.open(&FileProgress::new(&out.progress()), interrupt);
        let mut failures = Failures::default();
        // A user who stops ends tcpdump, and all that it has captured is read.
        let stop = Interrupt::new();
        let mut driver = CaptureDriver::new(merge, &self.selection, &mut failures, out, &stop);
        driver.run()?;
        let CaptureDriver { merge, batcher, .. } = driver;
        (self.bytes, self.packets) = (merge.bytes, batcher.counts.packets);
        let (drops, ended) = self.tcpdump.end();
        self.report_drops(drops, batcher.last_ns(), out)?;
        self.counters = vec![
            ("snaplen_cut", batcher.counts.snaplen_cut),
            ("left_out", batcher.left_out()),
            ("kernel_drops", drops.kernel),
            ("interface_drops", drops.interface),
        ];
        if interrupt.is_set() {
            return Ok(());
        }
        ended.map_err(StageError::failed)?;
        if let Some(unopened) = unopened {
            failures.report(unopened, None, out)?;
        }
        failures.into_result()
    }

    fn bytes_in(&self) -> u64 {
        self.bytes
    }

    fn frames_in(&self) -> u64 {
        self.packets
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counters.clone()
    }
}
