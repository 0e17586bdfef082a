//! What a model says: how much its sizes give away, and what would stop that.

use std::path::PathBuf;

use anyhow::Result;
use sizeleak_audit::leakage::Audit;
use sizeleak_audit::padding::{
    Goal, HomeTraffic, Objective, PaddedHome, PaddingPolicy, TableRules, TableSearch, exact_table, seen_rows,
};
use sizeleak_inference::channel::{EpsilonKnowledge, Observation, Observer};
use sizeleak_inference::space::{CommandSpace, SpaceError};
use sizeleak_model::Model;
use sizeleak_report::document::{Figure, Section, Tile, Verdict};
use sizeleak_report::leak;

use super::arguments::Arguments;
use crate::command::document::quoted;
use crate::command::pad::countermeasures::{Comparison, JudgedHome};
use crate::command::pad::curve::Curve;
use crate::command::pad::judged::NamedWithReplies;
use crate::command::pad::{COMMANDS_PER_DAY, check_sizes};

/// The fix is the cheapest table with which commands are named at most so much more often than by guessing, as in the
/// examples of docs/padding.md: what is left is 5 % of guessing.
const FIX: f64 = 1.05;

/// The fewest commands of each size in the fix: alone in its size, a command is named for certain whatever the average is.
const FEWEST: f64 = 2.0;

pub(super) struct ModelFindings {
    pub(super) verdict: Verdict,
    pub(super) tiles: Vec<Tile>,
    pub(super) fix: String,
    /// `None` where there are no figures.
    pub(super) expected_sizes: Option<Figure>,
    pub(super) sections: Vec<Section>,
}

impl ModelFindings {
    pub(super) fn new(model: &Model, arguments: &Arguments) -> Result<Self> {
        if let Some(why) = model.learned.unfit_for_figures() {
            return Ok(Self::without_figures(&why));
        }
        let premises = arguments.audited.premises();
        let audit = Audit::new(model, &premises)?;
        let space = CommandSpace::new(model, &premises)?;
        let knowledge = EpsilonKnowledge::Distribution;
        let seen = Observation::new(&space, model, Observer::Sizes, knowledge)?.ok_or(SpaceError::TooMany)?;
        let prior = arguments.audited.prior(model).sentence;
        let mut sections = vec![leak::sizes(&audit, model), leak::anonymity(&audit)];
        if let Some(first) = sections.first_mut() {
            first.text.push(format!("How probable commands are before their size is seen: {prior}."));
            if model.inventory.is_none() {
                let hint = "No inventory says which devices there are, so any number of each action is counted: name them \
                            (`--inventory FILE`).";
                first.text.push(hint.to_owned());
            }
        }
        let fix = if let Err(fault) = check_sizes(model) {
            let why = fault.to_string();
            sections.extend(["padding", "countermeasures"].map(|id| Section::missing(id, &why)));
            fault.to_string()
        } else {
            let home = PaddedHome::new(&space, model, knowledge, COMMANDS_PER_DAY.into())?;
            let curve = Curve::new(&home, &prior, |_| Ok(None))?;
            let traffic = HomeTraffic::new(&space, model, knowledge, COMMANDS_PER_DAY.into())?;
            let text = "Padding makes sizes say less. Where it is drawn at random for each message, the figure holds for one \
                        message: unless it is keyed, it averages out over several.";
            sections.push(Section::new("padding", vec![text.to_owned()], vec![curve.figure()]));
            let judged = JudgedHome { traffic: &traffic, commands_per_day: COMMANDS_PER_DAY.into(), prior: &prior };
            let compared = Comparison::new(&judged, &PaddingPolicy::None);
            let text = [compared.explained()].into_iter().chain(compared.faults()).collect();
            sections.push(Section::new("countermeasures", text, compared.figures().into()));
            fix((&home, &traffic), &audit, arguments)?
        };
        Ok(Self {
            verdict: leak::verdict(&audit),
            tiles: leak::tiles(&audit),
            fix,
            expected_sizes: Some(leak::expected_sizes(&seen_rows(&seen))),
            sections,
        })
    }
}

impl ModelFindings {
    fn without_figures(why: &str) -> Self {
        let (sentence, meaning) = why.split_once(": ").unwrap_or((why, ""));
        let missing = |id| Section::missing(id, format!("There are no figures, since {sentence}."));
        Self {
            verdict: Verdict {
                sentence: format!("No leak is announced or denied: {sentence}."),
                meaning: format!("{meaning}."),
            },
            tiles: Vec::new(),
            fix: "What would stop the leak is not known, since its sizes are not.".to_owned(),
            expected_sizes: None,
            sections: ["sizes", "anonymity", "padding", "countermeasures"].map(missing).into(),
        }
    }
}

/// The cheapest table that leaves hardly more than guessing, in words.
fn fix((home, traffic): (&PaddedHome, &HomeTraffic), audit: &Audit, arguments: &Arguments) -> Result<String> {
    let rules = TableRules { fewest_commands: FEWEST, ..TableRules::default() };
    let search = TableSearch { rows: home.rows(), objective: Objective::Vulnerability, rules };
    let goal = Goal::Target(FIX * home.unpadded.command.guessing);
    Ok(match exact_table(home, &search, goal) {
        Ok((policy, judged)) => {
            let words = leak::fix(&judged, audit, home.commands_per_day);
            let replies = NamedWithReplies::new(traffic, &policy)?;
            let replies = replies.map_or_else(String::new, |named| format!(" {}", named.sentence()));
            let option = |(role, path): (&str, PathBuf)| {
                format!(" --{} {}", role.trim_start_matches("the "), quoted(&path.to_string_lossy()))
            };
            let options: String = arguments.audited.files().map(option).collect();
            format!(
                "{words}{replies} `sizeleak pad{options} --target 5%-of-guessing --least-set {FEWEST} --table table.c` \
                 writes it as C."
            )
        }
        Err(_) => {
            "No padding table brings naming down to guessing: the only way is to send all commands at one size and a \
                   constant rate."
                .to_owned()
        }
    })
}
