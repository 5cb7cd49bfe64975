//! Tests of the order that packets imply. It holds element by element: grain k of a move is ordered only with grain k
//! of another move.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use unisono_formats::Facts;
use unisono_gpu::{Options, mscclpp::check};

use super::{
    codes, mutations,
    writer::{Writer, all, local},
    wrong,
};

/// Returns a plan with two thread blocks that share the operations of each; `None` if an operation cannot be shared.
fn shared(plan: &Value) -> Option<Value> {
    let mut made = plan.clone();
    for gpu in made["gpus"].as_array_mut()? {
        let blocks = gpu["threadblocks"].as_array_mut()?;
        let twice = blocks.iter().flat_map(|block| [(0, block.clone()), (1, block.clone())]).enumerate();
        let mut shares: Vec<Value> = Vec::new();
        for (id, (share, mut block)) in twice {
            block["id"] = json!(id);
            for op in block["ops"].as_array_mut()? {
                if op.get("channel_ids").is_some() || op.get("ops").is_some() || op["name"] == "barrier" {
                    return None;
                }
                if op["name"] != "nop" {
                    op["tbg_info"] = json!({"tb_id": share, "tbg_size": 2});
                }
            }
            shares.push(block);
        }
        *blocks = shares;
    }
    Some(made)
}

/// Builds a plan that packs chunks 0 and 1, and unpacks them in another thread block to chunks `by` and `by + 1`.
fn unpacked(by: usize) -> Value {
    let mut w = Writer::new("allreduce", "LL", true, 2, 2, [4, 4, 2]);
    w.op(0, 0, json!({"name": "cpkt", "src_buff": [local("o", 0, 2)], "dst_buff": [local("s", 0, 2)]}));
    w.op(0, 1, json!({"name": "upkt", "src_buff": [local("s", 0, 2)], "dst_buff": [local("o", by, 2)]}));
    w.plan
}

#[test]
fn what_is_unpacked_follows_the_same_element_alone() {
    for (by, races) in [(0, false), (1, true), (2, false)] {
        for plan in [unpacked(by), shared(&unpacked(by)).unwrap()] {
            assert_eq!(codes(&plan).contains(&"race"), races, "by {by}: {plan}");
        }
    }
}

#[test]
fn shares_of_packets_have_one_verdict_at_all_sizes() {
    let (mut number, mut tried, mut accepted) = (0, 0, 0);
    let plans = [2, 3].into_iter().flat_map(all).filter(|(_, plan, _)| plan["protocol"] == "LL");
    for (name, plan, _) in plans {
        let Some(plan) = shared(&plan) else { continue };
        let chunks = plan["gpus"][0]["input_chunks"].as_u64().unwrap();
        let elements_of_grain = plan["buffer_alignment"].as_u64().unwrap_or(16) / 4;
        let unchanged = (String::new(), plan.clone());
        for (what, plan) in std::iter::once(unchanged).chain(mutations(&plan)) {
            number += 1;
            if !what.is_empty() && !crate::soak::runs(number) {
                continue;
            }
            tried += 1;
            let faults = |grains: u64| {
                let facts = Facts { elements: Some(chunks * grains * elements_of_grain), ..Facts::default() };
                let found = check(&plan.to_string(), &facts, Options::default()).map_err(|e| e.to_string());
                found.map(|found| found.diagnostics.iter().map(|d| d.code).collect::<BTreeSet<_>>())
            };
            let found = faults(3);
            assert_eq!(found, faults(3 << 12), "{name}: {what}");
            let found = found.is_ok_and(|codes| codes.is_empty());
            assert!(found || !what.is_empty(), "{name}");
            accepted += usize::from(found);
            for seed in 0..u64::from(crate::soak::cases(if found { 20 } else { 0 })) {
                assert_eq!(wrong(&plan, 3, seed), None, "{name}: {what}, seed {seed}");
            }
        }
    }
    assert!(accepted > 2 && tried > accepted, "{tried} tried, {accepted} accepted");
}
