//! Costs of a collective besides messages and sums: the start of a kernel, signals, and copies. Predictions and
//! simulations add the same costs.

use std::fmt::Write;

use unisono_algorithms::Params;
use unisono_base::mix;
use unisono_collective::Kind;
use unisono_machine::{Machine, network::Network};
use unisono_plan::{Part, Problem, Request, plan as plan_of};

/// Returns the predicted and the simulated time of an algorithm, in nanoseconds.
fn both(machine: &Machine, kind: Kind, name: &str, bytes: u64) -> [f64; 2] {
    [None, Some("packets")].map(|model| {
        let request = Request { model, ..Request::new(kind, machine, Part::All, bytes / 4) };
        let plan = plan_of(Problem::new(&request).unwrap(), Some(name), &Params::new()).unwrap();
        plan.best().time.seconds * 1e9
    })
}

fn with(machine: &Machine, values: &[(&str, &str)]) -> Machine {
    values.iter().fold(machine.clone(), |machine, (key, value)| machine.with_value(key, value).unwrap())
}

/// Returns a preset without its measured values.
fn sheet(name: &str) -> Machine {
    Machine::preset(name).unwrap().get::<Network>().unwrap().data_sheet().into()
}

/// Each message of the longest chain has one signal. A sum that a GPU requests from a switch and stores takes two
/// steps: first the operands become ready, then the sum is stored.
#[test]
fn signals_and_the_start_come_once_for_each_step() {
    let cases = [
        ("dgx-h100", Kind::Allreduce, "ring", 14.0),
        ("dgx-h100", Kind::Allreduce, "recursive-doubling", 3.0),
        ("dgx-h100", Kind::Broadcast, "pipelined-chain", 7.0),
        ("dgx-h100", Kind::Alltoall, "linear", 1.0),
        ("dgx-h100", Kind::Allreduce, "in-network", 2.0),
        ("dgx-h100", Kind::Reduce, "in-network", 1.0),
        ("dgx-h100", Kind::Broadcast, "in-network", 1.0),
    ];
    for (machine, kind, name, steps) in cases {
        let machine = sheet(machine);
        let charged = with(&machine, &[("signal_ns", "900"), ("launch_ns", "5000")]);
        let [plain, charged] = [&machine, &charged].map(|machine| both(machine, kind, name, 512));
        for (plain, charged) in plain.into_iter().zip(charged) {
            let expected = 5000.0 + 900.0 * steps;
            assert!((charged - plain - expected).abs() < 1.0, "{kind} {name}: {plain} {charged}");
        }
    }
}

/// A rank of an allgather copies its own block while that block is sent, so a slow copy counts from the start. Received
/// blocks are written in place. With Bruck's algorithm, all 8 blocks are copied once more, to restore their order.
#[test]
fn copies_take_the_time_of_their_bytes() {
    let machine = with(&sheet("dgx-a100"), &[("copy_ns_per_byte", "0")]);
    let [own, slow] = ["0.1", "20"].map(|price| with(&machine, &[("copy_ns_per_byte", price)]));
    let [plain, copied, late] = [&machine, &own, &slow].map(|machine| both(machine, Kind::Allgather, "ring", 4096));
    for ((plain, copied), late) in plain.into_iter().zip(copied).zip(late) {
        assert!((copied - plain).abs() < 1.0, "{plain} {copied}");
        assert!((late - 4096.0 * 20.0).abs() < plain, "{late}");
    }
    let [plain, copied] = [&machine, &own].map(|machine| both(machine, Kind::Allgather, "bruck", 4096));
    for (plain, copied) in plain.into_iter().zip(copied) {
        assert!((copied - plain - 9.0 * 4096.0 * 0.1).abs() < 1.0, "{plain} {copied}");
    }
}

/// NCCL's example kernels take 3.5 us if each GPU requests the whole sum, and 5.6 us if each requests a share and
/// stores it to all GPUs. The machine file is derived from these times.
#[test]
fn the_preset_takes_the_published_floors() {
    let machine = Machine::preset("dgx-h100").unwrap();
    for (kind, floor_ns) in [(Kind::Reduce, 3500.0), (Kind::Allreduce, 5600.0)] {
        for ns in both(&machine, kind, "in-network", 8) {
            assert!((ns - floor_ns).abs() < 1.0, "{kind} {ns}");
        }
    }
    let two_steps = Params::new().with("chunks", 1).with("depth", 1);
    let request = Request::new(Kind::Allreduce, &machine, Part::All, 2);
    let plan = plan_of(Problem::new(&request).unwrap(), Some("forest"), &two_steps).unwrap();
    assert!((plan.best().time.seconds * 1e9 - 5600.0).abs() < 1.0, "{}", plan.best().time.seconds);
}

/// A sum that a GPU requests and stores takes as long as a reduce to that GPU and a broadcast from it. Without requests
/// it takes the time to the switch and back.
#[test]
fn sums_that_a_gpu_stores_are_a_reduce_and_a_broadcast() {
    for seed in 0..20 {
        let mut drawn = seed;
        let mut below = |n: u64| {
            drawn = mix(drawn + 1);
            drawn % n
        };
        let gpus = 2 + below(7);
        let mut edges = String::new();
        for gpu in 0..gpus {
            let _ = writeln!(edges, "{gpu} {gpus} board");
        }
        let [latency, signal, launch, of_switch] = [1 + below(3000), below(5000), below(5000), below(500)];
        let network = |pulls: bool| {
            let text = format!(
                "name = \"star\"\nkind = \"network\"\nplanes = 1\nlink_gbps = 800\nlink_latency_ns = {latency}\n\
                 input_latency_ns = 0\noutput_latency_ns = 0\npacket_bytes = 4096\nbuffer_bytes = 4194304\n\
                 send_machines = 1\nsend_machines_per = \"link\"\nlaunch_ns = {launch}\nsignal_ns = {signal}\n\
                 [topology]\nname = \"graph\"\naccelerators = {gpus}\nedges = '''\n{edges}'''\n[[switches]]\n\
                 latency_ns = {of_switch}\nmulticast = true\noperators = [\"sum\"]\npulls = {pulls}\n"
            );
            Machine::from_toml(&text, "star").unwrap()
        };
        let times = |pulls, kind| both(&network(pulls), kind, "in-network", 4);
        let [reduce, broadcast, all] = [Kind::Reduce, Kind::Broadcast, Kind::Allreduce].map(|kind| times(true, kind));
        let forwarded = times(false, Kind::Allreduce);
        for at in 0..2 {
            // A switch adds its latency once to a sum and once to a copy.
            let expected = reduce[at] + broadcast[at] - (launch + of_switch) as f64;
            assert!((all[at] - expected).abs() < 1.0, "{seed}: {reduce:?} {broadcast:?} {all:?}");
            assert!((forwarded[at] - broadcast[at]).abs() < 1.0, "{seed}: {forwarded:?} {broadcast:?}");
        }
    }
}

/// Chunks are sent while signals of earlier chunks are under way.
#[test]
fn trees_in_switches_do_not_wait_for_signals() {
    let machine = sheet("dgx-h100");
    let charged = with(&machine, &[("signal_ns", "10000")]);
    let params = Params::new().with("chunks", 256).with("embeddings", 1);
    let [plain, charged] = [&machine, &charged].map(|machine| {
        let request = Request::new(Kind::Allreduce, machine, Part::All, 4 << 20);
        plan_of(Problem::new(&request).unwrap(), Some("in-network"), &params).unwrap().best().time.seconds * 1e9
    });
    assert!(charged - plain < 2.1 * 10000.0, "{plain} {charged}");
}
