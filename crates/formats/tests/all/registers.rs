//! Registers as text: written, read back, imported as a schedule with its placement, and damaged.

use proptest::prelude::*;
use unisono_algorithms::{ALGORITHMS, Case, Params, Profile, switches::Site};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_formats::{
    Emitter, Facts, Importer,
    registers::{Registers, parse, print},
};
use unisono_lower::{VerifiedFile, switches::Configured};
use unisono_machine::{InNetwork, Machine};
use unisono_schedule::verify::Method;

fn small(nodes: u32) -> InNetwork {
    let m = Machine::preset("piuma").unwrap().get::<InNetwork>().unwrap().clone();
    let m = InNetwork { cores_per_socket: 4, mesh: [2, 2], sockets_per_node: 4, ..m };
    InNetwork { socket_ports: vec![0, 1], node_ports: vec![3, 2], ..m }.with_nodes(nodes).unwrap()
}

fn registers(site: &Site, kind: Kind, embeddings: u32) -> Configured {
    let c = Collective::new(kind, site.ranks(), 8, 0, Operator::Sum, Dtype::F32).unwrap();
    let unit = ALGORITHMS.iter().find(|a| a.name() == "in-network").unwrap();
    let params = Params::new().with("embeddings", embeddings);
    let Some(Profile::Registers(made)) = unit.profile(&Case::on_switches(c, site), &params) else {
        panic!("it has registers")
    };
    made
}

#[test]
fn text_reads_back() {
    for (kind, nodes, embeddings) in
        [(Kind::Allreduce, 3, 2), (Kind::Reduce, 2, 1), (Kind::Scan, 1, 1), (Kind::Broadcast, 5, 3)]
    {
        let m = small(nodes);
        let site = if kind == Kind::Reduce { Site::on_nodes(&m, &[1]).unwrap() } else { Site::all(&m) };
        let made = registers(&site, kind, embeddings);
        let text = print(&m, &made);
        assert_eq!(parse(&text).unwrap(), (m.clone(), made));
        let file = Registers.import(&text, &Facts::default()).unwrap();
        let proven = VerifiedFile::new(&file, Method::Auto).unwrap();
        assert_eq!(Registers.emit(&proven).unwrap(), [("schedule.registers".to_owned(), text.clone().into())]);
        let broken = text.replacen("-> 0 sum vc", "-> 61 sum vc", 1);
        if broken != text {
            let error = Registers.import(&broken, &Facts::default()).unwrap_err().to_string();
            assert!(error.starts_with("the registers are wrong: switch"), "{error}");
        }
    }
    let m = small(1);
    let site = Site::all(&m);
    let text = print(&m, &registers(&site, Kind::Allreduce, 1));
    for (from, to, says) in [
        ("unisono registers 1", "unisono registers 9", "line 1: the first line is not"),
        ("switch 0 id", "switch x id", "line 5: 'x' is no number"),
        ("memory vc 1", "memery vc 1", "'memery' is no port"),
        ("\nmachine\n", "\nmachin\n", "the section 'machine' is missing"),
        ("ranks 0..15", "ranks 9..15 3..1", "'3..1' is no range of cores"),
    ] {
        let e = parse(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(e.contains(says), "{e}");
    }
}

proptest! {
    /// Damaged text is either imported or refused, and an imported schedule is checked: nothing panics.
    #[test]
    fn damaged_text_is_no_panic(at in any::<usize>(), with in "[ 0-9a-z,.-]{0,4}") {
        let m = small(1);
        let site = Site::all(&m);
        let text = print(&m, &registers(&site, Kind::Allreduce, 2));
        let mut at = at % text.len();
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let end = (at + 1..=text.len()).find(|&end| text.is_char_boundary(end)).unwrap();
        let damaged = format!("{}{with}{}", &text[..at], &text[end..]);
        if let Ok(file) = Registers.import(&damaged, &Facts::default()) {
            let _ = VerifiedFile::new(&file, Method::Auto);
        }
    }
}
