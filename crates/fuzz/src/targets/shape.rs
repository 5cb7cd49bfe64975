//! Words of the command line that the library reads: shapes, collectives, types, operators, methods, rules, heuristics.

use unisono_collective::{Dtype, Kind, Operator};
use unisono_discover::Rules;
use unisono_machine::{Machine, Shape, network::allocate::Heuristic};
use unisono_schedule::verify::Method;

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "shape",
    "reads a word as a shape, a collective, a type, an operator, a method, rules and a preset",
    run,
);

fn run(input: &[u8]) -> bool {
    let word = uses::text(input);
    let shape = word.parse::<Shape>();
    if let Ok(shape) = &shape {
        assert_eq!(shape.to_string().parse::<Shape>().as_ref(), Ok(shape), "a shape reads back");
        if let Ok(machine) = Machine::preset("wse2") {
            drop(machine.shape(Some(*shape)));
        }
    }
    let known = [
        word.parse::<Kind>().is_ok(),
        word.parse::<Dtype>().is_ok(),
        word.parse::<Operator>().is_ok(),
        word.parse::<Method>().is_ok(),
        word.parse::<Rules>().is_ok(),
        word.parse::<Heuristic>().is_ok(),
        Machine::preset(&word).is_ok(),
    ];
    shape.is_ok() || known.contains(&true)
}
