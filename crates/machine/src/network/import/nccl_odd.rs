//! Sentences about irregularities in a topology of NCCL: devices and links that differ from the others, for instance in
//! a broken or misconfigured box, and parts that NCCL reads differently from their specification in the file.
//!
//! NCCL itself reads such a file without a message, and runs at the rate of the slowest device.

use std::collections::{BTreeMap, BTreeSet};

use unisono_base::xml::{Element, short};

use super::nccl_rates::Rate;

const MOST_LISTED: usize = 8;
/// The tolerance in comparisons of rates, as a fraction of a rate.
const SLACK: f64 = 1e-9;

/// The rate, in GB/s, that NCCL assumes for a network interface without a stated speed.
pub const ASSUMED_NIC: f64 = 1.25;

/// A GPU or a network interface.
#[derive(Clone, Debug)]
pub struct Device {
    pub is_gpu: bool,
    pub name: String,
    /// True if the device has GPUDirect RDMA; `None` if the file does not state it.
    pub gdr: Option<bool>,
    /// The least rate on the PCIe path to the CPU.
    pub pcie: Rate,
    /// The total rate of a network interface's ports in GB/s; `None` for a GPU, or if a port states no speed.
    pub speed: Option<f64>,
}

/// Returns a list of the first names, followed by the number of further names.
fn listed(names: &[&str]) -> String {
    let more = names.len().checked_sub(MOST_LISTED + 1).map_or(String::new(), |n| format!(" and {} more", n + 1));
    format!("{}{more}", names[..names.len().min(MOST_LISTED)].join(", "))
}

/// Returns the subject of a sentence: `GPU 3`, `GPUs 3, 4`, or `all 8 GPUs` if `names` contains all devices, of which
/// there are `of`.
fn subject(is_gpu: bool, names: &[&str], of: usize) -> String {
    let kind = if is_gpu { "GPU" } else { "network interface" };
    match names {
        names if names.len() == of && of > 1 => format!("all {of} {kind}s"),
        [one] => format!("{kind} {one}"),
        _ => format!("{kind}s {}", listed(names)),
    }
}

/// Returns a sentence for each property in which some devices differ from the others, or from NCCL's expectation.
pub fn of_devices(devices: &[Device], boxes: u32) -> Vec<String> {
    let mut found = Vec::new();
    for is_gpu in [true, false] {
        let of_kind: Vec<&Device> = devices.iter().filter(|device| device.is_gpu == is_gpu).collect();
        let named = |is_odd: &dyn Fn(&Device) -> bool| {
            let names: Vec<&str> = of_kind.iter().filter(|d| is_odd(d)).map(|d| &*d.name).collect();
            (!names.is_empty()).then(|| (subject(is_gpu, &names, of_kind.len()), names.len() == 1))
        };
        if let Some((who, is_one)) = named(&|device| device.gdr == Some(false)) {
            let (have, their) = if is_one { ("has", "its") } else { ("have", "their") };
            found.push(format!(
                "{who} {have} gdr=\"0\": NCCL sends {their} traffic between boxes through the memory of a CPU, which takes \
                 longer than the times of this machine; look at the driver (nvidia-peermem or DMA-BUF)"
            ));
        }
        if let Some((who, is_one)) = named(&|device| device.gdr.is_none()).filter(|_| boxes > 1) {
            let state = if is_one { "states" } else { "state" };
            found.push(format!(
                "{who} {state} no gdr, which NCCL takes for gdr=\"0\" unless it finds GPUDirect RDMA itself: the times of this \
                 machine are those with it"
            ));
        }
        let most = of_kind.iter().map(|device| device.pcie.sheet).fold(0.0, f64::max);
        if let Some((who, is_one)) = named(&|device| device.pcie.sheet < most * (1.0 - SLACK)) {
            let rates: BTreeSet<String> = of_kind
                .iter()
                .filter(|device| device.pcie.sheet < most * (1.0 - SLACK))
                .map(|device| format!("{:.1}", device.pcie.measured))
                .collect();
            let measured = of_kind.iter().map(|device| device.pcie.measured).fold(0.0, f64::max);
            let have = if is_one { "has" } else { "have" };
            found.push(format!(
                "{who} {have} {} GB/s over PCIe, and the rest {measured:.1}: look at link_speed and link_width, or at the \
                 slot",
                rates.into_iter().collect::<Vec<_>>().join(" and ")
            ));
        }
        if is_gpu {
            continue;
        }
        if let Some((who, is_one)) = named(&|device| device.speed.is_none()) {
            let (state, count) = if is_one { ("states", "counts") } else { ("state", "count") };
            found.push(format!(
                "{who} {state} no speed, or -1, and {count} as {} Gb/s, as NCCL takes it: write the speed in Mb/s into the \
                 file",
                8.0 * ASSUMED_NIC
            ));
        }
        let fastest = of_kind.iter().filter_map(|device| device.speed).fold(0.0, f64::max);
        let is_slower = |device: &Device| device.speed.is_some_and(|speed| speed < fastest * (1.0 - SLACK));
        if let Some((who, is_one)) = named(&is_slower) {
            let rates: BTreeSet<String> =
                of_kind.iter().filter(|d| is_slower(d)).filter_map(|d| Some(format!("{}", 8.0 * d.speed?))).collect();
            let have = if is_one { "has" } else { "have" };
            found.push(format!(
                "{who} {have} {} Gb/s, and the rest {}: NCCL runs all of them at the rate of the slowest",
                rates.into_iter().collect::<Vec<_>>().join(" and "),
                8.0 * fastest
            ));
        }
    }
    found
}

