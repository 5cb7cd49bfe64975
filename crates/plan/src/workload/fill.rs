//! Workloads with as many copies of a model as a machine holds.
//!
//! One dimension of a workload may be data parallel: each member holds a copy of the model, and gradients are reduced
//! across members. Its size is free, so the workload can fill a machine. The work of a rank stays the same, and the
//! batch grows with the copies.

use unisono_base::narrow;

use super::{Dimension, Workload, WorkloadError, layout::places};

impl Workload {
    /// Returns the number of copies of the model; `None` if no dimension is data parallel.
    pub fn copies(&self) -> Option<u32> {
        self.dimensions.iter().find(|d| d.data_parallel).map(|d| d.size)
    }

    /// Returns the workload with as many copies of its model as fit on a machine of the given extents.
    ///
    /// # Errors
    ///
    /// Returns an error if no dimension is data parallel, a single copy does not fit, or a step names a copy that does
    /// not fit.
    pub fn filling(&self, machine: &str, extents: &[u32]) -> Result<Self, WorkloadError> {
        let Some(at) = self.dimensions.iter().position(|d| d.data_parallel) else {
            return Err(WorkloadError::NoCopies { name: self.name.clone(), machine: machine.to_owned() });
        };
        let with = |size: u32, shape: Option<[u32; 2]>| {
            let mut filled = self.clone();
            filled.dimensions[at] = Dimension { size, shape, ..self.dimensions[at].clone() };
            filled
        };
        let alone = with(1, Some([1, 1]));
        places(&alone, machine, extents)?;
        let filled = match extents {
            &[rows, cols] => {
                let [tall, wide] = alone.sides();
                let times =
                    |[r, c]: [u32; 2]| -> [u32; 2] { [narrow(u64::from(r) / tall), narrow(u64::from(c) / wide)] };
                // The workload is upright or turned by 90 degrees.
                let [upright, turned] = [times([rows, cols]), times([cols, rows])];
                let count = |[down, across]: [u32; 2]| u64::from(down) * u64::from(across);
                let [down, across] = if count(upright) >= count(turned) { upright } else { turned };
                with(down * across, Some([down, across]))
            }
            _ => {
                let copies = extents.iter().product::<u32>() / alone.accelerators();
                let down = (1..=copies.isqrt()).rev().find(|&down| copies.is_multiple_of(down)).unwrap_or(1);
                with(copies, self.dimensions[at].shape.map(|_| [down, copies / down]))
            }
        };
        filled.checked(&format!("{} on all of {machine}", self.name))
    }
}
