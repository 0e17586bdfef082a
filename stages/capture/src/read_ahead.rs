//! Reads ahead on a thread of its own, so that decompression and parsing overlap.

use std::io::{self, Read};
use std::mem;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

const BLOCK_BYTES: usize = 128 << 10;

const BLOCKS: usize = 4;

pub(crate) struct ReadAhead {
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// Used blocks, for reuse.
    used: Sender<Vec<u8>>,
    block: Vec<u8>,
    position: usize,
}

impl ReadAhead {
    /// Starts reading `input`. Returns it as it is if no thread can be started.
    pub(crate) fn start(input: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        let (sender, blocks) = bounded(BLOCKS);
        let (used, free) = bounded(BLOCKS + 2);
        // The input goes to the thread by a channel: a thread that fails to start would drop it.
        let (hand_over, handed_over) = bounded(1);
        let work = move || {
            if let Ok(input) = handed_over.recv() {
                read(input, &sender, &free);
            }
        };
        match thread::Builder::new().name("read ahead".to_owned()).spawn(work) {
            Err(_) => input,
            Ok(_) => match hand_over.send(input) {
                Ok(()) => Box::new(Self { blocks, used, block: Vec::new(), position: 0 }),
                Err(refused) => refused.into_inner(),
            },
        }
    }
}

fn read(mut input: Box<dyn Read + Send>, blocks: &Sender<io::Result<Vec<u8>>>, free: &Receiver<Vec<u8>>) {
    loop {
        let mut block = free.try_recv().unwrap_or_default();
        block.resize(BLOCK_BYTES, 0);
        let read = loop {
            match input.read(&mut block) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let (block, is_last) = match read {
            Ok(count) => {
                block.truncate(count);
                (Ok(block), count == 0)
            }
            Err(error) => (Err(error), true),
        };
        if blocks.send(block).is_err() || is_last {
            return;
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position == self.block.len() {
            // The thread ends after the end of the input or an error.
            let Ok(next) = self.blocks.recv() else { return Ok(0) };
            let used = mem::replace(&mut self.block, next?);
            self.position = 0;
            let _kept = self.used.try_send(used);
        }
        let count = self.block.get(self.position..).unwrap_or_default().read(buffer)?;
        self.position += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns its bytes in pieces of a size, then an error if there is one.
    struct Pieces(Vec<u8>, usize, Option<io::ErrorKind>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(self.1).min(self.0.len());
            for (to, from) in buffer.iter_mut().zip(self.0.drain(..count)) {
                *to = from;
            }
            match self.2.take_if(|_| count == 0) {
                Some(kind) => Err(kind.into()),
                None => Ok(count),
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_and_the_final_error_arrive_in_order(
            bytes in prop::collection::vec(any::<u8>(), 0..2000), piece in 1usize..300, fails: bool,
        ) {
            let failure = fails.then_some(io::ErrorKind::InvalidData);
            let mut ahead = ReadAhead::start(Box::new(Pieces(bytes.clone(), piece, failure)));
            let mut read = Vec::new();
            let ended = ahead.read_to_end(&mut read).map_err(|error| error.kind());
            prop_assert_eq!(read, bytes);
            prop_assert_eq!(ended.err(), failure);
        }
    }

    #[test]
    fn an_endless_input_can_be_dropped() {
        drop(ReadAhead::start(Box::new(io::repeat(7))));
    }
}
