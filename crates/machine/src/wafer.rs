//! A wafer: a mesh of PEs, each with a router. Source: "Near-Optimal Wafer-Scale Reduce", sections 2.2 and 3.

use serde::{Deserialize, Serialize};
use unisono_base::exact;

use crate::{Description, Grid, MachineError, MachineText, Shape};

/// A generation of the vendor's machines, by the name in the vendor's compiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    #[default]
    Wse2,
    Wse3,
}

impl Architecture {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wafer {
    pub name: String,
    pub kind: String,
    #[serde(default)]
    pub summary: String,
    /// The generation of the vendor's machines that emitted code is for.
    #[serde(default, skip_serializing_if = "Architecture::is_default")]
    pub architecture: Architecture,
    /// The keys with assumed values, because no source publishes them. Plans and runs report them. `hop_cycles` is not
    /// a key of files: a hop takes one cycle on every wafer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// The rows and columns that plans use by default.
    #[serde(default, deserialize_with = "exact::optional", skip_serializing_if = "Option::is_none")]
    pub shape: Option<[u32; 2]>,
    /// The rows and columns of the whole fabric; by default `shape`.
    #[serde(default, deserialize_with = "exact::optional", skip_serializing_if = "Option::is_none")]
    pub max_shape: Option<[u32; 2]>,
    /// The cycles between a router and its PE in each direction: T_R.
    pub ramp_latency_cycles: u32,
    pub clock_mhz: f64,
    #[serde(default = "colors")]
    pub colors: u32,
    /// The colors that programs may not route.
    #[serde(default)]
    pub reserved_colors: Vec<u32>,
    #[serde(default = "switch_positions")]
    pub switch_positions: u32,
    #[serde(default = "sram_bytes")]
    pub sram_bytes: u64,
    /// The number of wavelets that a router can queue for each color and input.
    #[serde(default = "queue_depth")]
    pub queue_depth: u32,
    #[serde(default = "input_queues")]
    pub input_queues: u32,
    #[serde(default = "output_queues")]
    pub output_queues: u32,
}

/// The keys whose values a file may mark as assumptions.
const ASSUMABLE: [&str; 10] = [
    "max_shape",
    "ramp_latency_cycles",
    "clock_mhz",
    "colors",
    "switch_positions",
    "sram_bytes",
    "queue_depth",
    "input_queues",
    "output_queues",
    "hop_cycles",
];

fn colors() -> u32 {
    24
}
fn switch_positions() -> u32 {
    4
}
fn sram_bytes() -> u64 {
    48 * 1024
}
fn queue_depth() -> u32 {
    4
}
fn input_queues() -> u32 {
    8
}
fn output_queues() -> u32 {
    6
}

impl Description for Wafer {
    const KIND: &'static str = "wafer";

    fn read(source: &MachineText) -> Result<Self, MachineError> {
        let wafer: Self = source.parse()?;
        wafer.check(source.origin)?;
        Ok(wafer)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> &str {
        &self.summary
    }

    fn notes(&self, _: u64, _: Option<&str>) -> Vec<String> {
        self.assumptions().into_iter().chain(self.short_queues()).collect()
    }

    fn shape(&self, asked: Option<Shape>) -> Result<Option<Shape>, MachineError> {
        if asked.or(self.whole()).is_none() { Ok(None) } else { self.choose(asked).map(Some) }
    }
}

impl Wafer {
    /// Returns a sentence about stalls that no closed form includes, if the queues of routers are shorter than those of
    /// the presets.
    fn short_queues(&self) -> Option<String> {
        let effect = if self.queue_depth == 1 { "halve the rate of each link" } else { "hold up blocks that meet" };
        (self.queue_depth < queue_depth()).then(|| {
            format!(
                "times in closed form count queues of {} wavelets at each router; those of {} (queue_depth) {effect}, \
                 as simulations count",
                queue_depth(),
                self.queue_depth
            )
        })
    }

    /// Returns the cycles of one step of the longest chain: down the ramp, one operation, up the ramp (2 T_R + 1).
    pub fn depth_cycles(&self) -> f64 {
        f64::from(2 * self.ramp_latency_cycles + 1)
    }

    /// Returns a sentence that names the assumed keys, if there are any.
    pub fn assumptions(&self) -> Option<String> {
        let keys = self.assumed.join(", ");
        let are = if self.assumed.len() == 1 { "is" } else { "are" };
        let because = "because no source publishes";
        let them = if self.assumed.len() == 1 { "it" } else { "them" };
        (!keys.is_empty()).then(|| format!("{keys} of {} {are} assumed, {because} {them}", self.name))
    }

    /// Returns the shape to plan for: `asked`, or else the shape in the file.
    ///
    /// # Errors
    /// Returns an error if both are missing, or the shape is larger than the fabric in both orientations.
    pub fn choose(&self, asked: Option<Shape>) -> Result<Shape, MachineError> {
        let max = self.fabric();
        let Some(shape) = asked.or(self.whole()) else {
            return Err(MachineError::NoShape { machine: self.name.clone(), rows: max.rows, columns: max.cols });
        };
        let fits = |rows, cols| rows <= max.rows && cols <= max.cols;
        let Grid { rows, cols } = shape.grid;
        if fits(rows, cols) || fits(cols, rows) {
            return Ok(shape);
        }
        let (found, machine) = (shape.to_string(), self.name.clone());
        Err(MachineError::TooLarge { found, machine, rows: max.rows, columns: max.cols })
    }

    fn whole(&self) -> Option<Shape> {
        self.shape.map(|[m, n]| Shape::rect(m, n))
    }

    fn fabric(&self) -> Grid {
        let [rows, cols] = self.max_shape.or(self.shape).unwrap_or([1, 1]);
        Grid::new(rows, cols)
    }

    fn check(&self, origin: &str) -> Result<(), MachineError> {
        let bad =
            |key, found: String, accepted| Err(MachineError::Value { origin: origin.to_owned(), key, found, accepted });
        for (key, shape) in [("shape", self.shape), ("max_shape", self.max_shape)] {
            if let Some([m, n]) = shape
                && (m == 0 || n == 0 || u64::from(m) * u64::from(n) > 1 << 24)
            {
                return bad(key, format!("[{m}, {n}]"), "[rows, columns], each at least 1, at most 16777216 PEs");
            }
        }
        if self.shape.or(self.max_shape).is_none() {
            return bad("max_shape", "missing".into(), "[rows, columns], or a shape");
        }
        if !(self.clock_mhz.is_finite() && self.clock_mhz > 0.0) {
            return bad("clock_mhz", self.clock_mhz.to_string(), "a positive number of MHz");
        }
        if self.ramp_latency_cycles > 1_000_000 {
            return bad("ramp_latency_cycles", self.ramp_latency_cycles.to_string(), "0 to 1000000 cycles");
        }
        if !(1..=1024).contains(&self.colors) {
            return bad("colors", self.colors.to_string(), "1 to 1024");
        }
        if let Some(color) = self.reserved_colors.iter().find(|&&c| c >= self.colors) {
            return bad("reserved_colors", color.to_string(), "colors of the machine");
        }
        if let Some(key) = self.assumed.iter().find(|key| !ASSUMABLE.contains(&key.as_str())) {
            return bad("assumed", key.clone(), "keys of numbers that the file gives, and hop_cycles");
        }
        if self.switch_positions == 0 || self.queue_depth == 0 {
            return bad("switch_positions or queue_depth", "0".into(), "at least 1");
        }
        Ok(())
    }
}