/// Returns a sentence about the network interfaces of a box with one GPU.
pub fn lone_gpu(nics: usize) -> String {
    let which =
        if nics == 1 { "its network interface is".to_owned() } else { format!("its {nics} network interfaces are") };
    format!("the box has one GPU, and {which} left out: --boxes N joins N such boxes by them")
}

/// Returns a sentence about paths through CPUs that NCCL does not use.
pub fn over_nvlink() -> String {
    "paths through CPUs are left out, as NCCL uses network interfaces near a GPU, and others over NVLink (PXN)"
        .to_owned()
}

/// For each element, the attributes that this import reads, and those that do not affect times: names, addresses and
/// versions.
const READ: [(&str, &[&str]); 9] = [
    ("system", &["version"]),
    ("cpu", &["numaid", "affinity", "arch", "vendor", "familyid", "modelid", "host_hash"]),
    (
        "pci",
        &["busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed", "link_width"],
    ),
    ("gpu", &["dev", "sm", "gcn", "arch", "rank", "gdr"]),
    ("nvlink", &["target", "count", "tclass"]),
    ("xgmi", &["target", "count", "tclass"]),
    ("c2c", &["bw", "count", "target", "tclass"]),
    ("nic", &[]),
    ("net", &["name", "dev", "speed", "port", "guid", "gdr", "net", "coll", "latency", "maxconn"]),
];
/// NCCL's largest number of channels. A network interface that supports at least this many connections does not limit
/// NCCL.
const MOST_CHANNELS: f64 = 64.0;

/// Returns sentences about attributes that this import does not read although they may change times.
pub fn unread(system: &Element) -> Vec<String> {
    let (mut open, mut found) = (vec![system], BTreeSet::new());
    while let Some(element) = open.pop() {
        open.extend(&element.children);
        let number = |key: &str| element.find(key).and_then(|text| text.trim().parse::<f64>().ok());
        let known = READ.iter().find(|(name, _)| *name == element.name).map(|(_, known)| *known);
        let others =
            element.attributes.iter().filter(|(key, _)| known.is_some_and(|known| !known.contains(&key.as_str())));
        found.extend(others.map(|(key, _)| format!("{} of <{}>", short(key), element.name)));
        if element.name == "net" {
            let matters = [
                ("latency", number("latency").is_some_and(|us| us > 0.0)),
                ("coll", number("coll").is_some_and(|coll| coll > 0.0)),
                ("maxconn", number("maxconn").is_some_and(|most| most < MOST_CHANNELS)),
            ];
            found.extend(matters.iter().filter(|(_, is)| *is).map(|(key, _)| format!("{key} of <net>")));
        } else if known.is_none() {
            found.insert(format!("<{}>", short(&element.name)));
        }
    }
    let names: Vec<&str> = found.iter().map(String::as_str).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    let more = "write what they change into the machine file";
    Vec::from_iter(
        (!names.is_empty()).then(|| format!("{} {are} not read, and may change times: {more}", listed(&names))),
    )
}

/// Returns a sentence about reductions in NVSwitches; `joins_all` states whether the switches connect all GPUs.
pub fn sums(sm: u32, joins_all: bool) -> String {
    let what = if joins_all {
        "copy and reduce (NVLink SHARP): drop [[switches]] where a virtual machine or a setting turns that off"
    } else {
        "may copy and reduce (NVLink SHARP), which a topology of NCCL does not state and [[switches]] adds"
    };
    format!("of GPUs with sm {sm} the NVSwitches {what}")
}

/// Returns a sentence about GPUs whose links are slower than those of the others; Without an NVSwitch, the sentence is
/// only about GPUs that have no links. `rates` has the total rate of each GPU's links in GB/s; if all are 0, `None` is
/// returned.
pub fn slow_links(rates: &BTreeMap<usize, f64>, has_switch: bool) -> Option<String> {
    let most = rates.values().copied().fold(0.0, f64::max);
    // Without a switch, the GPUs of an intact box have different links if the file describes only a part of the box.
    let odd: Vec<_> =
        rates.iter().filter(|&(_, &rate)| rate == 0.0 || has_switch && rate < most * (1.0 - SLACK)).collect();
    if most == 0.0 || odd.is_empty() {
        return None;
    }
    let (gpus, have) = if odd.len() == 1 { ("GPU", "has") } else { ("GPUs", "have") };
    let names: Vec<String> = odd.iter().map(|&(gpu, &rate)| format!("{gpu} ({})", link_rate(rate))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Some(format!(
        "{gpus} {} {have} slower links to other GPUs than the rest ({most:.1} GB/s): look at the file, or at the box",
        listed(&names)
    ))
}

fn link_rate(rate: f64) -> String {
    if rate > 0.0 { format!("{rate:.1} GB/s") } else { "no NVLink or xGMI".to_owned() }
}

/// Returns a sentence about elements that NCCL, and hence this import, omits, if there are any.
pub fn left_out(elements: &[String]) -> Option<String> {
    let more = elements.len().saturating_sub(1);
    let others = if more > 0 { format!(", and {more} more like that") } else { String::new() };
    elements.first().map(|first| format!("NCCL leaves out {first}{others}, and so does this machine"))
}

/// Returns a sentence about PCIe speeds that NCCL does not list, if there are any.
pub fn unknown_speeds(speeds: &BTreeSet<String>) -> Option<String> {
    let listed: Vec<&str> = speeds.iter().take(MOST_LISTED).map(String::as_str).collect();
    let speeds = listed.join("', '");
    (!listed.is_empty()).then(|| format!("link_speed '{speeds}' is not known, and counts as 8 GT/s, as NCCL takes it"))
}
