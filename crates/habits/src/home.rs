//! A home: what it usually does, and how much of a day is unusual. Everything is prequential: a day is scored by what the
//! days before it taught, and learned when it is over. A day has a greatest score in each of several streams
//! ([`Evidence`]), each sensitive to other deviations; which of them is an alarm is for the detector to say.

use std::collections::VecDeque;

use jiff::tz::TimeZone;

use crate::budget::{Budget, LEAST_DAYS};
use crate::calendar::{BINS, Calendar, LocalTime};
use crate::rates::{CommandId, Components, Context, LONGEST_PAUSE, LearnedCommand, Rates};
use crate::sighting::{Actions, Sighting};
use crate::slots::{RECENT_DAYS, Slot, due};

/// How many days a home remembers: by then a slow change is learned, and a month's budget can be kept.
pub const MEMORY_DAYS: usize = 120;

/// How many commands it remembers: whole days go first.
const MEMORY_COMMANDS: usize = 20_000;

/// The surprises of so many days are what a new one is compared with.
const COMPARED_DAYS: usize = 28;

/// Rates need so many days before scores say something.
const FIRST_DAYS: usize = 4;

/// Windows in which commands are counted, in nanoseconds: two minutes, twenty, three hours.
pub(crate) const WINDOWS: [i64; 3] = [120_000_000_000, 1_200_000_000_000, 10_800_000_000_000];

/// The interval in which silence is counted, in nanoseconds.
const TICK: i64 = 600_000_000_000;

/// After so long a silence nothing is due any more, and it is counted by the day.
const LONG_SILENCE: i64 = (RECENT_DAYS + 1) * BINS.cast_signed() as i64 * TICK;

/// A longer pause is one of the capture.
const LONGEST_SILENCE: i64 = 400 * BINS.cast_signed() as i64 * TICK;

/// A candidate that is less probable is not learned.
const LEAST_WEIGHT: f64 = 0.01;

pub(crate) const STREAMS: usize = 9;

/// What the streams have on a day on which nothing happens: logarithms of rates, and sums from 0 on.
pub(crate) const NOTHING: [f64; STREAMS] = [-20.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -20.0, -20.0];

/// What a score of a stream is about: a statistic of a home that has a greatest value every day.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Evidence {
    /// How improbable a command is: −ln Σ P(observation | A) · λ(A | time, history).
    Command,
    /// Whether commands are improbable on and on: a wager on the ranks of the last ones, so many.
    Stranger(usize),
    /// How many there are in a window, by its index among [`WINDOWS`], with how many were expected.
    Count { window: usize, count: usize, expected: f64 },
    /// How many beginnings were expected since the last command.
    Silence { since_ns: i64, expected: f64 },
    /// How surely a command should have come.
    Overdue(Slot),
    /// How improbable any command is at this time.
    Hour,
    /// How rare an action is.
    Action,
}

impl Evidence {
    /// The index of its stream.
    pub(crate) fn stream(&self) -> usize {
        match self {
            Self::Command => 0,
            Self::Stranger(_) => 1,
            Self::Count { window, .. } => 2 + window,
            Self::Silence { .. } => 5,
            Self::Overdue(_) => 6,
            Self::Hour => 7,
            Self::Action => 8,
        }
    }
}

/// A new greatest score of the day.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Peak {
    pub(crate) time_ns: i64,
    pub(crate) score: f64,
    pub(crate) evidence: Evidence,
}

#[derive(Debug, Clone)]
struct Day {
    number: i64,
    is_whole: bool,
    sightings: Vec<Sighting>,
    learned: Vec<LearnedCommand>,
    surprises: Vec<f64>,
    /// The greatest scores; `None` of the first days, once they are past.
    peaks: Option<[f64; STREAMS]>,
}

#[derive(Debug, Clone)]
struct Today {
    day: Day,
    /// What is due and has not come, the next one first.
    due: Vec<(i64, Slot)>,
    missed: Vec<Slot>,
    /// The surprises of the days before, in ascending order.
    reference: Vec<f64>,
}

