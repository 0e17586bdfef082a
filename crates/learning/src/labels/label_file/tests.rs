//! Tests of label files and of the remarks on labels without a command.

use std::io::Write;

use super::*;

fn read(text: &str) -> Result<LabelFile, LabelFileError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    LabelFile::read(file.path(), &LabelTimes::default())
}

fn tolerance(text: &str) -> Result<Tolerance, String> {
    text.parse()
}

#[test]
fn remarks_name_labels_and_commands_without_a_partner() {
    let second = 1_000_000_000;
    let labels = read("time,on\n10,1\n20,2\n30,1\n30.5,1\n").unwrap();
    let commands = [10 * second, 30 * second, 50 * second];
    let two = tolerance("2s").unwrap();
    let matching = labels.matching(&commands, two).unwrap();
    let [missed, ambiguous, spurious] = labels.unmatched(&matching, &commands, two).try_into().unwrap();
    assert!(missed.contains("1 of 4 labels has no command within 2s: line 3 (1970-01-01T00:00:20Z)"), "{missed}");
    assert!(ambiguous.contains("1 of 4 labels is only near commands of other labels: line 5"), "{ambiguous}");
    assert_eq!(spurious, "1 of 3 commands has no label: 1970-01-01T00:00:50Z");
}

#[test]
fn remarks_name_the_first_few_and_count_the_rest() {
    let many: Vec<i64> = (0..9).map(|at| at * 10_000_000_000).collect();
    let labels = read("time,on\n0,1\n").unwrap();
    let matching = labels.matching(&many, tolerance("1s").unwrap()).unwrap();
    let remarks = labels.unmatched(&matching, &many, tolerance("1s").unwrap());
    assert!(remarks[0].starts_with("8 of 9 commands") && remarks[0].ends_with("and 3 more"), "{remarks:?}");
}

#[test]
fn labels_without_any_match_are_an_error() {
    let labels = read("time,on\n10,1\n").unwrap();
    let two = tolerance("2s").unwrap();
    let error = labels.matching(&[90_000_000_000], two).unwrap_err().to_string();
    assert!(error.contains("00:00:10Z") && error.contains("00:01:30Z"), "{error}");
    assert!(labels.matching(&[], two).unwrap_err().to_string().contains("no command in the captures"));
}

#[test]
fn errors_name_the_file_and_the_line() {
    assert!(read("time,on\n").unwrap_err().to_string().contains("no row"));
    assert!(read("time,on\n1,1\n2,x\n").unwrap_err().to_string().contains("line 3"));
    let missing =
        LabelFile::read(Path::new("no-such-folder/labels.csv"), &LabelTimes::default()).unwrap_err().to_string();
    assert!(missing.starts_with("no-such-folder/labels.csv: "), "{missing}");
}

const SECOND: i64 = 1_000_000_000;

/// A label file of single `on` at these seconds.
fn labels_at(seconds: impl Iterator<Item = i64>) -> LabelFile {
    read(&seconds.fold("time,on\n".to_owned(), |text, second| text + &format!("{second},1\n"))).unwrap()
}

/// Times at distances that never repeat.
fn irregular() -> impl Iterator<Item = i64> {
    (0..20).map(|at| 1_767_600_000 + 37 * at + at * at % 17)
}

#[test]
fn a_shifted_clock_is_corrected_and_named() {
    let commands: Vec<i64> = irregular().map(|second| second * SECOND).collect();
    let labels = labels_at(irregular().map(|second| second - 23));
    let two = tolerance("2s").unwrap();
    let matching = labels.matching(&commands, two).unwrap();
    assert_eq!(matching.pairs.len(), 20);
    assert!(labels.check_use(&matching, &commands, two).is_ok());
    let remarks = labels.unmatched(&matching, &commands, two);
    assert!(
        remarks[0].contains("labels are 23.0 s behind the capture: 20 of 20 labels match, 1 without"),
        "{remarks:?}"
    );
    assert_eq!(labels.aligned(&commands, two).times(), commands);
    // Some of the labels, or of the commands, do not change what is known of the clock.
    let aligned = labels.aligned(&commands, two);
    assert_eq!(aligned.subset(&[3]).matching(&commands[..4], two).unwrap().pairs, [(0, 3)]);
}

