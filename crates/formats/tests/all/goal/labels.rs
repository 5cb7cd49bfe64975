//! Tests of `goal::labels`.

use unisono_base::TaskId;
use unisono_formats::internals::labels::Labels;

#[test]
fn the_first_definition_counts_wherever_it_is() {
    let mut labels = Labels::default();
    // l5000 does not fit in the table at first, but fits at its second definition.
    labels.define(b"l5000", TaskId(0));
    (1..2000).for_each(|n| labels.define(format!("l{n}").as_bytes(), TaskId(n)));
    labels.define(b"l5000", TaskId(7000));
    labels.define(b"l7", TaskId(7001));
    for (label, task) in [("l5000", 0), ("l7", 7), ("l1999", 1999)] {
        assert_eq!(labels.find(label.as_bytes()), Ok(TaskId(task)), "{label}");
    }
    for label in ["l0", "l007", "m7", "l", "l2000", "l4999", "l99999999999", ""] {
        assert!(labels.find(label.as_bytes()).is_err(), "{label}");
    }
    labels.define(b"l007", TaskId(8));
    labels.define(b"m7", TaskId(9));
    labels.define(b"a_label_of_many_bytes", TaskId(10));
    labels.define(b"a_label_of_many_bytes", TaskId(11));
    let found = [&b"l007"[..], b"m7", b"a_label_of_many_bytes", b"l7"].map(|label| labels.find(label).unwrap().0);
    assert_eq!(found, [8, 9, 10, 7]);
    labels.clear();
    assert!(labels.find(b"l7").is_err() && labels.find(b"l5000").is_err());
}