#[derive(Debug, Clone)]
pub struct Home {
    pub(crate) calendar: Calendar,
    components: Components,
    /// What commands were is learned by their likelihoods alone.
    is_neutral: bool,
    pub(crate) rates: Rates,
    past: VecDeque<Day>,
    today: Option<Today>,
    /// The most probable commands of late, the last first, with when the last one began.
    previous: [Option<CommandId>; 2],
    last_ns: i64,
    /// The times of the commands of the longest window.
    recent: VecDeque<i64>,
    /// The wager on improbable commands, and over how many commands it has grown.
    wager: (f64, usize),
    /// The next interval whose silence is counted, and what was expected since the last command.
    tick: i64,
    expected: f64,
    /// The sum of surprises of all scored commands, and how many there are.
    log_loss: (f64, f64),
    /// The peaks of the last command, and of the time since.
    pub(crate) peaks: Vec<Peak>,
}

impl Home {
    pub fn new(zone: TimeZone, components: Components) -> Self {
        Self {
            calendar: Calendar::new(zone),
            components,
            is_neutral: false,
            rates: Rates::new(components),
            past: VecDeque::new(),
            today: None,
            previous: [None; 2],
            last_ns: i64::MIN,
            recent: VecDeque::new(),
            wager: (0.0, 0),
            tick: 0,
            expected: 0.0,
            log_loss: (0.0, 0.0),
            peaks: Vec::new(),
        }
    }

    /// The same, but what commands were is learned by their likelihoods alone, and not by what the home did before. So
    /// actions that sizes do not tell apart are learned alike, however often they come.
    #[must_use]
    pub(crate) fn neutral(self) -> Self {
        Self { is_neutral: true, ..self }
    }

    /// The whole days that were learned.
    pub fn learned_days(&self) -> usize {
        self.rates.days() as usize
    }

    /// How many more whole days have to be learned before a budget can be kept; 0 if it can be.
    pub fn days_needed(&self, budget: Budget) -> usize {
        let before = FIRST_DAYS.saturating_sub(self.learned_days());
        before + budget.days_needed().max(LEAST_DAYS).saturating_sub(self.past_peaks().count())
    }

    /// The mean surprise of a command in nats, by what was known before its day; the smaller, the better the forecast.
    pub fn log_loss(&self) -> Option<f64> {
        let (sum, count) = self.log_loss;
        (count > 0.0).then(|| sum / count)
    }

    pub fn sightings(&self) -> impl Iterator<Item = &Sighting> {
        self.days().flat_map(|day| &day.sightings)
    }

    /// The days that are remembered, with the one that is going on.
    fn days(&self) -> impl Iterator<Item = &Day> {
        self.past.iter().chain(self.today.iter().map(|today| &today.day))
    }

    pub fn components(&self) -> Components {
        self.components
    }

    /// The numbers of the whole days that were learned, in ascending order.
    pub(crate) fn whole_days(&self) -> Vec<i64> {
        self.past.iter().filter(|day| day.is_whole).map(|day| day.number).collect()
    }

    /// The greatest scores of past days that have them, the latest last.
    pub(crate) fn past_peaks(&self) -> impl DoubleEndedIterator<Item = &[f64; STREAMS]> {
        self.past.iter().filter_map(|day| day.peaks.as_ref())
    }

    /// The last commands of the day, the last first, each with its most probable actions and their probability.
    pub(crate) fn last_commands(&self) -> impl Iterator<Item = (&Sighting, Option<&LearnedCommand>)> {
        let today = self.today.iter().flat_map(|today| today.day.sightings.iter().rev());
        today.map(|sighting| {
            let mut learned = self.today.iter().flat_map(|today| &today.day.learned);
            let at = self.calendar.local(sighting.time_ns);
            (sighting, learned.rfind(|learned| learned.at == at))
        })
    }

    /// What was or is due today and has not come.
    pub(crate) fn not_come(&self) -> impl Iterator<Item = &Slot> {
        let today = self.today.iter();
        today.flat_map(|today| today.missed.iter().chain(today.due.iter().map(|(_, slot)| slot)))
    }

    /// Ends the wager on improbable commands: what it was about has been said.
    pub(crate) fn settle(&mut self) {
        self.wager = (0.0, 0);
    }

    /// When the last command began, in nanoseconds since the epoch; `None` before the first.
    pub fn last_ns(&self) -> Option<i64> {
        self.today.as_ref().map(|_| self.last_ns)
    }

