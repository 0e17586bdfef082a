//! Several messages in one record: a label that has no command of its own, near one whose command is as long as both.

use sizeleak_labels::{Label, Labels, Matching};

use crate::size_learning::LearnedSizes;

/// How far the size of a record may be from the sum of two commands, in bytes.
const NEAR_BYTES: u64 = 8;

/// At least this many records must be as long as two commands, since one may be so by chance…
const MIN_RECORDS: usize = 2;

/// …and this share of those that do not fit.
const MIN_SHARE: f64 = 0.3;

/// A sentence if commands that were left out hold the messages of two labels each. `sizes_of` is the size of the
/// command of each pair of the matching, in bytes.
pub(crate) fn merged_messages(
    labels: &Labels,
    matching: &Matching,
    sizes: &LearnedSizes,
    sizes_of: &[i64],
    within_ns: i64,
) -> Option<String> {
    let expected = |label: &Label| {
        let mut sum = sizes.fit.overhead;
        for (name, count) in labels.actions.iter().zip(&label.counts).filter(|(_, count)| **count > 0) {
            let action = sizes.fit.actions.iter().find(|action| action.name == *name)?;
            sum = sum.saturating_add(action.size.saturating_mul((*count).into()));
        }
        Some(sum)
    };
    let without_command: Vec<&Label> =
        matching.missed.iter().chain(&matching.ambiguous).filter_map(|row| labels.rows.get(*row)).collect();
    let holds_two = |pair: &&usize| {
        let (own, size) = (&labels.rows[matching.pairs[**pair].0], sizes_of[**pair]);
        let Some(own_bytes) = expected(own) else { return false };
        without_command.iter().any(|other| {
            let is_near = other.time_ns.abs_diff(own.time_ns) <= within_ns.unsigned_abs().saturating_mul(2);
            // A second message has its own overhead; a merged body has one for both.
            let both = expected(other).map(|bytes| own_bytes.saturating_add(bytes));
            let is_sum = |sum: i64| sum.abs_diff(size) <= NEAR_BYTES;
            is_near && both.is_some_and(|sum| is_sum(sum) || is_sum(sum.saturating_sub(sizes.fit.overhead)))
        })
    };
    let records = sizes.fit.outliers.iter().filter(holds_two).count();
    let is_usual = records as f64 >= MIN_SHARE * sizes.fit.outliers.len() as f64;
    (records >= MIN_RECORDS && is_usual).then(|| {
        format!(
            "{records} commands are as long as two labelled ones together, and the second label has none: several \
             messages travel in one record; leave more time between commands, or label both as one command"
        )
    })
}

#[cfg(test)]
mod tests {
    use sizeleak_model::{FitMethod, LabelledCommand};

    use super::*;
    use crate::size_learning::learn_sizes;

    fn label(time_s: i64, counts: [u32; 2]) -> Label {
        Label { time_ns: time_s * 1_000_000_000, counts: counts.to_vec(), line: 1 }
    }

    /// Commands every ten seconds; those at the given places have a second label a second later and its bytes.
    fn sentence(merged: &[i64]) -> Option<String> {
        let counts = |at: i64| [(at % 3) as u32, 1 + (at / 3 % 2) as u32];
        let size = |counts: [u32; 2]| 60 + 28 * i64::from(counts[0]) + 35 * i64::from(counts[1]);
        let names = ["on".to_owned(), "off".to_owned()];
        let (mut rows, mut matching, mut sizes_of, mut commands) =
            (Vec::new(), Matching::default(), Vec::new(), Vec::new());
        for at in 0..40 {
            let second = if merged.contains(&at) { size([1, 1]) } else { 0 };
            matching.pairs.push((rows.len(), commands.len()));
            sizes_of.push(size(counts(at)) + second);
            rows.push(label(10 * at, counts(at)));
            commands.push(LabelledCommand {
                sizes: [size(counts(at)) + second; 2],
                counts: counts(at).to_vec(),
                replies: 0,
                reply_bytes: 0,
                single_replies: None,
                has_own_replies: true,
            });
            if second > 0 {
                matching.missed.push(rows.len());
                rows.push(label(10 * at + 1, [1, 1]));
            }
        }
        let sizes = learn_sizes(FitMethod::Robust, &names, &commands).unwrap();
        assert_eq!(sizes.fit.outliers.len(), merged.len());
        let labels = Labels { actions: names.to_vec(), rows, ..Labels::default() };
        merged_messages(&labels, &matching, &sizes, &sizes_of, 2_000_000_000)
    }

    #[test]
    fn records_of_two_messages_are_named() {
        assert!(sentence(&[3, 9, 21]).unwrap().starts_with("3 commands are as long as two"));
        assert_eq!(sentence(&[]), None);
        assert_eq!(sentence(&[7]), None, "one may be so by chance");
    }
}
