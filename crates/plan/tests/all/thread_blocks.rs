//! Times of plans whose thread blocks have a rate, compared with closed forms and measured times.

use std::fmt::Write;

use serde_json::{Value, json};
use unisono_algorithms::Params;
use unisono_base::mix;
use unisono_collective::Kind;
use unisono_emit::{EMITTERS, IMPORTERS};
use unisono_formats::{Emitter, Facts};
use unisono_gpu::Choices;
use unisono_lower::File;
use unisono_machine::{Machine, Shape};
use unisono_plan::{
    Format, Part, Problem, Request, RunOptions, TimeSource, Timed, place, plan, plan_for, simulate, written,
};
use unisono_schedule::verify::Method;

/// Returns the all-pairs allgather of MSCCL on 8 GPUs: each pair and instance has a thread block at both ends, which
/// sends its own chunk and then receives the other.
fn all_pairs(protocol: &str, instances: usize) -> String {
    let (n, k) = (8, instances);
    let mut text = format!(
        "<algo name=\"allpairs\" proto=\"{protocol}\" nchannels=\"{k}\" nchunksperloop=\"{}\" ngpus=\"{n}\" \
         coll=\"allgather\" inplace=\"1\" outofplace=\"0\" minBytes=\"0\" maxBytes=\"4294967296\">\n",
        n * k
    );
    for gpu in 0..n {
        let _ = writeln!(text, "<gpu id=\"{gpu}\" i_chunks=\"0\" o_chunks=\"{}\" s_chunks=\"0\">", n * k);
        let ends = (0..n).filter(|&peer| peer != gpu).flat_map(|peer| (0..k).map(move |chan| (peer, chan)));
        for (id, (peer, chan)) in ends.enumerate() {
            let step = |s: usize, kind: &str, owner: usize| {
                let at = owner * k + chan;
                format!(
                    "<step s=\"{s}\" type=\"{kind}\" srcbuf=\"o\" srcoff=\"{at}\" dstbuf=\"o\" dstoff=\"{at}\" cnt=\"1\" \
                     depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>"
                )
            };
            let steps = step(0, "s", gpu) + &step(1, "r", peer);
            let _ = writeln!(text, "<tb id=\"{id}\" send=\"{peer}\" recv=\"{peer}\" chan=\"{chan}\">{steps}</tb>");
        }
        text += "</gpu>\n";
    }
    text + "</algo>\n"
}

/// Returns the simulated time of an MSCCL text in microseconds, for an allgather to `bytes` bytes.
fn simulated(text: &str, machine: &Machine, bytes: u64) -> f64 {
    let importer = IMPORTERS.iter().find(|i| i.name() == "msccl-xml").unwrap();
    let facts = Facts { elements: Some(bytes / 4 / 8), ..Facts::default() };
    time_of(importer.import(text, &facts).unwrap(), machine) * 1e6
}

fn time_of(file: File, machine: &Machine) -> f64 {
    let placement = place(&file, machine, &Part::All).unwrap();
    let file = File { placement, machine: Some(machine.clone()), ..file };
    let proven = unisono_lower::VerifiedFile::new(&file, Method::Auto).unwrap();
    simulate(&proven, &RunOptions::default()).unwrap().seconds
}

const SIZES: [u64; 4] = [1 << 16, 1 << 20, 1 << 24, 1 << 28];

/// The measured microseconds on 8 MI300X, in place, by instances and size: github.com/rouge3877/ns3-msccl-data, commit
/// 76fd624.
const MEASURED: [(&str, [[f64; 4]; 4]); 2] = [
    (
        "Simple",
        [
            [11.06, 24.1, 206.2, 3183.2],
            [10.43, 17.97, 113.5, 1647.6],
            [10.24, 13.89, 83.31, 1090.5],
            [10.97, 13.54, 70.37, 954.6],
        ],
    ),
    (
        "LL",
        [
            [10.52, 90.04, 1377.9, 21838.0],
            [8.24, 47.19, 691.1, 11039.0],
            [7.19, 26.19, 352.1, 5577.5],
            [9.21, 16.93, 187.0, 2840.8],
        ],
    ),
];

/// Returns the machine with longer packets for long vectors, which changes times by less than one per cent.
fn coarse(machine: &Machine, bytes: u64) -> Machine {
    if bytes < 1 << 24 { machine.clone() } else { machine.with_value("packet_bytes", "65536").unwrap() }
}