    /// Lets time pass; finds what is missing.
    pub(crate) fn advance(&mut self, time_ns: i64) {
        if self.today.is_none() {
            return;
        }
        if time_ns.saturating_sub(self.tick) > LONGEST_SILENCE {
            self.tick = tick_of(time_ns);
        }
        while time_ns.saturating_sub(self.tick) >= TICK {
            let local = self.calendar.local(self.tick);
            self.begin_day(local.day, true);
            let is_long = self.tick.saturating_sub(self.last_ns) > LONG_SILENCE;
            let ticks = if is_long { local.bins_left().min((time_ns - self.tick) / TICK) } else { 1 };
            let end_ns = self.tick + ticks * TICK;
            if self.last_ns >= self.tick {
                self.expected = 0.0;
            } else {
                let bins = local.bin()..local.bin() + ticks as usize;
                let sessions: f64 = bins.map(|bin| self.rates.sessions(local.day, bin)).sum();
                self.expected += sessions * TICK as f64 / 3.6e12;
                let evidence = Evidence::Silence { since_ns: self.last_ns, expected: self.expected };
                self.score(end_ns, self.expected, evidence);
            }
            let missed = self.today.as_mut().map(|today| {
                let count = today.due.partition_point(|(due_ns, _)| *due_ns <= end_ns);
                let missed: Vec<_> = today.due.drain(..count).collect();
                today.missed.extend(missed.iter().map(|(_, slot)| slot.clone()));
                missed
            });
            for (due_ns, slot) in missed.into_iter().flatten() {
                self.score(due_ns, slot.score, Evidence::Overdue(slot));
            }
            self.tick = end_ns;
        }
    }

    /// Scores a command and remembers it; commands come in order of time.
    pub(crate) fn observe(&mut self, sighting: Sighting) {
        self.peaks.clear();
        let (time_ns, at) = self.begin(sighting.time_ns);
        let sighting = Sighting { time_ns, ..sighting };
        self.count(time_ns, at);
        let context = self.context(time_ns);
        if let Some((probabilities, surprise)) = self.weigh(&sighting, at, &context) {
            let all: f64 = sighting.candidates.iter().map(|(_, likelihood)| likelihood).sum();
            let learned = |likelihood: f64, own: f64| if self.is_neutral { likelihood / all } else { own };
            let candidates = sighting.candidates.iter().zip(probabilities);
            let weights = candidates.map(|((actions, likelihood), own)| (actions, learned(*likelihood, own)));
            let mut weights: Vec<(&Actions, f64)> = weights.filter(|(_, weight)| *weight > LEAST_WEIGHT).collect();
            // Equal ones stay in their order.
            weights.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            let is_learned = |class: &&[(Actions, f64)]| {
                class.iter().any(|(own, _)| weights.iter().any(|(actions, _)| std::ptr::eq(own, *actions)))
            };
            let classes = sighting.classes().filter(is_learned);
            let classes = classes.map(|class| self.rates.ids(class.iter().map(|(actions, _)| actions))).collect();
            let weights: Vec<(CommandId, f64)> =
                weights.into_iter().map(|(actions, weight)| (self.rates.id(actions), weight)).collect();
            self.score_command(time_ns, at, surprise, &sighting.candidates, &weights);
            if let Some((top, _)) = weights.first() {
                self.previous = [Some(*top), self.previous[0].filter(|_| context.previous[0].is_some())];
            }
            if let Some(today) = &mut self.today {
                today.day.surprises.push(surprise);
                today.day.learned.push(LearnedCommand { at, context, weights, classes });
            }
        }
        self.last_ns = time_ns;
        if let Some(today) = &mut self.today {
            today.day.sightings.push(sighting);
        }
    }

    /// How many times as frequent each of some commands is at a time, after what came before, as it is all day. Time passes
    /// until then.
    pub(crate) fn lifts_at(&mut self, time_ns: i64, commands: impl Iterator<Item = Actions>) -> Vec<f64> {
        let (time_ns, at) = self.begin(time_ns);
        let context = self.context(time_ns);
        commands.map(|actions| self.rates.lift(&actions, at, &context)).collect()
    }

    /// Lets time pass until a command, which never goes back; returns when that is.
    fn begin(&mut self, time_ns: i64) -> (i64, LocalTime) {
        let time_ns = time_ns.max(self.last_ns);
        self.advance(time_ns);
        let at = self.calendar.local(time_ns);
        if self.today.is_none() {
            self.tick = tick_of(time_ns);
            self.begin_day(at.day, false);
        }
        self.begin_day(at.day, true);
        (time_ns, at)
    }

    fn context(&self, time_ns: i64) -> Context {
        let pause = time_ns.saturating_sub(self.last_ns) as f64 / 1e9;
        let previous = if pause < LONGEST_PAUSE { self.previous } else { [None; 2] };
        Context { previous, pause }
    }

