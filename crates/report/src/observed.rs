//! What was observed, summed up as it comes: sizes, hours, how sure answers are, deviations, and the latencies of
//! stages. Nothing is kept of a single command. And what a profile has learned of a home in this way: when it uses
//! which action, and its routines.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use sizeleak_evaluation::statistics::{Confidence, Interval, percent_within};
use sizeleak_frame::{Frame, Identification, StageSummary, Summary};
use sizeleak_habits::{ActionWeek, Home, Routine};
use sizeleak_output::AnswerSink;
use sizeleak_platform::telemetry::Latency;
use sizeleak_text::counted;

use crate::document::{ChartKind, Figure, Section, Value, Verdict};

/// Fewer commands of an hour or a size are not shown: whoever knows one of the people would recognise a single event.
const MIN_SHOWN: u64 = 5;

/// Messages of more bytes are counted together: they do not fit a TLS record.
const MAX_BYTES: u64 = 1 << 14;

/// The kinds of deviation, with what they are. What a stream calls otherwise is the last one.
const DEVIATIONS: [(&str, &str); 9] = [
    ("action", "an action that is rare, or was never seen"),
    ("command", "a command that is unusual at its time"),
    ("burst", "many commands within minutes"),
    ("slow-burst", "many commands within hours"),
    ("shifted-routine", "a routine at another time"),
    ("overdue", "a command that should have come"),
    ("silence", "no command where several should have come"),
    ("stranger", "commands that this household does not use so"),
    ("other", "of a kind that this version does not know"),
];

#[derive(Debug)]
pub struct Observed {
    zone: TimeZone,
    /// All files that are at their end.
    all: Commands,
    file: Commands,
    /// What is known of each file: a stream with deviations has the answers, too, that they were found in.
    files: Vec<Commands>,
    deviations: [u64; DEVIATIONS.len()],
    summary: Option<Summary>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Commands {
    by_size: BTreeMap<u64, u64>,
    by_hour: [u64; 24],
    days: BTreeSet<Date>,
    answers: u64,
    unexplained: u64,
    /// The sum of the probabilities p of first candidates, and that of p·(1 − p).
    probability: f64,
    variance: f64,
}

impl Observed {
    /// Nothing yet; hours are those of this zone's clock.
    pub fn new(zone: TimeZone) -> Self {
        Self {
            zone,
            all: Commands::default(),
            file: Commands::default(),
            files: Vec::new(),
            deviations: [0; DEVIATIONS.len()],
            summary: None,
        }
    }

    /// Adds a command of this size in bytes at this time.
    pub fn add_command(&mut self, time_ns: i64, bytes: u64) {
        *self.file.by_size.entry(bytes.min(MAX_BYTES)).or_default() += 1;
        let Ok(time) = Timestamp::from_nanosecond(time_ns.into()) else { return };
        let local = self.zone.to_datetime(time);
        if let Some(hour) = self.file.by_hour.get_mut(local.hour().unsigned_abs() as usize) {
            *hour += 1;
        }
        self.file.days.insert(local.date());
    }

    fn add_answer(&mut self, answer: &Identification) {
        self.add_command(answer.command.time_ns, answer.command.size);
        self.file.answers += 1;
        match answer.candidates.first().map(|first| first.probability) {
            Some(probability) if (0.0..=1.0).contains(&probability) => {
                self.file.probability += probability;
                self.file.variance += probability * (1.0 - probability);
            }
            _ => self.file.unexplained += 1,
        }
    }

    /// Says that a file is at its end: what comes is another. A file with the same commands as one before counts once.
    pub fn end_of_file(&mut self) {
        let file = std::mem::take(&mut self.file);
        if !file.by_size.is_empty() && !self.files.contains(&file) {
            self.all.add(&file);
            self.files.push(file);
        }
    }

