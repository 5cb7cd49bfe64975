//! Decision tables from draws, written for every library and as a plan, and read back.

use unisono_algorithms::ALGORITHMS;
use unisono_collective::{Choice, DecisionTable, Kind, OperatorClass, Row};
use unisono_schedule::plan_file::{self, Plan, PlanFile};
use unisono_tables::TUNINGS;

use crate::{Draws, Form, FuzzTarget};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "decision-table",
    "draws the rows of a decision table, writes it for each library and into a plan, and reads that",
    run,
)
.form(Form::Draws)
.quick_runs(1500);

const BYTES: &[u64] =
    &[0, 1, 7, 8, 1023, 1024, u32::MAX as u64, 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX];
const RANKS: &[u32] = &[0, 1, 2, 3, 4, 8, 96, 65_536, i32::MAX as u32, u32::MAX];
const PARAMS: &[(&str, &str)] = &[
    ("segment", "1024"),
    ("segment", "x"),
    ("ways", "4"),
    ("k", "99999999999"),
    ("", ""),
    ("\n", "\0"),
    ("root", "\""),
];

fn run(input: &[u8]) -> bool {
    let mut d = Draws::new(input);
    let rows = (0..1 + d.below(8)).map(|_| row(&mut d)).collect();
    let Ok(table) = DecisionTable::new(rows) else { return false };
    TUNINGS.iter().for_each(|tuning| drop((tuning.write)(&table, None)));
    for row in table.rows() {
        let found = table.find(row.kind, row.ranks, row.per_node, row.first_bytes, row.class);
        assert!(found.is_some_and(|n| table.rows()[n].ranks == row.ranks), "{row} is found");
    }
    let uses = vec![None; table.rows().len()];
    let libraries = table.rows().iter().all(|row| row.choice == Choice::Library);
    let mut bytes = Vec::new();
    plan_file::write(&Plan { table: table.clone(), schedules: Vec::new(), uses }, &mut bytes)
        .expect("memory takes all");
    // A row of an algorithm needs a schedule, which this plan does not have.
    let read = PlanFile::read(bytes);
    assert!(!libraries || read.is_ok_and(|file| *file.table() == table), "a plan of the library's own reads back");
    true
}

fn row(d: &mut Draws<'_>) -> Row {
    let kind = d.pick(&Kind::ALL);
    let fitting =
        if kind.reduces() && kind != Kind::Barrier { OperatorClass::Commutative } else { OperatorClass::None };
    let choice = if d.once_in(3) {
        Choice::Library
    } else {
        let params = (0..d.below(3)).map(|_| d.pick(PARAMS)).map(|(k, v)| (k.to_owned(), v.to_owned()));
        let params = params.collect();
        Choice::Algorithm { name: d.pick(ALGORITHMS).name().to_owned(), params }
    };
    Row {
        kind,
        ranks: d.pick(RANKS),
        per_node: d.once_in(3).then(|| d.pick(RANKS)),
        class: if d.once_in(6) { d.pick(&OperatorClass::ALL) } else { fitting },
        first_bytes: d.pick(BYTES),
        last_bytes: d.pick(BYTES),
        choice,
    }
}
