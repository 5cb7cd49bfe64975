//! Finds algorithms by name, and resolves short names of composed algorithms.

use std::collections::BTreeSet;

use unisono_collective::Kind;

use crate::{ALGORITHMS, Algorithm, AlgorithmError, Case, Info, Means, Params, algorithms, line::LineTree};

/// The only algorithm on a line that is not a tree and may be named by a parameter, namely of `x-y-allreduce`.
pub(crate) const RING: &str = "ring";

/// Finds an algorithm by name.
///
/// # Errors
/// Returns an error if no algorithm has the name; the message lists the names.
pub fn find(name: &str) -> Result<&'static dyn Algorithm, AlgorithmError> {
    let all = algorithms();
    all.iter().copied().find(|a| a.name() == name).ok_or_else(|| AlgorithmError::Unknown {
        found: name.to_owned(),
        accepted: all.iter().map(|a| a.name()).collect::<Vec<_>>().join(", "),
    })
}

/// Returns the tree on a line that parameter `param` of `algorithm` names, or the tree `default` without the parameter.
/// `others` are further accepted names, for the error message.
pub(crate) fn line_param(
    algorithm: &'static str,
    param: &'static str,
    default: &str,
    others: &[&'static str],
    params: &Params,
) -> Result<&'static dyn LineTree, AlgorithmError> {
    let name = params.get(param).unwrap_or(default);
    let found = ALGORITHMS.iter().copied().find(|a| a.name() == name).and_then(Algorithm::line_tree);
    found.ok_or_else(|| AlgorithmError::Param {
        algorithm,
        param,
        found: name.to_owned(),
        accepted: line_names().chain(others.iter().copied()).collect::<Vec<_>>().join(", "),
    })
}

/// Returns the names of all trees on a line.
pub(crate) fn line_names() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().filter(|a| a.line_tree().is_some()).map(|a| a.name())
}

/// Resolves a name in a case. For an allreduce, the name of an algorithm that reduces but has no allreduce means
/// `reduce-broadcast` with that reduce. On a grid with several rows and columns, the name of a tree on a line means
/// `x-y` with that tree in both dimensions, and `ring` for an allreduce means `x-y-allreduce` with rings.
///
/// # Errors
///
/// Returns an error if the name or a parameter is unknown, a parameter contradicts the name, or the case is not
/// supported.
pub fn resolve(name: &str, case: &Case, params: &Params) -> Result<(&'static dyn Algorithm, Params), AlgorithmError> {
    let named = find(name)?;
    check_place(named, case)?;
    let kind = case.collective.kind;
    let serves = |k| named.info().collectives.contains(&k);
    let (algorithm, params) = if kind == Kind::Allreduce && !serves(kind) && serves(Kind::Reduce) {
        stands_for(named, "reduce-broadcast", &["reduce"], params)?
    } else if named.line_tree().is_some() && !case.grid().is_line() {
        stands_for(named, "x-y", &["x", "y"], params)?
    } else if name == RING && kind == Kind::Allreduce && !case.grid().is_line() {
        stands_for(named, "x-y-allreduce", &["x", "y"], params)?
    } else {
        (named, params.clone())
    };
    check_names(algorithm, &params)?;
    algorithm.supports(case, &params)?;
    Ok((algorithm, algorithm.chosen(case, &params)))
}

/// Returns the short name that [`resolve`] resolves to a composed algorithm: `chain` for `reduce-broadcast` with `x-y`
/// of chains. Other algorithms, and all algorithms among ranks, have their own names.
pub fn short_name(algorithm: &dyn Algorithm, offers: &[Means], params: &Params) -> String {
    let name = algorithm.name();
    if !offers.contains(&Means::Grid) {
        return name.to_owned();
    }
    let name = if name == "reduce-broadcast" { params.get("reduce").unwrap_or(name) } else { name };
    match (name, params.get("x"), params.get("y")) {
        ("x-y", Some(x), Some(y)) if x == y => x,
        ("x-y-allreduce", Some(x), Some(y)) if x == y && x == RING => x,
        _ => name,
    }
    .to_owned()
}

