//! The check of a plan at each size that can change the result: its run, the order of its accesses, and the proof of
//! its contents.

use serde::{Deserialize, Serialize, de::IgnoredAny};
use unisono_formats::{Facts, ImportError};
use unisono_schedule::{Schedule, verify::Seed};

use super::{
    bytes,
    fault::Fault,
    launches,
    layout::{COLLECTIVES, Scale},
    limits,
    plan::{Plan, read},
    sized::{Contents, Sized},
    sizes::{self, Sizes},
};
use crate::{FileBits, Options};

/// The result of the check of a plan: `unisono verify --json`. A value is `None` if an earlier check found faults.
#[derive(Serialize, Debug, Default)]
#[serde(rename = "GpuPlanProof")]
pub struct Checked {
    pub complete: Option<bool>,
    pub deadlock_free: Option<bool>,
    pub race_free: Option<bool>,
    pub repeatable: Option<bool>,
    /// True if a launch may begin before all GPUs have ended the previous launch.
    pub relaunch: Option<bool>,
    /// True if the plan leaves the input unchanged; `None` in place.
    pub keeps_input: Option<bool>,
    /// The sizes at which the properties hold; `None` if there are faults.
    pub sizes: Option<Sizes>,
    pub method: &'static str,
    pub error_probability: Option<f64>,
    pub seed: Option<Seed>,
    pub scratch_bytes_max: u64,
    pub expression_class: Option<String>,
    /// The properties of the results that concern their bits; none if there are faults.
    #[serde(flatten)]
    pub bits: FileBits,
    pub diagnostics: Vec<Fault>,
    #[serde(skip)]
    pub schedule: Option<Schedule>,
}

/// Returns whether a JSON text, valid or not, is a plan and not a schedule: only plans have the key `gpus`.
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

/// Checks a plan, and returns its faults. The searches for races and for faults of repeated launches end after about 64
/// faults each.
///
/// # Errors
/// Returns one sentence with the path inside the file if the text is not a plan.
pub fn check(text: &str, facts: &Facts, options: Options) -> Result<Checked, ImportError> {
    check_plan(&read(text)?, facts, options)
}

/// Checks a plan as [`check`] does.
pub(super) fn check_plan(plan: &Plan, facts: &Facts, options: Options) -> Result<Checked, ImportError> {
    let natural = Sized::new(plan, &Facts { elements: None, ..*facts }, None)?;
    let mut faults = limits::check(plan, options.processors);
    faults.extend(natural.faults.iter().cloned());
    let mut checked = Checked {
        deadlock_free: natural.run.ends,
        keeps_input: natural.keeps_input(),
        method: "exact",
        scratch_bytes_max: natural.scratch_bytes_max(),
        ..Checked::default()
    };
    let found = natural.ordered(options)?;
    checked.race_free = found.as_ref().map(|found| !found.iter().any(|f| f.code == "race"));
    let is_ordered = found.as_ref().is_some_and(Vec::is_empty);
    faults.extend(found.unwrap_or_else(|| natural.run.faults.clone()));
    if is_ordered {
        let again = launches::faults(plan, &natural.program, &natural.layout, options.trust_relaxed)?;
        checked.relaunch = Some(again.is_empty());
        faults.extend(again);
        let sized = if facts.elements.is_some() { Sized::new(plan, facts, None)? } else { natural };
        let of_size = bytes::check(plan, &sized.layout, facts.dtype);
        if facts.elements.is_none() || of_size.is_empty() {
            faults.extend(checked.prove(plan, &sized, facts, options)?);
        }
        faults.extend(of_size);
    } else {
        faults.extend(bytes::check(plan, &natural.layout, facts.dtype));
    }
    if !faults.is_empty() {
        checked.sizes = None;
        checked.relaunch = checked.relaunch.filter(|_| !faults.iter().any(|fault| fault.code == "limit"));
    }
    if faults.iter().any(|fault| fault.code == "relaunch") {
        checked.relaunch = Some(false);
    }
    if !faults.is_empty() {
        checked.bits = FileBits::default();
    } else if checked.sizes == Some(Sizes::All) && checked.bits.class.is_some() {
        checked.bits.bits.push("size");
    }
    checked.diagnostics = faults;
    Ok(checked)
}

impl Checked {
    /// Proves an ordered plan at the requested size, or at all sizes that make a difference, and returns the findings.
    fn prove(
        &mut self,
        plan: &Plan,
        sized: &Sized,
        facts: &Facts,
        options: Options,
    ) -> Result<Vec<Fault>, ImportError> {
        let mut faults = Vec::new();
        if facts.elements.is_some() {
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
            let collective: String = plan.collective.chars().take(40).collect();
            let message = format!(
                "the result of '{collective}' is not known, so the contents are not proved; known are {}",
                COLLECTIVES.names()
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
        self.bits = bits;
        if facts.elements.is_none() && faults.is_empty() {
            let (scales, sizes) = sizes::others(plan);
            self.sizes = Some(sizes);
            for scale in scales {
                let (found, bits) = at_scale(plan, facts, options, scale)?;
                if let Some(bits) = bits {
                    self.bits.join(&bits, "at another size");
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

/// Returns the findings at the size `scale`, and the bits of the results if these were proved.
fn at_scale(
    plan: &Plan,
    facts: &Facts,
    options: Options,
    scale: Scale,
) -> Result<(Vec<Fault>, Option<FileBits>), ImportError> {
    let has_pipelines = plan.ops().any(|op| op.iter_context.is_some());
    let sized = match Sized::new(plan, facts, Some(scale)) {
        // A pipeline is checked only at sizes whose buffers fit the limits.
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
