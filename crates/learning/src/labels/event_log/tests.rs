//! Tests of logs in the forms that programs write.

use super::*;
use crate::labels::rows::{LabelForm, Labels};

const MAP: &str = "time = \"t\"\nentity = [\"entity_id\"]\nstate = \"s\"\ntogether = \"100ms\"\n[actions.\"lamp.*\"]\n\"*\" \
                   = \"dim\"\non = \"on\"\n[actions.plug]\non = \"on\"\n";

fn read(log: &str) -> Result<Labels, LabelError> {
    let map = Some(MAP.parse().unwrap());
    Labels::read_in(log.as_bytes(), &LabelForm { map, ..LabelForm::default() })
}

/// One history in every form that logs have.
#[test]
fn logs_are_read_alike() {
    let lists = r#"[[{"entity_id": "lamp.1", "s": "on", "t": 10, "more": [{"t": 9}]}, {"s": "40", "t": 12.05}],
        [{"entity_id": "plug", "s": "on", "t": 12}, {"s": "off", "t": 13}, {"s": "on", "t": 12}]]"#;
    let by_entity = r#"{"lamp.1": [{"s": "on", "t": 10}, {"s": "40", "t": 12.05}],
        "plug": [{"s": "on", "t": 12}, {"s": "off", "t": 13}]}"#;
    let lines = "{\"entity_id\": \"lamp.1\", \"s\": \"on\", \"t\": 10}\n\n{\"entity_id\": \"plug\", \"s\": \"on\", \"t\": 12}\n\
                 {\"entity_id\": \"lamp.1\", \"s\": 40, \"t\": 12.05}\n{\"entity_id\": \"plug\", \"s\": \"off\", \"t\": 13}\n";
    let table = "s;t;entity_id\non;12;plug\non;10;lamp.1\n40;12,05;lamp.1\noff;13;plug\n";
    for log in [lists, by_entity, lines, table] {
        let labels = read(log).unwrap();
        let count = |name: &str, row: usize| {
            labels.actions.iter().position(|action| action == name).map_or(0, |at| labels.rows[row].counts[at])
        };
        let times: Vec<i64> = labels.rows.iter().map(|row| row.time_ns / 1_000_000_000).collect();
        assert_eq!((times, count("on", 0), count("on", 1), count("dim", 1)), (vec![10, 12], 1, 1, 1), "{log}");
        assert!(
            labels.notes.join("\n").contains("1 of 4 events is no action by the map, and is left aside: `plug` off")
        );
    }
}

#[test]
fn rows_that_cannot_be_read_are_counted_in_a_note() {
    let error = |log: &str| read(log).unwrap_err().to_string();
    assert!(error("[]").contains("none of 0 rows is an action"));
    assert!(error("{\"t\": 1}\n").contains("none of 1 rows is an action by the map (0 have its keys"));
    let line = |at: i32| format!("{{\"entity_id\": \"plug\", \"s\": \"on\", \"t\": {at}}}\n");
    let lines: String = (0..30).map(line).collect();
    assert!(read(&format!("{lines}{{\"t\": \n")).unwrap().notes[0].contains("1 of 30 rows cannot be read"));
    let row = |at: i32| format!("{at},plug,on\n");
    let rows: String = (0..30).map(row).collect();
    let table = format!("t,entity_id,s\n{rows}31,plug\n");
    assert!(read(&table).unwrap().notes[0].contains("1 of 30 rows cannot be read"));
    assert!(error(&format!("{{\n{}", line(1))).contains("line 1: this is not JSON"));
    assert!(Labels::read(lines.as_bytes()).unwrap_err().is_perhaps_log());
}