/// Returns the value of a parameter that names an algorithm with its parameters: `NAME` or `NAME:K=V:K=V`. If a value V
/// itself has this form, `/` replaces `:` in it; one level deeper, `+` replaces `:`.
pub fn named(algorithm: &str, params: &Params) -> String {
    let inner = |value: &str| value.replace('/', "+").replace(':', "/");
    params.iter().fold(algorithm.to_owned(), |text, (k, v)| format!("{text}:{k}={}", inner(v)))
}

/// Returns the name and the parameters of a value of [`named`]; `None` for other text.
pub(crate) fn parsed(text: &str) -> Option<(&str, Params)> {
    let mut words = text.split(':');
    let name = words.next()?;
    let params = words.map(|word| word.split_once('=')).collect::<Option<Vec<_>>>()?;
    Some((
        name,
        params.into_iter().fold(Params::new(), |params, (k, v)| params.with(k, v.replace('/', ":").replace('+', "/"))),
    ))
}

/// Checks that the machine offers a means that the algorithm needs.
fn check_place(algorithm: &dyn Algorithm, case: &Case) -> Result<(), AlgorithmError> {
    let info = algorithm.info();
    if info.needs.iter().any(|means| case.offers().contains(means)) { Ok(()) } else { Err(lacks(info, case.offers())) }
}

/// Returns the error of an algorithm whose means the machine does not offer.
pub(crate) fn lacks(info: &Info, offered: &[Means]) -> AlgorithmError {
    let phrases = |means: &[Means], with: &str| means.iter().map(|m| m.phrase()).collect::<Vec<_>>().join(with);
    let (needs, offered) = (phrases(info.needs, " or "), phrases(offered, " and "));
    let reason = format!("it needs {needs}; the machine offers {offered}");
    AlgorithmError::Unsupported { algorithm: info.name, reason }
}

/// Returns the algorithm `composed`, and `params` with the name of `named` as the value of every parameter in `parts`.
///
/// # Errors
///
/// Returns an error if a parameter in `parts` names another algorithm.
fn stands_for(
    named: &'static dyn Algorithm,
    composed: &'static str,
    parts: &[&'static str],
    params: &Params,
) -> Result<(&'static dyn Algorithm, Params), AlgorithmError> {
    let name = named.name();
    for &param in parts {
        if let Some(found) = params.get(param).filter(|&given| given != name) {
            let meaning = parts.iter().map(|part| format!(" {part}={name}")).collect::<String>();
            let (meaning, found) = (format!("{composed}{meaning}"), found.to_owned());
            return Err(AlgorithmError::Contradiction { algorithm: name, meaning, param, found, composed });
        }
    }
    Ok((find(composed)?, parts.iter().fold(params.clone(), |params, part| params.with(part, name))))
}

/// Checks that every parameter belongs to the algorithm or, recursively, to an algorithm that its parameters name.
fn check_names(algorithm: &dyn Algorithm, params: &Params) -> Result<(), AlgorithmError> {
    let mut accepted = BTreeSet::new();
    collect_names(algorithm, params, &mut accepted);
    match params.iter().find(|(k, _)| !accepted.contains(k)) {
        None => Ok(()),
        Some((found, _)) => Err(AlgorithmError::UnknownParam {
            algorithm: algorithm.name(),
            found: found.to_owned(),
            accepted: if accepted.is_empty() {
                "none".to_owned()
            } else {
                accepted.into_iter().collect::<Vec<_>>().join(", ")
            },
        }),
    }
}

fn collect_names(algorithm: &dyn Algorithm, params: &Params, accepted: &mut BTreeSet<&'static str>) {
    for param in algorithm.info().params {
        // An algorithm that was visited before adds no further names, so the recursion ends.
        if accepted.insert(param.name)
            && let Some(part) = params.get(param.name).and_then(|value| find(value).ok())
        {
            collect_names(part, params, accepted);
        }
    }
}
