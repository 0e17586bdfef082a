//! What a command says on stderr: why it failed, in one sentence with the exit code of the contract; and the notices of stages.

use std::error::Error;
use std::fmt::Display;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use sizeleak_audit::padding::CountermeasureError;
use sizeleak_evaluation::EvaluationError;
use sizeleak_evaluation::experiment::RecordingError;
use sizeleak_frame::{Notice, Summary, what};
use sizeleak_inference::space::SpaceError;
use sizeleak_learning::LearningError;
use sizeleak_pipeline::{ConfigError, InputError, ModelFit, RunError};
use sizeleak_platform::runtime::ConfigureError;
use sizeleak_platform::runtime::program::MEASURING;
use sizeleak_platform::storage::FileConflict;
use sizeleak_platform::telemetry::log::{self, say};
use sizeleak_platform::telemetry::{CaptureFaults, NoticeTally};
use sizeleak_text::{MAX_WRITTEN_BYTES, read_text};
use sizeleak_traffic::archive::ArchiveError;
use sizeleak_traffic::strip::StripError;

#[derive(Debug, thiserror::Error)]
#[error("{error}")]
struct Coded {
    code: u8,
    #[source]
    error: anyhow::Error,
}

pub(crate) fn with_code(code: u8, error: impl Into<anyhow::Error>) -> anyhow::Error {
    Coded { code, error: error.into() }.into()
}

/// The command line or `pipeline.toml` is invalid: exit code 2.
macro_rules! usage {
    ($($words:tt)*) => { $crate::command::failure::with_code(2, anyhow::anyhow!($($words)*)) };
}
pub(crate) use usage;

/// A damaged capture, although the result was written; `covered` says what the result covers.
pub(super) fn damaged(damage: &RunError, covered: &str) -> anyhow::Error {
    with_code(damage.exit_code(), anyhow!("{damage}; {covered}"))
}

pub(super) fn check_damage(damage: Option<&RunError>, covered: &str) -> Result<()> {
    damage.map_or(Ok(()), |damage| Err(damaged(damage, covered)))
}

/// Ends the program with this code where the reason is said already.
pub(super) fn silent(code: u8) -> anyhow::Error {
    with_code(code, anyhow!(""))
}

/// Which exit code the first cause has that has one; bad input and I/O have 1.
pub(super) fn exit_code(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of).unwrap_or(1)
}

fn code_of(cause: &(dyn Error + 'static)) -> Option<u8> {
    fn given<E: Error + 'static>(cause: &(dyn Error + 'static), code: fn(&E) -> u8) -> Option<u8> {
        cause.downcast_ref().map(code)
    }
    given::<Coded>(cause, |error| error.code)
        .or_else(|| given::<FileConflict>(cause, |_| 2))
        .or_else(|| given::<CountermeasureError>(cause, |_| 2))
        .or_else(|| given(cause, ConfigError::exit_code))
        .or_else(|| given(cause, ConfigureError::exit_code))
        .or_else(|| given(cause, ArchiveError::exit_code))
        .or_else(|| given(cause, RunError::exit_code))
        .or_else(|| given(cause, InputError::exit_code))
        .or_else(|| given::<RecordingError>(cause, |_| 1))
        .or_else(|| given(cause, of_evaluation))
        .or_else(|| given(cause, of_learning))
        .or_else(|| given(cause, |error| if let StripError::Configure(fault) = error { fault.exit_code() } else { 1 }))
        .or_else(|| {
            given(cause, |error| match error {
                SpaceError::NoPrior | SpaceError::NoInventory(_) | SpaceError::NoNumbers => 2,
                _ => 1,
            })
        })
}

fn of_evaluation(error: &EvaluationError) -> u8 {
    match error {
        EvaluationError::Input(error) => error.exit_code(),
        EvaluationError::Learning(error) => of_learning(error),
        EvaluationError::NoCandidates | EvaluationError::PaddedAlready => 2,
        _ => 1,
    }
}

