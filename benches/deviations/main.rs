//! Measures what `sizeleak detect` finds and how often it errs, on simulated homes.
#![allow(missing_docs, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use clap::Parser;
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use sizeleak_audit::guard::{Guard, MetAttack, each_home};
use sizeleak_decomposer::Decomposer;
use sizeleak_epsilon_corrector::{CorrectorInput, EpsilonCorrector};
use sizeleak_frame::{Command, Frame, FrameReader, Identification};
use sizeleak_habits::{Budget, Components, Detector, Home, Sighting};
use sizeleak_model::Model;
use sizeleak_platform::runtime::{Stage, processors};
use sizeleak_pruner::{Pruner, PruningMode};
use sizeleak_simulator::scenario::{AttackKind, HabitSettings, Holiday};
use sizeleak_simulator::{Scenario, SimulatedCapture, Truth};

const DAY: i64 = 86_400_000_000_000;

#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value_t = 20)]
    homes: u64,
    #[arg(long, default_value_t = 1_000)]
    first_seed: u64,
    #[arg(long, default_value = "1/week")]
    budget: Budget,
    #[arg(long, default_value_t = 6)]
    weeks: u32,
    #[arg(long, default_value_t = 12)]
    all_weeks: u32,
    #[arg(long, default_value = "examples/home/model.toml")]
    model: PathBuf,
    /// What is known of each command: everything, the first candidate, or the truth
    #[arg(long, default_value = "all")]
    known: String,
    /// Only alarms in homes that are not attacked
    #[arg(long)]
    clean: bool,
    #[arg(long)]
    no_order: bool,
    #[arg(long)]
    no_time: bool,
}

/// A home that does not stay the same, or does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Course {
    Stationary,
    Drifting,
    Holiday,
    Changed,
}

const COURSES: [Course; 4] = [Course::Stationary, Course::Drifting, Course::Holiday, Course::Changed];

fn scenario(course: Course, days: u32, seed: u64) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.learn.repeats = 0;
    scenario.learn.random = 1;
    scenario.habits = HabitSettings { days, time_zone: "Europe/Berlin".into(), ..HabitSettings::default() };
    // Within the days, with room for the holiday.
    let place = (30 + (seed % 30) as u32) % days.saturating_sub(13).max(1);
    match course {
        Course::Stationary => {}
        Course::Drifting => scenario.habits.drift = SignedDuration::from_mins(10),
        Course::Holiday => scenario.habits.holidays = vec![Holiday { day: place, days: 12 }],
        Course::Changed => scenario.habits.change = Some(place),
    }
    scenario
}

/// The commands that follow each other through the last three stages.
struct Answers {
    corrector: EpsilonCorrector,
    decomposer: Decomposer,
    pruner: Pruner,
}

impl Answers {
    fn new(model: &Model) -> anyhow::Result<Self> {
        Ok(Self {
            corrector: EpsilonCorrector::new(model.clone(), model.smoothing),
            decomposer: Decomposer::new(model.clone(), 10_000)?,
            pruner: Pruner::new(model, PruningMode::Learned, 0.999)?,
        })
    }

    fn answer(mut self, commands: Vec<Command>) -> anyhow::Result<Vec<Identification>> {
        let mut answers = Vec::new();
        let mut pass = |frames: Vec<Frame>, pruner: &mut Pruner, ends: bool| -> anyhow::Result<()> {
            let mut out: Vec<Frame> = Vec::new();
            for frame in frames {
                if let Ok(input) = <Pruner as Stage>::Input::try_from(frame) {
                    pruner.process(input, &mut out)?;
                }
            }
            if ends {
                pruner.finish(&mut out)?;
            }
            answers.extend(out.into_iter().filter_map(|frame| match frame {
                Frame::Identification(answer) => Some(*answer),
                _ => None,
            }));
            Ok(())
        };
        for command in commands {
            let (mut corrected, mut decomposed): (Vec<Frame>, Vec<Frame>) = (Vec::new(), Vec::new());
            self.corrector.process(CorrectorInput::Command(Box::new(command)), &mut corrected)?;
            for frame in corrected {
                if let Ok(input) = <Decomposer as Stage>::Input::try_from(frame) {
                    self.decomposer.process(input, &mut decomposed)?;
                }
            }
            pass(decomposed, &mut self.pruner, false)?;
        }
        pass(Vec::new(), &mut self.pruner, true)?;
        Ok(answers)
    }
}

fn commands(stream: &[u8]) -> anyhow::Result<Vec<Command>> {
    let mut reader = FrameReader::new(stream);
    let mut commands = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        if let Frame::Command(command) = frame {
            commands.push(*command);
        }
    }
    Ok(commands)
}

