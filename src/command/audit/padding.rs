//! `sizeleak audit` with padding: what a policy gives away and costs, the best one, and the curve of all; and the same for
//! other countermeasures.

mod best;
mod best_for;
mod best_policy;
mod best_random;
mod countermeasure_options;
mod countermeasures;
mod curve;
mod floor_figures;
mod floor_progress;
mod judged;
mod policy;
mod quantity;
mod unpadded_sizes;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{ArgGroup, Args, ValueEnum};
use sizeleak_audit::padding::{Draw, HomeTraffic, Objective, PaddedHome, PaddingPolicy, TableRules};
use sizeleak_inference::channel::EpsilonKnowledge;
use sizeleak_inference::space::{CommandSpace, Premises};
use sizeleak_model::Model;
use sizeleak_platform::storage::RunFiles;
use sizeleak_platform::telemetry::log::LogFlags;

use crate::command::failure::Failure;
use crate::command::help::PADDING;
use crate::command::report_format::ReportFormat;
use best::{Best, Request};
use best_for::BestFor;
use best_random::BestRandom;
use countermeasure_options::{CountermeasureOptions, OF_SEARCHES};
use countermeasures::{Comparison, CountermeasureReport, JudgedHome};
use floor_figures::FloorChoice;
use quantity::{Budget, Target};
use unpadded_sizes::check_sizes;

/// The padding that is audited, and other countermeasures.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("padding").multiple(true))]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct PaddingOptions {
    /// Audit padding: none, multiple:BYTES, powers-of-two, padme, tls13:BYTES, random:BYTES, keyed-random:BYTES,
    /// constant:BYTES, or a JSON file
    #[arg(long, value_name = "NAME|FILE", help_heading = PADDING, group = "padding", conflicts_with_all = OF_SEARCHES)]
    policy: Option<String>,

    /// Find the best padding table for `--budget` or `--target`
    #[arg(long, help_heading = PADDING, group = "padding", requires = "goal")]
    best: bool,

    /// Compare policies, the best tables and the floor of all by what they give away and cost
    #[arg(long, help_heading = PADDING, group = "padding", conflicts_with = "best")]
    curve: bool,

    /// The most that padding may add to commands: 20% of their bytes, or 12B a command
    #[arg(long, value_name = "SHARE|BYTES", help_heading = PADDING, requires = "best", group = "goal")]
    budget: Option<Budget>,

    /// How often the command may be named at most: in 8% of cases, or 5%-of-guessing above guessing
    #[arg(long, value_name = "SHARE", help_heading = PADDING, requires = "best", group = "goal")]
    target: Option<Target>,

    /// Find the best random table, drawn by a key and the command unless it says `independent`, and compare it with the
    /// best table
    #[arg(long, value_name = "DRAW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "keyed",
        help_heading = PADDING, requires = "best", hide_short_help = true,
        conflicts_with_all = ["objective", "most_posterior", "least_set"])]
    random: Option<DrawName>,

    /// What the best table makes small
    #[arg(long, value_enum, default_value_t, help_heading = PADDING, requires = "best", conflicts_with = "target",
        hide_short_help = true)]
    objective: ObjectiveName,

    /// In each bucket of the table, the most probable command has at most this posterior probability
    #[arg(long, value_name = "SHARE", help_heading = PADDING, requires = "best", hide_short_help = true,
        value_parser = quantity::share)]
    most_posterior: Option<f64>,

    /// Each bucket of the table holds at least so many commands
    #[arg(long, value_name = "NUMBER", help_heading = PADDING, requires = "best", hide_short_help = true,
        value_parser = clap::value_parser!(u32).range(1..))]
    least_set: Option<u32>,

    #[command(flatten)]
    countermeasures: CountermeasureOptions,

    /// Commands a day, for the cost, and for how many share a record
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, help_heading = PADDING, hide_short_help = true,
        value_parser = clap::value_parser!(u32).range(1..))]
    commands_per_day: u32,

    /// Take every command to have its size without ε
    #[arg(long, requires = "padding", help_heading = PADDING, hide_short_help = true)]
    without_epsilon: bool,

    /// Do not compute the floor of all policies, which takes the longest
    #[arg(long, requires = "padding", help_heading = PADDING, hide_short_help = true)]
    without_floor: bool,

    /// Compute the floor even of more than 1000 sizes, which takes minutes
    #[arg(long, requires = "padding", conflicts_with_all = ["policy", "without_floor"], help_heading = PADDING,
        hide_short_help = true)]
    with_floor: bool,

    /// Write the best table as JSON, for `--policy`
    #[arg(long, value_name = "FILE", requires = "best", help_heading = PADDING)]
    table_json: Option<PathBuf>,

    /// Write the best table as C
    #[arg(long, value_name = "FILE", requires = "best", help_heading = PADDING, hide_short_help = true)]
    table_c: Option<PathBuf>,

    /// Write the best table as Rust
    #[arg(long, value_name = "FILE", requires = "best", help_heading = PADDING, hide_short_help = true)]
    table_rust: Option<PathBuf>,

    /// Print the curve as CSV
    #[arg(long, requires = "curve", conflicts_with_all = ["format", "json"], help_heading = PADDING,
        hide_short_help = true)]
    csv: bool,
}

