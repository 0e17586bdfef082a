//! One run's use of the cache: where it begins, and what it leaves.

use std::env;
use std::io;

use crossbeam_channel::Receiver;
use jiff::Timestamp;

use super::store::Draft;
use super::{CacheEntry, CacheKeys, CacheLookup, CacheStore, CacheableOutput, CachedCapture, FileDigests};
use crate::recording::Finished;
use crate::{OnRecordingFailure, OutputRecorder, Pipeline, RunOptions, SavedStream};

/// A run that uses the cache.
pub struct CacheSession {
    store: CacheStore,
    digests: FileDigests,
    captures: Vec<CachedCapture>,
    drafts: Vec<Recorded>,
}

/// An output that is recorded while the run goes on.
struct Recorded {
    keyed: CacheableOutput,
    draft: Draft,
    whole: Receiver<io::Result<Finished>>,
}

impl CacheSession {
    /// Looks for the last output of a pipeline that an earlier run left, and has all behind it recorded. `None` where nothing
    /// of this pipeline can be kept. `tell` is given what the user should hear of it, in sentences.
    pub fn begin(store: CacheStore, pipeline: &Pipeline, mut tell: impl FnMut(String)) -> Option<(Self, RunOptions)> {
        match Self::try_begin(store, pipeline, &mut tell) {
            Ok(begun) => Some(begun),
            Err(why) => {
                tell(format!("the cache is not used: {why}"));
                None
            }
        }
    }

    fn try_begin(
        store: CacheStore,
        pipeline: &Pipeline,
        tell: &mut impl FnMut(String),
    ) -> Result<(Self, RunOptions), String> {
        let mut digests = store.digests();
        // Another build of the same version may work otherwise.
        let program = env::current_exe().and_then(|program| digests.of(&program)).map_err(|error| error.to_string())?;
        let keys = CacheKeys::of(pipeline, program.0, |path| digests.of(path))?;
        let Beginning { from, rest } = found(&store, pipeline, keys.outputs, tell)?;
        let mut session = Self { store, digests, captures: keys.captures, drafts: Vec::new() };
        let taps = rest.into_iter().map(|keyed| Ok((keyed.place, session.record(keyed)?))).collect::<io::Result<_>>();
        let taps = taps.map_err(|error| format!("{}: {error}", session.store.root().display()))?;
        Ok((session, RunOptions { from, taps }))
    }

    fn record(&mut self, keyed: CacheableOutput) -> io::Result<OutputRecorder> {
        let (draft, recording) = self.store.draft()?;
        let (tap, whole) = OutputRecorder::new(recording, "the cache".into(), OnRecordingFailure::GiveUp);
        self.drafts.push(Recorded { keyed, draft, whole });
        Ok(tap)
    }

    /// Keeps what was recorded, if the run came to its end and what it read did not change meanwhile.
    pub fn end(mut self, mut tell: impl FnMut(String)) {
        if !self.digests.are_unchanged() {
            return tell("nothing is kept in the cache: what was read has changed meanwhile".into());
        }
        for Recorded { keyed, draft, whole } in std::mem::take(&mut self.drafts) {
            let kept = match whole.try_recv() {
                Ok(Ok(finished)) => self.store.keep(draft, &self.entry(&keyed, finished)),
                Ok(Err(error)) => Err(error.into()),
                // A stage behind it took only a part.
                Err(_) => continue,
            };
            if let Err(error) = kept {
                tell(format!("{}s of {} are not kept in the cache: {error:#}", keyed.kind, keyed.stage));
            }
        }
        if let Err(error) = self.digests.write().map_err(Into::into).and_then(|()| self.store.tidy()) {
            tell(format!("the cache: {error:#}"));
        }
    }

    fn entry(&self, keyed: &CacheableOutput, finished: Finished) -> CacheEntry {
        CacheEntry {
            key: keyed.key,
            stage: keyed.stage.to_owned(),
            kind: keyed.kind.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            made: Timestamp::now(),
            bytes: finished.bytes,
            digest: finished.digest,
            captures: self.captures.clone(),
        }
    }
}

/// Where a run begins.
struct Beginning {
    /// With the output of this place, if one is there.
    from: Option<(usize, SavedStream)>,
    /// What is made behind it.
    rest: Vec<CacheableOutput>,
}

/// The last output that is there and may be begun with, and those behind it.
fn found(
    store: &CacheStore,
    pipeline: &Pipeline,
    mut outputs: Vec<CacheableOutput>,
    tell: &mut impl FnMut(String),
) -> Result<Beginning, String> {
    let mut rest = Vec::new();
    while let Some(keyed) = outputs.pop() {
        // What comes before it would not be saved.
        if pipeline.first_save().is_some_and(|saved| saved < keyed.place) {
            rest.push(keyed);
            continue;
        }
        match store.look_up(keyed.key).map_err(|error| format!("{error:#}"))? {
            CacheLookup::Missing => {}
            CacheLookup::Damaged(why) => {
                tell(format!("{} in the cache are damaged and made again: {why}", pipeline.output_of(keyed.place)));
            }
            CacheLookup::Found(entry, file) => {
                let name = format!("the cache's {}", pipeline.output_of(keyed.place));
                let replay = SavedStream::of_file(name, file).map_err(|error| error.to_string())?;
                let made = entry.made.strftime("%Y-%m-%d %H:%M:%S");
                tell(format!("{} from the cache: made {made} UTC", pipeline.output_of(keyed.place)));
                return Ok(Beginning { from: Some((keyed.place, replay)), rest });
            }
        }
        rest.push(keyed);
    }
    Ok(Beginning { from: None, rest })
}
