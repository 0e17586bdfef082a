//! `sizeleak audit`: what the sizes of a gateway's commands give away, computed over all commands of an inventory.

mod background;
mod table;
mod tunnel;

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use sizeleak_audit::leakage::Audit;
use sizeleak_model::Device;
use sizeleak_platform::storage::RunFiles;

use super::audited_model::{AuditedModel, PriorReport, actions};
use super::failure::Failure;
use super::observer_option::ObserverOption;
use super::output_option::OutputOption;
use super::report_format::ReportFormatOption;
use background::{BackgroundOptions, COVERED};
use tunnel::TunnelReport;

/// Compute what the sizes of commands give away, from a model
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sizeleak audit --model model.toml\n  \
    sizeleak audit --model model.toml --inventory larger-home.toml --prior devices --decay 0.75")]
#[command(after_long_help = "Examples:\n  \
    sizeleak audit --model model.toml\n  \
    sizeleak audit --model model.toml --inventory larger-home.toml --prior devices --decay 0.75\n  \
    sizeleak audit --model model.toml --tunnel wireguard --background 5 --background-from home.pcap\n\n\
    Nothing is sampled: all commands that the inventory allows are summed over, with what the model has learned of \
    their sizes, of ε and of replies. The observer has the model and the prior and guesses as well as these allow. \
    docs/audit.md explains every figure. `sizeleak measure` says what labelled captures show, and `sizeleak pad` what \
    hides commands.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    audited: AuditedModel,

    #[command(flatten)]
    observer: ObserverOption,

    #[command(flatten)]
    background: BackgroundOptions,

    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    output: OutputOption,
}

/// An audit as JSON.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: u32,
    sentence: String,
    prior: PriorReport,
    actions: Vec<&'a str>,
    devices: Option<&'a [Device]>,
    #[serde(flatten)]
    audit: &'a Audit,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { audited, observer, background, format, output } = arguments;
    let form = format.form(output, "sizeleak audit")?;
    let mut files = RunFiles::new();
    audited.add_to(&mut files);
    background.add_to(&mut files)?;
    output.add_to(&mut files);
    files.check()?;
    let model = audited.fit_model()?;
    if let Some(tunnel) = observer.tunnel(&model) {
        let read = background.read(&tunnel, &model.scope)?;
        let report = TunnelReport::new(audited, &model, &tunnel, read.as_ref().map(|read| &read.background))?;
        output.write(&report.written(form)?)?;
        let damage = read.and_then(|read| read.damage);
        return damage.map_or(Ok(ExitCode::SUCCESS), |damage| Err(Failure::damaged(&damage, COVERED)));
    }
    let audit = Audit::new(&model, &audited.premises())?;
    let report = Report {
        schema: 1,
        sentence: audit.sentence(),
        prior: audited.prior(&model),
        actions: actions(&model),
        devices: model.inventory.as_ref().map(|inventory| inventory.devices.as_slice()),
        audit: &audit,
    };
    output.write(&form.written(&report, None, || table::table(&audit, &model, &report.prior.sentence))?)?;
    Ok(ExitCode::SUCCESS)
}
