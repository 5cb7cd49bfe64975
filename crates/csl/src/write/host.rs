//! Writes the files for the host: the script that loads the program, starts it, reads the results back and checks them;
//! the commands; the README.

use unisono_collective::{Dtype, Kind, Operator};

use super::{head, ping_pong, plan::Plan};
use crate::SdkTarget;

const RUN: &str = include_str!("run.py.txt");
const MEASURING: &str = include_str!("measure.py.txt");
const PLAYING: &str = include_str!("ping_pong.py.txt");

/// The line of `commands.sh` that runs the measurement by calibrated starts. [`MEASURED`] is the paragraph of the
/// README about this measurement.
pub const MEASURE: &str = "cs_python measure.py --name out ${CMADDR:+--cmaddr \"$CMADDR\"}\n";
pub const MEASURED: &str = "
`measure.py` measures the time as section 8.3 of \"Near-Optimal Wafer-Scale Reduce\" does: it calibrates the starts of all PEs,
and loads and runs the program `--repeats` times. The clocks of PEs are read by the library `<time>`.
";

pub const PING_PONG: &str = "
`compute` broadcasts from the first PE, and then from the last PE what it received. `measure.py` measures that by ping-pong, as
section 8.3 of \"Near-Optimal Wafer-Scale Reduce\" does, `--repeats` times. The clock of the first PE is read by the library `<time>`.
";

/// Returns the script that measures a broadcast by ping-pong.
pub fn ping_pong_script(target: &SdkTarget) -> String {
    let fields = [
        ("<<head>>", head(target)),
        ("<<rounds>>", ping_pong::ROUNDS.to_string()),
        ("<<system>>", target.system.to_owned()),
    ];
    fields.iter().fold(PLAYING.to_owned(), |text, (field, value)| text.replace(field, value))
}

/// Returns the script that measures a collective by calibrated starts.
pub fn measure_script(plan: &Plan, target: &SdkTarget) -> String {
    let fields = [
        ("<<head>>", head(target)),
        ("<<system>>", target.system.to_owned()),
        ("<<kind>>", plan.collective.kind.name().to_owned()),
        ("<<rows>>", plan.grid.rows.to_string()),
        ("<<cols>>", plan.grid.cols.to_string()),
    ];
    fields.iter().fold(MEASURING.to_owned(), |text, (field, value)| text.replace(field, value))
}

/// Returns the run script: the template with the collective's numbers and the expected result of each rank.
pub fn run_script(plan: &Plan, target: &SdkTarget) -> String {
    let c = &plan.collective;
    let dtype = if c.dtype == Dtype::I32 { "int32" } else { "float32" };
    let combine = match c.operator {
        Operator::Max => "np.maximum",
        Operator::Prod => "np.multiply",
        Operator::Min => "np.minimum",
        Operator::And => "np.bitwise_and",
        Operator::Or => "np.bitwise_or",
        Operator::Xor => "np.bitwise_xor",
        _ => "np.add",
    };
    let holders = |len: &dyn Fn(u32) -> u32| -> String {
        let ranks: Vec<u32> = (0..c.ranks).filter(|&r| len(r) > 0).collect();
        match ranks[..] {
            [one] => format!("[{one}]"),
            _ if ranks.len() == c.ranks as usize => format!("range({})", c.ranks),
            _ => format!("[r for r in range({}) if r != {}]", c.ranks, c.root),
        }
    };
    let longest = |len: &dyn Fn(u32) -> u32| (0..c.ranks).map(len).max().unwrap_or(0).to_string();
    let expected = match c.kind {
        Kind::Reduce | Kind::Allreduce => "COMBINE.reduce(data)",
        Kind::Scan => "COMBINE.reduce(data[: rank + 1])",
        Kind::ReduceScatter => "COMBINE.reduce(data)[rank * ELEMENTS : (rank + 1) * ELEMENTS]",
        Kind::Broadcast | Kind::Message => "data[0]",
        Kind::Scatter => "data[0][rank * ELEMENTS : (rank + 1) * ELEMENTS]",
        Kind::Gather | Kind::Allgather => "data.reshape(-1)",
        Kind::Alltoall => "data[:, rank * ELEMENTS : (rank + 1) * ELEMENTS].reshape(-1)",
        // A barrier has no result; the script only shows that it ends.
        Kind::Barrier => "found",
    };
    let input = |r| c.input_len(r);
    let output = |r| c.output_len(r);
    let fields: [(&str, &str); 12] = [
        ("<<head>>", &head(target)),
        ("<<system>>", target.system),
        ("<<kind>>", c.kind.name()),
        ("<<rows>>", &plan.grid.rows.to_string()),
        ("<<cols>>", &plan.grid.cols.to_string()),
        ("<<elements>>", &c.elements.to_string()),
        ("<<dtype>>", dtype),
        ("<<combine>>", combine),
        ("<<givers>>", &holders(&input)),
        ("<<input>>", &longest(&input)),
        ("<<takers>>", &holders(&output)),
        ("<<output>>", &longest(&output)),
    ];
    let text = RUN.replace("<<expected>>", expected);
    fields.iter().fold(text, |t, (field, value)| t.replace(field, value))
}

pub fn commands(plan: &Plan, target: &SdkTarget) -> String {
    let (width, height) = (plan.grid.cols + target.host_columns, plan.grid.rows + target.host_rows);
    let [fabric_width, fabric_height] = target.fabric;
    let (head, system) = (head(target), target.system);
    let arch = target.arch.map_or_else(String::new, |arch| format!(" --arch={arch}"));
    format!(
        "#!/usr/bin/env bash
# Compiles and runs: on the simulator, or on a {system} with CMADDR=IP:port in the environment.
# {head}
set -e

dims={width},{height}
if [ -n \"$CMADDR\" ]; then dims={fabric_width},{fabric_height}; fi

cslc ./layout.csl{arch} --fabric-dims=\"$dims\" --fabric-offsets=4,1 -o out --memcpy --channels=1
cs_python run.py --name out ${{CMADDR:+--cmaddr \"$CMADDR\"}}
"
    )
}

pub fn readme(plan: &Plan, target: &SdkTarget) -> String {
    let c = &plan.collective;
    let again = if plan.has_switches() {
        "Switches end in another position than they started in: load again before a second run."
    } else if plan.classes.iter().any(|c| c.key.partials(target).iter().any(|&n| n > 0)) {
        "The counters and descriptors of chunks are not set back: load again before a second run."
    } else if !plan.tasks.is_empty() {
        "The counters of the threads are not set back: load again before a second run."
    } else {
        "Nothing has to be set back between runs."
    };
    let launch = target.launch.map_or_else(String::new, |color| format!(" Color {color} starts functions."));
    let colors: Vec<String> = plan.colors.iter().map(|(c, n)| format!("{c} as {n}")).collect();
    format!(
        "# {} of {} {} on {} PEs

{}

| file | what |
|---|---|
| `layout.csl` | which PE runs which program, and the routes of the colors |
| `pe_N.csl` | {} programs |{}
| `run.py` | loads data, runs, reads back and compares with NumPy |
| `commands.sh` | compiles and runs, on the simulator or with `CMADDR` on a {} |

Colors of the program as colors of the fabric: {}.{launch}
{again}
",
        c.kind,
        c.elements,
        c.dtype,
        plan.grid,
        head(target),
        plan.classes.len(),
        if plan.is_mapped() { "\n| `operator.csl` | the operator, which `@map` applies |" } else { "" },
        target.system,
        if colors.is_empty() { "none".to_owned() } else { colors.join(", ") },
    )
}
