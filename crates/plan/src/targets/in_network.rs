//! Machines whose switches reduce. Plans compare reductions in the network, by one or several embeddings, with
//! algorithms on the cores.

use std::{any::Any, time::Instant};

use unisono_algorithms::{ALGORITHMS, Algorithm, AlgorithmError, Case, Means, Params, Profile, Ranks, resolve};
use unisono_base::narrow;
use unisono_collective::{Collective, Kind};
use unisono_cost::{
    Time,
    in_network::{Host, embedded_ns, eq2_ns, host_ns},
};
use unisono_lower::{
    File, Placed, Placement, VerifiedFile,
    switches::{Configured, SwitchPlacement},
};
use unisono_machine::{InNetwork, Machine, Shape, in_network::Site};
use unisono_schedule::Schedule;
use unisono_sim::collective_engine;

use super::{Placing, TargetKind, anywhere, first_ranks, machine_of, no_part, only_model, opened};
use crate::{
    Part, Plan, PlanError, Request, Run, RunError, RunOptions, Target, TimeSource, Timed, Value, candidates::build,
    run, target::Details,
};

const MODEL: &str = "alpha-beta";

const ALLREDUCE_ONLY: &str = "this machine's switches make allreduce, barrier, broadcast, reduce and scan, and of its \
    cores only allreduce has a model of time; describe its nodes as a network (kind = \"network\") for others";

const MEMORY_LIMITS: &str = "the cores' memories limit the throughput, not the links, so several embeddings at once bring \
    nothing more on this machine";

struct OnSwitches {
    machine: Machine,
    site: Site,
}

pub const KIND: TargetKind = TargetKind {
    name: "in-network",
    offers: &[Means::ReducingSwitches],
    compares: Host::NAMES,
    baseline,
    open: |request| opened(request, on_switches),
    place,
    simulator: &run::COLLECTIVE_ENGINE,
    simulate,
    simulate_beside: Some(simulate_beside),
    part: part_of,
};

/// Keeps a schedule's placement in switches, which must be on the requested cores. A schedule without a placement is
/// accepted only if it was planned for the cores of this machine.
fn place(placing: &Placing) -> Result<Option<Placement>, PlanError> {
    let machine: &InNetwork = placing.machine.get().expect("the kind of the machine");
    let Some(kept) = placing.kept.and_then(Placement::switches) else {
        let not_placed = not_placed(placing.schedule, machine);
        return match not_placed {
            PlanError::OnCores { .. } if placing.before == Some(placing.machine) => anywhere(placing),
            _ => Err(not_placed),
        };
    };
    placing.refuse_places()?;
    let asked = match placing.part {
        Part::All | Part::Places(_) => None,
        Part::Shape(shape) => Some(Site::first(machine, narrow(shape.grid.count()))?),
        Part::Nodes(nodes) => Some(Site::on_nodes(machine, nodes)?),
    };
    let cores = kept.split(placing.ranks()).0;
    match asked {
        Some(asked) if asked.ranks() != placing.ranks() => {
            Err(placing.other_size(placing.ranks().into(), "ranks", asked.ranks().into(), "cores"))
        }
        Some(asked) if *asked.cores != cores => Err(PlanError::OtherPart {
            machine: machine.name.clone(),
            placed: named(&part_on(machine, cores)),
            asked: named(placing.part),
        }),
        _ => Ok(Some(Placement::Switches(kept.clone()))),
    }
}

/// Returns the reason why a schedule without a placement in switches cannot run.
fn not_placed(schedule: &Schedule, machine: &InNetwork) -> PlanError {
    let machine = machine.name.clone();
    if schedule.check_ranks_only().is_err() {
        return PlanError::NoSwitches { machine };
    }
    let made_by = schedule.origin().split(' ').next().filter(|name| !name.is_empty());
    let algorithm = made_by.unwrap_or("the schedule").to_owned();
    PlanError::OnCores { algorithm, machine, simulated: "in-network" }
}

/// Returns the cores of the ranks as a part: the first cores, the cores of whole nodes, or a list.
fn part_of(file: &File) -> Result<Part, PlanError> {
    let ranks = file.schedule.collective().ranks;
    let placement = file.placement.as_ref().and_then(Placement::switches);
    Ok(match placement {
        Some(placement) => part_on(machine_of(file), placement.split(ranks).0),
        None => first_ranks(file)?,
    })
}

