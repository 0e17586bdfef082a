//! Whether the order of labels lets time be told from what actions do.

use sizeleak_evaluation::measured_leak::PermutationTest;

/// Labels are said to follow each other in a row if chance orders them so with at most this probability.
const IN_A_ROW: f64 = 0.01;

/// That what changes with time cannot be told from what actions do; `p_value` is how it is shown.
pub(super) fn order_remark(order: &PermutationTest, p_value: &str) -> Option<String> {
    (order.p_value <= IN_A_ROW).then(|| {
        format!(
            "equal commands follow each other more often than chance orders them (p {p_value}): what changes with time, such \
             as a message number, is not told from what actions do; record commands in random order"
        )
    })
}
