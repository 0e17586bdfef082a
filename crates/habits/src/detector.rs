//! Alarms about a home, within a budget of false ones.
//!
//! A day's greatest score in each stream is compared with those of the days before ([`rareness_of_scores`]); the rarest
//! of them is the strangeness of the day, so that streams share one budget, whatever their scales and however they depend
//! on each other.
//! The strangeness of each day before is found in the same way, from the days beside it; so if all days are alike, no
//! place of this one among them is more probable than another ([`Budget`]).

use crate::budget::{Budget, LEAST_DAYS, rareness_of_scores};
use crate::deviation::Deviation;
use crate::home::{Evidence, Home, NOTHING, Peak, STREAMS, WINDOWS};
use crate::sighting::Sighting;

/// The part of the budget that is aimed at. The share of alarms that is allowed follows them only slowly, and days that are
/// like the day before make more alarms than days by chance: measured on simulated homes, up to a fifth more.
const AIM: f64 = 0.8;

/// The part of that share to begin with: at first there are few days, and records among few are frequent.
const START: f64 = 0.5;

/// How far the allowed share of alarms moves after a day: half of it after an alarm, so that it is back in two weeks.
const STEP: f64 = 0.5;

/// What comes within this time of an alarm belongs to it, in nanoseconds: the longest window that commands are counted in.
const INCIDENT: i64 = WINDOWS[WINDOWS.len() - 1];

/// Watches a home and learns it further.
#[derive(Debug, Clone)]
pub struct Detector {
    home: Home,
    budget: Budget,
    /// What this day is compared with.
    usual: Option<UsualDays>,
    /// The share of days that may be an alarm now.
    share: f64,
    alarms: u32,
    /// When the last one was, and how rare its incident became.
    incident: (i64, f64),
    /// The last command before a silence that was said.
    silent_since: Option<i64>,
}

/// A day beside the days before it.
#[derive(Debug, Clone)]
struct UsualDays {
    day: i64,
    /// The greatest scores of it, at first, and of those before it, by stream.
    scores: [Vec<f64>; STREAMS],
    /// How rare each of them is among the others.
    rareness: [Vec<f64>; STREAMS],
}

impl UsualDays {
    /// `None` if there are too few.
    fn new(day: i64, home: &Home, budget: Budget) -> Option<Self> {
        let compared = budget.compared(home.past_peaks().count()).filter(|days| *days >= LEAST_DAYS)?;
        let before = || home.past_peaks().rev().take(compared);
        let scores = std::array::from_fn(|stream| {
            std::iter::once(NOTHING[stream]).chain(before().map(|peaks| peaks[stream])).collect::<Vec<f64>>()
        });
        let rareness = std::array::from_fn(|stream| rareness_of_scores(&scores[stream]));
        Some(Self { day, scores, rareness })
    }

    /// The share of days that are at least as strange as this one with a peak, itself included; and how rare the peak is.
    fn share(&mut self, peak: &Peak) -> (f64, f64) {
        let stream = peak.evidence.stream();
        self.scores[stream][0] = peak.score;
        self.rareness[stream] = rareness_of_scores(&self.scores[stream]);
        let days = self.scores[stream].len();
        let strangeness = |day: usize| self.rareness.iter().map(|of_stream| of_stream[day]).fold(0.0, f64::max);
        let own = self.rareness[stream][0];
        let others: Vec<f64> = (1..days).map(strangeness).collect();
        let stranger = others.iter().filter(|strangeness| **strangeness >= own).count();
        // Beyond all of them the tail goes on.
        let beyond = if stranger == 0 { own - others.iter().copied().fold(0.0, f64::max) } else { 0.0 };
        ((stranger + 1) as f64 / days as f64 * (-beyond).exp(), own)
    }
}

impl Detector {
    /// A detector that goes on where a home was left.
    pub fn new(mut home: Home, budget: Budget) -> Self {
        home.peaks.clear();
        Self {
            home,
            share: START * AIM * budget.a_day(),
            budget,
            usual: None,
            alarms: 0,
            incident: (i64::MIN, 0.0),
            silent_since: None,
        }
    }

    /// Scores a command; commands come in order of time. Returns the deviations that it, and what should have come before
    /// it, are.
    pub fn observe(&mut self, sighting: Sighting) -> Vec<Deviation> {
        let mut found = self.advance(sighting.time_ns);
        self.home.observe(sighting);
        found.extend(self.alarms());
        found
    }

    /// Lets time pass without a command; returns the deviations that missing ones are.
    pub fn advance(&mut self, time_ns: i64) -> Vec<Deviation> {
        self.home.advance(time_ns);
        self.alarms()
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// How many more whole days have to be learned before its budget can be kept; 0 if it is kept.
    pub fn days_needed(&self) -> usize {
        self.home.days_needed(self.budget)
    }

    /// Compares from now on with the days before this one. After a day with an alarm a smaller share of days is one, after
    /// a day without one a greater share. So in the long run there are as many as the budget allows, even if days are not
    /// alike, but depend on each other and change (Gibbs and Candès, Adaptive Conformal Inference, 2021).
    fn begin_day(&mut self, day: i64) {
        if self.usual.as_ref().is_some_and(|usual| usual.day >= day) {
            return;
        }
        if self.usual.is_some() {
            let alarms = f64::from(self.alarms);
            let allowed = self.budget.a_day() * AIM;
            self.share = (self.share + STEP * allowed * (allowed - alarms)).clamp(allowed / 100.0, 2.0 * allowed);
        }
        self.alarms = 0;
        self.usual = UsualDays::new(day, &self.home, self.budget);
    }

    /// The new peaks that are beyond the budget.
    fn alarms(&mut self) -> Vec<Deviation> {
        let mut found = Vec::new();
        for peak in std::mem::take(&mut self.home.peaks) {
            let day = self.home.calendar.local(peak.time_ns).day;
            self.begin_day(day);
            let since = if let Evidence::Silence { since_ns, .. } = peak.evidence { Some(since_ns) } else { None };
            let is_said = since.is_some() && self.silent_since == since;
            let Some((p_value, rareness)) = self.usual.as_mut().map(|usual| usual.share(&peak)) else { continue };
            // What is strange on the day of an alarm belongs to the same incident, unless it comes later and is as much
            // stranger than that as an alarm is than a usual day.
            let (last_ns, worst) = &mut self.incident;
            let is_same = self.alarms > 0 && peak.time_ns.saturating_sub(*last_ns) < INCIDENT;
            if is_same {
                *worst = worst.max(rareness);
            }
            let is_another = self.alarms == 0 || !is_same && rareness > *worst - self.budget.a_day().ln();
            if !is_said && is_another && p_value <= self.share + 1e-9 {
                found.push(Deviation::of(&peak, p_value, &self.home));
                self.home.settle();
                self.alarms += 1;
                self.incident = (peak.time_ns, rareness);
                self.silent_since = since.or(self.silent_since);
            }
        }
        found
    }
}
