//! How often a home sends a command at a time: P(A | time, history) as a rate in commands an hour.
//!
//! A rate is estimated from coarse to fine. Each step has the one before as its prior, a gamma distribution of shape
//! a = ½, so with c times seen in w hours of exposure the rate is
//!
//! ```text
//! λ = (c + a) / (w + a / λ₀)
//! ```
//!
//! from the rate of any command around this time, times the share of commands that were new, times the shares of the
//! actions; to that of the command all day, within 90 minutes of the time of day, within 30 on the same kind of day,
//! within 8 and within 1; and, beside it, that of the command after the same one and two commands, with a pause that is
//! as long within a factor of two. The chain needs no bandwidth and no order to be chosen: where a finer step has seen
//! nothing, it says what the coarser one says. Gamma priors: Gelman et al., Bayesian Data Analysis, section 2.6; the chain
//! is like the interpolation of Witten and Bell (1991).

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::calendar::{BINS, Calendar, LocalTime, apart};
use crate::sighting::{Actions, CommandClass};

/// The shape of the gamma priors: as if half a command had been seen.
const SHAPE: f64 = 0.5;

/// Commands that follow within this time may belong together, in seconds.
pub(crate) const LONGEST_PAUSE: f64 = 3_600.0;

/// A command that begins after a pause of this many seconds begins a session.
const SESSION_PAUSE: f64 = 600.0;

/// The steps by time of day: half their width in seconds, and whether only the same kind of day counts.
const STEPS: [(f64, bool); 4] = [(5_400.0, false), (1_800.0, true), (480.0, true), (60.0, true)];

/// What the model of a home uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Components {
    pub time: bool,
    /// The commands before.
    pub order: bool,
}

impl Components {
    pub const ALL: Self = Self { time: true, order: true };
}

/// The number of a command that the home has sent before.
pub(crate) type CommandId = u32;

/// What came before a command.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Context {
    /// The command before and the one before that, if the pauses are not too long.
    pub(crate) previous: [Option<CommandId>; 2],
    /// The seconds since the command before; infinite without one.
    pub(crate) pause: f64,
}

/// One time that a home has perhaps sent a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occurrence {
    pub(crate) at: LocalTime,
    /// How probable it is that it was this command.
    pub(crate) weight: f64,
    context: Context,
}

#[derive(Debug, Clone)]
pub(crate) struct LearnedCommand {
    pub(crate) at: LocalTime,
    pub(crate) context: Context,
    /// What it was, each with its probability, the most probable first.
    pub(crate) weights: Vec<(CommandId, f64)>,
    /// The classes of these ([`Sighting::classes`](crate::Sighting)), with all that belong to each, in ascending order.
    pub(crate) classes: Vec<Vec<CommandId>>,
}

/// What is known of one command.
#[derive(Debug, Clone)]
struct Known {
    actions: Actions,
    number: usize,
    /// The places of its actions in [`Rates::occurred`].
    places: Vec<usize>,
    occurrences: Vec<Occurrence>,
    /// How often it was the most probable one.
    times: f64,
    /// The classes of which it was, each with how often.
    classes: Vec<(Vec<CommandId>, u32)>,
    /// What is in all of them, this one included, in ascending order: what each command was as likely to be that was perhaps
    /// this one.
    alike: Vec<CommandId>,
}

/// Sums of weights are whole multiples of 2⁻⁴⁰, so that what is forgotten leaves nothing, and no order matters.
const UNITS: f64 = (1_u64 << 40) as f64;

