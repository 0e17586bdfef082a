//! The rebuilt table, for people.

use super::study::{HomeFigures, ProcedureFigures, SampleShare, Study};
use crate::command::document::{Document, numbers, paragraph, spaced};
use crate::command::figures::{NONE, percent, percent_within};

/// The table, with the homes before it and what it means behind it.
pub(super) fn table(study: &Study) -> Document {
    let Study { commands, labelled, .. } = study;
    let home = format!(
        "12 plugs with 4 actions and 4 lamps with 7 behind one gateway, over three protocols; {labelled} labelled \
         commands to learn from and {commands} to test on in each home. In brackets: intervals of 95 %."
    );
    let header = ["", "published", "the paper's, here", "ours"];
    let rows = study.homes.iter().flat_map(|home| rows(study, home));
    spaced([paragraph(home, 0), numbers(header, rows), meaning()])
}

fn rows(study: &Study, home: &HomeFigures) -> Vec<[String; 4]> {
    let HomeFigures { protocol, papers_procedure: papers, ours, possible } = home;
    let none = || NONE.to_owned();
    let published = &study.published;
    let share = |name: &str, published: Option<SampleShare>, of: fn(&ProcedureFigures) -> SampleShare| {
        let shown = |share: SampleShare| percent_within(share.share, share.interval);
        [format!("  {name}"), published.map_or_else(none, shown), shown(of(papers)), shown(of(ours))]
    };
    let mean = |name: &str, of: fn(&ProcedureFigures) -> f64| {
        [format!("  {name}"), none(), format!("{:.1}", of(papers)), format!("{:.1}", of(ours))]
    };
    let best = |name: &str, share: f64| [format!("  {name}"), none(), none(), percent(share)];
    vec![
        [(*protocol).to_owned(), String::new(), String::new(), String::new()],
        share("truth among", Some(published.truth_among), |figures| figures.truth_among),
        share("  pruned", Some(published.truth_among_after_pruning), |figures| figures.truth_among_after_pruning),
        share("first right", None, |figures| figures.first_right),
        share("  pruned", None, |figures| figures.first_right_after_pruning),
        mean("candidates", |figures| figures.mean_candidates),
        mean("  pruned", |figures| figures.mean_candidates_after_pruning),
        best("possible", possible.first_right),
        best("  with replies", possible.first_right_with_replies),
    ]
}

/// What the columns and rows mean.
fn meaning() -> Document {
    [
        "published: Junges, François, Festor 2019, on a home and gateway of their own; – where there is no figure.",
        "the paper's, here: sizes from each action on one device and on two, pruned by the number of actions that replies \
         allow.",
        "ours: sizes fitted to all labelled commands, candidates weighed by replies (the defaults).",
        "truth among: commands with the true actions among their candidates, by size alone; pruned: with the replies.",
        "first right: commands whose most probable candidate is the truth; candidates: how many there are on average.",
        "possible: the most right first answers that any method can have, by size alone and with the replies.",
        "A length field that is longer in a command for two devices than for one becomes a part of the paper's sizes, so \
         its procedure depends on the protocol.",
    ]
    .iter()
    .flat_map(|line| paragraph(*line, 2))
    .collect()
}
