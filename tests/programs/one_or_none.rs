//! What is said where there is one thing of a kind, or none: one label, one command, one sort of label, no record.

use std::fs;
use std::path::Path;
use std::process::Output;

use support::damage::cut_packets;
use support::programs::{example, root, sizeleak, stderr, write};
use tempfile::TempDir;

/// The bundled labels of this many commands, in a folder of their own.
fn few_labels(name: &str, commands: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let all = fs::read_to_string(root().join(example(name))).unwrap();
    let few: Vec<&str> = all.lines().take(commands + 1).collect();
    write(folder.path(), "few.csv", few.join("\n") + "\n");
    folder
}

fn within(folder: &Path, arguments: &str) -> Output {
    let home = root().join(example(""));
    let arguments = arguments.replace("HOME/", &format!("{}/", home.display()).replace("//", "/"));
    sizeleak(&arguments).current_dir(folder).output().unwrap()
}

/// All that is printed, without the breaks of lines.
fn said(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stdout).into_owned() + " " + &stderr(output);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn one_label_is_one() {
    let folder = few_labels("learn.csv", 1);
    let read = said(&within(folder.path(), "labels few.csv"));
    assert!(read.contains("few.csv: 1 command at 2026-01-05T08:00:07.252829Z"), "{read}");
    let learned = within(folder.path(), "learn HOME/learn.pcap --labels few.csv --labelled-only -o model.toml");
    let learned = said(&learned);
    assert!(learned.contains("from 1 of 1 labelled command sizes"), "{learned}");
    assert!(!learned.contains("tell kinds apart"), "{learned}");
    let evaluated = "evaluate HOME/test.pcap --labels few.csv --model HOME/model.toml";
    let folder = few_labels("test.csv", 1);
    let evaluated = said(&within(folder.path(), evaluated));
    assert!(evaluated.contains("1 labelled command: 1 found") && evaluated.contains("306 commands unlabelled"));
    let measured = said(&within(folder.path(), "measure HOME/test.pcap --labels few.csv --gateway 192.168.1.20"));
    assert!(measured.contains("Nothing can be concluded from 1 labelled command"), "{measured}");
    assert!(!measured.contains("1 of 1 commands") && !measured.contains("V may be"), "{measured}");
}

#[test]
fn an_action_without_a_name_may_be_one_that_no_label_has() {
    let folder = few_labels("learn.csv", 12);
    let learn = "learn HOME/learn.pcap --labels few.csv --inventory HOME/inventory.toml -o model.toml";
    let learned = said(&within(folder.path(), learn));
    assert!(learned.contains("sizes were found with 12 labels"), "{learned}");
    assert!(learned.contains("1 of 7 actions have no name") && learned.contains("1 action has no name"), "{learned}");
    let named = "no labelled command has `colour`: it may be one of the actions without a name";
    assert!(learned.contains(named) && !learned.contains("will not be recognised"), "{learned}");
    // Most of these commands have no label.
    let audited = said(&within(folder.path(), "audit --model model.toml"));
    assert!(audited.contains("prior: learned from 192 commands home:"), "{audited}");
}

#[test]
fn three_labels_leave_much_unknown_and_that_is_said() {
    let folder = few_labels("learn.csv", 3);
    let learn = "learn HOME/learn.pcap --labels few.csv --labelled-only -o model.toml";
    let learned = said(&within(folder.path(), learn));
    assert!(learned.contains("whether their number depends on the number of actions is not known"), "{learned}");
    assert!(learned.contains("are right with a probability of less than 1 %"), "{learned}");
    let audited = said(&within(folder.path(), "audit --model model.toml"));
    assert!(!audited.contains("probability of 0 %"), "{audited}");
}

#[test]
fn labels_of_other_commands_do_not_blame_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let all = fs::read_to_string(root().join(example("test.csv"))).unwrap();
    let times = all.lines().skip(1).take(40).filter_map(|line| line.split(',').next());
    let same: Vec<String> = times.map(|time| format!("{time},colour")).collect();
    write(folder.path(), "same.csv", format!("time,action\n{}\n", same.join("\n")));
    let evaluate = "evaluate HOME/test.pcap --labels same.csv --model HOME/model.toml";
    let evaluated = said(&within(folder.path(), evaluate));
    assert!(evaluated.contains("the model or the labels are not of these commands"), "{evaluated}");
    let measured = said(&within(folder.path(), "measure HOME/test.pcap --labels same.csv --gateway 192.168.1.20"));
    assert!(measured.contains("all are the same") && !measured.contains("V may be"), "{measured}");
}

