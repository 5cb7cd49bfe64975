//! Compares the engine with a direct implementation of the rules on random task graphs. Times must be equal to the
//! nanosecond.

use crate::{common, soak};

use unisono_base::{Random, TaskId, mix};
use unisono_cost::endpoint::{Goal, Prices, Receive, Send};
use unisono_lower::tasks::{ANY, Builder, Task, TaskGraph, pattern};
use unisono_sim::endpoint::{Options, Run, SimError, run};

/// Parameters of random graphs.
#[derive(Clone, Copy)]
struct Style {
    ranks: u64,
    messages: u64,
    places: u64,
    /// One in `wild` sources or tags is `ANY`, on average.
    wild: u64,
    edges: u64,
    sizes: &'static [u64],
}

/// Returns a graph. Most messages have a receive, each rank's tasks are in random order, and most edges lead forward.
fn random_graph(r: &mut Random, style: Style) -> TaskGraph {
    let ranks = 1 + r.below(style.ranks);
    let mut tasks: Vec<Vec<Task>> = vec![Vec::new(); ranks as usize];
    let place = |r: &mut Random, t: Task| t.on(r.below(style.places) as u8, r.below(style.places) as u8);
    for _ in 0..r.below(style.messages) + 1 {
        let (from, to) = (r.below(ranks), r.below(ranks));
        let bytes = style.sizes[r.below(style.sizes.len() as u64) as usize];
        let tag = r.below(3) as u32;
        let any = |r: &mut Random, n: u32| if r.below(style.wild) == 0 { ANY } else { n };
        let send = Task::send(to as u32, bytes, any(r, tag));
        let send = place(r, send);
        tasks[from as usize].push(send);
        if r.below(40) != 0 {
            let other = style.sizes[r.below(style.sizes.len() as u64) as usize];
            let receive = Task::receive(any(r, from as u32), if r.below(8) == 0 { other } else { bytes }, any(r, tag));
            let receive = place(r, receive);
            tasks[to as usize].push(receive);
        }
        if r.below(3) == 0 {
            let calc = Task::calc([0, 1, 700, 1000, 5000][r.below(5) as usize]);
            let calc = Task { nic: 0, ..place(r, calc) };
            tasks[from as usize].push(calc);
        }
    }
    let mut b = Builder::new();
    for tasks in &mut tasks {
        for i in (1..tasks.len()).rev() {
            tasks.swap(i, r.below(i as u64 + 1) as usize);
        }
        b.rank();
        let ids: Vec<TaskId> = tasks.iter().map(|&t| b.task(t)).collect();
        for later in 1..ids.len() {
            while r.below(10) < style.edges {
                let earlier = later - 1 - r.below(later.min(4) as u64) as usize;
                let (later, earlier) = if r.below(200) == 0 { (earlier, later) } else { (later, earlier) };
                if r.below(4) == 0 {
                    b.irequires(ids[later], ids[earlier]);
                } else {
                    b.requires(ids[later], ids[earlier]);
                }
            }
        }
    }
    b.finish().unwrap()
}

fn random_prices(r: &mut Random) -> Goal {
    let mut pick = |of: &[u64]| of[r.below(of.len() as u64) as usize];
    Goal {
        L: pick(&[0, 1, 1000, 2500, 2500]),
        o: pick(&[0, 4, 200, 1500, 1500]),
        g: pick(&[0, 5, 1000, 1000, 4000]),
        G: pick(&[0, 1, 6, 6]),
        O: pick(&[0, 0, 2, 9]),
        S: pick(&[0, 500, 65_535, u64::MAX]),
        ..Goal::default()
    }
}

/// Prices that let messages overtake each other: some ranks are farther away, and long messages fly longer.
struct Far(Goal);

fn far(from: u32, to: u32, bytes: u64) -> u64 {
    u64::from(7 * from + 3 * to) % 5 * 700 + bytes % 3 * 1100
}

impl Prices for Far {
    fn ties_cpus(&self) -> bool {
        false
    }

    fn send(&self, from: u32, to: u32, bytes: u64) -> Send {
        let price = self.0.send(from, to, bytes);
        Send { flight: price.flight + far(from, to, bytes), ..price }
    }

