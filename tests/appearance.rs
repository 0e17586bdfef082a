//! The clock and the colours of tables.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod programs;

use programs::{sizeleak, stderr, stdout};

const RUN: &str = "run pipeline.toml --quiet";

/// The output of the bundled pipeline with these options and variables.
fn printed(options: &str, variables: &[(&str, &str)]) -> String {
    let mut command = sizeleak(&format!("{RUN} {options}"));
    command.env_remove("TZ").envs(variables.iter().copied());
    String::from_utf8(stdout(&mut command)).unwrap()
}

#[test]
fn times_follow_the_selected_clock() {
    let east = [("TZ", "XYZ-5:30")];
    let line = |text: &str, at: usize| text.lines().nth(at).unwrap().to_owned();
    let utc = printed("", &[]);
    assert!(line(&utc, 0).starts_with("time (UTC)                  gateway "), "{utc}");
    assert!(line(&utc, 1).starts_with("2026-01-06 08:00:07.000000  192."), "{utc}");
    assert!(utc == printed("", &east) && utc == printed("--time utc", &east), "local time is not selected");
    let local = printed("--time local", &east);
    assert!(line(&local, 0).starts_with("time (local)                      gateway "), "{local}");
    assert!(line(&local, 1).starts_with("2026-01-06 13:30:07.000000+05:30  192."), "{local}");
    let rest = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().skip(2).collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(rest(&utc), rest(&local), "only the times differ");
}

#[test]
fn json_and_csv_do_not_depend_on_the_clock() {
    for format in ["ndjson", "csv"] {
        let plain = printed(&format!("--format {format}"), &[]);
        assert_eq!(plain, printed(&format!("--format {format} --time local"), &[("TZ", "XYZ-5:30")]));
        assert!(plain.contains("1767686407000000000"), "{plain}");
    }
}

#[test]
fn frames_subcommand_follows_the_selected_clock() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.frames");
    stdout(sizeleak(&format!("{RUN} --format frames -o")).arg(&saved));
    let mut shown = sizeleak("frames --kind session --time local");
    let shown = String::from_utf8(stdout(shown.arg(&saved).env("TZ", "XYZ+1"))).unwrap();
    assert!(shown.lines().count() == 4 && shown.lines().all(|line| line.contains("-01:00  flow ")), "{shown}");
}

#[test]
fn unknown_time_zone_is_an_error() {
    let output = sizeleak(&format!("{RUN} --time local")).env("TZ", "Nowhere/Land").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("the local time zone is not known"), "{}", stderr(&output));
}

#[test]
fn colours_need_a_terminal_or_an_option() {
    let plain = printed("", &[]);
    assert!(!plain.contains('\u{1b}'), "stdout is no terminal: {plain}");
    let coloured = printed("--color always", &[("NO_COLOR", "1")]);
    assert!(coloured.starts_with("\u{1b}[1mtime (UTC) "), "{coloured}");
    let likely = coloured.lines().nth(1).unwrap();
    assert!(likely.contains("\u{1b}[1m\u{1b}[32m      0.9") && likely.ends_with("1 timer\u{1b}[0m"), "{likely:?}");
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), plain, "colours change nothing else");
    let force = ("CLICOLOR_FORCE", "1");
    assert_eq!(printed("", &[force]), coloured);
    assert_eq!(printed("", &[force, ("NO_COLOR", "1")]), plain);
    assert_eq!(printed("--color never", &[force]), plain);
    assert!(!printed("--color always --format csv", &[]).contains('\u{1b}'), "only tables have colours");
}

#[test]
fn notices_have_a_colour_in_a_table() {
    let notices = printed("--color always --kind notice", &[]);
    assert!(!notices.is_empty() && notices.lines().all(|line| line.starts_with("\u{1b}[33mnotice ")), "{notices}");
}