fn of_learning(error: &LearningError) -> u8 {
    match error {
        LearningError::Input(error) => error.exit_code(),
        LearningError::UnknownCipherSuite(_) | LearningError::Segmenter(_) => 2,
        _ => 1,
    }
}

pub(super) fn parsed<T, E: Into<anyhow::Error>>(path: &Path, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T> {
    let read = || parse(&read_text(path, MAX_WRITTEN_BYTES)?).map_err(Into::into);
    read().with_context(|| path.display().to_string())
}

/// An error in one sentence, with its causes. Many errors quote theirs.
pub(super) fn sentence(error: &anyhow::Error) -> String {
    let mut before = error.to_string();
    let mut sentence = before.clone();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !before.ends_with(&cause) {
            sentence.extend([": ", &cause]);
            before = cause;
        }
    }
    sentence
}

/// Fails where the model fits nothing, or was asked of nothing; says so where it does not fit some flows.
pub(super) fn check_fit(fit: ModelFit) -> Result<()> {
    match fit {
        ModelFit::All => {}
        ModelFit::Some { .. } => say("note", &fit.to_string()),
        ModelFit::None { .. } | ModelFit::Elsewhere { .. } => return Err(anyhow!("{fit}")),
    }
    Ok(())
}

pub(super) const MAX_NOTES: usize = 5;

/// The notices of a run: printed one by one, counted by stage and kind, or dropped, depending on the flags.
#[derive(Debug, Default)]
pub(super) struct NoticeReport {
    counted: NoticeTally,
    faults: CaptureFaults,
}

impl NoticeReport {
    pub(super) fn add(&mut self, notice: &Notice) {
        self.faults.add(notice);
        if log::is_verbose() {
            log::notice(notice);
            return;
        }
        // How a run ended is reported once, by its error; what is wrong with captures, by lines of their own.
        if [what::CUT, what::FAILED].contains(&&*notice.what) || CaptureFaults::is_one(notice) {
            return;
        }
        self.counted.add(notice);
    }

    /// What `run` makes, whose notices are printed behind it. `damage` is what the result is damaged by, if it is.
    pub(super) fn of<T, E: Display>(
        run: impl FnOnce(&mut (dyn FnMut(&Notice) + Send)) -> Result<T, E>,
        damage: impl Fn(&T) -> Option<&RunError>,
    ) -> Result<T, E> {
        let mut notices = Self::default();
        let result = run(&mut |notice| notices.add(notice));
        notices.print(&result, damage);
        result
    }

    /// Prints a line for each capture that was skipped or is damaged, and the counted notices, except those whose detail
    /// the error or the damage of the run repeats.
    pub(super) fn print<T, E: Display>(&self, run: &Result<T, E>, damage: impl Fn(&T) -> Option<&RunError>) {
        let error = match run {
            Ok(run) => damage(run).map_or_else(String::new, ToString::to_string),
            Err(error) => error.to_string(),
        };
        self.faults.print(Some(&error));
        self.notes(&error).iter().for_each(|note| say("note", note));
    }

    /// The counted notices, a sentence each, except those whose detail an error repeats.
    pub(super) fn notes(&self, error: &str) -> Vec<String> {
        let notes = self.counted.iter().filter_map(|(stage, what, counted)| {
            let detail = counted.detail.as_deref().unwrap_or_default();
            let times = if counted.times > 1 { format!(" ({} times)", counted.times) } else { String::new() };
            let colon = match (detail.is_empty(), counted.differ) {
                (true, _) => "",
                (false, true) => ", the first: ",
                (false, false) => ": ",
            };
            let is_new = detail.is_empty() || !error.contains(detail);
            is_new.then(|| format!("{stage}: {what}{times}{colon}{detail}"))
        });
        notes.collect()
    }

