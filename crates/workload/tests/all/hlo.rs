//! Modules: values, loops, costs, and the text of a transformer's training step.

use unisono_collective::Kind;
use unisono_workload::{
    Compute, ReadError, Work, WorkNode, WorkloadGraph,
    hlo::{self, Finding, Sufficient},
};

const TRANSFORMER: &str = include_str!("../../../../examples/programs/transformer.hlo");

/// Returns a module for 8 devices, with the computations `before` and the lines of the entry.
fn module(before: &str, entry: &str) -> String {
    let head = "HloModule m, is_scheduled=true, num_partitions=8";
    format!(
        "{head}\n\n{before}\n\nENTRY %main (x: f32[64]) -> f32[64] {{\n  %x = f32[64]{{0}} parameter(0)\n{entry}}}\n"
    )
}

fn read(text: &str) -> WorkloadGraph {
    hlo::read(text, "m.hlo", true).unwrap()
}

fn nodes(text: &str) -> Vec<WorkNode> {
    read(text).classes.remove(0).nodes
}

fn refused(text: &str) -> String {
    hlo::read(text, "m.hlo", true).unwrap_err().to_string()
}

const SUM: &str = "%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  \
                   ROOT %c = f32[] add(%a, %b)\n}";

fn reduced(name: &str, of: &str) -> String {
    format!(
        "  %{name} = f32[64]{{0}} all-reduce(%{of}), channel_id=1, replica_groups=[1,8]<=[8], \
         use_global_device_ids=true, to_apply=%sum\n"
    )
}

#[test]
fn a_transformer_computes_and_communicates_what_its_shapes_say() {
    let graph = read(TRANSFORMER);
    assert_eq!((graph.ranks, graph.groups.len(), graph.unknown.len()), (256, 2, 0));
    let counted = |node: &WorkNode| match node.work {
        Work::Compute(Compute::Counted { operations, .. }) => operations,
        _ => 0.0,
    };
    let nodes = &graph.classes[0].nodes;
    let operations: f64 = nodes.iter().map(counted).sum();
    // A device has 2 sequences of 2048 tokens, and an eighth of each product and of the heads. The forward pass of a
    // layer takes 2 operations for each token and each of the 12 w^2 / 8 weights, and two products of scores for each
    // of 4 heads of width 128. The backward pass takes twice as much, except for the gradient of the input of the first
    // layer's first product.
    let (tokens, width) = (2.0 * 2048.0, 4096.0_f64);
    let weights = 2.0 * tokens * 12.0 * width * width / 8.0;
    let scores = 2.0 * (2.0 * 2.0 * 4.0 * 2048.0 * 2048.0 * 128.0);
    let first = 2.0 * tokens * 3.0 * width * width / 8.0;
    assert_eq!(operations, 4.0 * 3.0 * (weights + scores) - first);
    // Weights are gathered from 32 parts, which have 128 rows and w / 8 columns of each product.
    let sizes = |kind: Kind| -> Vec<u64> {
        let of = |node: &WorkNode| match node.work {
            Work::Collective(c) if c.kind == kind => Some(c.bytes),
            _ => None,
        };
        nodes.iter().filter_map(of).collect()
    };
    let mut gathered = sizes(Kind::Allgather);
    gathered.sort_unstable();
    let part = |columns: u64| 4 * 128 * columns;
    assert_eq!(gathered, [[part(512); 4], [part(1536); 4], [part(2048); 4], [part(2048); 4]].concat());
    // Activations are summed after two products of each layer, forwards and backwards, except for the last gradient;
    // then the gradients of all weights at once.
    let mut summed = sizes(Kind::Allreduce);
    assert_eq!(summed.pop(), Some(4 * 4 * 12 * 4096 * 4096 / 8));
    assert_eq!(summed, [4 * 2 * 2048 * 4096; 15]);
}

