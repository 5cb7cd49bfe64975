//! Tests of `goal::labels`.

use unisono_base::TaskId;
use unisono_formats::internals::labels::{Labels, Line, Word};

fn word(label: &str) -> Word<'_> {
    Line::new(label.as_bytes()).word()
}

#[test]
fn the_first_definition_counts_wherever_it_is() {
    let mut labels = Labels::default();
    // l5000 does not fit in the table at first, but fits at its second definition.
    labels.define(word("l5000"), TaskId(0));
    (1..2000).for_each(|n| labels.define(word(&format!("l{n}")), TaskId(n)));
    labels.define(word("l5000"), TaskId(7000));
    labels.define(word("l7"), TaskId(7001));
    for (label, task) in [("l5000", 0), ("l7", 7), ("l1999", 1999)] {
        assert_eq!(labels.find(word(label)), Ok(TaskId(task)), "{label}");
    }
    for label in ["l0", "l007", "m7", "l", "l2000", "l4999", "l99999999999", ""] {
        assert!(labels.find(word(label)).is_err(), "{label}");
    }
    labels.define(word("l007"), TaskId(8));
    labels.define(word("m7"), TaskId(9));
    labels.define(word("a_label_of_many_bytes"), TaskId(10));
    labels.define(word("a_label_of_many_bytes"), TaskId(11));
    let found = ["l007", "m7", "a_label_of_many_bytes", "l7"].map(|label| labels.find(word(label)).unwrap().0);
    assert_eq!(found, [8, 9, 10, 7]);
    labels.clear();
    assert!(labels.find(word("l7")).is_err() && labels.find(word("l5000")).is_err());
}