    /// The probabilities of the candidates, and −ln of what the command had; `None` where nothing is known of it.
    fn weigh(&self, sighting: &Sighting, at: LocalTime, context: &Context) -> Option<(Vec<f64>, f64)> {
        let joint = |(actions, likelihood): &(_, f64)| likelihood * self.rates.rate(actions, at, context);
        let mut joint: Vec<f64> = sighting.candidates.iter().map(joint).collect();
        let all: f64 = joint.iter().sum();
        if !(all > 0.0 && all.is_finite()) {
            return None;
        }
        for probability in &mut joint {
            *probability /= all;
        }
        Some((joint, -all.ln()))
    }

    fn score_command(
        &mut self,
        time_ns: i64,
        at: LocalTime,
        surprise: f64,
        likelihoods: &[(Actions, f64)],
        weights: &[(CommandId, f64)],
    ) {
        self.score(time_ns, surprise, Evidence::Command);
        let rare =
            likelihoods.iter().map(|(actions, likelihood)| likelihood * self.rates.rarest_action(actions)).sum::<f64>();
        self.score(time_ns, -rare.ln(), Evidence::Action);
        let Some(today) = &mut self.today else { return };
        let classes = self.rates.by_class(weights);
        today.due.retain(|(_, slot)| !classes.iter().any(|(id, weight)| slot.is_met_by(*id, at.second, *weight)));
        let reference = &today.reference;
        if reference.is_empty() {
            return;
        }
        self.log_loss = (self.log_loss.0 + surprise, self.log_loss.1 + 1.0);
        // Under habits as before, p is as likely to be any share, and the expected growth of the wager is 1.
        let at_least = reference.len() - reference.partition_point(|score| *score < surprise);
        let share = (at_least as f64 + 1.0) / (reference.len() as f64 + 1.0);
        let (before, commands) = if self.wager.0 > 0.0 { self.wager } else { (0.0, 0) };
        self.wager = (before + (0.5 / share.sqrt()).ln(), commands + 1);
        self.score(time_ns, self.wager.0, Evidence::Stranger(self.wager.1));
    }

    /// Counts the commands in the windows that end now.
    fn count(&mut self, time_ns: i64, at: LocalTime) {
        self.score(time_ns, -self.rates.any(at.day, at.bin()).ln(), Evidence::Hour);
        self.recent.push_back(time_ns);
        let longest = WINDOWS[WINDOWS.len() - 1];
        let old = self.recent.partition_point(|then| time_ns.saturating_sub(*then) > longest);
        self.recent.drain(..old);
        for (window, length) in WINDOWS.into_iter().enumerate() {
            let count = self.recent.len() - self.recent.partition_point(|then| time_ns - then > length);
            let step = length.min(TICK);
            let rate = |place: i64| {
                let from_ns = time_ns.saturating_sub(length);
                let local = self.calendar.local(from_ns + place * step + step / 2);
                self.rates.any(local.day, local.bin()) * step as f64 / 3.6e12
            };
            let expected = 0.5 + (0..length / step).map(rate).sum::<f64>();
            let number = count as f64;
            // How improbable so many are, of a Poisson distribution (Chernoff's bound).
            let score = if number > expected { number * (number / expected).ln() - (number - expected) } else { 0.0 };
            self.score(time_ns, score, Evidence::Count { window, count, expected });
        }
    }

    /// Notes a score, and a peak if it is one.
    fn score(&mut self, time_ns: i64, score: f64, evidence: Evidence) {
        let Some(of_day) = self.today.as_mut().and_then(|today| today.day.peaks.as_mut()) else { return };
        let greatest = &mut of_day[evidence.stream()];
        if score > *greatest {
            *greatest = score;
            self.peaks.push(Peak { time_ns, score, evidence });
        }
    }

    /// Ends the day before, if this is another one.
    fn begin_day(&mut self, day: i64, is_whole: bool) {
        if self.today.as_ref().is_some_and(|today| today.day.number >= day) {
            return;
        }
        // A day without a command is one of the capture, or a silence that is said at its time.
        let quiet = self.today.take_if(|today| today.day.sightings.is_empty());
        if let Some(Today { day: mut over, .. }) = self.today.take() {
            // What is learned from less is as strange on every day.
            over.peaks = over.peaks.filter(|_| over.is_whole && self.learned_days() >= FIRST_DAYS);
            if over.is_whole {
                self.rates.learn_days([(over.number, &over.learned[..])]);
            }
            self.past.push_back(over);
            self.forget();
        }
        // Of a quiet day nothing was learned.
        let reference = quiet.map_or_else(|| self.reference(), |today| today.reference);
        self.today = Some(self.new_day(day, is_whole, reference));
    }