#[test]
fn slopes_that_are_summed_and_sliced_are_a_reduce_scatter() {
    let graph = read(TRANSFORMER);
    let [finding] = &graph.findings[..] else { panic!("{:?}", graph.findings) };
    assert_eq!((&*finding.name, finding.count), ("all-reduce.31", 1));
    let Work::Collective(found) = finding.found else { panic!("{finding:?}") };
    let (kind, bytes) = part(finding);
    assert_eq!((found.kind, kind), (Kind::Allreduce, Kind::ReduceScatter));
    assert_eq!(bytes * 32, found.bytes);
}

/// Returns the kind and bytes of the collective that suffices.
fn part(finding: &Finding) -> (Kind, u64) {
    match finding.suffices {
        Sufficient::Part(part) => (part.kind, part.bytes),
        Sufficient::Nothing(_) => panic!("{finding:?}"),
    }
}

#[test]
fn parts_that_a_device_takes_decide_what_suffices() {
    let found = |lines: &str| {
        let gathered = "  %g = f32[512]{0} all-gather(%x), channel_id=1, replica_groups=[1,8]<=[8], \
                        use_global_device_ids=true, dimensions={0}\n  %p = u32[] partition-id()\n  %o = s32[] convert(%p)\n";
        let graph = read(&module("", &format!("{gathered}{lines}")));
        graph.findings.iter().map(part).collect::<Vec<_>>()
    };
    let slice = |name: &str, elements: u32, offset: &str| {
        format!("  {name} = f32[{elements}]{{0}} dynamic-slice(%g, {offset}), dynamic_slice_sizes={{{elements}}}\n")
    };
    assert_eq!(found(&slice("ROOT %s", 64, "%o")), [(Kind::Alltoall, 32)]);
    // There is no finding if a slice is longer than a part, if two slices are read, if the offset is equal on all
    // devices, or if the result has another use.
    assert_eq!(found(&slice("ROOT %s", 65, "%o")), []);
    assert_eq!(found(&(slice("%s", 64, "%o") + &slice("ROOT %t", 64, "%o"))), []);
    assert_eq!(found(&("  %c = s32[] constant(3)\n".to_owned() + &slice("ROOT %s", 64, "%c"))), []);
    assert_eq!(found(&(slice("%s", 64, "%o") + "  ROOT %n = f32[512]{0} negate(%g)\n")), []);
}

#[test]
fn values_wait_for_what_they_need() {
    let text = module(
        SUM,
        &(reduced("r", "x")
            + "  %n = f32[64]{0} negate(%x)\n  %t = (f32[64]{0}, f32[64]{0}) tuple(%r, %n)\n\
               \x20 %g = f32[64]{0} get-tuple-element(%t), index=1\n  %e = f32[64]{0} exponential(%g)\n\
               \x20 %h = f32[64]{0} get-tuple-element(%t), index=0\n  ROOT %s = f32[64]{0} add(%e, %h)\n"),
    );
    let nodes = nodes(&text);
    let after: Vec<(&str, &[u32])> = nodes.iter().map(|node| (&*node.name, &node.after[..])).collect();
    // The exponential reads only the negated value, so it does not wait for the sum among the devices.
    assert_eq!(after, [("r", &[][..]), ("n", &[]), ("e", &[1]), ("s", &[2, 0])]);
}

#[test]
fn halves_of_asynchronous_pairs_are_one_communication() {
    let starts = "  %s = (f32[64]{0}, f32[512]{0}) all-gather-start(%x), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, \
                  use_global_device_ids=true, dimensions={0}\n  %n = f32[64]{0} negate(%x)\n\
                  \x20 %d = f32[512]{0} all-gather-done(%s)\n  ROOT %c = f32[512]{0} copy(%d)\n";
    let wrapped = "  %s = ((f32[64]{0}), f32[8]{0}, u32[]) async-start(%x), calls=%wrapped\n\
                   \x20 %u = ((f32[64]{0}), f32[8]{0}, u32[]) async-update(%s)\n  %d = f32[8]{0} async-done(%u)\n\
                   \x20 ROOT %c = f32[8]{0} copy(%d)\n";
    let computation = format!(
        "{SUM}\n\n%wrapped (p: f32[64]) -> f32[8] {{\n  %p = f32[64]{{0}} parameter(0)\n  ROOT %r = f32[8]{{0}} \
         reduce-scatter(%p), channel_id=2, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=%sum\n}}"
    );
    let gathered = nodes(&module("", starts));
    let collective = |node: &WorkNode| match node.work {
        Work::Collective(c) => (c.kind, c.bytes),
        ref other => panic!("{other:?}"),
    };
    assert_eq!(collective(&gathered[0]), (Kind::Allgather, 256));
    assert_eq!(gathered.iter().map(|node| node.after.clone()).collect::<Vec<_>>(), [vec![], vec![], vec![0]]);
    let scattered = nodes(&module(&computation, wrapped));
    assert_eq!(collective(&scattered[0]), (Kind::ReduceScatter, 32));
    assert_eq!(scattered[1].after, [0]);
}

