//! Collectives whose result ranks already have.

use unisono_workload::hlo::{self, Redundancy, Sufficient};

const SUM: &str = "%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  \
                   ROOT %c = f32[] add(%a, %b)\n}";
const ALL: &str = "channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true";
const PAIRS: &str = "channel_id=1, replica_groups=[4,2]<=[8], use_global_device_ids=true";

/// Returns the redundant communications in the lines; the last line of the module uses `%r`.
fn found(lines: &str) -> Vec<(String, Redundancy)> {
    let text = format!(
        "HloModule m, num_partitions=8\n\n{SUM}\n\nENTRY %main (x: f32[64]) -> f32[64] {{\n  %x = f32[64]{{0}} \
         parameter(0)\n{lines}  ROOT %y = f32[64]{{0}} negate(%r)\n}}\n"
    );
    let graph = hlo::read(&text, "m.hlo", true).unwrap();
    let nothing = |finding: hlo::Finding| match finding.suffices {
        Sufficient::Nothing(why) => Some((finding.name, why)),
        Sufficient::Part(_) => None,
    };
    graph.findings.into_iter().filter_map(nothing).collect()
}

fn reduced(name: &str, of: &str, among: &str) -> String {
    format!("  %{name} = f32[64]{{0}} all-reduce(%{of}), {among}, to_apply=%sum\n")
}

fn exchanged(name: &str, of: &str, among: &str) -> String {
    format!("  %{name} = f32[64]{{0}} all-to-all(%{of}), {among}, dimensions={{0}}\n")
}

fn permuted(name: &str, of: &str, pairs: &str) -> String {
    format!("  %{name} = f32[64]{{0}} collective-permute(%{of}), channel_id=1, source_target_pairs={{{pairs}}}\n")
}

#[test]
fn a_repeated_collective_is_found_through_copies_and_barriers() {
    let repeats = |first: &str| Redundancy::Repeats(first.to_owned());
    let barrier = "  %t = (f32[64]{0}, f32[64]{0}) tuple(%x, %a)\n  %o = (f32[64]{0}, f32[64]{0}) opt-barrier(%t)\n  \
                   %c = f32[64]{0} get-tuple-element(%o), index=0\n  %d = f32[64]{0} copy(%c)\n";
    let lines = reduced("a", "x", PAIRS) + barrier + &reduced("r", "d", PAIRS);
    assert_eq!(found(&lines), [("r".to_owned(), repeats("a"))]);
    // None is redundant: other groups, another operand, another operation.
    assert_eq!(found(&(reduced("a", "x", PAIRS) + &reduced("r", "x", ALL))), []);
    assert_eq!(found(&(reduced("a", "x", PAIRS) + "  %n = f32[64]{0} negate(%x)\n" + &reduced("r", "n", PAIRS))), []);
    assert_eq!(found(&(exchanged("a", "x", PAIRS) + &reduced("r", "x", PAIRS))), []);
}

#[test]
fn what_undoes_an_exchange_returns_its_operand() {
    let undoes = |first: &str| Redundancy::Undoes(first.to_owned());
    let twice = exchanged("a", "x", PAIRS) + &exchanged("r", "a", PAIRS);
    assert_eq!(found(&twice), [("r".to_owned(), undoes("a"))]);
    assert_eq!(found(&(exchanged("a", "x", PAIRS) + &exchanged("r", "a", ALL))), []);
    let halves = "  %p = (f32[32]{0}, f32[32]{0}) all-to-all(%h, %i), channel_id=1, replica_groups=[4,2]<=[8]\n  \
                  %q = f32[32]{0} get-tuple-element(%p), index=0\n  %s = f32[32]{0} get-tuple-element(%p), index=1\n";
    let parts = "  %h = f32[32]{0} slice(%x), slice={[0:32]}\n  %i = f32[32]{0} slice(%x), slice={[32:64]}\n";
    let again = |operands: &str| {
        format!(
            "{parts}{halves}  %z = (f32[32]{{0}}, f32[32]{{0}}) all-to-all({operands}), channel_id=1, \
             replica_groups=[4,2]<=[8]\n  %v = f32[32]{{0}} get-tuple-element(%z), index=0\n  %r = f32[64]{{0}} \
             concatenate(%v, %q), dimensions={{0}}\n"
        )
    };
    assert_eq!(found(&again("%q, %s")), [("z".to_owned(), undoes("p"))]);
    assert_eq!(found(&again("%s, %q")), []);
    let ring: Vec<String> = (0..8).map(|rank| format!("{{{rank},{}}}", (rank + 1) % 8)).collect();
    let back: Vec<String> = (0..8).map(|rank| format!("{{{},{rank}}}", (rank + 1) % 8)).collect();
    let there_and = |pairs: &[String]| permuted("a", "x", &ring.join(",")) + &permuted("r", "a", &pairs.join(","));
    assert_eq!(found(&there_and(&back)), [("r".to_owned(), undoes("a"))]);
    assert_eq!(found(&there_and(&ring)), []);
    // Rank 0 receives zeros, so the second permutation does not return its operand.
    let cut = permuted("a", "x", &ring[..7].join(",")) + &permuted("r", "a", &back[..7].join(","));
    assert_eq!(found(&cut), []);
}

#[test]
fn equal_values_need_no_collective() {
    let uniform = [("r".to_owned(), Redundancy::Uniform)];
    // The groups of the second collective are contained in those of the first.
    let doubled = "  %c = f32[] constant(2)\n  %b = f32[64]{0} broadcast(%c), dimensions={}\n  \
                   %d = f32[64]{0} multiply(%a, %b)\n";
    assert_eq!(found(&(reduced("a", "x", ALL) + doubled + &reduced("r", "d", PAIRS))), uniform);
    assert_eq!(found(&(reduced("a", "x", PAIRS) + doubled + &reduced("r", "d", ALL))), []);
    // The value depends on a value that differs between ranks.
    let mixed = "  %d = f32[64]{0} multiply(%a, %x)\n";
    assert_eq!(found(&(reduced("a", "x", ALL) + mixed + &reduced("r", "d", PAIRS))), []);
    let numbered =
        "  %i = u32[] partition-id()\n  %f = f32[] convert(%i)\n  %d = f32[64]{0} broadcast(%f), dimensions={}\n";
    assert_eq!(found(&(numbered.to_owned() + &reduced("r", "d", ALL))), []);
    let constant = "  %c = f32[] constant(2)\n  %d = f32[64]{0} broadcast(%c), dimensions={}\n";
    assert_eq!(found(&(constant.to_owned() + &reduced("r", "d", ALL))), uniform);
    // Parts of an equal value differ between ranks.
    let scattered = format!(
        "{}  %s = f32[8]{{0}} reduce-scatter(%a), {ALL}, dimensions={{0}}, to_apply=%sum\n  %g = f32[64]{{0}} \
         all-gather(%s), {ALL}, dimensions={{0}}\n{}",
        reduced("a", "x", ALL),
        "  %r = f32[64]{0} copy(%g)\n"
    );
    assert_eq!(found(&scattered), [("s".to_owned(), Redundancy::Uniform)]);
    let asynchronous = format!(
        "  %s = f32[64]{{0}} all-reduce-start(%x), {ALL}, to_apply=%sum\n  %a = f32[64]{{0}} all-reduce-done(%s)\n{}",
        reduced("r", "a", PAIRS)
    );
    assert_eq!(found(&asynchronous), uniform);
}
