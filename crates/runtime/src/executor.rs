//! The execution of a program: lanes of steps, which advance as their messages arrive.
//!
//! Receives are posted as soon as their destination is free, in the order of their lane. A lane that waits for a
//! message does not block other lanes; in [`Executor::run`], a rank with only one lane waits inside the transport.

use unisono_schedule::stored::{RankProgram, Wait};

use crate::{Blocks, Transport};

enum Message<R> {
    /// The message is not posted yet.
    Idle,
    Active(R),
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// An action was executed; others may be possible immediately.
    Moved,
    /// No step can run before a message ends. [`Executor::poll`] also returns this value if all steps ran but a send
    /// has not ended.
    Blocked,
    Finished,
}

struct LaneState {
    /// The index of the next step.
    step: u32,
    /// The index of the next receive to post.
    arrival: u32,
}

/// An executor of one program, for any number of calls.
pub struct Executor<R> {
    program: RankProgram,
    lanes: Vec<LaneState>,
    done: Vec<bool>,
    arrivals: Vec<Message<R>>,
    departures: Vec<Message<R>>,
}

impl<R> Executor<R> {
    pub fn new(program: RankProgram) -> Self {
        let idle = |count: usize| (0..count).map(|_| Message::Idle).collect();
        Self {
            lanes: Vec::with_capacity(program.lanes.len()),
            done: vec![false; program.steps.len()],
            arrivals: idle(program.arrivals.len()),
            departures: idle(program.departures.len()),
            program,
        }
    }

    pub fn program(&self) -> &RankProgram {
        &self.program
    }

    /// Resets the state before the polls of a call; [`Self::run`] does so itself.
    pub fn start(&mut self) {
        self.lanes.clear();
        let first = self.program.lanes.iter().map(|l| LaneState { step: l.steps.start, arrival: l.arrivals.start });
        self.lanes.extend(first);
        self.done.fill(false);
        self.arrivals.iter_mut().for_each(|m| *m = Message::Idle);
        self.departures.iter_mut().for_each(|m| *m = Message::Idle);
    }

    /// Runs a whole call.
    ///
    /// # Errors
    /// Returns the errors of the transport; the program then stops at this point, and [`Self::give_up`] ends its
    /// messages.
    pub fn run<T: Transport<Request = R>>(&mut self, blocks: &Blocks, transport: &mut T) -> Result<(), T::Error> {
        self.start();
        let wait = self.lanes.len() == 1;
        loop {
            match self.advance(blocks, transport, wait)? {
                Progress::Moved => {}
                Progress::Blocked => transport.idle()?,
                Progress::Finished => break,
            }
        }
        for message in &mut self.departures {
            message.has_ended(transport, true)?;
        }
        Ok(())
    }

    /// Cancels the pending receives after an error, so that no message is written to memory that the caller owns again.
    pub fn give_up<T: Transport<Request = R>>(&mut self, transport: &mut T) {
        for message in &mut self.arrivals {
            if let Message::Active(request) = message {
                transport.give_up(request);
                *message = Message::Ended;
            }
        }
    }

    /// Executes, lane by lane, the actions that are possible without waiting; after `Moved`, more may be possible.
    /// Returns `Finished` after all messages have ended.
    ///
    /// # Errors
    /// Returns the errors of the transport.
    pub fn poll<T: Transport<Request = R>>(
        &mut self,
        blocks: &Blocks,
        transport: &mut T,
    ) -> Result<Progress, T::Error> {
        let progress = self.advance(blocks, transport, false)?;
        if progress == Progress::Finished {
            for message in &mut self.departures {
                if !message.has_ended(transport, false)? {
                    return Ok(Progress::Blocked);
                }
            }
        }
        Ok(progress)
    }

    fn advance<T: Transport<Request = R>>(
        &mut self,
        blocks: &Blocks,
        transport: &mut T,
        wait: bool,
    ) -> Result<Progress, T::Error> {
        let (mut moved, mut finished) = (false, true);
        for lane in 0..self.lanes.len() {
            self.post(lane, blocks, transport)?;
            while self.step(lane, blocks, transport, wait)? {
                moved = true;
                self.post(lane, blocks, transport)?;
            }
            finished &= self.lanes[lane].step == self.program.lanes[lane].steps.end;
        }
        Ok(match (finished, moved) {
            (true, _) => Progress::Finished,
            (false, true) => Progress::Moved,
            (false, false) => Progress::Blocked,
        })
    }

