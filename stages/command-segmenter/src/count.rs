//! Counts what messages of each size are, where labels tell the commands among them.

use std::collections::BTreeMap;

use sizeleak_frame::{Direction, Record};
use sizeleak_model::{GatewayRecords, MAX_NOISE_SIZES, MIN_OCCURRENCES, ServiceRecords};

use crate::beat;
use crate::exchange::{Exchange, Heard, Run, Weight};
use crate::options::Times;
use crate::pair::Pair;
use crate::teaching::{Part, Said};

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    service: BTreeMap<u32, Service>,
    gateway: BTreeMap<u32, Gateway>,
    /// Labelled commands that the gateway replied to.
    pub(crate) replied: u64,
}

#[derive(Debug, Default)]
struct Service {
    counted: ServiceRecords,
    /// When those came that came alone, and after what silences.
    times: BTreeMap<Pair, Vec<i64>>,
    /// How many of them were big enough for a command.
    full: u64,
    silences: Vec<i64>,
}

#[derive(Debug, Default)]
struct Gateway {
    counted: GatewayRecords,
    /// The sizes of the answers.
    partners: BTreeMap<u32, u64>,
}

/// What was last said on a flow.
#[derive(Debug, Default)]
struct Talk {
    exchange: Exchange,
    /// The gateway's last message, while nothing has come since.
    spoken: Option<(i64, u32)>,
    /// Until when what the gateway says is a reply to a command, and when that is so no more in any case.
    replies: Option<(i64, i64)>,
    /// What the gateway may reply to, and until when.
    awaited: Option<(Awaited, i64)>,
}

#[derive(Debug, Clone, Copy)]
enum Awaited {
    Command,
    Noise(u32),
}

impl Counts {
    /// Counts messages. `before` is what a count before this came to: by that it is known which of the gateway's messages
    /// are answered, and which are no replies.
    pub(crate) fn of(said: &[Said], before: &Self, times: &Times) -> Self {
        let mut counts = Self::default();
        let mut talks: BTreeMap<u64, Talk> = BTreeMap::new();
        for said in said {
            let talk = talks.entry(said.record.flow).or_default();
            match said.record.direction {
                Direction::FromGateway => counts.of_gateway(said, talk, before, times),
                Direction::ToGateway => counts.of_service(said, talk, before, times),
            }
            talk.exchange.remember(Heard::new(&said.record, said.weight));
        }
        counts
    }

    fn of_gateway(&mut self, said: &Said, talk: &mut Talk, before: &Self, times: &Times) {
        let Record { start_ns, time_ns, length, .. } = said.record;
        let kind = &mut self.gateway.entry(length).or_default().counted;
        kind.times += 1;
        if let Some((_, end_ns)) = talk.replies.filter(|(until_ns, end_ns)| start_ns <= *until_ns.min(end_ns)) {
            kind.replies += 1;
            talk.replies = Some((time_ns.saturating_add(times.reply_gap), end_ns));
        }
        let is_telemetry = before.gateway.get(&length).is_some_and(|kind| kind.counted.is_telemetry());
        if said.weight == Weight::Full
            && !is_telemetry
            && let Some((awaited, _)) = talk.awaited.take().filter(|(_, until_ns)| start_ns <= *until_ns)
        {
            match awaited {
                Awaited::Command => self.replied += 1,
                Awaited::Noise(size) => self.service.entry(size).or_default().counted.replied += 1,
            }
        }
        talk.spoken = Some((time_ns, length));
        talk.exchange.ask(Heard::new(&said.record, said.weight), length);
    }

    fn of_service(&mut self, said: &Said, talk: &mut Talk, before: &Self, times: &Times) {
        let Record { start_ns, time_ns, length, .. } = said.record;
        let spoken = talk.spoken.take();
        let until_ns = time_ns.saturating_add(times.reply_gap);
        match said.part {
            Part::Begins => {
                self.service.entry(length).or_default().counted.commands += 1;
                let soon = spoken.filter(|(spoken_ns, _)| start_ns.saturating_sub(*spoken_ns) <= times.answer_within);
                if let Some((_, size)) = soon {
                    self.gateway.entry(size).or_default().counted.commands += 1;
                }
                talk.replies = Some((until_ns, time_ns.saturating_add(times.reply_within)));
                talk.awaited = Some((Awaited::Command, until_ns));
                talk.exchange.run = Run::Command;
            }
            Part::Continues | Part::Doubtful => {}
            Part::None | Part::Untold => self.noise(said, talk, before, times),
        }
    }

