//! The lowering of a `combine` to operations of the executor: receive, receive and reduce, send, copy, reduce.
//!
//! `combine(a + b + c) -> x, y` becomes a left fold into one memory place, called its home. The home is the first sink
//! in memory that is not the third or a later source; without such a sink, the home is in scratch memory. The home is
//! then sent and copied to the other sinks. A single source in memory is its own home. The executor may swap received
//! and own data in a sum, which does not change the results of commutative operators.

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Buffer {
    Input,
    Output,
    Scratch,
}

/// An offset in a buffer, in chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub buffer: Buffer,
    pub chunk: u32,
}

/// The location of an operand; `E` names a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End<E> {
    Memory(Place),
    Wire(E),
}

/// An operation of the executor; `E` names a connection.
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
    /// Reduces the received data and `with`, and stores the result, sends it on a connection, or both.
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

    /// Returns the places that the operation reads.
    pub fn reads(&self) -> impl Iterator<Item = Place> + use<E> {
        let places = match *self {
            Op::Send { from, .. } | Op::Copy { from, .. } => [Some(from), None],
            Op::ReceiveReduce { with, .. } => [Some(with), None],
            Op::Reduce { from, into } => [Some(from), Some(into)],
            Op::Receive { .. } => [None, None],
        };
        places.into_iter().flatten()
    }

    /// Returns the place that the operation writes, if any.
    pub fn writes(&self) -> Option<Place> {
        match *self {
            Op::Send { .. } => None,
            Op::Receive { into, .. } | Op::Copy { into, .. } | Op::Reduce { into, .. } => Some(into),
            Op::ReceiveReduce { into, .. } => into,
        }
    }
}

/// Returns the operations of `combine(sources) -> sinks`. `temporary` is scratch memory for this instruction alone.
/// `joined(a, b)` returns whether a fused step may receive from `a` and send on `b`.
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
        // A sink that is also a later source must not store partial results.
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
