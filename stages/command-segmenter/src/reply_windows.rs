//! Learns from labelled commands how long the gateway's replies take: until what the gateway sends after commands is no
//! more than what it sends at other times.

use std::collections::BTreeMap;

use sizeleak_frame::{Command, ContentType, Direction, Record};
use sizeleak_model::{MAX_REPLY_WITHIN_MS, ReplyWindows};

use crate::flow_history::SizeClass;
use crate::options::USUAL_REPLY_WINDOWS;

const MS: i64 = 1_000_000;

/// How long after a command replies are looked for.
const HORIZON_NS: i64 = MAX_REPLY_WITHIN_MS.cast_signed() * MS;

/// Times after commands are counted in bins as long as this.
const BIN_NS: i64 = 500 * MS;

const BINS: usize = (HORIZON_NS / BIN_NS) as usize;

/// Fewer commands show nothing.
const MIN_COMMANDS: usize = 8;

/// Fewer replies show nothing.
const MIN_REPLIES: f64 = 8.0;

/// Replies that may be later than the window, in percent.
const LATE_PERCENT: f64 = 2.0;

const MOST: f64 = 0.9;

/// The time of most replies is looked for in steps of this.
const STEP_NS: i64 = 50 * MS;

/// The last reply seen may come a little later another time: by a quarter.
fn with_margin(time_ns: i64, step_ms: u64) -> u64 {
    let ms = (time_ns.max(0).unsigned_abs() / MS.unsigned_abs()).saturating_mul(5).div_ceil(4);
    ms.div_ceil(step_ms).max(1) * step_ms
}

/// When what the gateway sends after these commands ends; `None` if the usual windows are long enough, or if too few
/// commands or replies show it. `commands` are the labelled ones among `records`, which are in the order of the stream;
/// records of less plaintext than `min_size` are no replies.
pub fn learn_reply_windows(records: &[Record], commands: &[Command], min_size: u64) -> Option<ReplyWindows> {
    if commands.len() < MIN_COMMANDS {
        return None;
    }
    let flows = FlowTimes::of(records, commands, min_size);
    let delays: Vec<CommandDelays> = flows.values().flat_map(FlowTimes::delays).collect();
    let background = flows.values().map(FlowTimes::background);
    let (records, observed_ns) = background.fold((0, 0_i64), |(records, observed_ns), (more, longer_ns)| {
        (records + more, observed_ns.saturating_add(longer_ns))
    });
    let rate = if observed_ns > 0 { records as f64 / observed_ns as f64 } else { 0.0 };
    let within_ns = end_of_excess(&delays, rate)?;
    let gap_ns = usual_gap(&delays, within_ns)?;
    let longest_ms = with_margin(within_ns, 1_000).clamp(USUAL_REPLY_WINDOWS.within_ms, MAX_REPLY_WITHIN_MS);
    let silence_ms = with_margin(gap_ns, 100).clamp(USUAL_REPLY_WINDOWS.gap_ms, longest_ms);
    if (longest_ms, silence_ms) == (USUAL_REPLY_WINDOWS.within_ms, USUAL_REPLY_WINDOWS.gap_ms) {
        return None;
    }
    let mostly_ms = 2 * (time_of_most(&delays, within_ns, rate).max(0).unsigned_abs() / MS.unsigned_abs());
    let mostly_ms = mostly_ms.clamp(USUAL_REPLY_WINDOWS.mostly_ms, longest_ms);
    Some(ReplyWindows { within_ms: longest_ms, gap_ms: silence_ms, mostly_ms })
}

#[derive(Debug, Default)]
struct FlowTimes {
    /// The first and the last record.
    span: Option<[i64; 2]>,
    sender: Direction,
    /// When commands began and ended.
    commands: Vec<[i64; 2]>,
    /// When the other side sent what is large enough for a reply, by length.
    by_length: BTreeMap<u32, Vec<i64>>,
    /// The same without the lengths that come at any time.
    sent: Vec<i64>,
}

#[derive(Debug)]
struct CommandDelays {
    /// How long after the end of the command, in order.
    delays: Vec<i64>,
    observed_ns: i64,
}

impl FlowTimes {
    fn of(records: &[Record], commands: &[Command], min_size: u64) -> BTreeMap<u64, Self> {
        let mut flows: BTreeMap<u64, Self> = BTreeMap::new();
        for command in commands {
            let flow = flows.entry(command.flow).or_default();
            flow.commands.push([command.time_ns, command.end_ns]);
            flow.sender = command.direction;
        }
        for record in records {
            let Some(flow) = flows.get_mut(&record.flow) else { continue };
            let [first, last] = flow.span.unwrap_or([record.time_ns; 2]);
            flow.span = Some([first.min(record.time_ns), last.max(record.time_ns)]);
            let is_data = !record.handshake && record.content_type == ContentType::ApplicationData;
            let is_full = SizeClass::of(record, min_size) == SizeClass::Full;
            if is_data && is_full && record.direction != flow.sender {
                flow.by_length.entry(record.length).or_default().push(record.time_ns);
            }
        }
        for flow in flows.values_mut() {
            flow.commands.sort_unstable();
            flow.find_sent();
        }
        flows
    }

