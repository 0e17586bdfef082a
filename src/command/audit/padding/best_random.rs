//! The report on the best random padding, beside the best table for the same goal.

use std::collections::BTreeSet;

use anyhow::anyhow;
use serde::Serialize;
use sizeleak_leakage::Learned;
use sizeleak_padding::{Draw, FloorOf, Goal, PaddingFloor, PaddingPolicy, PolicyFile, named_with_known_key};
use sizeleak_text::escaped_lines;

use super::best::{BestFor, Request, found};
use super::floor_figures::FloorFigures;
use super::home::PaddedHome;
use super::judged::Judged;
use crate::command::failure::Failure;
use crate::command::output_option::json_report;
use crate::command::report_format::ReportFormat;
use crate::command::text_table::{numbers, paragraph, percent};

/// Text is broken at this many columns.
const COLUMNS: usize = 80;

/// How far the policy may be from the best, in probability.
const TOLERANCE: f64 = 0.0005;

/// How often budgets are halved for a target.
const ROUNDS: usize = 12;

/// Sizes of which random tables are searched for, at most.
const MOST_SIZES: usize = 600;

/// Bytes to multiples of which sizes are rounded up before the search.
const UNITS: [u64; 6] = [1, 4, 8, 16, 32, 64];

/// The best random padding of sizes.
#[derive(Serialize)]
pub(super) struct BestRandom<'a> {
    schema: u32,
    sentence: String,
    prior: &'a str,
    goal: BestFor,
    policy: PaddingPolicy,
    commands_per_day: f64,
    command_bytes: f64,
    padded: Judged,
    unpadded: &'a Learned,
    /// The best table for the same goal.
    table: Judged,
    /// How often the command is named after two of the same, if padding is drawn anew for each.
    named_after_two: Named,
    /// After any number of the same.
    named_in_the_end: Named,
    /// With sizes that ε does not vary.
    named_without_epsilon: Named,
    /// The same by an observer who has learned to which size the key sends each command.
    named_with_known_key: Named,
    #[serde(flatten)]
    floor: FloorFigures,
    #[serde(skip)]
    home: &'a PaddedHome,
}

/// How often the command is named.
#[derive(Debug, Clone, Copy, Serialize)]
struct Named {
    /// With the best table.
    table: f64,
    /// With the best random table.
    random: f64,
}

impl<'a> BestRandom<'a> {
    /// For the goal of the request; `values` is the home without ε.
    pub(super) fn new(
        home: &'a PaddedHome,
        values: &PaddedHome,
        request: &Request<'_>,
        draw: Draw,
        prior: &'a str,
    ) -> Result<Self, Failure> {
        let (policy, padded) = found_random(home, request.goal, draw)?;
        let (table, of_table) = found(home, &request.search(home), request.goal)?;
        let [of_anew, of_table_anew] = [&policy, &table.policy].map(|policy| home.padded_channel(policy));
        let [random, in_buckets] = [&policy, &table.policy].map(|policy| values.padded(policy).command.named);
        let of_known_key = named_with_known_key(&values.groups, &policy);
        let drawn = match draw {
            Draw::Keyed => "drawn by a key and the command",
            Draw::Independent => "drawn anew for every command",
        };
        Ok(Self {
            schema: 1,
            sentence: padded.sentence(home, &format!("the best {policy}, {drawn}")),
            prior,
            goal: request.goal,
            policy,
            commands_per_day: home.commands_per_day,
            command_bytes: home.command_bytes,
            floor: FloorFigures::new(home, request.floor, &padded, request.log),
            unpadded: &home.unpadded,
            padded,
            table: of_table,
            named_after_two: Named { table: of_table_anew.named_after_two(), random: of_anew.named_after_two() },
            named_in_the_end: Named { table: of_table_anew.named_in_the_end(), random: of_anew.named_in_the_end() },
            named_without_epsilon: Named { table: in_buckets, random },
            named_with_known_key: Named { table: in_buckets, random: of_known_key },
            home,
        })
    }

    /// The policy as a policy file.
    pub(super) fn json(&self) -> Result<String, Failure> {
        Ok(PolicyFile::new(self.policy.clone(), Some(self.sentence.clone())).to_json()?)
    }

    /// As text or JSON.
    pub(super) fn written(&self, format: ReportFormat) -> Result<Vec<u8>, Failure> {
        if format == ReportFormat::Json {
            return Ok(json_report(self)?.into_bytes());
        }
        let mut parts = vec![
            paragraph(&self.sentence, 0, COLUMNS),
            paragraph(&format!("prior: {}", self.prior), 7, COLUMNS),
            self.padded.table(self.home),
            self.comparison(),
            paragraph(&self.advice(), 0, COLUMNS),
        ];
        parts.extend(self.floor.sentence().map(|sentence| paragraph(&sentence, 0, COLUMNS)));
        Ok(escaped_lines(&parts.join("\n")).as_bytes().to_vec())
    }

