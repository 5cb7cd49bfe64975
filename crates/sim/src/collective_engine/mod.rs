//! Switches that reduce: a schedule is lowered to their registers, and packets flow through the trees or the chain of
//! the registers.
//!
//! A *unit* is one of two units of a switch: its engine, or the copying of responses. A unit waits for a packet at each
//! of its inputs. It reduces these packets in the order of ports by a pipelined tree of ceil(log2 inputs) levels, and
//! sends the result when all of its outputs have a credit. Then the input slots are free again. Packets cut through.
//! The identifiers of a link share the link in fixed time slots, and so do embeddings that share a memory. A core that
//! reads and writes gives half of its memory's bandwidth to each direction. With `exclusive_switches` a switch executes
//! one embedding after another, in the order of the collectives, and no slots are shared.
//!
//! Thus the time at which packet `k` leaves a unit is a maximum of sums of times of the packets `k`, `k - 1` and `k -
//! buffers`. No event queue is needed: packets are swept one by one over the units in their order (`sweep.rs`). Such a
//! system is homogeneous: if all times on which the next packet depends have moved by one constant, every later packet
//! moves them by this constant too. These later packets are skipped.
//!
//! Source: "Accelerating Allreduce with in-network reduction on Intel PIUMA", section "Switch Architecture for
//! In-network Computing". Times are whole picoseconds.

mod data;
mod sweep;
mod units;

use unisono_base::{Diagnostic, narrow};
use unisono_lower::switches::{Configured, SwitchPlacement, check_together, loads, lower};
use unisono_machine::{InNetwork, in_network::Layout};
use unisono_schedule::verify::Verified;

pub use data::{DataReport, Sample, digest, input};

#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the switches of {machine} cannot run the schedule: {}", fault.message)]
    Placement { machine: String, fault: Diagnostic },
    #[error(
        "{schedules} schedules at once use up the {has} identifiers of {machine}; accepted are fewer schedules, or schedules on other nodes"
    )]
    Identifiers { schedules: usize, has: u32, machine: String },
    #[error("the run lasts longer than the 2^62 picoseconds that its clock counts")]
    Overflow,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    pub picoseconds: u64,
    /// The latency alpha in picoseconds: the time at which the head of a tree's first packet reached the tree's last
    /// memory. This is the largest value of all trees.
    pub latency: u64,
    /// Time in picoseconds at which each rank has sent and received everything.
    pub finish: Vec<u64>,
    /// The number of packets of all embeddings. `events` counts each departure of a packet from a unit.
    pub packets: u64,
    pub events: u64,
    /// The number of events that were computed one by one. All others were skipped as repetitions of these events.
    pub computed: u64,
    /// A histogram of directed links: entry `i` is the number of links that carry `i + 1` edges of this schedule's
    /// trees.
    pub link_loads: Vec<u64>,
    /// Number of trees; trees without a common switch may have the same identifier.
    pub embeddings: usize,
    /// Identifier of each tree.
    pub identifiers: Vec<u8>,
    pub data: DataReport,
}

/// Runs a schedule alone on the machine.
///
/// # Errors
/// Returns an error if the machine's switches cannot run the schedule with its placement, or the clock overflows.
pub fn run(machine: &InNetwork, proven: &Verified, placement: &SwitchPlacement) -> Result<Run, EngineError> {
    Ok(run_together(machine, &[(proven, placement)])?.remove(0))
}

/// Runs schedules that start at the same time.
///
/// # Errors
/// Returns the errors of [`run`], and an error if two schedules use one identifier at the same switch.
pub fn run_together(machine: &InNetwork, all: &[(&Verified, &SwitchPlacement)]) -> Result<Vec<Run>, EngineError> {
    let layout = machine.layout();
    let all = lowered(machine, &layout, all)?;
    if let Some(fault) = check_together(&layout, &all).into_iter().next() {
        return Err(EngineError::Placement { machine: machine.name.clone(), fault });
    }
    together(machine, &layout, &all)
}

