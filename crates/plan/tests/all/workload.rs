//! Workloads: their files, the places of their ranks, and timelines derived by hand.

mod graph {
    mod reported;
}

use unisono_machine::{Machine, Shape};
use unisono_plan::{
    Part,
    workload::{
        Communication, Iteration, WORKLOADS, Workload,
        graph::{Level, ProgramPrices, Step},
        groups, places,
    },
};

/// Returns one iteration by the model.
fn iteration(workload: &Workload, machine: &Machine, part: &Part, overlap: bool) -> Iteration {
    let graph = workload.program();
    let prices = ProgramPrices::new(&graph, machine, part).unwrap();
    Step { prices, accelerator: None, overlap, level: Level::Model }.report().unwrap().iteration
}

fn workload(text: &str) -> Workload {
    let head = "name = \"w\"\n[[dimensions]]\nname = \"d\"\nsize = 4\nshape = [2, 2]\n";
    Workload::from_toml(&format!("{head}{text}"), "w.toml").unwrap()
}

/// The compute time of an iteration in microseconds ("HammingMesh", artifact, which states 108 ms and 2.90 ms).
#[test]
fn presets_read_and_compute_so_long() {
    let compute: Vec<(&str, u32, f64)> = WORKLOADS
        .iter()
        .map(|preset| {
            let w = Workload::preset(preset.name).unwrap();
            assert_eq!(w.name, preset.name);
            (preset.name, w.accelerators(), (w.compute_seconds() * 1e6).round())
        })
        .collect();
    let expected = [
        ("cosmoflow", 1024, 93_610.0),
        // The motif executes 18,067 us forward and 26,270 us backward.
        ("cosmoflow-artifact", 1024, 44_337.0),
        ("dlrm", 128, 2_901.0),
        ("dlrm-artifact", 128, 2_901.0),
        ("dlrm-artifact-rings", 128, 2_901.0),
        ("gpt-3", 384, 47_745.0),
        // This is the time of stages that run the backward pass.
        ("gpt-3-artifact", 384, 31_830.0),
        ("gpt-3-moe", 1536, 74_843.0),
        ("gpt-3-moe-artifact", 1536, 49_896.0),
        ("resnet-152", 1024, 108_000.0),
        ("resnet-152-artifact", 1024, 108_000.0),
    ];
    assert_eq!(compute, expected);
}

#[test]
fn a_timeline_by_hand() {
    let step = |name: &str, us: u32, more: &str| format!("[[steps]]\nname = \"{name}\"\ncompute_us = {us}\n{more}\n");
    let reduce = |blocking: bool| {
        format!(
            "[[steps.communication]]\ncollective = \"allreduce\"\nelements = 10\nblocking = {blocking}\n\
             algorithm = \"recursive-doubling\"\n"
        )
    };
    // Each communication takes 30 us, in two rounds.
    let machine = "name = 'm'\nkind = 'endpoint'\nmodel = 'hockney'\nalpha_ns = 15000\nbeta_ns_per_byte = 0\n\
                   gamma_ns_per_byte = 0\n";
    let machine = Machine::from_toml(machine, "m").unwrap();
    let run = |text: &str, overlap: bool| {
        let (asked, part) = (workload(text), Part::Shape(Shape::line(4)));
        let done = iteration(&asked, &machine, &part, overlap);
        let names = |phases: &[&str]| phases.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(done.phases.iter().map(|phase| phase.name.clone()).collect::<Vec<_>>(), names(&["a", "b", "c"]));
        [done.seconds, done.compute_seconds, done.communication_seconds, done.exposed_seconds]
            .map(|s| (s * 1e6).round())
    };
    let free = step("a", 10, &reduce(false)) + &step("b", 20, &reduce(false)) + &step("c", 50, "");
    // In us: a 0..10, b 10..30, c 30..80; communication 10..40 and 40..70.
    assert_eq!(run(&free, true), [80.0, 80.0, 60.0, 0.0]);
    assert_eq!(run(&free, false), [140.0, 80.0, 60.0, 60.0]);
    let held = step("a", 10, &reduce(true)) + &step("b", 20, &reduce(false)) + &step("c", 5, "");
    // In us: b 40..60, c 60..65, communication 10..40 and 60..90.
    assert_eq!(run(&held, true), [90.0, 35.0, 60.0, 55.0]);
    let waits = step("a", 10, &reduce(false)) + &step("b", 20, "") + &step("c", 5, "waits = true");
    // In us: b 10..30, c 40..45.
    assert_eq!(run(&waits, true), [45.0, 35.0, 30.0, 10.0]);
}

