//! The reports on countermeasures beside padding: one of them against none, and all compared.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use sizeleak_audit::leakage::Learned;
use sizeleak_audit::padding::{CountermeasureEffect, Countermeasures, HomeTraffic, PaddingPolicy, ReplyForm, Sending};
use sizeleak_inference::channel::KeyFigures;
use sizeleak_report::document::Value::{self, AtMost, Change, Count, Number, Share};
use sizeleak_report::document::{ChartKind, Figure};
use sizeleak_text::percent;

use super::judged::opening;
use crate::command::document::{Document, figure, paragraph};
use crate::command::shared_options::{PaddingOption, share};

/// For the cost, and for how many share a record.
pub(crate) const COMMANDS_PER_DAY: f64 = 1000.0;

/// A figure: its name, that in a table of several countermeasures (none: it is not in there), and its value.
type Row = (&'static str, &'static str, fn(&CountermeasureEffect) -> Value);

const LEAKS: [Row; 9] = [
    ("command named", "command", |effect| Share(effect.by_size.command.named)),
    ("  with replies", "by replies", with_replies),
    ("  by guessing", "", |effect| Share(effect.by_size.command.guessing)),
    ("number of actions named", "number", |effect| Share(effect.by_size.number.named)),
    ("types of devices named", "types", |effect| effect.by_size.kinds.as_ref().map(|kinds| Share(kinds.named)).into()),
    ("times as often as by guessing", "× guessing", |effect| Number(effect.by_size.command.times_guessing, 2)),
    ("bits given away", "bits", |effect| Number(effect.by_size.command.information_bits, 2)),
    ("greatest posterior", "worst", |effect| Share(effect.by_size.command.worst_posterior)),
    ("smallest anonymity set", "set", |effect| Count(effect.by_size.command.smallest_set)),
];

const COSTS: [Row; 7] = [
    ("bytes to the gateway, a command", "bytes", |effect| Change(effect.cost.added_bytes, 1)),
    ("bytes of replies, a command", "of replies", |effect| {
        effect.cost.added_reply_bytes.map(|it| Change(it, 1)).into()
    }),
    ("MB a day", "MB a day", |effect| effect.cost.megabytes_a_day.map(|it| Change(it, 4)).into()),
    ("messages to the gateway a day", "messages", |effect| Change(effect.cost.added_messages_a_day, 0)),
    ("replies a day", "replies", |effect| effect.cost.added_replies_a_day.map(|it| Change(it, 0)).into()),
    ("seconds of delay, mean", "delay", |effect| Number(effect.cost.mean_delay_seconds, 1)),
    ("seconds of delay, at most", "", |effect| {
        effect.cost.most_delay_seconds.map_or("no limit".into(), |seconds| Number(seconds, 1))
    }),
];

fn with_replies(effect: &CountermeasureEffect) -> Value {
    let named =
        |leak: &Learned<KeyFigures>| if leak.is_exact { Share(leak.command.named) } else { AtMost(leak.command.named) };
    effect.with_replies.as_ref().map(named).into()
}

#[derive(Debug, Serialize)]
pub(super) struct CountermeasureReport<'a> {
    schema: u32,
    sentence: String,
    prior: &'a str,
    countermeasures: String,
    commands_per_day: f64,
    command_bytes: f64,
    before: CountermeasureEffect,
    after: CountermeasureEffect,
    #[serde(skip)]
    named: &'a Countermeasures,
}

impl<'a> CountermeasureReport<'a> {
    pub(super) fn new(home: &HomeTraffic, prior: &'a str, named: &'a Countermeasures) -> Result<Self> {
        let (before, after) = (home.effect(&Countermeasures::NONE)?, home.effect(named)?);
        let command = &after.by_size.command;
        let article = match (&named.policy, named.sending) {
            (PaddingPolicy::None, Sending::Every(_)) => "a ",
            (policy, _) => policy.article(),
        };
        let shares = [command.named, before.by_size.command.named, command.guessing, after.cost.added_share];
        let [share, without, guessing, added] = shares.map(percent);
        let sentence = format!(
            "With {article}{named}, an observer who sees only sizes names the exact command of a message in {share} of \
             cases (without: {without}; guessing: {guessing}); it adds {added} to the bytes of commands."
        );
        Ok(Self {
            schema: 1,
            sentence,
            prior,
            countermeasures: named.to_string(),
            commands_per_day: COMMANDS_PER_DAY,
            command_bytes: home.command_bytes(),
            before,
            after,
            named,
        })
    }

    pub(super) fn parts(&self) -> Vec<Document> {
        let Self { before, after, .. } = self;
        let leaks = LEAKS.iter().map(|(name, _, value)| [(*name).into(), value(before), value(after)]);
        let title = format!("what it costs, at {} commands a day | more", self.commands_per_day);
        let costs = COSTS.iter().map(|(name, _, value)| [(*name).into(), value(after)]);
        let mut parts = opening(&self.sentence, self.prior);
        parts.push(figure(&Figure::new("leak", "of a message | without | with", leaks)));
        parts.push(figure(&Figure::new("cost", &title, costs)));
        parts.extend(self.remarks().iter().map(|remark| paragraph(remark, 0)));
        parts
    }

