//! The check of a plan, and the importer.

use serde::{Deserialize, Serialize, de::IgnoredAny};
use unisono_lower::File;
use unisono_schedule::{
    Schedule,
    verify::{Method, Proof, verify},
};

use super::{
    fault::Fault,
    import::{Imported, import},
    knowledge::history,
    layout::{COLLECTIVES, Layout},
    limits,
    plan::{Op, Plan, read},
    program::Program,
    race::races,
    resolve::resolve,
    run::{Run, run},
};
use crate::{Asked, ImportError, Importer};

pub struct MscclPp;

pub const NAME: &str = "mscclpp";
pub const REFERENCE: &str = "docs/gpu-plans.md; microsoft/mscclpp";

/// How strictly a plan is checked.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// Relaxed signals order writes too, as they do on GPUs whose stores arrive in order.
    pub trust_relaxed: bool,
    pub method: Method,
}

/// The result of the check of a plan. A value is null where the checks before it found faults.
#[derive(Serialize, Debug)]
pub struct Checked {
    pub complete: Option<bool>,
    pub deadlock_free: bool,
    pub race_free: Option<bool>,
    pub repeatable: Option<bool>,
    pub method: &'static str,
    pub error_probability: Option<f64>,
    pub seed: Option<unisono_schedule::verify::Seed>,
    pub scratch_bytes_max: u64,
    pub expression_class: Option<String>,
    pub diagnostics: Vec<Fault>,
    #[serde(skip)]
    pub schedule: Option<Schedule>,
}

/// Whether a JSON text is a plan rather than a schedule: only plans have GPUs.
pub fn is_plan(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Keys {
        gpus: Option<IgnoredAny>,
    }
    match serde_json::from_str::<Keys>(text) {
        Ok(keys) => keys.gpus.is_some(),
        Err(_) => text.contains("\"gpus\""),
    }
}

/// Checks a plan: all its faults, with the shortest run that shows each.
///
/// # Errors
/// One sentence with the path inside the file, if it is no plan.
pub fn check(text: &str, asked: &Asked, options: Options) -> Result<Checked, ImportError> {
    let plan = read(text)?;
    let natural = Sized::new(&plan, &Asked { elements: None, ..*asked })?;
    let mut faults = limits::check(&plan);
    faults.extend(natural.faults.iter().cloned());
    let in_range = natural.faults.is_empty();
    let mut checked = Checked {
        complete: None,
        deadlock_free: natural.run.ends,
        race_free: None,
        repeatable: None,
        method: "exact",
        error_probability: None,
        seed: None,
        scratch_bytes_max: natural.scratch_bytes_max(),
        expression_class: None,
        diagnostics: Vec::new(),
        schedule: None,
    };
    faults.extend(natural.run.faults.iter().cloned());
    if in_range && checked.deadlock_free {
        let found = natural.races(options)?;
        checked.race_free = Some(!natural.run.faults.iter().chain(&found).any(|f| f.code == "race"));
        let ordered = natural.run.faults.is_empty() && found.is_empty();
        faults.extend(found);
        if ordered {
            let sized = if asked.elements.is_some() { Sized::new(&plan, asked)? } else { natural };
            faults.extend(sized.faults.iter().chain(&sized.run.faults).cloned());
            checked.deadlock_free = sized.run.ends;
            if !sized.run.ends {
                checked.diagnostics = faults;
                return Ok(checked);
            }
            if asked.elements.is_some() && depends_on_size(&plan) {
                let found = sized.races(options)?;
                checked.race_free = Some(!found.iter().any(|f| f.code == "race"));
                faults.extend(found);
            }
            if let Some(imported) = sized.import(&plan)? {
                let proof = verify(&imported.schedule, options.method);
                faults.extend(contents(&sized, &imported, &proof));
                checked.complete = Some(proof.complete);
                checked.repeatable = Some(proof.repeatable);
                (checked.method, checked.error_probability, checked.seed) =
                    (proof.method, proof.error_probability, proof.seed);
                checked.expression_class = proof.expression_class;
                checked.schedule = Some(imported.schedule);
            } else {
                let names: Vec<_> = COLLECTIVES.iter().map(|(name, _)| *name).collect();
                let collective: String = plan.collective.chars().take(40).collect();
                let message = format!(
                    "what '{collective}' has to end with is not known, so the contents are not proved; known are {}",
                    names.join(", ")
                );
                faults.push(Fault::of_plan("collective", message));
            }
        }
    }
    checked.diagnostics = faults;
    Ok(checked)
}

