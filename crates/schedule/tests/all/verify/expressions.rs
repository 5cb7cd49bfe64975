//! Tests of `verify::expressions`.

use std::collections::HashMap;

use unisono_schedule::internals::expressions::{END, expressions};

/// Compares random combinations and marks with a map, and the order of operands with their lowest ranks. Many
/// combinations share an operand, so the hash table grows.
#[test]
fn equal_operands_have_one_id() {
    let mut random = unisono_base::Random(1);
    let mut draw = |below: usize| random.below(below as u64) as u32;
    for swaps in [false, true] {
        let mut expressions = expressions(80, swaps);
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let mut lowest: Vec<u32> = (0..80).collect();
        for _ in 0..20_000 {
            let a = draw(expressions.count());
            let b = match draw(4) {
                0 => END | draw(3),
                1 => draw(expressions.count()),
                _ => draw(80),
            };
            let key = if b < END { expressions.key(if draw(2) == 0 { a } else { draw(80) }, b) } else { (a, b) };
            let found = expressions.find(key);
            assert_eq!(found, known.get(&key).copied(), "{key:?}");
            if found.is_none() {
                let id = expressions.add(key).unwrap();
                assert_eq!((id as usize, expressions.operands(id)), (expressions.count() - 1, Some(key)));
                known.insert(key, id);
                let [low_a, low_b] = [key.0, key.1].map(|id| lowest.get(id as usize).copied().unwrap_or(u32::MAX));
                lowest.push(low_a.min(low_b));
                let swapped = swaps && low_b < low_a;
                assert_eq!(expressions.written(id), Some(if swapped { (key.1, key.0) } else { key }));
            }
        }
        for (key, id) in known {
            assert_eq!(expressions.find(key), Some(id));
        }
    }
}
