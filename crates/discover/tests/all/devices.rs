//! The copies among the memories of a process with several devices: the examples of the paper in closed form.

mod memories;

use std::sync::Arc;

use crate::common;

use common::{NODES, Programs, program, task};
use unisono_discover::{DeviceReport, Program, Rules, device_report};

fn followed(program: &Program, nodes: u32, rules: Rules, rank: u32, devices: u32) -> DeviceReport {
    device_report(&program.list().unwrap(), nodes, rules, rank, devices).expect("the program is sound").2
}

/// Formats each operation as `moment buffer kind count [from-to elements]`; elements have 8 bytes.
fn lines(report: &DeviceReport, task: &str) -> Vec<String> {
    let row = |row: &&unisono_discover::DeviceOperation| row.task == task;
    let line = |row: &unisono_discover::DeviceOperation| {
        let messages: Vec<_> = row.messages.iter().map(|m| format!("{}-{} {}", m[0], m[1], m[2] / 8)).collect();
        let what = if messages.is_empty() { format!("{}", row.bytes / 8) } else { messages.join(" ") };
        format!("{} {} {} x{} {what}", row.moment, row.buffer, row.kind, row.count)
    };
    report.operations.iter().filter(row).map(line).collect()
}

/// With 64 bodies on 2 nodes of 2 devices, a device has 16 bodies and a node 32.
#[test]
fn n_body_broadcasts_to_the_devices_after_an_all_gather() {
    for rules in [Rules::Paper, Rules::Full] {
        for rank in 0..2 {
            let report = followed(&Programs::n_body(64, 4), 2, rules, rank, 2);
            assert_eq!(
                lines(&report, "time_step"),
                [
                    // In the first step, all data are copied from the host.
                    "before-kernel P copies x1 0-1 64 0-2 64",
                    "before-kernel V copies x1 0-1 16 0-2 16",
                    // Each further step gathers the data that the devices have written, and copies the whole buffer to
                    // both devices.
                    "before-exchange P copies x3 1-0 16 2-0 16",
                    "after-exchange P broadcast x3 128",
                ]
            );
            assert_eq!(lines(&report, "update_p"), [] as [&str; 0]);
            assert_eq!((report.broadcasts, report.copies, report.updates), (3, 4 + 3 * 3, 4 + 3 * 3));
        }
    }
}

/// Section 1.6: without a collective each message of another node is a separate update of every device.
#[test]
fn each_message_is_an_update_of_each_device_without_collectives() {
    for nodes in NODES.into_iter().filter(|&nodes| nodes > 1) {
        for devices in 1..=4u32 {
            let steps = 3;
            let bodies = 12 * i64::from(nodes);
            let report = followed(&Programs::n_body(bodies, steps + 1), nodes, Rules::Off, 0, devices);
            let sum = |moment: &str, of: fn(&unisono_discover::DeviceOperation) -> u64| {
                let rows = report.operations.iter().filter(|row| row.moment == moment && row.task == "time_step");
                rows.filter(|row| row.buffer == "P").map(|row| row.count * of(row)).sum::<u64>()
            };
            // The parts of the node's other devices are on the host after they were sent, which adds one update.
            let each = u64::from(devices) * u64::from(nodes - 1 + u32::from(devices > 1));
            // The first step copies the host's contents once to each device.
            assert_eq!(sum("before-kernel", |row| row.updates), u64::from(devices) + steps * each, "{nodes} {devices}");
            // The executed copies combine all arrived data into one copy.
            assert_eq!(sum("before-kernel", |row| row.copies), u64::from(devices) * (steps + 1));
            assert_eq!(sum("before-exchange", |row| row.copies), steps * u64::from(devices));
            assert_eq!(report.broadcasts, 0);
            // With the paper's rules, there is one update per step for any number of nodes and devices.
            let found = followed(&Programs::n_body(bodies, steps + 1), nodes, Rules::Paper, 0, devices);
            let after: u64 =
                found.operations.iter().filter(|r| r.moment == "after-exchange").map(|r| r.count * r.updates).sum();
            assert_eq!((after, found.broadcasts), (steps, steps));
        }
    }
}

#[test]
fn a_broadcast_carries_what_at_least_one_device_lacks() {
    for (devices, elements) in [(1, 96), (2, 128), (4, 128)] {
        let report = followed(&Programs::n_body(128, 2), 4, Rules::Full, 3, devices);
        let row = report.operations.iter().find(|row| row.kind == "broadcast").unwrap();
        assert_eq!(row.bytes, 8 * elements * u64::from(devices));
    }
}

/// A gather or scatter gives no node all data, so the devices are updated when kernels read.
#[test]
fn only_receivers_of_everything_are_broadcast_to() {
    let report = followed(&Programs::gather_scatter(64, 3), 4, Rules::Paper, 1, 2);
    assert_eq!(report.broadcasts, 0);
    // Node 1 has bodies 16 to 31, 8 on each device.
    assert_eq!(
        lines(&report, "many"),
        ["before-kernel B copies x3 0-1 8 0-2 8"],
        "each scatter is followed by a copy to each device"
    );
    assert_eq!(lines(&report, "one"), ["before-exchange A copies x2 1-0 8 2-0 8"]);
    // In the benchmark `gather_bcast`, the broadcast goes to all devices; the root's task runs on the root's first
    // device.
    let report = followed(&Programs::gather_bcast(64, 3), 4, Rules::Paper, 0, 2);
    assert_eq!(report.broadcasts, 3);
    assert_eq!(lines(&report, "one")[0], "before-kernel A copies x1 0-1 64");
}

