//! Networks from files that other programs write. The files imitate files that users posted; each names its source.

use unisono_machine::{
    Machine,
    network::{
        Architecture, Network, Topology,
        import::{FORMATS, ImportOptions},
    },
};

use crate::network::oracle;

const A100: &str = include_str!("../../../../fuzz/corpus/machine-import/dgx-a100.xml");
const DGX1: &str = include_str!("../../../../fuzz/corpus/machine-import/dgx1-v100.xml");
const MI250: &str = include_str!("../../../../fuzz/corpus/machine-import/mi250.xml");
const PCIE: &str = include_str!("../../../../fuzz/corpus/machine-import/pcie-v100.xml");
const H100: &str = include_str!("../../../../fuzz/corpus/machine-import/h100.xml");
const RING: &str = include_str!("../../../../fuzz/corpus/machine-import/ring.edges");

fn read_as(format: &str, text: &str, boxes: u32, accelerators: Option<u32>) -> Result<Network, String> {
    let format = FORMATS.iter().find(|f| f.name == format).unwrap();
    let read = format.read(text, "file", &ImportOptions { name: "mine", boxes, accelerators, names: None });
    let network = read.map_err(|e| e.to_string())?;
    let machine = Machine::from(network.clone());
    assert_eq!(Machine::from_toml(&machine.to_toml(), "printed").unwrap(), machine);
    Ok(network)
}

fn nccl(text: &str) -> (Network, Box<dyn Topology>) {
    let network = read_as("nccl-topo", text, 1, None).unwrap();
    let topology = network.topology("mine").unwrap();
    oracle::is_sound(&topology.plane().unwrap());
    (network, topology)
}

/// Returns the rate between two nodes in GB/s.
fn between(network: &Network, topology: &dyn Topology, a: u32, b: u32) -> f64 {
    let plane = topology.plane().unwrap();
    let links = plane.leaving(a).filter(|&id| plane.link(id).to == b);
    links.map(|id| network.link_speed(&plane, id).bytes_per_ns()).sum()
}

#[test]
fn an_a100_box_has_one_nvswitch_and_its_tree_of_pcie() {
    let (network, topology) = nccl(A100);
    let plane = topology.plane().unwrap();
    // One of five CPUs has no GPU, but has links to all other CPUs. There are eight PCIe switches, five CPUs and the
    // NVSwitch.
    assert_eq!((plane.accelerators(), plane.switches()), (8, 8 + 5 + 1));
    let nvswitch = plane.nodes() - 1;
    for gpu in 0..8 {
        // 12 links of 20 GB/s.
        assert_eq!(between(&network, &*topology, gpu, nvswitch), 240.0);
        // 16 lanes of the fourth generation.
        let rates: Vec<f64> = plane.leaving(gpu).map(|id| network.link_speed(&plane, id).bytes_per_ns()).collect();
        assert_eq!(rates, [24.0, 240.0]);
    }
    assert_eq!((network.own_speed().gbps, topology.diameter()), (8.0 * 240.0, 2));
    // The data sheet states 25 GB/s for a link.
    assert_eq!(network.link_gbps, 8.0 * 300.0);
}

#[test]
fn h100_boxes_join_by_their_interfaces() {
    let (network, topology) = nccl(H100);
    let nvswitch = topology.plane().unwrap().nodes() - 1;
    // 18 links of 20.6 GB/s.
    assert!((between(&network, &*topology, 3, nvswitch) - 370.8).abs() < 1e-9);
    let four = read_as("nccl-topo", H100, 4, None).unwrap();
    let cluster = four.topology("mine").unwrap();
    assert_eq!((cluster.name(), cluster.extents()), ("boxes", vec![4, 8]));
    let plane = cluster.plane().unwrap();
    // Each box has 8 interfaces, one for each GPU, and the NVSwitch. Each interface has a switch outside of the box,
    // and one switch joins these switches.
    assert_eq!(plane.switches(), 4 * 9 + 8 + 1);
    for shared in plane.nodes() - 9..plane.nodes() - 1 {
        let rates: Vec<f64> = plane.leaving(shared).map(|id| four.link_speed(&plane, id).gbps).collect();
        assert_eq!(rates, [384.0, 384.0, 384.0, 384.0, 4.0 * 384.0]);
    }
    oracle::is_minimal(&plane, &*cluster.routing(), cluster.lengths().as_deref());
}