/// Whether accesses meet in another way at another size: shares of thread blocks of a group, and units of pipelines.
fn depends_on_size(plan: &Plan) -> bool {
    let ops = plan.gpus.iter().flat_map(|gpu| &gpu.threadblocks).flat_map(|block| &block.ops);
    let is_shared = |op: &Op| op.tbg_info.is_some_and(|group| group.tbg_size > 1);
    { ops }.any(|op| op.iter_context.is_some() || std::iter::once(op).chain(&op.ops).any(is_shared))
}

/// A plan at one size, and its run.
struct Sized {
    layout: Layout,
    program: Program,
    faults: Vec<Fault>,
    run: Run,
}

impl Sized {
    fn new(plan: &Plan, asked: &Asked) -> Result<Self, ImportError> {
        let layout = Layout::new(plan, asked)?;
        let (program, faults) = resolve(plan, &layout)?;
        let run = run(&program);
        Ok(Self { layout, program, faults, run })
    }

    fn races(&self, options: Options) -> Result<Vec<Fault>, ImportError> {
        let history = history(&self.program, &self.run, options.trust_relaxed);
        let history = history.map_err(|e| ImportError::new(0, e.to_string()))?;
        Ok(races(&self.program, &self.layout, &self.run, &history))
    }

    fn import(&self, plan: &Plan) -> Result<Option<Imported>, ImportError> {
        let Some(collective) = self.layout.collective else { return Ok(None) };
        let imported = import(&self.program, &self.layout, collective, &self.run, &plan.name);
        imported.map(Some).map_err(|e| ImportError::new(0, e.to_string()))
    }

    fn scratch_bytes_max(&self) -> u64 {
        let most =
            (0..self.program.gpus).map(|gpu| u64::from(self.layout.len(gpu, super::program::Space::Scratch))).max();
        let bytes = self.layout.collective.map_or(4, |c| c.dtype.bytes());
        most.unwrap_or(0) * u64::from(self.layout.elements) * bytes
    }
}

/// The findings of the proof at the operations that they are about.
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

impl Importer for MscclPp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "an execution plan of MSCCL++, as its language writes it"
    }

    fn reference(&self) -> &'static str {
        REFERENCE
    }

    /// Refuses plans whose order is not given: a schedule has one.
    fn import(&self, text: &str, asked: &Asked) -> Result<File, ImportError> {
        let plan = read(text)?;
        let natural = Sized::new(&plan, &Asked { elements: None, ..*asked })?;
        let mut faults = limits::check(&plan);
        faults.extend(natural.faults.iter().cloned());
        faults.extend(natural.run.faults.iter().cloned());
        if faults.is_empty() {
            faults = natural.races(Options { trust_relaxed: true, ..Options::default() })?;
        }
        let sized = if asked.elements.is_some() && faults.is_empty() { Sized::new(&plan, asked)? } else { natural };
        if let Some(fault) = faults.iter().chain(&sized.faults).chain(&sized.run.faults).next() {
            let message = format!("{}: {}; `unisono verify` shows all faults", fault.code, fault.message);
            return Err(ImportError::new(0, message));
        }
        let names = || COLLECTIVES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let imported = sized.import(&plan)?.ok_or_else(|| {
            let collective: String = plan.collective.chars().take(40).collect();
            ImportError::new(0, format!("collective: '{collective}' is not read; accepted are {}", names()))
        })?;
        Ok(File { schedule: imported.schedule, placement: None, machine: None })
    }
}
