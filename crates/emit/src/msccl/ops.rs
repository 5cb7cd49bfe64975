//! One `combine` as operations of the executor: receive, receive and reduce, send, copy, reduce.
//!
//! `combine(a + b + c) -> x, y` becomes a fold from the left into one place, its home: the first sink in memory, or
//! scratch memory where there is none; sends and copies of the home follow. The executor adds what it receives to what
//! it has in either order, which operators that commute do not see.

/// A buffer of a GPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Buffer {
    Input,
    Output,
    Scratch,
}

/// A place in a buffer, in chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub buffer: Buffer,
    pub chunk: u32,
}

/// Where an operand lies; `E` names a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End<E> {
    Memory(Place),
    Wire(E),
}

/// What a step does. `R` and `S`: the connection it receives from, and the one it sends to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op<E> {
    Send {
        from: Place,
        to: E,
    },
    Receive {
        from: E,
        into: Place,
        on: Option<E>,
    },
    /// What arrives and `with` together, into a place, on to a connection, or both.
    ReceiveReduce {
        from: E,
        with: Place,
        into: Option<Place>,
        on: Option<E>,
    },
    Copy {
        from: Place,
        into: Place,
    },
    Reduce {
        from: Place,
        into: Place,
    },
}

impl<E: Copy> Op<E> {
    pub fn receives(&self) -> Option<E> {
        match *self {
            Op::Receive { from, .. } | Op::ReceiveReduce { from, .. } => Some(from),
            _ => None,
        }
    }

    pub fn sends(&self) -> Option<E> {
        match *self {
            Op::Send { to, .. } => Some(to),
            Op::Receive { on, .. } | Op::ReceiveReduce { on, .. } => on,
            _ => None,
        }
    }

    /// Places read.
    pub fn reads(&self) -> impl Iterator<Item = Place> + use<E> {
        let places = match *self {
            Op::Send { from, .. } | Op::Copy { from, .. } => [Some(from), None],
            Op::ReceiveReduce { with, .. } => [Some(with), None],
            Op::Reduce { from, into } => [Some(from), Some(into)],
            Op::Receive { .. } => [None, None],
        };
        places.into_iter().flatten()
    }

    /// The place written.
    pub fn writes(&self) -> Option<Place> {
        match *self {
            Op::Send { .. } => None,
            Op::Receive { into, .. } | Op::Copy { into, .. } | Op::Reduce { into, .. } => Some(into),
            Op::ReceiveReduce { into, .. } => into,
        }
    }
}