/// What an observer knows of the commands.
fn sightings(
    arguments: &Arguments,
    model: &Model,
    SimulatedCapture { bytes, truths, .. }: &SimulatedCapture,
    names: &[Arc<str>],
) -> anyhow::Result<Vec<Sighting>> {
    if arguments.known == "truth" {
        let sighting = |truth: &Truth| {
            let actions = names.iter().cloned().zip(truth.counts.iter().copied()).collect();
            Sighting { time_ns: truth.time_ns, flow: 1, candidates: vec![(actions, 1.0)] }
        };
        return Ok(truths.iter().map(sighting).collect());
    }
    let answers = Answers::new(model)?.answer(commands(bytes)?)?;
    let sighting = |mut answer: Identification| {
        if arguments.known == "first" {
            answer.candidates = answer.candidates.iter().take(1).cloned().collect();
        }
        Sighting::from(&answer)
    };
    Ok(answers.into_iter().map(sighting).collect())
}

#[derive(Debug, Default)]
struct Figures {
    /// Alarms and weeks by course.
    clean: BTreeMap<Course, (u32, f64)>,
    /// Delays of alarms in seconds, and attacks, by kind.
    attacks: BTreeMap<AttackKind, (Vec<f64>, u32)>,
    kinds: BTreeMap<String, u32>,
    log_loss: Vec<f64>,
}

fn measure(arguments: &Arguments, model: &Model, seed: u64, figures: &Mutex<Figures>) -> anyhow::Result<()> {
    let course = COURSES[(seed % 4) as usize];
    let scenario = scenario(course, arguments.all_weeks * 7, seed);
    let names: Vec<Arc<str>> = scenario.action_names().into_iter().map(Arc::from).collect();
    let components = Components { time: !arguments.no_time, order: !arguments.no_order };
    let detector = Detector::new(Home::new(TimeZone::get("Europe/Berlin")?, components), arguments.budget);
    let attacks: &[AttackKind] = if arguments.clean { &[] } else { &AttackKind::ALL };
    let guard = Guard { scenario: &scenario, days: arguments.weeks * 7, attacks };
    let see = |test: &SimulatedCapture| sightings(arguments, model, test, &names);
    let guarded = guard.watch(seed, detector, see)?;
    let mut figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
    for MetAttack { kind, start_ns, alarm } in guarded.attacks {
        let (delays, count) = figures.attacks.entry(kind).or_default();
        *count += 1;
        if let Some(alarm) = alarm {
            delays.push((alarm.time_ns - start_ns) as f64 / 1e9);
            *figures.kinds.entry(format!("{kind} {}", alarm.what)).or_default() += 1;
        }
    }
    let (count, weeks) = figures.clean.entry(course).or_default();
    *count += guarded.false_alarms.len() as u32;
    *weeks += (guarded.until_ns - guarded.from_ns) as f64 / (7 * DAY) as f64;
    for alarm in guarded.false_alarms {
        *figures.kinds.entry(format!("clean {}", alarm.what)).or_default() += 1;
    }
    figures.log_loss.extend(guarded.home.log_loss());
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let model = Model::from_toml(&std::fs::read_to_string(&arguments.model)?)?;
    let figures = Mutex::new(Figures::default());
    each_home(arguments.homes, processors(), |home| {
        measure(&arguments, &model, arguments.first_seed + home, &figures)
    })?;
    let figures = figures.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (mut alarms, mut weeks) = (0, 0.0);
    for (course, (count, own)) in &figures.clean {
        println!("{course:?}: {count} alarms in {own:.0} weeks, {:.3} a week", f64::from(*count) / own);
        alarms += count;
        weeks += own;
    }
    println!("all: {:.3} a week", f64::from(alarms) / weeks);
    let mut sum = 0.0;
    for (kind, (delays, count)) in &figures.attacks {
        let mut delays = delays.clone();
        delays.sort_by(f64::total_cmp);
        let share = delays.len() as f64 / f64::from(*count);
        sum += if *kind == AttackKind::Replay { 0.0 } else { share };
        let median = delays.get(delays.len() / 2).copied().unwrap_or(f64::NAN);
        println!("{kind:18} {share:.2} of {count}, {:.1} min", median / 60.0);
    }
    println!("mean {:.3}", sum / 8.0);
    println!("log loss {:.3}", figures.log_loss.iter().sum::<f64>() / figures.log_loss.len() as f64);
    println!("{:?}", figures.kinds);
    Ok(())
}
