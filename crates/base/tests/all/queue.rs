//! Tests of `queue`.

use std::{cmp::Reverse, collections::BinaryHeap};

use proptest::prelude::*;
use unisono_base::queue::{Event, Queue};

proptest! {
    /// Compares the queue with a binary heap. Events are queued again, and may be in the past.
    #[test]
    fn pops_in_order(steps in prop::collection::vec((0u64..40, 0u8..4), 1..400)) {
        let (mut queue, mut heap) = (Queue::new(), BinaryHeap::new());
        let (mut now, mut stamp) = (0u64, 0);
        for (delta, action) in steps {
            if action == 0 {
                let next = queue.peek();
                let event = queue.pop();
                prop_assert_eq!(next, event);
                prop_assert_eq!(event, heap.pop().map(|Reverse(e)| e));
                let Some(event) = event else { continue };
                now = event.time;
                if delta % 3 == 0 {
                    let again = Event { time: now + delta / 3, ..event };
                    queue.push(again);
                    heap.push(Reverse(again));
                }
            } else {
                stamp += 1;
                let time = if delta == 39 { now.saturating_sub(7) } else { now + delta * delta / 4 };
                let event = Event { time, stamp, what: 0 };
                queue.push(event);
                heap.push(Reverse(event));
            }
        }
        while let Some(Reverse(event)) = heap.pop() {
            prop_assert_eq!(queue.pop(), Some(event));
        }
        prop_assert_eq!(queue.pop(), None);
    }
}
