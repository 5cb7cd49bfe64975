//! Ranks candidates on switches that reduce, or times the one that was named.

use std::sync::{Arc, OnceLock};

use unisono_algorithms::{ALGORITHMS, Algorithm, AlgorithmError, Params, PlaceKind, resolve};
use unisono_collective::Kind;
use unisono_cost::in_network::{Host, embedded_ns, host_ns};
use unisono_lower::switches::{self, Configured};
use unisono_schedule::Schedule;

use super::InNetworkRequest;
use crate::{
    PlanError,
    endpoint::{Source, Timed, build, ranked, time_all},
};

pub struct InNetworkPlan {
    pub request: InNetworkRequest,
    /// Best first; never empty.
    pub candidates: Vec<Timed>,
    registers: OnceLock<Result<Option<Arc<Configured>>, PlanError>>,
    schedule: OnceLock<Result<Schedule, PlanError>>,
}

impl InNetworkPlan {
    pub fn best(&self) -> &Timed {
        &self.candidates[0]
    }

    /// The registers of the best candidate; none where that runs on the cores.
    ///
    /// # Errors
    /// The machine's engines or identifiers do not do for it.
    pub fn registers(&self) -> Result<Option<&Arc<Configured>>, PlanError> {
        let best = self.best();
        let made = self.registers.get_or_init(|| {
            let in_switches = best.algorithm.runs_on().contains(&PlaceKind::InNetwork);
            let embed = || best.algorithm.embed(&self.request.case(), &best.params, &self.request.site);
            Ok(in_switches.then(embed).transpose()?.map(Arc::new))
        });
        made.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }

    /// The schedule of the best candidate: of its registers, or of the cores.
    ///
    /// # Errors
    /// It is larger than its tables can hold.
    pub fn schedule(&self) -> Result<&Schedule, PlanError> {
        let best = self.best();
        let made = self.schedule.get_or_init(|| match self.registers()? {
            Some(registers) => {
                let mut made =
                    switches::schedule(&self.request.site.layout, registers).map_err(AlgorithmError::from)?;
                made.set_origin(&format!("{} {}", best.algorithm.name(), best.params));
                Ok(made)
            }
            None => build(best.algorithm, &best.params, &self.request.host_case()),
        });
        made.as_ref().map_err(Clone::clone)
    }
}

fn time(algorithm: &'static dyn Algorithm, params: Params, request: &InNetworkRequest) -> Result<Timed, PlanError> {
    let case = request.case();
    let (machine, c) = (&request.site.machine, &request.collective);
    if algorithm.runs_on().contains(&PlaceKind::InNetwork) {
        algorithm.supports(&case, &params)?;
        let params = algorithm.chosen(&case, &params);
        let made = algorithm.embed(&case, &params, &request.site)?;
        let nanoseconds = embedded_ns(machine, &request.site.layout, &made);
        return Ok(Timed { algorithm, params, nanoseconds, source: Source::Registers });
    }
    let unsupported = |reason: &str| {
        Err(AlgorithmError::Unsupported { algorithm: algorithm.name(), reason: reason.to_owned() }.into())
    };
    let Some(&host) = Host::ALL.iter().find(|h| h.name() == algorithm.name()) else {
        return unsupported("on switches that reduce there are in-network, recursive-doubling and rabenseifner");
    };
    if !matches!(c.kind, Kind::Allreduce | Kind::Barrier) {
        return unsupported("on the cores of this machine it has a time for allreduce and barrier only");
    }
    algorithm.supports(&request.host_case(), &params)?;
    let nanoseconds = host_ns(machine, c.ranks, u64::from(c.elements), c.dtype.bytes(), host);
    Ok(Timed { algorithm, params, nanoseconds, source: Source::Rounds })
}

/// Ranks every candidate, or times the algorithm that is named.
///
/// # Errors
/// Unknown names or parameters, cases that are not supported.
pub fn plan_in_network(
    request: InNetworkRequest,
    algorithm: Option<&str>,
    params: &Params,
) -> Result<InNetworkPlan, PlanError> {
    let case = request.case();
    let on_cores = |name: &str| Host::ALL.iter().any(|h| h.name() == name);
    let time = |algorithm, params| time(algorithm, params, &request);
    let timed = match algorithm {
        Some(name) => {
            let (algorithm, params) = resolve(name, &if on_cores(name) { request.host_case() } else { case }, params)?;
            vec![time(algorithm, params)?]
        }
        None => {
            let kind = request.collective.kind;
            let runs = |a: &&&dyn Algorithm| {
                a.collectives().contains(&kind) && (on_cores(a.name()) || a.runs_on().contains(&PlaceKind::InNetwork))
            };
            let knows = |a: &&&dyn Algorithm| params.iter().all(|(key, _)| a.params().iter().any(|p| p.name == key));
            let wanted = |&algorithm: &&'static dyn Algorithm| {
                algorithm.candidates(&case).into_iter().filter_map(move |own| {
                    let contradicts = own.iter().any(|(k, v)| params.get(k).is_some_and(|given| given != v));
                    (!contradicts).then(|| (algorithm, params.iter().fold(own, |all, (k, v)| all.with(k, v))))
                })
            };
            time_all(ALGORITHMS.iter().filter(runs).filter(knows).flat_map(wanted), time)?
        }
    };
    let candidates = ranked(timed, &request.collective, &request.site.machine.name, params)?;
    Ok(InNetworkPlan { request, candidates, registers: OnceLock::new(), schedule: OnceLock::new() })
}
