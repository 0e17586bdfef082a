//! What is read arrives in order, and what is shared does not change.

use std::sync::Arc;

use proptest::prelude::*;
use sizeleak_frame::ReadBuffer;

/// Free space in front of the bytes of another buffer.
const HEADROOM: usize = 150;

proptest! {
    #[test]
    fn bytes_arrive_in_order_and_shared_buffers_do_not_change(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        steps in prop::collection::vec((0..3, 1usize..300, 0usize..300, any::<bool>()), 1..60),
    ) {
        let mut buffer = ReadBuffer::default();
        let (mut read, mut at, mut kept) = (0, 0, Vec::new());
        for (kind, room, used, keep) in steps {
            let next = &bytes[read..bytes.len().min(read + room)];
            match kind {
                0 => read += buffer.fill(&mut &*next, room).unwrap(),
                1 => {
                    let mut other = Arc::new([&[0; HEADROOM], next].concat());
                    let fits = buffer.unread().len() <= HEADROOM;
                    prop_assert_eq!(buffer.go_on_in(&mut other, HEADROOM..HEADROOM + next.len()), fits);
                    read += if fits { next.len() } else { 0 };
                }
                _ => {
                    let held = Arc::downgrade(buffer.shared());
                    buffer.move_out();
                    prop_assert!(!std::ptr::eq(held.as_ptr(), Arc::as_ptr(buffer.shared())));
                }
            }
            prop_assert_eq!(buffer.unread(), &bytes[at..read]);
            let used = used.min(buffer.unread().len());
            if keep {
                let start = buffer.unread().as_ptr().addr() - buffer.shared().as_ptr().addr();
                kept.push((Arc::clone(buffer.shared()), start, at, used));
            }
            buffer.consume(used);
            at += used;
        }
        for (shared, start, at, length) in kept {
            prop_assert_eq!(&shared[start..start + length], &bytes[at..at + length]);
        }
    }
}
