//! Self-consistent performance guidelines: no collective is predicted to take longer than other collectives that
//! replace it, on presets of every kind and on random clusters. Source: Träff, Gropp, Thakur, "Self-consistent MPI
//! performance guidelines", IEEE TPDS 2010.

use std::collections::{BTreeMap, BTreeSet};

use unisono_algorithms::{ALGORITHMS, Params};
use unisono_base::mix;
use unisono_collective::Kind::{
    self, Allgather, Allreduce, Alltoall, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
use unisono_machine::{EndpointModel, Machine, PRESETS, Shape};
use unisono_plan::{Part, Problem, Request, plan, plan_best};

/// A collective, and a sequence of collectives that can replace it.
const LAWS: [(Kind, &[Kind]); 10] = [
    (Broadcast, &[Allreduce]),
    (Broadcast, &[Scatter, Allgather]),
    (Reduce, &[Allreduce]),
    (Reduce, &[ReduceScatter, Gather]),
    (Allgather, &[Alltoall]),
    (Allgather, &[Gather, Broadcast]),
    (Scatter, &[Broadcast]),
    (ReduceScatter, &[Reduce, Scatter]),
    (Allreduce, &[Reduce, Broadcast]),
    (Allreduce, &[ReduceScatter, Allgather]),
];

/// Times count as equal up to this quotient, because a sum may mix closed forms, timetables and simulations.
const EQUAL: f64 = 1.05;

/// On clusters whose ranks receive messages in the order of arrival, laws hold up to this quotient.
const IN_ORDER: f64 = 1.5;

/// On any cluster, an allgather may exceed an allreduce of as many bytes by this quotient, and a barrier an allreduce
/// of one element by `SIGNALED`.
const GATHERED: f64 = 1.4;
const SIGNALED: f64 = 1.1;

/// On cables of unlike latencies, an allgather may exceed an alltoall by this quotient, because only the alltoall has
/// the algorithm `linear`.
const SHIFTED: f64 = 1.2;

/// The page with the table of exceptions.
const PAGE: &str = include_str!("../../../../docs/guidelines.md");

/// A law that does not hold on a part of a preset, for vectors of `bytes`.
struct Exception {
    machine: &'static str,
    shape: Shape,
    bytes: u64,
    law: &'static str,
    ratio: f64,
}

/// Reads the exceptions: rows of a machine, a part, bytes, a law, the quotient of its sides and a reason.
fn exceptions() -> Vec<Exception> {
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.trim_matches(['|', ' ']).split('|').map(str::trim).collect();
        let [machine, part, bytes, law, ratio, reason] = cells[..] else { panic!("{line} has no six cells") };
        assert!(!reason.is_empty(), "{line} has no reason");
        let extents: Vec<u32> = part.split('x').map(|extent| extent.parse().unwrap()).collect();
        let shape =
            if let [rows, columns] = extents[..] { Shape::rect(rows, columns) } else { Shape::line(extents[0]) };
        let machine = machine.trim_matches('`');
        Exception { machine, shape, bytes: bytes.parse().unwrap(), law, ratio: ratio.parse().unwrap() }
    };
    let (_, table) = PAGE.split_once("## Exceptions").expect("a table of exceptions");
    let table = table.split("\n## ").next().expect("the text before the next head");
    table.lines().filter(|line| line.starts_with("| `")).map(row).collect()
}

/// Returns the laws that, by the table, do not hold on a preset. The rows of all presets count whose names differ only
/// in the last word.
fn known(name: &str) -> BTreeSet<&'static str> {
    fn stem(name: &str) -> &str {
        name.rsplit_once('-').map_or(name, |(stem, _)| stem)
    }
    exceptions().iter().filter(|row| stem(row.machine) == stem(name)).map(|row| row.law).collect()
}

/// The bytes of whole vectors.
const SIZES: [u64; 4] = [8, 1 << 12, 1 << 18, 1 << 24];

fn law_name((kind, parts): &(Kind, &[Kind])) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.name()).collect();
    format!("{kind} <= {}", parts.join(" + "))
}

/// Returns the predicted time in seconds of a collective of a vector in which each rank has `each` elements.
fn seconds(machine: &Machine, shape: Shape, kind: Kind, each: u64) -> Option<f64> {
    let ranks = shape.grid.count();
    let elements = if [Broadcast, Reduce, Allreduce].contains(&kind) { each * ranks } else { each };
    let problem = Problem::new(&Request::new(kind, machine, Part::Shape(shape), elements)).ok()?;
    Some(plan_best(problem, None, &Params::new()).ok()?.best().time.seconds)
}

