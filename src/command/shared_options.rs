//! What options of several subcommands have in common: their headings and how much of the help `-h` shows, durations
//! and shares, the clock and colours of text, `--since` and `--until`, and how a model is learned.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anyhow::{Result, anyhow};
use clap::{Arg, Args, Command};
use jiff::SignedDuration;
use sizeleak_frame::Frame;
use sizeleak_learning::{CipherSuite, LearningSettings};
use sizeleak_model::policies::{PaddingPolicy, PolicyFile};
use sizeleak_model::{CaptureDigest, FitMethod, Inventory};
use sizeleak_output::{Clock, Colours, HexLength, TextStyle, TimeFormat};
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::{TimeRange, parse_time};

use super::failure::{parsed, usage};

pub(super) use sizeleak_platform::runtime::program::MEASURING;

pub(super) const INPUT: &str = "Input";

pub(super) const STAGES: &str = "Stages";

pub(super) const OUTPUT: &str = "Output";

pub(super) const PADDING: &str = "Padding";

pub(super) const CURVE: &str = "Options with --curve";

pub(super) const FOLDS: &str = "Options with --folds and --curve";

/// The options that the short help has; others are in the long one.
const SHOWN: &str = "add ask budget capture-with countermeasures curve details do do-lines drop-others dry-run folds \
    force format frames from gateway help include input interface inventory jobs keep-dns kind labels \
    labels-only max-commands max-time model output pcap pipeline plan policy profile program quick quiet \
    reconnect suggest restore scenario sequence serve set table target time-zone title verbose version \
    watch whole width";

/// The same of one command.
const SHOWN_OF: [(&str, &str); 6] = [
    ("audit", "tunnel"),
    ("detect", "alarms"),
    ("plot", "since"),
    ("plot", "until"),
    ("simulate", "padding"),
    ("simulate", "seed"),
];

/// The help of a subcommand: the flags of all commands are in that of the program, the short one has the first example
/// and the options that people look for.
pub(super) fn help_of(subcommand: Command, of_all: &[Arg]) -> Command {
    let long = subcommand.get_after_long_help().map(ToString::to_string);
    let first = long.as_deref().and_then(|text| text.split_once(":\n")?.1.split('\n').next().map(str::to_owned));
    let subcommand = match first.filter(|_| subcommand.get_after_help().is_none()) {
        Some(example) => subcommand.after_help(format!("Example:\n{example}")),
        None => subcommand,
    };
    let name = subcommand.get_name().to_owned();
    let is_shown = |option: &str| SHOWN.split(' ').any(|shown| shown == option) || SHOWN_OF.contains(&(&*name, option));
    let subcommand = subcommand.mut_args(|argument| match argument.get_long() {
        Some(option) if !is_shown(option) => argument.hide_short_help(true),
        _ => argument,
    });
    subcommand.args(of_all.iter().cloned().map(|flag| flag.hide(true)))
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = text.parse::<SignedDuration>().ok().and_then(|duration| Duration::try_from(duration).ok());
    duration.ok_or_else(|| "write it like 30s, 2m or 500ms".to_owned())
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(number).map(|percent| percent / 100.0);
    let share = percent.or_else(|| number(text)).filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "it must be above 0 and at most 1, or 100%".to_owned())
}

pub(super) fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[derive(Debug, Args)]
pub(super) struct ClockOption {
    /// The clock of times in tables and pictures, utc or local; JSON and CSV have nanoseconds since 1970, Parquet and Zeek UTC
    #[arg(long, value_name = "CLOCK", value_enum, default_value_t, hide_possible_values = true, hide_default_value = true, help_heading = OUTPUT)]
    time: Clock,
}

impl ClockOption {
    pub(super) fn times(&self) -> Result<TimeFormat> {
        TimeFormat::new(self.time).map_err(|error| {
            let advice = "set TZ to a zone such as Europe/Berlin, or omit `--time local`";
            usage!("the local time zone is not known: {error}; {advice}")
        })
    }

    pub(super) fn style(&self, binary: HexLength, output: &File) -> Result<TextStyle> {
        // On a terminal, unless `NO_COLOR` is set.
        let is_plain = AutoStream::choice(output) == ColorChoice::Never;
        let colours = if is_plain { Colours::Off } else { Colours::On };
        Ok(TextStyle { binary, times: self.times()?, colours })
    }
}

#[derive(Debug, Clone, Copy, Default, Args)]
pub(super) struct TimeRangeOption {
    /// Only commands, answers and labels of this time or later, or captures that end then or later: a date, which begins
    /// in UTC, or a time as in 2026-01-06T08:00:00+01:00
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = INPUT)]
    since: Option<i64>,

    /// Only what is, or captures that begin, before this time. `--since 2026-01-06 --until 2026-01-07` is one day.
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = INPUT)]
    until: Option<i64>,
}

