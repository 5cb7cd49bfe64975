//! The extension module `unisono._core`: converts between Python and the crates, without logic of its own.
//!
//! The interpreter lock is released while planning, proving and interpreting. A panic in this work becomes
//! `unisono.Error`.

// Conversions refuse a number that does not fit; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod allocate;
mod builder;
mod convert;
mod discover;
mod emit;
mod endpoint;
mod errors;
mod export;
mod facts;
mod gpu_plans;
mod interpreted;
mod limits;
mod machine;
mod mapper;
mod moved;
mod mpi;
mod multiplying;
mod network;
mod own_algorithm;
mod plan;
mod planfile;
mod proof;
mod reproduce;
mod schedule;
mod simulate;
mod simulation;
mod symbol;
mod tasks;
mod traffic;
mod tuning;
mod workload;
mod workload_graph;

#[pyo3::pymodule]
mod _core {
    use pyo3::prelude::*;

    use crate::{errors, limits};

    #[pymodule_export]
    use crate::{
        allocate::{admit_allocations, allocation_report, count_allocations, submesh},
        builder::{Buffer, ScheduleBuilder, Slice, Stream},
        discover::{Discovery, Operation, TaskList, discover, discover_moved, discovery_rate},
        emit::{emission_notes, emit, emitters},
        endpoint::simulate_goal,
        errors::{Error, InputError, NotExpressibleError, SimulationError, UnsupportedError, VerifyError},
        export::{check_registers, export_table, import_schedule, importers, tunings},
        facts::{bandwidths, collectives, dtypes, gpu_architecture, operators},
        gpu_plans::{check_plan, is_gpu_plan},
        limits::{
            admit_sweep, default_steps, limits_follow, limits_now, note_large_work, set_cores, set_limits,
            steps_counted,
        },
        machine::{Machine, machine_presets, parse_shape, preset_names, preset_toml, require_offer},
        mapper::Mapper,
        moved::{Moved, Pricing, pricing},
        mpi::{Channel, LibraryCall, is_switched_on, unknown_variables, variables_of_programs},
        multiplying::{
            multiplying_best, multiplying_cost, multiplying_count, multiplying_fan_out, multiplying_schedules,
        },
        network::{check_routing, import_network, part_names, plane, topologies},
        own_algorithm::{register_algorithm, unregister_algorithm},
        plan::{Plan, algorithms, bounds, check_bound, library_choice_of, library_sizes, plan, sweep_point},
        planfile::{check_plan_file, decode_plan, encode_plan, prove_plan},
        proof::Proof,
        reproduce::{auto_gen, paper_claims, reduce_optimality},
        schedule::Schedule,
        simulate::{measure, simulate, simulate_beside, simulators},
        simulation::Simulation,
        tasks::{Reducing, TaskMemory, TaskSchedule, WorldCall},
        traffic::{
            injection, message_routes, simulate_messages, simulate_network_goal, traffic_flows, traffic_packets,
        },
        tuning::{chosen, plan_size_class, propose, settings, size_class, tuned_regions, worthwhile},
        workload::workload_presets,
        workload_graph::WorkloadGraph,
    };

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        errors::quiet_panics();
        limits::warn_in_python();
        m.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // Exceptions of failed argument conversions become `InputError`.
        m.py().import("unisono.base.border")?.call_method1("install", (m,))?;
        Ok(())
    }
}
