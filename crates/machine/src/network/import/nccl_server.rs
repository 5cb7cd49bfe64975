//! A box in a topology of NCCL: its nodes and cables, and the network that is made of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use unisono_base::narrow;

use crate::{Machine, network::Architecture};

use super::{
    ASSUMED_NETWORK_NS, ASSUMED_NS, Gpu, ImportOptions, Network, SwitchClass,
    nccl_odd::{Device, left_out, lone_gpu, of_devices, over_nvlink, slow_links, sums, unknown_speeds},
    nccl_rates::{NIC_SHARE, Rate, nvls_share},
    network,
};

/// The first architecture whose NVSwitches copy and reduce.
const FIRST_SHARP: u32 = 90;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// A GPU with its rank and device number, if they are stated.
    Gpu(Option<i64>, Option<i64>),
    /// A network interface with the rate of its ports in GB/s.
    Nic(f64),
    Pci,
    Cpu,
    NvSwitch,
}

/// The nodes of a box, and its cables with their rates.
#[derive(Default)]
pub struct Server {
    pub kinds: Vec<Kind>,
    pub cables: Vec<(usize, usize, Rate)>,
    /// The latest architecture of a GPU with a link to NVSwitches.
    pub switched_sm: Option<u32>,
    /// The oldest architecture and the largest number of NVLinks of the GPUs, and the maker of the CPUs of the box.
    pub gpu: Option<Gpu>,
    /// PCIe speeds that NCCL's table does not contain.
    pub unknown_speeds: BTreeSet<String>,
    /// Elements that NCCL omits.
    pub left_out: Vec<String>,
    /// Each device with its node, in the order of the file.
    pub devices: Vec<(usize, Device)>,
    /// Sentences about irregular devices.
    pub odd: Vec<String>,
}

impl Server {
    pub fn node(&mut self, kind: Kind) -> usize {
        self.kinds.push(kind);
        self.kinds.len() - 1
    }

    pub fn rate_of(&self, node: usize) -> f64 {
        match self.kinds[node] {
            Kind::Nic(rate) => rate,
            _ => 0.0,
        }
    }

    /// Removes the cables of CPUs of several boxes if NVLinks join all GPUs and every network interface is near a GPU:
    /// NCCL then sends a message only through an interface near a GPU; a GPU reaches other interfaces through the GPUs
    /// near them (PXN, `ncclTopoComputePaths` in src/graph/paths.cc). So no message crosses a CPU. Each GPU gets its
    /// own interface, if there are enough.
    #[must_use]
    pub fn over_nvlink(mut self) -> Self {
        let is_gpu = |node: usize| matches!(self.kinds[node], Kind::Gpu(..));
        let gpus: Vec<usize> = (0..self.kinds.len()).filter(|&node| is_gpu(node)).collect();
        let pairs: BTreeSet<(usize, usize)> = self
            .cables
            .iter()
            .map(|&(a, b, _)| (a.min(b), a.max(b)))
            .filter(|&(a, b)| is_gpu(a) && is_gpu(b))
            .collect();
        let has_nvswitch =
            self.kinds.iter().position(|kind| *kind == Kind::NvSwitch).is_some_and(|at| self.joins_all(at));
        let is_of_nvidia = self.gpu.is_some_and(|gpu| alike(gpu.architecture).is_some());
        let are_joined = has_nvswitch || 2 * pairs.len() == gpus.len() * gpus.len().saturating_sub(1);
        let nics: Vec<usize> =
            (0..self.kinds.len()).filter(|&at| matches!(self.kinds[at], Kind::Nic(rate) if rate > 0.0)).collect();
        if !is_of_nvidia || gpus.len() < 2 || !are_joined || !nics.iter().all(|&nic| self.cables_to_gpu(nic).is_some())
        {
            return self;
        }
        let before = self.cables.len();
        let is_of_cpu = |node: usize| self.kinds[node] == Kind::Cpu;
        self.cables.retain(|&(a, b, _)| !is_of_cpu(a) && !is_of_cpu(b));
        if self.cables.len() < before {
            self.odd.push(over_nvlink());
        }
        let numbers = self.numbers();
        for switch in (0..self.kinds.len()).filter(|&at| self.kinds[at] == Kind::Pci).collect::<Vec<_>>() {
            self.pair(switch, &numbers);
        }
        self
    }

