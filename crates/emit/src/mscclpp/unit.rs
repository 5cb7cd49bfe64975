//! The check of a plan, and the importer.

use serde::{Deserialize, Serialize, de::IgnoredAny};
use unisono_collective::Operator;
use unisono_lower::File;
use unisono_schedule::{Schedule, verify::Method};

use super::{
    bytes,
    fault::Fault,
    launches,
    layout::{COLLECTIVES, Scale, message_chunks, stated_elements},
    limits,
    plan::{Plan, read},
    sized::{Contents, Sized},
    sizes::{self, Sizes},
};
use crate::{Asked, FileBits, ImportError, Importer, PROCESSORS};

pub struct MscclPp;

pub const NAME: &str = "mscclpp";
pub const REFERENCE: &str = "docs/gpu-plans.md; microsoft/mscclpp";

/// The strictness of a check.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Relaxed signals order writes too, as they do on GPUs whose stores arrive in order.
    pub trust_relaxed: bool,
    pub method: Method,
    /// Processors of a GPU.
    pub processors: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { trust_relaxed: false, method: Method::default(), processors: PROCESSORS }
    }
}

/// The result of the check of a plan. A value is null where the checks before it found faults.
#[derive(Serialize, Debug)]
pub struct Checked {
    pub complete: Option<bool>,
    pub deadlock_free: Option<bool>,
    pub race_free: Option<bool>,
    pub repeatable: Option<bool>,
    /// True if launches may follow each other without a wait of all GPUs in between.
    pub relaunch: Option<bool>,
    /// True if the input is as before; null in place.
    pub keeps_input: Option<bool>,
    /// The sizes for which all this holds.
    pub sizes: Option<Sizes>,
    pub method: &'static str,
    pub error_probability: Option<f64>,
    pub seed: Option<unisono_schedule::verify::Seed>,
    pub scratch_bytes_max: u64,
    pub expression_class: Option<String>,
    /// The properties of the bits that hold, in the order in which the runtime adds.
    pub bits: Vec<&'static str>,
    /// The reason why a property does not hold, in words.
    pub unlike_elements: Option<String>,
    pub diagnostics: Vec<Fault>,
    #[serde(skip)]
    pub file_bits: FileBits,
    #[serde(skip)]
    pub schedule: Option<Schedule>,
}

/// True if a JSON text is a plan rather than a schedule: only plans have GPUs.
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
    check_plan(&read(text)?, asked, options)
}

/// Checks a plan as [`check`] does.
pub(super) fn check_plan(plan: &Plan, asked: &Asked, options: Options) -> Result<Checked, ImportError> {
    let natural = Sized::new(plan, &Asked { elements: None, ..*asked }, None)?;
    let mut faults = limits::check(plan, options.processors);
    faults.extend(natural.faults.iter().cloned());
    let mut checked = Checked {
        complete: None,
        deadlock_free: natural.run.ends,
        race_free: None,
        repeatable: None,
        relaunch: None,
        keeps_input: natural.keeps_input(),
        sizes: None,
        method: "exact",
        error_probability: None,
        seed: None,
        scratch_bytes_max: natural.scratch_bytes_max(),
        expression_class: None,
        bits: Vec::new(),
        unlike_elements: None,
        diagnostics: Vec::new(),
        file_bits: FileBits::default(),
        schedule: None,
    };
    let found = natural.ordered(options)?;
    checked.race_free = found.as_ref().map(|found| !found.iter().any(|f| f.code == "race"));
    let is_ordered = found.as_ref().is_some_and(Vec::is_empty);
    faults.extend(found.unwrap_or_else(|| natural.run.faults.clone()));
    if is_ordered {
        let again = launches::faults(plan, &natural.program, &natural.layout, options.trust_relaxed)?;
        checked.relaunch = Some(again.is_empty());
        faults.extend(again);
        let sized = if asked.elements.is_some() { Sized::new(plan, asked, None)? } else { natural };
        let of_size = bytes::check(plan, &sized.layout, asked.dtype);
        if asked.elements.is_none() || of_size.is_empty() {
            faults.extend(checked.prove(plan, &sized, asked, options)?);
        }
        faults.extend(of_size);
    } else {
        faults.extend(bytes::check(plan, &natural.layout, asked.dtype));
    }
    if !faults.is_empty() {
        checked.sizes = None;
        checked.relaunch = checked.relaunch.filter(|_| !faults.iter().any(|fault| fault.code == "limit"));
    }
    if faults.iter().any(|fault| fault.code == "relaunch") {
        checked.relaunch = Some(false);
    }
    if faults.is_empty() {
        if checked.sizes == Some(Sizes::All) && checked.file_bits.class.is_some() {
            checked.file_bits.bits.push("size");
        }
        checked.bits.clone_from(&checked.file_bits.bits);
        checked.unlike_elements.clone_from(&checked.file_bits.unlike);
    }
    checked.diagnostics = faults;
    Ok(checked)
}

