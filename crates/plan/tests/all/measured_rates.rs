//! The two sides of a network: bounds read the data sheet, predictions and simulations what was measured.

use std::fmt::Write;

use proptest::prelude::*;
use unisono_algorithms::Params;
use unisono_collective::Kind;
use unisono_machine::{Machine, network::Network};
use unisono_plan::{Asked, BoundCertificate, Part, Plan, Problem, plan as plan_of};

/// A cable between two nodes: its rate, and the share of it that was measured.
type Wire = (u32, u32, f64, Option<f64>);

/// GPUs around a switch that copies and reduces, with further cables between them.
#[derive(Clone, Debug)]
struct Server {
    gpus: u32,
    wires: Vec<Wire>,
    own_share: Option<f64>,
    starts_ns: [u32; 2],
    pulls: bool,
    switch_share: Option<f64>,
}

impl Server {
    fn machine(&self, is_measured: bool) -> Machine {
        let mut edges = String::new();
        let hub = (0..self.gpus).map(|gpu| (gpu, self.gpus, 400.0, None));
        for (a, b, gbps, share) in hub.chain(self.wires.iter().copied()) {
            let _ = write!(edges, "{a} {b}");
            if gbps != 400.0 {
                let _ = write!(edges, " gbps={gbps}");
            }
            if let Some(share) = share.filter(|_| is_measured) {
                let _ = write!(edges, " measured={}", gbps * share);
            }
            edges.push('\n');
        }
        let mut own = String::new();
        let mut switch = format!("pulls = {}\n", self.pulls);
        if is_measured {
            let [launch, signal] = self.starts_ns;
            let _ = writeln!(own, "launch_ns = {launch}\nsignal_ns = {signal}");
            if let Some(share) = self.own_share {
                let _ = writeln!(own, "measured_gbps = {}", 400.0 * share);
            }
            if let Some(share) = self.switch_share {
                let _ = writeln!(switch, "measured_share = {share}");
            }
        }
        let text = format!(
            "name = 'server'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\n{own}link_latency_ns = 100\n\
             input_latency_ns = 0\noutput_latency_ns = 0\npacket_bytes = 4096\nbuffer_bytes = 4194304\n\
             send_machines = 1\nsend_machines_per = 'link'\n\
             [topology]\nname = 'graph'\naccelerators = {}\nedges = '''\n{edges}'''\n\
             [[switches]]\nmulticast = true\noperators = ['sum']\n{switch}",
            self.gpus
        );
        Machine::from_toml(&text, "server").unwrap_or_else(|e| panic!("{e}"))
    }
}

fn server() -> impl Strategy<Value = Server> {
    let share = || prop::option::of(prop::sample::select(vec![0.3, 0.5, 0.8, 0.95, 1.0]));
    (3_u32..6).prop_flat_map(move |gpus| {
        let wire = (0..gpus, 1..gpus, prop::sample::select(vec![100.0, 400.0, 1000.0]), share());
        let wires = prop::collection::vec(wire, 0..5).prop_map(move |all| {
            all.into_iter().map(|(a, step, gbps, share)| (a, (a + step) % gpus, gbps, share)).collect()
        });
        let starts = [0_u32..3000, 0_u32..3000];
        (wires, share(), starts, any::<bool>(), share()).prop_map(
            move |(wires, own_share, starts_ns, pulls, switch_share)| Server {
                gpus,
                wires,
                own_share,
                starts_ns,
                pulls,
                switch_share,
            },
        )
    })
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![Kind::Allreduce, Kind::Allgather, Kind::Alltoall, Kind::Broadcast, Kind::ReduceScatter])
}