fn part_on(machine: &InNetwork, cores: &[u32]) -> Part {
    if cores.iter().copied().eq(0..narrow(cores.len())) {
        return Part::Shape(Shape::line(narrow(cores.len())));
    }
    let mut nodes: Vec<u32> = cores.iter().map(|core| core / machine.cores_per_node()).collect();
    nodes.dedup();
    match Site::on_nodes(machine, &nodes) {
        Ok(site) if *site.cores == cores => Part::Nodes(nodes),
        _ => Part::Places(cores.to_vec()),
    }
}

fn named(part: &Part) -> String {
    match part {
        Part::All => "the whole machine".to_owned(),
        Part::Shape(shape) => format!("the first {shape} cores"),
        Part::Nodes(nodes) if nodes.len() > 8 => format!("a subset of {} nodes", nodes.len()),
        Part::Nodes(nodes) => {
            format!("the cores of nodes {}", nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        Part::Places(cores) => format!("{} other cores", cores.len()),
    }
}

fn on_switches(request: &Request, machine: &InNetwork) -> Result<OnSwitches, PlanError> {
    only_model(MODEL, request.model)?;
    let site = match &request.part {
        Part::All => Site::all(machine),
        Part::Shape(shape) if shape.grid.is_line() => Site::first(machine, narrow(shape.grid.count()))?,
        Part::Nodes(nodes) => Site::on_nodes(machine, nodes)?,
        Part::Shape(_) | Part::Places(_) => return Err(no_part(request, "a number of ranks, and a subset of nodes")),
    };
    Ok(OnSwitches { machine: request.machine.clone(), site })
}

fn baseline(kind: Kind) -> &'static str {
    if kind == Kind::Allreduce { "recursive-doubling" } else { "in-network" }
}

const NO_OPTIONS: &str =
    "model, late, noise, queue_depth and noop_probability are not for switches that reduce; drop them";

/// Simulates a schedule in the switches of its placement.
fn simulate(proven: &VerifiedFile, options: &RunOptions) -> Result<Run, RunError> {
    if options.for_wafers() || options.for_ranks() {
        return Err(RunError::Options(NO_OPTIONS));
    }
    let (machine, placement) = in_place(proven.file())?;
    let begin = Instant::now();
    let run = collective_engine::run(machine, proven.verified(), placement)?;
    Ok(Run::in_switches(run, begin.elapsed().as_secs_f64()))
}

/// Returns the machine of a schedule, and its placement in the switches.
fn in_place(file: &File) -> Result<(&InNetwork, &SwitchPlacement), PlanError> {
    let machine: &InNetwork = machine_of(file);
    let placement = file.placement.as_ref().and_then(Placement::switches);
    Ok((machine, placement.ok_or_else(|| not_placed(&file.schedule, machine))?))
}

/// Simulates schedules on one machine, each on its placement, with identifiers that distinguish them.
fn simulate_beside(proven: &[VerifiedFile]) -> Result<Vec<Run>, RunError> {
    let begin = Instant::now();
    let mut all = Vec::with_capacity(proven.len());
    for file in proven {
        all.push((file.verified(), in_place(file.file())?.1));
    }
    let Some(first) = proven.first() else { return Ok(Vec::new()) };
    let runs = collective_engine::run_beside(in_place(first.file())?.0, &all)?;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(runs.into_iter().map(|run| with_identifiers(run, seconds)).collect())
}

fn with_identifiers(run: collective_engine::Run, wall_seconds: f64) -> Run {
    let identifiers = run.identifiers.iter().copied().map(u64::from).collect();
    let mut made = Run::in_switches(run, wall_seconds);
    made.metrics.push(("identifiers", Value::Counts(identifiers), "identifier of each embedding"));
    made
}

/// Returns true if an algorithm reduces in switches. The other algorithms run on the cores.
fn in_switches(algorithm: &dyn Algorithm) -> bool {
    algorithm.info().needs.contains(&Means::ReducingSwitches)
}

fn on_cores(name: &str) -> Option<Host> {
    Host::ALL.iter().copied().find(|host| host.name() == name)
}

impl OnSwitches {
    /// Returns the case of a collective that the cores perform by messages.
    fn host_case(&self, collective: Collective) -> Case<'static> {
        Case::on_ranks(collective, Ranks::default())
    }

    fn registers(&self, c: Collective, algorithm: &dyn Algorithm, params: &Params) -> Result<Configured, PlanError> {
        let case = self.case(c);
        let Some(Profile::Registers(configured)) = algorithm.profile(&case, params) else {
            // The build returns the reason as an error.
            algorithm.build(&case, params)?;
            let reason = "it has no registers".to_owned();
            return Err(AlgorithmError::Unsupported { algorithm: algorithm.name(), reason }.into());
        };
        Ok(configured)
    }
}