#[derive(Debug, Clone, Copy, Default)]
struct Occurred {
    /// In how many commands, in [`UNITS`].
    in_commands: i64,
    in_kinds: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct Rates {
    components: Components,
    ids: HashMap<Actions, CommandId, RandomState>,
    known: Vec<Known>,
    /// How often each pair of commands was the most probable one, one right after the other.
    pairs: HashMap<(CommandId, CommandId), f64, RandomState>,
    /// How many commands there were in each interval of ten minutes, and how many that began a session, by kind of day.
    commands: [[f64; BINS]; 2],
    sessions: [[f64; BINS]; 2],
    /// Days by kind: weekdays and weekends.
    days: [f64; 2],
    pub(crate) total: f64,
    /// How many were the first of their kind.
    first_times: f64,
    places: HashMap<Arc<str>, usize, RandomState>,
    /// By the action's place.
    occurred: Vec<Occurred>,
    /// In how many kinds of command each action occurred, of all actions together.
    in_kinds: f64,
    /// Commands by their number of actions, from 0, in [`UNITS`].
    numbers: Vec<i64>,
    /// The rates of this day's intervals, by kind of day: of any command, and of sessions.
    hourly: [[[f64; BINS]; 2]; 2],
}

impl Known {
    /// Learns that a command was perhaps this one, and as likely any other of a class.
    fn join(&mut self, class: &[CommandId]) {
        if let Some((_, times)) = self.classes.iter_mut().find(|(own, _)| own == class) {
            *times += 1;
        } else {
            self.classes.push((class.to_vec(), 1));
            self.compare();
        }
    }

    fn leave(&mut self, class: &[CommandId]) {
        let Some(at) = self.classes.iter().position(|(own, _)| own == class) else { return };
        self.classes[at].1 -= 1;
        if self.classes[at].1 == 0 {
            self.classes.swap_remove(at);
            self.compare();
        }
    }

    fn compare(&mut self) {
        let mut classes = self.classes.iter().map(|(class, _)| class);
        self.alike = classes.next().cloned().unwrap_or_default();
        for class in classes {
            self.alike.retain(|other| class.binary_search(other).is_ok());
        }
    }
}

impl Rates {
    pub(crate) fn new(components: Components) -> Self {
        Self {
            components,
            ids: HashMap::default(),
            known: Vec::new(),
            pairs: HashMap::default(),
            commands: [[0.0; BINS]; 2],
            sessions: [[0.0; BINS]; 2],
            days: [0.0; 2],
            total: 0.0,
            first_times: 0.0,
            places: HashMap::default(),
            occurred: Vec::new(),
            in_kinds: 0.0,
            numbers: Vec::new(),
            hourly: [[[1.0; BINS]; 2]; 2],
        }
    }

    /// The number of a command, which it gets when it is asked for first.
    pub(crate) fn id(&mut self, actions: &Actions) -> CommandId {
        if let Some(id) = self.ids.get(actions) {
            return *id;
        }
        let id = self.known.len() as CommandId;
        self.ids.insert(actions.clone(), id);
        let mut place = |name: &Arc<str>| {
            *self.places.entry(Arc::clone(name)).or_insert_with(|| {
                self.occurred.push(Occurred::default());
                self.occurred.len() - 1
            })
        };
        let places = actions.iter().map(|(name, _)| place(name)).collect();
        let (actions, number) = (actions.clone(), actions.total() as usize);
        let (occurrences, classes, alike) = (Vec::new(), Vec::new(), Vec::new());
        self.known.push(Known { actions, number, places, occurrences, times: 0.0, classes, alike });
        id
    }

