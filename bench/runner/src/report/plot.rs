//! The drawings, as SVG.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::FontStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::stats::Interval;

/// Width of a drawing. Its text is still readable when a phone halves it.
const WIDTH: i32 = 760;
/// Height of a row of bars or forks.
const ROW: i32 = 32;
/// What the title takes.
const HEAD: i32 = 78;
/// What the foot takes.
const FOOT: i32 = 34;
const TITLE: i32 = 25;
const TEXT: i32 = 19;
const SMALL: i32 = 14;

/// Colours that stay apart for every eye (after Okabe and Ito); ours is bold, too.
const OURS: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const PEER: RGBColor = RGBColor(0x8f, 0xb4, 0xd6);
const FLOOR: RGBColor = RGBColor(0x6b, 0x6b, 0x6b);
const INK: RGBColor = RGBColor(0x1d, 0x1d, 0x1d);
const FAINT: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
const CURVES: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x8c, 0x8c, 0x00),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Whose a mark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shade {
    /// Mimus's.
    Ours,
    /// A floor's.
    Floor,
    /// A peer's.
    Peer,
}

impl Shade {
    fn colour(self) -> RGBColor {
        match self {
            Self::Ours => OURS,
            Self::Floor => FLOOR,
            Self::Peer => PEER,
        }
    }
}

/// A bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Whose.
    pub label: String,
    /// How long, in any unit.
    pub length: f64,
    /// What is written at its end.
    pub text: String,
    /// In which colour.
    pub shade: Shade,
}

/// A ratio with its interval.
#[derive(Debug, Clone)]
pub struct Fork {
    /// Of what.
    pub label: String,
    /// The ratio.
    pub ratio: Interval,
    /// In which colour.
    pub shade: Shade,
}

/// A distribution.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Whose.
    pub label: String,
    /// Nines, and microseconds.
    pub points: Vec<(f64, f64)>,
    /// In which colour.
    pub shade: Shade,
}

/// Horizontal bars from zero, in the order given.
pub fn bars(title: &str, subtitle: &str, bars: &[Bar], foot: &str) -> Result<String> {
    let height = HEAD + ROW * rows(bars.len()) + FOOT;
    let label_width = label_width(bars.iter().map(|bar| bar.label.as_str()));
    let text_width = widest(bars.iter().map(|bar| bar.text.as_str()));
    let room = f64::from(WIDTH - label_width - text_width - 16);
    let longest = bars.iter().map(|bar| bar.length).fold(f64::MIN_POSITIVE, f64::max);
    draw(height, |area| {
        heading(area, title, subtitle)?;
        for (place, bar) in (0..).zip(bars) {
            let top = HEAD + ROW * place;
            let end = label_width + (bar.length / longest * room).max(2.0) as i32;
            area.draw(&Rectangle::new(
                [(label_width, top + 4), (end, top + ROW - 4)],
                bar.shade.colour().filled(),
            ))?;
            label(area, &bar.label, bar.shade, label_width - 10, top)?;
            let style =
                text(TEXT, INK, bar.shade == Shade::Ours).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(bar.text.clone(), (end + 8, top + ROW / 2), style))?;
        }
        footer(area, foot, height)
    })
}

/// Ratios with their intervals on a logarithmic axis, with a line at 1.
pub fn forest(title: &str, subtitle: &str, forks: &[Fork], foot: &str) -> Result<String> {
    let axis = 46;
    let height = HEAD + ROW * rows(forks.len()) + axis + FOOT;
    let left = label_width(forks.iter().map(|fork| fork.label.as_str()));
    let right = WIDTH - 86;
    let scale = Scale::new(forks, left, right);
    let bottom = HEAD + ROW * rows(forks.len());
    draw(height, |area| {
        heading(area, title, subtitle)?;
        for tick in scale.ticks() {
            let x = scale.at(tick);
            let line = if tick == 1.0 { INK.stroke_width(2) } else { FAINT.stroke_width(1) };
            area.draw(&PathElement::new([(x, HEAD - 4), (x, bottom + 4)], line))?;
            let style = text(SMALL, INK, tick == 1.0).pos(Pos::new(HPos::Center, VPos::Top));
            area.draw(&Text::new(format!("{tick}x"), (x, bottom + 8), style))?;
        }
        for (place, fork) in (0..).zip(forks) {
            let top = HEAD + ROW * place;
            label(area, &fork.label, fork.shade, left - 14, top)?;
            one_fork(area, fork, &scale, top + ROW / 2)?;
        }
        let style = text(SMALL, INK, false).pos(Pos::new(HPos::Center, VPos::Top));
        let hint = "right of the line: Mimus is cheaper";
        area.draw(&Text::new(hint, ((left + right) / 2, bottom + 27), style))?;
        footer(area, foot, height)
    })
}

