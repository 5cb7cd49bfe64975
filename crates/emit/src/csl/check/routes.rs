//! Checks 4 of the layout's routes, each looked at once however many PEs have it.

use super::Findings;
use crate::csl::{Project, SdkTarget, read::Config};

pub fn check(project: &Project, target: &SdkTarget, found: &mut Findings) {
    for config in &project.layout.config_specs {
        let place = format!("layout.csl, line {}", config.line);
        positions(config, target, &place, found);
        if project.layout.color(&config.color).is_none() {
            found.add("color", &place, format!("`{}` is no color of the layout", config.color));
        } else if let Some(number) = project.layout.color(&config.color)
            && !config.switches.is_empty()
            && !target.switched_colors.iter().any(|&c| u64::from(c) == number)
        {
            let wafer = target.wafer;
            found.add(
                "position",
                &place,
                format!("color {number} has switch positions, which it may not have on the {wafer}"),
            );
        } else if let Err(e) = project.route(config) {
            found.add("position", &place, e.message);
        }
    }
}

fn positions(config: &Config, target: &SdkTarget, place: &str, found: &mut Findings) {
    if config.rx.len() != 1 || config.tx.is_empty() {
        let (rx, tx) = (config.rx.len(), config.tx.len());
        found.add(
            "position",
            place,
            format!("the first position accepts from {rx} and sends to {tx} ports; 1, and 1 or more"),
        );
    }
    if config.switches.len() > target.extra_positions {
        let n = config.switches.len();
        found.add("position", place, format!("{n} switch positions; there are {}", target.extra_positions));
    }
    for (n, switch) in config.switches.iter().enumerate() {
        if usize::from(switch.number) != n + 1 {
            found.add("position", place, format!("`pos{}` where `pos{}` is next", switch.number, n + 1));
        }
        match (&switch.rx, &switch.tx) {
            (Some(one), None) | (None, Some(one)) if one.len() == 1 => {}
            (Some(rx), Some(tx)) if target.needs.switches_both_sides && rx.len() == 1 && tx.len() == 1 => {}
            (Some(_), Some(_)) => {
                let wafer = target.wafer;
                found.add(
                    "position",
                    place,
                    format!(
                        "`pos{}` names both sides, of one or more directions; the {wafer} does not switch so",
                        switch.number
                    ),
                );
            }
            _ => found.add("position", place, format!("`pos{}` does not name one direction", switch.number)),
        }
    }
}