fn planned(machine: &Machine, kind: Kind, elements: u64, model: Option<&str>) -> Plan {
    let asked = Asked { model, ..Asked::new(kind, machine, Part::All, elements) };
    plan_of(Problem::new(&asked).unwrap(), None, &Params::new()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The bound of the data sheet is that of the machine without its measured side, and no time is below it.
    #[test]
    fn times_are_at_least_the_bound_of_the_data_sheet(
        server in server(), kind in kinds(), elements in prop::sample::select(vec![8_u64, 50_000]),
    ) {
        let [machine, sheet] = [true, false].map(|measured| server.machine(measured));
        let plan = planned(&machine, kind, elements, None);
        let bound = plan.bound().unwrap().seconds;
        prop_assert!((bound - planned(&sheet, kind, elements, None).bound().unwrap().seconds).abs() <= 1e-9 * bound);
        prop_assert!(plan.best().time.seconds >= bound * (1.0 - 1e-9));
        let simulated = planned(&machine, kind, elements, Some("packets")).best().time.seconds;
        prop_assert!(simulated >= bound * (1.0 - 1e-9));
        if kind != Kind::Alltoall {
            let certificate = plan.problem.target.certificate(plan.problem.collective).unwrap();
            let proof = certificate.check(&machine, &Part::All).unwrap();
            prop_assert!(proof.holds && proof.seconds.unwrap() <= bound * (1.0 + 1e-9));
            prop_assert!(BoundCertificate::parse(&certificate.to_json()).unwrap().check(&sheet, &Part::All).unwrap().holds);
        }
    }

    /// The model of the data sheet times a machine as the same one without its measured side.
    #[test]
    fn the_data_sheet_is_the_machine_without_what_was_measured(
        server in server(), kind in kinds(), elements in prop::sample::select(vec![8_u64, 50_000]),
    ) {
        let [machine, sheet] = [true, false].map(|measured| server.machine(measured));
        prop_assert_eq!(&machine.get::<Network>().unwrap().data_sheet(), sheet.get::<Network>().unwrap());
        let [by_model, alone] =
            [(&machine, Some("data-sheet")), (&sheet, None)].map(|(on, model)| planned(on, kind, elements, model));
        prop_assert_eq!(by_model.best().time.seconds, alone.best().time.seconds);
        prop_assert_eq!(by_model.report().unwrap().rates, Some("data-sheet"));
    }

    /// Sums that a switch pulls from n GPUs put 1 + 1/n of the vector on each link, at the share of its rate.
    #[test]
    fn pulled_sums_cross_the_links_of_who_asks_once_more(gpus in 2_u32..7, share in 0.2_f64..1.0, pulls: bool) {
        let server = Server {
            gpus, wires: Vec::new(), own_share: None, starts_ns: [0; 2], pulls, switch_share: Some(share),
        };
        let bytes = 4.0 * 100_000.0;
        let on_link = bytes * if pulls { 1.0 + 1.0 / f64::from(gpus) } else { 1.0 } / share / 50.0;
        for model in [None, Some("packets")] {
            let machine = server.machine(true);
            let asked = Asked { model, ..Asked::new(Kind::Allreduce, &machine, Part::All, 100_000) };
            let params = Params::new().with("embeddings", 1).with("chunks", 1);
            let plan = plan_of(Problem::new(&asked).unwrap(), Some("in-network"), &params).unwrap();
            let expected = 2.0 * (on_link + 100.0);
            prop_assert!((plan.best().time.seconds * 1e9 / expected - 1.0).abs() < 1e-3, "{:?}", plan.best().time);
        }
    }
}

/// A measured rate above that of the data sheet is refused in a sentence that names both keys.
#[test]
fn rates_above_the_data_sheet_are_refused() {
    let preset = |old: &str, new: &str| {
        let text = Machine::preset("dgx-a100-x2").unwrap().to_toml();
        assert!(text.contains(old), "{text}");
        Machine::from_toml(&text.replace(old, new), "file").unwrap_err().to_string()
    };
    let own = preset("measured_gbps = 1920.0", "measured_gbps = 2401.0");
    assert!(own.contains("measured_gbps is 2401.0") && own.contains("at most link_gbps"), "{own}");
    let cable = preset("0 9 gbps=200 measured=192", "0 9 gbps=200 measured=201");
    assert!(cable.contains("the cable '0 9 board gbps=200 measured=201") && cable.contains("at most its gbps="), "{cable}");
}
