//! Applies all operations that users have for schedules, and asserts the properties that must hold.

use unisono_collective::{Collective, Kind};
use unisono_cost::{endpoint::LevelPrices, wafer::measure};
use unisono_emit::EMITTERS;
use unisono_gpu::{Choices, GpuFormat, mscclpp::MscclPp};
use unisono_lower::{
    File, OnGrid, Placement, VerifiedFile, from_json, parse, print, switches,
    tasks::{TaskGraph, draft, from_schedule},
    to_json,
    wafer::lower,
};
use unisono_machine::{Endpoint, InNetwork, Wafer, network::Network};
use unisono_runtime::local;
use unisono_schedule::{
    Schedule, interpret,
    stored::{Blocking, Stored, condense, store},
    verify::{Method, Verified, verify},
};
use unisono_sim::{collective_engine, endpoint, fabric, network};

/// Files with larger schedules are only checked, printed and read back, because smaller ones show the same faults
/// sooner.
const MOST_NODES: usize = 2_000;
const MOST_INSTRUCTIONS: usize = 5_000;
const MOST_ELEMENTS: u64 = 2_000;
/// Stored schedules with more elements in all buffers together are not run.
const MOST_RUN: u64 = 1 << 16;
/// Task graphs whose messages have more bytes in total are not simulated.
const MOST_BYTES: u64 = 1 << 20;

pub fn text(input: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(input)
}

/// Returns the result of reading the file "fuzz". Asserts that an error names the file.
pub fn read<T>(outcome: Result<T, impl std::fmt::Display>) -> Option<T> {
    outcome
        .inspect_err(|error| {
            assert!(error.to_string().starts_with("fuzz"), "the error does not name its file: {error}")
        })
        .ok()
}

/// Applies [`file`] to a file that was read; returns whether reading succeeded.
pub fn read_file(outcome: Result<File, impl std::fmt::Display>) -> bool {
    read(outcome).inspect(file).is_some()
}

fn is_small(s: &Schedule) -> bool {
    let memory: u64 = s.all_nodes().map(|n| s.memory_elements(n)).max().unwrap_or(0);
    s.node_count() <= MOST_NODES && s.instr_count() <= MOST_INSTRUCTIONS && memory <= MOST_ELEMENTS
}

/// Prints and reads back a file; if it is small, proves, stores, emits, lowers and simulates it too.
pub fn file(file: &File) {
    let s = &file.schedule;
    let found = file.check();
    if s.node_count() <= 10 * MOST_NODES {
        let mut printed = String::new();
        print(file, &mut printed).expect("a text takes everything");
        // Both forms omit the thread blocks of an imported plan.
        let file = &File { blocks: None, ..file.clone() };
        assert_eq!(&parse(&printed, "printed").expect("the text form reads back"), file, "text form");
        assert_eq!(&from_json(&to_json(file), "printed").expect("the JSON form reads back"), file, "JSON form");
    }
    if !is_small(s) {
        return;
    }
    schedule(s);
    if let Some(placement) = file.placement.as_ref().and_then(Placement::grid).filter(|_| found.is_empty()) {
        drop(measure(OnGrid { schedule: s, placement }));
    }
    let Ok(proven) = VerifiedFile::new(file, Method::Auto) else { return };
    for emitter in EMITTERS {
        if let Err(refused) = emitter.emit(&proven) {
            assert!(!refused.reason.contains("please report it"), "{}: {}", refused.target, refused.reason);
        }
    }
    // Execution plans are made for a machine with each rank in its own box, once with one buffer (`in_place`) and once
    // with two.
    for in_place in [true, false] {
        let choices = Choices {
            in_place: Some(in_place),
            gpus_per_box: Some(1),
            thread_blocks: in_place.then_some(3),
            ..Choices::default()
        };
        if let Err(refused) = MscclPp.emit_as(&proven, &choices) {
            assert!(!refused.reason.contains("please report it"), "{}: {}", refused.target, refused.reason);
        }
    }
    let Some(machine) = &file.machine else { return };
    if let Some(machine) = machine.get() {
        on_wafer(&proven, machine);
    }
    if let Some(machine) = machine.get() {
        on_ranks(proven.verified(), machine);
    }
    if let Some(machine) = machine.get() {
        on_network(proven.verified(), machine);
    }
    if let Some(machine) = machine.get() {
        on_switches(&proven, machine);
    }
}