    /// The numbers of some commands, in ascending order.
    pub(crate) fn ids<'a>(&mut self, commands: impl Iterator<Item = &'a Actions>) -> Vec<CommandId> {
        let mut ids: Vec<CommandId> = commands.map(|actions| self.id(actions)).collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn actions(&self, id: CommandId) -> Option<&Actions> {
        self.known.get(id as usize).map(|known| &known.actions)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&Actions, &[Occurrence])> {
        self.known.iter().map(|known| (&known.actions, &known.occurrences[..]))
    }

    fn occurrences_of(&self, actions: &Actions) -> &[Occurrence] {
        self.ids.get(actions).map_or(&[], |id| &self.known[*id as usize].occurrences)
    }

    /// The commands that nothing ever told from this one, this one included: what may have been the one may always have
    /// been the other, as likely. They are a class, which has the number of the first; in ascending order.
    pub(crate) fn members(&self, id: CommandId) -> impl Iterator<Item = CommandId> {
        let known = self.known.get(id as usize).map_or(&[][..], |known| &known.alike);
        let is_mutual = move |other: &CommandId| self.known[*other as usize].alike.binary_search(&id).is_ok();
        let learned = known.iter().copied().filter(is_mutual);
        learned.chain(known.is_empty().then_some(id))
    }

    fn class_of(&self, id: CommandId) -> CommandId {
        self.members(id).next().unwrap_or(id)
    }

    pub(crate) fn class(&self, id: CommandId) -> CommandClass {
        self.members(id).filter_map(|member| self.actions(member).cloned()).collect()
    }

    /// The most probable class of a command, and its probability.
    pub(crate) fn most_probable(&self, command: &LearnedCommand) -> Option<(CommandId, f64)> {
        let classes = self.by_class(&command.weights);
        // The first of equal ones.
        classes.into_iter().reduce(|best, other| if other.1 > best.1 { other } else { best })
    }

    pub(crate) fn by_class(&self, weights: &[(CommandId, f64)]) -> Vec<(CommandId, f64)> {
        let mut classes: Vec<(CommandId, f64)> = Vec::new();
        for (id, weight) in weights {
            let class = self.class_of(*id);
            match classes.iter_mut().find(|(known, _)| *known == class) {
                Some((_, sum)) => *sum += weight,
                None => classes.push((class, *weight)),
            }
        }
        classes
    }

    /// The classes of which a command was perhaps sent on a day or later.
    pub(crate) fn classes_since(&self, day: i64) -> BTreeSet<CommandId> {
        let is_since =
            |(_, known): &(CommandId, &Known)| known.occurrences.last().is_some_and(|last| last.at.day >= day);
        let commands = (0..).zip(&self.known).filter(is_since);
        commands.map(|(id, _)| self.class_of(id)).collect()
    }

    /// The times from a day on that one of a class was perhaps sent, by day and time.
    pub(crate) fn occurrences_of_class(&self, id: CommandId, day: i64) -> Cow<'_, [Occurrence]> {
        let since = |member: CommandId| {
            let own = &self.known[member as usize].occurrences[..];
            &own[own.partition_point(|occurrence| occurrence.at.day < day)..]
        };
        let mut each: Vec<&[Occurrence]> = self.members(id).map(since).filter(|own| !own.is_empty()).collect();
        if each.len() <= 1 {
            return Cow::Borrowed(each.pop().unwrap_or_default());
        }
        let mut all: Vec<Occurrence> = each.concat();
        all.sort_by(|a, b| a.at.day.cmp(&b.at.day).then(a.at.second.total_cmp(&b.at.second)));
        all.dedup_by(|next, kept| {
            let is_same = next.at == kept.at;
            kept.weight += if is_same { next.weight } else { 0.0 };
            is_same
        });
        Cow::Owned(all)
    }

    pub(crate) fn days(&self) -> f64 {
        self.days.iter().sum()
    }

