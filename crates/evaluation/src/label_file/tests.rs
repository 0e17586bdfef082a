//! Tests of label files and of the remarks on labels without a command.

use std::io::Write;

use super::*;

fn read(text: &str) -> Result<LabelFile, LabelFileError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    LabelFile::read(file.path())
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
    assert!(missed.contains("1 of 4 labels have no command within 2s: line 3 (1970-01-01T00:00:20Z)"), "{missed}");
    assert!(ambiguous.contains("1 of 4 labels are only near commands of other labels: line 5"), "{ambiguous}");
    assert_eq!(spurious, "1 of 3 commands have no label: 1970-01-01T00:00:50Z");
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
    assert!(read("time,on\n1,1\n2,0\n").unwrap_err().to_string().contains("line 3"));
    let missing = LabelFile::read(Path::new("no-such-folder/labels.csv")).unwrap_err().to_string();
    assert!(missing.starts_with("no-such-folder/labels.csv: "), "{missing}");
}

#[test]
fn tolerance_needs_a_unit_and_no_sign() {
    assert_eq!(tolerance("500ms").unwrap().nanoseconds(), 500_000_000);
    assert!(tolerance("2").is_err() && tolerance("-1s").is_err() && tolerance("99999999999999h").is_err());
}
