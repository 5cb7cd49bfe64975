//! The routes of a color at a router, as `@set_color_config` gives them.

use unisono_lower::wafer::Port;

use super::tree::Expr;

/// `@set_color_config` without its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    pub line: u32,
    pub color: String,
    pub rx: Vec<Port>,
    pub tx: Vec<Port>,
    /// `posN` in the order written.
    pub switches: Vec<Switch>,
    pub ring: bool,
    pub start: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Switch {
    pub number: u8,
    pub rx: Option<Vec<Port>>,
    pub tx: Option<Vec<Port>>,
}

pub fn config(line: u32, color: &str, fields: &Expr) -> Result<Config, String> {
    let routes = fields.field("routes").ok_or("a color without routes")?;
    let mut config = Config {
        line,
        color: color.to_owned(),
        rx: ports(routes.field("rx"))?.unwrap_or_default(),
        tx: ports(routes.field("tx"))?.unwrap_or_default(),
        switches: Vec::new(),
        ring: false,
        start: 0,
    };
    let Some(Expr::Struct(switches)) = fields.field("switches") else {
        return Ok(config);
    };
    for (name, value) in switches {
        match (name.as_str(), value) {
            ("pos1" | "pos2" | "pos3", side) => config.switches.push(Switch {
                number: name.as_bytes()[3] - b'0',
                rx: ports(side.field("rx"))?,
                tx: ports(side.field("tx"))?,
            }),
            ("current_switch_pos", Expr::Int(n)) => config.start = *n,
            ("ring_mode", on) => config.ring = on.is_true(),
            _ => return Err(format!("the switch field `{name}` is not emitted")),
        }
    }
    Ok(config)
}

/// `EAST` or `.{ EAST, RAMP }`.
fn ports(directions: Option<&Expr>) -> Result<Option<Vec<Port>>, String> {
    let Some(directions) = directions else {
        return Ok(None);
    };
    let one = |e: &Expr| {
        Ok(match e.name() {
            Some("NORTH") => Port::North,
            Some("SOUTH") => Port::South,
            Some("WEST") => Port::West,
            Some("EAST") => Port::East,
            Some("RAMP") => Port::Ramp,
            _ => return Err("a direction is NORTH, SOUTH, WEST, EAST or RAMP".to_owned()),
        })
    };
    match directions {
        Expr::Tuple(all) => all.iter().map(one).collect::<Result<_, _>>().map(Some),
        single => Ok(Some(vec![one(single)?])),
    }
}
