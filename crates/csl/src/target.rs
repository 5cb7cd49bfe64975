//! Facts of the targets: Cerebras SDK 1.0 on a WSE-2 (CS-2), and SDK 2 on a WSE-3 (CS-3).
//!
//! All facts are fields of [`SdkTarget`] that a caller can replace, because not all are public. `code_bytes` is an
//! estimate: no sizes of compiled code are public; one third party plans with 38 KiB of data in the 48 KiB of a PE.

use unisono_lower::wafer::Needs;
use unisono_machine::Architecture;

/// The resources of a project for one SDK and one machine. Ids are assigned in the order of the lists, unless switches
/// or microthreads require another order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SdkTarget {
    /// Names of the SDK and the wafer, as emitted files state them.
    pub name: &'static str,
    /// Name of the wafer; `system` is the computer that contains the wafer.
    pub wafer: &'static str,
    pub system: &'static str,
    /// Value of the compiler's option `--arch`. The compiler of SDK 1.0 does not have this option.
    pub arch: Option<&'static str>,
    /// Number of columns available to a program; `height` is the number of rows. The host link takes the rest of the
    /// fabric.
    pub width: u32,
    pub height: u32,
    /// Number of fabric columns that the host link takes beside the program; `host_rows` is the number of its rows.
    pub host_columns: u32,
    pub host_rows: u32,
    /// Columns and rows of the whole fabric, which the compiler requires for a run on the machine.
    pub fabric: [u32; 2],
    /// Colors that a program may route.
    pub colors: &'static [u8],
    /// Colors to which a router may give several switch positions.
    pub switched_colors: &'static [u8],
    /// Color with which the host starts functions (SDK 1.0 only).
    pub launch: Option<u8>,
    /// Ids of local tasks that a program may bind.
    pub local_tasks: &'static [u8],
    /// True if task ids and colors share one set of numbers, so that a task may not have the number of a used color.
    pub tasks_share_colors: bool,
    /// Ids of input queues. On the WSE-2, queues 0 and 1 are last in the lists of input and output queues, because the
    /// host link may use them too.
    pub input_queues: &'static [u8],
    pub output_queues: &'static [u8],
    /// True if every input and output queue is bound to its color at compile time. An operand from the fabric then
    /// names only its queue, and colors are not blocked.
    pub binds_queues: bool,
    /// Ids of microthreads, one of which a program assigns to each thread. If the list is empty, the queue of an
    /// operation determines its microthread.
    pub microthreads: &'static [u8],
    /// Cycles of a wavelet between neighboring routers. Scripts use this number to convert the clocks of PEs to one
    /// clock. `None` if it is not published.
    pub hop_cycles: Option<u32>,
    /// Number of positions that a color may have at a router, besides the first one.
    pub extra_positions: usize,
    /// Greatest finite length of a vector operation in elements; a length field of 0x7fff means endless.
    pub extent: u32,
    pub sram_bytes: u64,
    /// Bytes of a PE's memory that are reserved for code, stack and the host link.
    pub code_bytes: u64,
    /// Id of the task that a control wavelet starts; 31 means none.
    pub control_task: u32,
    /// Restrictions of the placements that can be emitted.
    pub needs: Needs,
}

impl SdkTarget {
    /// Returns the target of an architecture.
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

    /// The public text says that the host link uses queues 0 and 1 in both directions; the same is assumed of
    /// microthreads 0 and 1.
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

    /// Returns the payload of a control wavelet with a single command, "advance the switch", which no PE receives. Bits
    /// 22 and 23 are the command, bit 24 means "not to the PE", and bits 16 to 21 are the task.
    pub fn advance_word(&self) -> u32 {
        1 << 22 | 1 << 24 | self.control_task << 16
    }

    /// Returns the bytes of a PE's memory that `elements` elements of 32 bits and the word of control wavelets take.
    pub fn data_bytes(&self, elements: u64) -> u64 {
        4 * elements + 4
    }
}
