//! Combines two vectors by an operator. If CSL has a vector operation for the operator, that operation is used;
//! otherwise `@map` calls a function of `operator.csl` for each element in memory.

use unisono_collective::{Collective, Dtype, Kind, Operator};

use super::head;
use crate::SdkTarget;

/// File that contains the function for `@map`; [`FUNCTION`] is the function's name in a program, [`MAP`] that of the
/// builtin.
pub const FILE: &str = "operator.csl";
pub const FUNCTION: &str = "operator.combine";
pub const MAP: &str = "@map";

/// Returns the vector operation that combines two vectors; `None` if the language has none, as for 32-bit integers or
/// minima.
pub fn vector_operation(c: &Collective) -> Option<&'static str> {
    match (c.operator, c.dtype) {
        (Operator::Sum, Dtype::F32) => Some("@fadds"),
        (Operator::Max, Dtype::F32) => Some("@fmaxs"),
        (Operator::Prod, Dtype::F32) => Some("@fmuls"),
        _ => None,
    }
}

/// Returns a sentence on the work that predictions omit: the cycles of `@map`, which are not published. `None` if the
/// program combines nothing, or combines by a vector operation.
pub fn uncounted(c: &Collective) -> Option<String> {
    if !c.kind.reduces() || c.kind == Kind::Barrier || vector_operation(c).is_some() {
        return None;
    }
    let (operator, t) = (c.operator, c.dtype);
    Some(format!(
        "CSL combines the {operator} of {t} by {MAP}, whose cycles are not published and count as 0, so times are lower limits"
    ))
}

/// Returns the text of `operator.csl`; `None` if a vector operation combines.
pub fn module(c: &Collective, target: &SdkTarget) -> Option<String> {
    if vector_operation(c).is_some() {
        return None;
    }
    let body = match c.operator {
        Operator::Sum => "  return a + b;\n",
        Operator::Prod => "  return a * b;\n",
        Operator::And => "  return a & b;\n",
        Operator::Or => "  return a | b;\n",
        Operator::Xor => "  return a ^ b;\n",
        Operator::Min => "  if (b < a) {\n    return b;\n  }\n  return a;\n",
        // `Ordered` has elements of 64 bits, which no wavelet carries, so it does not occur here.
        Operator::Max | Operator::Ordered => "  if (a < b) {\n    return b;\n  }\n  return a;\n",
    };
    let t = c.dtype;
    let (operator, head) = (c.operator, head(target));
    Some(format!(
        "// The {operator} of two {t}, for `@map`: the language has no vector operation for it.\n// {head}\n\n\
         fn combine(a: {t}, b: {t}) {t} {{\n{body}}}\n"
    ))
}