fn one_fork(area: &Area<'_>, fork: &Fork, scale: &Scale, y: i32) -> Result<()> {
    let ratio = &fork.ratio;
    let colour = if fork.shade == Shade::Peer { CURVES[0] } else { fork.shade.colour() };
    let (low, mid, high) = (scale.at(ratio.low), scale.at(ratio.value), scale.at(ratio.high));
    area.draw(&PathElement::new([(low, y), (high, y)], colour.stroke_width(3)))?;
    for end in [low, high] {
        area.draw(&PathElement::new([(end, y - 6), (end, y + 6)], colour.stroke_width(3)))?;
    }
    area.draw(&Rectangle::new([(mid - 5, y - 5), (mid + 5, y + 5)], colour.filled()))?;
    let style = text(TEXT, INK, fork.shade == Shade::Ours).pos(Pos::new(HPos::Right, VPos::Center));
    area.draw(&Text::new(format!("{:.2}x", ratio.value), (WIDTH - 8, y), style))?;
    Ok(())
}

/// A logarithmic axis of ratios.
struct Scale {
    low: f64,
    high: f64,
    left: f64,
    right: f64,
}

impl Scale {
    fn new(forks: &[Fork], left: i32, right: i32) -> Self {
        let low = forks.iter().map(|fork| fork.ratio.low).fold(0.9, f64::min);
        let high = forks.iter().map(|fork| fork.ratio.high).fold(1.2, f64::max);
        let (left, right) = (f64::from(left), f64::from(right));
        Self { low: low.max(0.01) / 1.05, high: high * 1.05, left, right }
    }

    fn at(&self, ratio: f64) -> i32 {
        let share = (ratio / self.low).ln() / (self.high / self.low).ln();
        (self.left + share.clamp(0.0, 1.0) * (self.right - self.left)) as i32
    }

    /// Round ratios with room for their labels; 1 comes first and always stays.
    fn ticks(&self) -> Vec<f64> {
        const ROUND: [f64; 17] = [
            1.0, 2.0, 0.5, 5.0, 10.0, 0.2, 1.5, 3.0, 20.0, 50.0, 100.0, 0.1, 0.7, 1.2, 0.9, 1.1,
            7.0,
        ];
        let mut kept: Vec<f64> = Vec::new();
        for tick in ROUND.into_iter().filter(|tick| (self.low..=self.high).contains(tick)) {
            if kept.iter().all(|other| (self.at(*other) - self.at(tick)).abs() >= 46) {
                kept.push(tick);
            }
        }
        kept
    }
}

/// Nines from none up to `most`: 1 is 90 %, 2 is 99 %.
pub fn nines(most: f64) -> impl Iterator<Item = f64> {
    const STEPS: u32 = 20;
    (0..=STEPS).map(move |step| most * f64::from(step) / f64::from(STEPS))
}

