//! Programs of GOAL.

use unisono_cost::endpoint::Goal as Prices;
use unisono_formats::goal::{read, write};
use unisono_lower::tasks::TaskGraph;
use unisono_machine::Machine;
use unisono_sim::{
    endpoint::{self, Noise},
    network,
};

use crate::FuzzTarget;

pub const TARGET: FuzzTarget =
    FuzzTarget::new("goal", "reads a GOAL program, writes it, and simulates it under LogGOPS and on a network", run)
        .seeds(&[("tests/goal", ".goal")]);

/// Greatest total size of a program's messages, in bytes, for a simulation by packets.
const MOST_BYTES: u64 = 1 << 20;

fn run(input: &[u8]) -> bool {
    let Ok(graph) = read(input, "fuzz") else { return false };
    if graph.task_count() <= 10_000 && graph.rank_count() <= 10_000 {
        let mut text = String::new();
        write(&graph, |task| task.amount, &mut text).expect("a text takes everything");
        let again = read(text.as_bytes(), "printed").expect("a program reads back");
        assert_eq!(again.task_count(), graph.task_count(), "tasks of a program that was read back");
        simulate(&graph);
    }
    true
}

fn simulate(graph: &TaskGraph) {
    let usual = endpoint::Options::default();
    drop(endpoint::run(graph, &Prices::default(), &usual));
    let noisy = endpoint::Options { noise: Some(Noise::Uniform { most: 5.0 }), ..usual };
    drop(endpoint::run(graph, &Prices { G: 1, O: 1, S: 100, ..Prices::default() }, &noisy));
    let amounts = (0..graph.task_count()).map(|n| graph.task(unisono_base::TaskId::new(n)).amount);
    if graph.rank_count() <= 16
        && amounts.fold(0, u64::saturating_add) <= MOST_BYTES
        && let Ok(machine) = Machine::from_toml(super::traffic::SMALL, "small")
        && let Ok(interconnect) = network::Interconnect::new(machine.get().expect("the text is of a network"))
    {
        drop(network::run(
            graph,
            &interconnect,
            &network::Options { ps_per_calc: 1000, ..network::Options::default() },
        ));
    }
}
