//! The jobs to place: listed in a file, or drawn from a distribution of sizes.

use unisono_base::rounded;

use super::{JobSpace, space::sides};
use crate::MachineError;

/// A request for boards: their number, and their shape if the user gave one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    pub boards: u32,
    /// The number of boards along each dimension. The job may be placed with its dimensions in another order.
    pub shape: Option<Vec<u32>>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Jobs {
    /// Jobs are drawn from a distribution until they request all healthy boards. The last job gets the remaining
    /// boards.
    Drawn(Sizes),
    List(Vec<Job>),
}

/// The cumulative distribution of job sizes. An entry `(fraction, boards)` means that this fraction of jobs has at most
/// this number of boards. Fractions increase up to 1, and numbers of boards never decrease.
#[derive(Clone, PartialEq, Debug)]
pub struct Sizes(Vec<(f64, u32)>);

/// The cumulative distribution of job sizes, in boards, in Alibaba's MLaaS trace (Weng and others, NSDI 2022). Only the
/// quantiles in the artifact of "HammingMesh" are known.
pub const TRACE: &[(f64, u32)] = &[(0.7643, 1), (0.9074, 10), (0.9472, 20), (0.9852, 50), (0.9971, 100), (1.0, 1200)];

impl Sizes {
    pub fn trace() -> Self {
        Self(TRACE.to_vec())
    }

    /// Returns a job of the quantile `share` (0 to 1) of the distribution. Between two entries the size grows
    /// geometrically; this interpolation is an assumption of this project. Jobs up to the first fraction have the first
    /// size.
    pub fn at(&self, share: f64) -> Job {
        let above = self.0.iter().position(|&(at_most, _)| share <= at_most).unwrap_or(self.0.len() - 1);
        let (to, largest) = self.0[above];
        let Some(&(from, smallest)) = above.checked_sub(1).map(|below| &self.0[below]) else {
            return Job { boards: largest, shape: None };
        };
        let (low, high) = (f64::from(smallest), f64::from(largest));
        let size = low * (high / low).powf((share - from) / (to - from));
        let boards = u32::try_from(rounded(size.ceil())).unwrap_or(largest);
        Job { boards: boards.clamp((smallest + 1).min(largest), largest), shape: None }
    }

    /// Adds the entry of a line, `SHARE% BOARDS`.
    fn push(&mut self, said: &str) -> Result<(), &'static str> {
        const FORM: &str = "a size is SHARE% BOARDS, such as 76.43% 1";
        let (share, boards) = said.split_once('%').ok_or(FORM)?;
        let (Ok(share), Ok(boards)) = (share.trim().parse::<f64>(), boards.trim().parse::<u32>()) else {
            return Err(FORM);
        };
        if !(share > 0.0 && share <= 100.0) || boards == 0 {
            return Err("shares are above 0 and at most 100, and boards at least 1");
        }
        let (last_share, last_boards) = self.0.last().copied().unwrap_or_default();
        if share / 100.0 <= last_share || boards < last_boards {
            return Err("shares rise from line to line, and boards do not fall");
        }
        self.0.push((share / 100.0, boards));
        Ok(())
    }
}

impl Job {
    /// Reads a number of boards, or the sides of a shape with at most `dimensions` dimensions; `None` if the text is
    /// neither.
    fn parse(said: &str, dimensions: Option<usize>) -> Option<Self> {
        let side = |text: &str| text.trim().parse::<u32>().ok().filter(|&n| n > 0);
        let shape = said.split('x').map(side).collect::<Option<Vec<u32>>>()?;
        let boards = shape.iter().fold(1_u32, |product, &side| product.saturating_mul(side));
        let is_shape = shape.len() > 1;
        let has_room = !is_shape || dimensions.is_none_or(|most| shape.len() <= most);
        has_room.then(|| Self { boards, shape: is_shape.then_some(shape) })
    }
}

fn accepted(space: &JobSpace) -> String {
    match space.dimensions() {
        Some(2) => "a number of boards, or rows x columns as in 4x8".to_owned(),
        Some(1) => "a number of boards".to_owned(),
        Some(n) => format!("a number of boards, or up to {n} sides as in 4x8x2"),
        None => "a number of boards, or sides as in 4x8, whose product counts".to_owned(),
    }
}

impl Jobs {
    /// Reads one job from each line, a number of boards or the sides of a shape, `RxC`; or one entry of a distribution
    /// from each line, `SHARE% BOARDS`. Text after a `#` is a comment.
    ///
    /// # Errors
    /// Returns an error if a line is invalid, a job is larger than the machine, there are no jobs, or a distribution
    /// does not end at 100 %.
    pub fn parse(text: &str, origin: &str, machine: &str, space: &JobSpace) -> Result<Self, MachineError> {
        let mut jobs = Vec::new();
        let mut sizes = Sizes(Vec::new());
        for (line, whole) in (1..).zip(text.lines()) {
            let said = whole.split('#').next().unwrap_or_default().trim();
            if said.is_empty() {
                continue;
            }
            if said.contains('%') || !sizes.0.is_empty() {
                let refused = |reason: &str| MachineError::NoSize {
                    origin: origin.to_owned(),
                    line,
                    found: said.to_owned(),
                    reason: reason.to_owned(),
                };
                if !jobs.is_empty() {
                    return Err(refused("a file has jobs or sizes, not both"));
                }
                sizes.push(said).map_err(refused)?;
                continue;
            }
            let job = Job::parse(said, space.dimensions()).ok_or_else(|| MachineError::NoJob {
                origin: origin.to_owned(),
                line,
                found: said.to_owned(),
                accepted: accepted(space),
            })?;
            if !space.fits(&job) {
                return Err(MachineError::JobTooLarge {
                    origin: format!("{origin}, line {line}"),
                    job: said.to_owned(),
                    machine: machine.to_owned(),
                    boards: sides(&space.count),
                });
            }
            jobs.push(job);
        }
        if let Some(&(share, _)) = sizes.0.last() {
            let share = 100.0 * share;
            // 100 % may be written as `100`, `100.0` and so on.
            return if share >= 100.0 {
                Ok(Self::Drawn(sizes))
            } else {
                Err(MachineError::SharesEnd { origin: origin.to_owned(), share: share.to_string() })
            };
        }
        if jobs.is_empty() {
            return Err(MachineError::NoJobs { origin: origin.to_owned(), accepted: accepted(space) });
        }
        Ok(Self::List(jobs))
    }
}
