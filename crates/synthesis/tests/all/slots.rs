//! Tests of `slots`.

use proptest::prelude::*;
use unisono_synthesis::internals::slots::{Reservation, SLOTS, Slots};

#[test]
fn messages_take_the_time_that_is_left() {
    // Each slot lasts one unit of time.
    let mut slots = Slots::new(vec![1.0, 2.0], SLOTS as f64);
    let (mut first, mut second) = (Reservation::default(), Reservation::default());
    assert_eq!(slots.fit(&[0], 0.5, &mut first), 1.5);
    slots.take(&[0], &first, 1.0);
    // Half of slot 0 and half of slot 1 are free.
    assert_eq!(slots.fit(&[0], 0.0, &mut second), 2.0);
    slots.take(&[0], &second, 1.0);
    // Both slots are full. Link 1 is twice as fast, but waits for link 0.
    assert_eq!(slots.fit(&[1], 0.0, &mut Reservation::default()), 0.5);
    assert_eq!(slots.fit(&[0, 1], 0.0, &mut Reservation::default()), 3.0);
    slots.take(&[0], &first, -1.0);
    assert_eq!(slots.fit(&[0, 1], 0.0, &mut Reservation::default()), 2.0);
}

proptest! {
    #[test]
    fn no_slot_holds_more_than_its_time(
        messages in prop::collection::vec((0.0_f64..30.0, 1_u32..8), 1..60),
        slot in 0.05_f64..0.4,
    ) {
        let rates = vec![1.0, 3.0, 0.5];
        let mut slots = Slots::new(rates.clone(), slot * SLOTS as f64);
        let mut all = Vec::new();
        for (ready, links) in messages {
            let links: Vec<u32> = (0..3).filter(|link| links >> link & 1 == 1).collect();
            let mut reserved = Reservation::default();
            let end = slots.fit(&links, ready, &mut reserved);
            let takes = links.iter().map(|&link| 1.0 / rates[link as usize]).fold(0.0, f64::max);
            prop_assert!(end >= ready + takes * (1.0 - 1e-6), "{end} {ready} {takes}");
            prop_assert!((reserved.shares.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            slots.take(&links, &reserved, 1.0);
            all.push((links, reserved));
        }
        let full = |busy: &[f64]| busy[..SLOTS - 1].iter().all(|&busy| busy <= slot * (1.0 + 1e-6));
        prop_assert!(slots.busy.chunks(SLOTS).all(full));
        all.iter().for_each(|(links, reserved)| slots.take(links, reserved, -1.0));
        prop_assert!(slots.busy.iter().all(|busy| busy.abs() < 1e-9));
    }
}
