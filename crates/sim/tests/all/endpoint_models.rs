//! The engine under each model, compared with times derived by hand. Also starting times, noise and other disturbances
//! of a run.

use unisono_algorithms::{ALGORITHMS, Case, Means, Params, Ranks, find};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::endpoint::{Goal, LevelPrices};
use unisono_lower::tasks::{Builder, Task, TaskGraph, draft, pattern};
use unisono_machine::Endpoint;
use unisono_machine::{EndpointModel, Machine};
use unisono_schedule::Schedule;
use unisono_sim::endpoint::{Noise, Options, Run, SimError, TraceRequest, run};

fn prices(model: EndpointModel, parameters: &str, ranks: u32) -> LevelPrices {
    let text = format!("kind = \"endpoint\"\nname = \"m\"\nmodel = \"{}\"\n{parameters}", model.name());
    let machine = Machine::from_toml(&text, "m.toml").unwrap().get::<Endpoint>().unwrap().clone();
    LevelPrices::new(&machine, model, ranks).unwrap()
}

/// Returns finish times in nanoseconds.
fn ns(run: &Run) -> Vec<f64> {
    run.finish.iter().map(|&t| t as f64 / 1000.0).collect()
}

fn simulate(graph: &TaskGraph, prices: &LevelPrices) -> Run {
    run(graph, prices, &Options::default()).unwrap()
}

fn schedule(name: &str, kind: Kind, ranks: u32, elements: u64, params: &Params) -> Option<Schedule> {
    let c = Collective::new(kind, ranks, elements, 0, Operator::Sum, Dtype::F32).unwrap();
    let case = Case::on_ranks(c, Ranks::default());
    let algorithm = find(name).unwrap();
    algorithm.supports(&case, params).ok()?;
    Some(algorithm.build(&case, params).unwrap().schedule)
}

fn graph(ranks: &[&[Task]]) -> TaskGraph {
    let mut b = Builder::new();
    for tasks in ranks {
        b.rank();
        for &task in *tasks {
            b.task(task);
        }
    }
    b.finish().unwrap()
}

/// The work of one CPU of a rank delays only tasks that wait for it, and only until it ends.
#[test]
fn a_second_cpu_communicates_meanwhile() {
    let mut b = Builder::new();
    b.rank();
    let first = b.task(Task::calc(1_000_000));
    let send = b.task(Task::send(1, 8, 0).on(1, 0));
    let second = b.task(Task::calc(2_000_000));
    b.requires(send, first);
    b.requires(second, first);
    b.rank();
    let receive = b.task(Task::receive(0, 8, 0).on(1, 0));
    let last = b.task(Task::calc(10_000));
    b.requires(last, receive);
    let graph = b.finish().unwrap();
    let prices = prices(EndpointModel::PipeliningPostal, "alpha_p_ns = 500\nalpha_r_ns = 100\nbeta_ns_per_byte = 0", 2);
    let options = Options { watch: vec![first, second, last], ..Options::default() };
    let done = run(&graph, &prices, &options).unwrap();
    assert_eq!(done.watched, [1_000_000, 3_000_000, 1_610_000]);
    assert_eq!(done.finish, [3_000_000, 1_610_000]);
}

/// The simulations of "Generalisation of recursive doubling for AllReduce" (Ruefenacht, Bull, Booth, 2017), section 6,
/// by the corrected rules: latency 500 ns, pipeline 100 ns, compute 10 ns, no bytes.
#[test]
fn recursive_multiplying() {
    let parameters = "alpha_p_ns = 500\nalpha_r_ns = 100\nbeta_ns_per_byte = 0\ncompute_ns = 10\n";
    let cases: [(u32, &str, &[f64]); 6] = [
        (8, "a2,a2,a2", &[1830.0; 8]),
        (8, "a8", &[1210.0; 8]),
        (7, "c6m2,a2,a2,e6m2", &[1930.0, 1430.0, 2430.0, 1930.0, 2430.0, 1930.0, 1830.0]),
        (7, "m1g2a3,n1g3a2", &[1420.0, 1320.0, 1320.0, 1320.0, 1320.0, 1320.0, 1420.0]),
        (7, "m3g2a2,n3g2a2", &[1320.0, 1420.0, 1420.0, 1220.0, 1320.0, 1220.0, 1320.0]),
        (7, "a7", &[1110.0; 7]),
    ];
    for (ranks, stages, expected) in cases {
        let params = Params::new().with("schedule", stages);
        let schedule = schedule("recursive-multiplying", Kind::Allreduce, ranks, 1, &params).unwrap();
        let prices = prices(EndpointModel::PipeliningPostal, parameters, ranks);
        assert_eq!(ns(&simulate(&draft(&schedule).unwrap(), &prices)), expected, "{stages}");
    }
}

