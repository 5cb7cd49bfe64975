//! Arithmetic operations and memory traffic of HLO instructions.
//!
//! * A dot of R results, each a sum of K products, takes 2 R K operations. A convolution takes the same number of
//!   operations; its K is the number of weights of one output feature (taps on padding are counted). The operations of
//!   a ragged dot depend on its rows only, not on the lengths of its parts. A library call for a matrix product counts
//!   as a dot. Other operations count as 0: their time is the time of their memory traffic.
//! * An instruction reads its operands and writes its result. A fusion reads and writes only at its border. If a fusion
//!   only slices an operand, it reads only the slices. An update in place reads and writes the update.
//!
//! Source: the rules of `hlo_cost_analysis.cc` of XLA (github.com/openxla/xla), for these operations.

use super::{
    module::{Computation, Half, Instruction, Module},
    text::{bracketed, numbers},
};
use crate::{Compute, error::Wrong};

/// The arithmetic operations of each computation. Fusions in the computation are included; loops and calls are not.
pub struct Arithmetic(Vec<f64>);

impl Arithmetic {
    pub fn new(module: &Module) -> Result<Self, Wrong> {
        let mut all = Self(Vec::with_capacity(module.computations.len()));
        for (at, computation) in module.computations.iter().enumerate() {
            let each = computation.instructions.iter().map(|i| all.operations(module, at, computation, i));
            let sum = each.sum::<Result<f64, Wrong>>()?;
            all.0.push(sum);
        }
        Ok(all)
    }

    fn operations(&self, module: &Module, at: usize, within: &Computation, i: &Instruction) -> Result<f64, Wrong> {
        let of = |n: usize| i.operands.get(n).map(|&operand| within.instructions[operand].shape());
        let wrong = |message: &str| Wrong::line(i.line, message);
        let results = 2.0 * i.shape().elements();
        if i.half == Half::Rest {
            return Ok(0.0);
        }
        match i.opcode {
            "dot" | "ragged-dot" | "scaled-dot" => {
                let listed =
                    i.attribute("lhs_contracting_dims").map_or(Some(Vec::new()), |text| numbers(bracketed(text)?.0));
                let left = of(0).ok_or_else(|| wrong("a dot has two operands"))?;
                let parts = ragged_parts(i, listed.as_deref().unwrap_or_default());
                let product = listed.and_then(|dims| products(left.dims(), &dims));
                Ok(results / parts
                    * product.ok_or_else(|| wrong("lhs_contracting_dims names no dimension of the left operand"))?)
            }
            "convolution" => {
                let kernel = of(1).ok_or_else(|| wrong("a convolution has two operands"))?;
                let labels = i.attribute("dim_labels").and_then(|text| text.split(['_', '-']).nth(1));
                let place = labels.and_then(|labels| labels.find('o'));
                let features = place.and_then(|place| kernel.dims().get(place)).copied();
                let features = features.ok_or_else(|| wrong("dim_labels names no output features of the kernel"))?;
                Ok(results * kernel.elements() / float(features.max(1)))
            }
            "fusion" => Ok(self.0[module.called(i, at, "calls")?]),
            // Library calls for matrix products name their dimensions as a dot does.
            "custom-call" if is_product(i) => {
                let config = i.attribute("backend_config").unwrap_or_default();
                let dims = config.split_once("\"lhs_contracting_dimensions\":").and_then(|(_, rest)| bracketed(rest));
                let dims = dims.and_then(|(inside, _)| numbers(&inside.replace('"', "")));
                let result = first_of_tuple(i);
                let product = of(0).zip(dims).and_then(|(left, dims)| products(left.dims(), &dims));
                Ok(2.0 * result * product.unwrap_or(0.0))
            }
            _ => Ok(0.0),
        }
    }

