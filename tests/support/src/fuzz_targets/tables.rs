//! Files that people write: labels, inventories and pipelines.

use std::path::Path;

use sizeleak_learning::labels::{LabelForm, LabelMap, Labels};
use sizeleak_model::{Action, Inventory};
use sizeleak_pipeline::Pipeline;

/// Reads bytes as labels, which must read back from what they are written as.
pub fn label_file(bytes: &[u8]) {
    if let Ok(map) = Labels::map_of_log(bytes) {
        let text = map.in_words();
        assert_eq!(text.parse::<LabelMap>().as_ref(), Ok(&map), "{text}");
        // Its times may be none.
        drop(Labels::read_in(bytes, &LabelForm { map: Some(map), ..LabelForm::default() }));
    }
    let Ok(mut labels) = Labels::read(bytes) else { return };
    let mut written = Vec::new();
    labels.write(&mut written).expect("memory takes it");
    let mut again = Labels::read(&written[..]).expect("what was read can be written");
    // Empty lines are not kept.
    // Whether times were written without seconds shows in the writing alone, not in the times.
    again.is_to_the_minute = labels.is_to_the_minute;
    // Nor what was said of the form.
    labels.notes.clear();
    labels.rows.iter_mut().chain(&mut again.rows).for_each(|row| row.line = 0);
    assert_eq!(labels, again);
}

/// Reads bytes as an inventory, and finds the commands that it allows.
pub fn inventory_file(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(inventory) = Inventory::from_toml(text) else { return };
    let names = inventory.action_names();
    let actions: Vec<Action> = names.iter().map(|name| Action::new(*name, 40)).collect();
    assert!(inventory.unlearned(&actions).is_empty(), "an action that has no name");
    if let Ok(limits) = inventory.limits(&actions) {
        assert!(limits.admits(&vec![0; actions.len()]), "the command without an action");
    }
}

/// Reads bytes as a pipeline file.
pub fn pipeline_file(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match Pipeline::parse(text, Path::new("folder/pipeline.toml")) {
        Ok(pipeline) => {
            pipeline.resolved_stages();
            pipeline.makes();
        }
        Err(error) => assert!(error.to_string().contains("pipeline.toml"), "an error without its file: {error}"),
    }
}