    /// Leaves out the lengths that come after commands about as often as at other times.
    fn find_sent(&mut self) {
        let observed: i64 = self.windows().map(|[from, to]| to.saturating_sub(from)).sum();
        let span = self.span.map_or(1, |[first, last]| last.saturating_sub(first)).max(1);
        let share = (observed as f64 / span as f64).min(1.0);
        let is_after_command = |time_ns: i64| {
            let next = self.commands.partition_point(|[_, end_ns]| *end_ns < time_ns);
            let before = next.checked_sub(1).and_then(|at| self.commands.get(at));
            before.is_some_and(|[_, end_ns]| time_ns.saturating_sub(*end_ns) <= HORIZON_NS)
        };
        let is_reply = |times: &&Vec<i64>| {
            let after = times.iter().filter(|time_ns| is_after_command(**time_ns)).count() as f64;
            let expected = share * times.len() as f64;
            // Where commands fill all the time, nothing can be told apart.
            times.len() < 8 || share > 0.9 || after > expected + 3.0 * (expected * (1.0 - share)).sqrt()
        };
        let mut sent: Vec<i64> = self.by_length.values().filter(is_reply).flatten().copied().collect();
        sent.sort_unstable();
        self.sent = sent;
    }

    /// From the end of each command until the next begins, or until replies are looked for no more.
    fn windows(&self) -> impl Iterator<Item = [i64; 2]> {
        let last_ns = self.span.map_or(i64::MIN, |[_, last]| last);
        let next = self.commands.iter().skip(1).map(|[start_ns, _]| *start_ns).chain([last_ns]);
        self.commands
            .iter()
            .zip(next)
            .map(|([_, end_ns], next_ns)| [*end_ns, end_ns.saturating_add(HORIZON_NS).min(next_ns).max(*end_ns)])
    }

    fn delays(&self) -> impl Iterator<Item = CommandDelays> {
        self.windows().map(|[from, to]| {
            let first = self.sent.partition_point(|time_ns| *time_ns <= from);
            let until = self.sent.partition_point(|time_ns| *time_ns < to);
            let sent = self.sent.get(first..until).unwrap_or_default();
            CommandDelays {
                delays: sent.iter().map(|time_ns| time_ns.saturating_sub(from)).collect(),
                observed_ns: to.saturating_sub(from),
            }
        })
    }

    /// How many records the gateway sends long after commands, and in how many nanoseconds.
    fn background(&self) -> (usize, i64) {
        let observed: i64 = self.windows().map(|[from, to]| to.saturating_sub(from)).sum();
        let span = self.span.map_or(0, |[first, last]| last.saturating_sub(first));
        let inside: usize = self.delays().map(|command| command.delays.len()).sum();
        (self.sent.len().saturating_sub(inside), span.saturating_sub(observed).max(0))
    }
}

fn time_of_most(commands: &[CommandDelays], within_ns: i64, rate: f64) -> i64 {
    let replies_until = |time_ns: i64| -> f64 {
        let excess = |command: &CommandDelays| {
            let seen = command.delays.partition_point(|delay_ns| *delay_ns <= time_ns);
            seen as f64 - rate * command.observed_ns.min(time_ns) as f64
        };
        commands.iter().map(excess).sum()
    };
    let most = MOST * replies_until(within_ns);
    let mut times = (1..).map(|steps: i64| steps * STEP_NS).take_while(|time_ns| *time_ns < within_ns);
    times.find(|time_ns| replies_until(*time_ns) >= most).unwrap_or(within_ns)
}

/// How long after commands the gateway sends more than at other times, which is `rate` records a nanosecond.
fn end_of_excess(commands: &[CommandDelays], rate: f64) -> Option<i64> {
    let mut seen = vec![0.0_f64; BINS];
    let mut expected = vec![0.0_f64; BINS];
    for command in commands {
        for delay_ns in &command.delays {
            if let Some(bin) = seen.get_mut(usize::try_from(delay_ns / BIN_NS).unwrap_or(BINS)) {
                *bin += 1.0;
            }
        }
        for (bin, start_ns) in expected.iter_mut().zip((0..).map(|bin: i64| bin * BIN_NS)) {
            *bin += rate * command.observed_ns.saturating_sub(start_ns).clamp(0, BIN_NS) as f64;
        }
    }
    // From the back: what still comes from a bin on, beyond chance.
    let excess = |from: usize| -> (f64, f64) {
        let later = seen.iter().zip(&expected).skip(from);
        later.fold((0.0, 0.0), |(seen, expected), (one, other)| (seen + one, expected + other))
    };
    let (all, by_chance) = excess(0);
    let replies = all - by_chance;
    if replies < MIN_REPLIES {
        return None;
    }
    let is_end = |from: &usize| {
        (*from..BINS).all(|bin| {
            let (later, by_chance) = excess(*from);
            let (behind, behind_by_chance) = excess(bin + 1);
            let (between, chance) = (later - behind, by_chance - behind_by_chance);
            between - chance <= (replies * LATE_PERCENT / 100.0).max(3.0 * (chance + 1.0).sqrt().min(chance + 1.0))
        })
    };
    let bins = (1..=BINS).find(is_end)?;
    i64::try_from(bins).ok().map(|bins| bins * BIN_NS)
}

/// How long the gateway is silent at most before nearly every reply.
fn usual_gap(commands: &[CommandDelays], within_ns: i64) -> Option<i64> {
    let mut gaps: Vec<i64> = Vec::new();
    for command in commands {
        let mut before_ns = 0;
        for delay_ns in command.delays.iter().filter(|delay_ns| **delay_ns <= within_ns) {
            gaps.push(delay_ns.saturating_sub(before_ns));
            before_ns = *delay_ns;
        }
    }
    gaps.sort_unstable();
    let at = (gaps.len() as f64 * (1.0 - LATE_PERCENT / 100.0)) as usize;
    gaps.get(at.min(gaps.len().checked_sub(1)?)).copied()
}

#[cfg(test)]
mod tests;