    fn remarks(&self) -> Vec<String> {
        let Countermeasures { sending, dummies, replies, .. } = self.named;
        let mut remarks = Vec::new();
        match sending {
            Sending::AtOnce => {}
            Sending::Batches(commands) => remarks.push(format!(
                "Named is a given one of the {commands} commands of a record, which are independent and as probable as all \
                 commands; the record has the bytes of all of them. It waits for the last one, which at {} commands a day \
                 takes long unless the sender has several at once.",
                self.commands_per_day
            )),
            Sending::Every(interval) => remarks.push(format!(
                "Commands are taken to come as a Poisson process, {} a day: the observer knows how often so many share a \
                 record, but not how many do. When a user sent a command is known to ± {} s.",
                self.commands_per_day,
                interval / 2.0
            )),
        }
        if *dummies > 0.0 {
            let real = 1.0 - dummies;
            let [real, named] = [real, self.after.by_size.command.named / real].map(percent);
            remarks.push(format!(
                "To name a command is to say, too, that it is real, which is right for {real} of all that are sent. Whoever \
                 takes every one for real still names {named} of the real ones: dummies do not hide commands, they make it \
                 uncertain that there was one. This holds for dummies that are drawn, sent and answered like commands."
            ));
        }
        let is_bounded = *sending != Sending::AtOnce && matches!(replies, ReplyForm::AsTheyAre | ReplyForm::OneSize);
        if is_bounded && self.after.with_replies.is_some() {
            let bound =
                "With replies, the figure is a bound: that of commands in records of their own, without padding.";
            remarks.push(bound.to_owned());
        }
        if self.after.cost.added_reply_bytes.is_none() {
            remarks.push("The model does not know the sizes of replies, and so not what theirs cost.".to_owned());
        }
        remarks
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Comparison<'a> {
    schema: u32,
    prior: &'a str,
    policy: String,
    commands_per_day: f64,
    command_bytes: f64,
    countermeasures: Vec<Compared>,
}

#[derive(Debug, Serialize)]
struct Compared {
    name: String,
    /// The name in a table of countermeasures with the same policy.
    #[serde(skip)]
    short_name: String,
    /// `None` if it cannot be computed.
    effect: Option<CountermeasureEffect>,
    fault: Option<String>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(home: &HomeTraffic, prior: &'a str, policy: &PaddingPolicy) -> Self {
        let is_padded = *policy != PaddingPolicy::None;
        let mut countermeasures: Vec<Compared> =
            is_padded.then(|| Compared::new(home, &Countermeasures::NONE)).into_iter().collect();
        countermeasures.extend(compared(policy).iter().map(|named| Compared::new(home, named)));
        Self {
            schema: 1,
            prior,
            policy: policy.to_string(),
            commands_per_day: COMMANDS_PER_DAY,
            command_bytes: home.command_bytes(),
            countermeasures,
        }
    }

    pub(super) fn parts(&self) -> Vec<Document> {
        let mut parts: Vec<Document> = self.figures().iter().map(figure).collect();
        parts.push(paragraph(self.explained(), 0));
        parts.extend(self.faults().map(|fault| paragraph(fault, 0)));
        parts
    }

    pub(crate) fn figures(&self) -> [Figure; 2] {
        [
            self.figure("measures", "of a message", &LEAKS)
                .titled("How often the exact command is named, by countermeasure", "")
                .drawn(ChartKind::Bars, &[0, 1]),
            self.figure("costs", "what it costs", &COSTS).titled("What countermeasures cost", ""),
        ]
    }

    fn figure(&self, id: &'static str, title: &str, figures: &[Row]) -> Figure {
        let shown = || figures.iter().filter(|(_, name, _)| !name.is_empty());
        let names = [title].into_iter().chain(shown().map(|(_, name, _)| *name));
        let row = |compared: &Compared| {
            let value = |(_, _, value): &Row| compared.effect.as_ref().map_or(Value::Unknown, value);
            [compared.short_name.as_str().into()].into_iter().chain(shown().map(value)).collect()
        };
        Figure::of(id, names.map(str::to_owned).collect(), self.countermeasures.iter().map(row).collect())
    }

    pub(crate) fn explained(&self) -> String {
        format!(
            "Of a message to the gateway, an observer of its size names the exact command, the number of actions and the \
             types of devices in so many cases, and says rightly that it is no dummy; by replies: the command, if they are \
             seen, too. × guessing: how many times as often as by guessing. Bits, worst (greatest posterior) and set (smallest anonymity set) \
             are about the command. Costs are what is added to a command of {:.1} bytes, and to {} commands a day, which \
             come at random; delay is the mean in seconds. Prior: {}.",
            self.command_bytes, self.commands_per_day, self.prior
        )
    }

