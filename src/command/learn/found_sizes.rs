//! What commands without labels said, as human-readable text.

use std::collections::BTreeMap;

use sizeleak_learning::{FoundSizes, LearnedModel};
use sizeleak_text::escaped;

/// How many actions may have the same reply before their sizes are in doubt.
const MAX_ALIKE: usize = 2;

/// How many other explanations are named.
const SHOWN: usize = 3;

/// The words for where labels came from, and what the actions are called.
pub(super) fn lines(found: &FoundSizes) -> Vec<String> {
    let fit = &found.fit;
    let labelled = match found.labelled {
        0 => "without labels".to_owned(),
        labelled => format!("with {labelled} labels"),
    };
    let explained = found.labels.labels().rows.len();
    let mut lines = vec![format!(
        "sizes were found {labelled}: {explained} of {} commands are explained; lengths are those of {}",
        found.commands, fit.length_fields
    )];
    let nameless = fit.actions.iter().filter(|action| action.name.is_none()).count();
    if nameless > 0 {
        let all = fit.actions.len();
        lines.push(format!(
            "{nameless} of {all} actions have no name: one labelled command of each (`--labels`) names them"
        ));
    }
    lines
}

/// What is said of an action besides its size: the reply and the share of all actions.
pub(super) fn of_action(found: &FoundSizes, name: &str) -> String {
    let at = found.names.iter().position(|known| known == name);
    let Some(action) = at.and_then(|at| found.fit.actions.get(at)) else { return String::new() };
    let reply = action.reply.map_or_else(|| "no reply".to_owned(), |bytes| format!("a reply of {bytes} bytes"));
    format!("; {reply}, {:.1} % of actions", 100.0 * action.frequency)
}

/// The reply that most actions have in common, and how many do, if they are more than replies can be trusted with.
fn most_alike(found: &FoundSizes) -> Option<(Option<i64>, usize)> {
    let mut times: BTreeMap<Option<i64>, usize> = BTreeMap::new();
    for action in &found.fit.actions {
        *times.entry(action.reply).or_default() += 1;
    }
    times.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > MAX_ALIKE)
}

/// What is not certain about sizes that were found without labels, a sentence each.
pub(super) fn warnings(found: &FoundSizes, learned: &LearnedModel) -> Vec<String> {
    let fit = &found.fit;
    let mut warnings = Vec::new();
    let others: Vec<String> = fit
        .alternatives
        .iter()
        .take(SHOWN)
        .map(|other| {
            format!(
                "an overhead of {} bytes and {} actions ({:.1} nats less likely)",
                other.overhead, other.actions, other.difference
            )
        })
        .collect();
    if !others.is_empty() {
        warnings.push(format!("other sizes explain the commands nearly as well: {}", others.join("; ")));
    }
    if let Some((reply, count)) = most_alike(found) {
        let reply = reply.map_or_else(|| "no reply".to_owned(), |bytes| format!("replies of {bytes} bytes"));
        warnings.push(format!(
            "{count} actions have {reply}, so only lengths tell them apart: sizes that are a few bytes apart may be \
             mixed up; label each of them alone, several times"
        ));
    }
    for uncertain in &fit.uncertain_names {
        let [one, other] = &uncertain.names;
        warnings.push(format!(
            "`{}` and `{}` may be the other way round (probability {:.2}): what is labelled fits both; label each of them \
             alone once or twice more",
            escaped(one),
            escaped(other),
            uncertain.probability
        ));
    }
    let size = |name: &str| learned.model.actions.iter().find(|action| action.name == name).map(|action| action.size);
    let moved = found.names.iter().zip(&fit.actions);
    let moved = moved.filter(|(name, action)| size(name).is_some_and(|size| size != action.size));
    let moved: Vec<String> = moved
        .map(|(name, action)| {
            let learned = size(name).unwrap_or_default();
            format!("`{}` {} or {learned} bytes", escaped(name), action.size)
        })
        .collect();
    if !moved.is_empty() {
        warnings.push(format!("these sizes are not certain: {}", moved.join(", ")));
    }
    warnings
}
