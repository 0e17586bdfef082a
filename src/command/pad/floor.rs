//! The floor of all padding policies: how near one of them is to it. Progress is said on stderr, since it may take minutes.

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use sizeleak_audit::padding::{FloorOf, Goal, JudgedPolicy, PaddedHome, PaddingFloor};
use sizeleak_platform::telemetry::log::{LogFlags, say};

use crate::command::figures::percent;

/// How far the floor may be below the true minimum.
const TOLERANCE: f64 = 0.0005;

/// The floor of more sizes than this takes minutes.
const MAX_FLOOR_SIZES: usize = 1000;

/// How long nothing is said.
const INTERVAL: Duration = Duration::from_secs(5);

/// Whether the floor is computed.
#[derive(Debug, Args)]
#[group(id = "floor", multiple = false)]
pub(super) struct FloorOptions {
    /// Do not compute the floor of all policies, which takes the longest
    #[arg(long, hide_short_help = true)]
    without_floor: bool,

    /// Compute the floor even of more than 1000 sizes, which takes minutes
    #[arg(long, hide_short_help = true)]
    with_floor: bool,
}

impl FloorOptions {
    pub(super) fn choice(&self) -> FloorChoice {
        match (self.without_floor, self.with_floor) {
            (true, _) => FloorChoice::LeftOut,
            (false, true) => FloorChoice::Computed,
            (false, false) => FloorChoice::UnlessLong,
        }
    }
}

/// Whether the floor of all policies is computed, which takes the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloorChoice {
    /// Unless there are so many sizes that it takes minutes.
    UnlessLong,
    /// However long it takes.
    Computed,
    LeftOut,
}

/// The floor of all padding policies, at what one of them costs and gives away.
#[derive(Debug, Serialize)]
pub(super) struct FloorFigures {
    /// No padding policy that adds as few bytes lets the command be named less often; `None` if it is not computed.
    floor_named: Option<f64>,
    /// No padding policy with which the command is named as rarely adds a smaller share.
    floor_added_share: Option<f64>,
    /// Why it is not computed.
    floor_left_out: Option<String>,
    #[serde(skip)]
    is_asked_for: bool,
}

impl FloorFigures {
    pub(super) fn new(home: &PaddedHome, choice: FloorChoice, padded: &JudgedPolicy, log: &LogFlags) -> Self {
        let is_asked_for = choice != FloorChoice::LeftOut;
        let mut floor = match floor_of(home, choice) {
            Ok(floor) => floor,
            Err(reason) => {
                return Self { floor_named: None, floor_added_share: None, floor_left_out: Some(reason), is_asked_for };
            }
        };
        let named = padded.by_size.command.named;
        let mut progress = FloorProgress::begin(home.rows().len(), log);
        for goal in [Goal::Budget(padded.added_bytes), Goal::Target(named)] {
            progress.run(|| floor.refine_once_at(goal, TOLERANCE));
        }
        // Seen sizes of one command count as several commands, of which guessing is right more rarely.
        let floor_named = floor.vulnerability(padded.added_bytes).max(home.unpadded.command.guessing);
        let floor_added_share = floor.added_bytes(named).map(|bytes| bytes / home.command_bytes);
        Self { floor_named: Some(floor_named), floor_added_share, floor_left_out: None, is_asked_for }
    }

    /// As a sentence; `None` if nobody asked for it.
    pub(super) fn sentence(&self) -> Option<String> {
        let Some(named) = self.floor_named else {
            return self.floor_left_out.clone().filter(|_| self.is_asked_for);
        };
        let share = self.floor_added_share.map_or_else(String::new, |share| {
            format!(", and none that lets it be named as rarely adds less than {}", percent(share))
        });
        Some(format!(
            "No padding policy, random ones included, that adds as few bytes lets the command be named in less than {} of \
             cases{share}.",
            percent(named)
        ))
    }
}

/// A coarse floor of all policies.
///
/// # Errors
/// Why it is left out, as a sentence.
pub(super) fn floor_of(home: &PaddedHome, choice: FloorChoice) -> Result<PaddingFloor, String> {
    let sizes = home.rows().len();
    if home.tunnel().is_some() {
        return Err("The floor is that of padded records: through a tunnel it is not known.".to_owned());
    }
    match choice {
        FloorChoice::LeftOut => return Err("The floor is not asked for.".to_owned()),
        FloorChoice::UnlessLong if sizes > MAX_FLOOR_SIZES => {
            return Err(format!(
                "The floor of all padding policies is left out: with {sizes} sizes, more than {MAX_FLOOR_SIZES}, it \
                 takes minutes. `--with-floor` computes it."
            ));
        }
        FloorChoice::UnlessLong | FloorChoice::Computed => {}
    }
    Ok(PaddingFloor::new(&home.groups, FloorOf::AnyPolicy))
}

/// Says now and then how far the floor is.
#[derive(Debug)]
pub(super) struct FloorProgress {
    is_quiet: bool,
    sizes: usize,
    said: Instant,
}

impl FloorProgress {
    /// Begins with the floor of so many sizes.
    pub(super) fn begin(sizes: usize, log: &LogFlags) -> Self {
        Self { is_quiet: log.is_quiet(), sizes, said: Instant::now() }
    }

    /// Takes steps until one says that there is none left.
    pub(super) fn run(&mut self, mut step: impl FnMut() -> bool) {
        let mut steps = 0;
        while step() {
            steps += 1;
            if self.said.elapsed() >= INTERVAL && !self.is_quiet {
                say("note", &format!("computing the floor of {} sizes: step {steps} of at most 64", self.sizes));
                self.said = Instant::now();
            }
        }
    }
}
