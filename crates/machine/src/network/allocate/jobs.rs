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
    /// Drawn from sizes until all healthy boards are asked for; the last one is clipped to what is left.
    Drawn(Sizes),
    List(Vec<Job>),
}

/// The sizes of jobs: this share of jobs has at most so many boards. Both ascend, and the last share is 1.
#[derive(Clone, PartialEq, Debug)]
pub struct Sizes(Vec<(f64, u32)>);

/// Job sizes of Alibaba's MLaaS trace (Weng and others, NSDI 2022) in boards, as far as the artifact's file is known:
/// this share of jobs has at most so many.
const TRACE: &[(f64, u32)] = &[(0.7643, 1), (0.9074, 10), (0.9472, 20), (0.9852, 50), (0.9971, 100), (1.0, 1200)];

impl Sizes {
    pub fn trace() -> Self {
        Self(TRACE.to_vec())
    }

    /// The size of a job at a share from 0 to 1. Between two shares sizes grow geometrically: that is this project's.
    /// Jobs up to the first share have the first size.
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

    /// The sizes that a line adds, `SHARE% BOARDS`.
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

impl Jobs {
    /// One job a line, a number of boards or `RxC`; or one size of a distribution a line, `SHARE% BOARDS`. What follows
    /// a `#` is a comment.
    ///
    /// # Errors
    /// A line that is none, a job larger than the machine, no job at all, a distribution that does not end at 100 %.
    pub fn parse(text: &str, origin: &str, machine: &str, boards: &Boards) -> Result<Self, MachineError> {
        let mut jobs = Vec::new();
        let mut sizes = Sizes(Vec::new());
        let [rows, columns] = boards.count;
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
        if let Some(&(share, _)) = sizes.0.last() {
            let share = 100.0 * share;
            // A share of 100 % is written in several ways.
            return if share >= 100.0 {
                Ok(Self::Drawn(sizes))
            } else {
                Err(MachineError::SharesEnd { origin: origin.to_owned(), share: share.to_string() })
            };
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
        let sizes = Sizes::trace();
        for &(share, size) in TRACE {
            assert_eq!(sizes.at(share).boards, size);
            assert!(share == 1.0 || sizes.at(share + 1e-6).boards > size);
        }
        assert_eq!(sizes.at(0.0).boards, 1);
    }

    /// A distribution of the user's, with quantiles of equal size.
    #[test]
    fn files_of_sizes() {
        let boards = Boards { count: [4, 8], board: [2, 2], leaf: [4, 8], adjacent: false };
        let parse = |text: &str| Jobs::parse(text, "sizes.txt", "small", &boards);
        let Ok(Jobs::Drawn(sizes)) = parse("# of a trace\n50% 1\n51 % 1\n90% 4 # boards\n100% 4\n") else { panic!() };
        let sizes = |share: f64| sizes.at(share).boards;
        assert_eq!([0.0, 0.5, 0.505, 0.51, 0.52, 0.9, 0.95, 1.0].map(sizes), [1, 1, 1, 1, 2, 4, 4, 4]);
        let trace: String = TRACE.iter().map(|(share, size)| format!("{}% {size}\n", 100.0 * share)).collect();
        let Ok(Jobs::Drawn(same)) = parse(&trace) else { panic!("the trace is a file too") };
        for k in 0..=1000 {
            assert_eq!(same.at(f64::from(k) / 1000.0), Sizes::trace().at(f64::from(k) / 1000.0));
        }
        for (text, why) in [
            ("50% 1\n4", "sizes.txt, line 2: '4' is no size of jobs: a size is SHARE% BOARDS, such as 76.43% 1"),
            ("4\n50% 1", "line 2: '50% 1' is no size of jobs: a file has jobs or sizes, not both"),
            ("50% 0", "boards at least 1"),
            ("0% 1", "shares are above 0 and at most 100"),
            ("101% 1", "shares are above 0 and at most 100"),
            ("nan% 1", "shares are above 0 and at most 100"),
            ("50% 2\n50% 3", "shares rise from line to line, and boards do not fall"),
            ("50% 2\n60% 1", "shares rise from line to line, and boards do not fall"),
            ("50% 2", "sizes.txt ends at 50 % of the jobs; the last line of sizes is that of 100%"),
        ] {
            let said = parse(text).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn files_of_jobs() {
        let boards = Boards { count: [4, 8], board: [2, 2], leaf: [4, 8], adjacent: false };
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