    /// The random table beside the best table.
    fn comparison(&self) -> String {
        let Self { padded, table, .. } = self;
        let row = |name: &str, named: Named| [name.to_owned(), percent(named.table), percent(named.random)];
        let once = Named { table: table.by_size.command.named, random: padded.by_size.command.named };
        let rows = [
            row("after one command", once),
            row("after two of the same, drawn anew", self.named_after_two),
            row("after any number, drawn anew", self.named_in_the_end),
            row("if ε were 0", self.named_without_epsilon),
            row("  by whoever knows the key's draws", self.named_with_known_key),
            row("bytes added", Named { table: table.added_share, random: padded.added_share }),
        ];
        numbers(["command named", "best table", "best random table"], rows)
    }

    /// When randomness pays.
    fn advice(&self) -> String {
        let (known, end) = (self.named_with_known_key, self.named_in_the_end);
        let better = match self.goal {
            BestFor::AddedBytes(_) if self.padded.by_size.command.named > self.table.by_size.command.named => {
                "The best table gives away less within the budget: use that. "
            }
            BestFor::Named(_) if self.padded.added_bytes > self.table.added_bytes => {
                "The best table reaches the target with fewer bytes: use that. "
            }
            _ => "",
        };
        let against = if known.random > known.table { "more often than with the table" } else { "no more often" };
        format!(
            "{better}Draw by a key and the command: drawn anew, padding averages out, and the same command sent again and \
             again is named in {} of cases in the end. Drawn by a key, repetitions tell no more than ε does. But whoever \
             can label commands of this very gateway learns where its key sends them, and names them {against} ({} and \
             {}): randomness pays where nobody can.",
            percent(end.random),
            percent(known.random),
            percent(known.table)
        )
    }
}

/// The best random table for a goal. The search takes each size that a command is seen with for a command of its own, which
/// underestimates how often the command is named. So sizes are rounded up, too, which leaves a command fewer of them; the
/// table that is exactly the best is taken.
fn found_random(home: &PaddedHome, goal: BestFor, draw: Draw) -> Result<(PaddingPolicy, Judged), Failure> {
    let found = UNITS.into_iter().filter_map(|unit| CoarseSearch::new(home, unit, draw)?.found(goal));
    let value = |judged: &Judged| match goal {
        BestFor::AddedBytes(_) => judged.by_size.command.named,
        BestFor::Named(_) => judged.added_bytes,
    };
    let best = found.min_by(|(_, one), (_, other)| value(one).total_cmp(&value(other)));
    best.ok_or_else(|| match goal {
        BestFor::AddedBytes(bytes) => Failure::usage(anyhow!("no random table adds {bytes:.1} bytes: raise the budget")),
        BestFor::Named(target) => Failure::usage(anyhow!(
            "no random table is found that reaches the target of {}: raise it, or leave `--random` out; guessing alone is \
             right in {} of cases",
            percent(target),
            percent(home.unpadded.command.guessing)
        )),
    })
}

/// The search for random tables of sizes that are rounded up.
struct CoarseSearch<'a> {
    home: &'a PaddedHome,
    floor: PaddingFloor,
    /// The expected bytes by which sizes are rounded up.
    rounding: f64,
    draw: Draw,
}

impl<'a> CoarseSearch<'a> {
    /// `None` if there are so many sizes that it takes minutes.
    fn new(home: &'a PaddedHome, unit: u64, draw: Draw) -> Option<Self> {
        let (groups, rounding) = home.coarse(unit);
        let sizes: BTreeSet<u64> = groups.iter().map(|group| group.bytes).collect();
        let search = || Self { home, floor: PaddingFloor::new(&groups, FloorOf::SizePolicies), rounding, draw };
        (sizes.len() <= MOST_SIZES).then(search)
    }

    /// The best table for a goal.
    fn found(&mut self, goal: BestFor) -> Option<(PaddingPolicy, Judged)> {
        let target = match goal {
            BestFor::AddedBytes(bytes) => return (bytes >= self.rounding).then(|| self.within(bytes - self.rounding)),
            BestFor::Named(target) => target,
        };
        let (mut too_few, mut enough) = (0.0, self.floor.most_added_bytes());
        let mut found = Some(self.within(enough)).filter(|(_, judged)| is_met(target, judged));
        for _ in 0..ROUNDS {
            found.as_ref()?;
            let bytes = f64::midpoint(too_few, enough);
            let within = self.within(bytes);
            if is_met(target, &within.1) {
                (found, enough) = (Some(within), bytes);
            } else {
                too_few = bytes;
            }
        }
        found
    }

    /// The best table that adds so many expected bytes to sizes that are rounded up.
    fn within(&mut self, bytes: f64) -> (PaddingPolicy, Judged) {
        self.floor.refine_at(Goal::Budget(bytes), TOLERANCE);
        let policy = self.floor.policy(bytes, self.draw);
        let judged = Judged::new(self.home, &policy);
        (policy, judged)
    }
}

fn is_met(target: f64, judged: &Judged) -> bool {
    judged.by_size.command.named <= target * (1.0 + 1e-9)
}
