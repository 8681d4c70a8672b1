//! SVG to PNG, with a font that is part of this program: a fresh machine has none.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// Pixels for each unit of the drawing: sharp on a phone.
const SCALE: f32 = 2.0;

/// Draws `svg` into the file at `path`.
pub fn save(svg: &str, path: &Path) -> Result<()> {
    let tree = Tree::from_str(svg, &options())?;
    let size = tree.size().to_int_size().scale_by(SCALE).context("the drawing is empty")?;
    let mut pixels = Pixmap::new(size.width(), size.height()).context("the drawing is empty")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.save_png(path)?;
    Ok(())
}

fn options() -> Options<'static> {
    let mut fonts = Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Options { fontdb: Arc::new(fonts), ..Options::default() }
}