impl Checked {
    /// Proves an ordered plan at the size asked for, or at all sizes that make a difference, and returns the findings.
    fn prove(
        &mut self,
        plan: &Plan,
        sized: &Sized,
        asked: &Asked,
        options: Options,
    ) -> Result<Vec<Fault>, ImportError> {
        let mut faults = Vec::new();
        if asked.elements.is_some() {
            self.sizes = Some(Sizes::One);
            self.deadlock_free = sized.run.ends;
            faults.extend(sized.faults.iter().cloned());
            let found = if sizes::others(plan).0.is_empty() { Some(Vec::new()) } else { sized.ordered(options)? };
            self.race_free = found.as_ref().map(|found| !found.iter().any(|f| f.code == "race"));
            let ends = found.is_some();
            faults.extend(found.unwrap_or_else(|| sized.run.faults.clone()));
            if !ends {
                return Ok(faults);
            }
            if faults.is_empty() && !sizes::others(plan).0.is_empty() {
                faults = launches::faults(plan, &sized.program, &sized.layout, options.trust_relaxed)?;
                self.relaunch = Some(faults.is_empty());
            }
        }
        let Some(Contents { imported, proof, faults: found, bits }) = sized.proof(plan, options.method)? else {
            let names: Vec<_> = COLLECTIVES.iter().map(|(name, _)| *name).collect();
            let collective: String = plan.collective.chars().take(40).collect();
            let message = format!(
                "the result of '{collective}' is not known, so the contents are not proved; known are {}",
                names.join(", ")
            );
            faults.push(Fault::of_plan("collective", message));
            return Ok(faults);
        };
        self.complete = Some(proof.complete && found.is_empty());
        faults.extend(found);
        self.repeatable = Some(proof.repeatable);
        (self.method, self.error_probability, self.seed) = (proof.method, proof.error_probability, proof.seed);
        self.expression_class = proof.expression_class;
        self.schedule = Some(imported.schedule);
        self.file_bits = bits;
        if asked.elements.is_none() && faults.is_empty() {
            let (scales, sizes) = sizes::others(plan);
            self.sizes = Some(sizes);
            for scale in scales {
                let (found, bits) = at_scale(plan, asked, options, scale)?;
                if let Some(bits) = bits {
                    self.file_bits.join(&bits, "at another size");
                }
                if !found.is_empty() {
                    self.sizes = None;
                    faults.extend(found);
                    break;
                }
            }
        }
        Ok(faults)
    }
}

