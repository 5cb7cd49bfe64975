//! Programs that the target cannot express are refused with the value found and the limit.

use crate::{common, interpreter};

use common::*;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::wafer::{End, PeProgram, Port, Position, Step, WaferProgram};
use unisono_machine::Grid;

/// Returns a program of one PE.
fn one(pe: PeProgram) -> WaferProgram {
    program(Kind::Allreduce, Grid::new(1, 1), 64, vec![pe])
}

fn with_step(step: Step) -> WaferProgram {
    one(PeProgram {
        routes: (0..3).map(|c| route(c, &[at(Port::East, &[Port::Ramp])])).collect(),
        threads: vec![vec![step]],
        ..PeProgram::default()
    })
}

/// Emits an operation and checks the rules of the language. The project is not run, because no PE sends the data that
/// the operation receives.
fn loads(step: Step) {
    let program = with_step(step);
    interpreter::Wafer::load(&emit(&program), &inputs(&program.collective));
}

fn with_positions(positions: &[Position]) -> WaferProgram {
    one(PeProgram { routes: vec![route(0, positions)], ..PeProgram::default() })
}

fn check(program: &WaferProgram, words: &str) {
    let reason = refusal(program);
    assert!(reason.contains(words), "`{reason}` does not say `{words}`");
    assert!(reason.starts_with("csl cannot express this schedule: "));
}

#[test]
fn the_grid() {
    let pes = vec![PeProgram::default(); 751];
    let wide = program(Kind::Allreduce, Grid::new(1, 751), 4, pes);
    check(&wide, "751 columns and 1 rows; beside the host link 750 columns and 994 rows");
    let short = program(Kind::Allreduce, Grid::new(1, 3), 4, vec![PeProgram::default()]);
    check(&short, "has 3 PEs, the program 1");
}

#[test]
fn datatypes_and_operators() {
    let typed = |operator, dtype| {
        let c = Collective::new(Kind::Allreduce, 1, 64, 0, operator, dtype).unwrap();
        let add = step(64, &[End::In(0), End::Out(0)], End::Out(0));
        let pe = PeProgram { threads: vec![vec![add]], ..PeProgram::default() };
        WaferProgram::assemble(Grid::new(1, 1), c, vec![], vec![pe])
    };
    check(&typed(Operator::Sum, Dtype::F64), "datatype f64");
    check(&typed(Operator::Ordered, Dtype::I64), "datatype i64");
    let mapped = [
        (Operator::Sum, Dtype::I32, "a + b"),
        (Operator::Xor, Dtype::I32, "a ^ b"),
        (Operator::Min, Dtype::F32, "b < a"),
    ];
    for (operator, dtype, function) in mapped {
        let files = sound(&typed(operator, dtype));
        assert!(text(&files, "operator.csl").contains(function));
        let call = "@map(operator.combine, input_0_8_moving_0_0, output_0_8_moving_0_0, output_0_8_moving_0_0);";
        assert!(text(&files, "pe_0.csl").contains(call), "{}", text(&files, "pe_0.csl"));
    }
    for (operator, builtin) in [(Operator::Max, "@fmaxs"), (Operator::Prod, "@fmuls")] {
        let files = sound(&typed(operator, Dtype::F32));
        assert!(text(&files, "pe_0.csl").contains(builtin));
    }
}

#[test]
fn moving_integers_is_emitted() {
    let c = Collective::new(Kind::Allreduce, 1, 64, 0, Operator::Sum, Dtype::I32).unwrap();
    let pe = PeProgram { threads: vec![vec![step(64, &[End::In(0)], End::Out(0))]], ..PeProgram::default() };
    let files = sound(&WaferProgram::assemble(Grid::new(1, 1), c, vec![], vec![pe]));
    assert!(text(&files, "pe_0.csl").contains("@mov32(output_0_64, input_0_64);"));
}