    fn receive(&self, from: u32, to: u32, bytes: u64) -> Receive {
        self.0.receive(from, to, bytes)
    }

    fn reduce(&self, rank: u32, bytes: u64) -> u64 {
        self.0.reduce(rank, bytes)
    }

    fn eager_bytes(&self) -> u64 {
        self.0.eager_bytes()
    }

    fn may_wrap(&self, bytes: u64) -> bool {
        self.0.may_wrap(bytes)
    }
}

/// Compares a run with the oracle. Returns true if the graph runs to its end.
fn compare(graph: &TaskGraph, prices: &Goal, name: &str) -> bool {
    let found = run(graph, &Far(*prices), &Options::default());
    agree(found, common::simulate_far(graph, prices, far), &format!("{name}, far, {prices:?}"));
    let found = run(graph, prices, &Options::default());
    agree(found, common::simulate(graph, prices), &format!("{name}, {prices:?}"))
}

fn agree(found: Result<Run, SimError>, expected: Result<(Vec<u64>, u64), u64>, name: &str) -> bool {
    match (found, expected) {
        (Ok(run), Ok((finish, events))) => {
            assert_eq!(run.finish, finish, "{name}");
            assert_eq!(run.events, events, "{name}");
            true
        }
        (Err(SimError::Deadlock { count, .. }), Err(left)) => {
            assert_eq!(count, left, "{name}");
            false
        }
        (found, expected) => panic!("{name}: found {found:?}, expected {expected:?}"),
    }
}

fn many(seed: u64, count: u64, style: Style) {
    let mut finished = 0;
    for n in 0..count {
        let mut r = Random(mix(seed) ^ n);
        let graph = random_graph(&mut r, style);
        let prices = random_prices(&mut r);
        finished += u64::from(compare(&graph, &prices, &format!("graph {seed}/{n}")));
    }
    // Enough graphs must run to their end, so that not only deadlocks are compared.
    assert!(finished > count / 10, "only {finished} of {count} ran to their end");
}

const PLAIN: Style =
    Style { ranks: 6, messages: 40, places: 1, wild: 1_000_000, edges: 3, sizes: &[1, 8, 1000, 70_000] };

#[test]
fn plain_graphs() {
    many(1, 2500, PLAIN);
}

#[test]
fn wildcards_several_cpus_and_zero_bytes() {
    many(2, 2500, Style { places: 3, wild: 5, sizes: &[0, 0, 1, 8, 600, 70_000], ..PLAIN });
}

#[test]
fn zero_bytes_that_take_no_time() {
    many(3, 2000, Style { sizes: &[0], edges: 1, ..PLAIN });
}

#[test]
fn many_events_wait_for_one_rank() {
    let count = soak::cases(400).into();
    many(4, count, Style { ranks: 3, messages: 500, edges: 0, wild: 30, sizes: &[1, 8, 600], ..PLAIN });
    many(5, count, Style { ranks: 3, messages: 500, edges: 1, places: 2, sizes: &[1, 8, 600], ..PLAIN });
}

#[test]
fn patterns() {
    for prices in [
        Goal::default(),
        Goal { L: 1000, o: 200, g: 5, G: 1, ..Goal::default() },
        Goal { L: 3700, o: 1200, g: 900, G: 5, O: 2, S: 1_000_000_000, ..Goal::default() },
        Goal { S: 0, ..Goal::default() },
    ] {
        for ranks in [1, 2, 3, 8, 13, 32] {
            for bytes in [0, 8, 100_000] {
                let name = format!("{ranks} ranks, {bytes} bytes");
                compare(&pattern::dissemination(ranks, bytes).unwrap(), &prices, &name);
                compare(&pattern::binomial_reduce(ranks, bytes).unwrap(), &prices, &name);
                compare(&pattern::linear_alltoall(ranks, bytes).unwrap(), &prices, &name);
                compare(&pattern::linear_gather(ranks, bytes).unwrap(), &prices, &name);
                compare(&pattern::ring(ranks, bytes).unwrap(), &prices, &name);
                if ranks.is_power_of_two() {
                    compare(&pattern::halving_doubling(ranks, bytes).unwrap(), &prices, &name);
                }
            }
        }
    }
}
