//! Random problems on random machines of every kind, each from a seed.

use unisono_base::mix;
use unisono_collective::Kind;
use unisono_machine::{EndpointModel, Machine, Shape};
use unisono_plan::{Part, PlanError, Problem, Request, Root};

/// A generator of random numbers.
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = mix(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15));
        self.0 % end
    }

    pub fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    /// Returns a number whose logarithm is uniformly distributed.
    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.below(1 << 20) as f64 / f64::from(1 << 20))
    }
}

/// The sets of rates of the cables of a network, in Gb/s.
const RATES: [&[u64]; 5] = [&[50, 100, 400, 800], &[50, 400, 800], &[100, 400], &[400], &[37, 900]];

/// Draws a tree of all nodes in random order, and further cables. Returns the number of accelerators, and the cables.
pub fn graph(seed: u64, most: u64) -> (u32, String) {
    let mut draws = Draws(seed);
    let (accelerators, switches) = (3 + draws.below(most - 2), draws.below(4));
    let (nodes, rates) = (accelerators + switches, RATES[draws.below(5) as usize]);
    let mut order: Vec<u64> = (0..nodes).collect();
    (1..nodes as usize).for_each(|at| order.swap(at, draws.below(at as u64 + 1) as usize));
    let mut ends: Vec<(u64, u64)> =
        (1..nodes as usize).map(|at| (order[at], order[draws.below(at as u64) as usize])).collect();
    for _ in 0..draws.below(2 * nodes) {
        let (a, b) = (draws.below(nodes), draws.below(nodes));
        if a != b && !ends.contains(&(a, b)) && !ends.contains(&(b, a)) {
            ends.push((a, b));
        }
    }
    let cable = |(a, b): (u64, u64)| format!("{a} {b} gbps={}\n", rates[draws.below(rates.len() as u64) as usize]);
    (accelerators as u32, ends.into_iter().map(cable).collect())
}

/// Draws fast cables that join all accelerators, and a slower cable from each accelerator to one of at most two
/// switches.
pub fn of_two_classes(seed: u64, most: u64) -> (u32, String) {
    let mut draws = Draws(seed);
    let (accelerators, switches) = (3 + draws.below(most - 2), 1 + draws.below(2));
    let (fast, slow) =
        ([[400, 800], [800, 800], [200, 400]][draws.below(3) as usize], [25, 50, 100][draws.below(3) as usize]);
    let mut ends: Vec<(u64, u64)> = (1..accelerators).map(|at| (draws.below(at), at)).collect();
    for _ in 0..draws.below(2 * accelerators) {
        let (a, b) = (draws.below(accelerators), draws.below(accelerators));
        if a < b && !ends.contains(&(a, b)) {
            ends.push((a, b));
        }
    }
    let mut lines: Vec<String> =
        ends.into_iter().map(|(a, b)| format!("{a} {b} gbps={}\n", fast[draws.below(2) as usize])).collect();
    lines.extend((0..accelerators).map(|at| format!("{at} {} gbps={slow}\n", accelerators + at % switches)));
    if switches == 2 {
        lines.push(format!("{accelerators} {} gbps={slow}\n", accelerators + 1));
    }
    (accelerators as u32, lines.concat())
}

/// A random problem and its machine.
pub struct Drawn {
    pub machine: Machine,
    pub part: Part,
    pub kind: Kind,
    pub elements: u64,
    pub root: u64,
}

impl Drawn {
    /// # Errors
    /// Returns an error if the kind of machine does not support the collective.
    pub fn problem(&self) -> Result<Problem, PlanError> {
        let request = Request::new(self.kind, &self.machine, self.part.clone(), self.elements);
        Problem::new(&Request { root: Root::Rank(self.root), ..request })
    }
}

/// Draws a problem among `ranks` ranks of a machine, with vectors of `bytes` bytes.
fn drawn(draws: &mut Draws, (machine, part, ranks): (Machine, Part, u64), kinds: &[Kind], bytes: u64) -> Drawn {
    let kind = draws.of(kinds);
    let has_blocks =
        matches!(kind, Kind::Allgather | Kind::Alltoall | Kind::Gather | Kind::ReduceScatter | Kind::Scatter);
    let elements = match kind {
        Kind::Barrier => 0,
        _ if has_blocks => (bytes / 4 / ranks).max(1),
        _ => (bytes / 4).max(1),
    };
    let root = if kind.has_root() { draws.below(ranks) } else { 0 };
    Drawn { machine, part, kind, elements, root }
}

fn collectives() -> Vec<Kind> {
    Kind::ALL.iter().copied().filter(|kind| *kind != Kind::Message).collect()
}