/// Runs schedules that start at the same time and were placed independently. Each tree gets the first identifier that
/// is free at all of its switches.
///
/// # Errors
///
/// Returns the errors of [`run`], and an error if the machine has too few identifiers.
pub fn run_beside(machine: &InNetwork, all: &[(&Verified, &SwitchPlacement)]) -> Result<Vec<Run>, EngineError> {
    let layout = machine.layout();
    let mut all = lowered(machine, &layout, all)?;
    let schedules = all.len();
    let mut used = vec![0_u64; layout.switches() as usize];
    for embedding in all.iter_mut().flat_map(|configured| &mut configured.embeddings) {
        let taken = embedding.registers.iter().fold(0, |taken, &(switch, _)| taken | used[switch as usize]);
        let free = taken.trailing_ones();
        if free >= machine.identifiers {
            let machine_name = machine.name.clone();
            return Err(EngineError::Identifiers { schedules, has: machine.identifiers, machine: machine_name });
        }
        embedding.identifier = narrow(free);
        for (switch, registers) in &mut embedding.registers {
            registers.identifier = narrow(free);
            used[*switch as usize] |= 1 << free;
        }
    }
    together(machine, &layout, &all)
}

fn lowered(
    machine: &InNetwork,
    layout: &Layout,
    all: &[(&Verified, &SwitchPlacement)],
) -> Result<Vec<Configured>, EngineError> {
    let wrong = |fault| EngineError::Placement { machine: machine.name.clone(), fault };
    all.iter().map(|(proven, placement)| lower(machine, layout, proven, placement).map_err(wrong)).collect()
}

fn together(machine: &InNetwork, layout: &Layout, all: &[Configured]) -> Result<Vec<Run>, EngineError> {
    let shared = units::Shared::new(layout, all);
    // The time at which each switch has completed the embeddings so far.
    let mut free = machine.exclusive_switches.then(|| vec![0; layout.switches() as usize]);
    all.iter().map(|configured| one(machine, layout, configured, &shared, free.as_deref_mut())).collect()
}

fn one(
    machine: &InNetwork,
    layout: &Layout,
    configured: &Configured,
    shared: &units::Shared,
    mut free: Option<&mut [u64]>,
) -> Result<Run, EngineError> {
    let mut run = Run {
        picoseconds: 0,
        latency: 0,
        finish: vec![0; configured.ranks.len()],
        packets: 0,
        events: 0,
        computed: 0,
        link_loads: loads(layout, [configured]).histogram(),
        embeddings: configured.embeddings.len(),
        identifiers: configured.embeddings.iter().map(|e| e.identifier).collect(),
        data: data::flow(layout, configured),
    };
    let mut rank_of = vec![u32::MAX; layout.switches() as usize];
    for (rank, &switch) in configured.ranks.iter().enumerate() {
        rank_of[switch as usize] = narrow::<u32>(rank);
    }
    for embedding in configured.embeddings.iter().filter(|e| e.elements > 0) {
        let width = configured.collective.element_bytes();
        let per_packet = (u64::from(machine.packet_bytes) / width).max(1);
        let packets = u64::from(embedding.elements).div_ceil(per_packet);
        let last = u64::from(embedding.elements) - (packets - 1) * per_packet;
        let alone = free.is_some().then(|| {
            let one = Configured { embeddings: vec![embedding.clone()], ..configured.clone() };
            units::Shared::new(layout, &[one])
        });
        let shared = alone.as_ref().unwrap_or(shared);
        let units = units::Units::new(machine, layout, embedding, shared, [per_packet * width, last * width]);
        let start: Vec<u64> =
            units.switch.iter().map(|&at| free.as_ref().map_or(0, |free| free[at as usize])).collect();
        let swept =
            sweep::sweep(&units, machine.buffer_packets as usize, packets, &start).ok_or(EngineError::Overflow)?;
        for (unit, &switch) in units.switch.iter().enumerate() {
            if let Some(free) = &mut free {
                let free = &mut free[switch as usize];
                *free = swept.left[unit].max(swept.finish[unit]).max(*free);
            }
        }
        for (unit, &at) in swept.finish.iter().enumerate() {
            if let Some(finish) = run.finish.get_mut(rank_of[units.switch[unit] as usize] as usize) {
                *finish = at.max(*finish);
            }
        }
        run.latency = run.latency.max(swept.head);
        run.packets += packets;
        run.events += packets * units.count() as u64;
        run.computed += swept.computed;
    }
    run.picoseconds = run.finish.iter().copied().max().unwrap_or(0);
    Ok(run)
}