    /// Replaces a PCIe switch with equally many GPUs and interfaces by one cable for each pair, because each GPU then
    /// sends through its own interface (`ncclTopoGetLocalNet` of src/graph/topo.cc).
    fn pair(&mut self, switch: usize, numbers: &[usize]) {
        let near = |&(a, b, rate): &(usize, usize, Rate)| {
            (a == switch).then_some((b, rate)).or((b == switch).then_some((a, rate)))
        };
        let mut ends: Vec<(usize, Rate)> = self.cables.iter().filter_map(near).collect();
        ends.sort_by_key(|&(node, _)| numbers[node]);
        let is_gpu = |node: usize| matches!(self.kinds[node], Kind::Gpu(..));
        let (gpus, others): (Vec<_>, Vec<_>) = ends.into_iter().partition(|&(node, _)| is_gpu(node));
        let are_nics = others.iter().all(|&(node, _)| matches!(self.kinds[node], Kind::Nic(_)));
        if gpus.len() != others.len() || !are_nics {
            return;
        }
        self.cables.retain(|&(a, b, _)| a != switch && b != switch);
        let least = |a: Rate, b: Rate| if b < a { b } else { a };
        let pairs = gpus.into_iter().zip(others);
        self.cables.extend(pairs.map(|((gpu, rate), (nic, other))| (gpu, nic, least(rate, other))));
    }

    /// Returns the number of cables from a network interface to the nearest GPU over PCIe switches; `None` if the path
    /// has a CPU.
    fn cables_to_gpu(&self, nic: usize) -> Option<u32> {
        let (mut near, mut seen) = (vec![nic], BTreeSet::from([nic]));
        for cables in 0_u32.. {
            if near.is_empty() {
                break;
            }
            if near.iter().any(|&node| matches!(self.kinds[node], Kind::Gpu(..))) {
                return Some(cables);
            }
            let ends = |&(a, b, _): &(usize, usize, Rate)| [(a, b), (b, a)];
            let is_way = |node: usize| matches!(self.kinds[node], Kind::Pci | Kind::Gpu(..));
            let next = self.cables.iter().flat_map(ends).filter(|(from, to)| near.contains(from) && is_way(*to));
            near = next.map(|(_, to)| to).filter(|&to| seen.insert(to)).collect();
        }
        None
    }

    /// Removes switches with at most one cable, repeatedly. Network interfaces remain only if `with_nics` is true and
    /// they have a rate.
    pub fn without_dead_ends(self, with_nics: bool) -> Self {
        let stays = |kind: &Kind| match kind {
            Kind::Gpu(..) => true,
            Kind::Nic(rate) => with_nics && *rate > 0.0,
            _ => false,
        };
        let mut degree = vec![0_u32; self.kinds.len()];
        let mut at_node: Vec<Vec<usize>> = vec![Vec::new(); self.kinds.len()];
        for &(a, b, _) in &self.cables {
            degree[a] += 1;
            degree[b] += 1;
            at_node[a].push(b);
            at_node[b].push(a);
        }
        let mut gone = vec![false; self.kinds.len()];
        let mut open: Vec<usize> = (0..self.kinds.len()).collect();
        while let Some(node) = open.pop() {
            let is_idle = matches!(self.kinds[node], Kind::Nic(_)) || degree[node] <= 1;
            if gone[node] || stays(&self.kinds[node]) || !is_idle {
                continue;
            }
            gone[node] = true;
            for &other in at_node[node].iter().filter(|&&other| !gone[other]) {
                degree[other] -= 1;
                open.push(other);
            }
        }
        let mut new = vec![usize::MAX; self.kinds.len()];
        let mut left = Self {
            switched_sm: self.switched_sm,
            gpu: self.gpu,
            unknown_speeds: self.unknown_speeds,
            left_out: self.left_out,
            odd: self.odd,
            ..Self::default()
        };
        for node in (0..self.kinds.len()).filter(|&node| !gone[node]) {
            new[node] = left.node(self.kinds[node]);
        }
        let stay = self.cables.into_iter().filter(|&(a, b, _)| !gone[a] && !gone[b]);
        left.cables = stay.map(|(a, b, rate)| (new[a], new[b], rate)).collect();
        left
    }

