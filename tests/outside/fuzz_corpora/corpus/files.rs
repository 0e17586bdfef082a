//! Files that people write or that `learn` writes: models, labels, inventories, pipelines. Good ones, and ones that
//! reach the limits.

use std::fmt::Write;

type Inputs = Vec<(&'static str, Vec<u8>)>;

fn named<const N: usize>(inputs: [(&'static str, String); N]) -> Inputs {
    inputs.into_iter().map(|(name, text)| (name, text.into_bytes())).collect()
}

const INVENTORY: &str = "[[device]]\nname = \"plug\"\ncount = 12\nactions = [\"on\", \"off\"]\n\
     [[device]]\nname = \"lamp\"\ncount = 4\nactions = [\"on\", \"off\", \"dim\"]\n";

const MODEL: &str = "schema = 1\noverhead = 60\nk = 1\nstrength = 2.5\n\
     tuples = [[99, -1, 5], [100, 0, 10], [102, 1, 5], [160, 0, 1]]\n\
     action = [{ name = \"off\", size = 41 }, { name = \"on\", size = 40 }]\n\
     device = [{ name = \"plug\", count = 3, actions = [\"on\", \"off\"] }]\n\
     replies = { fixed = 0.0, per_action = 1.0, missing = 0.02, surplus = 0.01 }\n\
     [learned]\nmethod = \"robust\"\ncommands = 21\nversion = \"0\"\n";

const PLAINTEXT: &str = "basis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n";

pub(super) fn models() -> Inputs {
    let huge = MODEL.replace("size = 41", "size = 9223372036854775807").replace("count = 3", "count = 4294967295");
    let mut many = MODEL.replace("action = [{", "action = [{ name = \"a\", size = 1 }, {");
    many.push_str(PLAINTEXT);
    named([
        ("wire", format!("{MODEL}basis = \"wire\"\n")),
        ("plaintext", format!("{MODEL}{PLAINTEXT}")),
        ("without_inventory", format!("{MODEL}{PLAINTEXT}").replace("device = [", "#")),
        ("huge", format!("{huge}basis = \"wire\"\n")),
        ("not_a_number", format!("{MODEL}basis = \"wire\"\n").replace("2.5", "nan").replace("0.02", "-inf")),
        ("negative", format!("{MODEL}basis = \"wire\"\n").replace("size = 41", "size = -41")),
        ("action_without_device", many),
        ("newer", "schema = 2\n".to_owned()),
        ("names", format!("{MODEL}basis = \"wire\"\n").replace("plug", "\\u001b[31m\\\"\\n=1+1")),
    ])
}

pub(super) fn labels() -> Inputs {
    let mut wide = String::from("time");
    (0..300).for_each(|column| _ = write!(wide, ",a{column}"));
    named([
        ("epoch", "time,on,off\n1767600000.25,1,0\n-0.000000001,0,2\n".to_owned()),
        (
            "rfc3339",
            "\u{feff}time, on\r\n2026-01-05T08:00:00Z,1\r\n\r\n2026-01-05T08:00:00.123456789+01:00,3\r\n".to_owned(),
        ),
        ("quoted", "time,\"on,\"\"off\",\"=1+1\"\n1,1,1\n\"2\",1,0\n".to_owned()),
        ("far", "time,on\n9223372036.854775807,1\n-9223372036.854775808,1\n99999999999999999999,1\n".to_owned()),
        ("count", "time,on\n1,4294967296\n".to_owned()),
        ("wide", wide),
        ("twice", "time,on,on\n".to_owned()),
        ("open_quote", "time,on\n1,\"1\n2,1\n".to_owned()),
    ])
}

pub(super) fn inventories() -> Inputs {
    let kinds = |count: usize| {
        (0..count).fold(String::new(), |mut all, kind| {
            let actions: Vec<String> =
                (0..6).filter(|bit| kind >> bit & 1 == 1).map(|bit| format!("\"a{bit}\"")).collect();
            _ = write!(all, "[[device]]\nname = \"{kind}\"\ncount = 1\nactions = [\"a\", {}]\n", actions.join(", "));
            all
        })
    };
    named([
        ("home", INVENTORY.to_owned()),
        ("most_kinds", kinds(16)),
        ("too_many_kinds", kinds(17)),
        ("most_devices", INVENTORY.replace("12", "4294967295").replace("= 4", "= 4294967295")),
        ("nested", format!("a{}", " = [".repeat(200))),
        ("none", String::new()),
    ])
}

pub(super) fn pipelines() -> Inputs {
    let stage = |name: &str| format!("[[stage]]\nrun = \"{name}\"\n");
    let all = [
        "[pipeline]\nmode = \"processes\"\nqueue-depth = 16\nlatency-log = \"x.hlog\"\n".to_owned(),
        stage("capture") + "files = [\"home.pcap\"]\n",
        stage("flow-filter") + "gateway = [\"192.168.1.20\"]\nservice = [\"hub.example\"]\n",
        stage("record-sizer") + "hole-wait = \"3s\"\nmax-flows = 10\nsave = \"records.frames.zst\"\n",
        "[[stage]]\nname = \"mine\"\ncommand = [\"python3\", \"my.py\", \"--gap\", \"80\"]\n".to_owned(),
        stage("epsilon-corrector") + "model = \"m.toml\"\n",
        stage("decomposer") + "model = \"m.toml\"\nlimit = 20\n",
        stage("pruner") + "model = \"m.toml\"\nmode = \"learned\"\nkeep = 0.9\n",
    ];
    named([
        ("home", all.concat()),
        ("wrong_order", format!("{}{}", all[5], all[1])),
        ("unknown", stage("recrod-sizer") + "hole_wait = 3\n"),
        ("types", "stage = { run = 2 }\npipeline = []\n".to_owned()),
        ("depth", "[pipeline]\nqueue-depth = 9223372036854775807\n".to_owned() + &all[1]),
        ("times", stage("command-segmenter") + "gap = \"9223372036854775807h\"\nreply-within = \"-1ns\"\n"),
        ("dotted", "[[stage]]\nrun.run.run = \"a\"\n[pipeline.mode]\n".to_owned()),
    ])
}

/// Requests to the metrics server.
pub(crate) fn requests() -> Vec<(&'static str, Vec<u8>)> {
    let many_headers = ["GET /metrics HTTP/1.1\r\n", &"X: y\r\n".repeat(200), "\r\n"].concat();
    vec![
        ("scrape", b"GET /metrics HTTP/1.1\r\nHost: localhost:9464\r\nAccept: */*\r\n\r\n".to_vec()),
        ("foreign_host", b"GET /metrics HTTP/1.1\r\nHost: example.org\r\n\r\n".to_vec()),
        ("no_host", b"GET /metrics HTTP/1.0\r\n\r\n".to_vec()),
        ("other_method", b"POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 99\r\n\r\n".to_vec()),
        ("cut", b"GET /met".to_vec()),
        ("headers", many_headers.into_bytes()),
    ]
}
