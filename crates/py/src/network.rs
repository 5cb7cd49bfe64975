//! Networks: their parts, their cables, and the check of their routing.

use numpy::PyArray1;
use pyo3::{prelude::*, types::PyDict};
use unisono_machine::{
    MachineError,
    network::{
        FAMILIES, Network, deadlock,
        import::{FORMATS, ImportOptions},
    },
};

use crate::{
    errors::{detached, input, to_python},
    machine::Machine,
};

pub fn network(machine: &Machine) -> PyResult<&Network> {
    machine.of("a network")
}

/// Returns the network of a machine that is used as a whole.
///
/// # Errors
/// Returns an error if the machine is of another kind, or only a part is used. `what` names the purpose in the message.
pub fn whole_network<'a>(machine: &'a Machine, what: &str) -> PyResult<&'a Network> {
    let network = network(machine)?;
    machine.check_whole(&format!("{what} on"))?;
    Ok(network)
}

/// Returns `[{name, keys, reference, summary}]` of all families of topologies.
#[pyfunction]
pub fn topologies(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, FAMILIES)
}

/// Returns one plane: the numbers of `accelerators` and `nodes`, and for every cable its ends `a` and `b`, its `kind`
/// (0 board, 1 DAC, 2 AOC), `gbps`, `latency_ns`, and the indices `there` and `back` of its links.
#[pyfunction]
pub fn plane<'py>(py: Python<'py>, machine: &Machine) -> PyResult<Bound<'py, PyDict>> {
    let network = network(machine)?;
    let plane = detached(py, || network.topology(&network.name)?.plane())?.map_err(input)?;
    // Each cable is listed once, from its end with the lower link number.
    let ids = || (0u32..).zip(plane.links()).filter(|(id, link)| link.back > *id);
    let once = || ids().map(|(_, link)| link);
    let dict = PyDict::new(py);
    dict.set_item("accelerators", plane.accelerators())?;
    dict.set_item("nodes", plane.nodes())?;
    dict.set_item("a", PyArray1::from_iter(py, once().map(|link| link.from)))?;
    dict.set_item("b", PyArray1::from_iter(py, once().map(|link| link.to)))?;
    dict.set_item("kind", PyArray1::from_iter(py, once().map(|link| link.cable as u8)))?;
    let speeds: Vec<_> = ids().map(|(id, _)| network.link_speed(&plane, id)).collect();
    dict.set_item("gbps", PyArray1::from_iter(py, speeds.iter().map(|speed| speed.gbps)))?;
    dict.set_item("latency_ns", PyArray1::from_iter(py, speeds.iter().map(|speed| speed.latency_ns)))?;
    // These indices select the links in the traffic counts of simulations.
    dict.set_item("there", PyArray1::from_iter(py, ids().map(|(id, _)| id)))?;
    dict.set_item("back", PyArray1::from_iter(py, once().map(|link| link.back)))?;
    Ok(dict)
}

/// Returns the name of each node of a plane. After failures, the remaining nodes keep their names in the whole network.
#[pyfunction]
pub fn part_names(py: Python<'_>, machine: &Machine) -> PyResult<Vec<String>> {
    let network = network(machine)?;
    detached(py, || {
        let (whole, topology) = (network.whole_topology(&network.name)?, network.topology(&network.name)?);
        let name = |node| whole.node_name(node).own;
        Ok::<_, MachineError>(match topology.renumbered() {
            Some(new) => (0..).zip(new).filter(|(_, new)| new.is_some()).map(|(old, _)| name(old)).collect(),
            None => (0..whole.plane()?.nodes()).map(name).collect(),
        })
    })?
    .map_err(input)
}

/// Reads a network from the text of another program's file, as a machine of the given name. `names` are the names of
/// the nodes of a list of cables, if it has names. The `notes` follow the machine's own notes.
#[pyfunction]
#[pyo3(signature = (text, origin, source, name, boxes, accelerators, names = None, notes = None))]
#[expect(clippy::too_many_arguments, reason = "arguments of a function for Python")]
pub fn import_network(
    py: Python<'_>,
    text: &str,
    origin: &str,
    source: &str,
    name: &str,
    boxes: u32,
    accelerators: Option<u32>,
    names: Option<Vec<String>>,
    notes: Option<Vec<String>>,
) -> PyResult<Machine> {
    let Some(found) = FORMATS.iter().find(|f| f.name == source) else {
        let names: Vec<&str> = FORMATS.iter().map(|f| f.name).collect();
        return Err(input(format!("'{source}' is no format of topologies; accepted are {}", names.join(", "))));
    };
    let options = ImportOptions { name, boxes, accelerators, names: names.as_deref() };
    let mut network = detached(py, || found.read(text, origin, &options))?.map_err(input)?;
    network.notes.extend(notes.unwrap_or_default());
    Machine::new(network.into(), None)
}

/// Checks if packets can block each other forever. Returns `{name, virtual_channels, deadlock_free, channels,
/// dependencies, fault}`.
#[pyfunction]
pub fn check_routing<'py>(py: Python<'py>, machine: &Machine) -> PyResult<Bound<'py, PyDict>> {
    let network = network(machine)?;
    let (routing, found) = detached(py, || {
        let topology = network.topology(&network.name)?;
        let (plane, routing) = (topology.plane()?, topology.routing());
        deadlock::admit(&*topology, &plane, &*routing)?;
        let found = deadlock::check(&plane, &*routing);
        Ok::<_, MachineError>((routing, found))
    })?
    .map_err(input)?;
    let dict = PyDict::new(py);
    dict.set_item("name", routing.name())?;
    dict.set_item("virtual_channels", routing.virtual_channels())?;
    dict.set_item("deadlock_free", found.is_ok())?;
    dict.set_item("channels", found.as_ref().ok().map(|free| free.channels))?;
    dict.set_item("dependencies", found.as_ref().ok().map(|free| free.dependencies))?;
    dict.set_item("fault", found.err().map(|fault| fault.to_string()))?;
    Ok(dict)
}