/// Returns the name, kind and bytes of each collective, and the operations and bytes of each other node.
fn shown(nodes: &[WorkNode]) -> Vec<String> {
    let one = |node: &WorkNode| match node.work {
        Work::Collective(c) => format!("{}: {} of {}", node.name, c.kind, c.bytes),
        Work::Permute { bytes, .. } => format!("{}: permute of {bytes}", node.name),
        Work::Compute(Compute::Counted { operations, bytes }) => format!("{}: {operations}, {bytes}", node.name),
        ref other => panic!("{other:?}"),
    };
    nodes.iter().map(one).collect()
}

/// The name of each half of an asynchronous operation begins with the name of the operation, as XLA's printer writes
/// it.
#[test]
fn halves_named_after_their_operation_take_no_time_of_their_own() {
    let groups = "channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true";
    let scattered = format!(
        "  %s = ((f32[64]{{0}}), f32[8]{{0}}) reduce-scatter-start(%x), async_execution_thread=\"p\", {groups}, \
         dimensions={{0}}, to_apply=%sum\n  %n = f32[64]{{0}} negate(%x)\n  \
         %u = ((f32[64]{{0}}), f32[8]{{0}}) reduce-scatter-update(%s)\n  %d = f32[8]{{0}} reduce-scatter-done(%u)\n  \
         %a = ((f32[64]{{0}}), f32[64]{{0}}) all-to-all-start(%n), {groups}, dimensions={{0}}\n  \
         %b = f32[64]{{0}} all-to-all-done(%a)\n  ROOT %c = f32[64]{{0}} add(%b, %x)\n"
    );
    let found = nodes(&module(SUM, &scattered));
    assert_eq!(shown(&found), ["s: reduce-scatter of 32", "n: 0, 512", "a: alltoall of 32", "c: 0, 768"]);
    assert_eq!(found.iter().map(|node| node.after.clone()).collect::<Vec<_>>(), [vec![], vec![], vec![1], vec![2]]);
    // A copy states its result first, a fusion states its operands first; both read and write 256 bytes.
    let local = "  %s = (f32[64]{0}, f32[64]{0:S(5)}, u32[]) copy-start(%x)\n  %d = f32[64]{0} copy-done(%s)\n  \
                 %f = ((f32[64]{0}), f32[64]{0}, s32[]) fusion-start(%d), kind=kLoop, calls=%fused\n  \
                 ROOT %e = f32[64]{0} fusion-done(%f)\n";
    let fused =
        "%fused (p: f32[64]) -> f32[64] {\n  %p = f32[64]{0} parameter(0)\n  ROOT %n = f32[64]{0} negate(%p)\n}";
    assert_eq!(shown(&nodes(&module(fused, local))), ["s: 0, 512", "f: 0, 512"]);
}