/// The commands of a log by the map that is proposed for it, in UTC: seconds from 2026-01-05T08:00:00Z, and actions.
fn by_proposed_map(log: &str) -> Result<Vec<(f64, Vec<String>)>, LabelError> {
    let map = Labels::map_of_log(log.as_bytes())?;
    let map: crate::labels::LabelMap = map.in_words().parse().unwrap();
    let form = LabelForm { map: Some(map), zone: Some("UTC".parse().unwrap()), ..LabelForm::default() };
    let labels = Labels::read_in(log.as_bytes(), &form)?;
    let command = |row: &crate::labels::Label| {
        let done = labels.actions.iter().zip(&row.counts).filter(|(_, count)| **count > 0);
        ((row.time_ns - 1_767_600_000_000_000_000) as f64 / 1e9, done.map(|(name, _)| name.clone()).collect())
    };
    Ok(labels.rows.iter().map(command).collect())
}

/// `on` of a lamp after 36.657 s, `off` of a plug after 74.512 s: as each program writes it.
#[test]
fn logs_of_programs_are_read_by_the_map_that_is_proposed() {
    let influx = |kind: &str, number: i32, rest: &str| {
        format!(
            "#group,false,false,true,false,true\n#datatype,string,long,dateTime:RFC3339,{kind},string\n\
             #default,_result,,,,\n,result,table,_time,_value,entity_id\n,,{number},2026-01-05T08:{rest}\n\n"
        )
    };
    let two = influx("string", 0, "00:36.657Z,on,lamp") + &influx("string", 1, "01:14.512Z,off,plug");
    let published = "{\"tst\":\"2026-01-05T08:00:36.657000Z+0000\",\"topic\":\"z/lamp/set\",\"payload\":{\"state\":\"on\"}}\n\
                     {\"tst\":\"2026-01-05T09:01:14.512000+0100\",\"topic\":\"z/plug/set\",\"payload\":{\"state\":\"off\"}}\n";
    let websocket = r#"{"id": 24, "type": "result", "success": true, "result": {
        "light.lamp": [{"s": "on", "a": {"effects": ["x"]}, "lu": 1767600036.657}],
        "sensor.t": [{"s": "21.5", "lu": 1767600037}], "switch.plug": [{"s": "off", "lu": 1767600074.512}]}}"#;
    let smart_things = r#"{"items": [{"time": "2026-01-05T08:00:36.657Z", "deviceId": "d1", "deviceName": "Lamp",
        "attribute": "switch", "value": "on"}, {"time": "2026-01-05T08:01:14.512Z", "deviceId": "d2",
        "deviceName": "Plug", "attribute": "switch", "value": "off"}], "_links": {"next": {"href": "x"}}}"#;
    for log in [
        &*two,
        "name,tags,time,value\nswitch,id=lamp,1767600036657000000,on\nswitch,id=plug,1767600074512000000,off\n",
        "[{\"val\": \"on\", \"ts\": 1767600036657, \"ack\": true}, {\"val\": \"off\", \"ts\": 1767600074512, \"q\": 0}]",
        // Numbers among words are what a sensor measures.
        "[{\"val\": \"on\", \"ts\": 1767600036657}, {\"val\": 21.5, \"ts\": 1767600050000}, \
          {\"val\": \"off\", \"ts\": 1767600074512}]",
        "ts,id,val,ack\n1767600036657,hm.lamp,on,1\n1767600074512,hm.plug,off,1\n",
        "{\"_msgid\": \"0\", \"topic\": \"lamp\", \"payload\": \"on\", \"timestamp\": 1767600036657}\n\
         {\"_msgid\": \"1\", \"topic\": \"plug\", \"payload\": \"off\", \"timestamp\": 1767600074512}\n",
        published,
        "date,name,value\n2026-01-05 08:00:36.657 AM UTC,switch,on\n2026-01-05 08:01:14.512 AM UTC,switch,off\n",
        "\"Time\",\"Lamp\",\"Plug\"\n2026-01-05 08:00:36.657,on,off\n2026-01-05 08:01:14.512,off,\n",
        websocket,
        smart_things,
    ] {
        let found = by_proposed_map(log).unwrap_or_else(|error| panic!("{log}: {error}"));
        let times: Vec<f64> = found.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [36.657, 74.512], "{log}");
        assert!(found[0].1.contains(&"on".to_owned()) && found[1].1 == ["off"], "{log}: {found:?}");
    }
    let map = Labels::map_of_log(smart_things.as_bytes()).unwrap().in_words();
    assert!(map.contains("\"Lamp/switch\"") && map.contains("\"Plug/switch\""), "{map}");
    assert!(!Labels::map_of_log(websocket.as_bytes()).unwrap().in_words().contains("sensor.t"));
}