    /// Counts a message that is in no labelled command. Where there are no labels, only what answers the gateway counts.
    fn noise(&mut self, said: &Said, talk: &mut Talk, before: &Self, times: &Times) {
        let Record { time_ns, length, .. } = said.record;
        let is_answered = |size: u32| before.gateway.get(&size).is_none_or(|kind| kind.counted.is_answered());
        let heard = Heard::new(&said.record, said.weight);
        let exchange = &mut talk.exchange;
        let asked = exchange.asked(heard, times.answer_within, |ask| is_answered(ask.length));
        if let Some((at, ask)) = asked {
            exchange.answer(at);
            let kind = self.gateway.entry(ask.length).or_default();
            kind.counted.answered += 1;
            *kind.partners.entry(length).or_default() += 1;
        }
        let continues = exchange.run == Run::Answer && exchange.followed(&said.record, times.gap).is_some();
        let is_answer = asked.is_some() || continues;
        exchange.run = if is_answer { Run::Answer } else { Run::Nothing };
        if is_answer {
            self.service.entry(length).or_default().counted.answers += 1;
            return;
        }
        if said.part == Part::Untold {
            return;
        }
        let kind = self.service.entry(length).or_default();
        kind.counted.alone += 1;
        kind.times.entry(said.pair).or_default().push(said.begun.time_ns);
        kind.silences.extend(said.begun.silence_ns);
        if said.weight == Weight::Full {
            kind.full += 1;
            talk.awaited = Some((Awaited::Noise(length), time_ns.saturating_add(times.reply_gap)));
        }
    }

    /// The sizes of the service's messages that are not only commands, in order. What came once tells nothing.
    pub(crate) fn service_records(&self) -> Vec<ServiceRecords> {
        let kinds = self.service.iter().map(|(size, kind)| {
            let mut counted = ServiceRecords { size: *size, ..kind.counted };
            kind.find_beat(&mut counted);
            counted
        });
        let noise = kinds.filter(|kind| kind.answers + kind.alone > 1).collect();
        most_frequent(noise, |kind| kind.answers + kind.alone, |kind| kind.size)
    }

    /// For 100 commands with a label, how many seem to have none. Noise recurs, commands of many actions hardly do.
    pub(crate) fn missing_labels(&self) -> u64 {
        let rare =
            || self.service.values().filter(|kind| kind.counted.alone < MIN_OCCURRENCES && kind.counted.answers == 0);
        let labelled: u64 = rare().map(|kind| kind.counted.commands).sum();
        let unlabelled: u64 = rare().map(|kind| kind.full).sum();
        unlabelled.saturating_mul(100) / labelled.max(1)
    }

    /// The sizes of the gateway's messages, in order.
    pub(crate) fn gateway_records(&self) -> Vec<GatewayRecords> {
        let kinds = self.gateway.iter().map(|(size, kind)| {
            let usual = kind.partners.iter().max_by_key(|(size, times)| (**times, std::cmp::Reverse(**size)));
            let is_usual = |times: u64| {
                times >= MIN_OCCURRENCES && times.saturating_mul(5) >= kind.counted.answered.saturating_mul(3)
            };
            let usual = usual.filter(|(_, times)| is_usual(**times));
            GatewayRecords { size: *size, by: usual.map(|(size, _)| *size), ..kind.counted }
        });
        most_frequent(kinds.collect(), |kind| kind.times, |kind| kind.size)
    }
}

impl Service {
    /// Finds the beat that most of those which came alone keep, if there is one.
    fn find_beat(&self, counted: &mut ServiceRecords) {
        let milliseconds = |ns: i64| Some(ns.unsigned_abs() / 1_000_000);
        if let Some((period, on)) = beat::idle_timer(&self.silences) {
            (counted.after_silence_ms, counted.on_beat) = (milliseconds(period), on);
        }
        // The period of whom most is known: of several gateways each has its phase, all have the same firmware.
        let longest = self.times.values().max_by_key(|times| times.len());
        let Some(period) = longest.and_then(|times| beat::period_of(times)) else { return };
        let on = self.times.values().map(|times| beat::count_timed(times, period)).sum::<u64>();
        if on > counted.on_beat && on.saturating_mul(5) >= counted.alone.saturating_mul(4) {
            counted.after_silence_ms = None;
            (counted.every_ms, counted.on_beat) = (milliseconds(period), on);
        }
    }
}

/// As many kinds as a model holds, those that are most frequent, in order of size.
fn most_frequent<T>(mut kinds: Vec<T>, times: impl Fn(&T) -> u64, size: impl Fn(&T) -> u32) -> Vec<T> {
    kinds.sort_by_key(|kind| (std::cmp::Reverse(times(kind)), size(kind)));
    kinds.truncate(MAX_NOISE_SIZES);
    kinds.sort_by_key(size);
    kinds
}
