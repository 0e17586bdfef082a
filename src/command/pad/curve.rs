//! What padding policies give away against what they cost.

use anyhow::Result;
use serde::Serialize;
use sizeleak_audit::padding::{
    Draw, Goal, JudgedPolicy, Objective, PaddedHome, PaddingPolicy, TableRules, TableSearch,
};
use sizeleak_audit::tunnel::Tunnel;
use sizeleak_report::document::Value::{Number, Share};
use sizeleak_report::document::{ChartKind, Figure};
use sizeleak_text::percent;

use super::judged::{GUARD, observer};
use crate::command::document::{Document, figure, paragraph, spaced};
use crate::command::report_format::ReportForm;

const MULTIPLES: [u64; 8] = [4, 8, 16, 32, 64, 128, 256, 512];

/// Units of TLS 1.3 record padding.
const TLS13: [u64; 2] = [64, 256];

/// The most bytes of random padding.
const RANDOM: [u64; 3] = [8, 32, 128];

/// Budgets of best tables, as shares of the bytes of commands.
const BUDGETS: [f64; 9] = [0.005, 0.01, 0.02, 0.035, 0.05, 0.1, 0.2, 0.4, 0.8];

/// What padding policies give away against what they cost, by ascending cost.
#[derive(Serialize)]
pub(crate) struct Curve<'a> {
    schema: u32,
    prior: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tunnel: Option<&'a Tunnel>,
    guessing: f64,
    command_bytes: f64,
    commands_per_day: f64,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    policy: String,
    added_bytes: f64,
    added_share: f64,
    megabytes_a_day: f64,
    named: f64,
    times_guessing: f64,
    information_bits: f64,
    number_named: f64,
    /// The share of attacks that the home's own detector finds; `None` if it is not asked for.
    attacks_found: Option<f64>,
}

impl<'a> Curve<'a> {
    /// `found` says what share of attacks the home's own detector finds under a policy, if that is asked for.
    pub(crate) fn new(
        home: &'a PaddedHome,
        prior: &'a str,
        found: impl Fn(&PaddingPolicy) -> Result<Option<f64>>,
    ) -> Result<Self> {
        let point = |(name, policy): (String, PaddingPolicy)| {
            Ok::<_, anyhow::Error>(Point::new(home, name, &policy, found(&policy)?))
        };
        let mut points = policies(home).into_iter().map(point).collect::<Result<Vec<Point>>>()?;
        points.sort_by(|a, b| a.added_bytes.total_cmp(&b.added_bytes).then(b.named.total_cmp(&a.named)));
        Ok(Self {
            schema: 1,
            prior,
            tunnel: home.tunnel(),
            guessing: home.unpadded.command.guessing,
            command_bytes: home.command_bytes,
            commands_per_day: home.commands_per_day,
            points,
        })
    }

    pub(super) fn written(&self, form: ReportForm) -> Result<Vec<u8>> {
        form.written(self, Some("points"), || self.document())
    }

    fn document(&self) -> Document {
        let has_detection = self.points.iter().any(|point| point.attacks_found.is_some());
        let explained = format!(
            "A command has {:.1} bytes; MB a day are of {} commands. Named: in so many cases an observer {} \
             names the exact command (guessing: {}). Random padding is judged after one command: unless it is keyed, it averages out. Prior: {}.",
            self.command_bytes,
            self.commands_per_day,
            observer(self.tunnel, "who sees one size"),
            percent(self.guessing),
            self.prior
        );
        let guard = has_detection.then(|| paragraph(GUARD, 0));
        spaced([figure(&self.figure()), paragraph(explained, 0)].into_iter().chain(guard))
    }

    pub(crate) fn figure(&self) -> Figure {
        let columns = "policy | bytes | more | MB a day | named | bits | number named | attacks found";
        let row = |point: &Point| {
            [
                point.policy.as_str().into(),
                Number(point.added_bytes, 1),
                Share(point.added_share),
                Number(point.megabytes_a_day, if point.megabytes_a_day < 1.0 { 4 } else { 1 }),
                Share(point.named),
                Number(point.information_bits, 2),
                Share(point.number_named),
                point.attacks_found.map(Share).into(),
            ]
        };
        let mut figure = Figure::new("policies", columns, self.points.iter().map(row))
            .titled(
                "What padding leaves, and what it costs",
                "Each dot is a policy: how often the exact command is named by size, against the bytes it adds. The best \
                 tables are in the second colour.",
            )
            .drawn(ChartKind::Points, &[0, 2, 4]);
        if let Some(chart) = &mut figure.chart {
            chart.guessing = Some(self.guessing);
        }
        if self.points.iter().all(|point| point.attacks_found.is_none()) {
            figure.columns.pop();
            figure.rows.iter_mut().for_each(|row| drop(row.pop()));
        }
        figure
    }
}

impl Point {
    fn new(home: &PaddedHome, policy_name: String, policy: &PaddingPolicy, attacks_found: Option<f64>) -> Self {
        let judged = JudgedPolicy::new(home, policy);
        let command = &judged.by_size.command;
        Self {
            policy: policy_name,
            attacks_found,
            added_bytes: judged.added_bytes,
            added_share: judged.added_share,
            megabytes_a_day: judged.megabytes_a_day,
            named: command.named,
            times_guessing: command.times_guessing,
            information_bits: command.information_bits,
            number_named: judged.by_size.number.named,
        }
    }
}

fn policies(home: &PaddedHome) -> Vec<(String, PaddingPolicy)> {
    let greatest = home.rows().last().map_or(1, |row| row.bytes.max(1));
    let mut policies = vec![PaddingPolicy::None, PaddingPolicy::PowersOfTwo, PaddingPolicy::Padme];
    policies.extend(MULTIPLES.map(|bytes| PaddingPolicy::Multiple { bytes }));
    policies.extend(TLS13.map(|bytes| PaddingPolicy::Tls13Multiple { bytes }));
    policies.extend(RANDOM.map(|most| PaddingPolicy::Random { most, draw: Draw::Keyed }));
    policies.push(PaddingPolicy::Constant { bytes: greatest });
    let mut named: Vec<(String, PaddingPolicy)> =
        policies.into_iter().map(|policy| (policy.to_string(), policy)).collect();
    let search =
        TableSearch { rows: home.table_rows(), objective: Objective::Vulnerability, rules: TableRules::default() };
    let frontier = search.frontier();
    let tables = BUDGETS.iter().filter_map(|budget| {
        let policy = home.inside(&frontier.best(Goal::Budget(budget * home.command_bytes))?.buckets);
        Some((format!("best {policy}"), policy))
    });
    named.extend(tables);
    named
}
