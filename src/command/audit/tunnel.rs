//! The audit of a gateway behind a tunnel: what sizes give away without it and through it, side by side.

use std::process::ExitCode;

use serde::Serialize;
use sizeleak_audit::leakage::Learned;
use sizeleak_audit::tunnel::{Background, Tunnel, TunnelAudit, flows_in_words};
use sizeleak_inference::channel::Measures;
use sizeleak_model::Model;
use sizeleak_survey::in_words;

use super::background::ReadBackground;
use super::table::{MeasureRow, ROWS, named_paragraph, share};
use super::{Arguments, audited_actions};
use crate::command::audited_model::PriorReport;
use crate::command::document::{Document, numbers, paragraph, spaced};
use crate::command::failure::Failure;
use crate::command::figures::NONE;
use crate::command::report_format::ReportForm;

/// What a report covers whose background is of a damaged capture.
const COVERED: &str = "the background is that from before the damage";

/// An audit as JSON.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: u32,
    sentence: String,
    prior: PriorReport,
    actions: Vec<&'a str>,
    tunnel: &'a Tunnel,
    background: Option<&'a Background>,
    #[serde(flatten)]
    audit: &'a TunnelAudit,
}

/// A figure of what is learned: its name, and how it is shown.
struct Row(&'static str, fn(&Learned) -> String);

/// Writes the audit of a model behind a tunnel.
pub(super) fn run(
    arguments: &Arguments,
    form: ReportForm,
    model: &Model,
    tunnel: &Tunnel,
) -> Result<ExitCode, Failure> {
    let read = arguments.background.read(tunnel, &model.scope, &arguments.log)?;
    let (background, damage) = read.map(|ReadBackground { background, damage }| (background, damage)).unzip();
    let audit = TunnelAudit::new(model, &arguments.audited.premises(), tunnel, background.as_ref())?;
    let report = Report {
        schema: 1,
        sentence: audit.sentence(tunnel, background.as_ref()),
        prior: arguments.audited.prior(model),
        actions: audited_actions(model),
        tunnel,
        background: background.as_ref(),
        audit: &audit,
    };
    arguments.output.write(&form.written(&report, None, || report.document())?)?;
    damage.flatten().map_or(Ok(ExitCode::SUCCESS), |damage| Err(Failure::damaged(&damage, COVERED)))
}

impl Report<'_> {
    fn document(&self) -> Document {
        let left_out = (self.audit.left_out > 0.0).then(|| {
            let share = share(self.audit.left_out);
            format!(
                "; what they send in {share} of cases is taken to hide nothing, so that no more is given away than this"
            )
        });
        let background = self.background.map(|background| {
            let Background { flows, conversations, seconds, busy, .. } = background;
            format!(
                "{}, each like any of {conversations} of a device with a service in {}, which sends within 40 ms of a \
                 command in {} of cases{}",
                flows_in_words(*flows),
                in_words((seconds * 1e9) as i64),
                share(*busy),
                left_out.as_deref().unwrap_or_default()
            )
        });
        let premises = [
            ("prior", Some(self.prior.sentence.clone())),
            ("tunnel", Some(self.tunnel.in_words())),
            ("background", background),
            ("observer", Some("counts the packets that are sent at once, and adds up their bytes".to_owned())),
        ];
        let premises = premises.into_iter().filter_map(|(name, text)| Some(named_paragraph(name, &text?)));
        let named: [Row; 6] = [
            Row("command by guessing, V₀", |learned| share(learned.command.guessing)),
            Row("command, V", |learned| share(learned.command.named)),
            Row("number of actions by guessing", |learned| share(learned.number.guessing)),
            Row("number of actions", |learned| share(learned.number.named)),
            Row("types of devices by guessing", |learned| of_kinds(learned, |kinds| kinds.guessing)),
            Row("types of devices", |learned| of_kinds(learned, |kinds| kinds.named)),
        ];
        let named = self.beside("named correctly", named.into_iter().map(|Row(name, shown)| (name, shown)));
        let measures = ROWS.iter().map(|MeasureRow(name, shown)| (*name, |learned: &Learned| shown(&learned.command)));
        let sentence = paragraph(self.sentence.clone(), 0);
        spaced([sentence, premises.flatten().collect(), named, self.beside("of the command", measures)])
    }

    /// Figures without the tunnel, through it, and beside a background, if there is one.
    fn beside<'a, F: Fn(&Learned) -> String>(&self, title: &str, rows: impl Iterator<Item = (&'a str, F)>) -> Document {
        let TunnelAudit { by_size, through_tunnel, beside_background, .. } = self.audit;
        let (alone, through) = ("by size alone", "through the tunnel");
        let (Some(beside), Some(background)) = (beside_background, self.background) else {
            let row = |(name, shown): (&str, F)| [name.to_owned(), shown(by_size), shown(through_tunnel)];
            return numbers([title, alone, through], rows.map(row));
        };
        let with = format!("beside {}", flows_in_words(background.flows));
        let row = |(name, shown): (&str, F)| [name.to_owned(), shown(by_size), shown(through_tunnel), shown(beside)];
        numbers([title, alone, through, &with], rows.map(row))
    }
}

fn of_kinds(learned: &Learned, figure: fn(&Measures) -> f64) -> String {
    learned.kinds.as_ref().map_or_else(|| NONE.to_owned(), |kinds| share(figure(kinds)))
}