fn on_wafer(proven: &VerifiedFile, wafer: &Wafer) {
    let Some(placement) = proven.file().placement.as_ref().and_then(Placement::grid) else { return };
    let Ok(program) = lower(proven.verified(), placement, wafer) else { return };
    let options = fabric::Options {
        ramp_latency: wafer.ramp_latency_cycles,
        queue_depth: wafer.queue_depth,
        ..fabric::Options::default()
    };
    if let Ok(run) = fabric::run(&program, &options) {
        assert!(run.result_correct, "the fabric computes what was proved: {:?}", run.mismatch);
    }
}

/// Asserts that a proved schedule gives right results in switches, and that its registers, raised to a schedule and
/// lowered again, stay the same.
fn on_switches(proven: &VerifiedFile, machine: &InNetwork) {
    let Some(placement) = proven.file().placement.as_ref().and_then(Placement::switches) else { return };
    let layout = machine.layout();
    let lowered = switches::lower(machine, &layout, proven.verified(), placement).expect("the placement was accepted");
    let (schedule, placement_of) = switches::raise(&layout, &lowered).expect("lowered registers agree");
    let again = Verified::new(schedule, Method::Auto).expect("the schedule of the registers of a proved one is proved");
    let again = switches::lower(machine, &layout, &again, &placement_of).expect("raised registers are accepted");
    assert_eq!(again, lowered, "registers are those of the schedule that they make");
    match collective_engine::run(machine, proven.verified(), placement) {
        Ok(run) => assert!(run.data.result_correct, "switches compute what was proved: {:?}", run.data.mismatch),
        Err(error) => assert!(matches!(error, collective_engine::EngineError::Overflow), "{error}"),
    }
}

/// Proves a schedule by all methods, runs it, and stores it and runs the stored programs.
pub fn schedule(s: &Schedule) {
    let exact = verify(s, Method::Exact);
    let printed = verify(s, Method::Fingerprint);
    // A barrier has no sum, so the fingerprint method refuses it.
    if exact.holds() && s.collective().kind != Kind::Barrier {
        assert!(printed.holds(), "proved exactly, and not by fingerprint: {:?}", printed.diagnostics.first());
    }
    assert_eq!(exact.deadlock_free, printed.deadlock_free, "methods differ on deadlock");
    assert_eq!(exact.race_free, printed.race_free, "methods differ on races");
    drop(draft(s));
    if !exact.holds() {
        return;
    }
    let proven = Verified::new(s.clone(), Method::Exact).expect("it was just proved");
    interpreted(s);
    if let Ok(stored) = store(&proven) {
        stored_is_interpreted(&proven, &stored);
    }
    let condensed = condense(s);
    match Verified::new(condensed, Method::Exact) {
        Ok(proven) => {
            if let Ok(stored) = store(&proven) {
                stored_is_interpreted(&proven, &stored);
            }
        }
        Err(proof) => panic!("a proved schedule is not proved when condensed: {:?}", proof.diagnostics.first()),
    }
}

/// Returns input values that differ for all ranks and elements, except for a barrier, whose sums are not checked.
fn inputs(c: &Collective, of: impl Fn(u32) -> usize) -> Vec<Vec<i64>> {
    let value = |rank: u32, k: usize| (i64::from(rank) + 1) * 1_000_003 + k as i64 * 7919 + 5;
    (0..c.ranks).map(|rank| (0..of(rank)).map(|k| value(rank, k)).collect()).collect()
}

