//! One run's use of the cache: which output it starts from, and which outputs it adds.

use std::env;
use std::io;
use std::path::Path;

use crossbeam_channel::Receiver;
use jiff::Timestamp;

use super::store::EntryDraft;
use super::{CacheEntry, CacheKeys, CacheLookup, CacheStore, CacheableOutput, CachedCapture, FileDigests};
use crate::recording::FinishedRecording;
use crate::{OnRecordingFailure, OutputRecorder, Pipeline, RunOptions, SavedStream};

/// A run that uses the cache.
pub struct CacheSession {
    store: CacheStore,
    digests: FileDigests,
    captures: Vec<CachedCapture>,
    pending: Vec<PendingEntry>,
}

/// An output that is recorded during the run.
struct PendingEntry {
    output: CacheableOutput,
    draft: EntryDraft,
    finished: Receiver<io::Result<FinishedRecording>>,
}

impl CacheSession {
    /// Finds the last cached output of a pipeline and records all later ones. `None` if nothing of this pipeline can
    /// be cached. `print` gets messages for the user, one sentence each.
    pub fn begin(store: CacheStore, pipeline: &Pipeline, mut print: impl FnMut(String)) -> Option<(Self, RunOptions)> {
        match Self::try_begin(store, pipeline, &mut print) {
            Ok(cached) => Some(cached),
            Err(why) => {
                print(format!("the cache is not used: {why}"));
                None
            }
        }
    }

    fn try_begin(
        store: CacheStore,
        pipeline: &Pipeline,
        print: &mut impl FnMut(String),
    ) -> Result<(Self, RunOptions), String> {
        store.prepare().map_err(|error| format!("{error:#}"))?;
        let mut digests = store.digests();
        // Another build of the same version may behave differently.
        let program = env::current_exe().and_then(|program| digests.of(&program)).map_err(|error| error.to_string())?;
        let keys = CacheKeys::of(pipeline, program.0, |path| digests.of(path))?;
        let RunStart { from, later } = find_start(&store, pipeline, keys.outputs, print)?;
        let mut session = Self { store, digests, captures: keys.captures, pending: Vec::new() };
        let recorders = later.into_iter().map(|output| Ok((output.index, session.record(output)?)));
        let recorders = recorders.collect::<io::Result<_>>();
        let recorders = recorders.map_err(|error| format!("{}: {error}", session.store.root().display()))?;
        Ok((session, RunOptions { from, recorders }))
    }

    fn record(&mut self, output: CacheableOutput) -> io::Result<OutputRecorder> {
        let (draft, recording) = self.store.draft()?;
        let (recorder, finished) = OutputRecorder::new(recording, "the cache".into(), OnRecordingFailure::GiveUp);
        self.pending.push(PendingEntry { output, draft, finished });
        Ok(recorder)
    }

    /// The folder of the cache.
    pub fn folder(&self) -> &Path {
        self.store.root()
    }

    /// Stores the recorded outputs of a completed run, unless a file it read has changed since.
    pub fn end(mut self, mut print: impl FnMut(String)) {
        if !self.digests.are_unchanged() {
            return print("nothing is cached: a file that was read has changed since".into());
        }
        for PendingEntry { output, draft, finished } in std::mem::take(&mut self.pending) {
            let kept = match finished.try_recv() {
                Ok(Ok(finished)) => self.store.keep(draft, &self.entry(&output, finished)),
                Ok(Err(error)) => Err(error.into()),
                // The next stage did not read the whole output.
                Err(_) => continue,
            };
            if let Err(error) = kept {
                print(format!("{}s of {} are not cached: {error:#}", output.kind, output.stage));
            }
        }
        if let Err(error) = self.digests.write().map_err(Into::into).and_then(|()| self.store.tidy()) {
            print(format!("the cache: {error:#}"));
        }
    }

    fn entry(&self, output: &CacheableOutput, finished: FinishedRecording) -> CacheEntry {
        CacheEntry {
            key: output.key,
            stage: output.stage.to_owned(),
            kind: output.kind.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            made: Timestamp::now(),
            bytes: finished.bytes,
            digest: finished.digest,
            captures: self.captures.clone(),
        }
    }
}

/// Where a run starts.
struct RunStart {
    /// A cached output and the index of its stage.
    from: Option<(usize, SavedStream)>,
    /// The outputs after it.
    later: Vec<CacheableOutput>,
}

/// The last cached output the run may start from, and all outputs after it.
fn find_start(
    store: &CacheStore,
    pipeline: &Pipeline,
    mut outputs: Vec<CacheableOutput>,
    print: &mut impl FnMut(String),
) -> Result<RunStart, String> {
    let mut later = Vec::new();
    while let Some(output) = outputs.pop() {
        // A run that starts here would skip the stage whose output is to be saved.
        if pipeline.first_save().is_some_and(|saved| saved < output.index) {
            later.push(output);
            continue;
        }
        match store.look_up(output.key).map_err(|error| format!("{error:#}"))? {
            CacheLookup::Missing => {}
            CacheLookup::Damaged(why) => {
                print(format!("{} in the cache are damaged and are rebuilt: {why}", pipeline.output_of(output.index)));
            }
            CacheLookup::Found(entry, file) => {
                let name = format!("the cache's {}", pipeline.output_of(output.index));
                let stream = SavedStream::of_file(name, file).map_err(|error| error.to_string())?;
                let made = entry.made.strftime("%Y-%m-%d %H:%M:%S");
                print(format!("{} from the cache: made {made} UTC", pipeline.output_of(output.index)));
                return Ok(RunStart { from: Some((output.index, stream)), later });
            }
        }
        later.push(output);
    }
    Ok(RunStart { from: None, later })
}
