//! The homes behind the gateways of a stream of answers, what a stream says of its flows besides answers, and the
//! habits of these homes as a prior of what their commands are.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{Identification, Notice, what};

use crate::home::Home;
use crate::profile::Profile;
use crate::sighting::{Actions, Sighting};

/// The most flows whose gateway is remembered, and the most homes.
const MAX_FLOWS: usize = 1 << 16;
const MAX_HOMES: usize = 256;

/// How far the answers of a home may go back in time, in nanoseconds: those of commands that overlap, and of connections
/// beside each other, come out of order.
const MAX_DISORDER: i64 = 3_600_000_000_000;

/// A follower for the home behind each gateway of a stream.
#[derive(Debug)]
pub struct Homes<H> {
    profile: Profile,
    /// What the stream says of its flows.
    pub flows: SeenFlows,
    followers: BTreeMap<String, Follower<H>>,
    known: u64,
    unwatched: u64,
}

#[derive(Debug)]
struct Follower<H> {
    home: H,
    /// Up to when the profile knows the home.
    known_ns: i64,
    /// The latest answer.
    latest_ns: i64,
    disorder: Option<Disorder>,
}

/// Answers of a home whose times go back, as where a clock was set: nobody can say when they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disorder {
    pub answers: u64,
    /// The time of the first of them, and the latest one before it.
    pub first_ns: i64,
    pub before_ns: i64,
}

impl<H> Homes<H> {
    /// The homes of a profile; others are known from when they are seen.
    pub fn new(profile: Profile) -> Self {
        Self { profile, flows: SeenFlows::new(MAX_FLOWS), followers: BTreeMap::new(), known: 0, unwatched: 0 }
    }

    /// What an answer shows, with its gateway and who follows its home: whom `begin` makes at the first answer, with
    /// when the profile's last command began. `None` for what the profile has or what is older, for what goes back in time,
    /// and of too many homes.
    pub fn see(
        &mut self,
        answer: &Identification,
        begin: impl FnOnce(&Profile, &str) -> (H, Option<i64>),
    ) -> Option<(&str, &mut H, Sighting)> {
        let (gateway, sighting) = self.flows.sighting(answer);
        if !self.followers.contains_key(&gateway) {
            if self.followers.len() >= MAX_HOMES {
                self.unwatched += 1;
                return None;
            }
            let (home, known_ns) = begin(&self.profile, &gateway);
            // A diary takes room, and is not needed again.
            self.profile.forget(&gateway);
            let (known_ns, latest_ns) = (known_ns.unwrap_or(i64::MIN), i64::MIN);
            self.followers.insert(gateway.clone(), Follower { home, known_ns, latest_ns, disorder: None });
        }
        let (gateway, Follower { home, known_ns, latest_ns, disorder }) = self.followers.range_mut(gateway..).next()?;
        if sighting.time_ns < latest_ns.saturating_sub(MAX_DISORDER) {
            let first = Disorder { answers: 0, first_ns: sighting.time_ns, before_ns: *latest_ns };
            disorder.get_or_insert(first).answers += 1;
            return None;
        }
        *latest_ns = sighting.time_ns.max(*latest_ns);
        // A profile has times to the microsecond.
        if sighting.time_ns.div_euclid(1_000) <= known_ns.div_euclid(1_000) {
            self.known += 1;
            return None;
        }
        Some((gateway, home, sighting))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut H)> {
        self.followers.iter_mut().map(|(gateway, follower)| (gateway.as_str(), &mut follower.home))
    }

    pub fn disorders(&self) -> impl Iterator<Item = (&str, Disorder)> {
        self.followers.iter().filter_map(|(gateway, follower)| Some((gateway.as_str(), follower.disorder?)))
    }

    /// How many answers the profile has already, or are older; and how many are of more homes than are followed.
    pub fn passed_over(&self) -> (u64, u64) {
        (self.known, self.unwatched)
    }
}

#[derive(Debug)]
pub struct SeenFlows {
    gateways: BTreeMap<u64, String>,
    /// Flows that their model does not fit: what they carry says nothing, only when it came.
    misfits: BTreeSet<u64>,
    most: usize,
}

impl SeenFlows {
    /// No flows; at most so many are remembered.
    pub fn new(most: usize) -> Self {
        Self { gateways: BTreeMap::new(), misfits: BTreeSet::new(), most }
    }

    pub fn name_gateway(&mut self, flow: u64, gateway: &str) {
        self.gateways.insert(flow, gateway.to_owned());
        while self.gateways.len() > self.most {
            self.gateways.pop_first();
        }
    }

    /// Takes down that a model does not fit, if that is what a notice is about.
    pub fn note(&mut self, notice: &Notice) {
        if notice.what == what::MISFIT && self.misfits.len() < self.most {
            self.misfits.extend(notice.flow);
        }
    }

