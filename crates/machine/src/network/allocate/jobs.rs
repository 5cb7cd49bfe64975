//! What is to be placed: jobs of a file, or drawn from the sizes of a trace.

use unisono_base::rounded;

use super::super::Boards;
use crate::MachineError;

/// A job: so many boards, in a shape if the user says one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    pub boards: u32,
    /// Rows and columns.
    pub shape: Option<[u32; 2]>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Jobs {
    /// Drawn until all healthy boards are asked for; the last one is clipped to what is left.
    Trace,
    List(Vec<Job>),
}

/// Job sizes of Alibaba's MLaaS trace (Weng and others, NSDI 2022) in boards, as far as the artifact's file is known:
/// this share of jobs has at most so many. Between two of them sizes grow geometrically with the share: that is ours.
pub const TRACE: &[(f64, u32)] = &[(0.7643, 1), (0.9074, 10), (0.9472, 20), (0.9852, 50), (0.9971, 100), (1.0, 1200)];

impl Job {
    /// The size of a job of the trace at a share from 0 to 1.
    pub fn at(share: f64) -> Self {
        let above = TRACE.iter().position(|&(at_most, _)| share <= at_most).unwrap_or(TRACE.len() - 1);
        let (to, largest) = TRACE[above];
        let Some(&(from, smallest)) = above.checked_sub(1).map(|below| &TRACE[below]) else {
            return Self { boards: largest, shape: None };
        };
        let (low, high) = (f64::from(smallest), f64::from(largest));
        let size = low * (high / low).powf((share - from) / (to - from));
        Self {
            boards: u32::try_from(rounded(size.ceil())).unwrap_or(largest).clamp(smallest + 1, largest),
            shape: None,
        }
    }
}

impl Jobs {
    /// One job a line, a number of boards or `RxC`; what follows a `#` is a comment.
    ///
    /// # Errors
    /// A line that is none, a job larger than the machine, no job at all.
    pub fn parse(text: &str, origin: &str, machine: &str, boards: &Boards) -> Result<Self, MachineError> {
        let mut jobs = Vec::new();
        let [rows, columns] = boards.count;
        for (line, whole) in (1..).zip(text.lines()) {
            let said = whole.split('#').next().unwrap_or_default().trim();
            if said.is_empty() {
                continue;
            }
            let wrong = || MachineError::NoJob { origin: origin.to_owned(), line, found: said.to_owned() };
            let side = |text: &str| text.trim().parse::<u32>().ok().filter(|&n| n > 0).ok_or_else(wrong);
            let (job, fits) = match said.split_once('x') {
                None => {
                    let size = side(said)?;
                    (Job { boards: size, shape: None }, u64::from(size) <= boards.all())
                }
                Some((r, c)) => {
                    let [r, c] = [side(r)?, side(c)?];
                    let fits = r <= rows && c <= columns || c <= rows && r <= columns;
                    (Job { boards: r.saturating_mul(c), shape: Some([r, c]) }, fits)
                }
            };
            if !fits {
                return Err(MachineError::JobTooLarge {
                    origin: format!("{origin}, line {line}"),
                    job: said.to_owned(),
                    machine: machine.to_owned(),
                    rows,
                    columns,
                });
            }
            jobs.push(job);
        }
        if jobs.is_empty() {
            return Err(MachineError::NoJobs { origin: origin.to_owned() });
        }
        Ok(Self::List(jobs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_trace() {
        for &(share, size) in TRACE {
            assert_eq!(Job::at(share).boards, size);
            assert!(share == 1.0 || Job::at(share + 1e-6).boards > size);
        }
        assert_eq!(Job::at(0.0).boards, 1);
    }

    #[test]
    fn files_of_jobs() {
        let boards = Boards { count: [4, 8], board: [2, 2], leaf: [4, 8] };
        let parse = |text: &str| Jobs::parse(text, "jobs.txt", "small", &boards);
        let list = [Job { boards: 3, shape: None }, Job { boards: 16, shape: Some([8, 2]) }];
        assert_eq!(parse("# two\n3\n\n8x2 # turned\n"), Ok(Jobs::List(list.to_vec())));
        for (text, why) in [
            ("", "jobs.txt holds no job"),
            ("4\nmany", "jobs.txt, line 2: 'many' is no job"),
            ("0", "line 1: '0'"),
            ("33", "jobs.txt, line 1: a job of 33 boards is larger than small, which has 4x8"),
            ("5x5", "a job of 5x5 boards"),
        ] {
            let said = parse(text).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