    /// Prints what is wrong with captures behind an answer, and then at most five notes, worst first, unless all are asked
    /// for. `error` is what the run ends with.
    pub(super) fn print_behind_answer(&self, worst: Vec<String>, others: Vec<String>, error: &str) {
        self.faults.print(Some(error));
        let notes = [worst, self.notes(error), others].concat();
        let shown = if log::is_verbose() { notes.len() } else { MAX_NOTES.min(notes.len()) };
        notes.iter().take(shown).for_each(|note| say("note", note));
        if shown < notes.len() {
            say("note", &format!("{} more (-v prints all)", notes.len() - shown));
        }
    }
}

const LOSS_CODE: u8 = 4;

#[derive(Debug, Args)]
pub(super) struct LossLimit {
    /// Exit with code 4 if more than PERCENT of the payload was not used. Of the payload of all TLS connections and of
    /// QUIC: it is missing from the capture, was skipped, or nothing confirmed it.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent, help_heading = MEASURING)]
    max_loss: f64,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    let is_share = |percent: &f64| (0.0..=100.0).contains(percent);
    number.ok().filter(is_share).ok_or_else(|| "a number from 0 to 100 is needed, such as 5 or 0.5".to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PayloadLoss {
    payload_bytes: u64,
    lost_bytes: u64,
    worst_percent: f64,
}

impl PayloadLoss {
    /// What the summary says; `None` if no stage reports it, or there was no payload.
    pub(super) fn of(summary: &Summary) -> Option<Self> {
        let mut loss = Self { payload_bytes: 0, lost_bytes: 0, worst_percent: 0.0 };
        for stage in &summary.stages {
            let count = |name: &str| stage.counters.get(name).copied().unwrap_or_default();
            loss.payload_bytes = loss.payload_bytes.saturating_add(count("payload_bytes"));
            loss.lost_bytes = loss.lost_bytes.saturating_add(count("lost_bytes"));
            loss.worst_percent = loss.worst_percent.max(count("worst_loss_millionths") as f64 / 10_000.0);
        }
        (loss.payload_bytes > 0).then_some(loss)
    }

    fn percent(self) -> f64 {
        self.lost_bytes as f64 / self.payload_bytes as f64 * 100.0
    }

    /// For the line of counts on stderr; `None` if nothing was lost.
    pub(super) fn describe(self) -> Option<String> {
        let Self { payload_bytes, worst_percent, .. } = self;
        let lost = format!("{:.2} % of {payload_bytes} bytes of payload not used", self.percent());
        (self.lost_bytes > 0).then(|| format!("{lost} (worst connection: {worst_percent:.2} %)"))
    }
}

impl LossLimit {
    /// # Errors
    /// With exit code 4 if more was lost than the limit allows. It says that `state`, from which the run continues, stays.
    pub(super) fn check(&self, loss: Option<PayloadLoss>, state: Option<&Path>) -> Result<()> {
        let Some(loss) = loss.filter(|loss| loss.percent() > self.max_loss) else { return Ok(()) };
        let stays = |state: &Path| {
            let state = state.display();
            format!("; {state} stays as it was: this run again, with a greater `--max-loss`, continues from it")
        };
        let error = anyhow!(
            "{:.2} % of the payload was not used, more than the {} % that `--max-loss` allows: commands may be missing; \
             the notices `gap`, `resync`, `unconfirmed` and `loss` say where (-v prints them){}",
            loss.percent(),
            self.max_loss,
            state.map(stays).unwrap_or_default()
        );
        Err(with_code(LOSS_CODE, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::failure::exit_code;

    #[test]
    fn limit_is_a_percentage() {
        assert_eq!((percent("5"), percent("0.5%"), percent("100 %")), (Ok(5.0), Ok(0.5), Ok(100.0)));
        for wrong in ["", "-1", "101", "NaN", "five", "inf"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn loss_beyond_the_limit_has_its_own_exit_code() {
        let limit = LossLimit { max_loss: 5.0 };
        let loss = |lost_bytes| Some(PayloadLoss { payload_bytes: 1000, lost_bytes, worst_percent: 0.0 });
        assert!(limit.check(None, None).is_ok() && limit.check(loss(50), None).is_ok());
        assert_eq!(limit.check(loss(51), None).map_err(|error| exit_code(&error)), Err(4));
    }
}