/// What the best table makes small.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ObjectiveName {
    /// How often the best guess is right
    #[default]
    Named,
    /// The bits that sizes give away
    Information,
    /// The number of sizes that are seen: the worst case over all priors
    Sizes,
}

/// How the best random table is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DrawName {
    /// By a secret key of the gateway and the command: the same command always has the same padding
    Keyed,
    /// Anew for every message, which averages out
    Independent,
}

impl From<DrawName> for Draw {
    fn from(draw: DrawName) -> Self {
        match draw {
            DrawName::Keyed => Self::Keyed,
            DrawName::Independent => Self::Independent,
        }
    }
}

impl From<ObjectiveName> for Objective {
    fn from(objective: ObjectiveName) -> Self {
        match objective {
            ObjectiveName::Named => Self::Vulnerability,
            ObjectiveName::Information => Self::Information,
            ObjectiveName::Sizes => Self::Buckets,
        }
    }
}

impl PaddingOptions {
    /// Whether padding is audited, or another countermeasure.
    pub(super) fn is_asked_for(&self) -> bool {
        let is_countered =
            self.countermeasures.are_compared() || self.countermeasures.named(PaddingPolicy::None).is_some();
        self.policy.is_some() || self.best || self.curve || is_countered
    }

    /// Adds the files that are read and written.
    pub(super) fn add_to(&self, files: &mut RunFiles) {
        let tables = [
            ("`--table-json`", &self.table_json),
            ("`--table-c`", &self.table_c),
            ("`--table-rust`", &self.table_rust),
        ];
        if let Some(path) = self.policy.as_ref().map(Path::new).filter(|path| path.exists()) {
            files.reads("`--policy`", path);
        }
        for (role, path) in tables {
            if let Some(path) = path {
                files.writes(role, path);
            }
        }
    }