/// Returns a step of every second stage, which reduces 1,000 floats among its shards.
fn stage(name: &str, us: u32, first: u32) -> String {
    format!(
        "[[steps]]\nname = \"{name}\"\ncompute_us = {us}\nonly = {{ dimension = \"stage\", first = {first}, every = 2 }}\n\
         [[steps.communication]]\ncollective = \"allreduce\"\nelements = 1000\nover = [\"shard\"]\n"
    )
}

/// Returns four stages of two shards. Stages 0 and 2 compute for 10 us while 1 and 3 compute for `odd_us`; then
/// neighbors swap 4 MB.
fn stages(odd_us: u32) -> Workload {
    let head = "name = \"w\"\n[[dimensions]]\nname = \"stage\"\nsize = 4\n[[dimensions]]\nname = \"shard\"\nsize = 2\n";
    let swap = "[[steps]]\nname = \"swap\"\n[[steps.communication]]\ncollective = \"exchange\"\nelements = 1000000\n\
                over = [\"stage\"]\npartners = [1]\n";
    Workload::from_toml(&[head, &stage("even", 10, 0), &stage("odd", odd_us, 1), swap].concat(), "w.toml").unwrap()
}

#[test]
fn ranks_of_other_steps_are_other_classes() {
    let w = stages(30);
    assert!(w.is_concurrent());
    assert!((w.compute_seconds() - 30e-6).abs() < 1e-12);
    let program = w.program();
    let ranks: Vec<&[u32]> = program.classes.iter().map(|class| &class.ranks[..]).collect();
    assert_eq!(ranks, [&[0, 1, 4, 5][..], &[2, 3, 6, 7]]);
    let names = |class: usize| -> Vec<&str> { program.classes[class].nodes.iter().map(|n| n.name.as_str()).collect() };
    assert_eq!(names(0), ["even", "even", "swap", "swap"]);
    assert_eq!(names(1), ["odd", "odd", "swap", "swap"]);
    assert_eq!(program.groups[0].iter().collect::<Vec<_>>(), [[0, 1], [4, 5]]);
    assert_eq!(program.groups[1].iter().collect::<Vec<_>>(), [[2, 3], [6, 7]]);
}

/// At all levels, the time is the sum of the longer stage with its allreduce and of the messages in both directions.
#[test]
fn concurrent_stages_take_as_long_as_the_longer_one() {
    let torus = Machine::preset("torus2d-small").unwrap();
    let part = Part::Places(places(&stages(30), "torus", &[32, 32]).unwrap());
    for level in ["model", "flow", "packet"] {
        let graph = stages(300).program();
        let prices = ProgramPrices::new(&graph, &torus, &part).unwrap();
        let named = Level::named(level, "w").unwrap();
        let seconds =
            Step { prices, accelerator: None, overlap: true, level: named }.report().unwrap().iteration.seconds;
        // Shards are neighbors, so both messages of a pair of stages share one link of each of four planes, at 50 GB/s
        // each. Reducing 4 KB takes a few microseconds more.
        let least = 300e-6 + 2.0 * 4e6 / 200e9;
        assert!(seconds > least && seconds < least + 3e-6, "{level}: {seconds}");
    }
}

