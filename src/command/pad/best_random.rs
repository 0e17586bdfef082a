//! The report on the best random padding, beside the best table for the same goal.

use anyhow::anyhow;
use serde::Serialize;
use sizeleak_audit::padding::{Draw, Goal, JudgedPolicy, PaddedHome, best_random_table, named_with_known_key};

use super::best::{BestPolicy, Request};
use super::floor::FloorFigures;
use crate::command::document::{Document, numbers, paragraph, spaced};
use crate::command::failure::Failure;
use crate::command::figures::percent;
use crate::command::report_format::ReportForm;

/// The best random padding of sizes.
#[derive(Serialize)]
pub(super) struct BestRandom<'a> {
    #[serde(flatten)]
    found: BestPolicy<'a>,
    /// The best table for the same goal.
    table: JudgedPolicy,
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
        let found = best_random_table(home, request.goal, draw);
        let (policy, padded) = found.ok_or_else(|| unmet(home, request.goal))?;
        let (table, of_table) = request.table(home)?;
        let [of_anew, of_table_anew] = [&policy, &table.policy].map(|policy| home.padded_channel(policy));
        let [random, in_buckets] = [&policy, &table.policy].map(|policy| values.padded(policy).command.named);
        let of_known_key = named_with_known_key(&values.groups, &policy);
        let drawn = match draw {
            Draw::Keyed => "drawn by a key and the command",
            Draw::Independent => "drawn anew for every command",
        };
        let floor = FloorFigures::new(home, request.floor, &padded, request.log);
        let named = format!("the best {policy}, {drawn}");
        Ok(Self {
            found: BestPolicy::new(home, request.goal, (policy, padded), &named, prior),
            table: of_table,
            named_after_two: Named { table: of_table_anew.named_after_two(), random: of_anew.named_after_two() },
            named_in_the_end: Named { table: of_table_anew.named_in_the_end(), random: of_anew.named_in_the_end() },
            named_without_epsilon: Named { table: in_buckets, random },
            named_with_known_key: Named { table: in_buckets, random: of_known_key },
            floor,
        })
    }

    /// The policy as a policy file.
    pub(super) fn json(&self) -> Result<String, Failure> {
        self.found.json()
    }

    /// In this format.
    pub(super) fn written(&self, form: ReportForm) -> Result<Vec<u8>, Failure> {
        Ok(form.written(self, None, || spaced(self.parts()))?)
    }

    fn parts(&self) -> Vec<Document> {
        let mut parts = self.found.opening();
        parts.extend([self.comparison(), paragraph(self.advice(), 0)]);
        parts.extend(self.floor.sentence().map(|sentence| paragraph(sentence, 0)));
        parts
    }

    /// The random table beside the best table.
    fn comparison(&self) -> Document {
        let (padded, table) = (&self.found.padded, &self.table);
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
        let padded = &self.found.padded;
        let better = match self.found.goal {
            Goal::Budget(_) if padded.by_size.command.named > self.table.by_size.command.named => {
                "The best table gives away less within the budget: use that. "
            }
            Goal::Target(_) if padded.added_bytes > self.table.added_bytes => {
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

/// Why no random table is found.
fn unmet(home: &PaddedHome, goal: Goal) -> Failure {
    match goal {
        Goal::Budget(bytes) => Failure::usage(anyhow!("no random table adds {bytes:.1} bytes: raise the budget")),
        Goal::Target(target) => Failure::usage(anyhow!(
            "no random table is found that reaches the target of {}: raise it, or leave `--random` out; guessing alone is \
             right in {} of cases",
            percent(target),
            percent(home.unpadded.command.guessing)
        )),
    }
}