/// Two ranks exchange n bytes: alpha + n beta under both postal models without a pipeline, and under Hockney's model.
#[test]
fn an_exchange() {
    let graph = pattern::halving_doubling(2, 200).unwrap();
    for (model, parameters, expected) in [
        (EndpointModel::Postal, "alpha_ns = 1000\nbeta_ns_per_byte = 0.5\n", 2.0 * (1000.0 + 50.0)),
        (EndpointModel::Hockney, "alpha_ns = 1000\nbeta_ns_per_byte = 0.5\n", 2.0 * (1000.0 + 50.0)),
        (
            EndpointModel::PipeliningPostal,
            "alpha_p_ns = 900\nalpha_r_ns = 100\nbeta_ns_per_byte = 0.5\n",
            2.0 * (1000.0 + 50.0),
        ),
        // o + L + o + 99 max(O, G), twice.
        (
            EndpointModel::LogGOPS,
            "L_ns = 2500\no_ns = 1500\ng_ns = 1000\nG_ns_per_byte = 6\nO_ns_per_byte = 2\nS_bytes = 65535\n",
            2.0 * (1500.0 + 2500.0 + 1500.0 + 99.0 * 6.0),
        ),
        (
            EndpointModel::LogGP,
            "L_ns = 2500\no_ns = 1500\ng_ns = 1000\nG_ns_per_byte = 6\n",
            2.0 * (1500.0 + 2500.0 + 1500.0 + 99.0 * 6.0),
        ),
        (EndpointModel::LogP, "L_ns = 2500\no_ns = 1500\ng_ns = 1000\n", 2.0 * 5500.0),
    ] {
        assert_eq!(ns(&simulate(&graph, &prices(model, parameters, 2))), [expected; 2], "{model:?}");
    }
}

/// LogGOPS of a machine in picoseconds gives the times of `Goal` in nanoseconds.
#[test]
fn loggops_of_a_machine_is_that_of_goal() {
    let parameters = "L_ns = 2500\no_ns = 1500\ng_ns = 1000\nG_ns_per_byte = 6\nO_ns_per_byte = 0\nS_bytes = 65535\n";
    for graph in [
        pattern::dissemination(13, 100_000).unwrap(),
        pattern::linear_alltoall(9, 77).unwrap(),
        pattern::binomial_reduce(21, 8).unwrap(),
        pattern::linear_gather(9, 70_000).unwrap(),
    ] {
        let machine = simulate(&graph, &prices(EndpointModel::LogGOPS, parameters, graph.rank_count()));
        let goal = run(&graph, &Goal::default(), &Options::default()).unwrap();
        assert_eq!(machine.finish, goal.finish.iter().map(|t| t * 1000).collect::<Vec<_>>());
    }
}

/// The port of rank 0 takes the two messages one after another, for 1100 ns each.
#[test]
fn hockney_ports_take_one_message_at_a_time() {
    let to_one = graph(&[
        &[Task::receive(1, 100, 0), Task::receive(2, 100, 0)],
        &[Task::send(0, 100, 0)],
        &[Task::send(0, 100, 0)],
    ]);
    let prices = prices(EndpointModel::Hockney, "alpha_ns = 1000\nbeta_ns_per_byte = 1\n", 3);
    assert_eq!(simulate(&to_one, &prices).makespan, 2_200_000);
}

/// Send k of a burst starts at max(k o, (k - f) g): with o = 100, g = 1000 and f = 2 at 0, 100, 200, 1000, 2000.
#[test]
fn logfp_lets_f_messages_go() {
    let sends: Vec<_> = (1..6).map(|to| Task::send(to, 8, 0)).collect();
    let receive = [Task::receive(0, 8, 0)];
    let burst = graph(&[&sends, &receive, &receive, &receive, &receive, &receive]);
    let parameters = "L_ns = 2500\no_ns = 100\ng_ns = 1000\nf_messages = 2\n";
    let taken = [0.0, 100.0, 200.0, 1000.0, 2000.0].map(|start| start + 100.0 + 2500.0 + 100.0);
    let run = simulate(&burst, &prices(EndpointModel::LogfP, parameters, 6));
    assert_eq!(ns(&run), [&[2100.0][..], &taken].concat());
    // After a pause, f messages may run ahead again, but not more than f.
    let mut b = Builder::new();
    b.rank();
    let pause = b.task(Task::calc(50_000_000));
    for to in 1..6 {
        let send = b.task(Task::send(to, 8, 0));
        b.requires(send, pause);
    }
    (0..5).for_each(|_| {
        b.rank();
        b.task(receive[0]);
    });
    let late = simulate(&b.finish().unwrap(), &prices(EndpointModel::LogfP, parameters, 6));
    assert_eq!(ns(&late)[0], 50_000.0 + 2100.0);
    let logp = simulate(&burst, &prices(EndpointModel::LogP, parameters, 6));
    assert_eq!(ns(&logp)[0], 4100.0);
}