/// Asserts that executions of a proved schedule in four orders end, and have equal results.
fn interpreted(s: &Schedule) {
    let c = s.collective();
    if c.kind == Kind::Barrier || !buffers_fit(c, 1) {
        return;
    }
    let given = inputs(c, |rank| c.input_len(rank) as usize);
    let run = |chunk, seed| interpret::run(s, &given, interpret::Options { chunk, seed });
    let first = match run(None, 0) {
        // The operator is not defined for these numbers, or the interpreter's memory is exceeded.
        Err(interpret::InterpretError::Operator { .. } | interpret::InterpretError::TooLarge { .. }) => return,
        other => other.expect("a proved schedule runs to its end"),
    };
    for (chunk, seed) in [(Some(1), 1), (Some(2), 2), (None, 3)] {
        assert_eq!(run(chunk, seed).expect("a proved schedule runs to its end"), first, "chunk {chunk:?}, seed {seed}");
    }
}

fn buffers_fit(c: &Collective, factor: u64) -> bool {
    let all: u64 = (0..c.ranks).map(|rank| u64::from(c.input_len(rank)) + u64::from(c.output_len(rank))).sum();
    all.saturating_mul(factor) <= MOST_RUN
}

/// Asserts that a stored schedule has the interpreter's results for several numbers of elements. The number of elements
/// is the seed for the order of messages.
fn stored_is_interpreted(proven: &Verified, stored: &Stored) {
    let c = *proven.schedule().collective();
    if c.kind == Kind::Barrier || !buffers_fit(&c, 2) {
        return;
    }
    let (blocks, vector) = (c.elements as usize, c.input_len(0) == c.elements || c.output_len(0) == c.elements);
    let short = stored.facts().blocking == Blocking::Any && vector && blocks > 1;
    for n in [Some(blocks), Some(2 * blocks), short.then_some(2 * blocks - 1)].into_iter().flatten() {
        let given = inputs(&c, |rank| c.input_len(rank) as usize / blocks * n);
        let got = local::run(stored.facts(), stored.programs(), n, &given, n as u64 * 31 + 7);
        let got = got.expect("a stored schedule runs to its end");
        let pitch = n.div_ceil(blocks);
        for offset in 0..pitch {
            // Element j in the interpreter represents block j of the vector.
            let at = |j: usize, len: usize| (j * pitch + offset).min(len.saturating_sub(1));
            let picked: Vec<Vec<i64>> = (0..c.ranks)
                .zip(&given)
                .map(|(rank, v)| (0..c.input_len(rank) as usize).map(|j| v[at(j, v.len())]).collect())
                .collect();
            let expected = match interpret::run(proven.schedule(), &picked, interpret::Options::default()) {
                Err(interpret::InterpretError::Operator { .. }) => return,
                other => other.expect("a proved schedule runs to its end"),
            };
            for (rank, output) in expected.iter().enumerate() {
                let places = output.iter().enumerate().map(|(j, x)| (j * pitch + offset, x));
                for (at, x) in places.filter(|(at, _)| *at < got[rank].len()) {
                    assert_eq!(got[rank][at], *x, "rank {rank}, element {at} of {n} elements in {blocks} blocks");
                }
            }
        }
    }
}

/// Simulates a proved schedule by every model for which its machine has parameters.
pub fn on_ranks(proven: &Verified, machine: &Endpoint) {
    let ranks = proven.schedule().collective().ranks;
    for model in unisono_machine::EndpointModel::ALL {
        if let Ok(prices) = LevelPrices::new(machine, model, ranks)
            && let Ok(graph) = from_schedule(proven)
        {
            drop(endpoint::run(&graph, &prices, &endpoint::Options::default()));
        }
    }
}

/// Simulates a proved schedule packet by packet, unless its messages exceed [`MOST_BYTES`] or the network 4096
/// accelerators.
pub fn on_network(proven: &Verified, machine: &Network) {
    if let Ok(graph) = from_schedule(proven)
        && is_short(&graph)
        && machine.topology(&machine.name).is_ok_and(|t| t.accelerators() <= 4096)
        && let Ok(interconnect) = network::Interconnect::new(machine)
    {
        drop(network::run(&graph, &interconnect, &network::Options::default()));
    }
}

fn is_short(graph: &TaskGraph) -> bool {
    let tasks = (0..graph.task_count()).map(|n| graph.task(unisono_base::TaskId::new(n)));
    tasks.map(|task| task.amount).fold(0u64, u64::saturating_add) <= MOST_BYTES
}