#[test]
fn colors() {
    let routed = |n: u8| {
        one(PeProgram {
            routes: (0..n).map(|c| route(c, &[at(Port::East, &[Port::Ramp])])).collect(),
            ..PeProgram::default()
        })
    };
    check(&routed(21), "21 colors in use; a program for Cerebras SDK 1.0 and the WSE-2 has 20");
    let files = emit(&routed(20));
    let layout = text(&files, "layout.csl");
    assert!(layout.contains("const color_8: color = @get_color(9);"), "8 starts functions");
    assert!(!layout.contains("color_20"));
}

#[test]
fn switch_positions() {
    let (ramp, east, west, north) = (Port::Ramp, Port::East, Port::West, Port::North);
    check(&with_positions(&[at(ramp, &[west]), at(east, &[north])]), "position 1 of color 0 changes both");
    check(&with_positions(&[at(ramp, &[west]), at(ramp, &[west, north])]), "switches to 2 directions");
    let two = Position { rx: [east, west].into_iter().collect(), tx: [ramp].into_iter().collect() };
    check(&with_positions(&[two]), "accepts from 2 ports");
    check(&with_positions(&[at(east, &[])]), "leads nowhere");
    check(&with_positions(&[at(east, &[east])]), "back to where they came from");
    let doubled = one(PeProgram { routes: vec![route(0, &[at(east, &[ramp])]); 2], ..PeProgram::default() });
    check(&doubled, "a color has one route");
}

#[test]
fn operations() {
    let fabric = End::Fabric;
    let keeping = |len, more: &[End]| {
        let mut many = step(len, &[fabric(0)], End::Out(0));
        many.2.extend(more);
        many
    };
    check(&with_step(keeping(4, &[fabric(1)])), "keeps and sends each element at once");
    check(&with_step(keeping(4, &[End::Out(8)])), "2 sinks; a vector operation has one destination");
    check(&with_step(keeping(4, &[fabric(1), fabric(2)])), "3 sinks; a vector operation has one destination");
    for (len, chunk) in [(1, 1), (4, 2), (5, 3), (9, 8), (64, 8)] {
        let mut kept = keeping(len, &[fabric(1)]);
        (kept.0.chunk, kept.0.sinks_in_turn) = (chunk, true);
        loads(kept.clone());
        kept.0.advance = Some(1);
        check(&with_step(kept), "an operation that keeps what it sends switches a color");
    }
    check(
        &with_step(step(4, &[fabric(0), fabric(1), End::In(0)], End::Out(0))),
        "an element-wise chunk: 3 sources, 2 of them from the fabric",
    );
    check(&with_step(step(4, &[End::In(0), End::In(4), End::In(8)], End::Out(0))), "3 sources");
    check(&with_step(step(4, &[], End::Out(0))), "0 sources");
    check(&with_step(step(4, &[fabric(0), fabric(0)], End::Out(0))), "both sources are color 0");
    let in_turns = |sources: &[End]| {
        let mut chunked = step(4, sources, End::Out(0));
        chunked.0.chunk = 4;
        chunked
    };
    loads(in_turns(&[fabric(0), fabric(1)]));
    loads(in_turns(&[End::In(0), fabric(0), fabric(1), fabric(2)]));
    check(&with_step(in_turns(&[fabric(0), fabric(1), End::In(0)])), "memory behind a fabric source");
    check(&with_step(in_turns(&[End::In(0), fabric(1), fabric(1)])), "both sources are color 1");
    let mut switching = in_turns(&[End::In(0), fabric(0), fabric(1)]);
    (switching.2, switching.0.advance) = (vec![fabric(2)], Some(2));
    check(&with_step(switching), "an operation in turns that switches a color");
    check(&with_step(step(0, &[End::In(0)], End::Out(0))), "0 elements");
    check(&with_step(step(65, &[End::In(0)], End::Out(0))), "input[0..65], but input has 64");
    check(&with_step(step(4, &[End::In(0)], End::Tmp(0))), "scratch[0..4], but scratch has 0");
    check(&with_step(step(4, &[End::In(0)], fabric(9))), "color 9, which has no route here");
    let mut paced = step(4, &[End::In(0)], fabric(0));
    paced.0.pace = 6;
    check(&with_step(paced), "paced at 6 cycles");
    let mut other = step(4, &[End::In(0)], fabric(0));
    other.0.control = Some(1);
    check(&with_step(other), "sends a control wavelet on color 1 but sends no data");
    let mut both = step(4, &[End::In(0)], fabric(0));
    both.0.control = Some(0);
    both.0.advance = Some(0);
    check(&with_step(both), "both advances its own router and sends a control wavelet");
}

