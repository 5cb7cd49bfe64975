//! The layout: which PE runs which file with which colors, and the routes of its router.

use std::collections::{BTreeMap, BTreeSet};

use unisono_csl::Files;

use super::{
    modules::LayoutModule,
    syntax::{Expr, Stmt},
};

/// Names of ports by index.
pub const PORTS: [&str; 5] = ["WEST", "EAST", "SOUTH", "NORTH", "RAMP"];
pub const RAMP: usize = 4;

#[derive(Clone, Debug, Default)]
pub struct Position {
    pub rx: Vec<usize>,
    pub tx: Vec<usize>,
    /// True if the position states both its input and its outputs.
    pub names_both: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Tile {
    pub file: String,
    /// Fabric color of each parameter.
    pub colors: BTreeMap<String, u64>,
    /// Value of each boolean parameter.
    pub flags: BTreeMap<String, bool>,
    pub routes: BTreeMap<u64, Vec<Position>>,
    /// Parameters that modules of the layout return.
    pub given: Vec<(String, Expr)>,
}

#[derive(Default)]
pub struct Layout {
    pub width: u64,
    pub height: u64,
    pub tiles: Vec<Tile>,
    /// Columns and rows of the host link.
    pub host_link: Option<(u64, u64)>,
    /// Names that the host may use.
    pub exports: BTreeSet<String>,
    pub colors: BTreeMap<String, u64>,
    values: BTreeMap<String, u64>,
    modules: BTreeMap<String, LayoutModule>,
}

pub fn read(files: &Files, statements: &[Stmt]) -> Layout {
    let mut layout = Layout::default();
    for s in statements {
        if let Stmt::Let(name, e) = s {
            layout.modules.extend(LayoutModule::imported(files, e).map(|module| (name.clone(), module)));
        }
        match s {
            Stmt::Let(name, Expr::Call(call, of)) if call == "@get_color" => {
                assert!(layout.colors.insert(name.clone(), of[0].int()).is_none(), "two colors {name}");
            }
            Stmt::Let(_, Expr::Call(_, of)) if of.first() == Some(&Expr::Text("<memcpy/get_params>".to_owned())) => {
                let size = |side| of[1].field(side).unwrap().int();
                layout.host_link = Some((size("width"), size("height")));
            }
            Stmt::Block(_, body) => layout.run(body),
            _ => {}
        }
    }
    layout
}

impl Layout {
    fn number(&self, e: &Expr) -> u64 {
        match e {
            Expr::Int(n) => *n,
            other => self.values[other.name()],
        }
    }

    fn run(&mut self, body: &[Stmt]) {
        for s in body {
            match s {
                Stmt::For(Expr::Call(_, range), name, body) => {
                    let n = |i: usize| range[i].int();
                    let (start, end, step) = if range.len() == 2 { (0, n(1), 1) } else { (n(1), n(2), n(3)) };
                    for value in (start..end).step_by(step as usize) {
                        self.values.insert(name.clone(), value);
                        self.run(body);
                    }
                }
                Stmt::Do(Expr::Call(name, arguments)) => self.call(name, arguments),
                _ => panic!("{s:?} in the layout"),
            }
        }
    }