#[test]
fn groups_and_places() {
    let text = "name = \"w\"\n[[dimensions]]\nname = \"data\"\nsize = 6\nshape = [3, 2]\n[[dimensions]]\nname = \"operator\"\nsize = 4\nshape = [2, 2]\n\
                [[steps]]\nname = \"s\"\n";
    let w = Workload::from_toml(text, "w.toml").unwrap();
    let over = |names: &[&str]| -> Communication {
        let names: Vec<_> = names.iter().map(|n| format!("\"{n}\"")).collect();
        let text = format!(
            "name = \"w\"\n[[dimensions]]\nname = \"data\"\nsize = 6\n[[dimensions]]\nname = \"operator\"\nsize = 4\n[[steps]]\nname = \"s\"\n\
             [[steps.communication]]\ncollective = \"allreduce\"\nelements = 1\nover = [{}]\n",
            names.join(", ")
        );
        Workload::from_toml(&text, "w.toml").unwrap().steps[0].communication[0].clone()
    };
    assert_eq!(groups(&w, &over(&["operator"])).of(9), Some((&[8, 9, 10, 11][..], 1)));
    assert_eq!(groups(&w, &over(&["data"])).of(9), Some((&[1, 5, 9, 13, 17, 21][..], 2)));
    assert_eq!(groups(&w, &over(&[])).of(9), Some((&(0..24).collect::<Vec<_>>()[..], 9)));
    // The workload takes 6 x 4 accelerators in 2x2 blocks; on a network of 4 rows it is turned by 90 degrees.
    let upright = places(&w, "m", &[8, 4]).unwrap();
    assert_eq!(upright[..5], [0, 1, 4, 5, 2]);
    let turned = places(&w, "m", &[4, 8]).unwrap();
    assert_eq!(turned[..5], [0, 8, 1, 9, 16]);
    let mut distinct = turned.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 24);
    assert_eq!(places(&w, "m", &[30]).unwrap(), (0..24).collect::<Vec<_>>());
    let refused = |extents: &[u32]| places(&w, "m", extents).unwrap_err().to_string();
    assert_eq!(refused(&[23]), "w needs 24 accelerators, and m has 23");
    assert!(refused(&[3, 100]).contains("which do not fit on the 3x100 of m"));
}

/// Returns a workload whose model takes a rectangle, with one copy in its file.
fn one_copy([rows, cols]: [u32; 2]) -> Workload {
    let size = rows * cols;
    let text = format!(
        "name = \"w\"\n[[dimensions]]\nname = \"data\"\nsize = 1\ndata_parallel = true\n[[dimensions]]\nname = \"model\"\n\
         size = {size}\nshape = [{rows}, {cols}]\n[[steps]]\nname = \"s\"\n[[steps.communication]]\ncollective = \"allreduce\"\n\
         elements = 1000\nover = [\"data\"]\n"
    );
    Workload::from_toml(&text, "w.toml").unwrap()
}

/// All copies fit, and no grid of more copies fits, upright or turned.
#[test]
fn copies_fill_a_machine() {
    for model in [[1, 1], [2, 2], [1, 3], [4, 2], [3, 5]] {
        let w = one_copy(model);
        assert_eq!(w.copies(), Some(1));
        assert_eq!(w.program().classes[0].nodes.len(), 1, "one copy has nothing to reduce");
        for (rows, cols) in (1..9).flat_map(|rows| (1..9).map(move |cols| (rows, cols))) {
            let [upright, turned] = [[rows, cols], [cols, rows]].map(|[r, c]| (r / model[0]) * (c / model[1]));
            let most = upright.max(turned);
            let filled = w.filling("m", &[rows, cols]);
            if most == 0 {
                assert!(filled.unwrap_err().to_string().starts_with("w "));
                continue;
            }
            let filled = filled.unwrap();
            assert_eq!(filled.copies(), Some(most), "{model:?} on {rows}x{cols}");
            let mut placed = places(&filled, "m", &[rows, cols]).unwrap();
            placed.sort_unstable();
            placed.dedup();
            assert_eq!(placed.len() as u32, most * model[0] * model[1]);
            assert_eq!(filled.program().classes[0].nodes.len(), if most == 1 { 1 } else { 2 });
        }
        let ranks = model[0] * model[1];
        assert_eq!(w.filling("m", &[100]).unwrap().copies(), Some(100 / ranks));
        assert_eq!(w.filling("m", &[4, 5, 6]).unwrap().copies(), Some(120 / ranks));
    }
    let fixed = stages(30).filling("m", &[64]).unwrap_err().to_string();
    assert!(fixed.starts_with("w cannot fill m: none of its dimensions has data_parallel = true"), "{fixed}");
}

