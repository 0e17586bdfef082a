//! Real gateways: `docs/real-gateways.md` as tests, on tables of sizes that others measured.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

mod programs;
mod size_table;

use size_table::{SizeTable, data};

#[test]
fn tables_read_back() {
    for name in ["smartthings-hue", "hue-cloud-base-firewall", "hue-cloud-no-firewall", "ultraloq-headers"] {
        let table = SizeTable::read(name);
        assert!(table.frames.len() > 800 && data(&format!("{name}.labels.csv")).exists(), "{name}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.frames");
        table.write(&path);
    }
}