/// On a single node, devices copy from each other the data that no exchange has brought to the host.
#[test]
fn devices_of_one_node_read_from_each_other() {
    let report = followed(&Programs::n_body(64, 3), 1, Rules::Full, 0, 2);
    assert_eq!(
        lines(&report, "time_step"),
        [
            "before-kernel P copies x1 0-1 64 0-2 64",
            "before-kernel V copies x1 0-1 32 0-2 32",
            "before-kernel P copies x2 1-2 32 2-1 32",
        ]
    );
}

#[test]
fn partial_results_of_devices_are_combined_on_the_host() {
    let tasks = [
        task("sum", "[64]", &[("A", "read", "one_to_one"), ("S", "reduce", "all")]),
        task("use", "[64]", &[("S", "read", "all"), ("A", "read_write", "one_to_one")]),
    ];
    let program = program(&[("A", "[64]", true), ("S", "[3]", false)], &tasks);
    for nodes in [1, 4] {
        let report = followed(&program, nodes, Rules::Full, 0, 4);
        let all: String = (1..=4).map(|d| format!(" {d}-0 3")).collect();
        let part = 64 / nodes / 4;
        let first: String = (1..=4).map(|d| format!(" 0-{d} {part}")).collect();
        assert_eq!(
            lines(&report, "sum"),
            [format!("before-kernel A copies x1{first}"), format!("after-kernel S reduce x1{all}")]
        );
        // On several nodes an allreduce delivers the result; on one node the result is on the host.
        let expected = if nodes > 1 {
            "after-exchange S broadcast x1 12".to_owned()
        } else {
            "before-kernel S copies x1 0-1 3 0-2 3 0-3 3 0-4 3".to_owned()
        };
        assert_eq!(lines(&report, "use"), [expected]);
    }
}

#[test]
fn tasks_on_the_host_read_the_host_memory() {
    let text = r#"{"buffers": [{"name": "A", "shape": [64], "host_initialized": true}], "tasks": [
        {"name": "step", "range": [64], "accesses": [{"buffer": "A", "mode": "read_write", "mapper": {"kind": "one_to_one"}}]},
        {"name": "say", "range": [1], "on": "host", "accesses": [{"buffer": "A", "mode": "read", "mapper": {"kind": "all"}}]}]}"#;
    let program = Program::parse(text).unwrap();
    let report = followed(&program, 1, Rules::Full, 0, 4);
    assert_eq!(lines(&report, "say"), ["before-kernel A copies x1 1-0 16 2-0 16 3-0 16 4-0 16"]);
    // On several nodes, a gather brings the parts of other nodes to the host, so these parts need no copy.
    let report = followed(&program, 2, Rules::Full, 0, 2);
    assert_eq!(lines(&report, "say"), ["before-exchange A copies x1 1-0 16 2-0 16"]);
    let wrong = Program::parse(&text.replace("host\",", "gpu\",")).unwrap_err().to_string();
    assert!(wrong.contains("unknown variant `gpu`, expected `devices` or `host`"), "{wrong}");
}

/// With more devices than points, some devices have no part. The report still counts every element that a device lacks.
#[test]
fn devices_without_a_part_copy_nothing() {
    let program = Programs::n_body(3, 3);
    let report = followed(&program, 1, Rules::Full, 0, 8);
    assert_eq!(lines(&report, "time_step")[0], "before-kernel P copies x1 0-1 3 0-2 3 0-3 3");
    let nodes = 2;
    // Node 1 has one of three bodies, so one device has a part; the broadcast goes to all devices.
    let report = followed(&program, nodes, Rules::Paper, 1, 8);
    assert_eq!(
        lines(&report, "time_step")[2..],
        ["before-exchange P copies x2 1-0 1", "after-exchange P broadcast x2 24"]
    );
    // A node without a part receives the all-gather only if it reads.
    let report = followed(&program, 64, Rules::Full, 63, 8);
    assert_eq!((report.copies, report.bytes), (0, 0));
}

#[test]
fn numbers_out_of_range_are_refused() {
    let list = Programs::n_body(8, 1).list().unwrap();
    for devices in [0, 257, u32::MAX] {
        let Err(said) = device_report(&list, 2, Rules::Full, 0, devices) else { panic!("{devices} is accepted") };
        assert_eq!(said.to_string(), format!("the number of devices is {devices}; accepted are 1 to 256"));
    }
    let Err(said) = device_report(&list, 2, Rules::Full, 2, 1) else { panic!("rank 2 of 2 is accepted") };
    assert_eq!(said.to_string(), "the rank is 2; accepted are 0 to 1");
}

#[test]
fn devices_that_write_one_element_are_refused() {
    use unisono_base::BufferId;
    use unisono_discover::{Access, Box3, Buffer, Geometry, ListedTask, Mapper, Mode, Submitted, TaskList, UserMapper};
    let whole = |_: &[i64], _: &[i64], _: &[i64]| Ok(vec![Box3::of_size([8, 1, 1])]);
    let mapper =
        Mapper::User(UserMapper { number: 1, name: "whole".into(), function: Arc::new(whole), traced: Arc::default() });
    let list = TaskList {
        rows: false,
        buffers: vec![Buffer::new("A", &[8], 8, false).unwrap()],
        tasks: vec![ListedTask {
            name: "fill".to_owned(),
            operations: None,
            on_host: false,
            submitted: Submitted::Task {
                geometry: Geometry::of(&[8]),
                accesses: vec![Access::new(BufferId(0), Mode::Write, mapper)],
            },
        }],
    };
    assert!(device_report(&list, 1, Rules::Full, 0, 1).is_ok());
    let Err(said) = device_report(&list, 1, Rules::Full, 0, 2) else { panic!("both devices write all") };
    let expected = "task 'fill', buffer 'A', rank 0: devices 0 and 1 both write [0, 8); accepted are mappers that give \
                    each device a part of its own";
    assert_eq!(said.to_string(), expected);
}
