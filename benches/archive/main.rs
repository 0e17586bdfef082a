//! Writes captures for measurements, the same bytes for the same arguments, and measures how fast a file can be read
//! and scanned at best.
#![allow(clippy::print_stdout, reason = "a program of the benchmarks")]

mod least;
mod walk;

use std::fs::File;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Parser, Subcommand};
use support::traffic::{Connections, Shape, Traffic};
use walk::{BLOCK_BYTES, Walked, walk};

#[derive(Parser)]
#[command(about = "Captures to measure with")]
struct Arguments {
    #[command(subcommand)]
    work: Work,
}

#[derive(Subcommand)]
enum Work {
    /// Write a capture
    Write {
        /// Its content
        shape: Shape,
        /// Its length in bytes
        bytes: u64,
        /// The file to write
        file: PathBuf,
        /// Seed of the random numbers
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many connections the gateway has
        #[arg(long, default_value_t = 256)]
        flows: u32,
        /// How many of them are open at once; the others follow as these end
        #[arg(long, value_name = "FLOWS")]
        at_once: Option<u32>,
        /// When its first packet was captured, in seconds since the epoch
        #[arg(long, default_value_t = 1_767_600_000)]
        begins: u32,
    },
    /// Read files in blocks of 256 KiB, and do nothing with them
    Read {
        /// The files to read
        files: Vec<PathBuf>,
    },
    /// Walk over the packets of a capture and compare their addresses: the least work of any reader
    Walk {
        /// A capture that `write` has written
        file: PathBuf,
        /// The address to look for
        #[arg(long, default_value = "192.168.1.20")]
        address: Ipv4Addr,
    },
    /// Size the TLS records of a capture of shape `records`, and nothing else: the least work of sizing
    Size {
        /// A capture that `write` has written
        file: PathBuf,
        /// Where to write their frames
        #[arg(short, long, value_name = "FILE", default_value = "/dev/null")]
        output: PathBuf,
    },
}

/// Blocks are page-aligned: some processors take twice as long to copy pages of a file to an unaligned block.
const PAGE: usize = 4096;

fn main() -> io::Result<()> {
    match Arguments::parse().work {
        Work::Write { shape, bytes, file, seed, flows, at_once, begins } => {
            let at_once = at_once.unwrap_or(flows).clamp(1, flows.max(1));
            let mut traffic = Traffic::new(shape, seed, Connections { flows, at_once }, begins);
            let packets = traffic.write(File::create(file)?, bytes)?;
            println!("{packets} packets");
        }
        Work::Read { files } => {
            let (mut room, mut bytes, begin) = (vec![0; BLOCK_BYTES + PAGE], 0, Instant::now());
            let start = room.as_ptr().align_offset(PAGE);
            let block = &mut room[start..start + BLOCK_BYTES];
            for file in files {
                let mut file = File::open(file)?;
                loop {
                    match file.read(block)? {
                        0 => break,
                        count => bytes += count as u64,
                    }
                }
            }
            println!("{:.2} GB/s", bytes as f64 / begin.elapsed().as_secs_f64() / 1e9);
        }
        Work::Walk { file, address } => {
            let Walked { packets, of_address } = walk(File::open(file)?, address)?;
            println!("{packets} packets, {of_address} from or to {address}");
        }
        Work::Size { file, output } => {
            println!("{} records", least::size(File::open(file)?, File::create(output)?)?);
        }
    }
    Ok(())
}