#[test]
fn links_to_gpus_that_are_not_there_are_left_out() {
    let (network, topology) = nccl(DGX1);
    let rates = |a| (0..4).map(|b| between(&network, &*topology, a, b)).collect::<Vec<_>>();
    assert_eq!(rates(0), [0.0, 20.0, 20.0, 40.0]);
    assert_eq!(rates(1), [20.0, 0.0, 40.0, 20.0]);
    assert_eq!(rates(2), [20.0, 40.0, 0.0, 40.0]);
    assert_eq!(rates(3), [40.0, 20.0, 40.0, 0.0]);
    // The switches are the CPU and two PCIe switches.
    assert_eq!(topology.plane().unwrap().switches(), 3);
}

#[test]
fn dies_on_xgmi() {
    let (network, topology) = nccl(MI250);
    let plane = topology.plane().unwrap();
    // The only switch is the CPU; the interface of 1 Gb/s and its switch are omitted.
    assert_eq!((plane.accelerators(), plane.switches()), (8, 1));
    assert_eq!(between(&network, &*topology, 0, 1), 36.0);
    assert_eq!(between(&network, &*topology, 0, 3), 0.0);
    assert!((0..8).all(|die| plane.leaving(die).len() == 4));
}

/// Returns GPUs a and b with entries `<nvlink target count>` that have these counts.
fn two_gpus(of_a: &[u32], of_b: &[u32]) -> String {
    let gpu = |at: char, to: char, counts: &[u32]| {
        let links = counts.iter().map(|n| format!("<nvlink target='{to}' count='{n}' tclass='0x030200'/>"));
        let rank = u32::from(at == 'b');
        format!("<pci busid='{at}'><gpu rank='{rank}' sm='80'>{}</gpu></pci>", links.collect::<String>())
    };
    format!("<system><cpu>{}{}</cpu></system>", gpu('a', 'b', of_a), gpu('b', 'a', of_b))
}

#[test]
fn entries_of_one_end_add_up_and_those_of_two_ends_are_the_same_links() {
    for (of_a, of_b) in [(&[2][..], &[2][..]), (&[1, 1], &[2]), (&[2], &[1, 1]), (&[1, 1], &[1, 1]), (&[2], &[])] {
        let (network, topology) = nccl(&two_gpus(of_a, of_b));
        assert_eq!(between(&network, &*topology, 0, 1), 2.0 * 20.0, "{of_a:?} {of_b:?}");
    }
}

#[test]
fn cpus_are_linked_at_the_rate_of_their_model() {
    for (cpu, expected) in [
        ("arch='x86_64' vendor='AuthenticAMD' familyid='143' modelid='49'", 16.0),
        ("arch='x86_64' vendor='AuthenticAMD' familyid='23' modelid='49'", 16.0),
        ("arch='x86_64' vendor='AuthenticAMD' familyid='175' modelid='1'", 24.0),
        ("arch='x86_64' vendor='AuthenticAMD' familyid='25' modelid='1'", 24.0),
        ("arch='x86_64' vendor='AuthenticAMD' familyid='191' modelid='2'", 32.0),
        ("arch='x86_64' vendor='AuthenticAMD' familyid='26' modelid='2'", 32.0),
        ("arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='79'", 6.0),
        ("arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='85'", 10.0),
        ("arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='143'", 22.0),
        ("arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='173'", 40.0),
        ("arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='207'", 40.0),
        ("arch='x86_64' vendor='GenuineIntel' familyid='15' modelid='207'", 6.0),
        ("arch='x86_64' vendor='CentaurHauls' familyid='7' modelid='91'", 9.0),
        ("arch='x86_64' vendor='  Shanghai  ' familyid='7' modelid='90'", 6.0),
        ("arch='x86_64' vendor='Another'", 5000.0),
        ("arch='arm64'", 6.0),
        ("arch='ppc64'", 32.0),
    ] {
        let half =
            |bus: char| format!("<cpu {cpu}><pci busid='{bus}'><gpu rank='{}'/></pci></cpu>", u32::from(bus == 'b'));
        let (network, topology) = nccl(&format!("<system>{}{}</system>", half('a'), half('b')));
        assert_eq!(between(&network, &*topology, 2, 3), expected, "{cpu}");
    }
}