    pub fn clock(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    pub fn commands(&self) -> u64 {
        self.all.by_size.values().sum()
    }

    pub fn deviation_count(&self) -> u64 {
        self.deviations.iter().sum()
    }

    /// What answers say of themselves in one sentence; `None` without any.
    pub fn verdict(&self) -> Option<Verdict> {
        let Commands { answers: count, unexplained, probability, variance, .. } = self.all;
        (count > 0).then(|| {
            let (all, mean) = (count as f64, probability / count as f64);
            let half = Confidence::USUAL.deviations() * variance.sqrt() / all;
            let interval = Interval { low: (mean - half).max(0.0), high: (mean + half).min(1.0) };
            let open = if unexplained > 0 { format!(" Nothing explains {unexplained} of them.") } else { String::new() };
            Verdict {
                sentence: format!(
                    "By their own probabilities, the answers name the exact actions of {} of {}.",
                    percent_within(mean, interval),
                    counted(count, "command", "commands")
                ),
                meaning: format!(
                    "So many first answers are right if their probabilities are; in brackets is the interval of 95 %.{open} \
                     Labelled captures (`--labels` with `--model`) check it."
                ),
            }
        })
    }

    /// The sizes and hours of commands; none without commands.
    pub fn figures(&self) -> Vec<Figure> {
        if self.all.by_size.is_empty() {
            return Vec::new();
        }
        let is_shown = |(_, commands): &(&u64, &u64)| **commands >= MIN_SHOWN;
        let left_out: u64 = self.all.by_size.values().filter(|commands| **commands < MIN_SHOWN).sum();
        let sizes =
            self.all.by_size.iter().filter(is_shown).map(|(bytes, commands)| [(*bytes).into(), (*commands).into()]);
        let left_out = match left_out {
            0 => String::new(),
            1 => "1 command of a size that fewer than five have is left out.".to_owned(),
            several => format!("{several} commands of sizes that fewer than five have are left out."),
        };
        let sizes = Figure::new("sizes-seen", "bytes | commands", sizes)
            .titled(
                format!("Sizes of {}, as an observer sees them", counted(self.commands(), "command", "commands")),
                left_out,
            )
            .drawn(ChartKind::Spectrum, &[0, 1])
            .read_by("Each line is a size.");
        let days = self.all.days.len();
        let shown =
            |commands: u64| (commands >= MIN_SHOWN).then(|| Value::Number(commands as f64 / days.max(1) as f64, 2));
        let hours = (0_u64..).zip(self.all.by_hour).map(|(hour, commands)| [hour.into(), Value::from(shown(commands))]);
        let hours = Figure::new("hours", "hour | commands", hours)
            .titled(
                format!("When commands come: mean of {days} {}", if days == 1 { "day" } else { "days" }),
                format!(
                    "Commands in each hour of a day, by the clock of {}. Hours with fewer than five are left out.",
                    self.clock()
                ),
            )
            .drawn(ChartKind::Spectrum, &[0, 1]);
        vec![sizes, hours]
    }

    /// What deviations alone say in one sentence; `None` without any.
    pub fn deviation_verdict(&self) -> Option<Verdict> {
        let count = self.deviation_count();
        (count > 0).then(|| Verdict {
            sentence: format!(
                "{} not as usual in this home, as far as sizes of commands show.",
                counted(count, "incident was", "incidents were")
            ),
            meaning: "Whoever sees the lengths of encrypted records can watch for them, too.".to_owned(),
        })
    }

    /// What was not as usual, by kind; `None` without any.
    pub fn deviations(&self) -> Option<Section> {
        let all = self.deviation_count();
        let rows = DEVIATIONS.iter().zip(self.deviations).filter(|(_, count)| *count > 0);
        let rows = rows.map(|((name, what), count)| [(*name).into(), count.into(), (*what).into()]);
        let figure = Figure::new("kinds-of-deviation", "kind | deviations | what it is", rows)
            .titled("Deviations by their kind", "One incident is one deviation, whatever commands it has.")
            .drawn(ChartKind::Bars, &[0, 1]);
        let text = format!(
            "{} beyond what this home usually does, by the sizes of its commands alone.",
            counted(all, "incident was", "incidents were")
        );
        let section = Section::new("deviations", vec![text], vec![figure]);
        (all > 0).then_some(section)
    }

    /// How long stages take; `None` if the streams do not say.
    pub fn latencies(&self) -> Option<Section> {
        let rows: Vec<_> = self.summary.iter().flat_map(|summary| &summary.stages).filter_map(latency_row).collect();
        let columns = "stage | frames | median, µs | 99 %, µs | most, µs";
        let text = "How long each stage worked on a frame, as the last of the streams says.";
        (!rows.is_empty()).then(|| {
            let figure = Figure::new("service-times", columns, rows)
                .titled("Time of each stage for a frame", "")
                .drawn(ChartKind::Ranges, &[0, 2, 3, 4])
                .read_by("The dot is the median; the thick line goes on to the 99 % quantile, in microseconds.");
            Section::new("latency", vec![text.to_owned()], vec![figure])
        })
    }
}

impl Commands {
    fn add(&mut self, other: &Self) {
        for (bytes, commands) in &other.by_size {
            *self.by_size.entry(*bytes).or_default() += commands;
        }
        self.by_hour.iter_mut().zip(other.by_hour).for_each(|(sum, commands)| *sum += commands);
        self.days.extend(&other.days);
        self.answers += other.answers;
        self.unexplained += other.unexplained;
        self.probability += other.probability;
        self.variance += other.variance;
    }
}

fn latency_row(row: &StageSummary) -> Option<[Value; 5]> {
    let [median, p99, longest] = quantiles(&row.latency)?;
    Some([row.stage.as_str().into(), row.frames_in.into(), median, p99, longest])
}

/// The median of the times of a histogram of a summary, what 99 % take at most and the longest, in microseconds; `None` if
/// it is empty or cannot be read.
pub fn quantiles(histogram: &[u8]) -> Option<[Value; 3]> {
    let latency = Latency::from_bytes(histogram).ok().filter(|latency| !latency.histogram().is_empty())?;
    let at = |quantile| Value::Number(latency.histogram().value_at_quantile(quantile) as f64 / 1e3, 2);
    Some([0.5, 0.99, 1.0].map(at))
}

impl AnswerSink for Observed {
    fn add(&mut self, frame: Frame) {
        match frame {
            Frame::Identification(answer) => self.add_answer(&answer),
            Frame::Deviation(deviation) => {
                let kind = DEVIATIONS.iter().position(|(name, _)| *name == deviation.what);
                if let Some(count) = self.deviations.get_mut(kind.unwrap_or(DEVIATIONS.len() - 1)) {
                    *count += 1;
                }
            }
            Frame::Summary(summary) => self.summary = Some(summary),
            _ => {}
        }
    }
}

pub fn habits_verdict(home: &Home) -> Verdict {
    let (routines, days) = (home.routines().len(), home.learned_days());
    Verdict {
        sentence: format!(
            "The sizes of {} of commands give away {} of this home.",
            counted(days, "day", "days"),
            if routines == 0 { "no routine".to_owned() } else { counted(routines, "routine", "routines") }
        ),
        meaning: "A routine is a command that comes at about the same time on most days. Whoever sees the lengths of \
                  encrypted records can learn as much: when people get up, come home and go to bed."
            .to_owned(),
    }
}

/// The habits of a home that lives by the clock of this zone.
pub fn habits_section(home: &Home, zone: &str) -> Section {
    let weeks = home.week();
    let days = home.learned_days();
    let actions = weeks.iter().map(|week| [(&*week.action).into(), Value::Number(week.weekly, 2)]);
    let actions = Figure::new("weekly", "action | a week", actions)
        .titled(
            "Commands with an action in a week",
            "Expected numbers: an answer counts by its probability, and commands that nothing tells apart count alike.",
        )
        .drawn(ChartKind::Bars, &[0, 1]);
    let hours = weeks.iter().flat_map(|week| by_hour(week, days));
    let note = format!(
        "Commands with an action in an hour of the day, in a week, by the clock of {zone}. Hours with fewer than five \
         commands in all are left out."
    );
    let hours = Figure::new("habits-by-hour", "hour | action | a week", hours)
        .titled("When actions are used", note)
        .drawn(ChartKind::Hours, &[0, 1, 2]);
    let routines = home.routines().into_iter().map(|Routine { command, at, came, of, days }| {
        [about(&at).into(), command.to_string().into(), u64::from(came).into(), u64::from(of).into(), days.into()]
    });
    let routines = Figure::new("routines", "from | command | came | of days | which days", routines).titled(
        "Routines",
        "Commands that come at about the same time on most days, by the quarter of an hour in which they begin.",
    );
    let text = format!("Learned from {}.", counted(days, "whole day", "whole days"));
    Section::new("habits", vec![text], vec![actions, hours, routines])
}

/// The quarter of an hour of a time like `07:12`, which is that of a single command.
fn about(time: &str) -> String {
    let minutes = time.split_once(':').and_then(|(hour, minute)| Some((hour, minute.parse::<u32>().ok()? / 15 * 15)));
    minutes.map_or_else(String::new, |(hour, quarter)| format!("{hour}:{quarter:02}"))
}

fn by_hour(week: &ActionWeek, days: usize) -> impl Iterator<Item = [Value; 3]> {
    let weeks = days as f64 / 7.0;
    (0_u64..24).filter_map(move |hour| {
        let weekly: f64 = week.hours.iter().filter_map(|day| day.get(hour as usize).copied().flatten()).sum();
        (weekly * weeks >= MIN_SHOWN as f64).then(|| [hour.into(), (&*week.action).into(), Value::Number(weekly, 2)])
    })
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Deviation;

    use super::*;

    #[test]
    fn one_incident_is_one() {
        let deviation = Deviation {
            time_ns: 0,
            gateway: String::new(),
            what: "burst".to_owned(),
            p_value: 0.001,
            expected: String::new(),
            seen: String::new(),
            commands: Vec::new(),
        };
        let mut observed = Observed::new(TimeZone::UTC);
        assert_eq!((observed.deviation_verdict(), observed.deviations()), (None, None));
        for begins in ["1 incident was ", "2 incidents were "] {
            observed.add(deviation.clone().into());
            let said = [observed.deviation_verdict().unwrap().sentence, observed.deviations().unwrap().text.concat()];
            assert!(said.iter().all(|sentence| sentence.starts_with(begins)), "{said:?}");
        }
    }
}
