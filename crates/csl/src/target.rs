//! Facts of the targets: Cerebras SDK 1.0 on a WSE-2 (CS-2), and SDK 2 on a WSE-3 (CS-3).
//!
//! All are parameters, because not all are in the public text. `code_bytes` is an estimate: no size of compiled code is
//! public, one third party plans with 38 KiB of data in the 48 KiB of a PE.

use unisono_lower::wafer::Needs;
use unisono_machine::Architecture;

/// The resources of a project. Ids are handed out in their order here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SdkTarget {
    /// The SDK and the machine, as emitted files name them.
    pub name: &'static str,
    /// The machine alone, and the computer that has it.
    pub wafer: &'static str,
    pub system: &'static str,
    /// The option `--arch` of the compiler; the compiler of SDK 1.0 has none.
    pub arch: Option<&'static str>,
    /// Columns and rows that remain beside the host link.
    pub width: u32,
    pub height: u32,
    /// Fabric columns and rows that the host link takes around the program.
    pub host_columns: u32,
    pub host_rows: u32,
    /// The whole fabric, as the compiler wants it for a run on the machine.
    pub fabric: [u32; 2],
    /// Colors that a program may route.
    pub colors: &'static [u8],
    /// Colors that may have several positions.
    pub switched_colors: &'static [u8],
    /// The color by which the host starts functions (SDK 1.0 only).
    pub launch: Option<u8>,
    /// Ids of local tasks.
    pub local_tasks: &'static [u8],
    /// Ids of tasks share numbers with colors, so those of colors in use are passed over.
    pub tasks_share_colors: bool,
    /// Queues 0 and 1 come last: the host link may use them too.
    pub input_queues: &'static [u8],
    pub output_queues: &'static [u8],
    /// Every queue is bound to its color when compiled, also for output; an operand from the fabric names its queue
    /// alone, and colors are not blocked.
    pub binds_queues: bool,
    /// Microthreads among which a program chooses one for each thread. If the list is empty, the queue of an operation
    /// determines its microthread.
    pub microthreads: &'static [u8],
    /// Cycles that a wavelet takes from router to router, with which scripts align the clocks of PEs; `None` if they
    /// are not published.
    pub hop_cycles: Option<u32>,
    /// Positions of a color beside the first.
    pub extra_positions: usize,
    /// The largest finite length of a vector operation; a length field of 0x7fff means endless.
    pub extent: u32,
    pub sram_bytes: u64,
    /// Memory of a PE kept for code, stack and the host link.
    pub code_bytes: u64,
    /// The task that a control wavelet names; 31 is none.
    pub control_task: u32,
    /// The placements from which programs are emitted.
    pub needs: Needs,
}

impl SdkTarget {
    /// The target of an architecture.
    pub fn of(architecture: Architecture) -> Self {
        match architecture {
            Architecture::Wse2 => Self::WSE2_SDK_1_0,
            Architecture::Wse3 => Self::WSE3_SDK_2,
        }
    }

    pub const WSE2_SDK_1_0: SdkTarget = SdkTarget {
        name: "Cerebras SDK 1.0 and the WSE-2",
        wafer: "WSE-2",
        system: "CS-2",
        arch: None,
        width: 750,
        height: 994,
        host_columns: 7,
        host_rows: 2,
        fabric: [757, 996],
        colors: &[0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
        switched_colors: &[0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
        launch: Some(8),
        local_tasks: &[20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 26, 25, 24, 7, 6, 5, 4, 3, 2, 1, 0],
        tasks_share_colors: true,
        input_queues: &[2, 3, 4, 5, 6, 7, 1, 0],
        output_queues: &[2, 3, 4, 5, 1, 0],
        binds_queues: false,
        microthreads: &[],
        hop_cycles: Some(1),
        extra_positions: 3,
        extent: 32_766,
        sram_bytes: 48 * 1024,
        code_bytes: 10 * 1024,
        control_task: 31,
        needs: Needs { chunk: 8, fabric_sources: 2, switches_both_sides: false },
    };

    /// The public text has queues 0 and 1 taken by the host link both ways, which is assumed of microthreads 0 and 1
    /// too.
    pub const WSE3_SDK_2: SdkTarget = SdkTarget {
        name: "Cerebras SDK 2 and the WSE-3",
        wafer: "WSE-3",
        system: "CS-3",
        arch: Some("wse3"),
        width: 755,
        height: 1170,
        fabric: [762, 1172],
        colors: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
        switched_colors: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 20],
        launch: None,
        local_tasks: &[20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 26, 25],
        tasks_share_colors: false,
        input_queues: &[2, 3, 4, 5, 6, 7],
        output_queues: &[2, 3, 4, 5, 6, 7],
        binds_queues: true,
        microthreads: &[2, 3, 4, 5, 6, 7],
        hop_cycles: None,
        needs: Needs { chunk: 8, fabric_sources: 1, switches_both_sides: true },
        ..Self::WSE2_SDK_1_0
    };

    /// Payload of a control wavelet with the one command "advance the switch", not handed to any PE: command in bits 22
    /// and 23, "not to the PE" in bit 24, task in bits 16 to 21.
    pub fn advance_word(&self) -> u32 {
        1 << 22 | 1 << 24 | self.control_task << 16
    }

    /// Bytes of a PE's memory that its vectors and the word of its control wavelets take.
    pub fn data_bytes(&self, elements: u64) -> u64 {
        4 * elements + 4
    }
}
