//! The extension module `unisono._core`: converts between Python and the crates, and decides nothing.
//!
//! The interpreter lock is released while planning, proving and interpreting. A panic becomes `unisono.Error`.

// A number that does not fit is refused where it enters; see `unisono_base::narrow`.
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
mod reproduce;
mod schedule;
mod simulate;
mod simulation;
mod tasks;
mod traffic;
mod tuning;
mod workload;
mod workload_graph;

use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::quiet_panics();
    limits::warn_in_python();
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let py = m.py();
    m.add("Error", py.get_type::<errors::Error>())?;
    m.add("InputError", py.get_type::<errors::InputError>())?;
    m.add("NotExpressibleError", py.get_type::<errors::NotExpressibleError>())?;
    m.add("UnsupportedError", py.get_type::<errors::UnsupportedError>())?;
    m.add("VerifyError", py.get_type::<errors::VerifyError>())?;
    m.add("SimulationError", py.get_type::<errors::SimulationError>())?;
    m.add_class::<machine::Machine>()?;
    m.add_class::<mpi::Channel>()?;
    m.add_class::<plan::Plan>()?;
    m.add_class::<schedule::Proof>()?;
    m.add_class::<schedule::Schedule>()?;
    m.add_class::<simulation::Simulation>()?;
    m.add_class::<mapper::Mapper>()?;
    m.add_class::<discover::Operation>()?;
    m.add_class::<discover::Discovery>()?;
    m.add_class::<discover::TaskList>()?;
    m.add_class::<moved::Moved>()?;
    m.add_class::<tasks::LibraryCollective>()?;
    m.add_class::<tasks::PairMessages>()?;
    m.add_class::<tasks::TaskMemory>()?;
    m.add_class::<tasks::TaskSchedule>()?;
    m.add_class::<moved::Pricing>()?;
    m.add_class::<workload_graph::WorkloadGraph>()?;
    m.add_function(wrap_pyfunction!(moved::pricing, m)?)?;
    m.add_class::<builder::Stream>()?;
    m.add_class::<builder::Slice>()?;
    m.add_class::<builder::Buffer>()?;
    m.add_class::<builder::ScheduleBuilder>()?;
    m.add_function(wrap_pyfunction!(allocate::allocate, m)?)?;
    m.add_function(wrap_pyfunction!(allocate::submesh, m)?)?;
    m.add_function(wrap_pyfunction!(facts::collectives, m)?)?;
    m.add_function(wrap_pyfunction!(facts::bandwidths, m)?)?;
    m.add_function(wrap_pyfunction!(facts::dtypes, m)?)?;
    m.add_function(wrap_pyfunction!(facts::operators, m)?)?;
    m.add_function(wrap_pyfunction!(limits::admit_sweep, m)?)?;
    m.add_function(wrap_pyfunction!(limits::default_steps, m)?)?;
    m.add_function(wrap_pyfunction!(limits::limits_follow, m)?)?;
    m.add_function(wrap_pyfunction!(limits::limits_now, m)?)?;
    m.add_function(wrap_pyfunction!(limits::note_large_work, m)?)?;
    m.add_function(wrap_pyfunction!(limits::set_limits, m)?)?;
    m.add_function(wrap_pyfunction!(limits::steps_counted, m)?)?;
    m.add_function(wrap_pyfunction!(machine::machine_presets, m)?)?;
    m.add_function(wrap_pyfunction!(machine::preset_toml, m)?)?;
    m.add_function(wrap_pyfunction!(machine::require_offer, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::simulators, m)?)?;
    m.add_function(wrap_pyfunction!(plan::algorithms, m)?)?;
    m.add_function(wrap_pyfunction!(machine::parse_shape, m)?)?;
    m.add_function(wrap_pyfunction!(own_algorithm::register_algorithm, m)?)?;
    m.add_function(wrap_pyfunction!(own_algorithm::unregister_algorithm, m)?)?;
    m.add_function(wrap_pyfunction!(plan::plan, m)?)?;
    m.add_function(wrap_pyfunction!(plan::bounds, m)?)?;
    m.add_function(wrap_pyfunction!(plan::check_bound, m)?)?;
    m.add_function(wrap_pyfunction!(planfile::encode_plan, m)?)?;
    m.add_function(wrap_pyfunction!(planfile::decode_plan, m)?)?;
    m.add_function(wrap_pyfunction!(planfile::prove_plan, m)?)?;
    m.add_function(wrap_pyfunction!(plan::sweep_point, m)?)?;
    m.add_function(wrap_pyfunction!(tuning::chosen, m)?)?;
    m.add_function(wrap_pyfunction!(tuning::plan_size_class, m)?)?;
    m.add_function(wrap_pyfunction!(tuning::propose, m)?)?;
    m.add_function(wrap_pyfunction!(tuning::size_class, m)?)?;
    m.add_function(wrap_pyfunction!(tuning::tuned_regions, m)?)?;
    m.add_function(wrap_pyfunction!(tuning::worthwhile, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::simulate, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::simulate_beside, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::measure, m)?)?;
    m.add_function(wrap_pyfunction!(endpoint::simulate_goal, m)?)?;
    m.add_function(wrap_pyfunction!(traffic::simulate_network_goal, m)?)?;
    m.add_function(wrap_pyfunction!(traffic::injection, m)?)?;
    m.add_function(wrap_pyfunction!(traffic::traffic_flows, m)?)?;
    m.add_function(wrap_pyfunction!(traffic::traffic_packets, m)?)?;
    m.add_function(wrap_pyfunction!(emit::emit, m)?)?;
    m.add_function(wrap_pyfunction!(emit::emitters, m)?)?;
    m.add_function(wrap_pyfunction!(gpu_plans::check_plan, m)?)?;
    m.add_function(wrap_pyfunction!(gpu_plans::is_gpu_plan, m)?)?;
    m.add_function(wrap_pyfunction!(gpu_plans::check_msccl, m)?)?;
    m.add_function(wrap_pyfunction!(export::check_registers, m)?)?;
    m.add_function(wrap_pyfunction!(export::export_table, m)?)?;
    m.add_function(wrap_pyfunction!(export::import_schedule, m)?)?;
    m.add_function(wrap_pyfunction!(export::importers, m)?)?;
    m.add_function(wrap_pyfunction!(export::tunings, m)?)?;
    m.add_function(wrap_pyfunction!(workload::workload, m)?)?;
    m.add_function(wrap_pyfunction!(workload::workload_presets, m)?)?;
    m.add_function(wrap_pyfunction!(mpi::is_switched_on, m)?)?;
    m.add_function(wrap_pyfunction!(multiplying::multiplying_best, m)?)?;
    m.add_function(wrap_pyfunction!(multiplying::multiplying_cost, m)?)?;
    m.add_function(wrap_pyfunction!(multiplying::multiplying_count, m)?)?;
    m.add_function(wrap_pyfunction!(multiplying::multiplying_fan_out, m)?)?;
    m.add_function(wrap_pyfunction!(multiplying::multiplying_schedules, m)?)?;
    m.add_function(wrap_pyfunction!(network::check_routing, m)?)?;
    m.add_function(wrap_pyfunction!(network::import_network, m)?)?;
    m.add_function(wrap_pyfunction!(network::network_formats, m)?)?;
    m.add_function(wrap_pyfunction!(network::plane, m)?)?;
    m.add_function(wrap_pyfunction!(network::topologies, m)?)?;
    m.add_function(wrap_pyfunction!(discover::discover, m)?)?;
    m.add_function(wrap_pyfunction!(discover::discover_moved, m)?)?;
    m.add_function(wrap_pyfunction!(discover::discovery_rate, m)?)?;
    m.add_function(wrap_pyfunction!(reproduce::auto_gen, m)?)?;
    m.add_function(wrap_pyfunction!(reproduce::reduce_optimality, m)?)?;
    m.add_function(wrap_pyfunction!(reproduce::paper_claims, m)?)?;
    // What the conversions of arguments raise becomes `InputError`.
    py.import("unisono.base.border")?.call_method1("install", (m,))?;
    Ok(())
}
