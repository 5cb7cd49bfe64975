//! Tests of `stored::runs`.

use proptest::prelude::*;
use unisono_base::Span;
use unisono_schedule::internals::runs::Runs;

proptest! {
    #[test]
    fn runs_are_a_vector(edits in prop::collection::vec((0u32..20, 0u32..8, any::<bool>(), 0u32..5), 0..20)) {
        let mut runs = Runs::default();
        let mut plain: Vec<Option<u32>> = vec![None; 30];
        for (start, len, sets, value) in edits {
            let span = Span::new(start, len);
            let places = &mut plain[start as usize..(start + len) as usize];
            if sets {
                runs.set(span, value);
                places.fill(Some(value));
            } else {
                runs.update(span, || 100, |v| *v += value);
                places.iter_mut().for_each(|p| *p = Some(p.unwrap_or(100) + value));
            }
        }
        for start in 0..25 {
            for len in 0..5 {
                let mut found = vec![None; len as usize];
                for (from, to, &value) in runs.over(Span::new(start, len)) {
                    prop_assert!(from < to);
                    found[(from - u64::from(start)) as usize..(to - u64::from(start)) as usize].fill(Some(value));
                }
                prop_assert_eq!(&found[..], &plain[start as usize..(start + len) as usize]);
            }
        }
    }
}