fn predicted(machine: &Machine) -> Vec<(f64, f64)> {
    let mut pairs = Vec::new();
    for (protocol, rows) in MEASURED {
        for (n, row) in rows.iter().enumerate() {
            let text = all_pairs(protocol, 1 << n);
            pairs.extend(SIZES.iter().zip(row).map(|(&b, &m)| (simulated(&text, &coarse(machine, b), b), m)));
        }
    }
    pairs
}

/// Returns the rank of each value in ascending order. Equal values get the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |v: f64| values.iter().filter(|w| **w < v).count() as f64;
    let equal = |v: f64| values.iter().filter(|w| **w == v).count() as f64;
    values.iter().map(|&v| below(v) + equal(v) / 2.0).collect()
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (x, y) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(&a, &b)| f(a - x, b - y)).sum::<f64>();
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

#[test]
#[expect(clippy::print_stdout, reason = "the rows of the table in docs/gpu-plans.md")]
fn an_allgather_takes_the_measured_times_by_protocol_instances_and_size() {
    let pairs = predicted(&Machine::preset("mi300x").unwrap());
    for (pair, chunk) in pairs.chunks(4).enumerate() {
        let shown: Vec<String> =
            chunk.iter().map(|(p, m)| format!("{p:.1}/{m:.1} {:+.0} %", (p / m - 1.0) * 100.0)).collect();
        println!("{} x{}: {}", MEASURED[pair / 4].0, 1 << (pair % 4), shown.join(", "));
    }
    let (predicted, measured): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let order = correlation(&ranks(&predicted), &ranks(&measured));
    let error = |some: &[(f64, f64)]| {
        let mut errors: Vec<f64> = some.iter().map(|(p, m)| (p / m - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors[errors.len() / 2]
    };
    println!("order {order:.3}, errors {:.3} {:.3} {:.3}", error(&pairs), error(&pairs[..16]), error(&pairs[16..]));
    assert!(order > 0.95, "{order}");
    for some in [&pairs[..], &pairs[..16], &pairs[16..]] {
        assert!(error(some) < 0.2, "{}", error(some));
    }
}

/// The measured rate of a link of `mi300x`, in bytes per microsecond.
const LINK: f64 = 48e3;

/// A thread block first sends its chunk and then receives one, each at twice its rate for both; all blocks of a link
/// share the link. So the rate of the blocks determines the time of long vectors, as long as the link is faster than
/// its blocks.
#[test]
fn a_thread_block_moves_at_its_rate_and_shares_its_link() {
    let started = Machine::preset("mi300x").unwrap();
    let machine = started.with_value("launch_ns", "0").unwrap().with_value("signal_ns", "0").unwrap();
    for (rate, instances) in [(2.0, 1), (2.0, 4), (5.0, 2), (10.0, 1)] {
        let block = format!("{{ simple = {{ gb_per_second = {rate:?} }} }}");
        let machine = coarse(&machine.with_value("thread_block", &block).unwrap(), 1 << 24);
        let us = simulated(&all_pairs("Simple", instances), &machine, 1 << 24);
        let closed = (1 << 21) as f64 / instances as f64 / rate / 1e3;
        assert!((us / closed - 1.0).abs() < 0.05, "{rate} GB/s, {instances} instances: {us} and {closed}");
    }
    // If the rate of a thread block is ten times that of the link, data passes once at the rate of the link, and twice
    // at the rate of the block.
    let machine =
        coarse(&machine.with_value("thread_block", "{ simple = { gb_per_second = 640.0 } }").unwrap(), 1 << 24);
    let us = simulated(&all_pairs("Simple", 1), &machine, 1 << 24);
    let link = (1 << 21) as f64 / LINK;
    assert!(us > link && us < 1.15 * link, "{us} and {link}");
}

#[test]
fn protocols_have_their_own_rates_bytes_starts_and_messages() {
    let plain = Machine::preset("mi300x").unwrap().with_value("thread_block", "{}").unwrap();
    let with = |block: &str| plain.with_value("thread_block", block).unwrap();
    let bytes = 1 << 20;
    let us = |protocol: &str, machine: &Machine| simulated(&all_pairs(protocol, 1), machine, bytes);
    // Without rates of thread blocks, only the flags of a protocol take time, on links.
    let [simple, ll, ll128] = ["Simple", "LL", "LL128"].map(|protocol| us(protocol, &plain));
    let wire = (bytes / 8) as f64 / LINK;
    assert!((ll - simple - wire).abs() < 0.1 * wire, "{simple} {ll}");
    assert!((ll128 - simple - wire / 15.0).abs() < 0.1 * wire, "{simple} {ll128}");
    let late = with("{ ll = { start_ns = 5000.0, message_ns = 2000.0 } }");
    assert!((us("LL", &late) - ll - 7.0).abs() < 0.01);
    assert!((us("Simple", &late) - simple).abs() < 1e-6);
}

fn emitter(name: &str) -> &'static dyn Emitter {
    *EMITTERS.iter().find(|e| e.name() == name).unwrap()
}

fn time_of_candidate(request: &Request<'_>, candidate: &Timed, format: &str) -> Option<f64> {
    let plan = plan(Problem::new(request).unwrap(), Some(candidate.algorithm.name()), &candidate.params).unwrap();
    let file = plan.file().unwrap();
    let proven = unisono_lower::VerifiedFile::new(&file, Method::Auto).unwrap();
    let (_, time) = written(emitter(format), &proven, &Choices::default()).ok()?;
    Some(time?.seconds)
}

/// The time of a plan for a format is that of its file. The files of other candidates are at most a twentieth faster.
/// Candidates with far longer predictions are too many to be checked.
fn hold_the_law(machine: &Machine, kind: Kind, elements: u32, format: &str) {
    let (request, case) =
        (Request::new(kind, machine, Part::All, elements.into()), format!("{kind} {elements} {format}"));
    let form = Some(Format::named(format, None).unwrap());
    let plan = plan_for(Problem::new(&request).unwrap(), None, &Params::new(), form).unwrap();
    let file = plan.file().unwrap();
    let proven = unisono_lower::VerifiedFile::new(&file, Method::Auto).unwrap();
    let (files, time) = written(emitter(format), &proven, &Choices::default()).unwrap();
    let best = plan.best().time.seconds;
    assert_eq!(time.unwrap().seconds, best, "{case}");
    let importer = IMPORTERS.iter().find(|i| i.name() == format).unwrap();
    let read = importer.import(files[0].1.text().unwrap(), &Facts::default()).unwrap();
    assert_eq!(time_of(read, machine), best, "{case}");
    let others = plan.candidates.iter().skip(1).filter(|other| other.time.seconds <= 3.0 * best);
    for other in others.take(if crate::soak::is_on() { 24 } else { 8 }) {
        if let Some(seconds) = time_of_candidate(&request, other, format) {
            let name = other.algorithm.name();
            // A simulated time must be that of the file.
            let is_exact = other.source != TimeSource::Simulated || seconds == other.time.seconds;
            assert!(is_exact, "{case}: {name} {} takes {seconds}, not {:?}", other.params, other.time);
            assert!(
                seconds >= best / 1.05,
                "{case}: {name} {} takes {seconds}, the plan {best}\n{}",
                other.params,
                machine.to_toml()
            );
        }
    }
}

#[test]
fn a_plan_for_a_format_has_the_time_of_the_file() {
    let cases = [
        ("mi300x", "msccl-xml", Kind::Allgather, 1 << 14),
        ("dgx-a100", "mscclpp", Kind::Allreduce, 1 << 12),
        ("dgx-h100", "mscclpp", Kind::Allreduce, 1 << 20),
    ];
    // The cases of MSCCL++ take as long as all other tests of thread blocks.
    for (name, format, kind, bytes) in cases.into_iter().take(if crate::soak::is_on() { 3 } else { 1 }) {
        hold_the_law(&Machine::preset(name).unwrap(), kind, bytes / 4, format);
    }
}

/// Returns a few GPUs, each with a link to every other GPU or to a switch that reduces, and rates of thread blocks.
fn few_gpus(below: &mut impl FnMut(u64) -> u64) -> Machine {
    let gpus = below(3) + 2;
    let is_star = below(2) == 0;
    let pairs = |n: u64| (0..n).map(move |m| format!("{m} {n}"));
    let edges: Vec<String> = if is_star { pairs(gpus).collect() } else { (1..gpus).flat_map(pairs).collect() };
    let pulls = below(2) == 0;
    let switch = format!("\n[[switches]]\nmulticast = true\noperators = [\"sum\"]\npulls = {pulls}");
    let switch = if is_star { &*switch } else { "" };
    let mut rates = String::new();
    for protocol in ["simple", "ll"] {
        let (rate, start, message) = (1 + below(30), below(5000), below(3000));
        let _ =
            writeln!(rates, "{protocol} = {{ gb_per_second = {rate}, start_ns = {start}, message_ns = {message} }}");
    }
    let text = format!(
        "name = \"few\"\nkind = \"network\"\nplanes = 1\nlink_gbps = {}\nlink_latency_ns = {}\n\
         input_latency_ns = 0\noutput_latency_ns = 0\npacket_bytes = 8192\nbuffer_bytes = 4194304\n\
         send_machines = 1\nsend_machines_per = \"link\"\nlaunch_ns = {}\nsignal_ns = {}\n\
         [thread_block]\n{rates}\n[topology]\nname = \"graph\"\naccelerators = {gpus}\nedges = \"{}\"\n{switch}",
        100 + below(2000),
        100 + below(1000),
        below(3000),
        below(2000),
        edges.join("\\n"),
    );
    Machine::from_toml(&text, "few").unwrap()
}

#[test]
fn plans_for_formats_have_the_times_of_their_files() {
    for seed in 0..u64::from(crate::soak::cases(10)) {
        let mut drawn = seed;
        let mut below = |n: u64| {
            drawn = mix(drawn + 1);
            drawn % n
        };
        let machine = few_gpus(&mut below);
        let kinds =
            [Kind::Allreduce, Kind::Allgather, Kind::Alltoall, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter];
        let kind = kinds[below(6) as usize];
        let format = ["mscclpp", "msccl-xml"][below(2) as usize];
        hold_the_law(&machine, kind, 256 << below(9), format);
    }
}

/// Switches process the slices in which thread blocks send.
#[test]
fn thread_blocks_send_long_vectors_to_switches() {
    let machine = Machine::preset("dgx-h100").unwrap().with_value("packet_bytes", "65536").unwrap();
    let request = Request::new(Kind::Allreduce, &machine, Part::All, 1 << 21);
    let params = Params::new().with("chunks", "1").with("embeddings", "1");
    let plan = plan(Problem::new(&request).unwrap(), Some("in-network"), &params).unwrap();
    let found = time_of_candidate(&request, plan.best(), "mscclpp").unwrap();
    // The least time is that of 1 + 1/8 of the vector on each link, at 0.85 of 370.8 GB/s, up and down at once.
    let links = (8 << 20) as f64 * 1.125 / (0.85 * 370.8e9);
    assert!((links..4.0 * links).contains(&found), "{found} {links}");
}

/// The rate of a link of `dgx-h100` in sums, in bytes per second.
const NVLS_RATE: f64 = 0.85 * 370.8e9;
/// The seconds of a start and two steps.
const NVLS_STEPS: f64 = 5.6e-6;

/// Returns an allreduce in place by the switch of `n` GPUs: each of the first `leaders` GPUs requests an equal part.
fn asked_by(n: usize, leaders: usize) -> String {
    let nop = json!({"name": "nop"});
    let all: Vec<usize> = (0..n - 1).collect();
    let sync = |name: &str| json!({"name": name, "channel_ids": all, "channel_type": "memory"});
    let gpu = |id: usize| {
        let part = json!([{"switch_channel_id": 0, "index": id * n / leaders, "size": n / leaders}]);
        let mut ops = vec![nop.clone(), sync("signal"), sync("wait"), nop.clone()];
        if id < leaders {
            let sum = json!({"name": "glres", "src_buff": part, "dst_buff": part, "channel_type": "switch", "reduce_op": "sum"});
            ops.extend([sum, nop.clone()]);
        }
        ops.extend([sync("signal"), sync("wait"), nop.clone()]);
        json!({
            "id": id, "input_chunks": n, "output_chunks": n, "scratch_chunks": 0,
            "threadblocks": [{"id": 0, "ops": ops, "remote_buffer_refs": [], "channels": [
                {"channel_type": "memory", "channel_ids": all}, {"channel_type": "switch", "channel_ids": [0]}]}],
            "channels": [
                {"channel_type": "memory", "connected_to": (0..n).filter(|&peer| peer != id).collect::<Vec<_>>()},
                {"channel_type": "switch", "buffer_type": "i",
                 "rank_groups": [{"size": n, "ranks": (0..n).collect::<Vec<_>>()}]}],
            "remote_buffers": [], "semaphores": [],
        })
    };
    json!({
        "name": "sums", "collective": "allreduce", "protocol": "Simple", "inplace": true, "reuse_resources": false,
        "use_double_scratch_buffer": false, "buffer_alignment": 16, "num_threads_per_block": 1024,
        "min_message_size": 0, "max_message_size": 1u64 << 30, "gpus": (0..n).map(gpu).collect::<Vec<_>>(),
    })
    .to_string()
}

/// Every operand leaves its GPU once, and every sum reaches its GPU once. A GPU that requests a sum receives it, and
/// sends it back to the switch to store it. So its part of the vector crosses its links twice.
#[test]
fn the_gpu_that_asks_for_a_sum_has_it_twice_on_its_links() {
    let machine = Machine::preset("dgx-h100").unwrap().with_value("packet_bytes", "16384").unwrap();
    // These thread blocks do not limit the rate.
    let machine = machine.with_value("thread_block", "{ simple = { gb_per_second = 1e6 } }").unwrap();
    let importer = IMPORTERS.iter().find(|i| i.name() == "mscclpp").unwrap();
    let bytes = 16 << 20;
    for leaders in [1, 2, 4, 8] {
        let facts = Facts { elements: Some(bytes / 4), ..Facts::default() };
        let found = time_of(importer.import(&asked_by(8, leaders), &facts).unwrap(), &machine);
        let links = (1.0 + 1.0 / leaders as f64) * bytes as f64 / NVLS_RATE;
        assert!((0.99..1.15).contains(&(found / (NVLS_STEPS + links))), "{leaders}: {found} {links}");
    }
}

/// A sum in the switches takes the time of two steps and of 1 + 1/n of the vector, both as a schedule and as a file.
/// The thread blocks of the file also copy the vector to scratch memory and back, and load and store the sums.
#[test]
fn sums_in_switches_and_their_files_take_one_time() {
    let machine = Machine::preset("dgx-h100").unwrap().with_value("packet_bytes", "16384").unwrap();
    let mut drawn = 11;
    for _ in 0..if crate::soak::is_on() { 16 } else { 3 } {
        let mut below = |n: u64| {
            drawn = mix(drawn + 1);
            drawn % n
        };
        let (n, most) = (2 + below(7) as u32, 1 << (4 + below(16)));
        let elements = 4 * (1 + below(most));
        let part = Part::Shape(Shape::line(n));
        let (request, bytes) = (Request::new(Kind::Allreduce, &machine, part, elements), 4.0 * elements as f64);
        let closed = NVLS_STEPS + (1.0 + 1.0 / f64::from(n)) * bytes / NVLS_RATE;
        let plan = |form| plan_for(Problem::new(&request).unwrap(), Some("in-network"), &Params::new(), form).unwrap();
        let price = plan(None).best().time.seconds;
        assert!((0.98..1.12).contains(&(price / closed)), "{n} {bytes}: {price} {closed}");
        let of_file = plan(Some(Format::named("mscclpp", None).unwrap()));
        let file = of_file.file().unwrap();
        let proven = unisono_lower::VerifiedFile::new(&file, Method::Auto).unwrap();
        let (files, time) = written(emitter("mscclpp"), &proven, &Choices::default()).unwrap();
        assert_eq!(time.unwrap().seconds, of_file.best().time.seconds);
        let plan: Value = serde_json::from_str(files[0].1.text().unwrap()).unwrap();
        let ops = plan["gpus"][0]["threadblocks"].as_array().unwrap().iter().flat_map(|b| b["ops"].as_array().unwrap());
        let sum = ops.into_iter().find(|op| op["name"] == "glres").unwrap();
        let shares = sum["tbg_info"]["tbg_size"].as_f64().unwrap_or(1.0) / f64::from(n).min(elements as f64 / 4.0);
        let moved = (1.0 + 1.0 / f64::from(n)) * bytes / (shares.max(1.0) * 38.7e9);
        let ratio = time.unwrap().seconds / closed;
        assert!(
            ratio > 0.98 && time.unwrap().seconds < 1.3 * (closed + moved),
            "{n} {bytes}: {ratio} {moved} {closed}"
        );
    }
}

#[test]
fn values_out_of_range_are_refused_with_their_key() {
    let machine = Machine::preset("mi300x").unwrap();
    for (block, key) in [
        ("{ ll = { gb_per_second = 0.0 } }", "gb_per_second"),
        ("{ simple = { start_ns = -1.0 } }", "start_ns"),
        ("{ ll128 = { message_ns = 1e13 } }", "message_ns"),
        ("{ ll256 = { message_ns = 1.0 } }", "ll256"),
    ] {
        let error = machine.with_value("thread_block", block).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
}
