//! A plan at one size: its run, the order of its accesses, and the proof of its contents.

use std::collections::BTreeMap;

use unisono_base::{InstrId, LaneId, NodeId};
use unisono_collective::Kind;
use unisono_formats::{Facts, ImportError};
use unisono_lower::{File, ThreadBlocks};
use unisono_machine::network::Protocol;
use unisono_schedule::{
    Schedule,
    verify::{Method, Proof, Rounding, verify, verify_rounded},
};

use super::{
    bytes,
    fault::{Fault, Place},
    import::{Imported, import},
    knowledge::history,
    layout::{COLLECTIVES, Layout, Scale, message_chunks},
    plan::{Name, Plan},
    program::{Program, Space},
    race::races,
    resolve::resolve,
    run::{Run, run},
};
use crate::{FileBits, Options};

/// A plan at one size, and its run.
pub struct Sized {
    pub layout: Layout,
    pub program: Program,
    pub faults: Vec<Fault>,
    pub run: Run,
}

impl Sized {
    pub fn new(plan: &Plan, facts: &Facts, scale: Option<Scale>) -> Result<Self, ImportError> {
        let layout = Layout::new(plan, facts, scale)?;
        let (program, faults) = resolve(plan, &layout)?;
        let run = run(&program);
        Ok(Self { layout, program, faults, run })
    }

    /// Runs a plan at one size. Returns a fault if the run does not end, or if it has races although relaxed signals
    /// are assumed to order writes: a schedule needs an order.
    pub fn in_order(plan: &Plan, facts: &Facts) -> Result<Result<Self, Fault>, ImportError> {
        let sized = Self::new(plan, facts, None)?;
        let mut first = sized.faults.iter().chain(&sized.run.faults).next().cloned();
        if first.is_none() {
            first = sized.races(Options { trust_relaxed: true, ..Options::default() })?.into_iter().next();
        }
        Ok(first.map_or(Ok(sized), Err))
    }

    fn races(&self, options: Options) -> Result<Vec<Fault>, ImportError> {
        let history = history(&self.program, &self.run, options.trust_relaxed);
        let history = history.map_err(|e| ImportError::new(0, e.to_string()))?;
        Ok(races(&self.program, &self.layout, &self.run, &history))
    }

    /// Returns the findings about the order of accesses; `None` if the run did not end or slices exceed their buffers.
    pub fn ordered(&self, options: Options) -> Result<Option<Vec<Fault>>, ImportError> {
        if self.run.ends != Some(true) || !self.faults.is_empty() {
            return Ok(None);
        }
        let mut found = self.run.faults.clone();
        found.extend(self.races(options)?);
        Ok(Some(found))
    }

    /// Returns whether no operation writes the input; `None` in place.
    pub fn keeps_input(&self) -> Option<bool> {
        let writes = || self.program.moves().flat_map(|(_, m)| &m.writes).any(|s| s.space == Space::Input);
        self.layout.in_place().is_none().then(|| !writes())
    }

    fn imported(&self, plan: &Plan, root_answers: bool) -> Result<Option<Imported>, ImportError> {
        let Some(collective) = self.layout.collective else { return Ok(None) };
        let imported = import(&self.program, &self.layout, collective, &self.run, &plan.name, root_answers);
        imported.map(Some).map_err(|e| ImportError::new(0, e.to_string()))
    }

    /// Returns the schedule and thread blocks of a plan that ran in order.
    pub fn file(&self, plan: &Plan) -> Result<File, ImportError> {
        let imported = self.imported(plan, false)?.ok_or_else(|| {
            let collective: String = plan.collective.chars().take(40).collect();
            let accepted = COLLECTIVES.names();
            ImportError::new(0, format!("collective: '{collective}' is not read; accepted are {accepted}"))
        })?;
        let chunk = u64::from(self.layout.grains) * u64::from(self.layout.elements);
        let bytes = chunk * imported.schedule.collective().dtype.bytes();
        let message = message_chunks(plan).map(|chunks| chunks.saturating_mul(bytes));
        let unserved = message.and_then(|size| bytes::unserved(plan, size));
        let unserved = unserved.map(|reason| format!("the library does not run the plan here: {reason}"));
        let blocks = Some(self.blocks(&imported).of_file(unserved));
        Ok(File { schedule: imported.schedule, placement: None, machine: None, blocks })
    }

