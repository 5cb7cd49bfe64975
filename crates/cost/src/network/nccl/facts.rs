//! The facts of a machine that NCCL's search reads: the links of a GPU, and the network interfaces of a box.
//!
//! Rates are those that NCCL assumes for a link, not those of the machine file, because NCCL decides by them. All GPUs
//! of a job and all boxes are assumed to be equal; the box of the first rank is read.

use unisono_base::narrow;
use unisono_machine::network::{Architecture, Cpu, Network, Plane, Topology};

use super::constants::nvlink;

/// The part of a machine that a job uses, from NCCL's view.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    pub architecture: Architecture,
    pub cpu: Cpu,
    pub boxes: u32,
    /// GPUs of one box.
    pub gpus: u32,
    /// GB/s of all NVLinks of a GPU; 0 if the GPUs of the job are joined by PCIe.
    pub nvlink: f64,
    /// True if NVSwitches join the GPUs.
    pub has_nvswitch: bool,
    /// GB/s between each two GPUs that NVLinks join directly, row by row.
    pub pairs: Vec<f64>,
    /// GB/s between a GPU and PCIe.
    pub pcie: f64,
    /// Network interfaces of one box, and GB/s of each.
    pub nics: u32,
    pub nic: f64,
    /// True if the switches between boxes reduce (CollNet).
    pub network_reduces: bool,
}

/// GB/s of PCIe of the fourth generation with 16 lanes, for machines without a PCIe cable.
const ASSUMED_PCIE: f64 = 24.0;

impl Facts {
    /// # Errors
    /// The machine does not state its GPUs or is not made of boxes of them, or the boxes have different numbers of
    /// ranks.
    pub fn new(
        network: &Network,
        topology: &dyn Topology,
        nodes: &[u32],
        network_reduces: bool,
    ) -> Result<Self, String> {
        let Some(gpu) = network.gpu else {
            return Err(format!(
                "{} does not state its GPUs; add a table [gpu] with architecture = \"hopper\" (or volta, ampere, \
                 blackwell) to its file",
                network.name
            ));
        };
        if !network.failed.is_empty() {
            return Err(format!(
                "NCCL's model is of whole boxes, and {} states failures; leave them out",
                network.name
            ));
        }
        let numbers = topology.numbers_of_boxes();
        if numbers.is_none() && topology.name() != "graph" {
            return Err(format!(
                "NCCL's model is of boxes of GPUs, and the topology of {} is {}; accepted are graph and boxes",
                network.name,
                topology.name()
            ));
        }
        let in_box = numbers.map_or(topology.accelerators(), |n| n.accelerators);
        let mut ranks = vec![0_u32; numbers.map_or(1, |n| n.boxes) as usize];
        nodes.iter().for_each(|node| ranks[(node / in_box) as usize] += 1);
        ranks.retain(|&count| count > 0);
        let (boxes, gpus) = (narrow::<u32>(ranks.len()), ranks.first().copied().unwrap_or(0));
        if ranks.iter().any(|&count| count != gpus) {
            return Err(
                "NCCL's model is of boxes with equal numbers of ranks; choose as many GPUs of each box".to_owned()
            );
        }
        let plane = topology.plane().map_err(|e| e.to_string())?;
        let of = nodes[0] / in_box;
        let is_inside = |node: u32| match numbers {
            None => true,
            Some(n) => {
                let others = n.nodes - n.accelerators;
                let first = n.place(of, n.accelerators);
                (of * in_box..(of + 1) * in_box).contains(&node) || (first..first + others).contains(&node)
            }
        };
        let used: Vec<u32> = nodes.iter().copied().filter(|node| node / in_box == of).collect();
        let links = BoxLinks::new(network, &plane, &used, &is_inside);
        let [rate, nominal] = nvlink(gpu.architecture);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of links")]
        let all = gpu.nvlinks.unwrap_or_else(|| match links.most {
            most if most > 0.0 => (most / nominal).round().max(1.0) as u32,
            _ => 0,
        });
        // The machine file may have measured or nominal rates. NCCL's rate is a number of links times its own rate of
        // one link.
        let scale = if links.most > 0.0 { f64::from(all) * rate / links.most } else { 0.0 };
        Ok(Self {
            architecture: gpu.architecture,
            cpu: gpu.cpu,
            boxes,
            gpus,
            nvlink: links.used * scale,
            has_nvswitch: links.has_nvswitch && all > 0,
            pairs: links.pairs.iter().map(|pair| pair * scale).collect(),
            pcie: if links.pcie > 0.0 { links.pcie } else { ASSUMED_PCIE },
            nics: narrow((u64::from(links.nics) * u64::from(gpus)).div_ceil(u64::from(in_box))),
            nic: if links.pcie > 0.0 && links.nics > 0 { links.nic.min(links.pcie) } else { links.nic },
            network_reduces,
        })
    }

    pub fn ranks(&self) -> u32 {
        self.boxes * self.gpus
    }
}

/// The links of one box by the rates of the machine file, GB/s.
struct BoxLinks {
    /// For the GPU with the most NVLinks: the rate of all of them, and of those to the GPUs of the job or to
    /// NVSwitches.
    most: f64,
    used: f64,
    has_nvswitch: bool,
    pairs: Vec<f64>,
    pcie: f64,
    nics: u32,
    nic: f64,
}

impl BoxLinks {
    fn new(network: &Network, plane: &Plane, used: &[u32], is_inside: &dyn Fn(u32) -> bool) -> Self {
        let accelerators = plane.accelerators();
        let leaving = |node: u32| plane.leaving(node).map(|id| (plane.link(id).to, gbytes(network, plane, id)));
        // NVSwitches have cables to accelerators only; a switch of PCIe leads to a CPU or to an interface.
        let is_nvswitch = |node: u32| {
            node >= accelerators && is_inside(node) && leaving(node).all(|(to, _)| to < accelerators && is_inside(to))
        };
        let count = used.len();
        let mut found = Self {
            most: 0.0,
            used: 0.0,
            has_nvswitch: false,
            pairs: vec![0.0; count * count],
            pcie: f64::INFINITY,
            nics: 0,
            nic: f64::INFINITY,
        };
        for (at, &gpu) in used.iter().enumerate() {
            let (mut all, mut own, mut pcie) = (0.0, 0.0, 0.0);
            for (to, rate) in leaving(gpu).filter(|&(to, _)| is_inside(to)) {
                if to < accelerators {
                    all += rate;
                    if let Some(other) = used.iter().position(|&node| node == to) {
                        found.pairs[at * count + other] += rate;
                        own += rate;
                    }
                } else if is_nvswitch(to) {
                    all += rate;
                    own += rate;
                    found.has_nvswitch = true;
                } else {
                    pcie += rate;
                }
            }
            found.most = found.most.max(all);
            found.used = found.used.max(own);
            found.pcie = found.pcie.min(pcie);
        }
        // Interfaces are the nodes of a box with cables to other boxes or to shared switches.
        for node in (0..plane.nodes()).filter(|&node| is_inside(node)) {
            for (_, rate) in leaving(node).filter(|&(to, _)| !is_inside(to)) {
                found.nics += 1;
                found.nic = found.nic.min(rate);
            }
        }
        if !found.nic.is_finite() {
            found.nic = 0.0;
        }
        found
    }
}

fn gbytes(network: &Network, plane: &Plane, link: u32) -> f64 {
    network.link_speed(plane, link).gbps / 8.0 * f64::from(network.planes)
}
