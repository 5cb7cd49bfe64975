//! Tests of `network::flow::max_min`.

use unisono_sim::network::flow::max_min::Flows;

/// There are three links in a row, a flow over all links and a flow over each link; the middle link has one more flow.
/// The middle link gives 1/3 to each of its three flows. The other links give the remaining 2/3 to their own flows.
#[test]
fn a_long_flow_takes_what_its_narrowest_link_gives() {
    let mut flows = Flows::new(vec![1.0; 3]);
    for flow in [&[(0, 1.0), (1, 1.0), (2, 1.0)][..], &[(0, 1.0)], &[(1, 1.0)], &[(1, 1.0)], &[(2, 1.0)]] {
        flows.push(flow);
    }
    let close = |found: Vec<f64>, wanted: [f64; 5]| {
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    };
    let third = 1.0 / 3.0;
    close(flows.rates(|_| true), [third, 2.0 * third, third, third, 2.0 * third]);
    close(flows.rates(|flow| flow != 2), [0.5, 0.5, 0.0, 0.5, 0.5]);
}

/// A link of rate 4 and a link of rate 1 are in a row, with one flow over both and two flows over the first. The flow
/// over both links gets 1, and the other flows share the remaining 3.
#[test]
fn wide_links_give_more() {
    let mut flows = Flows::new(vec![4.0, 1.0]);
    for flow in [&[(0, 1.0), (1, 1.0)][..], &[(0, 1.0)], &[(0, 1.0)]] {
        flows.push(flow);
    }
    assert_eq!(flows.rates(|_| true), [1.0, 1.5, 1.5]);
}

/// Half of a flow goes over each of two links; one of them has another flow.
#[test]
fn a_split_flow_uses_both_ways() {
    let mut flows = Flows::new(vec![1.0; 2]);
    flows.push(&[(0, 0.5), (1, 0.5)]);
    flows.push(&[(0, 1.0)]);
    let rates = flows.rates(|_| true);
    assert!((rates[0] - 2.0 / 3.0).abs() < 1e-12 && (rates[1] - 2.0 / 3.0).abs() < 1e-12, "{rates:?}");
}