/// NVLink reaches other hosts through shared NVSwitches.
#[test]
fn hosts_on_one_nvswitch_are_one_machine() {
    let host = |name: u32| {
        format!(
            "<cpu host_hash='{name}'><pci busid='a'><gpu rank='0' sm='100'><nvlink target='c' count='18' tclass='0x068000'/></gpu></pci></cpu>"
        )
    };
    let (network, topology) = nccl(&format!("<system>{}{}</system>", host(1), host(2)));
    let plane = topology.plane().unwrap();
    assert_eq!((plane.accelerators(), plane.switches()), (2, 1));
    assert_eq!(between(&network, &*topology, 0, 2), 18.0 * 40.1);
}

#[test]
fn pcie_without_speeds_is_of_the_third_generation() {
    let (network, topology) = nccl(PCIE);
    let plane = topology.plane().unwrap();
    assert_eq!((plane.accelerators(), plane.switches(), topology.diameter()), (8, 3, 4));
    assert!(plane.is_uniform());
    assert_eq!(network.own_speed().gbps, 96.0);
}

#[test]
fn ranks_number_the_gpus_where_they_are_unlike() {
    let turned = DGX1.replace("rank=\"0\"", "rank=\"9\"");
    let (network, topology) = nccl(&turned);
    // After the change of ranks, the former GPU 0 has the last number.
    assert_eq!(between(&network, &*topology, 3, 2), 40.0);
    assert_eq!(between(&network, &*topology, 3, 0), 20.0);
    let equal = DGX1.replace("rank=\"1\"", "rank=\"0\"");
    let e = read_as("nccl-topo", &equal, 1, None).unwrap_err();
    assert!(e.contains("two GPUs have rank 0; accepted is a rank of its own for each"), "{e}");
}

#[test]
fn lists_of_cables() {
    let all = read_as("edges", RING, 1, None).unwrap();
    assert_eq!(all.topology("mine").unwrap().accelerators(), 4);
    assert_eq!(all.link_gbps, 100.0);
    let two = read_as("edges", RING, 1, Some(2)).unwrap().topology("mine").unwrap();
    assert_eq!((two.accelerators(), two.plane().unwrap().switches()), (2, 2));
}

#[test]
fn what_is_no_topology_is_refused_in_one_sentence() {
    let nccl = |text: &str| read_as("nccl-topo", text, 1, None).unwrap_err();
    assert_eq!(nccl(""), "file, line 1: there is no <system> element");
    assert_eq!(nccl("hello"), "file, line 1: 'hello' stands where an element is expected");
    assert_eq!(nccl("<graphs/>"), "file, line 1: <graphs> is not <system>; accepted are files of NCCL_TOPO_DUMP_FILE");
    assert_eq!(
        nccl("<system><cpu/></system>"),
        "file: the topology has no GPUs; run the program that writes it on all of them"
    );
    let gpu = "<pci busid='0000:01:00.0'><gpu rank='0' dev='0' sm='80'/></pci>";
    assert_eq!(
        nccl(&format!("<system><cpu>\n{gpu}\n{gpu}</cpu></system>")),
        "file, line 3: two GPUs have the busid 0000:01:00.0"
    );
    let link = "<pci busid='1'><gpu rank='0' sm='80'>\n<nvlink target='2' tclass='0x068000' count='-1'/></gpu></pci>";
    assert!(nccl(&format!("<system><cpu>{link}</cpu></system>")).starts_with("file, line 2: count=\"-1\" of <nvlink>"));
    assert!(nccl(&format!("<system>{}</system>", "<cpu/>".repeat(1025))).contains("more than 1024 <cpu>"));
    let apart = "<system><cpu host_hash='1'><pci busid='1'><gpu rank='0'/></pci></cpu><cpu host_hash='2'><pci busid='1'><gpu rank='0'/></pci></cpu></system>";
    assert!(nccl(apart).contains("has GPUs of 2 hosts that no NVSwitch joins"));
    assert_eq!(
        read_as("nccl-topo", MI250.replace("speed=\"1000\"", "speed=\"x\"").as_str(), 1, None).unwrap_err(),
        "file, line 63: speed=\"x\" of <net>; accepted are whole numbers from -2147483648 to 1099511627776"
    );
    let no_nics = read_as("nccl-topo", DGX1, 2, None).unwrap_err();
    assert_eq!(no_nics, "file: the topology has no network interfaces that could join several boxes");
    assert!(read_as("nccl-topo", DGX1, 1, Some(2)).unwrap_err().contains("states which nodes are accelerators"));
    assert_eq!(
        read_as("edges", "# none", 1, None).unwrap_err(),
        "file: the file has no cables; a cable is a line 'A B'"
    );
    assert!(
        read_as("edges", "<system/>", 1, None)
            .unwrap_err()
            .starts_with("file: line 1 of the cables is '<system/>': it has")
    );
    assert!(read_as("edges", RING, 2, None).unwrap_err().contains("boxes repeat a topology of NCCL"));
}