    /// Returns the cost of an instruction that neither communicates nor only renames values.
    pub fn compute(&self, module: &Module, at: usize, i: &Instruction) -> Result<Compute, Wrong> {
        let within = &module.computations[at];
        let operations = self.operations(module, at, within, i)?;
        let operand = |n: usize| i.operands.get(n).map_or(0, |&operand| within.instructions[operand].shape().bytes());
        let bytes = match i.opcode {
            "slice" | "dynamic-slice" | "gather" => 2.0 * float(i.shape().bytes()),
            "dynamic-update-slice" => 2.0 * float(operand(1)),
            "scatter" => 2.0 * float(operand(2)),
            "fusion" => border(&module.computations[module.called(i, at, "calls")?], i, &operand),
            _ => (0..i.operands.len()).map(|n| float(operand(n))).sum::<f64>() + float(i.shape().bytes()),
        };
        Ok(Compute::Counted { operations, bytes })
    }
}

/// Returns the number of parts into which a ragged dot divides the contracted dimension. This is the first extent of
/// the result, because each result sums one part. Returns 1 if the ragged dimension is not contracted.
fn ragged_parts(i: &Instruction, contracted: &[u64]) -> f64 {
    let ragged = i.attribute("lhs_ragged_dims").and_then(|text| numbers(bracketed(text)?.0));
    let is_cut = ragged.is_some_and(|ragged| ragged.iter().any(|dim| contracted.contains(dim)));
    let parts = i.shape().dims().first().copied().filter(|_| is_cut);
    float(parts.unwrap_or(1).max(1))
}

/// Returns whether the target of a custom call names a matrix product: it contains `gemm`, `matmul` or `$dot`.
pub fn is_product(i: &Instruction) -> bool {
    let target = i.attribute("custom_call_target").unwrap_or_default();
    ["gemm", "matmul", "$dot"].iter().any(|part| target.contains(part))
}

fn first_of_tuple(i: &Instruction) -> f64 {
    match i.shape() {
        super::shape::Shape::Tuple(elements) => elements.first().map_or(0.0, super::shape::Shape::elements),
        array @ super::shape::Shape::Array { .. } => array.elements(),
    }
}

/// Returns, for each instruction of a fusion, the bytes of its result that slices read; an update in place is not
/// counted as a read. Returns `None` for a result that another operation reads.
pub fn sliced(fused: &Computation) -> Vec<Option<u64>> {
    let mut read: Vec<Option<u64>> = vec![Some(0); fused.instructions.len()];
    for user in &fused.instructions {
        for (n, &used) in user.operands.iter().enumerate() {
            let part = match (user.opcode, n) {
                ("slice" | "dynamic-slice" | "gather", 0) => Some(user.shape().bytes()),
                ("dynamic-update-slice", 0) => Some(0),
                _ => None,
            };
            read[used] = read[used].zip(part).map(|(sum, part)| sum.saturating_add(part));
        }
    }
    read
}

/// Returns the bytes that a fusion reads and writes, together.
fn border(fused: &Computation, i: &Instruction, operand: &dyn Fn(usize) -> u64) -> f64 {
    let read = sliced(fused);
    let of = |n: usize| {
        let parameter = fused.parameters.get(n).copied().flatten();
        let whole = operand(n);
        parameter.and_then(|at| read[at]).map_or(whole, |part| part.min(whole))
    };
    let reads: f64 = (0..i.operands.len()).map(|n| float(of(n))).sum();
    let root = &fused.instructions[fused.root];
    let written = match (root.opcode, root.operands.get(1)) {
        ("dynamic-update-slice", Some(&update)) => fused.instructions[update].shape().bytes(),
        _ => i.shape().bytes(),
    };
    reads + float(written)
}

/// Returns the product of the extents of dimensions; `None` if one does not exist.
fn products(dims: &[u64], listed: &[u64]) -> Option<f64> {
    let extent = |&dim: &u64| dims.get(usize::try_from(dim).ok()?).map(|&extent| float(extent));
    listed.iter().map(extent).product()
}

#[expect(clippy::cast_precision_loss, reason = "counts of operations and bytes are floating point")]
fn float(count: u64) -> f64 {
    count as f64
}
