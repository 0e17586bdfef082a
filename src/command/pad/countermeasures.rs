//! The reports on countermeasures beside padding: one of them against none, and all compared.

use serde::Serialize;
use sizeleak_audit::padding::{
    CountermeasureCost, CountermeasureEffect, CountermeasureError, Countermeasures, HomeTraffic, MessageLeak,
    PaddingPolicy, ReplyForm, Sending,
};
use sizeleak_inference::channel::KeyFigures;

use super::countermeasure_options::compared;
use super::judged::{megabytes, opening};
use crate::command::document::{Document, numbers, paragraph, spaced};
use crate::command::failure::Failure;
use crate::command::figures::{NONE, percent};
use crate::command::report_format::ReportForm;

/// What countermeasures are judged for.
#[derive(Debug)]
pub(super) struct JudgedHome<'a> {
    pub(super) traffic: &'a HomeTraffic,
    pub(super) commands_per_day: f64,
    /// How probable commands are taken to be.
    pub(super) prior: &'a str,
}

/// What countermeasures give away and cost, beside none.
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
    pub(super) fn new(home: &JudgedHome<'a>, named: &'a Countermeasures) -> Result<Self, Failure> {
        let (before, after) = (home.traffic.effect(&Countermeasures::NONE)?, home.traffic.effect(named)?);
        let command = &after.by_size.command;
        let sentence = format!(
            "With {named}, an observer who sees only sizes names the exact command of a message in {} of cases (without: {}; \
             guessing: {}); it adds {} to the bytes of commands.",
            percent(command.named),
            percent(before.by_size.command.named),
            percent(command.guessing),
            percent(after.cost.added_share),
        );
        Ok(Self {
            schema: 1,
            sentence,
            prior: home.prior,
            countermeasures: named.to_string(),
            commands_per_day: home.commands_per_day,
            command_bytes: home.traffic.command_bytes(),
            before,
            after,
            named,
        })
    }

    /// In this format.
    pub(super) fn written(&self, form: ReportForm) -> Result<Vec<u8>, Failure> {
        Ok(form.written(self, None, || spaced(self.parts()))?)
    }

    fn parts(&self) -> Vec<Document> {
        let mut parts = opening(&self.sentence, self.prior);
        parts.extend([self.leaks(), self.costs()]);
        parts.extend(self.remarks().iter().map(|remark| paragraph(remark, 0)));
        parts
    }

    fn leaks(&self) -> Document {
        let effects = [&self.before, &self.after];
        let by_size = |name: &str, shown: &dyn Fn(&MessageLeak) -> String| {
            let [before, after] = effects.map(|effect| shown(&effect.by_size));
            [name.to_owned(), before, after]
        };
        let [replies_before, replies_after] = effects.map(named_with_replies);
        let rows = [
            by_size("command named", &|leak| percent(leak.command.named)),
            ["  with replies".to_owned(), replies_before, replies_after],
            by_size("  by guessing", &|leak| percent(leak.command.guessing)),
            by_size("  of guessing", &|leak| format!("× {:.2}", leak.command.times_guessing)),
            by_size("number of actions named", &|leak| percent(leak.number.named)),
            by_size("types of devices named", &|leak| kinds_named(leak)),
            by_size("bits given away", &|leak| format!("{:.2}", leak.command.information_bits)),
            by_size("greatest posterior", &|leak| percent(leak.command.worst_posterior)),
            by_size("smallest anonymity set", &|leak| format!("{:.0}", leak.command.smallest_set)),
        ];
        numbers(["of a message", "without", "with"], rows)
    }

    fn costs(&self) -> Document {
        let cost = &self.after.cost;
        let a_day = format!(" a day, of {} commands", self.commands_per_day);
        let rows = [
            ["bytes to the gateway, a command".to_owned(), changed(cost.added_bytes)],
            ["bytes of replies, a command".to_owned(), or_unknown(cost.added_reply_bytes.map(changed))],
            [format!("MB{a_day}"), or_unknown(cost.megabytes_a_day.map(changed_megabytes))],
            ["messages to the gateway a day".to_owned(), changed(cost.added_messages_a_day)],
            ["replies a day".to_owned(), or_unknown(cost.added_replies_a_day.map(changed))],
            ["seconds of delay, mean".to_owned(), seconds(cost.mean_delay_seconds)],
            ["seconds of delay, at most".to_owned(), or_unlimited(cost)],
        ];
        numbers(["what it costs", "more"], rows)
    }

    /// What the figures rest on.
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
            remarks.push(format!(
                "To name a command is to say, too, that it is real, which is right for {} of all that are sent. Whoever \
                 takes every one for real still names {} of the real ones: dummies do not hide commands, they make it \
                 uncertain that there was one. This holds for dummies that are drawn, sent and answered like commands.",
                percent(1.0 - dummies),
                percent(self.after.by_size.command.named / (1.0 - dummies))
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

/// All countermeasures, compared.
#[derive(Debug, Serialize)]
pub(super) struct Comparison<'a> {
    schema: u32,
    prior: &'a str,
    policy: String,
    commands_per_day: f64,
    command_bytes: f64,
    countermeasures: Vec<Compared>,
}

/// Countermeasures with their effect.
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
    pub(super) fn new(home: &JudgedHome<'a>, policy: &PaddingPolicy) -> Self {
        let is_padded = *policy != PaddingPolicy::None;
        let mut countermeasures: Vec<Compared> =
            is_padded.then(|| Compared::new(home, &Countermeasures::NONE)).into_iter().collect();
        countermeasures.extend(compared(policy).iter().map(|named| Compared::new(home, named)));
        Self {
            schema: 1,
            prior: home.prior,
            policy: policy.to_string(),
            commands_per_day: home.commands_per_day,
            command_bytes: home.traffic.command_bytes(),
            countermeasures,
        }
    }

    /// In this format.
    pub(super) fn written(&self, form: ReportForm) -> Result<Vec<u8>, Failure> {
        Ok(form.written(self, Some("countermeasures"), || spaced(self.parts()))?)
    }

    fn parts(&self) -> Vec<Document> {
        let leak = ["of a message", "command", "by replies", "number", "types", "× guessing", "bits", "worst", "set"];
        let cost = ["what it costs", "bytes", "of replies", "MB a day", "messages", "replies", "delay"];
        let mut parts = vec![
            numbers(leak, self.countermeasures.iter().map(Compared::leak)),
            numbers(cost, self.countermeasures.iter().map(Compared::cost)),
            paragraph(self.explained(), 0),
        ];
        parts.extend(self.faults().iter().map(|fault| paragraph(fault, 0)));
        parts
    }

    fn explained(&self) -> String {
        format!(
            "Of a message to the gateway, an observer of its size names the exact command, the number of actions and the \
             types of devices in so many cases, and says rightly that it is no dummy; by replies: the command, if they are \
             seen, too. × guessing: how many times as often as by guessing. Bits, worst (greatest posterior) and set (smallest anonymity set) \
             are about the command. Costs are what is added to a command of {:.1} bytes, and to {} commands a day, which \
             come at random; delay is the mean in seconds. Prior: {}.",
            self.command_bytes, self.commands_per_day, self.prior
        )
    }

    fn faults(&self) -> Vec<String> {
        let fault =
            |compared: &Compared| compared.fault.as_ref().map(|fault| format!("{}: {fault}", compared.short_name));
        self.countermeasures.iter().filter_map(fault).collect()
    }
}

