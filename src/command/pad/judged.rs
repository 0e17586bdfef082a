//! What padding policies give away and cost, in words and as tables: one of them, and the curve of all.

use anyhow::Result;
use serde::Serialize;
use sizeleak_audit::leakage::Learned;
use sizeleak_audit::padding::{
    CountermeasureError, Countermeasures, Draw, Goal, HomeTraffic, JudgedPolicy, PaddedHome, PaddingPolicy, ReplyForm,
    TableRules, TableSearch, named_after, named_with_known_key,
};
use sizeleak_audit::tunnel::Tunnel;
use sizeleak_report::document::Value::{self, Number, Share, Sum, Words};
use sizeleak_report::document::{ChartKind, Figure};
use sizeleak_text::percent;

use crate::command::document::{Document, figure, paragraph, spaced};

const GUARD: &str = "Attacks found: by `sizeleak detect` with the home's profile, within its budget of false alarms, in \
    simulated homes; the mean over kinds of attack. It sees what an observer sees: what padding hides from the one, it \
    hides from the other. A detector inside the gateway is not affected.";

/// What a policy gives away and costs: the head of each report on one.
#[derive(Serialize)]
pub(super) struct Verdict<'a> {
    schema: u32,
    pub(super) sentence: String,
    prior: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tunnel: Option<&'a Tunnel>,
    /// What it is the best table for; `None` if nobody asked for the best.
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<Goal>,
    pub(super) policy: PaddingPolicy,
    commands_per_day: f64,
    command_bytes: f64,
    pub(super) padded: JudgedPolicy,
    unpadded: &'a Learned,
}

impl<'a> Verdict<'a> {
    pub(super) fn new(
        home: &'a PaddedHome,
        policy: PaddingPolicy,
        padded: JudgedPolicy,
        goal: Option<Goal>,
        prior: &'a str,
    ) -> Self {
        let (command, unpadded) = (&padded.by_size.command, &home.unpadded.command);
        let article = match policy.article() {
            _ if goal.is_some() => "the best ",
            "" => "padding ",
            article => article,
        };
        let observer = observer(home.tunnel(), "who sees only sizes");
        let shares = [command.named, unpadded.named, unpadded.guessing, padded.added_share];
        let [named, without, guessing, added] = shares.map(percent);
        let sentence = format!(
            "With {article}{policy}, an observer {observer} names the exact command in {named} of cases (without padding: \
             {without}; guessing: {guessing}); it adds {added} to the bytes of commands."
        );
        Self {
            schema: 1,
            sentence,
            prior,
            tunnel: home.tunnel(),
            goal,
            policy,
            commands_per_day: home.commands_per_day,
            command_bytes: home.command_bytes,
            padded,
            unpadded: &home.unpadded,
        }
    }

    pub(super) fn parts(&self) -> Vec<Document> {
        let Self { padded, command_bytes: bytes, .. } = self;
        let learned =
            LEARNED.iter().map(|(name, value)| [(*name).into(), value(self.unpadded), value(&padded.by_size)]);
        let day = format!("MB more a day, of {} commands", self.commands_per_day);
        let costs = [
            ["bytes of a command".into(), Number(*bytes, 1), Number(bytes + padded.added_bytes, 1)],
            ["  added".into(), Share(0.0), Share(padded.added_share)],
            [(&*day).into(), "0".into(), megabytes(padded.megabytes_a_day)],
        ];
        let seen = if self.tunnel.is_some() { "by packets" } else { "by size" };
        let mut parts = opening(&self.sentence, self.prior);
        parts.push(figure(&Figure::new(
            "padding",
            &format!("{seen} | without padding | padded"),
            learned.chain(costs),
        )));
        parts
    }
}

type Row = (&'static str, fn(&Learned) -> Value);

const LEARNED: [Row; 9] = [
    ("command named", |learned| Share(learned.command.named)),
    ("  of guessing", |learned| Words(format!("× {:.2}", learned.command.times_guessing))),
    ("number of actions named", |learned| Share(learned.number.named)),
    ("types of devices named", |learned| learned.kinds.as_ref().map(|kinds| Share(kinds.named)).into()),
    ("bits given away", |learned| Number(learned.command.information_bits, 2)),
    ("sizes seen", |learned| Number(learned.command.outputs as f64, 0)),
    ("alone in its size", |learned| Sum(learned.command.alone)),
    ("smallest anonymity set", |learned| Number(learned.command.smallest_set, 0)),
    ("greatest posterior", |learned| Share(learned.command.worst_posterior)),
];

pub(super) fn observer(tunnel: Option<&Tunnel>, without: &str) -> String {
    tunnel.map_or_else(|| without.to_owned(), |tunnel| format!("of a tunnel's packets ({})", tunnel.title()))
}

pub(super) fn opening(sentence: &str, prior: &str) -> Vec<Document> {
    vec![paragraph(sentence, 0), paragraph(format!("prior: {prior}"), 7)]
}

/// Megabytes, with more digits below one.
fn megabytes(megabytes: f64) -> Value {
    Number(megabytes, if megabytes < 1.0 { 4 } else { 1 })
}

/// How often an observer of size and replies names the exact command, whose size alone is padded; or replies, too.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct NamedWithReplies {
    as_they_are: f64,
    one_size: f64,
}

impl NamedWithReplies {
    /// Under a policy; `None` if replies say nothing, or too much to compute.
    pub(crate) fn new(traffic: &HomeTraffic, policy: &PaddingPolicy) -> Result<Option<Self>, CountermeasureError> {
        let named = |replies| {
            let effect =
                traffic.effect(&Countermeasures { policy: policy.clone(), replies, ..Countermeasures::NONE })?;
            Ok(effect.with_replies.map(|leak| leak.command.named))
        };
        let (as_they_are, one_size) = (named(ReplyForm::AsTheyAre)?, named(ReplyForm::OneSize)?);
        Ok(as_they_are.zip(one_size).map(|(as_they_are, one_size)| Self { as_they_are, one_size }))
    }