/// Returns the number of elements of a rank's block in a vector of `bytes`.
fn block(shape: Shape, bytes: u64) -> u64 {
    (bytes / 4 / shape.grid.count()).max(1)
}

/// Returns the laws that do not hold, each with its largest quotient.
fn broken(machine: &Machine, shape: Shape, sizes: &[u64]) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for &bytes in sizes {
        let mut times: BTreeMap<&str, Option<f64>> = BTreeMap::new();
        let mut of = |kind: Kind| {
            *times.entry(kind.name()).or_insert_with(|| seconds(machine, shape, kind, block(shape, bytes)))
        };
        for law in &LAWS {
            let sum = law.1.iter().map(|&part| of(part)).sum::<Option<f64>>();
            let (Some(time), Some(sum)) = (of(law.0), sum) else { continue };
            if time > sum * EQUAL + 1e-9 {
                let most = found.entry(law_name(law)).or_insert(0.0_f64);
                *most = most.max(time / sum);
            }
        }
    }
    found
}

/// Checks that all laws except those of the table hold on some parts of a preset. In the short run, each part has one
/// of the sizes.
fn hold_on(name: &str, shapes: &[Shape], sizes: &[u64]) {
    let machine = Machine::preset(name).unwrap();
    let sizes_of = |at: usize| {
        let one = (name.len() + at) % sizes.len();
        if crate::soak::is_on() { sizes } else { &sizes[one..=one] }
    };
    let found: Vec<_> =
        shapes.iter().enumerate().flat_map(|(at, &shape)| broken(&machine, shape, sizes_of(at))).collect();
    let names: BTreeSet<&str> = found.iter().map(|(law, _)| law.as_str()).collect();
    assert!(names.is_subset(&known(name)), "{name}: {found:#?}");
}

