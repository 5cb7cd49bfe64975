//! Tests of `verify::segments`.

use unisono_base::{Random, Span};
use unisono_schedule::internals::segments::{Memory, Segment, push_merged};

/// Compares random writes with an array that has one entry per element.
#[test]
fn memory_holds_what_was_written_last() {
    let mut random = Random(1);
    let mut draw = |below: u64| random.below(below);
    for _ in 0..200 {
        let (mut memory, mut places) = (Memory::default(), vec![None; 40]);
        for _ in 0..60 {
            let start = draw(40) as u32;
            let len = 1 + draw(u64::from(40 - start)) as u32;
            let half = len.div_ceil(2);
            let (v, w) = (draw(3) as u32, draw(3) as u32);
            let mut contents = Vec::new();
            push_merged(&mut contents, Segment { start: 0, len: half, value: v, index: start });
            if len > half {
                push_merged(&mut contents, Segment { start: half, len: len - half, value: w, index: start + half });
            }
            memory.overwrite(Span::new(start, len), &contents);
            for k in 0..len {
                places[(start + k) as usize] = Some((if k < half { v } else { w }, start + k));
            }
            let (from, some) = (draw(40) as u32, 1 + draw(8) as u32);
            let span = Span::new(from, some.min(40 - from));
            let mut found = vec![None; 40];
            let mut at = 0;
            for s in memory.touching(span) {
                assert!(s.len > 0 && s.start >= at && s.end() > span.start && u64::from(s.start) < span.end());
                at = s.end();
                (s.start..s.end()).for_each(|k| found[k as usize] = Some((s.value, s.index + k - s.start)));
            }
            for k in span.start..span.start + span.len {
                assert_eq!(found[k as usize], places[k as usize]);
            }
        }
    }
}