    /// The report on padding; tables are written to their files.
    pub(super) fn report(
        &self,
        model: &Model,
        premises: &Premises,
        prior: &str,
        format: ReportFormat,
        log: &LogFlags,
    ) -> Result<Vec<u8>, Failure> {
        let space = CommandSpace::new(model, premises)?;
        let knowledge = self.knowledge();
        let prior = if self.without_epsilon { format!("{prior}; ε is left out") } else { prior.to_owned() };
        let commands_per_day = self.commands_per_day();
        let policy = self.policy_for(model)?;
        let given = policy.clone().unwrap_or(PaddingPolicy::None);
        let named = self.countermeasures.named(given.clone());
        if named.is_some() || self.countermeasures.are_compared() {
            check_sizes(model)?;
            let traffic = HomeTraffic::new(&space, model, knowledge, commands_per_day)?;
            let home = JudgedHome { traffic: &traffic, commands_per_day, prior: &prior };
            return match named {
                Some(named) => CountermeasureReport::new(&home, &named)?.written(format),
                None => Comparison::new(&home, &given).written(format),
            };
        }
        check_sizes(model)?;
        let home = PaddedHome::new(&space, model, knowledge, commands_per_day)?;
        if let Some(policy) = &policy {
            return policy::PolicyReport::new(&home, policy, &prior).written(format);
        }
        if self.curve {
            let curve = curve::Curve::new(&home, self.floor(), &prior, log);
            return if self.csv { curve.csv() } else { curve.written(format) };
        }
        let goal = match (self.budget, self.target) {
            (Some(budget), _) => BestFor::AddedBytes(budget.bytes(home.command_bytes)),
            (None, Some(target)) => BestFor::Named(target.named(home.unpadded.command.guessing)),
            (None, None) => return Err(Failure::usage(anyhow!("`--best` needs `--budget` or `--target`"))),
        };
        let request = Request { goal, objective: self.objective.into(), rules: self.rules(), floor: self.floor(), log };
        if let Some(draw) = self.random {
            if self.table_c.is_some() || self.table_rust.is_some() {
                return Err(Failure::usage(anyhow!(
                    "`--table-c` and `--table-rust` write tables without chance: a random one is drawn by a keyed hash, which \
                     the sender needs a library for; write it with `--table-json` (docs/padding.md says how to draw)"
                )));
            }
            let commands_per_day = f64::from(self.commands_per_day);
            let values = PaddedHome::new(&space, model, EpsilonKnowledge::Value, commands_per_day)?;
            let best = BestRandom::new(&home, &values, &request, draw.into(), &prior)?;
            if let Some(path) = &self.table_json {
                crate::command::output_option::write(path, best.json()?.as_bytes())?;
            }
            return best.written(format);
        }
        let best = Best::new(&home, &request, &prior)?;
        self.write_table(&best)?;
        best.written(format)
    }

    /// The policy that is named, if any; the model must have sizes without padding.
    pub(super) fn policy_for(&self, model: &Model) -> Result<Option<PaddingPolicy>, Failure> {
        let Some(name) = &self.policy else { return Ok(None) };
        let policy = policy::named(name)?;
        check_sizes(model)?;
        Ok(Some(policy))
    }

    /// What the observer knows of ε.
    pub(super) fn knowledge(&self) -> EpsilonKnowledge {
        if self.without_epsilon { EpsilonKnowledge::Value } else { EpsilonKnowledge::Distribution }
    }

    /// Commands a day.
    pub(super) fn commands_per_day(&self) -> f64 {
        f64::from(self.commands_per_day)
    }

    fn floor(&self) -> FloorChoice {
        match (self.without_floor, self.with_floor) {
            (true, _) => FloorChoice::LeftOut,
            (false, true) => FloorChoice::Computed,
            (false, false) => FloorChoice::UnlessLong,
        }
    }

    fn rules(&self) -> TableRules {
        TableRules {
            most_posterior: self.most_posterior.unwrap_or(1.0),
            fewest_commands: f64::from(self.least_set.unwrap_or(1)),
        }
    }

    fn write_table(&self, best: &Best<'_>) -> Result<(), Failure> {
        let files = [
            (&self.table_json, best.json()?),
            (&self.table_c, best.source(sizeleak_audit::padding::SourceLanguage::C)),
            (&self.table_rust, best.source(sizeleak_audit::padding::SourceLanguage::Rust)),
        ];
        for (path, text) in files {
            if let Some(path) = path {
                crate::command::output_option::write(path, text.as_bytes())?;
            }
        }
        Ok(())
    }
}

impl From<sizeleak_audit::padding::PolicyError> for Failure {
    fn from(error: sizeleak_audit::padding::PolicyError) -> Self {
        Self::usage(anyhow!(error))
    }
}