#[test]
fn logs_to_the_second_or_minute_and_afternoons_are_read() {
    let zigbee = "Jan 05 09:00:36 host compose[1426]: zigbee2mqtt  | [2026-01-05 08:00:30] info: \tz2m: started\n\
                  [2026-01-05 08:00:36] info: \tz2m:mqtt: MQTT publish: topic 'z/lamp', payload '{\"state\":\"ON\"}'\n";
    assert_eq!(by_proposed_map(zigbee).unwrap(), [(36.0, vec!["ON".to_owned()])]);
    // Topics of either kind, and a time that is no date of ISO 8601.
    let mixed = "{\"tst\":\"2026-01-05T08:00:36Z\",\"topic\":\"lamp\",\"payload\":{\"state\":\"on\"}}\n\
                 {\"tst\":\"2026-01-05T08:01:14Z\",\"topic\":\"plug\",\"payload\":\"off\"}\n";
    assert_eq!(by_proposed_map(mixed).unwrap().len(), 2);
    let oldest = "zigbee2mqtt:info 10/12/2026, 3:39:47 PM MQTT publish: topic 'z/lamp', payload '{\"state\":\"ON\"}'\n";
    assert!(by_proposed_map(oldest).is_err());
    let old = "debug 2026-01-05 08:01:14: Received MQTT message on 'z/lamp/set' with data '{\"state\":\"OFF\"}'\n";
    assert_eq!(by_proposed_map(old).unwrap(), [(74.0, vec!["OFF".to_owned()])]);
    let applet = "date,device,state\n\"January 5, 2026 at 08:00AM\",Lamp,on\n\"January 5, 2026 at 01:01PM\",Lamp,off\n";
    let times: Vec<f64> = by_proposed_map(applet).unwrap().iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [0.0, 18_060.0]);
    // An abbreviation is no zone.
    let eastern = "date,name,value\n2026-01-05 01:00:36.5 PM EST,switch,on\n";
    let form = |zone: Option<&str>| LabelForm {
        map: Labels::map_of_log(eastern.as_bytes()).ok(),
        zone: zone.map(|zone| zone.parse().unwrap()),
        ..LabelForm::default()
    };
    let fault = Labels::read_in(eastern.as_bytes(), &form(None)).unwrap_err().to_string();
    assert!(fault.contains("has no time zone"), "{fault}");
    let labels = Labels::read_in(eastern.as_bytes(), &form(Some("America/New_York"))).unwrap();
    assert_eq!(labels.rows[0].time_ns, 1_767_636_036_500_000_000);
}

#[test]
fn logs_of_unknown_form_are_refused_with_the_reason_and_an_example() {
    for (log, reason) in [
        ("a,b\n1,2\n", "`a`, `b`"),
        ("When,Who,What\n2026-01-05 08:00:36,lamp,on\n", "`When`"),
        ("\"January 5, 2026 at 08:00AM\",Lamp hall,on\n\"January 5, 2026 at 08:01AM\",Lamp hall,off\n", "no header"),
        ("name: switch\ntime value\n---- -----\n1 on\n", "`influx query --raw`"),
        ("Result: _result\nTable: keys: [_start, _stop]\n", "-format csv"),
    ] {
        let error = Labels::map_of_log(log.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("time = ") && !error.contains("-o map.toml"), "{error}");
    }
    for begin in ["PK\u{3}\u{4}xl/worksheets", "PK\u{3}\u{4}mimetypeapplication/vnd.oasis"] {
        let error = Labels::map_of_log(begin.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("save the sheet as CSV"), "{error}");
    }
    // A table of labels with a fault is none.
    assert!(Labels::map_of_log(&b"time,on,off\n1,1,0\n2,x,1\n"[..]).is_err());
    assert!(Labels::map_of_log(&b"time,action\nsoon,on\nlater,off\n"[..]).is_err());
}
