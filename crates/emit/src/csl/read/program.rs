//! The wafer program of a parsed project.

use rustc_hash::FxHashMap;
use unisono_base::narrow;
use unisono_lower::wafer::{Color, ColorRoute, End, PeProgram, Ports, Position, Step, WaferProgram};
use unisono_machine::Grid;

use super::{
    Code, Config, Project, ReadError,
    template::{Template, template},
};
use crate::csl::{
    SdkTarget,
    write::{MAP, OPERATOR_FILE, operator_module, vectors},
};

/// Reads an emitted project back: equal to [`normalised`](crate::csl::normalised) of what was emitted.
///
/// # Errors
/// What is not as it is emitted, with file and line.
pub fn read(files: &[(String, String)]) -> Result<WaferProgram, ReadError> {
    Project::parse(files)?.program()
}

fn whole(message: impl Into<String>) -> ReadError {
    ReadError::new("layout.csl", 1, message)
}

impl Project {
    /// The wafer program that the project runs.
    ///
    /// # Errors
    /// What has no counterpart there, with file and line.
    pub fn program(&self) -> Result<WaferProgram, ReadError> {
        let layout = &self.layout;
        let collective = layout.collective.ok_or_else(|| whole("no note states the collective"))?;
        let [(width, height)] = layout.rectangles[..] else {
            return Err(whole(format!("{} rectangles; there is 1", layout.rectangles.len())));
        };
        // Reading the layout bounded both sides' product; a side alone is bounded where the other is not 0.
        let side = |n: u64| u32::try_from(n).map_err(|_| whole("a side of the rectangle is too long"));
        let grid = Grid::new(side(height)?, side(width)?);
        let pes = grid.count();
        if pes == 0 || u64::from(collective.ranks) != pes {
            return Err(whole(format!("{} ranks on {pes} PEs", collective.ranks)));
        }
        let mut specs: Vec<Option<u32>> = vec![None; narrow(pes)];
        for &(x, y, spec) in &layout.tiles {
            let pe = self.pe(x, y).ok_or_else(|| whole(format!("a program for ({x}, {y}), which is no PE")))?;
            if specs[pe].replace(spec).is_some() {
                return Err(whole(format!("two programs for PE ({x}, {y})")));
            }
        }
        let mut routes: Vec<Vec<ColorRoute>> = vec![Vec::new(); narrow(pes)];
        let known = layout.config_specs.iter().map(|c| self.route(c)).collect::<Result<Vec<_>, _>>()?;
        for &(x, y, config) in &layout.configs {
            let pe = self.pe(x, y).ok_or_else(|| whole(format!("a route at ({x}, {y}), which is no PE")))?;
            let route = known[config as usize];
            if routes[pe].iter().any(|r| r.color == route.color) {
                return Err(whole(format!("two routes of color_{} at PE ({x}, {y})", route.color)));
            }
            routes[pe].push(route);
        }
        let uses = |code: &Code| code.threads.steps.iter().flatten().any(|s| s.run.builtin == MAP);
        if self.codes.values().any(uses) != self.operator.is_some()
            || self.operator.is_some()
                && SdkTarget::ALL.iter().all(|t| self.operator != operator_module(&collective, t))
        {
            let (operator, dtype) = (collective.operator, collective.dtype);
            return Err(ReadError::new(
                OPERATOR_FILE,
                1,
                format!("it is not the file of the operator {operator} on {dtype}"),
            ));
        }
        let mut templates = FxHashMap::default();
        for (file, code) in &self.codes {
            templates.insert(file.as_str(), template(file, code, &collective)?);
        }
        let mut all = Vec::with_capacity(narrow(pes));
        for (pe, mut routes) in routes.into_iter().enumerate() {
            let spec = specs[pe].ok_or_else(|| whole(format!("no program for PE {pe}, row by row")))?;
            let spec = &layout.tile_specs[spec as usize];
            let (Some(code), Some(template)) = (self.codes.get(&spec.file), templates.get(spec.file.as_str())) else {
                return Err(whole(format!("the project has no file `{}`", spec.file)));
            };
            let wanted = vectors(&collective, narrow(pe));
            if (template.input, template.output) != (u64::from(wanted.0), u64::from(wanted.1)) {
                return Err(ReadError::new(
                    &spec.file,
                    1,
                    format!(
                        "vectors of {} and {} elements on a PE that has {} and {}",
                        template.input, template.output, wanted.0, wanted.1
                    ),
                ));
            }
            routes.sort_unstable_by_key(|r| r.color);
            let colors = self.bind(code, &spec.params).map_err(whole)?;
            all.push(instance(template, &colors, routes));
        }
        Ok(WaferProgram::assemble(grid, collective, layout.phases.clone(), all))
    }

    /// The number of the PE at a place.
    pub(in crate::csl) fn pe(&self, x: u64, y: u64) -> Option<usize> {
        let &(width, height) = self.layout.rectangles.first()?;
        (x < width && y < height).then(|| narrow(y * width + x))
    }

    /// The program's number of a color's name.
    pub(in crate::csl) fn color(&self, name: &str) -> Option<Color> {
        self.layout.color(name)?;
        name.strip_prefix("color_")?.parse().ok()
    }

    /// The program's color of each color parameter of a file.
    fn bind(&self, code: &Code, given: &[(String, super::Expr)]) -> Result<Vec<Color>, String> {
        let colors = code.params.iter().filter(|p| *p != "memcpy_params");
        let bound = |param: &String| {
            let value = given.iter().find(|g| g.0 == *param).and_then(|g| g.1.name());
            let color = value.and_then(|name| self.color(name));
            color.ok_or_else(|| format!("parameter `{param}` is not given a color"))
        };
        colors.map(bound).collect()
    }

    pub(in crate::csl) fn route(&self, config: &Config) -> Result<ColorRoute, ReadError> {
        let fail = |message: String| ReadError::new("layout.csl", config.line, message);
        let color = self
            .color(&config.color)
            .ok_or_else(|| fail(format!("`{}` is not a color of the layout", config.color)))?;
        if config.ring || config.start != 0 {
            return Err(fail("a switch that is a ring or does not start at position 0".to_owned()));
        }
        let ports = |ports: &[_]| ports.iter().copied().collect::<Ports>();
        let mut now = Position { rx: ports(&config.rx), tx: ports(&config.tx) };
        let mut positions = vec![now];
        for (n, switch) in config.switches.iter().enumerate() {
            if usize::from(switch.number) != n + 1 || n > 2 {
                return Err(fail(format!("position {} where {} is next", switch.number, n + 1)));
            }
            if let Some(rx) = &switch.rx {
                now.rx = ports(rx);
            }
            if let Some(tx) = &switch.tx {
                now.tx = ports(tx);
            }
            positions.push(now);
        }
        Ok(ColorRoute::new(color, &positions))
    }
}

fn instance(template: &Template, colors: &[Color], routes: Vec<ColorRoute>) -> PeProgram {
    let color = |c: Color| colors.get(usize::from(c)).copied().unwrap_or(c);
    let end = |e: &End| match *e {
        End::Fabric(c) => End::Fabric(color(c)),
        memory => memory,
    };
    let step = |(op, sources, sinks): &Step| {
        let mut op = *op;
        op.advance = op.advance.map(color);
        op.control = op.control.map(color);
        (op, sources.iter().map(end).collect(), sinks.iter().map(end).collect())
    };
    PeProgram {
        routes,
        threads: template.threads.iter().map(|t| t.iter().map(step).collect()).collect(),
        waits: template.waits.clone(),
        scratch: template.scratch,
    }
}