/// Returns a box with an NVSwitch, whose GPUs have these numbers of links.
fn behind_a_switch(links: &[u32]) -> String {
    let gpu = |(at, n): (usize, &u32)| {
        let link = if *n == 0 { String::new() } else { format!("<nvlink target='s' count='{n}' tclass='0x068000'/>") };
        format!("<pci busid='g{at}' class='0x030200'><gpu dev='{at}' rank='{at}' sm='90'>{link}</gpu></pci>")
    };
    format!("<system><cpu>{}</cpu></system>", links.iter().enumerate().map(gpu).collect::<String>())
}

#[test]
fn gpus_whose_links_are_unlike_those_of_the_others_are_named() {
    for odd in 0..8 {
        for left in [0, 17] {
            let mut links = [18; 8];
            links[odd] = left;
            let (network, _) = nccl(&behind_a_switch(&links));
            let note = network.notes.last().unwrap();
            let rate = if left == 0 { "no NVLink or xGMI" } else { "350.2 GB/s" };
            assert!(note.contains(&format!("GPU {odd} ({rate})")) && note.contains("(370.8 GB/s)"), "{note}");
        }
    }
    // Regular boxes, and boxes without such links, have only two notes: on assumed values, and on switches that reduce.
    for text in [A100, DGX1, MI250, PCIE, H100, &behind_a_switch(&[18; 8]), &behind_a_switch(&[0; 4])] {
        let (network, _) = nccl(text);
        assert!(network.notes[0].contains("gamma_ns_per_byte"));
        let known = |note: &String| note.contains("NVLink SHARP") || note.starts_with("assumed");
        assert!(network.notes[1..].iter().all(known), "{:?}", network.notes);
    }
}

/// There is one sentence for each property in which devices differ.
#[test]
fn devices_that_are_unlike_the_others_are_named() {
    let gpu = |at: usize, width: u32, gdr: u32| {
        format!(
            "<pci busid='g{at}' link_speed='32.0 GT/s PCIe' link_width='{width}'><gpu rank='{at}' sm='80' gdr='{gdr}'/></pci>"
        )
    };
    let nic = |at: usize, width: u32, net: &str| {
        format!(
            "<pci busid='n{at}' link_speed='16.0 GT/s PCIe' link_width='{width}'><nic><net name='n{at}' dev='{at}' {net}/></nic></pci>"
        )
    };
    let fast = "speed='200000' gdr='1'";
    // Each case has the widths and `gdr` of four GPUs, the widths and attributes of four network interfaces, and the
    // sentences.
    let whole = ([16; 4], [1; 4], [16; 4], [fast; 4]);
    type Case<'a> = (([u32; 4], [u32; 4], [u32; 4], [&'a str; 4]), &'a [&'a str]);
    let cases: &[Case] = &[
        (whole, &[]),
        (([16, 16, 16, 4], whole.1, whole.2, whole.3), &["GPU 3 has 12.0 GB/s over PCIe, and the rest 48.0"]),
        (
            ([16, 8, 16, 4], whole.1, whole.2, whole.3),
            &["GPUs 1, 3 have 12.0 and 24.0 GB/s over PCIe, and the rest 48.0"],
        ),
        ((whole.0, [1, 0, 1, 1], whole.2, whole.3), &["GPU 1 has gdr=\"0\": NCCL sends its traffic"]),
        ((whole.0, [0; 4], whole.2, whole.3), &["all 4 GPUs have gdr=\"0\""]),
        (
            (whole.0, whole.1, [16, 8, 16, 16], whole.3),
            &["network interface n1 has 12.0 GB/s over PCIe, and the rest 24.0"],
        ),
        (
            (whole.0, whole.1, whole.2, [fast, "speed='100000'", fast, fast]),
            &["network interface n1 has 100 Gb/s, and the rest 200"],
        ),
        (
            (whole.0, whole.1, whole.2, ["", fast, "speed='-1'", "speed='200000' gdr='0'"]),
            &[
                "network interface n3 has gdr=\"0\"",
                "network interfaces n0, n2 state no speed, or -1, and count as 10 Gb/s",
            ],
        ),
    ];
    for ((widths, gdr, ways, nets), said) in cases {
        let gpus = (0..4).map(|at| gpu(at, widths[at], gdr[at])).collect::<String>();
        let nics = (0..4).map(|at| nic(at, ways[at], nets[at])).collect::<String>();
        let network = nccl(&format!("<system><cpu>{gpus}{nics}</cpu></system>")).0;
        let notes: Vec<_> = network.notes.iter().filter(|note| !note.starts_with("assumed")).collect();
        assert_eq!(notes.len(), said.len(), "{notes:?}");
        for (note, said) in notes.iter().zip(*said) {
            assert!(note.starts_with(said), "{note}");
        }
    }
    // A path may be narrow above the GPU. The network interfaces of a single GPU are omitted.
    let behind = format!("<pci busid='s' link_speed='32.0 GT/s PCIe' link_width='8'>{}</pci>", gpu(1, 16, 1));
    let notes = nccl(&format!("<system><cpu>{}{behind}</cpu></system>", gpu(0, 16, 1))).0.notes;
    assert!(notes.iter().any(|note| note.starts_with("GPU 1 has 24.0 GB/s over PCIe")), "{notes:?}");
    let alone = format!("<system><cpu>{}{}</cpu></system>", gpu(0, 16, 1), nic(0, 16, fast));
    let notes = nccl(&alone).0.notes;
    assert!(notes.iter().any(|note| note.contains("its network interface is left out: --boxes N")), "{notes:?}");
    let joined = read_as("nccl-topo", &alone, 2, None).unwrap();
    assert!(joined.notes.iter().all(|note| note.starts_with("assumed")), "{:?}", joined.notes);
}

