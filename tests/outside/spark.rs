//! Archives on a Spark cluster: the rows of `sizeleak archive`, also where workers die, and nothing where captures are
//! damaged or an engine does not sort.

mod archive;

use std::path::Path;
use std::process::{Command, Output};
use support::tool;

use self::archive::{OTHER_GATEWAY, SECOND_GATEWAY, write_damaged, write_homes, write_models};
use serde_json::{Value, json};
use support::programs::{GATEWAY, root, sizeleak, stderr};

/// What `sizeleak archive` makes of the captures in a folder.
fn archive(captures: &Path, out: &Path, models: &[String]) -> Output {
    let mut command = sizeleak("archive");
    command.arg(captures).arg("-o").arg(out).args(["--gateway", &[GATEWAY, SECOND_GATEWAY, OTHER_GATEWAY].join(",")]);
    command.args(models.iter().flat_map(|model| ["--model", model])).output().unwrap()
}

/// What became of all cases on the cluster.
fn on_a_cluster(folder: &Path, models: &[String]) -> Value {
    let mut cases = Command::new("python3");
    cases.arg(root().join("tests/outside/spark/cases.py")).arg(folder).arg(env!("CARGO_BIN_EXE_sizeleak")).args(models);
    serde_json::from_slice(&tool::output(&mut cases).unwrap()).unwrap()
}

/// One test: a cluster takes seconds to start, and memory.
#[test]
#[ignore = "second tier: needs java and python3 with pyspark, pandas, pyarrow and msgpack"]
fn rows_are_those_of_archive_or_there_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let below = |name: &str| folder.path().join(name);
    write_homes(&below("homes"));
    write_damaged(&below("damaged"));
    let models = write_models(&below("models"));
    let whole = archive(&below("homes"), &below("archive"), &models);
    assert!(whole.status.success(), "{}", stderr(&whole));
    assert_eq!(archive(&below("damaged"), &below("damaged-archive"), &models).status.code(), Some(1));
    let cases = on_a_cluster(folder.path(), &models);
    workers_may_die(&cases["killed"]);
    damage_ends_the_job_by_name(&cases, folder.path());
    quarantine_keeps_what_archive_keeps(&cases["quarantine"], folder.path());
    disorder_is_found(&cases["unsorted"]);
    modules_are_asked_for(&cases);
    assert_eq!(cases["left"], json!([]), "nothing is left beside the results");
}

fn workers_may_die(case: &Value) {
    assert_eq!((&case["code"], &case["different"]), (&json!(0), &json!([])), "{case}");
    assert!(case["rows"] == 307 * 2 + 60 && case["answered"].as_u64() > Some(307 * 2), "{case}");
}

fn damage_ends_the_job_by_name(cases: &Value, folder: &Path) {
    let cut = folder.join("damaged/cut/1.pcap").display().to_string();
    let fault = cases["damaged"]["fault"].as_str().unwrap();
    assert!(fault.starts_with(&cut) && fault.contains("is cut at byte"), "{fault}");
    let wrong = cases["wrong option"]["fault"].as_str().unwrap();
    assert!(wrong.contains("kep"), "{wrong}");
    assert!(cases["damaged"]["wrote"] == false && cases["wrong option"]["wrote"] == false);
}

fn quarantine_keeps_what_archive_keeps(case: &Value, folder: &Path) {
    assert_eq!(case["different"], json!([]), "{case}");
    assert!(case["rows"].as_u64() > Some(300), "{case}");
    let path = |name: &str| folder.join("damaged").join(name).display().to_string();
    let aside: Vec<&str> = case["aside"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!(aside, [path("cut/1.pcap"), path("mixed/foreign.pcap"), path("mixed/text.pcap")]);
    assert!(case["said"].to_string().contains("text.pcap: is no capture"), "{case}");
}

fn disorder_is_found(case: &Value) {
    assert!(case["fault"].as_str().unwrap().contains("are not in order") && case["wrote"] == false, "{case}");
}

fn modules_are_asked_for(cases: &Value) {
    for said in [&cases["driver without modules"], &cases["without modules"]["fault"]] {
        let said = said.as_str().unwrap();
        assert!(said.contains("has no module") && said.contains("PYSPARK_PYTHON"), "{said}");
    }
}
