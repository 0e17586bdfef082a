//! The source code of tables, compiled, pads every size as the table does.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use sizeleak_audit::padding::{PaddingPolicy, SourceLanguage, table_source};

/// A table of many lines, one of one bucket, and one whose buckets do not hold neighbouring sizes.
fn tables() -> Vec<PaddingPolicy> {
    let sizes = (1..70).map(|at| [3 * at, if at % 3 == 1 { 3 * at + 6 } else { 3 * at }]).collect();
    vec![
        PaddingPolicy::Table { buckets: (1..200).map(|at| at * at + 90).collect() },
        PaddingPolicy::Table { buckets: vec![100] },
        PaddingPolicy::Map { sizes },
    ]
}

fn sizes() -> Vec<u64> {
    (0..900).chain([39_690, 39_691, 39_692, 79_383, 1 << 40, u64::MAX - 1, u64::MAX]).collect()
}

/// What the program prints for the sizes.
fn printed(folder: &Path, compiler: &str, arguments: &[&str]) -> Vec<u64> {
    let program = folder.join("program");
    let status = Command::new(compiler).args(arguments).arg("-o").arg(&program).current_dir(folder).status();
    assert!(status.expect("the compiler that builds this project").success());
    let output = Command::new(&program).stderr(Stdio::inherit()).output().expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("numbers");
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

fn list(suffix: &str) -> String {
    let sizes: Vec<String> = sizes().iter().map(|size| format!("{size}{suffix}")).collect();
    sizes.join(", ")
}

fn expected(table: &PaddingPolicy) -> Vec<u64> {
    sizes().into_iter().filter_map(|size| table.padded(size)).collect()
}

#[test]
fn c_pads_every_size_as_the_table_does() {
    for table in tables() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = table_source(&table, SourceLanguage::C, "A test */ of\ntables.").expect("a table");
        let main = format!(
            "#include <stdio.h>\n#include \"table.h\"\nstatic const uint64_t SIZES[] = {{ {} }};\nint main(void) {{\n\
             for (size_t at = 0; at < sizeof SIZES / sizeof *SIZES; at++)\n\
             printf(\"%llu\\n\", (unsigned long long)padded_size(SIZES[at]));\nreturn 0; }}\n",
            list("ull")
        );
        fs::write(folder.path().join("table.h"), source).expect("written");
        fs::write(folder.path().join("main.c"), main).expect("written");
        let arguments = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "main.c"];
        assert_eq!(printed(folder.path(), "gcc", &arguments), expected(&table));
    }
}

#[test]
fn rust_pads_every_size_as_the_table_does() {
    for table in tables() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = table_source(&table, SourceLanguage::Rust, "A test of\ntables.").expect("a table");
        let main = format!(
            "{source}\nfn main() {{\n    for size in [{}] {{\n        println!(\"{{}}\", padded_size(size));\n    }}\n}}\n",
            list("")
        );
        fs::write(folder.path().join("main.rs"), main).expect("written");
        assert_eq!(printed(folder.path(), "rustc", &["-Dwarnings", "main.rs"]), expected(&table));
    }
}

#[test]
fn other_policies_have_no_table() {
    assert_eq!(table_source(&PaddingPolicy::Padme, SourceLanguage::C, ""), None);
    assert_eq!(table_source(&PaddingPolicy::Table { buckets: Vec::new() }, SourceLanguage::Rust, ""), None);
}