#[test]
fn a_given_offset_is_used_without_an_estimate() {
    let commands: Vec<i64> = irregular().map(|second| second * SECOND).collect();
    let two = tolerance("2s").unwrap();
    let labels =
        LabelFile { offset: Some(LabelOffset::By(10 * SECOND)), ..labels_at(irregular().map(|second| second - 23)) };
    let error = labels.matching(&commands, two).and_then(|matching| labels.check_use(&matching, &commands, two));
    assert!(error.unwrap_err().to_string().contains("`--label-offset`"));
    let labels = LabelFile { offset: Some(LabelOffset::By(23 * SECOND)), ..labels };
    let matching = labels.matching(&commands, two).unwrap();
    let remarks = labels.unmatched(&matching, &commands, two);
    assert!(remarks[0].contains("+23.0 s is added to all times, as given"), "{remarks:?}");
}

#[test]
fn labels_of_which_most_are_unused_are_refused_with_the_reason() {
    let two = tolerance("2s").unwrap();
    let unused = |labels: &LabelFile, commands: &[i64]| {
        let checked = labels.matching(commands, two).and_then(|found| labels.check_use(&found, commands, two));
        checked.unwrap_err().to_string()
    };
    let commands: Vec<i64> = irregular().map(|second| second * SECOND).collect();
    // Labels of other moments.
    let others = labels_at(irregular().map(|second| 1_767_600_000 + (second % 1_767_600_000) * 131 % 650));
    let error = unused(&others, &commands);
    assert!(error.contains("no shift of their clock up to 26 h helps") && error.contains("gateway"), "{error}");
    // A capture of the last two labels.
    let error = unused(&labels_at(irregular()), &commands[18..]);
    assert!(error.contains("only 2 of its 20 labels") && error.contains("18 of them lie outside"), "{error}");
    // At equal distances.
    let regular: Vec<i64> = (0..20).map(|at| 60 * at * SECOND).collect();
    let error = unused(&labels_at((0..20).map(|at| 60 * at + 10)), &regular);
    assert!(error.contains("fits as well as") && error.contains("`--label-offset`"), "{error}");
}

#[test]
fn labels_beyond_the_inventory_are_left_out_by_line() {
    let inventory = Inventory::from_toml("[[device]]\nname = \"plug\"\ncount = 1\nactions = [\"on\"]\n").unwrap();
    let labels = read("time,on,dance\n1,1,0\n2,2,0\n3,0,1\n4,0,0\n").unwrap().within(Some(&inventory)).unwrap();
    assert_eq!(labels.labels().actions, ["on"]);
    assert_eq!(labels.labels().rows.iter().map(|row| row.line).collect::<Vec<_>>(), [2, 5]);
    let times = labels.times();
    let two = tolerance("2s").unwrap();
    let remarks = labels.unmatched(&labels.matching(&times, two).unwrap(), &times, two);
    assert!(remarks[0].contains("1 of 4 labels is left out") && remarks[0].contains("`dance`"), "{remarks:?}");
    assert!(remarks[0].contains("line 4") && remarks[1].contains("too few devices") && remarks[1].contains("line 3"));
    let error = read("time,dance\n1,1\n").unwrap().within(Some(&inventory)).unwrap_err().to_string();
    assert!(error.contains("`dance`") && error.contains("inventory"), "{error}");
    let error = read("time,on\n1,2\n").unwrap().within(Some(&inventory)).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("no label remains"), "{error}");
}

#[test]
fn labels_to_the_minute_have_a_wide_tolerance_unless_one_is_given() {
    let labels = read("time,on\n60,1\n120,1\n").unwrap();
    assert_eq!(labels.tolerance(None), Tolerance::OF_MINUTES);
    assert_eq!(labels.tolerance(Some(Tolerance::USUAL)), Tolerance::USUAL);
    let times = [60 * SECOND, 150 * SECOND];
    let remarks =
        labels.unmatched(&labels.matching(&times, Tolerance::OF_MINUTES).unwrap(), &times, Tolerance::OF_MINUTES);
    assert!(remarks[0].contains("no seconds") && remarks[0].contains("1m 30s"), "{remarks:?}");
    assert_eq!(read("time,on\n60,1\n121,1\n").unwrap().tolerance(None), Tolerance::USUAL);
}