impl Target for OnSwitches {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn shape(&self) -> Vec<u32> {
        vec![self.site.ranks()]
    }

    fn model(&self) -> &'static str {
        MODEL
    }

    fn part(&self) -> &dyn Any {
        &self.site
    }

    fn case(&self, collective: Collective) -> Case<'_> {
        Case::on_switches(collective, &self.site)
    }

    fn resolve(
        &self,
        collective: Collective,
        name: &str,
        params: &Params,
    ) -> Result<(&'static dyn Algorithm, Params), AlgorithmError> {
        let host = on_cores(name).is_some();
        resolve(name, &if host { self.host_case(collective) } else { self.case(collective) }, params)
    }

    fn candidates(
        &self,
        collective: Collective,
        wanted: &Params,
        only: Option<&str>,
        _is_named: bool,
    ) -> Vec<(&'static dyn Algorithm, Params)> {
        let case = self.case(collective);
        // A single core sends no messages, so algorithms on the cores do not apply.
        let hosted = |name: &str| collective.ranks > 1 && on_cores(name).is_some();
        let runs = |a: &&&dyn Algorithm| {
            only.is_none_or(|only| a.name() == only)
                && a.info().collectives.contains(&collective.kind)
                && (hosted(a.name()) || in_switches(**a))
        };
        let takes = |a: &&&dyn Algorithm| wanted.iter().all(|(key, _)| a.info().params.iter().any(|p| p.name == key));
        let settings = |&algorithm: &&'static dyn Algorithm| {
            let own = algorithm.candidates(&case).into_iter();
            let agrees = |own: &Params| own.iter().all(|(k, v)| wanted.get(k).is_none_or(|given| given == v));
            let merged = |own: Params| wanted.iter().fold(own, |all, (k, v)| all.with(k, v));
            own.filter(agrees).map(|own| (algorithm, merged(own))).collect::<Vec<_>>()
        };
        ALGORITHMS.iter().filter(runs).filter(takes).flat_map(settings).collect()
    }

    /// Times a candidate by the alpha and beta of its embeddings in the switches' registers, or by the model of the
    /// cores.
    fn time_within(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
        _: Option<Time>,
    ) -> Result<Option<Timed>, PlanError> {
        let (machine, c) = (&self.site.machine, &collective);
        if in_switches(algorithm) {
            let case = self.case(collective);
            algorithm.supports(&case, &params)?;
            let params = algorithm.chosen(&case, &params);
            let made = self.registers(collective, algorithm, &params)?;
            let time = Time::from_ns(embedded_ns(machine, &self.site.layout, &made));
            return Ok(Some(Timed { algorithm, params, time, source: TimeSource::Registers, estimate: None }));
        }
        let unsupported = |reason: &str| {
            Err(AlgorithmError::Unsupported { algorithm: algorithm.name(), reason: reason.to_owned() }.into())
        };
        let Some(host) = on_cores(algorithm.name()) else {
            return unsupported("on switches that reduce there are in-network, recursive-doubling and rabenseifner");
        };
        if c.kind != Kind::Allreduce {
            return unsupported(ALLREDUCE_ONLY);
        }
        algorithm.supports(&self.host_case(collective), &params)?;
        let time = Time::from_ns(host_ns(machine, c.ranks, u64::from(c.elements), c.element_bytes(), host));
        Ok(Some(Timed { algorithm, params, time, source: TimeSource::Rounds, estimate: None }))
    }

    fn build(&self, collective: Collective, candidate: &Timed) -> Result<Placed, PlanError> {
        let in_switches = in_switches(candidate.algorithm);
        let case = if in_switches { self.case(collective) } else { self.host_case(collective) };
        build(candidate.algorithm, &case, &candidate.params)
    }

    fn details(&self, plan: &Plan) -> Result<Details, PlanError> {
        let (c, machine) = (&plan.problem.collective, &self.site.machine);
        let memory_ns = 16.0 * c.element_bytes() as f64 / machine.memory_gbps;
        let limited = memory_ns >= eq2_ns(machine, c.element_bytes()) && in_switches(plan.best().algorithm);
        Ok(Details { note: (limited && c.elements > 1).then(|| MEMORY_LIMITS.to_owned()), ..Details::default() })
    }
}
