//! A topology of NCCL or RCCL, as `NCCL_TOPO_DUMP_FILE` writes it.
//!
//! ```text
//! <system> <cpu numaid arch vendor familyid modelid host_hash>
//!   <pci busid class link_speed link_width> ...                       switches of PCIe, nested
//!     <pci ...><gpu dev sm rank gcn><nvlink target count tclass/></gpu></pci>     or <xgmi .../>, <c2c bw count/>
//!     <pci ...><nic><net name dev speed/></nic></pci>
//! ```
//!
//! A device that is divided into partitions has several elements `<gpu>` in one `<pci>`, and each of them is a rank
//! (NCCL, MLOPart).
//!
//! As in NCCL, a `<gpu>` without `rank` and the elements after it in its `<pci>`, each further `<nic>` of a `<pci>`,
//! and a `<net>` without `dev` or with `net="0"` are omitted from the machine. A note names the omitted elements.
//!
//! GPUs are accelerators, in the order of their ranks if these differ, else of their device numbers. PCIe switches and
//! CPUs are switches. All NVSwitches are one switch, as in NCCL. Switches with a single cable are omitted. Rates are
//! those of NCCL and RCCL: GB/s of an NVLink by `sm` (60: 18, 70 and 80: 20, 86: 12, 90: 20.6, 100: 40.1), of an xGMI
//! link by `gcn` (24, MI200 36, MI300 48), of PCIe by generation and lanes (8 GT/s x 16: 12), between CPUs by model, of
//! a network interface by `speed`. These rates become the measured rates of cables; the rates of data sheets are stated
//! too, except between CPUs and at network interfaces. The file has no latencies.
//!
//! The rates between CPUs are those of NCCL's branch `dev` in 2026, which distinguishes generations of AMD's CPUs.
//!
//! Several boxes are joined by their network interfaces: the k-th of every box is on shared switch k, and one switch
//! joins these at full rate, as in the presets of servers.
//!
//! Sources: NVIDIA/nccl, src/graph/topo.h and topo.cc; ROCm/rccl, src/graph/topo.h.

use std::collections::{BTreeMap, BTreeSet};

use unisono_base::xml::{self, Element, XmlError};

use super::{
    Format, ImportOptions, Network, Refusal,
    nccl_odd::{ASSUMED_NIC, Device, unread},
    nccl_rates::{Rate, between_cpus, gpu_of, nvlink, of_generation, pcie, sm, xgmi},
    nccl_server::{Kind, Server, are_unlike},
};

pub const FORMAT: Format = Format { name: "nccl-topo", read };

/// The largest number of CPUs of one host, which are fully connected; NCCL itself accepts 256 nodes.
const MOST_CPUS: usize = 1024;
const MOST_LINKS: i64 = 1 << 16;

impl From<XmlError> for Refusal {
    fn from(error: XmlError) -> Self {
        Self { line: Some(error.line), message: error.message }
    }
}

fn read(text: &str, options: &ImportOptions) -> Result<Network, Refusal> {
    if options.accelerators.is_some() {
        return Err("a topology of NCCL states which nodes are accelerators".to_owned().into());
    }
    let system = xml::parse(text, "system")?;
    if system.name != "system" {
        let message =
            format!("<{}> is not <system>; accepted are files of NCCL_TOPO_DUMP_FILE", xml::short(&system.name));
        return Err(Refusal { line: Some(system.line), message });
    }
    let mut found = Reader::read(&system)?;
    found.odd = found.odd_devices(options.boxes);
    found.odd.extend(unread(&system));
    found.odd.extend(found.gpu.and_then(|gpu| of_generation(&system.children, gpu.architecture)));
    let found = if options.boxes > 1 { found.over_nvlink() } else { found };
    let found = found.without_dead_ends(options.boxes > 1);
    let gpus = found.kinds.iter().filter(|kind| matches!(kind, Kind::Gpu(..))).count();
    if gpus == 0 {
        let why = found.left_out.first().map_or_else(
            || "run the program that writes it on all of them".to_owned(),
            |first| format!("NCCL leaves out {first}"),
        );
        return Err(format!("the topology has no GPUs; {why}").into());
    }
    let nics = found.kinds.iter().filter(|kind| matches!(kind, Kind::Nic(_))).count();
    if options.boxes > 1 && nics == 0 {
        return Err("the topology has no network interfaces that could join several boxes".to_owned().into());
    }
    Ok(found.network(options, gpus))
}