/// Every row of the table is a law that does not hold, by the quotient in the row.
#[test]
fn exceptions_of_the_page_are_found() {
    let rows = exceptions();
    assert!(!rows.is_empty());
    let mut others = Vec::new();
    for Exception { machine, shape, bytes, law, ratio } in rows {
        let preset = Machine::preset(machine).unwrap();
        let (kind, parts) = LAWS.iter().find(|of| law_name(of) == law).expect("a law of the table");
        let of = |kind: &Kind| seconds(&preset, shape, *kind, block(shape, bytes)).expect("a plan");
        let is = of(kind) / parts.iter().map(of).sum::<f64>();
        if is <= EQUAL || (is - ratio).abs() >= 0.01 {
            others.push(format!("{law} on {shape:?} of {machine}, {bytes} bytes: {is:.3}, and the page has {ratio}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn hold_on_clusters() {
    let ranks = if crate::soak::is_on() { &[7, 16, 24][..] } else { &[7, 16] };
    let shapes: Vec<Shape> = ranks.iter().map(|&ranks| Shape::line(ranks)).collect();
    for name in ["archer", "paper-sim"] {
        hold_on(name, &shapes, &SIZES);
    }
}

#[test]
fn hold_on_gpus() {
    for name in ["dgx-h100", "dgx-a100", "mi300x"] {
        hold_on(name, &[Shape::line(8)], &SIZES[1..]);
    }
}

#[test]
fn hold_on_tori_and_meshes() {
    for name in ["torus2d-small", "hx2mesh-small"] {
        hold_on(name, &[Shape::rect(4, 4)], &SIZES[1..]);
    }
}

#[test]
fn hold_on_trees_and_dragonflies() {
    for name in ["fattree-small", "dragonfly-small"] {
        hold_on(name, &[Shape::line(16)], &SIZES[1..]);
    }
}

/// The network has 1,024 accelerators and does not look alike from all of them, so it has no forests.
#[test]
fn hold_on_a_whole_dragonfly() {
    let machine = Machine::preset("dragonfly-small").unwrap();
    for bytes in [1 << 24, 1 << 30] {
        let of = |kind| seconds(&machine, Shape::line(1024), kind, bytes / 4096).unwrap();
        let [broadcast, reduce, allreduce] = [Broadcast, Reduce, Allreduce].map(of);
        assert!(broadcast <= allreduce * EQUAL, "{bytes} bytes: {broadcast} and {allreduce}");
        assert!(reduce <= allreduce * EQUAL, "{bytes} bytes: {reduce} and {allreduce}");
    }
}

#[test]
fn hold_on_wafers() {
    hold_on("wse2", &[Shape::line(16), Shape::rect(4, 4)], &SIZES[1..3]);
}

/// Returns a small part of a machine: some rows and columns if the machine has them, otherwise a number of ranks near a
/// power of two.
fn drawn_part(name: &str, drawn: u64) -> Shape {
    let [one, other] = [8, 16].map(|bits| (drawn >> bits) as u32);
    match name {
        _ if name.starts_with("wse") => Shape::rect(1 + one % 4, 2 + other % 7),
        _ if ["torus2d", "hx2mesh", "hx4mesh"].iter().any(|grid| name.starts_with(grid)) => {
            Shape::rect(2 * (1 + one % 3), 2 * (1 + other % 2))
        }
        _ => Shape::line(((1 << (1 + one % most_exponent())) + other % 3 - 1).max(2)),
    }
}

/// Returns the exponent of 2 for the most ranks: up to 17, and in the long run 65.
fn most_exponent() -> u32 {
    if crate::soak::is_on() { 6 } else { 4 }
}

/// Laws hold on drawn parts of all presets that are not large, and two halves of a vector take at least as long as the
/// whole.
#[test]
fn hold_on_drawn_parts_of_presets() {
    let large = ["-large", "1536"];
    let names: Vec<&str> =
        PRESETS.iter().map(|of| of.name).filter(|name| !large.iter().any(|end| name.contains(end))).collect();
    let (mut compared, mut others) = (0, Vec::new());
    for number in 0..crate::soak::cases(120) {
        let drawn = mix(u64::from(number) + 77);
        let (name, bytes) = (names[drawn as usize % names.len()], 8 << ((drawn >> 40) % doublings()));
        let (machine, shape) = (Machine::preset(name).unwrap(), drawn_part(name, drawn));
        let case = format!("{name}, {shape:?}, {bytes} bytes");
        let known = known(name);
        let found = broken(&machine, shape, &[bytes]).into_iter().filter(|(law, _)| !known.contains(law.as_str()));
        others.extend(found.map(|(law, ratio)| format!("{law} on {case}: {ratio:.3}")));
        let kind = LAWS[(drawn >> 50) as usize % LAWS.len()].0;
        let each = 2 * (bytes / 8 / shape.grid.count()).max(1);
        let [whole, half] = [each, each / 2].map(|each| seconds(&machine, shape, kind, each));
        let Some((whole, half)) = whole.zip(half) else { continue };
        compared += 1;
        if whole > 2.0 * half * EQUAL {
            others.push(format!("{kind} on {case}: {:.3} times two halves", whole / half / 2.0));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
    assert!(compared > crate::soak::cases(120) / 2);
}

/// Returns the number of lengths of drawn vectors: from 8 B to 128 KiB, and in the long run to 1 GiB.
fn doublings() -> u64 {
    if crate::soak::is_on() { 28 } else { 15 }
}

/// Returns a cluster with a model's parameters, two thirds of them with nodes of several ranks.
fn cluster(model: EndpointModel, drawn: u64) -> Machine {
    let within = |shift: u32, least: u64, most: u64| (least + (drawn >> shift) % (most - least)) as f64;
    let costs = [
        ("alpha_ns", within(0, 200, 5200)),
        ("alpha_p_ns", within(0, 200, 5200)),
        ("alpha_r_ns", within(8, 50, 1000)),
        ("beta_ns_per_byte", within(20, 10, 1010) / 1e4),
        ("L_ns", within(0, 200, 5200)),
        ("o_ns", within(8, 50, 1500)),
        ("g_ns", within(14, 50, 1500)),
        ("G_ns_per_byte", within(20, 10, 1010) / 1e4),
        ("O_ns_per_byte", within(30, 0, 100) / 1e4),
    ];
    let lines = |by: f64| costs.map(|(key, value)| format!("{key} = {}\n", value / by)).concat();
    let (name, gamma) = (model.name(), within(40, 0, 200) / 1e4);
    let mut text = format!("name = \"random\"\nkind = \"endpoint\"\nmodel = \"{name}\"\ngamma_ns_per_byte = {gamma}\n");
    text += &format!("f_messages = {}\nS_bytes = {}\n{}", within(44, 1, 8), 1024 << (6 * (drawn % 3)), lines(1.0));
    if !drawn.is_multiple_of(3) {
        let (order, node) = (["block", "cyclic"][(drawn >> 48) as usize % 2], 2 + (drawn >> 50) % 7);
        text += &format!("placement = \"{order}\"\n[[levels]]\nname = \"node\"\nsize = {node}\n");
        text += &lines(within(54, 20, 100) / 10.0);
    }
    Machine::from_toml(&text, "random").unwrap()
}

/// Returns the time of a barrier, divided by that of an allreduce of one element.
fn barrier_ratio(machine: &Machine, shape: Shape) -> f64 {
    let [barrier, allreduce] = [Kind::Barrier, Allreduce].map(|kind| {
        let problem = Problem::new(&Request::new(kind, machine, Part::Shape(shape), 1)).unwrap();
        plan_best(problem, None, &Params::new()).unwrap().best().time.seconds
    });
    barrier / allreduce
}

/// Clusters on which messages pass without waiting for each other: laws hold. With the other models a message waits
/// for the messages that arrive before it at a rank, so a rank that has finished the first of two collectives delays
/// ranks that have not, and a sequence may take longer than its parts.
#[test]
fn hold_on_random_clusters() {
    for number in 0..crate::soak::cases(40) {
        let drawn = mix(u64::from(number) + 1);
        let (ranks, bytes) = (2 + (drawn >> 50) % 40, 8 << ((drawn >> 56) % 22));
        let free = [EndpointModel::Postal, EndpointModel::PipeliningPostal];
        let model = EndpointModel::ALL[number as usize % EndpointModel::ALL.len()];
        let most = if free.contains(&model) { EQUAL } else { IN_ORDER };
        let (machine, shape) = (cluster(model, drawn), Shape::line(ranks as u32));
        let mut found = broken(&machine, shape, &[bytes]);
        found.retain(|_, ratio| *ratio > most);
        let of = |kind| seconds(&machine, shape, kind, block(shape, bytes)).unwrap();
        let (gathered, signaled) = (of(Allgather) / of(Allreduce), barrier_ratio(&machine, shape));
        found.extend((gathered > GATHERED).then(|| ("allgather <= allreduce".to_owned(), gathered)));
        found.extend((signaled > SIGNALED).then(|| ("barrier <= allreduce".to_owned(), signaled)));
        assert!(found.is_empty(), "cluster {number} of {}, {ranks} ranks, {bytes} bytes: {found:#?}", model.name());
    }
}

/// Returns a network of accelerators and switches whose cables have unlike rates and latencies, and its accelerators.
fn uneven(drawn: u64) -> (Machine, u32) {
    let at = |place: u64, most: u64| mix(drawn + place) % most;
    let (ranks, switches) = (3 + at(0, 4), at(1, 3));
    let nodes = ranks + switches;
    let mut text =
        "name = \"random\"\nkind = \"network\"\nplanes = 1\nlink_gbps = 100.0\nlink_latency_ns = 350.0\n".to_owned();
    text += "input_latency_ns = 0.0\noutput_latency_ns = 0.0\npacket_bytes = 4096\nbuffer_bytes = 4194304\n";
    text += "send_machines = 1\nsend_machines_per = \"link\"\ngamma_ns_per_byte = 0.0025\n";
    text += &format!("host_overhead_ns = {}\n", [0, 200][at(2, 2) as usize]);
    text += "[prices]\nswitch_usd = 0.0\ndac_usd = 0.0\naoc_usd = 0.0\n[topology]\nname = \"graph\"\n";
    text += &format!("accelerators = {ranks}\nedges = \"\"\"\n");
    let mut known = BTreeSet::new();
    for place in 1..2 * nodes {
        // The first cables join all nodes.
        let (a, b) = if place < nodes {
            (place, at(4 * place, place))
        } else {
            (at(4 * place, nodes), at(4 * place + 1, nodes))
        };
        if a != b && known.insert((a.min(b), a.max(b))) {
            let rate = [50, 100, 200, 400, 900][at(4 * place + 2, 5) as usize];
            text += &format!("{a} {b} gbps={rate} ns={}\n", [20, 350, 2000][at(4 * place + 3, 3) as usize]);
        }
    }
    (Machine::from_toml(&format!("{text}\"\"\"\n"), "random").unwrap(), ranks as u32)
}

/// Laws hold on networks in which a message over other ranks may arrive before a direct one, and a barrier takes no
/// longer than an allreduce of one element.
#[test]
fn hold_on_cables_of_unlike_latencies() {
    let mut others = Vec::new();
    for number in 0..crate::soak::cases(12) {
        let drawn = mix(u64::from(number) + 5) >> 1;
        let ((machine, ranks), bytes) = (uneven(drawn), [4, 64, 1024, 8192][number as usize % 4]);
        let (shape, case) = (Shape::line(ranks), format!("network {number} of {ranks} ranks, {bytes} bytes"));
        let found = broken(&machine, shape, &[bytes * u64::from(ranks)]);
        let is_known = |(law, ratio): &(String, f64)| law == "allgather <= alltoall" && *ratio <= SHIFTED;
        let found = found.into_iter().filter(|law| !is_known(law));
        others.extend(found.map(|(law, ratio)| format!("{law} on {case}: {ratio:.3}")));
        let ratio = barrier_ratio(&machine, shape);
        if ratio > EQUAL {
            others.push(format!("barrier on {case}: {ratio:.3}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

/// If receives are free, any number of ranks takes at most 1.2 times as long as the next power of two. Otherwise ranks
/// of a circulant schedule that run ahead may delay others.
#[test]
fn any_number_of_ranks_is_as_good_as_a_power_of_two() {
    for number in 0..crate::soak::cases(20) {
        let drawn = mix(u64::from(number) + 1);
        let (ranks, bytes) = (3 + (drawn >> 50) % 38, 8_u64 << ((drawn >> 56) % 22));
        let machine = cluster(EndpointModel::Postal, drawn - drawn % 3);
        for kind in [Broadcast, Reduce, Allreduce] {
            let of = |ranks: u32| {
                let request = Request::new(kind, &machine, Part::Shape(Shape::line(ranks)), (bytes / 4).max(1));
                plan_best(Problem::new(&request).unwrap(), None, &Params::new()).unwrap().best().time.seconds
            };
            let (time, next) = (of(ranks as u32), of((ranks as u32).next_power_of_two()));
            assert!(time <= 1.2 * next, "{kind} of {bytes} bytes, {ranks} ranks of cluster {number}: {}", time / next);
        }
    }
}

/// A plan names the guideline of an algorithm whose schedule has one phase for each collective, or whose parameters
/// name an algorithm for each.
#[test]
fn plans_name_the_guideline_of_their_algorithm() {
    let machine = Machine::preset("torus2d-small").unwrap();
    let mut named = 0;
    for info in ALGORITHMS.iter().map(|algorithm| algorithm.info()) {
        for (kind, parts) in info.sequences {
            let problem = Problem::new(&Request::new(*kind, &machine, Part::Shape(Shape::rect(4, 4)), 64)).unwrap();
            // If there are several sequences, the parameters choose one.
            let params = parts.iter().fold(Params::new(), |params, part| match part {
                Scatter | Gather | Broadcast | Reduce => params.with(part.name(), "binomial"),
                Alltoall => params.with(part.name(), "pairwise"),
                _ => params.with(part.name(), "ring"),
            });
            let params =
                if info.sequences.iter().filter(|(of, _)| of == kind).count() > 1 { params } else { Params::new() };
            let made = plan(problem, Some(info.name), &params).unwrap();
            let phases = made.schedule().unwrap().phases().iter().map(String::as_str);
            let names: Vec<&str> = parts.iter().map(|part| part.name()).collect();
            if info.composed {
                assert!(names.iter().all(|name| info.params.iter().any(|param| param.name == *name)), "{}", info.name);
            } else {
                assert_eq!(phases.filter(|name| !name.is_empty()).collect::<Vec<_>>(), names, "{}", info.name);
            }
            let guideline = format!("{kind} <= {}", names.join(" + "));
            assert_eq!(made.report().unwrap().guideline, Some(guideline), "{}", info.name);
            named += 1;
        }
    }
    assert!(named > 9, "{named} guidelines");
    let problem = Problem::new(&Request::new(Broadcast, &machine, Part::Shape(Shape::rect(4, 4)), 64)).unwrap();
    assert_eq!(plan(problem, Some("binomial"), &Params::new()).unwrap().report().unwrap().guideline, None);
}