impl Compared {
    fn new(home: &JudgedHome<'_>, named: &Countermeasures) -> Self {
        let (effect, fault) = match home.traffic.effect(named) {
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

    fn leak(&self) -> [String; 9] {
        let shown = |effect: &CountermeasureEffect| {
            let MessageLeak { command, number, .. } = &effect.by_size;
            let KeyFigures { named, times_guessing, information_bits, worst_posterior, smallest_set, .. } = command;
            [
                self.short_name.clone(),
                percent(*named),
                named_with_replies(effect),
                percent(number.named),
                kinds_named(&effect.by_size),
                format!("{times_guessing:.2}"),
                format!("{information_bits:.2}"),
                percent(*worst_posterior),
                format!("{smallest_set:.0}"),
            ]
        };
        self.row(shown)
    }

    fn cost(&self) -> [String; 7] {
        let shown = |CountermeasureEffect { cost, .. }: &CountermeasureEffect| {
            [
                self.short_name.clone(),
                changed(cost.added_bytes),
                or_unknown(cost.added_reply_bytes.map(changed)),
                or_unknown(cost.megabytes_a_day.map(changed_megabytes)),
                format!("{:+.0}", cost.added_messages_a_day + 0.0),
                or_unknown(cost.added_replies_a_day.map(|replies| format!("{:+.0}", replies + 0.0))),
                seconds(cost.mean_delay_seconds),
            ]
        };
        self.row(shown)
    }

    /// The cells of a row; without an effect, only the name.
    fn row<const N: usize>(&self, shown: impl Fn(&CountermeasureEffect) -> [String; N]) -> [String; N] {
        let without = || std::array::from_fn(|at| if at == 0 { self.short_name.clone() } else { NONE.to_owned() });
        self.effect.as_ref().map_or_else(without, shown)
    }
}

fn named_with_replies(effect: &CountermeasureEffect) -> String {
    effect.with_replies.as_ref().map_or_else(
        || NONE.to_owned(),
        |leak| format!("{}{}", if leak.is_exact { "" } else { "≤ " }, percent(leak.command.named)),
    )
}

fn kinds_named(leak: &MessageLeak) -> String {
    leak.kinds.as_ref().map_or_else(|| NONE.to_owned(), |kinds| percent(kinds.named))
}

/// A change, with its sign.
fn changed(change: f64) -> String {
    format!("{:+.1}", change + 0.0)
}

fn changed_megabytes(change: f64) -> String {
    format!("{}{}", if change < 0.0 { "-" } else { "+" }, megabytes(change.abs()))
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.1}")
}

fn or_unknown(change: Option<String>) -> String {
    change.unwrap_or_else(|| "not known".to_owned())
}

fn or_unlimited(cost: &CountermeasureCost) -> String {
    cost.most_delay_seconds.map_or_else(|| "no limit".to_owned(), seconds)
}

impl From<CountermeasureError> for Failure {
    fn from(error: CountermeasureError) -> Self {
        Self::usage(error)
    }
}