/// Without an error, an invalid number or a missing architecture would silently describe another GPU.
#[test]
fn numbers_of_gpus_are_numbers() {
    let text = behind_a_switch(&[18; 2]).replace("class='0x030200'", "link_width='16' link_speed='32.0 GT/s PCIe'");
    let error = |text: &str| read_as("nccl-topo", text, 1, None).unwrap_err();
    for (key, was) in [("sm", "90"), ("rank", "1"), ("dev", "1"), ("count", "18"), ("link_width", "16")] {
        for now in ["9O", "\u{a0}9", "x"] {
            let e = error(&text.replacen(&format!(" {key}='{was}'"), &format!(" {key}='{now}'"), 1));
            assert!(e.starts_with(&format!("file, line 1: {key}=\"{now}\" of <")), "{e}");
        }
    }
    assert_eq!(error(&text.replacen(" sm='90'", "", 1)), "file, line 1: <gpu> has no attribute sm");
    let notes = |speed: &str| nccl(&text.replace("32.0 GT/s PCIe", speed)).0.notes;
    for (speed, known) in [("32.0 GT/s PCIe", true), ("", true), ("8 GT/s", true), ("32,0 GT/s", false)] {
        let said = notes(speed).iter().any(|note| note.contains(&format!("link_speed '{speed}' is not known")));
        assert_eq!(said, !known, "{speed}");
    }
}