/// The operations of `combine(sources) -> sinks`. `temporary` is scratch memory that nothing else uses; `joined` says
/// whether a fused step may receive from the one and send to the other.
pub fn lower<E: Copy + PartialEq>(
    sources: &[End<E>],
    sinks: &[End<E>],
    temporary: Place,
    joined: impl Fn(E, E) -> bool,
) -> Vec<Op<E>> {
    let places: Vec<Place> =
        sinks.iter().filter_map(|s| if let End::Memory(p) = s { Some(*p) } else { None }).collect();
    let wires: Vec<E> = sinks.iter().filter_map(|s| if let End::Wire(e) = s { Some(*e) } else { None }).collect();
    let mut ops = Vec::new();
    let home = match sources {
        [End::Memory(only)] => *only,
        // A sink that is still to be read as a later source must not hold partial results.
        _ => {
            places.iter().copied().find(|p| !sources.iter().skip(2).any(|s| *s == End::Memory(*p))).unwrap_or(temporary)
        }
    };
    match *sources {
        [] | [End::Memory(_)] => {}
        [End::Wire(from)] => ops.push(Op::Receive { from, into: home, on: None }),
        [first, second, ref rest @ ..] => {
            match (first, second) {
                (End::Memory(a), End::Memory(b)) if home == b => ops.push(Op::Reduce { from: a, into: home }),
                (End::Memory(a), End::Memory(b)) => {
                    if home != a {
                        ops.push(Op::Copy { from: a, into: home });
                    }
                    ops.push(Op::Reduce { from: b, into: home });
                }
                (End::Memory(with), End::Wire(from)) | (End::Wire(from), End::Memory(with)) => {
                    ops.push(Op::ReceiveReduce { from, with, into: Some(home), on: None });
                }
                (End::Wire(a), End::Wire(b)) => {
                    ops.push(Op::Receive { from: a, into: home, on: None });
                    ops.push(Op::ReceiveReduce { from: b, with: home, into: Some(home), on: None });
                }
            }
            for &source in rest {
                ops.push(match source {
                    End::Memory(from) => Op::Reduce { from, into: home },
                    End::Wire(from) => Op::ReceiveReduce { from, with: home, into: Some(home), on: None },
                });
            }
        }
    }
    let fused = ops.last().and_then(Op::receives).and_then(|from| wires.iter().position(|&to| joined(from, to)));
    if let (Some(at), Some(last)) = (fused, ops.last_mut()) {
        let alone = wires.len() == 1 && places.is_empty();
        match last {
            Op::Receive { on, .. } => *on = Some(wires[at]),
            Op::ReceiveReduce { into, on, .. } => {
                *on = Some(wires[at]);
                *into = if alone { None } else { *into };
            }
            _ => {}
        }
    }
    let rest = wires.iter().enumerate().filter(|&(n, _)| Some(n) != fused);
    ops.extend(rest.map(|(_, &to)| Op::Send { from: home, to }));
    ops.extend(places.iter().filter(|&&p| p != home).map(|&into| Op::Copy { from: home, into }));
    ops
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(buffer: Buffer, chunk: u32) -> Place {
        Place { buffer, chunk }
    }
    const I: Place = at(Buffer::Input, 0);
    const O: Place = at(Buffer::Output, 0);
    const T: Place = at(Buffer::Scratch, 9);

    #[test]
    fn every_step_type_of_the_format_comes_about() {
        let (i, o, r, s) = (End::Memory(I), End::Memory(O), End::Wire(1), End::Wire(2));
        let all = |sources: &[End<u8>], sinks: &[End<u8>]| lower(sources, sinks, T, |_, _| true);
        assert_eq!(all(&[i], &[s]), [Op::Send { from: I, to: 2 }]);
        assert_eq!(all(&[i], &[o]), [Op::Copy { from: I, into: O }]);
        assert_eq!(all(&[r], &[o]), [Op::Receive { from: 1, into: O, on: None }]);
        assert_eq!(all(&[r], &[o, s]), [Op::Receive { from: 1, into: O, on: Some(2) }]);
        assert_eq!(all(&[o, i], &[o]), [Op::Reduce { from: I, into: O }]);
        assert_eq!(all(&[i, o], &[o]), [Op::Reduce { from: I, into: O }]);
        assert_eq!(all(&[i, r], &[o]), [Op::ReceiveReduce { from: 1, with: I, into: Some(O), on: None }]);
        assert_eq!(all(&[r, i], &[s]), [Op::ReceiveReduce { from: 1, with: I, into: None, on: Some(2) }]);
        assert_eq!(all(&[r, i], &[s, o]), [Op::ReceiveReduce { from: 1, with: I, into: Some(O), on: Some(2) }]);
    }

    #[test]
    fn a_sink_that_is_still_to_be_read_is_no_home() {
        let (i, o) = (End::Memory(I), End::Memory(O));
        let ops = lower::<u8>(&[i, End::Memory(at(Buffer::Input, 4)), o], &[o], T, |_, _| false);
        let b = at(Buffer::Input, 4);
        assert_eq!(
            ops,
            [
                Op::Copy { from: I, into: T },
                Op::Reduce { from: b, into: T },
                Op::Reduce { from: O, into: T },
                Op::Copy { from: T, into: O }
            ]
        );
    }

    #[test]
    fn what_is_not_joined_goes_through_memory() {
        let ops = lower(&[End::Wire(1), End::Memory(I)], &[End::Wire(2), End::Wire(3)], T, |_, to| to == 3);
        let first = Op::ReceiveReduce { from: 1, with: I, into: Some(T), on: Some(3) };
        assert_eq!(ops, [first, Op::Send { from: T, to: 2 }]);
    }
}
