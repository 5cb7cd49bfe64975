//! Tests of `diagnostic`.

use unisono_base::{Diagnostic, Diagnostics};

#[test]
fn as_many_findings_are_kept_as_it_says_and_the_others_are_counted() {
    for (count, every) in (0..3 * Diagnostics::KEPT).flat_map(|count| [1, 2, 5].map(|every| (count, every))) {
        let mut found = Diagnostics::default();
        for k in 0..count {
            if k % every == 0 {
                found.push("wrong", None, None, || k.to_string());
            } else {
                found.add(Diagnostic { code: "wrong", rank: None, instruction: None, message: k.to_string() });
            }
        }
        let kept = count.min(Diagnostics::KEPT);
        assert_eq!((found.is_empty(), found.is_full()), (count == 0, count > kept));
        let mut expected: Vec<String> = (0..kept).map(|k| k.to_string()).collect();
        expected.extend((count > kept).then(|| format!("{} more findings left out", count - kept)));
        assert_eq!(found.into_vec().into_iter().map(|d| d.message).collect::<Vec<_>>(), expected);
    }
}