    fn reference(&self) -> Vec<f64> {
        let compared = self.past.iter().rev().take(COMPARED_DAYS);
        let mut reference: Vec<f64> = compared.flat_map(|day| day.surprises.iter().copied()).collect();
        reference.sort_by(f64::total_cmp);
        reference
    }

    fn new_day(&self, number: i64, is_whole: bool, reference: Vec<f64>) -> Today {
        let due = due(&self.rates, &self.whole_days(), number);
        let due = due.into_iter().map(|slot| (self.calendar.time_ns(number, slot.due_second()), slot));
        let mut due: Vec<(i64, Slot)> = due.collect();
        due.sort_by_key(|(due_ns, _)| *due_ns);
        let (sightings, learned, surprises, peaks) = (Vec::new(), Vec::new(), Vec::new(), Some(NOTHING));
        let day = Day { number, is_whole, sightings, learned, surprises, peaks };
        Today { day, due, missed: Vec::new(), reference }
    }

    fn forget(&mut self) {
        let gone = self.past.len() - remembered(self.past.iter().rev().map(|day| day.sightings.len()));
        let days: Vec<Day> = self.past.drain(..gone).filter(|day| day.is_whole).collect();
        if days.is_empty() {
            return;
        }
        self.rates.forget_days(days.iter().map(|day| (day.number, &day.learned[..])));
        if self.rates.is_mostly_forgotten() {
            self.learn_anew();
        }
    }

    /// Learns what is remembered from the beginning: only then are numbers of commands that nobody sends any more free again.
    fn learn_anew(&mut self) {
        let old = std::mem::replace(&mut self.rates, Rates::new(self.components));
        let rates = &mut self.rates;
        let commands: Vec<&Actions> = old.all().map(|(actions, _)| actions).collect();
        let mut numbers = vec![None; commands.len()];
        let mut renumber = |id: &mut CommandId| {
            let at = *id as usize;
            *id = *numbers[at].get_or_insert_with(|| rates.id(commands[at]));
        };
        // What came before is numbered first: of commands that are as much due, or as alike, the lower number is named.
        self.previous.iter_mut().flatten().for_each(&mut renumber);
        let mut learned: Vec<&mut LearnedCommand> = self.past.iter_mut().flat_map(|day| &mut day.learned).collect();
        learned.iter_mut().flat_map(|one| &mut one.context.previous).flatten().for_each(&mut renumber);
        learned.iter_mut().flat_map(|one| &mut one.weights).for_each(|(id, _)| renumber(id));
        for class in learned.iter_mut().flat_map(|one| &mut one.classes) {
            class.iter_mut().for_each(&mut renumber);
            class.sort_unstable();
        }
        // A day may end before what it missed is said.
        for peak in &mut self.peaks {
            if let Evidence::Overdue(slot) = &mut peak.evidence {
                renumber(&mut slot.command);
            }
        }
        let days = self.past.iter().filter(|day| day.is_whole);
        self.rates.learn_days(days.map(|day| (day.number, &day.learned[..])));
    }
}

/// How many past days a home remembers, of their numbers of commands, the latest day first: that one however many it has.
fn remembered(commands: impl Iterator<Item = usize>) -> usize {
    let sums = commands.take(MEMORY_DAYS).scan(0, |sum, count| {
        *sum += count;
        Some(*sum)
    });
    sums.enumerate().take_while(|&(at, sum)| at == 0 || sum <= MEMORY_COMMANDS).count()
}

/// How many of some sightings, in order of time, a home has forgotten after the last one.
pub(crate) fn forgotten(calendar: &Calendar, sightings: &[Sighting]) -> usize {
    let day = |sighting: &Sighting| calendar.local(sighting.time_ns).day;
    let counts: Vec<usize> = sightings.chunk_by(|a, b| day(a) == day(b)).rev().map(<[Sighting]>::len).collect();
    let kept = counts.get(1..).map_or(0, |past| remembered(past.iter().copied()));
    counts.iter().skip(1 + kept).sum()
}

/// The beginning of the interval of silence that a time is in; of the first one, the earliest time.
fn tick_of(time_ns: i64) -> i64 {
    time_ns.saturating_sub(time_ns.rem_euclid(TICK))
}