fn time(text: &str) -> Result<i64, String> {
    parse_time(text).ok_or_else(|| "write it like 2026-01-06 or 2026-01-06T08:00:00Z".to_owned())
}

impl TimeRangeOption {
    pub(super) fn range(&self) -> Result<TimeRange> {
        checked(self.since, self.until)
    }
}

pub(super) fn checked(since_ns: Option<i64>, until_ns: Option<i64>) -> Result<TimeRange> {
    if since_ns.zip(until_ns).is_some_and(|(since, until)| since >= until) {
        return Err(usage!("`--until` is not after `--since`: nothing is in that range"));
    }
    Ok(TimeRange { since_ns, until_ns })
}

/// Chooses frames by their time, and counts all but deviations, of which none is an answer, too.
#[derive(Debug, Default)]
pub(super) struct TimeCut {
    pub(super) range: TimeRange,
    all: u64,
    kept: u64,
}

impl TimeCut {
    pub(super) fn new(range: TimeRange) -> Self {
        Self { range, ..Self::default() }
    }

    pub(super) fn keeps(&mut self, frame: &Frame) -> bool {
        if self.range.is_everything() {
            return true;
        }
        let Some(time_ns) = frame.time_ns() else { return true };
        let is_within = self.range.contains(time_ns);
        let counts = u64::from(!matches!(frame, Frame::Deviation(_)));
        self.all += counts;
        self.kept += counts * u64::from(is_within);
        is_within
    }

    /// # Errors
    /// If none is left.
    pub(super) fn report(&self, what: &str) -> Result<()> {
        let Self { range, all, kept } = self;
        if *kept == 0 && *all > 0 {
            return Err(anyhow!("none of the {all} {what} is {range}"));
        }
        if !range.is_everything() {
            say("sizeleak", &format!("{kept} of {all} {what} are {range}"));
        }
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(super) struct LearningOptions {
    /// The devices behind the gateway and their actions, as TOML [default: any number of any action]
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// How sizes are learned: robust, or paper (its procedure)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = FitMethod::Robust)]
    pub(super) method: FitMethod,

    /// The cipher suite, by its IANA name, of sessions whose handshake was not captured
    #[arg(long, value_name = "SUITE")]
    cipher: Option<String>,

    /// Commands are padded, by this policy. A file that `sizeleak pad` wrote, or `multiple:BYTES`, `powers-of-two`,
    /// `padme`, `tls13:BYTES`, `constant:BYTES`, `random:MOST`. Sizes are learned as ranges; the model holds the
    /// policy.
    #[arg(long, value_name = "POLICY")]
    pub(super) padding: Option<PaddingOption>,

    /// Every command between the first label and the last has a label. What has none is learned as no command. Without
    /// this, only what is periodic, an answer or of a size that no actions make up is.
    #[arg(long)]
    pub(super) labels_are_complete: bool,
}

impl LearningOptions {
    /// How is learned; `captures` are those that the model names.
    pub(super) fn settings(&self, captures: Vec<CaptureDigest>) -> Result<LearningSettings> {
        Ok(LearningSettings {
            labels_are_complete: self.labels_are_complete,
            method: self.method,
            cipher: self.cipher.as_deref().map(CipherSuite::named).transpose()?,
            padding: self.padding.as_ref().map(PaddingOption::policy).transpose()?,
            inventory: self.inventory.as_ref().map(|path| parsed(path, Inventory::from_toml)).transpose()?,
            captures,
        })
    }
}

/// A padding policy, by the file that holds it or by its name.
#[derive(Debug, Clone)]
pub(super) struct PaddingOption(String);

impl From<String> for PaddingOption {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl PaddingOption {
    /// The file, if it is none of the policies that have a name.
    pub(super) fn file(&self) -> Option<&Path> {
        if self.0.parse::<PaddingPolicy>().is_ok() { None } else { Some(Path::new(&self.0)) }
    }

    pub(super) fn policy(&self) -> Result<PaddingPolicy> {
        let name = match self.0.parse() {
            Ok(policy) => return Ok(policy),
            Err(error) => error,
        };
        let file = PathBuf::from(&self.0);
        if !file.exists() {
            return Err(usage!("`{}` is no file and no policy: {name}", self.0));
        }
        Ok(parsed(&file, PolicyFile::from_json)?.policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_no_sign() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!((duration("0s"), duration("1m 5s")), (Ok(Duration::ZERO), Ok(Duration::from_secs(65))));
        for text in ["", "30", "-1s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_above_0_and_at_most_1() {
        assert_eq!((share("50%"), share("0.5")), (Ok(0.5), Ok(0.5)));
        assert!(["0", "1.1", "nan", "101%"].iter().all(|text| share(text).is_err()));
    }
}