    pub(crate) fn sentence(self) -> String {
        let [as_they_are, one_size] = [self.as_they_are, self.one_size].map(percent);
        format!(
            "Replies are not padded by it: an observer who sees them, too, names the exact command in {as_they_are} of \
             cases while replies are as they are, and in {one_size} if all have one size (`--replies one-size`)."
        )
    }
}

/// Commands of a kind after which random padding is judged.
const OBSERVATIONS: [u32; 3] = [2, 10, 50];

#[derive(Serialize)]
pub(super) struct PolicyReport<'a> {
    #[serde(flatten)]
    verdict: Verdict<'a>,
    repeated: Vec<Repeated>,
    /// How often commands are named under keyed padding by an observer who has learned where the key sends each.
    named_with_known_key: Option<f64>,
    /// What the home's own detector finds; absent unless it is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    attacks_found: Option<AttacksFound>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct AttacksFound {
    unpadded: f64,
    padded: f64,
}

#[derive(Debug, Serialize)]
struct Repeated {
    observations: u32,
    named: f64,
}

impl<'a> PolicyReport<'a> {
    /// `found` are the shares of attacks that the home's own detector finds without padding and with it.
    pub(super) fn new(home: &'a PaddedHome, policy: &PaddingPolicy, prior: &'a str, found: Option<(f64, f64)>) -> Self {
        let repeated = match policy {
            PaddingPolicy::Random { most, draw: Draw::Independent } if home.tunnel().is_none() => {
                let named = |observations| named_after(&home.rows, *most, observations);
                OBSERVATIONS.map(|observations| Repeated { observations, named: named(observations) }).into()
            }
            policy if policy.draw() == Some(Draw::Independent) => {
                vec![Repeated { observations: 2, named: home.padded_channel(policy).named_after_two() }]
            }
            _ => Vec::new(),
        };
        Self {
            verdict: Verdict::new(home, policy.clone(), JudgedPolicy::new(home, policy), None, prior),
            named_with_known_key: (policy.draw() == Some(Draw::Keyed) && home.tunnel().is_none())
                .then(|| named_with_known_key(&home.groups, policy)),
            repeated,
            attacks_found: found.map(|(unpadded, padded)| AttacksFound { unpadded, padded }),
        }
    }

    pub(super) fn parts(&self) -> Vec<Document> {
        let mut parts = self.verdict.parts();
        if let Some(AttacksFound { unpadded, padded }) = self.attacks_found {
            let [padded, unpadded] = [padded, unpadded].map(percent);
            let found = format!("With this padding, {padded} of attacks are found (without: {unpadded}). {GUARD}");
            parts.push(paragraph(found, 0));
        }
        if !self.repeated.is_empty() {
            let after = |repeated: &Repeated| format!("{} after {}", percent(repeated.named), repeated.observations);
            let after: Vec<String> = self.repeated.iter().map(after).collect();
            let warning = format!(
                "This padding is drawn anew for every message, so it averages out: of the same command sent again and \
                 again, the observer names {}. Padding drawn by a key and the command (keyed-random) does not.",
                after.join(", ")
            );
            parts.push(paragraph(warning, 0));
        }
        if let Some(named) = self.named_with_known_key {
            let warning = format!(
                "The same command always has the same padding, so repetitions tell nothing more. But an observer who has \
                 learned from labelled commands of this very gateway where its key sends them names {}.",
                percent(named)
            );
            parts.push(paragraph(warning, 0));
        }
        parts
    }
}

const MULTIPLES: [u64; 8] = [4, 8, 16, 32, 64, 128, 256, 512];

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

    pub(super) fn document(&self) -> Document {
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
                megabytes(point.megabytes_a_day),
                Share(point.named),
                Number(point.information_bits, 2),
                Share(point.number_named),
                point.attacks_found.map(Share).into(),
            ]
        };
        let figure = Figure::new("policies", columns, self.points.iter().map(row))
            .titled(
                "What padding leaves, and what it costs",
                "How often the exact command is named by size under a policy, and the bytes that it adds.",
            )
            .drawn(ChartKind::Points, &[0, 2, 4])
            .read_by("Each mark is a policy; policies of one form have the same mark.");
        let mut figure = figure.beside_guessing(self.guessing);
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
    let greatest = home.rows.last().map_or(1, |row| row.bytes.max(1));
    let mut policies = vec![PaddingPolicy::None, PaddingPolicy::PowersOfTwo, PaddingPolicy::Padme];
    policies.extend(MULTIPLES.map(|bytes| PaddingPolicy::Multiple { bytes }));
    policies.extend(TLS13.map(|bytes| PaddingPolicy::Tls13Multiple { bytes }));
    policies.extend(RANDOM.map(|most| PaddingPolicy::Random { most, draw: Draw::Keyed }));
    policies.push(PaddingPolicy::Constant { bytes: greatest });
    let mut named: Vec<(String, PaddingPolicy)> =
        policies.into_iter().map(|policy| (policy.to_string(), policy)).collect();
    let frontier = TableSearch { rows: home.table_rows(), rules: TableRules::default() }.frontier();
    let within = |budget: &f64| frontier.best(Goal::Budget(budget * home.command_bytes));
    let mut tables: Vec<PaddingPolicy> =
        BUDGETS.iter().filter_map(|budget| Some(home.inside(&within(budget)?.buckets))).collect();
    // In a home of few sizes, a greater budget buys no better table.
    tables.dedup();
    named.extend(tables.into_iter().map(|policy| (format!("best {policy}"), policy)));
    named
}
