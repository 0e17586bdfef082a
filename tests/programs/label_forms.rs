//! What the guide shows of forms of labels holds.

use std::fs;

use support::home::run;
use support::programs::{root, sizeleak, stderr};

/// Each file of labels that docs/guide.md shows, and what the program says of it; `tests/cases/label_forms.md` has
/// more.
#[test]
fn the_forms_of_labels_in_the_guide_hold() {
    let page = fs::read_to_string(root().join("docs/guide.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut consoles = 0;
    for block in page.split("```").skip(1).step_by(2) {
        let (head, body) = block.split_once('\n').unwrap();
        let Some((language, name)) = head.split_once(' ') else { continue };
        if language != "console" {
            fs::write(folder.path().join(name), body).unwrap();
            continue;
        }
        let (line, expected) = body.split_once('\n').unwrap();
        let arguments = line.strip_prefix("$ sizeleak ").unwrap();
        let output = run(sizeleak(arguments).current_dir(folder.path()));
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
        assert_eq!(said, expected, "{line}");
        consoles += 1;
    }
    assert_eq!(consoles, 4);
}