#[derive(Default)]
struct Reader {
    found: Server,
    /// The GPU nodes by host and bus; several share a bus if a GPU is divided into partitions (MLOPart).
    gpus: BTreeMap<(String, String), Vec<usize>>,
    nvswitch: Option<usize>,
    /// The host and rank of each GPU read so far.
    ranks: BTreeSet<(String, i64)>,
}

/// The path from a device to its CPU.
#[derive(Clone, Copy)]
struct Way<'a> {
    /// The node of the CPU or PCIe switch above the device.
    parent: usize,
    cpu: usize,
    host: &'a str,
    /// The least rate on the PCIe path from the device's parent to the CPU; `None` directly below the CPU.
    rate: Option<Rate>,
}

/// An element that describes a link of a GPU, with the GPU, its CPU and its host.
struct Linked<'a> {
    element: &'a Element,
    gpu: usize,
    gpu_element: &'a Element,
    cpu: usize,
    host: &'a str,
}

impl Reader {
    fn read(system: &Element) -> Result<Server, Refusal> {
        let mut reader = Self::default();
        let mut linked = Vec::new();
        let mut hosts: BTreeMap<&str, Vec<(usize, f64)>> = BTreeMap::new();
        for cpu in system.children.iter().filter(|e| e.name == "cpu") {
            let host = cpu.find("host_hash").unwrap_or("");
            let node = reader.found.node(Kind::Cpu);
            let cpus = hosts.entry(host).or_default();
            cpus.push((node, between_cpus(cpu)));
            if cpus.len() > MOST_CPUS {
                let message = format!("the topology has more than {MOST_CPUS} <cpu> of one host");
                return Err(Refusal { line: Some(cpu.line), message });
            }
            for child in &cpu.children {
                reader.device(child, Way { parent: node, cpu: node, host, rate: None }, &mut linked)?;
            }
        }
        for cpus in hosts.values() {
            for (at, &(cpu, rate)) in cpus.iter().enumerate() {
                reader.found.cables.extend(cpus[at + 1..].iter().map(|&(other, _)| (cpu, other, Rate::of(rate))));
            }
        }
        reader.links(&linked)?;
        reader.found.gpu = gpu_of(&system.children);
        let hosts: BTreeSet<&String> = reader.gpus.keys().map(|(host, _)| host).collect();
        if hosts.len() > 1 && reader.nvswitch.is_none() {
            let message = format!(
                "the topology has GPUs of {} hosts that no NVSwitch joins; write it on one host, and import that with --boxes",
                hosts.len()
            );
            return Err(message.into());
        }
        Ok(reader.found)
    }

