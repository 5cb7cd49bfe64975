//! The end of a run: its results, or the list of stuck tasks.

use unisono_base::{TaskId, narrow};
use unisono_cost::endpoint::Prices;
use unisono_lower::tasks::Kind;

use super::{Run, STUCK_KEPT, SimError, Stuck, carrier::Carrier, engine::Engine};

impl<P: Prices, C: Carrier> Engine<'_, P, C> {
    pub(super) fn finish(self) -> Result<(Run, C), SimError> {
        if let Some(error) = self.carrier.jam() {
            return Err(error);
        }
        let count = self.graph.task_count() as u64 - self.done;
        if count > 0 {
            return Err(SimError::Deadlock { count, stuck: self.stuck() });
        }
        Ok(self.results())
    }

    /// Returns the results, which are complete only if all tasks are done.
    pub(super) fn results(self) -> (Run, C) {
        let cpus = self.graph.cpus() as usize;
        let finish: Vec<u64> = match self.clocks_each {
            0 => vec![0; self.graph.rank_count() as usize],
            each => self.clocks.chunks(each).map(|c| c[..cpus].iter().copied().max().unwrap_or(0)).collect(),
        };
        let [sends, receives, calcs, reduces] = self.counts;
        let run = Run {
            makespan: finish.iter().copied().max().unwrap_or(0),
            finish,
            events: self.graph.task_count() as u64 + sends,
            sends,
            receives,
            calcs,
            reduces,
            left_over: self.left_over,
            trace: self.trace,
            watched: self.watched,
            sent: self.sent,
        };
        (run, self.carrier)
    }

    /// Returns at most [`STUCK_KEPT`] stuck tasks. Tasks that wait for another rank come first, because all other stuck
    /// tasks wait for them.
    fn stuck(&self) -> Vec<Stuck> {
        let all = || (0..narrow::<u32>(self.links.len())).filter(|&id| !self.links[id as usize].is_done());
        let free = |id: &u32| self.links[*id as usize].is_free();
        all().filter(free).chain(all().filter(|id| !free(id))).take(STUCK_KEPT).map(|id| self.describe(id)).collect()
    }

    fn describe(&self, id: u32) -> Stuck {
        let (rank, task) = (self.links[id as usize].owner, self.graph.task(TaskId(id)));
        let why = match (self.links[id as usize].pending(), task.kind) {
            (0, Kind::Send) => "is sent and not received".to_owned(),
            (0, _) => "gets no message".to_owned(),
            (1, _) => "waits for 1 other task".to_owned(),
            (n, _) => format!("waits for {n} other tasks"),
        };
        Stuck { rank, index: id - self.graph.tasks(rank).start, task, why }
    }
}
