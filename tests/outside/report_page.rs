//! The page of `sizeleak report` in a real browser: drawn, sorted and read without a mouse, in both themes, narrow and on
//! paper, and without a request.

use std::env;
use std::process::Command;

use support::programs::{GATEWAY, example, root, sizeleak, stdout};
use support::tool;

#[test]
#[ignore = "second tier: needs node and chromium"]
fn the_page_works_in_a_browser_without_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let test = format!("{} --labels {} --gateway {GATEWAY}", example("test.pcap"), example("test.csv"));
    let answers = folder.path().join("answers.frames");
    stdout(&mut sizeleak(&format!("run pipeline.toml -q -o {}", answers.display())));
    let given = format!("{test} --model {} {} --quick -q", example("model.toml"), answers.display());
    stdout(&mut sizeleak(&format!("report {given} -o {}", page.display())));
    let mut check = Command::new("node");
    check.arg(root().join("tests/outside/report_page/check.mjs")).args([page.as_os_str(), "chromium".as_ref()]);
    // Where somebody wants to look at it.
    check.args(env::var_os("REPORT_PICTURES"));
    let said = String::from_utf8(tool::output(&mut check).unwrap()).unwrap();
    assert!(said.contains(" 0 faults"), "{said}");
    println!("{said}");
}