#[test]
fn memory_is_a_hard_limit() {
    // 38 KiB are 9728 words, of which one is for control wavelets. 4863 words of input, 4863 of output and 2 of scratch
    // memory do not fit.
    let of = |elements, scratch| {
        let pe = PeProgram { scratch, ..PeProgram::default() };
        program(Kind::Allreduce, Grid::new(1, 1), elements, vec![pe])
    };
    sound(&of(4863, 1));
    check(&of(4863, 2), "38916 bytes; 38912 of the 49152 remain");
}

fn receiving(threads: Vec<Vec<Step>>, colors: u8, waits: Vec<(u32, u32)>) -> WaferProgram {
    one(PeProgram {
        routes: (0..colors).map(|c| route(c, &[at(Port::East, &[Port::Ramp])])).collect(),
        threads,
        waits,
        scratch: 0,
    })
}

#[test]
fn queues() {
    let receive = |c| step(4, &[End::Fabric(c)], End::Out(0));
    let send = |c| step(4, &[End::In(0)], End::Fabric(c));
    emit(&receiving(vec![(0..8).map(receive).collect()], 8, vec![]));
    check(&receiving(vec![(0..9).map(receive).collect()], 9, vec![]), "receives on 9 colors; it has 8 input queues");
    check(&receiving(vec![(0..7).map(send).collect()], 7, vec![]), "sends on 7 colors; it has 6 output queues");
    // Two threads may receive on the same color only if one waits for the other.
    let twice = |waits| receiving(vec![vec![receive(0)], vec![receive(0)]], 1, waits);
    check(&twice(vec![]), "two threads receive on one color");
    emit(&twice(vec![(1, 0)]));
    check(&twice(vec![(1, 0), (0, 1)]), "wait for each other in a circle");
    check(&receiving(vec![vec![send(0)], vec![send(0)]], 1, vec![]), "two threads send on one color");
    // Three senders use microthreads 2, 3 and 4; five receivers use 5, 6, 7, 1 and 0.
    let crowd = |receivers: u8| {
        let threads = (0..3).map(|c| vec![send(c)]).chain((3..3 + receivers).map(|c| vec![receive(c)]));
        receiving(threads.collect(), 3 + receivers, vec![])
    };
    emit(&crowd(5));
    check(&crowd(6), "no input queue is left whose microthread is not taken");
}

#[test]
fn tasks_need_ids_that_no_color_has() {
    // Of 23 ids, 20 are numbers of used colors.
    let send = |c| vec![step(4, &[End::In(0)], End::Fabric(c))];
    check(&receiving((0..4).map(send).collect(), 20, vec![]), "4 threads on a PE; beside 20 colors in use 3 ids");
    emit(&receiving((0..3).map(send).collect(), 20, vec![]));
}

#[test]
fn phases_have_plain_names() {
    let c = collective(Kind::Allreduce, Grid::new(1, 1), 4);
    let named =
        |name: &str| WaferProgram::assemble(Grid::new(1, 1), c, vec![name.to_owned()], vec![PeProgram::default()]);
    check(&named("a\nb"), "written on one line");
    check(&named(""), "written on one line");
    sound(&named("rows, then // columns"));
}