    pub(crate) fn faults(&self) -> impl Iterator<Item = String> {
        self.countermeasures.iter().filter_map(|it| Some(format!("{}: {}", it.short_name, it.fault.as_ref()?)))
    }
}

impl Compared {
    fn new(home: &HomeTraffic, named: &Countermeasures) -> Self {
        let (effect, fault) = match home.effect(named) {
            Ok(effect) => (Some(effect), None),
            Err(fault) => (None, Some(fault.to_string())),
        };
        let alone = Countermeasures { policy: PaddingPolicy::None, ..named.clone() };
        let short_name = match &named.policy {
            PaddingPolicy::None => alone.to_string(),
            _ if alone == Countermeasures::NONE => named.to_string(),
            _ => format!("  {alone}"),
        };
        Self { name: named.to_string(), short_name, effect, fault }
    }
}

const MAX_DELAY: f64 = 86_400.0;

#[derive(Debug, Args)]
#[group(id = "judged", conflicts_with = "table")]
pub(super) struct CountermeasureOptions {
    /// Judge padding: none, multiple:BYTES, powers-of-two, padme, tls13:BYTES, random:BYTES, keyed-random:BYTES,
    /// constant:BYTES, or a JSON file
    #[arg(long, value_name = "NAME|FILE")]
    policy: Option<PaddingOption>,

    /// Compare batches, delay, dummy commands and forms of replies by what they give away and cost, with `--policy` or
    /// without
    #[arg(long, conflicts_with_all = ["batch", "dummies", "delay", "replies"])]
    pub(super) countermeasures: bool,

    /// Judge batches: so many commands share a record, as soon as they have come
    #[arg(long, value_name = "COMMANDS", value_parser = clap::value_parser!(u32).range(2..=16))]
    batch: Option<u32>,

    /// Judge dummy commands: this share of all commands sent, 30% for example
    #[arg(long, value_name = "SHARE", value_parser = dummies)]
    dummies: Option<f64>,

    /// Judge delay: messages are sent so many seconds apart, and commands between two share a record
    #[arg(long, value_name = "SECONDS", value_parser = delay, conflicts_with = "batch")]
    delay: Option<f64>,

    /// Judge what replies look like
    #[arg(long, value_enum, value_name = "FORM")]
    replies: Option<ReplyForm>,
}

impl CountermeasureOptions {
    pub(super) fn policy(&self) -> Result<Option<PaddingPolicy>> {
        self.policy.as_ref().map(PaddingOption::policy).transpose()
    }

    /// What is done beside a policy; `None` if nothing is.
    pub(super) fn named(&self, policy: PaddingPolicy) -> Option<Countermeasures> {
        let sending = match (self.batch, self.delay) {
            (Some(commands), _) => Sending::Batches(commands),
            (None, Some(seconds)) => Sending::Every(seconds),
            (None, None) => Sending::AtOnce,
        };
        let is_named = sending != Sending::AtOnce || self.dummies.is_some() || self.replies.is_some();
        let (dummies, replies) = (self.dummies.unwrap_or(0.0), self.replies.unwrap_or(ReplyForm::AsTheyAre));
        is_named.then_some(Countermeasures { policy, sending, dummies, replies })
    }
}

/// All that are compared, with a policy: the policy alone first.
pub(super) fn compared(policy: &PaddingPolicy) -> Vec<Countermeasures> {
    let alone = Countermeasures { policy: policy.clone(), ..Countermeasures::NONE };
    let mut compared = vec![alone.clone()];
    let batches = [2, 3].map(Sending::Batches);
    let delays = [1.0, 10.0, 60.0].map(Sending::Every);
    compared.extend(batches.into_iter().chain(delays).map(|sending| Countermeasures { sending, ..alone.clone() }));
    compared.extend([0.1, 0.3, 0.5].map(|dummies| Countermeasures { dummies, ..alone.clone() }));
    let forms = [ReplyForm::OneSize, ReplyForm::OneReply, ReplyForm::NoReply];
    compared.extend(forms.map(|replies| Countermeasures { replies, ..alone.clone() }));
    compared.push(Countermeasures {
        sending: Sending::Every(60.0),
        dummies: 0.3,
        replies: ReplyForm::OneReply,
        ..alone
    });
    compared
}

/// A share of dummies: some, but not all.
fn dummies(text: &str) -> Result<f64, String> {
    let share = share(text).ok().filter(|share| *share <= 0.99);
    share.ok_or_else(|| "it must be above 0 and at most 0.99, or 99%".to_owned())
}

fn delay(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0 && *seconds <= MAX_DELAY);
    seconds.ok_or_else(|| format!("it must be a number of seconds above 0, at most {MAX_DELAY}"))
}
