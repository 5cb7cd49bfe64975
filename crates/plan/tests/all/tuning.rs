//! The choices of `unisono tune`, for invented times: there are no cliffs between numbers of ranks, and there is one
//! boundary between two sizes.

mod proposals;

use std::{collections::BTreeMap, sync::Arc};

use proptest::{collection::vec, option, prelude::*};
use unisono_collective::Kind;
use unisono_machine::Machine;
use unisono_plan::tuning::{
    CLEARLY, Cell, Contender, Family, Measured, Times, between, boundary, choose, chosen, deciding, propose,
};

const SIZES: usize = 5;
const NAMES: [&str; 3] = ["a", "b", "c"];
const LIBRARY: Contender = Contender::Library;

fn seconds() -> impl Strategy<Value = f64> {
    prop_oneof![1e-7..1e-1, (-7.0..-1.0).prop_map(|power: f64| 10_f64.powf(power))]
}

fn times(library: &[f64], others: &[(&'static str, &[Option<f64>])]) -> Times {
    let own = (LIBRARY, library.iter().copied().map(Some).collect());
    others.iter().map(|(name, column)| (Contender::Algorithm(name), column.to_vec())).chain([own]).collect()
}

fn sure(name: &'static str, column: &[f64]) -> Times {
    [(Contender::Algorithm(name), column.iter().copied().map(Some).collect())].into()
}

/// Draws the deciding times on one number of ranks.
fn end() -> impl Strategy<Value = Times> {
    (vec(seconds(), SIZES), vec(vec(option::of(seconds()), SIZES), NAMES.len())).prop_map(|(library, columns)| {
        let others: Vec<_> = NAMES.iter().copied().zip(columns.iter().map(Vec::as_slice)).collect();
        times(&library, &others)
    })
}

/// Deciding times on two numbers of ranks, and a model's times on all numbers from the first to the last.
#[derive(Clone, Debug)]
struct Table {
    first: u32,
    last: u32,
    low: Times,
    high: Times,
    models: BTreeMap<u32, Times>,
}

impl Table {
    fn between(&self, ranks: u32) -> Times {
        let models = [self.first, self.last, ranks].map(|n| &self.models[&n]);
        between(ranks, (self.first, &self.low), (self.last, &self.high), models)
    }

    fn times(&self, ranks: u32) -> Times {
        match ranks {
            n if n == self.first => self.low.clone(),
            n if n == self.last => self.high.clone(),
            n => self.between(n),
        }
    }
}

prop_compose! {
    fn tables()(
        first in 2_u32..=40,
        more in 1_u32..=30,
        low in end(),
        high in end(),
        // The times of a model with steps, such as steps at powers of two.
        steps in vec(vec(seconds(), 4), NAMES.len()),
    ) -> Table {
        let column = |n: u32, steps: &[f64]| {
            let time = |size| Some(steps[n as usize % 4] * f64::from(size + 1_u32) * f64::from(n).log2());
            (0..u32::try_from(SIZES).unwrap()).map(time).collect::<Vec<_>>()
        };
        let of = |n| NAMES.iter().zip(&steps).map(|(name, s)| (Contender::Algorithm(name), column(n, s))).collect();
        Table { first, last: first + more, low, high, models: (first..=first + more).map(|n| (n, of(n))).collect() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(300)))]

    /// At n + 1 ranks, the choice takes at most `CLEARLY` times as long as the contender chosen for n, if that serves.
    #[test]
    fn no_cliff_between_neighbouring_numbers_of_ranks(table in tables()) {
        let times: BTreeMap<u32, Times> = (table.first..=table.last).map(|n| (n, table.times(n))).collect();
        let chosen: BTreeMap<u32, _> = times.iter().map(|(&n, times)| (n, choose(times))).collect();
        for n in table.first..table.last {
            for (here, there) in [(n, n + 1), (n + 1, n)] {
                for size in 0..SIZES {
                    let mine = times[&there][&chosen[&there][size]][size].unwrap();
                    let theirs = times[&there].get(&chosen[&here][size]).and_then(|column| column[size]);
                    prop_assert!(theirs.is_none_or(|theirs| mine <= CLEARLY * theirs * (1.0 + 1e-12)));
                    // The same holds for the library.
                    prop_assert!(mine <= CLEARLY * times[&there][&LIBRARY][size].unwrap() * (1.0 + 1e-12));
                }
            }
        }
    }

    #[test]
    fn interpolated_times_meet_the_measured_ones(table in tables()) {
        for n in table.first + 1..table.last {
            for (size, time) in table.between(n)[&LIBRARY].iter().enumerate() {
                let (time, a, b) = (time.unwrap(), table.low[&LIBRARY][size].unwrap(), table.high[&LIBRARY][size].unwrap());
                prop_assert!(a.min(b) * (1.0 - 1e-9) <= time && time <= a.max(b) * (1.0 + 1e-9));
            }
        }
    }

    #[test]
    fn ties_and_noise_do_not_make_islands(pairs in vec((seconds(), seconds()), 1..=12)) {
        let (library, schedule): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let optional: Vec<_> = schedule.iter().copied().map(Some).collect();
        let chosen = choose(&times(&library, &[("a", &optional)]));
        let time = |name, size: usize| if name == LIBRARY { library[size] } else { schedule[size] };
        for (size, &name) in chosen.iter().enumerate() {
            prop_assert!(time(name, size) <= CLEARLY * library[size].min(schedule[size]));
        }
        // A contender that is chosen for one size only must gain more than the cost of two changes.
        for (size, around) in chosen.windows(3).enumerate() {
            if around[0] == around[2] && around[0] != around[1] {
                prop_assert!(time(around[0], size + 1) >= time(around[1], size + 1) * CLEARLY * (1.0 - 1e-12));
            }
        }
    }

    #[test]
    fn a_boundary_lies_between_its_sizes(
        first in 1_u64..=1_000_000, more in 1_u64..=1_000_000, a in seconds(), b in seconds(), c in seconds(), d in seconds(),
    ) {
        let at = boundary((first, first + more), (a, b), (c, d));
        prop_assert!(first <= at && at < first + more);
    }
}

#[test]
fn a_model_without_steps_bends_the_interpolation() {
    // The measured time is twice the model's time on 4 ranks, and equals it on 16 ranks. 8 is in the middle by
    // logarithms.
    let (low, high) = (times(&[9.0], &[("a", &[Some(2.0)])]), times(&[9.0], &[("a", &[Some(2.0)])]));
    let models = [1.0, 2.0, 5.0].map(|time| sure("a", &[time]));
    let found = between(8, (4, &low), (16, &high), models.each_ref());
    assert!((found[&Contender::Algorithm("a")][0].unwrap() - 5.0 * 2_f64.sqrt()).abs() < 1e-12);
}

#[test]
fn what_wins_nowhere_wins_nowhere_between() {
    let ends = times(&[1.0], &[("a", &[Some(1.0)])]);
    let models = [1.0, 1.0, 0.1].map(|time| sure("a", &[time]));
    assert_eq!(choose(&between(5, (4, &ends), (6, &ends), models.each_ref())), [LIBRARY]);
}

#[test]
fn the_library_stays_where_nothing_is_clearly_faster() {
    assert_eq!(deciding(0.90, 6, 6, 1.0), 0.90);
    assert_eq!(deciding(0.90, 4, 6, 1.0), 1.0);
    assert_eq!(deciding(0.96, 6, 6, 1.0), 1.0);
    assert_eq!(choose(&times(&[1.0; 2], &[("a", &[Some(1.0); 2])])), [LIBRARY; 2]);
    let around = [Some(0.5), Some(1.0), Some(0.5)];
    assert_eq!(choose(&times(&[1.0; 3], &[("a", &around)])), [Contender::Algorithm("a"); 3]);
}

#[test]
fn regions_meet_where_both_take_equally_long() {
    // In powers of ten, the first choice takes 1 and 4, the second 2 and 2. They cross at a third of the logarithmic
    // distance from 4 to 256 bytes.
    assert_eq!(boundary((4, 256), (10.0, 10_000.0), (100.0, 100.0)), 16);
}

/// In a measurement of an allreduce on 4 and 8 ranks, recursive doubling is faster for short vectors and the library
/// otherwise: each number of ranks from 4 to 8 has regions that cover all sizes once.
#[test]
fn regions_cover_all_sizes_of_each_number_of_ranks() {
    let machine = Machine::preset("archer").unwrap();
    let counts = vec![2, 256, 1 << 18];
    let cell = |ranks: u32, at: usize| {
        let plan =
            propose(Kind::Allreduce, &machine, ranks, counts[at], "recursive-doubling", None).unwrap().map(Arc::new);
        assert!(plan.is_some());
        let library = Measured { plan: None, seconds: 1e-5, won: 0, effective: true };
        let seconds = [0.5e-5, 0.6e-5, 3e-5][at];
        Cell { rounds: 6, contenders: vec![library, Measured { plan, seconds, won: 6, effective: true }] }
    };
    let cells: BTreeMap<u32, Vec<Cell>> =
        [4, 8].map(|ranks| (ranks, (0..3).map(|at| cell(ranks, at)).collect())).into();
    let doubling = Contender::Algorithm("recursive-doubling");
    assert_eq!(chosen(&cells[&4]), [doubling, doubling, LIBRARY]);
    let family =
        Family { kind: Kind::Allreduce, machine: &machine, per_node: 6, counts: counts.clone(), best: true, cells };
    let found = family.regions().unwrap();
    for ranks in 4..=8 {
        let of: Vec<_> = found.iter().filter(|region| region.ranks == ranks).collect();
        assert_eq!((of[0].first_bytes, of.last().unwrap().last_bytes), (0, None));
        assert!(of.windows(2).all(|pair| pair[0].last_bytes.map(|last| last + 1) == Some(pair[1].first_bytes)));
        assert!(of.iter().all(|region| region.measured == (ranks % 4 == 0) && region.per_node == ranks.min(6)));
        assert_eq!(of[0].plan.as_ref().unwrap().problem.collective.ranks, ranks);
        assert!(of.last().unwrap().plan.is_none());
    }
    // The boundary is between the second and the third size.
    let at = found[0].last_bytes.unwrap();
    assert!((4 * 256..4 << 18).contains(&at), "{at}");
    // If the first size was not measured, the library serves calls below the second size.
    let longer = Family {
        counts: counts[1..].to_vec(),
        cells: family.cells.iter().map(|(&ranks, of)| (ranks, of[1..].to_vec())).collect(),
        ..family
    };
    for of in longer.regions().unwrap().chunk_by(|a, b| a.ranks == b.ranks) {
        assert_eq!((of[0].first_bytes, of[0].last_bytes), (0, Some(4 * 256 - 1)));
        assert!(of[0].plan.is_none() && of[1].plan.is_some());
        assert!(of.windows(2).all(|pair| pair[0].last_bytes.map(|last| last + 1) == Some(pair[1].first_bytes)));
    }
}
