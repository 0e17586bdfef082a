//! What random padding gives away over time.

use std::collections::BTreeMap;

use sizeleak_model::policies::{PaddedSize, PaddingPolicy};

use sizeleak_inference::space::{CommandGroup, SizeRow};

/// The probability that the best guess is right after `observations` of the same command, whose padding of 0 to `most`
/// bytes was drawn anew each time.
///
/// All that the observer learns is the smallest and the greatest size seen, a and b: of a command with the size s they
/// have the same probability for all s from b − most to a. It is ((w + 1)ⁿ − 2wⁿ + (w − 1)ⁿ) / (most + 1)ⁿ for w = b − a
/// above 0.
pub fn named_after(rows: &[SizeRow], most: u64, observations: u32) -> f64 {
    let n = f64::from(observations.max(1));
    let share = |width: f64| (width.max(0.0) / (most as f64 + 1.0)).powf(n);
    let first = rows.first().map_or(0, |row| row.bytes);
    let last = rows.last().map_or(0, |row| row.bytes);
    let mut named = 0.0;
    for width in 0..=most {
        let w = width as f64;
        let seen = if width == 0 { share(1.0) } else { share(w + 1.0) - 2.0 * share(w) + share(w - 1.0) };
        // A command is possible where its size is in a window of most − w bytes that ends with the smallest size seen.
        let window = most - width;
        let greatest: f64 =
            (first..=last + window).map(|end| greatest_within(rows, end.saturating_sub(window), end)).sum();
        named += seen * greatest;
    }
    named
}

/// The greatest prior of a command of these sizes.
fn greatest_within(rows: &[SizeRow], from: u64, to: u64) -> f64 {
    let first = rows.partition_point(|row| row.bytes < from);
    let inside = rows.iter().skip(first).take_while(|row| row.bytes <= to);
    inside.map(|row| row.greatest).fold(0.0, f64::max)
}

/// The expected probability that the best guess is right for an observer who has learned, from labelled commands of the
/// gateway, to which size each command is padded under its key.
///
/// Commands of one group have the same probability; each is padded to a size independently of the others. So the most
/// probable command that is padded to a size is of a group if none of a more probable group is padded to it, and not
/// all of its own are padded elsewhere.
pub fn named_with_known_key(groups: &[CommandGroup], policy: &PaddingPolicy) -> f64 {
    let mut sorted: Vec<&CommandGroup> = groups.iter().collect();
    sorted.sort_by(|a, b| b.probability.total_cmp(&a.probability).then(a.bytes.cmp(&b.bytes)));
    let mut named = 0.0;
    // By size, the probability that no more probable command is padded to it.
    let mut free: BTreeMap<u64, f64> = BTreeMap::new();
    let mut known: BTreeMap<u64, Vec<PaddedSize>> = BTreeMap::new();
    for group in sorted {
        for padded in known.entry(group.bytes).or_insert_with(|| policy.padded_sizes(group.bytes)) {
            let free = free.entry(padded.bytes).or_insert(1.0);
            let still_free = *free * (1.0 - padded.probability).max(0.0).powf(group.commands);
            named += group.probability * (*free - still_free);
            *free = still_free;
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use sizeleak_model::policies::Draw;

    fn groups() -> Vec<CommandGroup> {
        let group = |bytes, commands, probability| CommandGroup { bytes, commands, probability };
        vec![group(5, 1.0, 0.2), group(5, 2.0, 0.1), group(6, 1.0, 0.25), group(9, 1.0, 0.35)]
    }

    /// All sequences of `length` numbers below `base`.
    fn sequences(base: u64, length: u32) -> impl Iterator<Item = Vec<u64>> {
        (0..base.pow(length)).map(move |code| (0..length).map(|at| code / base.pow(at) % base).collect())
    }

    #[test]
    fn repeated_sizes_name_what_all_their_sequences_name() {
        let rows = SizeRow::of_groups(&groups());
        for (most, observations) in [(0, 1), (0, 3), (3, 1), (3, 2), (2, 4), (7, 2)] {
            let mut joint: BTreeMap<Vec<u64>, f64> = BTreeMap::new();
            for row in &rows {
                for added in sequences(most + 1, observations) {
                    let seen = added.iter().map(|added| added + row.bytes).collect();
                    let probability = row.greatest / ((most + 1) as f64).powf(f64::from(observations));
                    let joint = joint.entry(seen).or_default();
                    *joint = joint.max(probability);
                }
            }
            let named: f64 = joint.values().sum();
            let found = named_after(&rows, most, observations);
            assert!((found - named).abs() < 1e-12, "{most} {observations}: {found} is not {named}");
        }
    }

    #[test]
    fn a_known_key_names_what_all_ways_to_draw_name_on_average() {
        let policy = PaddingPolicy::Random { most: 3, draw: Draw::Keyed };
        let commands = [(5, 0.2), (5, 0.1), (5, 0.1), (6, 0.25), (9, 0.35)];
        let mut sum = 0.0;
        for added in sequences(4, 5) {
            for size in 0..13 {
                let sent = commands.iter().zip(&added).filter(|((bytes, _), added)| bytes + **added == size);
                sum += sent.map(|((_, prior), _)| *prior).fold(0.0, f64::max);
            }
        }
        let found = named_with_known_key(&groups(), &policy);
        assert!((found - sum / 1024.0).abs() < 1e-12, "{found} is not {}", sum / 1024.0);
    }
}
