//! How long a run takes, about: pieces of what it would read are read in the same way, and nothing is kept.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use sizeleak_frame::{Frame, FrameSink};
use sizeleak_pipeline::{Pipeline, PreparedRun};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::{Progress, Telemetry};

use crate::archive_run::ArchiveRun;
use crate::found_file::sample;
use crate::keys::packet_stages;
use crate::plan::{ArchivePlan, PlannedFile};

/// So many captures are sampled.
const SAMPLES: u64 = 3;

/// Each of them for so long, once for its digest and once for its answers.
const TIME: Duration = Duration::from_millis(250);

impl ArchiveRun {
    /// How long the captures of a plan take, about, on an otherwise idle machine; `None` if there are none, or nothing can
    /// be read of those that are sampled. It takes up to two seconds, and reads what it samples. Commands that are rarer in
    /// the sample than elsewhere, and a slower disk than what is in memory already, make it too short.
    pub fn duration(&self, plan: &ArchivePlan) -> Option<Duration> {
        let files: Vec<&PlannedFile> = plan.files_to_read().collect();
        let mut rate = ReadingRate::default();
        for file in spread(&files) {
            rate.sample(&file.path, &self.pipeline, &self.interrupt);
        }
        let reading = plan.points.iter().filter(|point| !point.files_to_read.is_empty());
        let jobs = self.jobs.min(thread::available_parallelism().map_or(1, usize::from)).min(reading.count());
        rate.time(plan.bytes_to_read()).filter(|_| jobs > 0).map(|time| time / u32::try_from(jobs).unwrap_or(u32::MAX))
    }
}

/// The files in which the middles of equal parts of all bytes lie.
fn spread<'a>(files: &[&'a PlannedFile]) -> Vec<&'a PlannedFile> {
    let all: u64 = files.iter().map(|file| file.bytes).sum();
    let mut middles = (0..SAMPLES).map(|part| all / (2 * SAMPLES) * (2 * part + 1)).peekable();
    let mut end = 0;
    let mut chosen = Vec::new();
    for file in files {
        end += file.bytes;
        if middles.next_if(|middle| *middle < end).is_some() {
            chosen.push(*file);
            while middles.next_if(|middle| *middle < end).is_some() {}
        }
    }
    chosen
}

/// Measures what a piece of work takes.
struct Stopwatch {
    begun: Instant,
    processor: Duration,
}

impl Stopwatch {
    fn started() -> Self {
        Self { begun: Instant::now(), processor: processor_time() }
    }

    fn wall(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The time it takes without other threads: an archive makes records first, and then answers.
    fn work(&self) -> Duration {
        self.wall().max(processor_time().saturating_sub(self.processor))
    }
}

/// What all threads of this process have taken so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// How fast captures are read.
#[derive(Debug, Default)]
struct ReadingRate {
    digested: Sample,
    processed: Sample,
}

/// What was read, and for how long.
#[derive(Debug, Default)]
struct Sample {
    bytes: u64,
    time: Duration,
}

impl Sample {
    /// Seconds for a byte.
    fn per_byte(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.time.as_secs_f64() / self.bytes as f64)
    }
}

impl ReadingRate {
    /// Reads a capture, or the beginning of it.
    fn sample(&mut self, path: &Path, pipeline: &Pipeline, interrupt: &Interrupt) {
        let progress = Progress::new();
        let watch = Stopwatch::started();
        sample(path, &progress, || watch.wall() >= TIME || interrupt.is_set());
        self.digested.time += watch.work();
        self.digested.bytes += progress.read();
        if let Some(processed) = processed(path, pipeline, interrupt) {
            self.processed.time += processed.time;
            self.processed.bytes += processed.bytes;
        }
    }

    /// How long so many bytes take, which are read first for their digests and then for their answers.
    fn time(&self, bytes: u64) -> Option<Duration> {
        let seconds = (self.digested.per_byte()? + self.processed.per_byte()?) * bytes as f64;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// Runs a pipeline over the beginning of a capture; `None` if it cannot be run. Programs of others are not started: they
/// may write.
fn processed(path: &Path, pipeline: &Pipeline, interrupt: &Interrupt) -> Option<Sample> {
    let watch = Stopwatch::started();
    let whole = prepared(path, pipeline).filter(|run| run.access().is_some());
    let mut run = whole.or_else(|| prepared(path, &packet_stages(pipeline).ok()?))?;
    // A capture that is cut is processed as well.
    _ = run.accept_damage();
    let telemetry = Telemetry::new();
    run.report_to(&telemetry);
    let part = interrupt.of_part();
    thread::scope(|scope| {
        scope.spawn(|| {
            part.wait(TIME);
            part.set();
        });
        let ended = run.run(&part, &mut NoOutput);
        let time = watch.work();
        part.set();
        ended.ok().map(|_| Sample { bytes: telemetry.progress().read(), time })
    })
}

fn prepared(path: &Path, pipeline: &Pipeline) -> Option<PreparedRun> {
    let mut pipeline = pipeline.clone();
    pipeline.read_captures(&[path.to_owned()]).ok()?;
    // As in a run, where another capture may have packets of the gateways.
    pipeline.set("flow-filter", "allow-absent", true).ok()?;
    pipeline.prepare().ok()
}

/// Drops all frames.
struct NoOutput;

impl FrameSink for NoOutput {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        frames.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_time_of_both_readings() {
        let sample = |bytes, seconds| Sample { bytes, time: Duration::from_secs(seconds) };
        let rate = ReadingRate { digested: sample(1000, 1), processed: sample(500, 2) };
        assert_eq!(rate.time(3000), Some(Duration::from_secs(15)));
        assert_eq!(ReadingRate { processed: sample(0, 2), ..rate }.time(3000), None);
    }

    #[test]
    fn samples_lie_in_the_middles_of_equal_parts() {
        let of = |sizes: &[u64]| {
            let file = |(at, bytes): (usize, &u64)| PlannedFile { path: at.to_string().into(), bytes: *bytes };
            let files: Vec<PlannedFile> = sizes.iter().enumerate().map(file).collect();
            let chosen = spread(&files.iter().collect::<Vec<_>>());
            chosen.iter().map(|file| file.path.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(&[]), "");
        assert_eq!(of(&[0, 0]), "");
        assert_eq!(of(&[6]), "0");
        assert_eq!(of(&[60, 60, 60]), "0 1 2");
        assert_eq!(of(&[10; 12]), "2 6 10");
        assert_eq!(of(&[1, 1, 100, 1]), "2");
    }
}