    /// The gateway of an answer, empty where nothing named it; and what was seen.
    pub fn sighting(&self, answer: &Identification) -> (String, Sighting) {
        let flow = answer.command.flow;
        let mut sighting = Sighting::from(answer);
        if self.misfits.contains(&flow) {
            sighting.candidates.clear();
        }
        (self.gateways.get(&flow).cloned().unwrap_or_default(), sighting)
    }
}

/// Habits as the prior of what commands are, beside the prior that a model has learned.
///
/// Two forecasts say of each command how probable its listed candidates A are before its size and replies are seen: the
/// model's prior π(A), and π(A) times how many times as frequent A is in this home at this time and after what came before,
/// as it is all day. How frequent actions are all day, the model's prior has learned from the flow. So commands that sizes
/// never tell apart stay as probable, one beside the other, as they are without habits, however often they come; for
/// the same reason what each command was is learned from its likelihoods alone.
///
/// Neither forecast is taken for granted. Each has a weight v, what was seen has the probability
/// E = Σ P(observation | A) · P(A) by each, and v ← v · E is what the next command is judged by. So habits that say nothing,
/// and habits that change, lose their weight. A share 1 / (t + 1) of the weight is spread evenly after command t, so that a
/// forecast that gets better is heard again (fixed share: Herbster and Warmuth, Tracking the Best Expert, 1998). What was
/// seen of T commands is by both together less probable than by either alone at most by the factor 2 √(T + 1): that is all
/// that wrong habits can cost, whatever they are.
///
/// The habits of the homes of a stream are learned further while commands are answered.
#[derive(Debug)]
pub struct HabitPrior {
    homes: Homes<Forecasts>,
}

/// A home with how well it and the model have forecast its commands.
#[derive(Debug)]
struct Forecasts {
    home: Home,
    /// The weight of habits; the rest is the model's.
    of_habits: f64,
    commands: f64,
}

impl HabitPrior {
    pub fn new(profile: Profile) -> Self {
        Self { homes: Homes::new(profile) }
    }

    pub fn flows(&mut self) -> &mut SeenFlows {
        &mut self.homes.flows
    }

    /// The probabilities of an answer's candidates in their order, with the same sum as before, and learns the answer.
    /// `None` where habits cannot be the prior: where the likelihood of a candidate is not known, and for commands that
    /// the profile was learned from, as what they were is in it.
    pub fn probabilities(&mut self, answer: &Identification) -> Option<Vec<f64>> {
        let begin = |profile: &Profile, gateway: &str| {
            let home = profile.neutral_home(gateway);
            let known_ns = home.last_ns();
            (Forecasts { home, of_habits: 0.5, commands: 0.0 }, known_ns)
        };
        let (_, forecasts, sighting) = self.homes.see(answer, begin)?;
        let is_explained = !sighting.candidates.is_empty();
        let found = if is_explained { forecasts.weigh(answer) } else { None };
        forecasts.home.observe(sighting);
        found
    }
}

impl Forecasts {
    fn weigh(&mut self, answer: &Identification) -> Option<Vec<f64>> {
        let candidates = &answer.candidates;
        let likelihoods: Vec<f64> = candidates.iter().map(|candidate| candidate.likelihood).collect::<Option<_>>()?;
        let actions = candidates.iter().map(Actions::from);
        let lifts = self.home.lifts_at(answer.command.time_ns, actions);
        let learned = candidates.iter().zip(&likelihoods);
        // Where the likelihood is 0, so is the probability, and any prior does.
        let learned = learned.map(|(candidate, own)| if *own > 0.0 { candidate.probability / own } else { 0.0 });
        let learned = shares(learned.collect())?;
        let habits = shares(learned.iter().zip(lifts).map(|(learned, lift)| learned * lift).collect())?;
        let priors = learned.iter().zip(&habits);
        let priors = priors.map(|(learned, habits)| learned + self.of_habits * (habits - learned));
        let found = shares(priors.zip(&likelihoods).map(|(prior, likelihood)| prior * likelihood).collect())?;
        let evidence = |prior: &[f64]| prior.iter().zip(&likelihoods).map(|(own, seen)| own * seen).sum::<f64>();
        let (by_habits, by_model) = (self.of_habits * evidence(&habits), (1.0 - self.of_habits) * evidence(&learned));
        self.commands += 1.0;
        let spread = 1.0 / (self.commands + 1.0);
        self.of_habits = (1.0 - spread) * by_habits / (by_habits + by_model) + spread / 2.0;
        let sum: f64 = candidates.iter().map(|candidate| candidate.probability).sum();
        Some(found.into_iter().map(|share| share * sum).collect())
    }
}

/// Numbers as shares of their sum; `None` if that is no positive number.
fn shares(numbers: Vec<f64>) -> Option<Vec<f64>> {
    let sum: f64 = numbers.iter().sum();
    (sum > 0.0 && sum.is_finite()).then(|| numbers.into_iter().map(|number| number / sum).collect())
}

#[cfg(test)]
mod tests;