/// The compiler split a permutation: the end of the receive waits for the send with the same pairs.
#[test]
fn sends_and_receives_are_permutations() {
    let pairs = "frontend_attributes={_xla_send_recv_pipeline=\"0\",_xla_send_recv_source_target_pairs={{0,1},{1,2}}}";
    let lines = format!(
        "  %t = token[] after-all()\n  %r = (f32[64]{{0}}, u32[], token[]) recv(%t), channel_id=2, {pairs}\n  \
         %s = (f32[64]{{0}}, u32[], token[]) send(%x, %t), channel_id=1, {pairs}\n  %n = f32[64]{{0}} negate(%x)\n  \
         %e = (f32[64]{{0}}, token[]) recv-done(%r), channel_id=2\n  %o = token[] send-done(%s), channel_id=1\n  \
         %g = f32[64]{{0}} get-tuple-element(%e), index=0\n  ROOT %c = f32[64]{{0}} add(%g, %n)\n"
    );
    let graph = read(&module("", &lines));
    assert_eq!(graph.receivers, [[vec![1, 2, 2, 3, 4, 5, 6, 7]]]);
    let found = &graph.classes[0].nodes;
    assert_eq!(shown(found), ["s: permute of 256", "n: 0, 512", "c: 0, 768"]);
    assert_eq!(found[2].after, [1, 0]);
    // The time of data from the host is unknown.
    let host = "  %t = token[] after-all()\n  %r = (f32[64]{0}, u32[], token[]) recv(%t), channel_id=2, \
                is_host_transfer=true\n  %e = (f32[64]{0}, token[]) recv-done(%r), channel_id=2\n  \
                ROOT %g = f32[64]{0} get-tuple-element(%e), index=0\n";
    assert!(refused(&module("", host)).contains("line 8: the time of 'recv' is not known"));
}

#[test]
fn collectives_with_operands_that_are_no_data() {
    let lists = "replica_groups={{0,1,2,3,4,5,6,7}}, channel_id=1, use_global_device_ids=true";
    let ragged = format!(
        "  %o = s32[8]{{0}} iota(), iota_dimension=0\n  \
         ROOT %r = f32[64]{{0}} ragged-all-to-all(%x, %x, %o, %o, %o, /*index=5*/%o), {lists}\n"
    );
    assert!(refused(&module("", &ragged)).contains("the time of 'ragged-all-to-all of unknown lengths"));
    let graph = hlo::read(&module("", &ragged), "m.hlo", false).unwrap();
    assert_eq!(shown(&graph.classes[0].nodes), ["o: 0, 32", "r: alltoall of 32"]);
    let rooted = format!(
        "  %o = s32[1]{{0}} iota(), iota_dimension=0\n  %b = f32[64]{{0}} collective-broadcast(%x, %o), {lists}, \
         has_dynamic_root=true\n  ROOT %r = f32[64]{{0}} collective-reduce(%b), {lists}, to_apply=%sum\n"
    );
    assert_eq!(shown(&nodes(&module(SUM, &rooted)))[1..], ["b: broadcast of 256", "r: reduce of 256"]);
}

#[test]
fn loops_are_expanded_by_their_known_count() {
    let body = format!(
        "{SUM}\n\n%body (s: (s32[], f32[64])) -> (s32[], f32[64]) {{\n  %s = (s32[], f32[64]{{0}}) parameter(0)\n  \
         %i = s32[] get-tuple-element(%s), index=0\n  %x = f32[64]{{0}} get-tuple-element(%s), index=1\n  \
         %n = f32[64]{{0}} negate(%x)\n{}  ROOT %t = (s32[], f32[64]{{0}}) tuple(%i, %r)\n}}\n\n\
         %test (s: (s32[], f32[64])) -> pred[] {{\n  %s = (s32[], f32[64]{{0}}) parameter(0)\n  ROOT %p = pred[] constant(true)\n}}",
        reduced("r", "n")
    );
    let entry = |config: &str| {
        format!(
            "  %z = s32[] constant(0)\n  %t = (s32[], f32[64]{{0}}) tuple(%z, %x)\n  ROOT %w = (s32[], f32[64]{{0}}) \
             while(%t), condition=%test, body=%body{config}\n"
        )
    };
    let known = r#", backend_config={"known_trip_count":{"n":"3"},"known_init_step":{"init":"0","step":"1"}}"#;
    let after: Vec<Vec<u32>> = nodes(&module(&body, &entry(known))).into_iter().map(|node| node.after).collect();
    assert_eq!(after, [vec![], vec![0], vec![1], vec![2], vec![3], vec![4]]);
    let unknown = module(&body, &entry(""));
    assert!(
        refused(&unknown).contains(
            "the time of 'while of unknown length, counted once' is not known; without --strict it is counted"
        )
    );
    let graph = hlo::read(&unknown, "m.hlo", false).unwrap();
    assert_eq!((graph.classes[0].nodes.len(), graph.unknown["while of unknown length, counted once"]), (2, 1));
    let endless = known.replace("\"3\"", "\"99999999999\"");
    assert!(refused(&module(&body, &entry(&endless))).contains("loops and calls expand to more than"));
}