#[test]
fn mistakes_are_named() {
    let head = "name = \"w\"\n[[dimensions]]\nname = \"d\"\nsize = 4\n";
    let step = "[[steps]]\nname = \"s\"\n[[steps.communication]]\nelements = 1\n";
    let cases = [
        (
            format!(
                "{head}data_parallel = true\n[[dimensions]]\nname = \"e\"\nsize = 1\ndata_parallel = true\n[[steps]]\nname = \"s\"\n"
            ),
            "dimensions 'd' and 'e' are both data_parallel",
        ),
        (format!("{head}shape = [2, 3]\n[[steps]]\nname = \"s\"\n"), "dimension 'd' of size 4 has shape 2x3"),
        (format!("{head}[[steps]]\nname = \"s\"\ncompute_us = -1\n"), "compute_us -1; accepted is 0 to a year"),
        (
            format!("{head}{}collective = \"send\"\n", step.replace("elements = 1", "elements = 9223372036854775807")),
            "step 's' has 9223372036854775807 elements; accepted are at most 2^48",
        ),
        (format!("{head}{step}collective = \"sum\"\n"), "'sum' is not a communication; accepted are allgather,"),
        (format!("{head}{step}collective = \"send\"\nover = [\"x\"]\n"), "over 'x'; dimensions are d"),
        (format!("{head}{step}collective = \"exchange\"\npartners = [4]\n"), "partner 4 in groups of 4 ranks"),
        (format!("{head}{step}collective = \"exchange\"\n"), "an exchange has partners"),
        (format!("{head}steps = []\n"), "duplicate key"),
        (
            format!("{head}[[steps]]\nname = \"s\"\nonly = {{ dimension = \"x\" }}\n"),
            "only for ranks of dimension 'x'; dimensions are d",
        ),
        (
            format!("{head}[[steps]]\nname = \"s\"\nonly = {{ dimension = \"d\", first = 4 }}\n"),
            "accepted are a first below its size of 4, and every of at least 1",
        ),
        (
            format!("{head}[[steps]]\nname = \"s\"\nonly = {{ dimension = \"d\", every = 0 }}\n"),
            "ranks 0, 0 + 0, ... of dimension 'd'",
        ),
        (
            format!(
                "{head}[[steps]]\nname = \"s\"\nonly = {{ dimension = \"d\" }}\n\
                 [[steps.communication]]\nelements = 1\ncollective = \"allreduce\"\n"
            ),
            "its allreduce is over that dimension; communicate over it in a step of all ranks",
        ),
        ("name = \"w\"\ndimensions = []\nsteps = []".to_owned(), "at least one dimension and one step"),
    ];
    for (text, why) in cases {
        let error = Workload::from_toml(&text, "w.toml").map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with("w.toml") && (error.contains(why) || why == "duplicate key"), "{error}");
    }
    assert!(
        Workload::preset("alexnet")
            .unwrap_err()
            .to_string()
            .contains("workloads are cosmoflow, cosmoflow-artifact, dlrm,")
    );
}

/// A group has the rows and columns of its dimension, alone or together with other groups. With `bucket`, 5194816
/// floats cross four links of 4 x 50 GB/s, in both directions, with 4 x 31 messages of 80 ns and twice 1 ns.
#[test]
fn on_a_torus() {
    let torus = Machine::preset("torus2d-small").unwrap();
    let text = "name = \"w\"\n[[dimensions]]\nname = \"d\"\nsize = 1024\nshape = [32, 32]\n[[steps]]\nname = \"s\"\n\
                [[steps.communication]]\ncollective = \"allreduce\"\nelements = 5194816\nalgorithm = \"bucket\"\n";
    let alone = Workload::from_toml(text, "w.toml").unwrap();
    let part = Part::Places(places(&alone, "torus", &[32, 32]).unwrap());
    let last = 2.0 * 4.0 * 5_194_816.0 / (16.0 * 50e9) + 4.0 * 31.0 * 82e-9;
    let exposed = iteration(&alone, &torus, &part, true).exposed_seconds;
    assert!((exposed / last - 1.0).abs() < 0.01, "{exposed} {last}");
}

/// A part of the rows and columns is a grid too, here eight by four ranks in a corner.
#[test]
fn a_group_in_a_corner_has_rows_and_columns() {
    let torus = Machine::preset("torus2d-small").unwrap();
    let bucket = |shape: &str| {
        let text = format!(
            "name = \"w\"\n[[dimensions]]\nname = \"d\"\nsize = 32\nshape = {shape}\n[[steps]]\nname = \"s\"\n\
             [[steps.communication]]\ncollective = \"allreduce\"\nelements = 64\nalgorithm = \"bucket\"\n"
        );
        let asked = Workload::from_toml(&text, "w.toml").unwrap();
        let part = Part::Places(places(&asked, "torus", &[32, 32]).unwrap());
        iteration(&asked, &torus, &part, true).seconds
    };
    // There are 2 (7 + 3) rounds along the sides, and 2 x 31 in a row.
    assert!(bucket("[8, 4]") < 0.7 * bucket("[1, 32]"));
}