    /// Posts the next receives of a lane, up to the first whose destination is not free.
    fn post<T: Transport<Request = R>>(
        &mut self,
        lane: usize,
        blocks: &Blocks,
        transport: &mut T,
    ) -> Result<(), T::Error> {
        let end = self.program.lanes[lane].arrivals.end;
        while self.lanes[lane].arrival < end {
            let number = self.lanes[lane].arrival as usize;
            let waits = self.program.arrivals[number].waits.clone();
            if !self.is_over(waits, transport, false)? {
                return Ok(());
            }
            let a = &self.program.arrivals[number];
            let into = blocks.slice(a.place, a.len, a.align);
            // Sender and receiver agree on the length, so both omit an empty message.
            self.arrivals[number] = match into.len {
                0 => Message::Ended,
                _ => Message::Active(transport.receive(a.peer, a.tag, into)?),
            };
            self.lanes[lane].arrival += 1;
        }
        Ok(())
    }

    /// Executes the next step of a lane if all its waits have ended. If `wait` is true, the function may block: the
    /// rank has a single lane, so it has nothing else to do, unless a receive is waiting for its destination to become
    /// free.
    fn step<T: Transport<Request = R>>(
        &mut self,
        lane: usize,
        blocks: &Blocks,
        transport: &mut T,
        wait: bool,
    ) -> Result<bool, T::Error> {
        let state = &self.lanes[lane];
        if state.step == self.program.lanes[lane].steps.end {
            return Ok(false);
        }
        let number = state.step as usize;
        let wait = wait && !self.is_post_pending(lane);
        let waits = self.program.steps[number].waits.clone();
        if !self.is_over(waits, transport, wait)? {
            return Ok(false);
        }
        for arrival in self.program.steps[number].arrivals.clone() {
            if !self.arrivals[arrival as usize].has_ended(transport, wait)? {
                return Ok(false);
            }
        }
        let s = &self.program.steps[number];
        if let Some(to) = s.to {
            let (a, to) = (blocks.slice(s.a, s.len, s.align), blocks.slice(to, s.len, s.align));
            match s.b {
                _ if a.len == 0 => {}
                Some(b) => transport.combine(a, blocks.slice(b, s.len, s.align), to)?,
                None => transport.copy(a, to),
            }
        }
        for departure in s.departures.clone() {
            let d = &self.program.departures[departure as usize];
            let from = blocks.slice(d.place, d.len, d.align);
            self.departures[departure as usize] = match from.len {
                0 => Message::Ended,
                _ => Message::Active(transport.send(d.peer, d.tag, from)?),
            };
        }
        self.done[number] = true;
        self.lanes[lane].step += 1;
        Ok(true)
    }

    /// Returns whether the next receive waits only for sends in progress. Such a receive may become possible while the
    /// lane waits for another message.
    fn is_post_pending(&self, lane: usize) -> bool {
        let next = self.lanes[lane].arrival;
        if next == self.program.lanes[lane].arrivals.end {
            return false;
        }
        let waits = self.program.arrivals[next as usize].waits.clone();
        self.program.waits[waits.start as usize..waits.end as usize].iter().all(|w| match *w {
            Wait::Step(step) => self.done[step as usize],
            Wait::Departure(departure) => !matches!(self.departures[departure as usize], Message::Idle),
        })
    }

    fn is_over<T: Transport<Request = R>>(
        &mut self,
        waits: std::ops::Range<u32>,
        transport: &mut T,
        wait: bool,
    ) -> Result<bool, T::Error> {
        for row in waits {
            let over = match self.program.waits[row as usize] {
                Wait::Step(step) => self.done[step as usize],
                Wait::Departure(departure) => self.departures[departure as usize].has_ended(transport, wait)?,
            };
            if !over {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<R> Message<R> {
    /// Returns whether the message has ended. A message whose request fails has ended too, because the message layer
    /// has freed the request.
    fn has_ended<T: Transport<Request = R>>(&mut self, transport: &mut T, wait: bool) -> Result<bool, T::Error> {
        let found = match self {
            Message::Idle => return Ok(false),
            Message::Ended => return Ok(true),
            Message::Active(request) if wait => transport.wait(request).map(|()| true),
            Message::Active(request) => transport.test(request),
        };
        if !matches!(found, Ok(false)) {
            *self = Message::Ended;
        }
        found
    }
}
