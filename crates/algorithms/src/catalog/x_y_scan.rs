//! X-Y scan: a scan over the PEs of a grid, row by row. Each row adds up from its first PE to its last, the last column
//! adds up the rows, and the sum of the rows above is flooded along each row.
//!
//! A PE of a row adds its vector to the sum that arrives, keeps the result and sends it on. The last PE of a row sends
//! the sum of all rows so far to all PEs of the next row, whose last PE continues. For B wavelets on M x N PEs, with
//! the ramp latency T_R, T is about 2 B + (2 T_R + 2) (M + N - 2) + N, and on a line of P PEs B + (2 T_R + 2) (P-1).

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::{GridPlacement, Placed};
use unisono_schedule::{Builder, Operand};

use crate::{Algorithm, AlgorithmError, Case, Formula, Info, Params, Size};

pub struct XYScan;

const INFO: Info = Info {
    name: "x-y-scan",
    summary: "partial sums run along every row, then down the last column and into each next row",
    reference: "this project; Near-Optimal Wafer-Scale Reduce has no scan",
    collectives: &[Kind::Scan],
    formulas: &[Formula::new("paper", &[Kind::Scan], "B + (2 T_R + 2) (P-1)").when("on a row")],
    ..Info::ON_GRID
};

impl Algorithm for XYScan {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        if case.collective.kind == Kind::Scan {
            return Ok(());
        }
        let reason = format!("it makes a scan, not {}", case.collective.kind);
        Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason })
    }

    fn build(&self, case: &Case, _: &Params) -> Result<Placed, AlgorithmError> {
        let (grid, len) = (case.grid(), case.collective.elements);
        let mut b = Builder::new(case.collective);
        let lines: Vec<Vec<NodeId>> = if grid.is_line() {
            vec![(0..case.collective.ranks).map(NodeId).collect()]
        } else {
            (0..grid.rows).map(|r| (0..grid.cols).map(|c| NodeId(grid.pe(r, c))).collect()).collect()
        };
        b.phase("row-scan");
        for line in &lines {
            let streams: Vec<_> = line.windows(2).map(|w| Operand::Stream(b.stream(w[0], &[w[1]]))).collect();
            for (i, &node) in line.iter().enumerate() {
                let before = i.checked_sub(1).map(|before| streams[before]);
                let sources: Vec<_> = before.into_iter().chain([Operand::In(0)]).collect();
                let sinks: Vec<_> = [Operand::Out(0)].into_iter().chain(streams.get(i).copied()).collect();
                b.combine(node, 0, len, &sources, &sinks);
            }
        }
        let sums: Vec<_> =
            lines.windows(2).filter_map(|w| w[0].last().map(|&last| Operand::Stream(b.stream(last, &w[1])))).collect();
        if let (Some(&first), Some(&last)) = (sums.first(), lines[0].last()) {
            b.phase("column-scan");
            b.combine(last, 0, len, &[Operand::Out(0)], &[first]);
        }
        for (r, (line, &above)) in lines.iter().skip(1).zip(&sums).enumerate() {
            for (c, &node) in line.iter().enumerate() {
                let onward = sums.get(r + 1).filter(|_| c + 1 == line.len()).copied();
                let sinks: Vec<_> = [Operand::Out(0)].into_iter().chain(onward).collect();
                b.combine(node, 0, len, &[above, Operand::Out(0)], &sinks);
            }
        }
        Ok(Placed::on_grid(b.finish()?, GridPlacement::new(grid)))
    }

    fn size(&self, case: &Case, _: &Params) -> Size {
        Size { instructions: Some(2 * case.grid().count()), ..Size::default() }
    }
}