#[test]
fn costs_follow_from_shapes() {
    let counted = |before: &str, entry: &str| match nodes(&module(before, entry)).pop().unwrap().work {
        Work::Compute(Compute::Counted { operations, bytes }) => (operations, bytes),
        other => panic!("{other:?}"),
    };
    let a = "  %a = bf16[3,5,7]{2,1,0} reshape(%x)\n  %b = bf16[3,7,11]{2,1,0} reshape(%x)\n";
    let dot = "  ROOT %d = f32[3,5,11]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, lhs_contracting_dims={2}, \
               rhs_batch_dims={0}, rhs_contracting_dims={1}\n";
    let bytes = 2 * 3 * 5 * 7 + 2 * 3 * 7 * 11 + 4 * 3 * 5 * 11;
    assert_eq!(counted("", &format!("{a}{dot}")), (2.0 * (3 * 5 * 11 * 7) as f64, f64::from(bytes)));
    // 4 images of 8 x 8 with 6 features are mapped to 10 features by a kernel of 3 x 3.
    let images = "  %a = f32[4,8,8,6]{3,2,1,0} reshape(%x)\n  %k = f32[3,3,6,10]{3,2,1,0} reshape(%x)\n";
    let convolution = "  ROOT %c = f32[4,8,8,10]{3,2,1,0} convolution(%a, %k), window={size=3x3 pad=1_1x1_1}, \
                       dim_labels=b01f_01io->b01f\n";
    let (operations, _) = counted("", &format!("{images}{convolution}"));
    assert_eq!(operations, 2.0 * (4 * 8 * 8 * 10 * 3 * 3 * 6) as f64);
    // A fusion reads only the slice of its large operand, and writes its result.
    let fused = "%fused (p: f32[1000], q: s32[]) -> f32[8] {\n  %p = f32[1000]{0} parameter(0)\n  %q = s32[] parameter(1)\n  \
                 %s = f32[8]{0} dynamic-slice(%p, %q), dynamic_slice_sizes={8}\n  ROOT %n = f32[8]{0} negate(%s)\n}";
    let entry = "  %l = f32[1000]{0} broadcast(%x), dimensions={}\n  %q = s32[] partition-id()\n  \
                 ROOT %f = f32[8]{0} fusion(%l, %q), kind=kLoop, calls=%fused\n";
    assert_eq!(counted(fused, entry), (0.0, 32.0 + 4.0 + 32.0));
    // Operations on a part of a large array read and write only that part.
    let part = "  %l = f32[1000]{0} broadcast(%x), dimensions={}\n  %p = f32[8]{0} reshape(%x)\n  %q = s32[] partition-id()\n  \
                ROOT %d = ";
    for operation in [
        "f32[8]{0} dynamic-slice(%l, %q), dynamic_slice_sizes={8}",
        "f32[1000]{0} dynamic-update-slice(%l, %p, %q)",
        "f32[1000]{0} scatter(%l, %q, %p), to_apply=%sum",
    ] {
        assert_eq!(counted(SUM, &format!("{part}{operation}\n")), (0.0, 2.0 * 32.0), "{operation}");
    }
    // The product of 5 rows, in parts of unknown lengths, with 2 matrices; and 2 sums over parts of 7 rows.
    let parts = "  %a = f32[5,7]{1,0} reshape(%x)\n  %b = f32[2,7,11]{2,1,0} reshape(%x)\n  %l = s32[2]{0} reshape(%x)\n  \
                 ROOT %d = f32[5,11]{1,0} ragged-dot(%a, %b, %l), lhs_contracting_dims={1}, rhs_contracting_dims={1}, \
                 lhs_ragged_dims={0}, rhs_group_dims={0}\n";
    assert_eq!(counted("", parts).0, 2.0 * (5 * 7 * 11) as f64);
    let sums = "  %a = f32[5,7]{1,0} reshape(%x)\n  %b = f32[7,11]{1,0} reshape(%x)\n  %l = s32[2]{0} reshape(%x)\n  \
                ROOT %d = f32[2,5,11]{2,1,0} ragged-dot(%a, %b, %l), lhs_contracting_dims={1}, \
                rhs_contracting_dims={0}, lhs_ragged_dims={1}\n";
    assert_eq!(counted("", sums).0, 2.0 * (5 * 7 * 11) as f64);
    let call = r#"  ROOT %g = (f32[5,11]{1,0}, s8[100]{0}) custom-call(%a, %b), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}"#;
    let matrices = "  %a = f32[5,7]{1,0} reshape(%x)\n  %b = f32[7,11]{1,0} reshape(%x)\n";
    assert_eq!(counted("", &format!("{matrices}{call}\n")).0, 2.0 * (5 * 7 * 11) as f64);
}