#[test]
fn no_record_is_no_sameness() {
    let folder = tempfile::tempdir().unwrap();
    let all = fs::read(root().join(example("test.pcap"))).unwrap();
    // The file's header, and its first packet, a question to a DNS server.
    let first = 24 + 16 + u32::from_le_bytes(all[32..36].try_into().unwrap()) as usize;
    write(folder.path(), "first.pcap", &all[..first]);
    let stripped = said(&within(folder.path(), "strip first.pcap --gateway 192.168.1.20 -o stripped.pcap"));
    assert!(
        stripped.contains("1 packet; 29 bytes are zero now") && stripped.contains("no record is found"),
        "{stripped}"
    );
    let stripped = said(&within(folder.path(), "strip HOME/test.pcap --gateway 192.168.1.20 -o stripped.pcap"));
    assert!(stripped.contains("the same records are found"), "{stripped}");
}

#[test]
fn a_handshake_that_was_cut_is_no_late_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let all = fs::read(root().join(example("test.pcap"))).unwrap();
    write(folder.path(), "cut.pcap", cut_packets(&all, 60));
    let surveyed = said(&within(folder.path(), "survey cut.pcap"));
    assert!(surveyed.contains("no handshake seen at its beginning"), "{surveyed}");
    assert!(surveyed.contains("at the beginning of 3 of 3 connections"), "{surveyed}");
}

#[test]
fn an_archive_without_an_answer_names_no_folder_of_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("captures")).unwrap();
    fs::copy(root().join(example("test.pcap")), folder.path().join("captures/test.pcap")).unwrap();
    let archived = within(folder.path(), "archive captures -o out --gateway 192.168.1.99 --model HOME/model.toml");
    let archived = said(&archived);
    assert!(archived.contains("0 answers") && !archived.contains("answers are in"), "{archived}");
}

#[test]
fn commands_of_no_whole_day_are_on_none() {
    let folder = tempfile::tempdir().unwrap();
    let run = "run HOME/test.pcap --model HOME/model.toml --until 2026-01-06T08:00:10Z -q -o one.frames";
    assert!(within(folder.path(), run).status.success());
    let learned = said(&within(folder.path(), "profile one.frames -o home.profile.toml"));
    assert!(learned.contains("1 command; 0 whole days are learned, by the clock of UTC"), "{learned}");
    let detected = said(&within(folder.path(), "detect one.frames --profile home.profile.toml"));
    assert!(detected.contains("1 answer is not after those of the profile, and was passed over"), "{detected}");
}

#[test]
fn times_from_a_start_of_their_own_are_no_dates() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "few.csv", "time,action\n5.679150,on\n3564.741491,off\n");
    let read = said(&within(folder.path(), "labels few.csv"));
    assert!(read.contains("few.csv: 2 commands from 5.67915 s to 3564.741491 s"), "{read}");
    assert!(read.contains("first command, line 2: 5.67915 s, 1 `on`") && !read.contains("1970"), "{read}");
    assert!(read.contains("`--label-offset start`"), "{read}");
    // With the time of their start, they are dates.
    let dated = said(&within(folder.path(), "labels few.csv --label-offset 495420h"));
    assert!(dated.contains("from 2026-07-08T12:00:05.67915Z") && !dated.contains("start"), "{dated}");
    write(folder.path(), "few.csv", "time,action\n0,on\n");
    assert!(said(&within(folder.path(), "labels few.csv")).contains("1 command at 0 s"));
}

#[test]
fn the_first_command_is_the_earliest() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "labels.csv", "time,on\n2026-01-05T09:00:00Z,1\n2026-01-05T08:00:00Z,2\n");
    let read = said(&within(folder.path(), "labels labels.csv"));
    assert!(read.contains("from 2026-01-05T08:00:00Z to 2026-01-05T09:00:00Z"), "{read}");
    assert!(read.contains("first command, line 3: 2026-01-05T08:00:00Z, 2 `on`"), "{read}");
}

#[test]
fn one_device_is_told_one_action() {
    let lamp = root().join("examples/lab/matter_lamp.toml").display().to_string();
    let audited = said(&sizeleak("audit --model").arg(lamp).output().unwrap());
    assert!(audited.contains("1 lamp; 6 actions; 6 commands of up to 1 action, which have 4 sizes"), "{audited}");
}

#[test]
fn the_limit_of_a_sequence_is_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = ["08:00", "12:00", "20:00"].map(|time| format!("2026-01-05T{time}:00Z,plug,on\n")).concat();
    write(folder.path(), "events.csv", format!("time,device,action\n{rows}"));
    let simulated = within(folder.path(), "simulate --sequence events.csv --frames -o home");
    let simulated = said(&simulated);
    assert!(simulated.contains("to learn from, 3 to test on"), "{simulated}");
    assert!(simulated.contains("the limit is not known of `--sequence`"), "{simulated}");
    assert!(!simulated.contains("first answer right"), "{simulated}");
}