    pub(crate) fn learn_days<'a>(&mut self, days: impl IntoIterator<Item = (i64, &'a [LearnedCommand])>) {
        self.count_days(days, 1);
    }

    /// Forgets the commands of the first whole days that were learned.
    pub(crate) fn forget_days<'a>(&mut self, days: impl IntoIterator<Item = (i64, &'a [LearnedCommand])>) {
        self.count_days(days, -1);
    }

    /// Counts whole days so many times more: once, or once less.
    fn count_days<'a>(&mut self, days: impl IntoIterator<Item = (i64, &'a [LearnedCommand])>, times: i32) {
        for (day, commands) in days {
            let kind = usize::from(Calendar::is_weekend(day));
            for command in commands {
                for (class, id) in command.classes.iter().flat_map(|class| class.iter().map(move |id| (class, id))) {
                    let known = &mut self.known[*id as usize];
                    if times > 0 { known.join(class) } else { known.leave(class) }
                }
                for (id, weight) in &command.weights {
                    let own = &mut self.known[*id as usize].occurrences;
                    if times > 0 {
                        own.push(Occurrence { at: command.at, weight: *weight, context: command.context });
                    } else {
                        own.drain(..own.partition_point(|occurrence| occurrence.at.day <= day));
                    }
                }
                self.count(command, kind, times);
            }
            self.days[kind] += f64::from(times);
        }
        self.smooth();
    }

    /// Whether most numbers are of commands that no day has any more.
    pub(crate) fn is_mostly_forgotten(&self) -> bool {
        let is_forgotten = |known: &&Known| known.classes.is_empty() && known.occurrences.is_empty();
        2 * self.known.iter().filter(is_forgotten).count() > self.known.len()
    }

    /// Counts a command so many times more, in all that is not of one command alone.
    fn count(&mut self, command: &LearnedCommand, kind: usize, times: i32) {
        let Some((top, _)) = command.weights.first().copied() else { return };
        let (whole, number) = (i64::from(times), f64::from(times));
        for (id, weight) in &command.weights {
            let (known, weight) = (&self.known[*id as usize], (weight * UNITS).round() as i64);
            if known.number < 1 << 12 {
                self.numbers.resize(self.numbers.len().max(known.number + 1), 0);
                self.numbers[known.number] += whole * weight;
            }
            for place in &known.places {
                self.occurred[*place].in_commands += whole * weight;
            }
        }
        let known = &mut self.known[top as usize];
        let before = known.times;
        known.times += number;
        if before == 0.0 || known.times == 0.0 {
            self.first_times += number;
            for place in &known.places {
                self.occurred[*place].in_kinds += number;
                self.in_kinds += number;
            }
        }
        self.total += number;
        if let [Some(previous), _] = command.context.previous {
            let pair = self.pairs.entry((previous, top)).or_default();
            *pair += number;
            if *pair == 0.0 {
                self.pairs.remove(&(previous, top));
            }
        }
        self.commands[kind][command.at.bin()] += number;
        if command.context.pause > SESSION_PAUSE {
            self.sessions[kind][command.at.bin()] += number;
        }
    }

    fn smooth(&mut self) {
        self.hourly = [self.smoothed(&self.commands), self.smoothed(&self.sessions)];
    }

    /// Commands an hour in each interval by kind of day, smoothed over 70 minutes.
    fn smoothed(&self, counts: &[[f64; BINS]; 2]) -> [[f64; BINS]; 2] {
        let days = self.days();
        let all: f64 = counts.iter().flatten().sum();
        let all_day = posterior(all, 24.0 * days, 1.0);
        let width = 7.0 * 24.0 / BINS as f64;
        let around = |counts: &[f64; BINS], bin: usize| (0..7).map(|off| counts[(bin + BINS + off - 3) % BINS]).sum();
        let rate = |kind: usize, bin: usize| {
            let own: f64 = around(&counts[kind], bin);
            let both = own + around(&counts[1 - kind], bin);
            posterior(own, self.days[kind] * width, posterior(both, days * width, all_day))
        };
        [0, 1].map(|kind| std::array::from_fn(|bin| rate(kind, bin)))
    }

    /// Commands of any kind an hour, or sessions that begin.
    pub(crate) fn any(&self, day: i64, bin: usize) -> f64 {
        self.hourly[0][usize::from(Calendar::is_weekend(day))][bin % BINS]
    }

    pub(crate) fn sessions(&self, day: i64, bin: usize) -> f64 {
        self.hourly[1][usize::from(Calendar::is_weekend(day))][bin % BINS]
    }

    /// The share of commands that had the rarest action of these, as if each had been seen half a time more.
    pub(crate) fn rarest_action(&self, actions: &Actions) -> f64 {
        let share =
            |(name, _): (&Arc<str>, u32)| (self.occurred(name).in_commands as f64 / UNITS + SHAPE) / (self.total + 1.0);
        actions.iter().map(share).fold(1.0, f64::min)
    }

    fn occurred(&self, action: &Arc<str>) -> Occurred {
        self.places.get(action).map_or(Occurred::default(), |place| self.occurred[*place])
    }

    /// The rate of a command in commands an hour.
    pub(crate) fn rate(&self, actions: &Actions, at: LocalTime, context: &Context) -> f64 {
        let kind = usize::from(Calendar::is_weekend(at.day));
        let unknown = self.any(at.day, at.bin()) * self.unseen_share(actions);
        let is_ordered = self.components.order && context.previous[0].is_some();
        let (mut all, mut within, mut after) = (0.0, [0.0; STEPS.len()], [0.0; 2]);
        for occurrence in self.occurrences_of(actions) {
            let Occurrence { at: then, weight, context: before } = occurrence;
            all += weight;
            if self.components.time {
                let apart = apart(then.second, at.second);
                let is_same = || usize::from(Calendar::is_weekend(then.day)) == kind;
                for (count, (half, same_kind)) in within.iter_mut().zip(STEPS) {
                    if apart >= half || (same_kind && !is_same()) {
                        break;
                    }
                    *count += weight;
                }
            }
            if is_ordered && before.previous[0] == context.previous[0] {
                let (longer, shorter) = (before.pause.max(context.pause), before.pause.min(context.pause));
                if longer < 2.0 * shorter.max(1.0) {
                    after[0] += weight;
                    after[1] += if before.previous[1] == context.previous[1] { *weight } else { 0.0 };
                }
            }
        }
        let mut rate = posterior(all, 24.0 * self.days(), unknown);
        let mut hourly = rate;
        if self.components.time {
            for ((count, (half, same_kind)), step) in within.into_iter().zip(STEPS).zip(0..) {
                let days = if same_kind { self.days[kind] } else { self.days() };
                rate = posterior(count, days * 2.0 * half / 3_600.0, rate);
                // The finest steps are for automations; what follows another command is compared with those before.
                hourly = if step < 2 { rate } else { hourly };
            }
        }
        match context.previous {
            [Some(previous), before] if is_ordered => {
                let hours = 1.5 * context.pause.max(1.0) / 3_600.0;
                let once = self.known.get(previous as usize).map_or(0.0, |known| known.times);
                let twice = before.and_then(|before| self.pairs.get(&(before, previous))).copied().unwrap_or(0.0);
                let first = posterior(after[0], once * hours, hourly);
                f64::midpoint(rate, posterior(after[1], twice * hours, first))
            }
            _ => rate,
        }
    }

    /// How many times as frequent a command is at a time as it is all day.
    pub(crate) fn lift(&self, actions: &Actions, at: LocalTime, context: &Context) -> f64 {
        let hours = 24.0 * self.days();
        let all: f64 = self.occurrences_of(actions).iter().map(|occurrence| occurrence.weight).sum();
        let of_any = posterior(self.total, hours, 1.0);
        self.rate(actions, at, context) / posterior(all, hours, of_any * self.unseen_share(actions))
    }

    /// The share of commands that are new, times that of these actions among them: an action is as probable in a new command
    /// as it is among kinds of command, however often each of them comes (Kneser and Ney, 1995).
    fn unseen_share(&self, actions: &Actions) -> f64 {
        let number = actions.total() as usize;
        let numbers = self.numbers.iter().sum::<i64>() as f64 / UNITS + SHAPE;
        let own = self.numbers.get(number).copied().unwrap_or(0) as f64 / UNITS;
        let of_number = (own + SHAPE * 0.5_f64.powf(number as f64)) / numbers;
        // A command of today may have actions that were not learned yet.
        let kinds = (self.occurred.iter().filter(|occurred| occurred.in_commands > 0).count() + 1) as f64;
        let ln_factorial = |count: u32| (1..=count.min(1 << 12)).map(|factor| f64::from(factor).ln()).sum::<f64>();
        let of_action = |(name, count): (&Arc<str>, u32)| {
            let own = self.occurred(name).in_kinds;
            f64::from(count) * ((own + SHAPE) / (self.in_kinds + SHAPE * kinds)).ln() - ln_factorial(count)
        };
        let of_actions = ln_factorial(number as u32) + actions.iter().map(of_action).sum::<f64>();
        let new = (self.first_times + SHAPE) / (self.total + 1.0);
        (of_number * of_actions.exp() * new).max(f64::MIN_POSITIVE)
    }
}

/// The mean of a rate after `count` events in `hours`, by a gamma prior of this mean.
fn posterior(count: f64, hours: f64, prior: f64) -> f64 {
    (count + SHAPE) / (hours + SHAPE / prior)
}

#[cfg(test)]
mod tests;