    /// Returns sentences about devices that differ from the others, and about network interfaces of a single GPU.
    pub fn odd_devices(&self, boxes: u32) -> Vec<String> {
        let numbers = self.numbers();
        let mut devices: Vec<(usize, Device)> =
            self.devices.iter().map(|(at, one)| (numbers[*at], one.clone())).collect();
        devices.sort_by_key(|&(number, _)| number);
        for (number, device) in devices.iter_mut().filter(|(_, device)| device.is_gpu) {
            device.name = number.to_string();
        }
        let devices: Vec<Device> = devices.into_iter().map(|(_, device)| device).collect();
        let mut found = of_devices(&devices, boxes);
        let nics = self.kinds.iter().filter(|kind| matches!(kind, Kind::Nic(rate) if *rate > 0.0)).count();
        let gpus = self.kinds.iter().filter(|kind| matches!(kind, Kind::Gpu(..))).count();
        if boxes == 1 && gpus == 1 && nics > 0 {
            found.push(lone_gpu(nics));
        }
        found
    }

    /// Returns the number of each node. GPUs come first: in the order of their ranks if all have different ranks, or
    /// else of their device numbers if these differ, or else in the order of the file. All other nodes follow.
    fn numbers(&self) -> Vec<usize> {
        let mut gpus: Vec<usize> = Vec::new();
        let (mut ranks, mut devices) = (Vec::new(), Vec::new());
        for (node, kind) in self.kinds.iter().enumerate() {
            if let Kind::Gpu(rank, device) = *kind {
                gpus.push(node);
                ranks.push(rank);
                devices.push(device);
            }
        }
        if let Some(keys) = [ranks, devices].into_iter().find(|keys| are_unlike(keys)) {
            let mut keyed: Vec<_> = keys.into_iter().zip(gpus).collect();
            keyed.sort_unstable();
            gpus = keyed.into_iter().map(|(_, node)| node).collect();
        }
        let others = (0..self.kinds.len()).filter(|&node| !matches!(self.kinds[node], Kind::Gpu(..)));
        let order: Vec<usize> = gpus.into_iter().chain(others).collect();
        let mut numbers = vec![0; self.kinds.len()];
        order.iter().enumerate().for_each(|(number, &node)| numbers[node] = number);
        numbers
    }

    pub fn network(&self, options: &ImportOptions, gpus: usize) -> Network {
        let numbers = self.numbers();
        let mut inside = String::new();
        for (node, kind) in self.kinds.iter().enumerate() {
            let name = match kind {
                Kind::Gpu(..) => continue,
                Kind::Nic(_) => "a network interface",
                Kind::Pci => "a switch of PCIe",
                Kind::Cpu => "a CPU",
                Kind::NvSwitch => "the NVSwitches",
            };
            let _ = writeln!(inside, "# {} is {name}", numbers[node]);
        }
        for &(a, b, rate) in &self.cables {
            let _ = writeln!(inside, "{} {} {} board", numbers[a], numbers[b], rate.words());
        }
        let (mut uplinks, mut trunks) = (String::new(), Vec::new());
        for (node, kind) in self.kinds.iter().enumerate() {
            if let Kind::Nic(rate) = kind {
                let rate = Rate { measured: NIC_SHARE * rate, sheet: *rate };
                let inside = self.cables_to_gpu(node).map_or(0.0, |cables| f64::from(2 * cables) * ASSUMED_NS);
                let ns = ((ASSUMED_NETWORK_NS - inside) / 2.0).max(ASSUMED_NS);
                let _ = writeln!(uplinks, "{} {} {} ns={ns} aoc", numbers[node], trunks.len(), rate.words());
                trunks.push(rate.times(f64::from(options.boxes)));
            }
        }
        let mut topology = toml::Table::new();
        let count = i64::from(narrow::<u32>(gpus));
        if options.boxes == 1 {
            topology.insert("name".to_owned(), "graph".into());
            topology.insert("accelerators".to_owned(), count.into());
            topology.insert("edges".to_owned(), inside.into());
        } else {
            topology.insert("name".to_owned(), "boxes".into());
            topology.insert("boxes".to_owned(), i64::from(options.boxes).into());
            topology.insert("accelerators".to_owned(), count.into());
            topology.insert("inside".to_owned(), inside.into());
            topology.insert("uplinks".to_owned(), uplinks.into());
            let spine = trunks.len();
            let outside =
                trunks.iter().enumerate().filter(|_| spine > 1).fold(String::new(), |mut text, (leaf, rate)| {
                    let _ = writeln!(text, "{leaf} {spine} {} ns={} aoc", rate.words(), ASSUMED_NETWORK_NS / 4.0);
                    text
                });
            topology.insert("outside".to_owned(), outside.into());
        }
        let faster = |one: Rate, other: Rate| if one < other { other } else { one };
        let fastest = self.cables.iter().map(|cable| cable.2).fold(Rate::of(0.125), faster);
        let boxes = if options.boxes == 1 { String::new() } else { format!("{} boxes of ", options.boxes) };
        let summary = format!(
            "{boxes}{gpus} GPU{}, from a topology of NCCL; latencies, packets and buffers are assumed",
            if gpus == 1 { "" } else { "s" }
        );
        let mut made = network(options, summary, 8.0 * fastest.sheet, topology);
        made.measured_gbps = (fastest.measured < fastest.sheet).then_some(8.0 * fastest.measured);
        made.gpu = self.gpu;
        if let Some(preset) = self.gpu.and_then(|gpu| alike(gpu.architecture))
            && let Some(like) = Machine::preset(preset).ok().as_ref().and_then(Machine::get::<Network>)
        {
            (made.launch_ns, made.signal_ns) = (like.launch_ns, like.signal_ns);
            made.notes.push(format!(
                "assumed, as the imported file states neither: the start of a kernel and a signal of {preset} (launch_ns = {}, \
                 signal_ns = {})",
                like.launch_ns, like.signal_ns
            ));
        }
        if let Some(sm) = self.switched_sm.filter(|&sm| sm >= FIRST_SHARP) {
            let switch = self.kinds.iter().position(|kind| *kind == Kind::NvSwitch).filter(|&at| self.joins_all(at));
            made.switches.extend(switch.map(|at| nvls(narrow(numbers[at]), options.boxes > 1, sm)));
            made.notes.push(sums(sm, switch.is_some()));
        }
        made.notes.extend(self.odd.iter().cloned());
        made.notes.extend(slow_links(&self.rates_of_links(&numbers), self.kinds.contains(&Kind::NvSwitch)));
        made.notes.extend(left_out(&self.left_out));
        made.notes.extend(unknown_speeds(&self.unknown_speeds));
        made
    }