    fn call(&mut self, name: &str, arguments: &[Expr]) {
        if name == "@set_rectangle" {
            assert!(self.tiles.is_empty(), "two rectangles");
            (self.width, self.height) = (arguments[0].int(), arguments[1].int());
            self.tiles = vec![Tile::default(); (self.width * self.height) as usize];
            return;
        }
        if name == "@export_name" {
            let Expr::Text(exported) = &arguments[0] else { panic!("{arguments:?} are exported") };
            self.exports.insert(exported.clone());
            return;
        }
        let (column, row) = (self.number(&arguments[0]), self.number(&arguments[1]));
        assert!(column < self.width && row < self.height, "({column}, {row}) lies outside the rectangle");
        let at = (row * self.width + column) as usize;
        if name == "@set_tile_code" {
            let (Expr::Text(file), Expr::Fields(fields)) = (&arguments[2], &arguments[3]) else { panic!() };
            let link = fields.iter().find(|f| f.0 == "memcpy_params").map(|f| &f.1);
            let Some(Expr::Call(_, of)) = link else { panic!("PE ({column}, {row}) has no host link") };
            assert_eq!(self.number(&of[0]), column, "the host link of another column");
            let mut modules = Vec::new();
            let given = fields.iter().filter(|f| f.0 != "memcpy_params").filter(|(name, e)| {
                let Expr::Call(call, of) = e else { return true };
                let (module, function) = call.split_once('.').unwrap();
                let of: Vec<u64> = of.iter().map(|e| self.number(e)).collect();
                modules.push((name.clone(), self.modules[module].call(function, &of)));
                false
            });
            let (flags, colors): (Vec<_>, Vec<_>) = given.partition(|f| ["true", "false"].contains(&f.1.name()));
            let colors = colors.into_iter().map(|(name, value)| (name.clone(), self.colors[value.name()])).collect();
            let flags = flags.into_iter().map(|(name, value)| (name.clone(), value.name() == "true")).collect();
            let tile = &mut self.tiles[at];
            assert!(tile.file.is_empty(), "two programs for one PE");
            (tile.file, tile.colors, tile.flags, tile.given) = (file.clone(), colors, flags, modules);
            return;
        }
        assert_eq!(name, "@set_color_config");
        let (color, config) = (self.colors[arguments[2].name()], &arguments[3]);
        assert!(self.tiles[at].routes.insert(color, positions(config)).is_none(), "two routes of one color");
    }
}

impl Tile {
    /// Adds the routes that the programs of a PE configure.
    pub fn configure(&mut self, program: &[Stmt]) {
        let blocks = program.iter().filter_map(|s| match s {
            Stmt::Block(name, body) if name == "comptime" => Some(body),
            _ => None,
        });
        for s in blocks.flatten() {
            if let Stmt::Do(Expr::Call(call, of)) = s
                && call == "@set_local_color_config"
            {
                let Expr::Call(_, color) = &of[0] else { panic!("{s:?}") };
                let before = self.routes.insert(color[0].int(), positions(&of[1]));
                assert!(before.is_none(), "two routes of one color");
            }
        }
    }
}

/// Returns the positions of a color's configuration.
fn positions(config: &Expr) -> Vec<Position> {
    let routes = config.field("routes").unwrap();
    let mut now =
        Position { rx: ports(routes.field("rx").unwrap()), tx: ports(routes.field("tx").unwrap()), names_both: false };
    let mut positions = vec![now.clone()];
    if let Some(Expr::Fields(switches)) = config.field("switches") {
        let numbered = switches.iter().filter(|f| f.0.starts_with("pos")).count();
        let is_numbered = |n: usize| switches.iter().any(|f| f.0 == format!("pos{n}"));
        assert!((1..=3).contains(&numbered) && (1..=numbered).all(is_numbered), "{switches:?}");
        let value = |name: &str| switches.iter().find(|f| f.0 == name).map(|f| &f.1);
        assert!(value("current_switch_pos").is_none_or(|v| *v == Expr::Int(0)), "a switch begins elsewhere");
        assert!(value("ring_mode").is_none_or(|v| v.name() == "false"), "a switch goes round");
    }
    for n in 1..4 {
        let next = config.field("switches").and_then(|s| s.field(&format!("pos{n}")));
        let Some(next) = next else { break };
        now.names_both = next.field("rx").is_some() && next.field("tx").is_some();
        if let Some(rx) = next.field("rx") {
            now.rx = ports(rx);
        }
        if let Some(tx) = next.field("tx") {
            now.tx = ports(tx);
        }
        positions.push(now.clone());
    }
    positions
}

fn ports(e: &Expr) -> Vec<usize> {
    let port = |e: &Expr| PORTS.iter().position(|p| *p == e.name()).unwrap();
    match e {
        Expr::List(all) => all.iter().map(port).collect(),
        one => vec![port(one)],
    }
}