/// The findings at one more size, each with the size, and the bits there.
fn at_scale(
    plan: &Plan,
    asked: &Asked,
    options: Options,
    scale: Scale,
) -> Result<(Vec<Fault>, Option<FileBits>), ImportError> {
    let has_pipelines = plan.ops().any(|op| op.iter_context.is_some());
    let sized = match Sized::new(plan, asked, Some(scale)) {
        // Pipelines are tried at the sizes that memory holds.
        Err(_) if has_pipelines => return Ok((Vec::new(), None)),
        sized => sized?,
    };
    let mut faults = sized.faults.clone();
    faults.extend(sized.ordered(options)?.unwrap_or_else(|| sized.run.faults.clone()));
    let mut of_size = None;
    if faults.is_empty()
        && let Some(contents) = sized.proof(plan, options.method)?
    {
        (faults, of_size) = (contents.faults, Some(contents.bits));
    }
    if faults.is_empty() {
        faults = launches::faults(plan, &sized.program, &sized.layout, options.trust_relaxed)?;
    }
    let Scale { grains, unit } = scale;
    let size = if has_pipelines {
        format!("where chunks and the smallest unit_size are as {grains} to {unit}")
    } else {
        format!("where a chunk has {}", u64::from(grains) * u64::from(plan.buffer_alignment)) + " bytes"
    };
    let told = faults.into_iter().map(|fault| Fault { message: format!("{}, {size}", fault.message), ..fault });
    Ok((told.collect(), of_size))
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

    /// It is run once, so launches and processors do not count.
    fn import(&self, text: &str, asked: &Asked) -> Result<File, ImportError> {
        let plan = read(text)?;
        let operator = asked.operator.filter(|&operator| operator != Operator::Sum);
        if let Some(operator) = operator.filter(|_| plan.ops().any(|op| op.name.reduces())) {
            return Err(ImportError::new(
                0,
                format!("the runtime adds, and the operator asked for is {operator}; use sum"),
            ));
        }
        // A plan for one size is a schedule of that size.
        let asked = Asked { elements: asked.elements.or_else(|| stated_elements(&plan, asked)), ..*asked };
        let refused = |Fault { code, message, .. }: Fault| {
            ImportError::new(0, format!("{code}: {message}; `unisono verify` shows all faults"))
        };
        if let Some(limit) = limits::check(&plan, u32::MAX).into_iter().next() {
            return Err(refused(limit));
        }
        let mut sized = in_order(&plan, &Asked { elements: None, ..asked })?.map_err(refused)?;
        if asked.elements.is_some() {
            sized = Sized::new(&plan, &asked, None)?;
            if let Some(fault) = sized.faults.iter().chain(&sized.run.faults).next() {
                return Err(refused(fault.clone()));
            }
        }
        file(&plan, &sized)
    }
}

/// Runs a plan at one size. Returns a fault if it does not end or gives no order of accesses: a schedule has one.
pub(super) fn in_order(plan: &Plan, asked: &Asked) -> Result<Result<Sized, Fault>, ImportError> {
    let sized = Sized::new(plan, asked, None)?;
    let mut first = sized.faults.iter().chain(&sized.run.faults).next().cloned();
    if first.is_none() {
        first = sized.races(Options { trust_relaxed: true, ..Options::default() })?.into_iter().next();
    }
    Ok(first.map_or(Ok(sized), Err))
}

/// Returns the schedule of a plan that was run in order.
pub(super) fn file(plan: &Plan, sized: &Sized) -> Result<File, ImportError> {
    let names = || COLLECTIVES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let imported = sized.import(plan)?.ok_or_else(|| {
        let collective: String = plan.collective.chars().take(40).collect();
        ImportError::new(0, format!("collective: '{collective}' is not read; accepted are {}", names()))
    })?;
    let chunk = u64::from(sized.layout.grains) * u64::from(sized.layout.elements);
    let bytes = chunk * imported.schedule.collective().dtype.bytes();
    let message = message_chunks(plan).map(|chunks| chunks.saturating_mul(bytes));
    let unserved = message.and_then(|size| bytes::unserved(plan, size));
    let unserved = unserved.map(|reason| format!("the library does not run the plan here: {reason}"));
    let blocks = Some(sized.blocks(&imported).of_file(unserved));
    Ok(File { schedule: imported.schedule, placement: None, machine: None, blocks })
}