    /// Reads a device below a CPU or a PCIe switch. The XML reader limits the depth of elements.
    fn device<'a>(&mut self, element: &'a Element, way: Way<'a>, linked: &mut Vec<Linked<'a>>) -> Result<(), Refusal> {
        let Way { parent, cpu, host, .. } = way;
        if element.name == "nic" {
            let node = self.nic(element, None)?;
            let rate = Rate::of(self.found.rate_of(node));
            self.found.cables.push((parent, node, rate));
        }
        if element.name != "pci" {
            return Ok(());
        }
        let (rate, is_known) = pcie(element)?;
        let least = way.rate.filter(|&before| before < rate).unwrap_or(rate);
        if !is_known {
            self.found.unknown_speeds.insert(xml::short(element.text("link_speed")?));
        }
        let of_name = |name: &'static str| element.children.iter().filter(move |e| e.name == name);
        let gpus: Vec<&Element> = of_name("gpu").take_while(|gpu| gpu.find("rank").is_some()).collect();
        let has_all = gpus.len() == of_name("gpu").count();
        if let Some(gpu) = of_name("gpu").nth(gpus.len()) {
            let bus = xml::short(element.text("busid")?);
            self.found.left_out.push(format!("the <gpu> of {bus} in line {}, which has no rank", gpu.line));
        }
        if !gpus.is_empty() {
            let bus = bus(element.text("busid")?);
            let refused = |message| Err(Refusal { line: Some(element.line), message });
            if self.gpus.contains_key(&(host.to_owned(), bus.clone())) {
                return refused(format!("two GPUs have the busid {}", xml::short(element.text("busid")?)));
            }
            let number = |gpu: &Element, key: &str| gpu.stated(key, i64::MIN, i64::MAX);
            let ranks = gpus.iter().map(|gpu| number(gpu, "rank")).collect::<Result<Vec<_>, _>>()?;
            if gpus.len() > 1 && !are_unlike(&ranks) {
                let bus = xml::short(element.text("busid")?);
                return refused(format!(
                    "the device {bus} has {} <gpu>, and their ranks do not differ; accepted are several <gpu> of one device \
                     that are ranks of their own",
                    gpus.len()
                ));
            }
            for (&rank, gpu) in ranks.iter().zip(&gpus) {
                if let Some(rank) = rank.filter(|&rank| !self.ranks.insert((host.to_owned(), rank))) {
                    let message = format!(
                        "two GPUs have rank {rank}; accepted is a rank of its own for each, as NCCL_TOPO_DUMP_FILE writes \
                         them"
                    );
                    return Err(Refusal { line: Some(gpu.line), message });
                }
            }
            // Partitions of a GPU share its PCIe link.
            let device = if gpus.len() > 1 {
                let device = self.found.node(Kind::Pci);
                self.found.cables.push((parent, device, rate));
                device
            } else {
                parent
            };
            for (gpu, rank) in gpus.into_iter().zip(ranks) {
                let node = self.found.node(Kind::Gpu(rank, number(gpu, "dev")?));
                self.found.cables.push((device, node, rate));
                self.gpus.entry((host.to_owned(), bus.clone())).or_default().push(node);
                let gdr = gpu.find("gdr").map(|gdr| gdr.trim() != "0");
                let name = String::new();
                self.found.devices.push((node, Device { is_gpu: true, name, gdr, pcie: least, speed: None }));
                let links = gpu.children.iter();
                linked.extend(links.map(|e| Linked { element: e, gpu: node, gpu_element: gpu, cpu, host }));
            }
        }
        if let Some(nic) = of_name("nic").next().filter(|_| has_all) {
            let node = self.nic(nic, Some(least))?;
            self.found.cables.push((parent, node, rate));
            if let Some(second) = of_name("nic").nth(1) {
                let bus = xml::short(element.text("busid")?);
                self.found.left_out.push(format!("the second <nic> of {bus} in line {}", second.line));
            }
        } else if of_name("gpu").next().is_none() {
            let node = self.found.node(Kind::Pci);
            self.found.cables.push((parent, node, rate));
            for child in &element.children {
                self.device(child, Way { parent: node, rate: Some(least), ..way }, linked)?;
            }
        }
        Ok(())
    }

    /// Reads a network interface. `pcie` is the least rate of its path over PCIe; `None` for an interface at a CPU.
    fn nic(&mut self, nic: &Element, pcie: Option<Rate>) -> Result<usize, Refusal> {
        let mut rate = 0.0;
        let (mut names, mut gdr, mut has_speed) = (Vec::new(), Some(true), true);
        for net in nic.children.iter().filter(|e| e.name == "net") {
            let is_net = net.stated("net", i64::MIN, i64::MAX)? != Some(0);
            if !is_net || net.find("dev").is_none() {
                let why = if is_net { "has no dev" } else { "is no network device" };
                self.found.left_out.push(format!("the <net> in line {}, which {why}", net.line));
                continue;
            }
            // `speed` is in Mb/s; NCCL assumes 10 Gb/s if a plugin states no speed, or -1.
            let speed = if net.find("speed").is_some() { net.number("speed", i32::MIN.into(), 1 << 40)? } else { 0 };
            rate += if speed > 0 { speed as f64 / 8000.0 } else { ASSUMED_NIC };
            has_speed &= speed > 0;
            // If an interface has several ports, the result is that of its worst port: a port without GPUDirect RDMA is
            // worse than a port whose element does not state it.
            let own = net.find("gdr").map(|gdr| gdr.trim() != "0");
            gdr = if gdr == Some(false) || own == Some(false) { Some(false) } else { gdr.and(own) };
            names.push(xml::short(net.find("name").or(net.find("dev")).unwrap_or_default()));
        }
        let node = self.found.node(Kind::Nic(rate));
        if let Some(pcie) = pcie.filter(|_| !names.is_empty()) {
            let (name, speed) = (names.join("+"), has_speed.then_some(rate));
            self.found.devices.push((node, Device { is_gpu: false, name, gdr, pcie, speed }));
        }
        Ok(node)
    }

    /// Adds NVLinks, xGMI and C2C links after all GPUs are known. Rates of entries of one GPU that lead to the same
    /// node are added. A link between two GPUs is listed at both GPUs, but added once, with the larger of the two
    /// rates.
    fn links(&mut self, linked: &[Linked]) -> Result<(), Refusal> {
        // The rates of each pair of GPUs as the first and the second GPU state them; 0 for a GPU that states none.
        let mut between: BTreeMap<(usize, usize), [Rate; 2]> = BTreeMap::new();
        for &Linked { element, gpu, gpu_element, cpu, host } in linked {
            let each = match element.name.as_str() {
                "nvlink" => nvlink(gpu_element)?,
                "xgmi" => xgmi(gpu_element),
                // `bw` is in MB/s.
                "c2c" => Rate::of(element.number("bw", 0, 1 << 40)? as f64 / 1000.0),
                _ => continue,
            };
            let rate = each.times(element.number("count", 0, MOST_LINKS)? as f64);
            if rate.sheet == 0.0 {
                continue;
            }
            let target = element.find("target").map(bus).unwrap_or_default();
            let class = element.find("tclass").unwrap_or("");
            let other = match self.gpus.get(&(host.to_owned(), target)).map(Vec::as_slice) {
                Some([other]) => *other,
                // The file does not state which of the partitions has the link.
                Some(_) => {
                    let message =
                        "a link leads to a device with several ranks; accepted are links of theirs to NVSwitches";
                    return Err(Refusal { line: Some(element.line), message: message.to_owned() });
                }
                None if element.name == "c2c" || class == "0x068001" => cpu,
                None if class.starts_with("0x0680") => {
                    let found = &mut self.found;
                    found.switched_sm = found.switched_sm.max(Some(sm(gpu_element)?));
                    *self.nvswitch.get_or_insert_with(|| found.node(Kind::NvSwitch))
                }
                // The target is a GPU that the file does not contain.
                None => continue,
            };
            if other != gpu {
                let sides = between.entry((gpu.min(other), gpu.max(other))).or_default();
                let side = &mut sides[usize::from(gpu > other)];
                *side = side.plus(rate);
            }
        }
        self.found
            .cables
            .extend(between.into_iter().map(|((a, b), [one, other])| (a, b, if one < other { other } else { one })));
        Ok(())
    }
}

/// Returns a bus in lower case, without the leading zeros of its domain, which has 4 or 8 digits.
fn bus(text: &str) -> String {
    let text = text.trim().to_ascii_lowercase();
    text.trim_start_matches('0').to_owned()
}