/// A time that does not fit the clock is an error, and does not become a small number.
#[test]
fn times_beyond_the_clock_are_refused() {
    // Half a day for a message and for each of its bytes: some rounds of a ring fit into 2^64 ps, hundreds do not.
    let parameters = "alpha_ns = 4e13\nbeta_ns_per_byte = 4e13\n";
    let ring = |ranks: u32| {
        let schedule = schedule("ring", Kind::Allreduce, ranks, u64::from(ranks), &Params::new()).unwrap();
        run(&draft(&schedule).unwrap(), &prices(EndpointModel::Hockney, parameters, ranks), &Options::default())
    };
    assert_eq!(ns(&ring(4).unwrap())[0], 6.0 * 5.0 * 4e13);
    assert!(matches!(ring(256), Err(SimError::Overflow { .. })));
    let calcs = graph(&[&[Task::calc(u64::MAX), Task::calc(1)]]);
    let error = run(&calcs, &Goal::default(), &Options::default()).unwrap_err();
    assert!(error.to_string().starts_with("a time of rank 0 is beyond 2^64 ticks"), "{error}");
}

/// All schedules among ranks end under all models, long messages included, and no message is left over.
#[test]
fn all_schedules_end() {
    let every = "alpha_ns = 1000\nalpha_p_ns = 500\nalpha_r_ns = 100\nbeta_ns_per_byte = 0.4\ngamma_ns_per_byte = 0.1\n\
                 L_ns = 2500\no_ns = 1500\ng_ns = 1000\nG_ns_per_byte = 6\nO_ns_per_byte = 1\nS_bytes = 0\nf_messages = 4\n";
    for algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages)) {
        for &kind in algorithm.info().collectives {
            for ranks in 1..=17 {
                let Some(schedule) = schedule(algorithm.name(), kind, ranks, 19, &Params::new()) else { continue };
                let graph = draft(&schedule).unwrap();
                for model in EndpointModel::ALL {
                    let run = run(&graph, &prices(model, every, ranks), &Options::default());
                    let run = run.unwrap_or_else(|e| panic!("{} {kind} {ranks} {model:?}: {e}", algorithm.name()));
                    assert_eq!((run.left_over, run.sends), (0, run.receives));
                }
            }
        }
    }
}

#[test]
fn ranks_that_begin_late() {
    let gather = pattern::linear_gather(3, 8).unwrap();
    let begin = |start: [u64; 3]| {
        run(&gather, &Goal::default(), &Options { start: start.to_vec(), ..Options::default() }).unwrap().finish
    };
    // The first message is sent from 0 to 1500, arrives at 4000, and is received for 1542. Then the second message
    // follows.
    assert_eq!(begin([0; 3]), [7084, 1500, 1500]);
    assert_eq!(begin([0, 0, 10_000]), [15_542, 1500, 11_500]);
    // Both messages wait for rank 0.
    assert_eq!(begin([20_000, 0, 0]), [23_084, 1500, 1500]);
}

#[test]
fn noise_is_repeatable_and_only_delays() {
    let graph = pattern::dissemination(32, 8).unwrap();
    let quiet = run(&graph, &Goal::default(), &Options::default()).unwrap();
    let noise = |noise, seed| {
        run(&graph, &Goal::default(), &Options { noise: Some(noise), seed, ..Options::default() }).unwrap()
    };
    for kind in [
        Noise::Uniform { most: 500.0 },
        Noise::Normal { mean: 200.0, deviation: 50.0 },
        Noise::Exponential { mean: 300.0 },
    ] {
        let one = noise(kind, 1);
        assert_eq!(one, noise(kind, 1));
        assert_ne!(one.finish, noise(kind, 2).finish);
        assert!(one.finish.iter().zip(&quiet.finish).all(|(a, b)| a >= b));
    }
    assert_eq!(noise(Noise::Uniform { most: 0.0 }, 1).finish, quiet.finish);
    let wrong = Options { noise: Some(Noise::Exponential { mean: -1.0 }), ..Options::default() };
    assert!(
        run(&graph, &Goal::default(), &wrong).unwrap_err().to_string().starts_with("a parameter of the noise is -1;")
    );
}

#[test]
fn traces() {
    let gather = pattern::linear_gather(3, 8).unwrap();
    let options = Options { trace: TraceRequest { ranks: vec![0, 2] }, ..Options::default() };
    let trace = run(&gather, &Goal::default(), &options).unwrap().trace;
    let rows: Vec<_> = trace.iter().map(|e| (e.rank, e.kind, e.peer, e.bytes, e.start, e.end)).collect();
    assert_eq!(
        rows,
        [(2, "send", Some(0), 8, 0, 1500), (0, "recv", Some(1), 8, 4000, 5542), (0, "recv", Some(2), 8, 5542, 7084)]
    );
}

#[test]
fn options_that_do_not_fit() {
    let gather = pattern::linear_gather(3, 8).unwrap();
    let options = Options { start: vec![0], ..Options::default() };
    let error = run(&gather, &Goal::default(), &options).unwrap_err().to_string();
    assert_eq!(error, "the number of starting times is 1; the simulator takes one for each of 3 ranks");
    let mut b = Builder::new();
    (0..1 << 18).for_each(|_| b.rank());
    b.task(Task::calc(1).on(255, 0));
    let error = run(&b.finish().unwrap(), &Goal::default(), &Options::default()).unwrap_err().to_string();
    assert!(error.starts_with("ranks x (CPUs + 2 x interfaces) is 262144 x (256 CPUs + 2 x 1)"), "{error}");
}