/// Draws a problem among ranks, with random cost parameters of a random model.
pub fn on_endpoints(seed: u64) -> Drawn {
    let mut draws = Draws(mix(seed));
    let model = draws.of(&EndpointModel::ALL).name();
    let mut text = format!("name = 'drawn'\nkind = 'endpoint'\nmodel = '{model}'\n");
    let prices = [
        ("alpha_ns", 100.0, 1e4),
        ("alpha_p_ns", 100.0, 1e4),
        ("alpha_r_ns", 50.0, 2e3),
        ("beta_ns_per_byte", 1e-3, 2.0),
        ("gamma_ns_per_byte", 1e-3, 0.2),
        ("L_ns", 100.0, 1e4),
        ("o_ns", 50.0, 2e3),
        ("g_ns", 50.0, 2e3),
        ("G_ns_per_byte", 1e-3, 2.0),
        ("O_ns_per_byte", 1e-4, 0.2),
    ];
    for (key, least, most) in prices {
        text += &format!("{key} = {:.4}\n", draws.between(least, most));
    }
    text += &format!("S_bytes = {}\nf_messages = {}\n", 1 << (8 + draws.below(12)), 1 + draws.below(8));
    let mut from_bytes = 1;
    for _ in 0..draws.below(3) {
        from_bytes += 1 + (1 << draws.below(20));
        text += &format!("[[protocols]]\nfrom_bytes = {from_bytes}\n");
        for (key, least, most) in prices.iter().filter(|(key, ..)| *key != "gamma_ns_per_byte") {
            text += &format!("{key} = {:.4}\n", draws.between(*least, *most));
        }
    }
    let machine = Machine::from_toml(&text, "drawn").unwrap();
    let (ranks, bytes) = (2 + draws.below(39), draws.between(4.0, 67_108_864.0) as u64);
    drawn(&mut draws, (machine, Part::Shape(Shape::line(ranks as u32)), ranks), &collectives(), bytes)
}

/// Draws the values of a network, as text of its file.
fn values(draws: &mut Draws, bytes: u64) -> String {
    // Packets are long, so that a vector consists of few packets.
    let packet = (1 << (9 + draws.below(8))).max((bytes / 256).next_power_of_two());
    let signal = draws.of(&[0, 0, 500, 2000]);
    format!(
        "name = 'drawn'\nkind = 'network'\nplanes = {}\nlink_gbps = {}\nlink_latency_ns = {}\ninput_latency_ns = {}\n\
         output_latency_ns = 0\npacket_bytes = {packet}\nbuffer_bytes = {}\nsend_machines = {}\nsend_machines_per = '{}'\n\
         host_overhead_ns = {}\ngamma_ns_per_byte = {:.5}\nsignal_ns = {signal}\n",
        draws.of(&[1, 1, 2, 4]),
        draws.of(&[100, 400, 800]),
        draws.between(20.0, 2000.0) as u64,
        draws.of(&[0, 20, 100]),
        packet * draws.of(&[16, 64, 512]),
        draws.of(&[1, 2, 4]),
        draws.of(&["link", "link", "accelerator"]),
        draws.of(&[0, 1, 100, 1000]),
        draws.between(1e-4, 0.05),
    )
}

/// Presets of GPUs and networks from which a part is drawn.
const PRESETS: [&str; 12] = [
    "dgx-a100",
    "dgx-h100",
    "mi300x",
    "ndv2",
    "dgx2",
    "dgx-a100-x2",
    "torus2d-small",
    "hx2mesh-small",
    "fattree-small",
    "dragonfly-small",
    "hyperx2d-small",
    "fattree-small-reducing",
];

/// Draws a problem on a network: a graph, a small regular network, or a part of a preset.
pub fn on_networks(seed: u64) -> Drawn {
    let mut draws = Draws(mix(seed));
    let bytes = draws.between(4.0, 67_108_864.0) as u64;
    let family = draws.below(8);
    if family < 3 {
        let name = draws.of(&PRESETS);
        let machine = Machine::preset(name).unwrap();
        let machine = if bytes > 4 << 20 {
            let packet = (bytes / 256).next_power_of_two();
            machine.with_value("packet_bytes", &packet.to_string()).unwrap()
        } else {
            machine
        };
        let is_grid = ["torus2d-small", "hx2mesh-small", "hyperx2d-small"].contains(&name);
        let part = if is_grid && draws.below(2) == 0 {
            Shape::rect(1 + draws.below(4) as u32, 2 + draws.below(3) as u32)
        } else {
            Shape::line(2 + draws.below(if name == "dgx-a100-x2" { 15 } else { 7 }) as u32)
        };
        let ranks = part.grid.count();
        return drawn(&mut draws, (machine, Part::Shape(part), ranks), &collectives(), bytes);
    }
    let values = values(&mut draws, bytes);
    let graph_of = |(accelerators, edges): (u32, String)| {
        format!("name = 'graph'\naccelerators = {accelerators}\nrouting = 'fastest'\nedges = '''\n{edges}'''\n")
    };
    let topology = match family {
        3 => graph_of(of_two_classes(draws.0, 8)),
        4 => {
            let [down, up] = [2 + draws.below(4), 1 + draws.below(4)];
            let accelerators = down * (1 + draws.below(4));
            format!("name = 'fattree'\naccelerators = {accelerators}\nlevels = 2\ndown = {down}\nup = {up}\n")
        }
        5 => {
            let (name, dims) = draws.of(&[
                ("torus", "4"),
                ("torus", "3, 4"),
                ("torus", "4, 4"),
                ("torus", "3, 3, 3"),
                ("mesh", "6"),
                ("mesh", "2, 3"),
                ("mesh", "4, 3"),
                ("mesh", "2, 2, 3"),
            ]);
            format!("name = '{name}'\ndims = [{dims}]\n")
        }
        6 => {
            let board = draws.of(&["1, 1", "2, 2", "1, 2"]);
            let boards = draws.of(&["1, 2", "2, 2", "2, 1", "1, 3"]);
            format!("name = 'hxmesh'\nboard = [{board}]\nboards = [{boards}]\n")
        }
        _ => graph_of(graph(draws.0, 9)),
    };
    let machine = Machine::from_toml(&format!("{values}[topology]\n{topology}"), "drawn").unwrap();
    let ranks = {
        let request = Request::new(Kind::Allreduce, &machine, Part::All, 1);
        u64::from(Problem::new(&request).unwrap().target.ranks())
    };
    drawn(&mut draws, (machine, Part::All, ranks), &collectives(), bytes)
}

