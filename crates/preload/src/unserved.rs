//! Calls of a communicator that no row of its plan serves, remembered by their arguments.
//!
//! A call equal to a remembered one is left to the library without being described again. Only calls with predefined
//! handles are remembered, because these keep their meaning while the program runs. Of the addresses, only null and
//! `MPI_IN_PLACE` are compared.

use std::sync::atomic::{AtomicU64, Ordering};

use unisono_mpi::{Constants, Library};

use crate::arguments::Arguments;

/// The largest number of remembered calls of a communicator.
const PLACES: usize = 16;
/// The number of words that identify a call: root, flags and collective; two counts; three handles.
const WORDS: usize = 6;

/// The remembered calls of a communicator. MPI permits one thread at a time to call collectives on a communicator. If
/// two threads do so anyway, the words of two calls may be mixed, which is harmless, because no row serves either of
/// them.
#[derive(Default)]
pub struct UnservedCalls {
    calls: [UnservedCall; PLACES],
}

#[derive(Default)]
struct UnservedCall {
    words: [AtomicU64; WORDS],
    /// The length of the call for notes ([`unisono_mpi::noted_length`]).
    length: AtomicU64,
}

/// Returns the words that decide whether a row serves a call. The first word is never 0.
#[inline]
fn words(arguments: &Arguments, constants: &Constants) -> [u64; WORDS] {
    let Arguments { send, recv, .. } = *arguments;
    let flags = [true, send == 0, recv == 0, send == constants.in_place, recv == constants.in_place];
    let flags = flags.iter().fold(0, |bits, &flag| bits << 1 | u64::from(flag));
    [
        u64::from(arguments.root.cast_unsigned()) << 32 | flags << 16 | arguments.kind as u64,
        arguments.send_count.cast_unsigned(),
        arguments.send_type as u64,
        arguments.recv_count.cast_unsigned(),
        arguments.recv_type as u64,
        arguments.op as u64,
    ]
}

#[inline]
fn place(words: &[u64; WORDS]) -> usize {
    let mixed = (words[0] ^ words[3] << 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize % PLACES
}

impl UnservedCalls {
    /// Returns the noted length of a call, if an equal call is remembered.
    #[inline]
    pub fn length(&self, arguments: &Arguments, constants: &Constants) -> Option<u64> {
        let words = words(arguments, constants);
        let call = &self.calls[place(&words)];
        let differ = (0..WORDS).fold(0, |bits, k| bits | (words[k] ^ call.words[k].load(Ordering::Relaxed)));
        (differ == 0).then(|| call.length.load(Ordering::Relaxed))
    }

    /// Remembers a call that no row serves, if its handles are predefined.
    pub fn remember(&self, arguments: &Arguments, library: &Library, length: u64) {
        let c = &library.constants;
        let is_element = |datatype: usize| datatype == 0 || c.element(c.handle(datatype)).is_some();
        let is_plain = is_element(arguments.send_type) && is_element(arguments.recv_type);
        let names_operator = arguments.op == 0 || c.op(c.handle(arguments.op)).is_some();
        if arguments.vector.is_some() || !is_plain || !names_operator {
            return;
        }
        let words = words(arguments, c);
        let call = &self.calls[place(&words)];
        call.length.store(length, Ordering::Relaxed);
        for (word, value) in call.words.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }
}