    fn joins_all(&self, at: usize) -> bool {
        let is_gpu = |node: usize| matches!(self.kinds[node], Kind::Gpu(..));
        let joined: BTreeSet<usize> = self
            .cables
            .iter()
            .filter_map(|&(a, b, _)| if a == at { Some(b) } else { (b == at).then_some(a) })
            .filter(|&node| is_gpu(node))
            .collect();
        joined.len() == (0..self.kinds.len()).filter(|&node| is_gpu(node)).count()
    }

    /// Returns the total measured rate, in GB/s, of each GPU's links to other GPUs and NVSwitches, by the GPU's number.
    fn rates_of_links(&self, numbers: &[usize]) -> BTreeMap<usize, f64> {
        let is_fast = |node: usize| matches!(self.kinds[node], Kind::Gpu(..) | Kind::NvSwitch);
        let mut rates = BTreeMap::new();
        for (node, _) in self.kinds.iter().enumerate().filter(|(_, kind)| matches!(kind, Kind::Gpu(..))) {
            let own = self.cables.iter().filter(|&&(a, b, _)| (a == node && is_fast(b)) || (b == node && is_fast(a)));
            rates.insert(numbers[node], own.fold(0.0, |all, cable| all + cable.2.measured));
        }
        rates
    }
}

/// Returns the class of NVSwitches that multicast and reduce, which are those of the third generation and later.
fn nvls(node: u32, in_boxes: bool, sm: u32) -> SwitchClass {
    let (nodes, inside) = if in_boxes { (Vec::new(), vec![node]) } else { (vec![node], Vec::new()) };
    SwitchClass {
        nodes,
        inside,
        multicast: true,
        operators: vec!["sum".to_owned()],
        pulls: true,
        measured_share: Some(nvls_share(sm)),
        ..SwitchClass::default()
    }
}

/// Returns the name of the preset whose GPUs are most similar to an architecture, among presets with measured
/// `launch_ns` and `signal_ns`. Returns `None` for GPUs of AMD.
fn alike(architecture: Architecture) -> Option<&'static str> {
    match architecture {
        Architecture::Volta | Architecture::Ampere => Some("dgx-a100"),
        Architecture::Hopper => Some("dgx-h100"),
        Architecture::Blackwell => Some("gb200-nvl72"),
        Architecture::Cdna2 | Architecture::Cdna3 | Architecture::Cdna4 => None,
    }
}

/// Returns whether all keys are stated and no two are equal.
pub fn are_unlike(keys: &[Option<i64>]) -> bool {
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    sorted.iter().all(Option::is_some) && sorted.windows(2).all(|pair| pair[0] != pair[1])
}