/// Percentile curves: nines to the right, time upwards, both logarithmic.
pub fn curves(title: &str, curves: &[Curve]) -> Result<String> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = points().map(|point| point.0).fold(1.0, f64::max);
    let low = points().map(|point| point.1).filter(|time| *time > 0.0).fold(f64::MAX, f64::min);
    let high = points().map(|point| point.1).fold(1e-3, f64::max);
    let lines = rows(curves.len());
    let legend = (lines + 2) / 3 * 22 + 12;
    let plot = 380;
    draw(plot + legend, |area| {
        let (upper, lower) = area.split_vertically(plot);
        let mut chart = ChartBuilder::on(&upper)
            .caption(title, text(TITLE - 5, INK, true))
            .margin(10)
            .x_label_area_size(34)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..most, (low.min(high) * 0.9..high * 1.1).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .x_label_formatter(&|nine| percentile(*nine))
            .y_label_formatter(&|time| short(*time))
            .x_labels(6)
            .label_style(text(SMALL, INK, false))
            .draw()?;
        for (place, curve) in curves.iter().enumerate() {
            let style = stroke(curve.shade, place);
            chart.draw_series(LineSeries::new(curve.points.iter().copied(), style))?;
        }
        for (place, curve) in curves.iter().enumerate() {
            let (column, line) = (rows(place % 3), rows(place / 3));
            let (x, y) = (20 + column * 245, 12 + line * 22);
            lower.draw(&PathElement::new([(x, y), (x + 26, y)], stroke(curve.shade, place)))?;
            let style = text(SMALL + 1, INK, curve.shade == Shade::Ours)
                .pos(Pos::new(HPos::Left, VPos::Center));
            lower.draw(&Text::new(curve.label.clone(), (x + 34, y), style))?;
        }
        Ok(())
    })
}

fn stroke(shade: Shade, place: usize) -> ShapeStyle {
    match shade {
        Shade::Ours => OURS.stroke_width(4),
        Shade::Floor => FLOOR.stroke_width(2),
        Shade::Peer => CURVES[place % CURVES.len()].stroke_width(2),
    }
}

/// Nines as a percentile.
fn percentile(nines: f64) -> String {
    let share = 100.0 * (1.0 - 0.1_f64.powf(nines));
    match nines {
        n if n < 1.01 => format!("p{share:.0}"),
        n if n < 2.01 => format!("p{share:.1}"),
        n if n < 3.01 => format!("p{share:.2}"),
        _ => format!("p{share:.3}"),
    }
}

fn short(value: f64) -> String {
    if value >= 10.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Draws on white paper of this height.
fn draw(height: i32, paint: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<String> {
    let mut svg = String::new();
    {
        let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE).map_err(|why| anyhow!("{why}"))?;
        paint(&area)?;
        area.present().map_err(|why| anyhow!("{why}"))?;
    }
    Ok(svg)
}

fn heading(area: &Area<'_>, title: &str, subtitle: &str) -> Result<()> {
    area.draw(&Text::new(title.to_owned(), (14, 12), text(TITLE, INK, true)))?;
    area.draw(&Text::new(subtitle.to_owned(), (14, 44), text(SMALL + 2, INK, false)))?;
    Ok(())
}

fn footer(area: &Area<'_>, foot: &str, height: i32) -> Result<()> {
    let style = text(SMALL - 2, FLOOR, false).pos(Pos::new(HPos::Left, VPos::Bottom));
    area.draw(&Text::new(foot.to_owned(), (14, height - 8), style))?;
    Ok(())
}

fn label(area: &Area<'_>, words: &str, shade: Shade, right: i32, top: i32) -> Result<()> {
    let style = text(TEXT, INK, shade == Shade::Ours).pos(Pos::new(HPos::Right, VPos::Center));
    area.draw(&Text::new(words.to_owned(), (right, top + ROW / 2), style))?;
    Ok(())
}

fn text(size: i32, colour: RGBColor, bold: bool) -> TextStyle<'static> {
    let font = ("sans-serif", size).into_font();
    let font = if bold { font.style(FontStyle::Bold) } else { font };
    font.color(&colour)
}

fn label_width<'a>(labels: impl Iterator<Item = &'a str>) -> i32 {
    widest(labels).min(WIDTH * 6 / 10) + 24
}

/// What the longest text takes, on the safe side.
fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> i32 {
    let most = texts.map(|words| words.chars().count()).max().unwrap_or(0);
    (most as f64 * f64::from(TEXT) * 0.56) as i32
}

fn rows(many: usize) -> i32 {
    i32::try_from(many).unwrap_or(i32::MAX / ROW)
}