#[test]
fn operations_that_are_not_known_are_counted_or_refused() {
    let text =
        module("", "  %c = f32[64]{0} custom-call(%x), custom_call_target=\"topk\"\n  ROOT %y = f32[64]{0} sing(%c)\n");
    let graph = hlo::read(&text, "m.hlo", false).unwrap();
    let unknown: Vec<_> = graph.unknown.into_iter().collect();
    assert_eq!(unknown, [("custom-call topk".to_owned(), 1), ("sing".to_owned(), 1)]);
    assert!(refused(&text).starts_with("m.hlo, line 7: the time of 'custom-call topk' is not known"));
}

#[test]
fn mistakes_are_named_with_their_line() {
    let good = module(SUM, &format!("{}  ROOT %y = f32[64]{{0}} negate(%r)\n", reduced("r", "x")));
    read(&good);
    let cases = [
        ("num_partitions=8", "num_partitions=0", "m.hlo, line 1: num_partitions is '0'"),
        ("[1,8]<=[8]", "{{0,1},{1,2}}", "m.hlo, line 11: rank 1 is in two groups, or twice in one"),
        ("[1,8]<=[8]", "{{0,8}}", "m.hlo, line 11: a group has device 8; accepted are 0 to 7"),
        ("[1,8]<=[8]", "[1,8]<=[9]", "m.hlo, line 11: '[1,8]<=[9]' is not a list of groups"),
        ("negate(%r)", "negate(%q)", "m.hlo, line 12: no value before this line is named 'q'"),
        ("negate(%r)", "negate(%r", "m.hlo, line 12: 'negate(%r' is not OPCODE(OPERANDS)"),
        ("f32[64]{0} negate", "q32[64]{0} negate", "m.hlo, line 12: 'q32' is not an element type"),
        ("%y =", "%r =", "m.hlo, line 12: two values are named 'r'"),
        ("ENTRY ", "", "m.hlo: no computation is marked ENTRY; the file is cut off"),
        ("HloModule m", "Module m", "m.hlo, line 1: the text begins with no HloModule"),
    ];
    for (old, new, expected) in cases {
        let message = refused(&good.replacen(old, new, 1));
        assert!(message.starts_with(expected), "{message} should begin with {expected}");
    }
    let cut = &good[..good.len() - 3];
    assert_eq!(refused(cut), "m.hlo, line 9: computation 'main' has no end; the file is cut off");
    let error: ReadError = hlo::read("", "m.hlo", false).unwrap_err();
    assert_eq!(error.to_string(), "m.hlo: the file is empty; accepted is the text of an HLO module");
}

#[test]
fn every_beginning_of_a_file_is_refused_or_read() {
    let text = module(SUM, &format!("{}  ROOT %y = f32[64]{{0}} negate(%r)\n", reduced("r", "x")));
    for end in 0..text.len() {
        drop(hlo::read(&text[..end], "m.hlo", true));
    }
}
