package report

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// pngScale is how many pixels a unit of a chart is.
const pngScale = 2

// The colours of a light page, as in aloneStyle.
var (
	inkFaint = color.RGBA{0x66, 0x6d, 0x75, 0xff}
	inkText  = color.RGBA{0x1d, 0x21, 0x26, 0xff}
	inkAxis  = color.RGBA{0xe2, 0xe3, 0xe0, 0xff}
	inkBar   = color.RGBA{0x4c, 0x78, 0xa8, 0xff}
	inkGood  = color.RGBA{0x1a, 0x7f, 0x4b, 0xff}
	inkBad   = color.RGBA{0xc2, 0x33, 0x2b, 0xff}
	inkLines = map[string]color.RGBA{
		"series0": {0x2f, 0x5d, 0x8f, 0xff}, "series1": {0xe0, 0x7a, 0x1f, 0xff}, "series2": {0x59, 0xa1, 0x4f, 0xff}, "series3": {0xb0, 0x7a, 0xa1, 0xff},
	}
	inkLimits = map[string]color.RGBA{"percentile": inkText, "objective met": inkGood, "objective missed": inkBad}
)

// painter draws a chart into pixels; its coordinates are those of the chart.
type painter struct {
	image *image.RGBA
	face  font.Face
}

func writePNG(w io.Writer, c chart) error {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return fmt.Errorf("read font: %w", err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: 11, DPI: 72 * pngScale, Hinting: font.HintingFull})
	if err != nil {
		return fmt.Errorf("read font: %w", err)
	}
	p := painter{image.NewRGBA(image.Rect(0, 0, int(c.Width*pngScale), int(c.Height*pngScale))), face}
	draw.Draw(p.image, p.image.Bounds(), image.White, image.Point{}, draw.Src)
	p.chart(c)
	return png.Encode(w, p.image)
}

func (p painter) chart(c chart) {
	p.text(c.Left, 16, c.Title, inkText, 0)
	for _, tick := range c.YTicks {
		p.line(c.Left, tick.At, c.Right, tick.At, 1, inkAxis)
		p.text(c.Left-6, tick.At+4, tick.Label, inkFaint, 1)
	}
	for _, tick := range c.XTicks {
		p.line(tick.At, c.Bottom, tick.At, c.Bottom+4, 1, inkAxis)
		p.text(tick.At, c.Bottom+17, tick.Label, inkFaint, 0.5)
	}
	p.text((c.Left+c.Right)/2, c.Bottom+36, c.XLabel, inkFaint, 0.5)
	for _, bar := range c.Bars {
		p.box(bar.X, bar.Y, bar.Width, bar.Height, inkBar)
	}
	for i, line := range c.Lines {
		ink := inkLines[line.Class]
		for j := 1; j < len(line.Points); j++ {
			p.line(line.Points[j-1].X, line.Points[j-1].Y, line.Points[j].X, line.Points[j].Y, 2, ink)
		}
		if line.Label != "" {
			p.line(c.Left+8, c.LegendRow(i), c.Left+24, c.LegendRow(i), 4, ink)
			p.text(c.Left+30, c.LegendRow(i)+4, line.Label, inkFaint, 0)
		}
	}
	for _, limit := range c.Limits {
		ink := inkLimits[limit.Class]
		if !limit.Vertical {
			p.dashed(c.Left, limit.At, c.Right, limit.At, ink)
			p.text(c.Left+6, limit.At-5, limit.Label, ink, 0)
			continue
		}
		p.dashed(limit.At, limit.Row-2, limit.At, c.Bottom, ink)
		if limit.Flip {
			p.text(limit.At-4, limit.Row+6, limit.Label, ink, 1)
		} else {
			p.text(limit.At+4, limit.Row+6, limit.Label, ink, 0)
		}
	}
}

// text writes with its left end at x for anchor 0, its middle for 0.5 and its right end for 1.
func (p painter) text(x, y float64, text string, ink color.Color, anchor float64) {
	d := font.Drawer{Dst: p.image, Src: image.NewUniform(ink), Face: p.face}
	width := float64(d.MeasureString(text)) / 64
	d.Dot = fixed.Point26_6{X: fixed.Int26_6((x*pngScale - width*anchor) * 64), Y: fixed.Int26_6(y * pngScale * 64)}
	d.DrawString(text)
}

func (p painter) line(x1, y1, x2, y2, width float64, ink color.Color) {
	length := math.Hypot(x2-x1, y2-y1)
	if length == 0 {
		return
	}
	// Half the width to each side, at right angles.
	dx, dy := (y2-y1)/length*width/2, -(x2-x1)/length*width/2
	p.fill(ink, [2]float64{x1 + dx, y1 + dy}, [2]float64{x2 + dx, y2 + dy}, [2]float64{x2 - dx, y2 - dy}, [2]float64{x1 - dx, y1 - dy})
}

func (p painter) dashed(x1, y1, x2, y2 float64, ink color.Color) {
	const dash, gap = 5, 3
	length := math.Hypot(x2-x1, y2-y1)
	for from := 0.0; from < length; from += dash + gap {
		to := min(from+dash, length)
		p.line(x1+(x2-x1)*from/length, y1+(y2-y1)*from/length, x1+(x2-x1)*to/length, y1+(y2-y1)*to/length, 1.5, ink)
	}
}

func (p painter) box(x, y, width, height float64, ink color.Color) {
	p.fill(ink, [2]float64{x, y}, [2]float64{x + width, y}, [2]float64{x + width, y + height}, [2]float64{x, y + height})
}

func (p painter) fill(ink color.Color, corners ...[2]float64) {
	// Only the pixels around the shape: a rasteriser of the whole picture for each takes half a second.
	low, high := corners[0], corners[0]
	for _, corner := range corners {
		low[0], low[1] = min(low[0], corner[0]), min(low[1], corner[1])
		high[0], high[1] = max(high[0], corner[0]), max(high[1], corner[1])
	}
	bounds := image.Rect(int(low[0]*pngScale)-1, int(low[1]*pngScale)-1, int(high[0]*pngScale)+2, int(high[1]*pngScale)+2)
	r := vector.NewRasterizer(bounds.Dx(), bounds.Dy())
	for i, corner := range corners {
		x, y := float32(corner[0]*pngScale)-float32(bounds.Min.X), float32(corner[1]*pngScale)-float32(bounds.Min.Y)
		if i == 0 {
			r.MoveTo(x, y)
		} else {
			r.LineTo(x, y)
		}
	}
	r.ClosePath()
	r.Draw(p.image, bounds, image.NewUniform(ink), image.Point{})
}
