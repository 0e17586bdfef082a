//! Fits commands of a text file: `size;replies;counts` a line after a line of names.
use sizeleak_blind_fit::{Observation, Options, learn};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let (skip, take): (usize, usize) = (args[2].parse().unwrap(), args[3].parse().unwrap());
    let singles = args.get(4).is_some_and(|a| a.contains("singles"));
    let mute = args.get(4).is_some_and(|a| a.contains("mute"));
    let mut lines = text.lines();
    let names: Vec<String> = lines.next().unwrap().split(' ').map(str::to_owned).collect();
    let all: Vec<(Observation, Vec<u32>)> = lines
        .map(|line| {
            let mut parts = line.split(';');
            let size = parts.next().unwrap().parse().unwrap();
            let replies = parts.next().unwrap().split_whitespace().map(|r| r.parse().unwrap()).collect();
            let counts = parts.next().unwrap().split_whitespace().map(|r| r.parse().unwrap()).collect();
            (Observation { size, replies: (!mute).then_some(replies), counts: None }, counts)
        })
        .collect();
    let mut observations: Vec<Observation> = all.iter().skip(skip).take(take).map(|(o, _)| o.clone()).collect();
    if singles {
        for (observation, counts) in all.iter().take(14).filter(|(_, counts)| counts.iter().sum::<u32>() == 1) {
            observations.push(Observation { counts: Some(counts.clone()), ..observation.clone() });
        }
    }
    let names = if singles { names } else { vec![] };
    let start = std::time::Instant::now();
    match learn(&observations, &names, &Options::default()) {
        Ok(fit) => println!("{fit:?}"),
        Err(error) => println!("error: {error}"),
    }
    println!("{:?}", start.elapsed());
}
