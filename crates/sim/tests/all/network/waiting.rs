//! Tests of `network::waiting`.

use std::collections::VecDeque;

use proptest::prelude::*;
use unisono_sim::internals::{
    packet::Packet,
    waiting::{Ring, Waiting},
};

proptest! {
    /// Compares with a direct implementation of queues and turns.
    #[test]
    fn inputs_take_turns(steps in prop::collection::vec((0u32..4, any::<bool>()), 1..300)) {
        let mut waiting = Waiting::new();
        (0..4).for_each(|link| waiting.add_queue(Some(link)));
        let mut ring = Ring::EMPTY;
        let mut queues = vec![VecDeque::new(); 4];
        let mut turns = VecDeque::new();
        let mut made = 0;
        for (input, push) in steps {
            if push || turns.is_empty() {
                made += 1;
                waiting.push(&mut ring, input, Packet::new(made, 0, 0, 0));
                if queues[input as usize].is_empty() {
                    turns.push_back(input);
                }
                queues[input as usize].push_back(made);
            } else {
                let (from, packet) = waiting.pop(&mut ring);
                let expected = turns.pop_front().unwrap();
                let message = queues[expected as usize].pop_front().unwrap();
                if !queues[expected as usize].is_empty() {
                    turns.push_back(expected);
                }
                prop_assert_eq!((from, packet.message), (Some(expected), message));
            }
            prop_assert_eq!(ring.is_empty(), turns.is_empty());
            let all: Vec<_> = waiting.all().map(|(at, p)| (at, p.message)).collect();
            let expected: Vec<_> =
                (0..4).flat_map(|q| queues[q as usize].iter().map(move |&m| (q, m))).collect();
            prop_assert_eq!(all, expected);
        }
    }
}
