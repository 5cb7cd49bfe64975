//! Sentences about devices of a topology that are unlike the others, as those of a broken or misconfigured box are.
//!
//! NCCL itself reads such a file without a word, and runs at the rate of the slowest device.

use std::collections::BTreeSet;

use super::nccl_rates::Rate;

/// Devices that a sentence lists.
const MOST_LISTED: usize = 8;
/// The tolerance in comparisons of rates, relative to a rate.
const SLACK: f64 = 1e-9;

/// GB/s of a network interface whose speed is not stated, as NCCL takes it.
pub const ASSUMED_NIC: f64 = 1.25;

/// A GPU or a network interface.
#[derive(Clone, Debug)]
pub struct Device {
    pub is_gpu: bool,
    pub name: String,
    /// False if the file states that the device has no GPUDirect RDMA.
    pub has_gdr: bool,
    /// The least rate on the way over PCIe to the CPU.
    pub pcie: Rate,
    /// The rate of its ports, of network interfaces; `None` where one states none.
    pub speed: Option<f64>,
}

/// Returns the names of devices as one list, and their number.
fn listed(names: &[&str]) -> String {
    let more = names.len().checked_sub(MOST_LISTED + 1).map_or(String::new(), |n| format!(" and {} more", n + 1));
    format!("{}{more}", names[..names.len().min(MOST_LISTED)].join(", "))
}

/// Returns `GPU 3` or `GPUs 3, 4`, or `all 8 GPUs`.
fn subject(is_gpu: bool, names: &[&str], of: usize) -> String {
    let kind = if is_gpu { "GPU" } else { "network interface" };
    match names {
        names if names.len() == of && of > 1 => format!("all {of} {kind}s"),
        [one] => format!("{kind} {one}"),
        _ => format!("{kind}s {}", listed(names)),
    }
}

/// Returns a sentence for each property by which some devices differ from the others, or from what NCCL expects.
pub fn sentences(devices: &[Device]) -> Vec<String> {
    let mut found = Vec::new();
    for is_gpu in [true, false] {
        let of_kind: Vec<&Device> = devices.iter().filter(|device| device.is_gpu == is_gpu).collect();
        let named = |is_odd: &dyn Fn(&Device) -> bool| {
            let names: Vec<&str> = of_kind.iter().filter(|d| is_odd(d)).map(|d| &*d.name).collect();
            (!names.is_empty()).then(|| (subject(is_gpu, &names, of_kind.len()), names.len() == 1))
        };
        if let Some((who, is_one)) = named(&|device| !device.has_gdr) {
            let (have, their) = if is_one { ("has", "its") } else { ("have", "their") };
            found.push(format!(
                "{who} {have} gdr=\"0\": NCCL sends {their} traffic between boxes through the memory of a CPU, which takes \
                 longer than the times of this machine; look at the driver (nvidia-peermem or DMA-BUF)"
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