/// Draws an alltoall on a mesh or a torus. Its blocks have an eighth to 16 times the bytes of a buffer, so that many
/// fill the buffers of the busiest links.
pub fn on_full_buffers(seed: u64) -> Drawn {
    let mut draws = Draws(mix(seed));
    let (name, dims, ranks) = draws.of(&[
        ("mesh", "4, 4", 16),
        ("mesh", "3, 5", 15),
        ("mesh", "2, 2, 3", 12),
        ("mesh", "7", 7),
        ("torus", "4, 4", 16),
        ("torus", "3, 6", 18),
        ("torus", "3, 4", 12),
        ("torus", "9", 9),
    ]);
    let text = format!(
        "name = 'drawn'\nkind = 'network'\nplanes = 1\nlink_gbps = 360\nlink_latency_ns = 500\ninput_latency_ns = 0\n\
         output_latency_ns = 0\npacket_bytes = 8192\nbuffer_bytes = 262144\nsend_machines = {}\n\
         send_machines_per = 'link'\n[topology]\nname = '{name}'\ndims = [{dims}]\n",
        draws.of(&[1, 2, 4]),
    );
    let bytes = draws.between(32768.0, 4_194_304.0) as u64 * ranks;
    drawn(&mut draws, (Machine::from_toml(&text, "drawn").unwrap(), Part::All, ranks), &[Kind::Alltoall], bytes)
}

/// Draws a problem on a row or a grid of PEs.
pub fn on_wafers(seed: u64) -> Drawn {
    let mut draws = Draws(mix(seed));
    let shape = if draws.below(2) == 0 {
        Shape::line(draws.between(2.0, 129.0) as u32)
    } else {
        Shape::rect(draws.between(2.0, 17.0) as u32, draws.between(2.0, 17.0) as u32)
    };
    let machine = Machine::preset("wse2").unwrap();
    let machine = machine.with_value("ramp_latency_cycles", &draws.of(&[1, 2, 2, 2, 7]).to_string()).unwrap();
    let bytes = 4 * draws.between(1.0, 4097.0) as u64;
    let kinds = [Kind::Allgather, Kind::Allreduce, Kind::Alltoall, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter];
    drawn(&mut draws, (machine, Part::Shape(shape), shape.grid.count()), &kinds, bytes)
}

/// Draws a problem on the first cores of a machine whose switches reduce.
pub fn on_reducing_switches(seed: u64) -> Drawn {
    let mut draws = Draws(mix(seed));
    let machine = Machine::preset(draws.of(&["piuma", "piuma-wide"])).unwrap();
    let values = [
        ("memory_gbps", draws.of(&[51.2, 102.4, 409.6])),
        ("core_latency_ns", draws.between(2.0, 50.0).round()),
        ("socket_latency_ns", draws.between(10.0, 200.0).round()),
        ("node_latency_ns", draws.between(20.0, 1000.0).round()),
        ("engine_level_ns", draws.of(&[0.0, 0.0, 5.0])),
        ("node_step_ns", draws.of(&[0.0, 0.0, 40.0])),
    ];
    let machine = values.iter().fold(machine, |machine, (key, value)| {
        machine.with_value(key, &value.to_string()).unwrap_or_else(|e| panic!("{e}"))
    });
    let (ranks, bytes) = (draws.between(1.0, 129.0) as u64, draws.between(4.0, 4_194_304.0) as u64);
    let kinds = [Kind::Allreduce, Kind::Barrier, Kind::Broadcast, Kind::Reduce];
    drawn(&mut draws, (machine, Part::Shape(Shape::line(ranks as u32)), ranks), &kinds, bytes)
}