    /// Returns the thread blocks of an imported plan. Packets count as protocol `LL`, whatever protocol the plan names.
    fn blocks(&self, imported: &Imported) -> ThreadBlocks {
        let schedule = &imported.schedule;
        let is_switch = |node: NodeId| node.0 >= self.program.gpus;
        let is_by_switch = |name| matches!(name, Name::Glres | Name::Gstore | Name::Gstorepkt);
        let place = |id: InstrId| imported.steps[id.index()].map(|at| self.program.step(at).place);
        let (mut protocols, mut leaders) = (Vec::new(), BTreeMap::new());
        for (node, id) in schedule.all_nodes().flat_map(|node| of_node(schedule, node)) {
            // A switch accesses the memory of all GPUs equally.
            let is_own = |place: &Place| if is_by_switch(place.name) { is_switch(node) } else { place.gpu == node.0 };
            let own = place(id).filter(is_own);
            let protocol = |place: Place| if place.name.has_packets() { Protocol::Ll } else { Protocol::Simple };
            protocols.push(own.map(protocol));
            leaders.extend(own.filter(|_| is_switch(node)).map(|place| (id, NodeId(place.gpu))));
        }
        ThreadBlocks::new(protocols).led_by(leaders)
    }

    /// Returns the schedule, its proof, the faults of its contents and its bits; `None` if the collective is not known.
    ///
    /// # Errors
    /// Returns an error if the tables of a schedule cannot hold it.
    pub fn proof(&self, plan: &Plan, method: Method) -> Result<Option<Contents>, ImportError> {
        let Some(imported) = self.imported(plan, false)? else { return Ok(None) };
        let mut proof = verify_rounded(&imported.schedule, method, &imported.roundings);
        if imported.roundings.values().any(|r| matches!(r, Rounding::Own(_))) {
            // A switch may add the same operands in a different order in each run, so the digest would not be
            // reproducible.
            proof.expression_class = None;
        }
        let bits = FileBits::new(&proof, &imported.roundings, "a switch adds, in an order that it does not state");
        let mut faults = contents(self, &imported, &proof);
        if faults.is_empty() {
            faults.extend(self.output_of_root(plan, method)?);
        }
        Ok(Some(Contents { imported, proof, faults, bits }))
    }

    /// Returns a fault if the output of a broadcast's root differs from the input. GPUs store this output, but
    /// schedules have none. The check sends the root's output to another GPU, and proves that GPU's output.
    fn output_of_root(&self, plan: &Plan, method: Method) -> Result<Option<Fault>, ImportError> {
        let Some(c) = self.layout.collective.filter(|c| c.kind == Kind::Broadcast && c.ranks > 1) else {
            return Ok(None);
        };
        let Some(answered) = self.imported(plan, true)? else { return Ok(None) };
        let found = verify(&answered.schedule, method).diagnostics.into_iter().next();
        Ok(found.map(|found| {
            let message = format!("the output of gpu {}, which is the root, does not end as its input", c.root);
            Fault::of_gpu(found.code, c.root, message)
        }))
    }

    pub fn scratch_bytes_max(&self) -> u64 {
        let most = (0..self.program.gpus).map(|gpu| u64::from(self.layout.len(gpu, Space::Scratch))).max();
        let bytes = self.layout.collective.map_or(4, |c| c.dtype.bytes());
        most.unwrap_or(0) * u64::from(self.layout.elements) * bytes
    }
}

/// The contents of a plan at one size.
pub struct Contents {
    pub imported: Imported,
    pub proof: Proof,
    pub faults: Vec<Fault>,
    pub bits: FileBits,
}

/// Returns the findings of the proof as faults of the plan's operations.
fn contents(sized: &Sized, imported: &Imported, proof: &Proof) -> Vec<Fault> {
    let of = |d: &unisono_base::Diagnostic| {
        let at = d.instruction.and_then(|id| imported.steps.get(id as usize).copied().flatten());
        match at {
            Some(at) => {
                let place = sized.program.step(at).place;
                Fault::at(d.code, &place, format!("{place}: {}", d.message))
            }
            None => Fault { rank: d.rank, ..Fault::of_plan(d.code, d.message.clone()) },
        }
    };
    proof.diagnostics.iter().map(of).collect()
}

fn of_node(schedule: &Schedule, node: NodeId) -> impl Iterator<Item = (NodeId, InstrId)> + '_ {
    let lanes = schedule.lanes(node).map(LaneId::new);
    lanes.flat_map(move |lane| schedule.lane_instrs(lane).map(move |id| (node, InstrId::new(id))))
}
