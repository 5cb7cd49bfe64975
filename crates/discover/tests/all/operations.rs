//! Methods of operations whose results depend on more than the regions of their parts.

use crate::common;

use common::{program, task};
use unisono_discover::{Action, Discovery, Operation, Options, Pattern, Program, Region, Rules, Sides};

/// Applies `ask` to the operations of a pattern in which rank 0 participates.
fn answers<T>(program: &Program, nodes: u32, pattern: Pattern, ask: impl Fn(&Operation, &Sides) -> T) -> Vec<T> {
    let mut discovery =
        Discovery::new(Options { rows: true, ..Options::commands(nodes, 0, Rules::Full) }).expect("valid options");
    program.submit(&mut discovery).expect("valid program");
    let commands = discovery.take_commands();
    let operations = commands.iter().filter_map(|command| match &command.action {
        Action::Collective { operation, .. } if operation.pattern == pattern => Some(operation),
        _ => None,
    });
    operations.map(|operation| ask(operation, discovery.sides())).collect()
}

#[test]
fn a_transposition_is_even_where_rows_divide() {
    for (n, nodes) in [(12, 2), (12, 3), (12, 4), (13, 2), (13, 3), (14, 4), (64, 64), (3, 7)] {
        let range = format!("[{n},{n}]");
        let turned = r#"{"kind":"transposed","perm":[1,0]}"#;
        let turn = task("turn", &range, &[("A", "read", turned), ("B", "write", "one_to_one")]);
        let fill = task("fill", &range, &[("A", "write", "one_to_one")]);
        let tasks = program(&[("A", &range, false), ("B", &range, false)], &[fill, turn]);
        let found = answers(&tasks, nodes, Pattern::Alltoall, Operation::even);
        // Of two ranks with parts of a and b rows, one sends a b elements to the other. All pairs are equal if a = b,
        // or if there are only two ranks.
        let rows = n / u64::from(nodes);
        let even = match (nodes, n % u64::from(nodes)) {
            (2, _) => Some((n / 2) * n.div_ceil(2)),
            (_, 0) => Some(rows * rows),
            _ => None,
        };
        let among = u64::from(nodes) <= n;
        assert_eq!(found, [if among { even } else { Some(1) }], "{n} on {nodes}");
    }
}

/// If two ranks reduced the same element separately, their results could differ in rounding.
#[test]
fn parts_of_a_sum_are_disjoint_where_neighbors_share_too() {
    for reads in ["one_to_one", r#"{"kind":"neighborhood","halo":[1]}"#] {
        let add = task("add", "[13]", &[("A", "read", "one_to_one"), ("T", "reduce", "all")]);
        let look = task("look", "[13]", &[("T", "read", reads), ("A", "read_write", "one_to_one")]);
        let tasks = program(&[("A", "[13]", true), ("T", "[13]", false)], &[add, look]);
        let parts = answers(&tasks, 3, Pattern::ReduceScatter, |operation, sides| {
            (0..3).map(|rank| operation.received(sides, rank)).collect::<Vec<_>>()
        });
        assert_eq!(parts.len(), 1);
        let whole = parts[0].iter().fold(Region::empty(), |all, part| all.union(part));
        assert_eq!((whole.volume(), parts[0].iter().map(Region::volume).sum::<u64>()), (13, 13));
    }
}
