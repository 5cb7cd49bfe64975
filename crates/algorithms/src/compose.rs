//! Finds algorithms by name, and what a short name stands for.

use unisono_collective::Kind;

use crate::{ALGORITHMS, Algorithm, AlgorithmError, Case, Params, line::LineTree};

/// # Errors
/// No algorithm has the name; the message lists those there are.
pub fn find(name: &str) -> Result<&'static dyn Algorithm, AlgorithmError> {
    ALGORITHMS.iter().copied().find(|a| a.name() == name).ok_or_else(|| AlgorithmError::Unknown {
        found: name.to_owned(),
        accepted: ALGORITHMS.iter().map(|a| a.name()).collect::<Vec<_>>().join(", "),
    })
}

/// The tree on a line that parameter `param` of `algorithm` names; `default` where it names none.
pub(crate) fn line_param(
    algorithm: &'static str,
    param: &'static str,
    default: &str,
    params: &Params,
) -> Result<&'static dyn LineTree, AlgorithmError> {
    let name = params.get(param).unwrap_or(default);
    let found = ALGORITHMS.iter().copied().find(|a| a.name() == name).and_then(Algorithm::line_tree);
    found.ok_or_else(|| AlgorithmError::Param {
        algorithm,
        param,
        found: name.to_owned(),
        accepted: line_names().collect::<Vec<_>>().join(", "),
    })
}

/// Names of all trees on a line.
pub(crate) fn line_names() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().filter(|a| a.line_tree().is_some()).map(|a| a.name())
}

/// What a name stands for in a case: a reduce named for an allreduce means `reduce-broadcast` with it, and a tree on a
/// line named for a grid means `x-y` with it in both dimensions.
///
/// # Errors
/// An unknown name or parameter, or a case that is not supported.
pub fn resolve(name: &str, case: &Case, params: &Params) -> Result<(&'static dyn Algorithm, Params), AlgorithmError> {
    let named = find(name)?;
    let kind = case.collective.kind;
    let serves = |k| named.collectives().contains(&k);
    let (algorithm, params) = if kind == Kind::Allreduce && !serves(kind) && serves(Kind::Reduce) {
        (find("reduce-broadcast")?, params.clone().with("reduce", name))
    } else if named.line_tree().is_some() && !case.grid.is_line() {
        (find("x-y")?, params.clone().with("x", name).with("y", name))
    } else {
        (named, params.clone())
    };
    check_names(algorithm, &params)?;
    algorithm.supports(case, &params)?;
    Ok((algorithm, params))
}

/// Composed algorithms take the parameters of their parts too.
fn check_names(algorithm: &dyn Algorithm, params: &Params) -> Result<(), AlgorithmError> {
    let own = |k: &str| algorithm.params().iter().any(|p| p.name == k);
    let parts: Vec<_> = params.iter().filter(|(k, _)| own(k)).filter_map(|(_, v)| find(v).ok()).collect();
    let part_params = || parts.iter().flat_map(|a| a.params()).map(|p| p.name);
    // `reduce-broadcast reduce=x-y x=two-phase group=8`: a part of a part.
    let deep = || line_names().flat_map(|n| find(n).map_or(&[][..], |a| a.params())).map(|p| p.name);
    for (k, _) in params.iter() {
        let inherited = part_params().any(|p| p == k) || (!parts.is_empty() && deep().any(|p| p == k));
        if !own(k) && !inherited {
            let mut accepted: Vec<_> = algorithm.params().iter().map(|p| p.name).chain(part_params()).collect();
            accepted.sort_unstable();
            accepted.dedup();
            return Err(AlgorithmError::UnknownParam {
                algorithm: algorithm.name(),
                found: k.to_owned(),
                accepted: if accepted.is_empty() { "none".to_owned() } else { accepted.join(", ") },
            });
        }
    }
    Ok(())
}