/// A note names the elements that NCCL omits.
#[test]
fn what_nccl_leaves_out_is_named() {
    let gpu = |at: usize, gpus: &str| format!("<pci busid='{at}'>{gpus}</pci>");
    let ranked = |at: usize| format!("<gpu rank='{at}' sm='80'/>");
    let nic = |nets: &str| format!("<nic>{nets}</nic>");
    let net = "<net dev='0' speed='200000'/>";
    let (two, more) = (format!("{}{}", gpu(0, &ranked(0)), gpu(1, &ranked(1))), gpu(2, "<gpu sm='80'/>"));
    let cases: &[(String, u32, f64, &str)] = &[
        (gpu(3, &nic(net)), 2, 25.0, ""),
        (gpu(3, &format!("{}{}", nic(net), nic(net))), 2, 25.0, "the second <nic> of 3 in line 1"),
        (gpu(3, &nic(&format!("{net}{net}"))), 2, 50.0, ""),
        (gpu(3, &nic(&format!("{net}<net speed='200000'/>"))), 2, 25.0, "the <net> in line 1, which has no dev"),
        (gpu(3, &nic(&format!("{net}<net dev='1' net='0'/>"))), 2, 25.0, "which is no network device"),
        (gpu(3, &nic("<net dev='0' speed='-1'/>")), 2, 1.25, ""),
        (format!("{}{more}", gpu(3, &nic(net))), 2, 25.0, "the <gpu> of 2 in line 1, which has no rank"),
        (gpu(3, &format!("{}{}", ranked(2), nic(net))), 3, 25.0, ""),
    ];
    for (part, gpus, gbytes, said) in cases {
        let text = format!("<system><cpu>{two}{part}</cpu></system>");
        let network = read_as("nccl-topo", &text, 2, None).unwrap();
        let topology = network.whole_topology("file").unwrap();
        assert_eq!(topology.accelerators(), 2 * gpus, "{part}");
        let uplinks = network.topology["uplinks"].as_str().unwrap();
        assert!(uplinks.contains(&format!("gbps={} ", 8.0 * gbytes)) && uplinks.lines().count() == 1, "{uplinks}");
        let notes: Vec<_> = network.notes.iter().filter(|note| note.contains("NCCL leaves out")).collect();
        assert_eq!(notes.len(), usize::from(!said.is_empty()), "{notes:?}");
        assert!(notes.iter().all(|note| note.contains(said)), "{notes:?}");
    }
    let e = read_as("nccl-topo", &format!("<system><cpu>{more}</cpu></system>"), 1, None).unwrap_err();
    assert!(e.contains("no GPUs; NCCL leaves out the <gpu> of 2 in line 1, which has no rank"), "{e}");
}

/// Several ranks of one device (NCCL, MLOPart), in the form of NVIDIA's documentation of NCCL.
#[test]
fn partitions_of_a_device_are_gpus_of_their_own() {
    let part = |rank: &str| {
        format!(
            "<gpu dev='0' sm='107' rank='{rank}'><nvlink target='fffffff:ff:ff.0' count='36' tclass='0x068000'/></gpu>"
        )
    };
    let device = |bus: u32, ranks: &[&str]| {
        format!(
            "<pci busid='000{bus}:81:00.0' class='0x030200'>{}</pci>",
            ranks.iter().copied().map(part).collect::<String>()
        )
    };
    let text = format!("<system><cpu>{}{}</cpu></system>", device(0, &["0", "1"]), device(1, &["2", "3"]));
    let (network, topology) = nccl(&text);
    // The switches are the NVSwitch, the CPU, and a PCIe node for each device.
    assert_eq!((topology.accelerators(), topology.plane().unwrap().switches()), (4, 4));
    let nvswitch = topology.plane().unwrap().nodes() - 1;
    assert!((0..4).all(|gpu| (between(&network, &*topology, gpu, nvswitch) - 36.0 * 40.1).abs() < 1e-9));
    for ranks in [&["0", "0"][..], &["0", ""]] {
        let text = format!("<system><cpu>{}{}</cpu></system>", device(0, ranks), device(1, &["2"]));
        let e = read_as("nccl-topo", &text, 1, None).unwrap_err();
        assert!(e.contains("ranks do not differ"), "{e}");
    }
}

#[test]
fn gpus_of_nvidia_are_stated_with_their_links() {
    let (network, _) = nccl(&behind_a_switch(&[18, 18, 17]));
    let gpu = network.gpu.expect("all GPUs state their sm");
    assert_eq!((gpu.architecture, gpu.nvlinks), (Architecture::Hopper, Some(18)));
    // A GPU without `sm` may be of another maker.
    let none =
        "<system><cpu><pci busid='1'><gpu rank='0'/></pci><pci busid='2'><gpu rank='1' sm='80'/></pci></cpu></system>";
    assert_eq!(nccl(none).0.gpu, None);
}

#[test]
fn each_gpu_of_amd_with_a_rate_has_an_architecture() {
    for (gcn, architecture, gbps) in [
        ("gfx90a", Architecture::Cdna2, 36.0),
        ("910", Architecture::Cdna2, 36.0),
        ("gfx942", Architecture::Cdna3, 48.0),
        ("gfx950", Architecture::Cdna4, 48.0),
    ] {
        let (network, topology) = nccl(&MI250.replace("gcn=\"910\"", &format!("gcn=\"{gcn}\"")));
        assert_eq!(network.gpu.map(|gpu| gpu.architecture), Some(architecture), "{gcn}");
        assert_eq!(between(&network, &*topology, 0, 1), gbps, "{gcn}");
    }
}
