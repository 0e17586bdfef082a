//! The homes behind the gateways of a stream of answers, and what a stream says of its flows besides answers.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{Identification, Notice, what};

use crate::profile::Profile;
use crate::sighting::Sighting;

/// The most flows whose gateway is remembered, and the most homes.
const MAX_FLOWS: usize = 1 << 16;
const MAX_HOMES: usize = 256;

/// A follower for the home behind each gateway of a stream.
#[derive(Debug)]
pub struct Homes<H> {
    profile: Profile,
    /// What the stream says of its flows.
    pub flows: SeenFlows,
    /// Each with the time up to which the profile knows its home.
    followers: BTreeMap<String, (H, i64)>,
    known: u64,
    unwatched: u64,
}

impl<H> Homes<H> {
    /// The homes of a profile; others are known from when they are seen.
    pub fn new(profile: Profile) -> Self {
        Self { profile, flows: SeenFlows::new(MAX_FLOWS), followers: BTreeMap::new(), known: 0, unwatched: 0 }
    }

    /// What an answer shows, with its gateway and who follows its home: whom `begin` makes at the first answer, with
    /// when the profile's last command began. `None` for what the profile has or what is older, and of too many homes.
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
            self.followers.insert(gateway.clone(), (home, known_ns.unwrap_or(i64::MIN)));
        }
        let (gateway, (home, known_ns)) = self.followers.range_mut(gateway..).next()?;
        // A profile has times to the microsecond.
        if sighting.time_ns.div_euclid(1_000) <= known_ns.div_euclid(1_000) {
            self.known += 1;
            return None;
        }
        Some((gateway, home, sighting))
    }

    /// All that were seen, by their gateways.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut H)> {
        self.followers.iter_mut().map(|(gateway, (home, _))| (gateway.as_str(), home))
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
