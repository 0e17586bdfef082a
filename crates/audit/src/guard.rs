//! What a home's own detector finds, in simulated homes that are attacked: padding hides the home, and blinds its guard.
//!
//! A home lives as a scenario says. A detector learns it for some weeks and goes on; then it meets each attack once, as it
//! would have been at that time, apart from the others. So all attacks meet the same home, and none teaches the detector.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sizeleak_habits::{Detector, Deviation, Home, Sighting};
use sizeleak_simulator::scenario::{Attack, AttackKind};
use sizeleak_simulator::{Scenario, SimulateError, SimulatedCapture, TestForm, simulate_as};

const DAY: i64 = 86_400_000_000_000;

/// Attacks begin after three in the morning.
const MORNING: i64 = DAY / 8;

/// An alarm counts for a day after the attack; where an automation stopped, until its second miss.
fn counted_days(kind: AttackKind) -> i64 {
    if kind == AttackKind::StoppedAutomation { 2 } else { 1 }
}

#[derive(Debug, Clone)]
pub struct MetAttack {
    pub kind: AttackKind,
    pub start_ns: i64,
    /// The first alarm that counts for it; `None` if it was missed.
    pub alarm: Option<Deviation>,
}

/// What a detector said of a home.
#[derive(Debug)]
pub struct GuardedHome {
    /// From when on alarms could be said, in nanoseconds since the epoch.
    pub from_ns: i64,
    /// When the home was watched no longer.
    pub until_ns: i64,
    /// The alarms since then, without any attack: all are false.
    pub false_alarms: Vec<Deviation>,
    pub attacks: Vec<MetAttack>,
    /// The home as the detector knows it at the end.
    pub home: Home,
}

#[derive(Debug)]
pub struct Guard<'a> {
    /// How the home lives; attacks of its own are left out.
    pub scenario: &'a Scenario,
    /// For how many days a detector learns before the first attack.
    pub days: u32,
    pub attacks: &'a [AttackKind],
}

impl Guard<'_> {
    /// Watches the home of a seed. `see` turns commands, a stream of frames, into what an observer knows of them.
    ///
    /// # Errors
    /// [`SimulateError`] if the scenario cannot be played, and those of `see`.
    pub fn watch<E: From<SimulateError>>(
        &self,
        seed: u64,
        mut detector: Detector,
        mut see: impl FnMut(&SimulatedCapture) -> Result<Vec<Sighting>, E>,
    ) -> Result<GuardedHome, E> {
        let mut scenario = self.scenario.clone();
        scenario.habits.attacks.clear();
        let lived = see(&simulate_as(&scenario, seed, TestForm::Frames)?.test)?;
        let first_ns = lived.first().map_or(0, |sighting| sighting.time_ns);
        let morning = |day: u32| first_ns.div_euclid(DAY) * DAY + i64::from(day) * DAY + MORNING;
        let (mut alarms, mut attacks, mut ready_ns) = (Vec::new(), Vec::new(), None);
        let mut to_come = self.days_of_attacks(seed, scenario.habits.days).into_iter().peekable();
        for sighting in lived {
            while let Some((day, kind)) = to_come.next_if(|(day, _)| sighting.time_ns >= morning(*day)) {
                scenario.habits.attacks = vec![Attack { kind, day, at: None }];
                attacks.extend(meet(&scenario, seed, sighting.time_ns, detector.clone(), &mut see)?);
            }
            let time_ns = sighting.time_ns;
            alarms.extend(detector.observe(sighting));
            ready_ns = ready_ns.or_else(|| (detector.days_needed() == 0).then_some(time_ns));
        }
        let until_ns = detector.home().last_ns().unwrap_or(first_ns);
        let from_ns = morning(self.days).max(ready_ns.unwrap_or(until_ns)).min(until_ns);
        alarms.retain(|alarm| alarm.time_ns >= from_ns);
        Ok(GuardedHome { from_ns, until_ns, false_alarms: alarms, attacks, home: detector.home().clone() })
    }

    /// The attacks, each on a day of its own where there are enough, in order of time.
    fn days_of_attacks(&self, seed: u64, days: u32) -> Vec<(u32, AttackKind)> {
        let span = u64::from(days.saturating_sub(self.days + 3).max(1));
        let day = |number: u64| self.days + ((seed.wrapping_mul(7) + number * 11) % span) as u32;
        let mut attacks: Vec<_> = (0..).zip(self.attacks).map(|(number, kind)| (day(number), *kind)).collect();
        attacks.sort_unstable();
        attacks
    }
}

/// What `watch` returns for each of so many homes, from 0 on and in their order, by some threads.
pub fn each_home<T: Send, E: Send>(
    homes: u64,
    threads: usize,
    watch: impl Fn(u64) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicU64::new(0);
    let work = || {
        let next = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|home| *home < homes);
        std::iter::from_fn(next).map(|home| Ok((home, watch(home)?))).collect::<Result<Vec<_>, E>>()
    };
    let watched = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect::<Result<Vec<_>, E>>()
    })?;
    let mut watched: Vec<(u64, T)> = watched.into_iter().flatten().collect();
    watched.sort_by_key(|(home, _)| *home);
    Ok(watched.into_iter().map(|(_, watched)| watched).collect())
}

/// Lets a detector that has come to `from_ns` meet the attack of a scenario; `None` where it does not take place.
fn meet<E: From<SimulateError>>(
    scenario: &Scenario,
    seed: u64,
    from_ns: i64,
    mut detector: Detector,
    see: &mut impl FnMut(&SimulatedCapture) -> Result<Vec<Sighting>, E>,
) -> Result<Option<MetAttack>, E> {
    let attacked = simulate_as(scenario, seed, TestForm::Frames)?;
    let Some(attack) = attacked.attacks.first() else { return Ok(None) };
    // Captures have microseconds.
    let start_ns = attack.start_ns.div_euclid(1_000) * 1_000;
    let until_ns = start_ns + counted_days(attack.kind) * DAY;
    let sightings = see(&attacked.test)?.into_iter();
    let sightings =
        sightings.filter(|sighting| (from_ns.min(start_ns)..start_ns + 3 * DAY).contains(&sighting.time_ns));
    let alarms = sightings.flat_map(|sighting| detector.observe(sighting)).filter(|alarm| alarm.time_ns >= start_ns);
    let alarm = alarms.min_by_key(|alarm| alarm.time_ns).filter(|alarm| alarm.time_ns < until_ns);
    Ok(Some(MetAttack { kind: attack.kind, start_ns, alarm }))
}
